"""What kernels can run on, by name: Vulkan, and a dummy that runs nothing."""

from vkdispatch.base.errors import BackendUnavailableError
from vkdispatch.base.init import get_backend, is_cuda, is_dummy, is_opencl, is_vulkan

__all__ = ["BackendUnavailableError", "get_backend", "is_cuda", "is_dummy", "is_opencl", "is_vulkan"]
