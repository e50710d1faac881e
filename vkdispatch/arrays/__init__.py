"""What the functions on arrays share: operands with maps, axes, results, and how their kernels are made."""
