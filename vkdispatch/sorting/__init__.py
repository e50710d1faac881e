"""Sorts of arrays, of values by keys, and of segments: stable, by radix."""
