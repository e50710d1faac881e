"""Calls of rewritten functions: their blocks, jumps and results."""
