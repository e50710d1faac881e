"""Parsing and checking of arguments: buffers, shapes, axes, norms and types."""
