"""Running sums, products and extremes, and running results of any associative function."""
