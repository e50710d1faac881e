"""NumPy's way of computing on Vulkan devices."""
