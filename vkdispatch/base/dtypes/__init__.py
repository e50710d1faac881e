"""Functions that make dtypes from dtypes: promotion, and the types that kernels make."""
