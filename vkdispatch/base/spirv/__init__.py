"""SPIR-V modules: read, checked, described, and rewritten to repeat their work."""
