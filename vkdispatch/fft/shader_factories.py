"""The older name of the modules that make the kernels of transforms and convolutions."""

from vkdispatch.fft.caching import cache_clear, get_cache_info, print_cache_info
from vkdispatch.fft.convolution import get_transposed_size, make_convolution_shader, make_transpose_shader
from vkdispatch.fft.ops import mapped_kernel_index
from vkdispatch.fft.shaders import make_fft_shader

__all__ = [
    "cache_clear",
    "get_cache_info",
    "get_transposed_size",
    "make_convolution_shader",
    "make_fft_shader",
    "make_transpose_shader",
    "mapped_kernel_index",
    "print_cache_info",
]
