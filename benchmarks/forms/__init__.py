"""Forms of kernels on trial: which of them gain enough to be kept; see `__main__`."""
