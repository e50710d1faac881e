"""Mapping functions as kernels use them: lowered to buffers, traced, loaded and stored."""
