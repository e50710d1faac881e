"""The kernel language on a device, compared with NumPy, SciPy and closed forms."""
