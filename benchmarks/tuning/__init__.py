"""`python -m benchmarks tune`: finds the tuning numbers of the functions on arrays for a device."""
