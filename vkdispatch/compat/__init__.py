"""Kept for programs that import it: NumPy is always there, so there is nothing to make compatible."""

HAS_NUMPY = True

__all__ = ["HAS_NUMPY"]
