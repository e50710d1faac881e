"""The functions of vkdispatch 0.1.0's module of this name; `vkdispatch.fft` has them too."""

from vkdispatch.fft.api import caches, shaders
from vkdispatch.fft.api.caches import *  # noqa: F403
from vkdispatch.fft.api.shaders import *  # noqa: F403
from vkdispatch.fft.convolve.plans import get_transposed_size
from vkdispatch.fft.trace.ops import mapped_kernel_index

__all__ = ["get_transposed_size", "mapped_kernel_index"]
__all__ += caches.__all__
__all__ += shaders.__all__
