"""Kernels that transform lines in one pass over memory.

`context` and `resources` are the steps that users can trace themselves; `real` and `special_lengths` are the
other kernels.
"""
