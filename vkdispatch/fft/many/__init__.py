"""Transforms of several kernels or several axes: long lines, planes, and the choice of a kernel.

`kernels` chooses what computes a transform, and `calls` launches it for the functions of `api`.
"""
