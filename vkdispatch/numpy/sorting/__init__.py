"""Sorts, searches, sets, choices."""
