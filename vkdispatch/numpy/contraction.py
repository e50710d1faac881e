"""contraction."""
