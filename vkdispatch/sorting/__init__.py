"""Sorts of arrays, of values by keys, and of segments: stable, by radix."""

from vkdispatch.sorting.functions import argsort, sort, sort_by_key

__all__ = ["argsort", "sort", "sort_by_key"]
