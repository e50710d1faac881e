"""GLSL to SPIR-V, in this process."""
