"""Compilers, and the shared libraries that they make."""
