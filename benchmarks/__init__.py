"""Benchmarks beside the peers and beside raw Vulkan: ``python -m benchmarks``. Not installed."""
