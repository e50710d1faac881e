"""Kernels in plain Python: a source rewrite that lets `if`, `while`, `for`... act on GPU values.

`source` finds the syntax tree of a function, `liveness` and `transform` turn it into another tree whose
control flow calls `frames`, `loops` and `operators`, which decide at trace time between Python and the GPU.
"""
