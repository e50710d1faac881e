"""Elements at indices and masks, read and written."""
