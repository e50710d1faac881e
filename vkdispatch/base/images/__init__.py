"""Formats, samplers and mip levels of images."""
