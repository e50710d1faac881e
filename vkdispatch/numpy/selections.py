"""selections."""
