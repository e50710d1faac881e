"""Elements chosen by what they hold, and counts of them."""
