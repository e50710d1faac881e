"""Runtime objects: devices, contexts, buffers and what runs on them."""
