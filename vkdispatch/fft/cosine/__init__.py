"""Cosine and sine transforms as complex ones."""
