"""Transforms of several kernels or several axes: long lines, planes, and the choice of a kernel."""
