"""Transforms of several kernels or several axes: long lines, planes, and the choice of a kernel.

`calls` chooses what computes a transform, and launches it for the functions of `api`.
"""
