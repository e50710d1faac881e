"""attributes."""
