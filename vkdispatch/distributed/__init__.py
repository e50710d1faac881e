"""Dask arrays of `vkdispatch.numpy`, and clusters of workers with a Vulkan device each.

Needs the extra `[dask]`: `pip install 'vkdispatch[dask]'`.
"""

from vkdispatch.distributed.loading import register

register()
