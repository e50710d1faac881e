"""Rewrites of a program into another one, and what they need to know for it."""
