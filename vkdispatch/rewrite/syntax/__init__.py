"""Syntax trees of functions: found, analysed and rewritten. Nothing here knows a value."""
