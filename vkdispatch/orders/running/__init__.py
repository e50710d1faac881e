"""Accel: an order with its arguments, and its runs."""
