"""Kernels that transform lines in one pass over memory.

`context`, `resources` and `iterators` are the steps that users can trace themselves; `staged`, `real`,
`pairs` and `convolved` are the kernels of special lengths.
"""
