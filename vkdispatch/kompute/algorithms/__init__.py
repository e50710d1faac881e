"""Algorithms: kernels bound to memory."""
