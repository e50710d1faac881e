"""Digests of kernels and results, which show that a change of the package's structure changes neither."""
