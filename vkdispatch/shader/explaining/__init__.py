"""What becomes of a kernel: its programs, GLSL and SPIR-V, for `vd.explain` and VKDISPATCH_TRACE."""
