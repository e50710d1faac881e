"""Several kernels over the same invocations as one."""
