"""The operations of sequences."""
