"""Dask arrays of `vkdispatch.numpy`, and clusters of workers with a Vulkan device each.

Needs the extra `[dask]`: `pip install 'vkdispatch-gpu[dask]'`.
"""

from typing import TYPE_CHECKING

from vkdispatch.base import names_elsewhere
from vkdispatch.base.errors import MissingPackageError
from vkdispatch.distributed.loading import register

if TYPE_CHECKING:
    from vkdispatch.distributed.cluster import LocalVulkanCluster
    from vkdispatch.distributed.worker import VulkanPlugin

__all__ = ["LocalVulkanCluster", "VulkanPlugin"]

if not TYPE_CHECKING:
    _find = names_elsewhere(
        __name__, {"distributed.cluster": "LocalVulkanCluster", "distributed.worker": "VulkanPlugin"}
    )

    def __getattr__(name: str) -> object:
        try:
            return _find(name)
        except ModuleNotFoundError as error:
            raise MissingPackageError(
                f"{name}: {error.name} is not installed; install it with `pip install 'vkdispatch-gpu[dask]'`"
            ) from error


register()
