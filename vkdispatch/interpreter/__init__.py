"""The second executor: runs the intermediate representation of a kernel with NumPy, without a device."""
