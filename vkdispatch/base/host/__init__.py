"""Host data and buffers: layouts, conversions, transfers, pinned memory, and NumPy's protocols."""
