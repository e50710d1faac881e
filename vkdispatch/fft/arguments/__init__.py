"""What calls are given: buffers, shapes, axes, norms and types, checked."""
