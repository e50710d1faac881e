"""Products of matrices: `vd.matmul`."""
