"""Recording dispatches once and replaying them with other values."""
