"""Random numbers: the same streams on every device."""
