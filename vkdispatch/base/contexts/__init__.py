"""Contexts: which devices they take, which one is current, and Vulkan's handles for other libraries."""
