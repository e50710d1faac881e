"""An interpreter of the intermediate representation of kernels, with NumPy and without a device."""
