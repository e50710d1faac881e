"""The functions of vkdispatch 0.1.0's module of this name; `vkdispatch.fft` has them too."""

from vkdispatch.fft.api.caches import cache_clear, get_cache_info, print_cache_info
from vkdispatch.fft.api.shaders import make_convolution_shader, make_fft_shader, make_transpose_shader
from vkdispatch.fft.convolve.plans import get_transposed_size

__all__ = [
    "cache_clear",
    "get_cache_info",
    "get_transposed_size",
    "make_convolution_shader",
    "make_fft_shader",
    "make_transpose_shader",
    "print_cache_info",
]
