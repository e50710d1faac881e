"""Elements moved: transposed, gathered, scattered, joined."""
