"""Kernels that transform whole lines in one pass over memory."""
