"""choices."""
