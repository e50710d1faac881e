"""The arguments of an order and of a run."""
