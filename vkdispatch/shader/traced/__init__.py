"""Traced kernels: what devices lack, the code of variants, and the programs of kernels."""
