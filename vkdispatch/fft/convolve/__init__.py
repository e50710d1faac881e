"""Convolutions: a transform, a product with a spectrum, and the inverse transform."""
