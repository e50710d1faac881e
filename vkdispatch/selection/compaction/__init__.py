"""Elements that a condition keeps, written without gaps."""
