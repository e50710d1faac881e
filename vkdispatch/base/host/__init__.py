"""Data of the host: arrays, strings of bytes, pinned memory, on their way to a buffer and back."""
