"""Sequences of recorded operations."""
