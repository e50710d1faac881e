"""Sorting along an axis, of keys alone, of keys with values, and of positions."""
