"""Paths between which the GPU decides: recorded, joined, and chosen by conditions."""
