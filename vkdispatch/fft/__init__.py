"""Fast Fourier transforms: kernels generated for each length, open to the user's own code."""
