"""Padding, insertion, writing at places, diagonals, grids of indices."""
