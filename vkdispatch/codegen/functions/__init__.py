"""The mathematics of the kernel language, one topic a module."""
