"""Measurements of kernels and devices: profiles, bandwidth and accuracy."""
