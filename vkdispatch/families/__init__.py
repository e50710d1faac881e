"""What the families of functions on buffers share: operands with maps, results, plans, kernels."""
