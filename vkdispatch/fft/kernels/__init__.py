"""Kernels of transforms.

`context` has the steps that users can trace themselves, `real` and `special_lengths` other lines of one pass,
`passes` lines of several passes, and `planes` two axes at once.
"""
