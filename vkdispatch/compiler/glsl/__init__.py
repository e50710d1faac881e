"""The writer: a program as GLSL."""
