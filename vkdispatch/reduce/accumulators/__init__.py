"""What values are accumulated in: sums, extremes, truth, moments, norms, and masks."""
