"""Counts, and sums of weights, by bin."""
