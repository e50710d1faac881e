"""Parameters of kernels and the values that calls give them."""
