"""Running sums, products and extremes, and running results of any associative function."""

from vkdispatch.scans.launching import exclusive_sum

__all__ = ["exclusive_sum"]
