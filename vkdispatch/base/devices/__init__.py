"""Devices: their properties, and the drivers that provide them."""
