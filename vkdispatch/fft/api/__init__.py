"""The functions that users call: signatures and documentation.

What they do is in `many.calls`, `convolve.calls` and `cosine.transforms`, which take their options as a
record.
"""
