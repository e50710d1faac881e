"""Code from strangers, compiled in a process of its own."""
