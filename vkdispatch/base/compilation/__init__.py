"""Compilation of GLSL to SPIR-V and of SPIR-V to pipelines, and the cache on disk."""
