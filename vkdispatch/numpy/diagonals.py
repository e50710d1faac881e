"""diagonals."""
