"""What the other modules are built from: element-wise functions, creation, shapes, reductions."""
