"""Kernels as Python functions: `@shader`, their launch, and mapping functions."""
