"""Statistics, histograms, convolutions, polynomials."""
