"""Proof that a SPIR-V kernel works element by element."""
