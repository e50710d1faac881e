"""Ways to make buffers: from arrays, by a short name, for real FFTs, for functions on arrays."""
