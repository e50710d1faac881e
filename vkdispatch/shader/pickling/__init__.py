"""Pickles of kernels, maps, reductions and scans: by name where a module has them, else by value."""
