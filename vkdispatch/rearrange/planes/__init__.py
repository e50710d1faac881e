"""Kernels that transpose planes: in tiles, or narrow ones by words."""
