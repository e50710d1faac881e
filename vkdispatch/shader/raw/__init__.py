"""GLSL and SPIR-V as kernels: their interface is read from the module."""
