"""Syntax trees of functions: found, analysed and rewritten, before any value is known."""
