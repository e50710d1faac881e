"""Device memory beside `Buffer` and `Image`: how host data gets there, and what it looks like."""
