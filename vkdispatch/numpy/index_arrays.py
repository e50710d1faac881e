"""index_arrays."""
