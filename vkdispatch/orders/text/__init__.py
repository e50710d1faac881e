"""The text of orders."""
