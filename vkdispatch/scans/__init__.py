"""Cumulative sums, and scans by any associative function."""
