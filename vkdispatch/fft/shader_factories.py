"""The functions of vkdispatch 0.1.0's module of this name; `vkdispatch.fft` has them too."""

from vkdispatch.fft.api import shaders
from vkdispatch.fft.api.shaders import *  # noqa: F403
from vkdispatch.fft.convolve.kernels import get_transposed_size
from vkdispatch.fft.trace.ops import mapped_kernel_index

__all__ = ["get_transposed_size", "mapped_kernel_index"]
__all__ += shaders.__all__
