"""The kernels that were made already."""

from typing import Any

from vkdispatch.base.context import get_context, is_context_initialized
from vkdispatch.fft.convolve.kernels import clear_convolutions
from vkdispatch.fft.convolve.planes import cached_plane_convolution
from vkdispatch.fft.many.kernels import cached_fft_kernel, cached_plane_kernel


def get_cache_info() -> Any:
    """Return the hits, misses and size of the cache of `make_fft_shader`, as `functools` has it."""
    return cached_fft_kernel.cache_info()


def print_cache_info() -> None:
    """Print what `get_cache_info` returns."""
    print(get_cache_info())


def cache_clear() -> None:
    """Forget the kernels of transforms, convolutions and transpositions: each is made anew when next used."""
    cached_fft_kernel.cache_clear()
    cached_plane_kernel.cache_clear()
    cached_plane_convolution.cache_clear()
    clear_convolutions()
    if is_context_initialized():
        get_context().calls.clear()
