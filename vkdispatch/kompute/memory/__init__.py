"""Memory of a Manager: tensors and images."""
