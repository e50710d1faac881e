"""The functions of the kernel language, one topic a module."""
