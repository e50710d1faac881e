"""The largest or smallest elements along an axis."""
