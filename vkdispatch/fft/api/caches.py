"""The caches of kernels."""

from typing import Any

from vkdispatch.base.context import get_context, is_context_initialized
from vkdispatch.fft.convolve.kernels import clear_convolutions
from vkdispatch.fft.convolve.planes import build_plane_convolution
from vkdispatch.fft.many.kernels import build_fft_kernel, build_plane_kernel

__all__ = ["cache_clear", "get_cache_info", "print_cache_info"]


def get_cache_info() -> Any:
    """Return the hits, misses and size of the cache of `make_fft_shader`, as a `functools` CacheInfo.

    Examples
    --------
    >>> vd.fft.cache_clear()
    >>> vd.fft.get_cache_info().currsize
    0
    """
    return build_fft_kernel.cache_info()


def print_cache_info() -> None:
    """Print what `get_cache_info` returns.

    Examples
    --------
    >>> vd.fft.cache_clear()
    >>> vd.fft.print_cache_info()
    CacheInfo(hits=0, misses=0, maxsize=None, currsize=0)
    """
    print(get_cache_info())


def cache_clear() -> None:
    """Clear the cache of kernels for transforms, convolutions and transpositions.

    Examples
    --------
    >>> vd.fft.cache_clear()
    >>> vd.fft.get_cache_info().currsize
    0
    """
    build_fft_kernel.cache_clear()
    build_plane_kernel.cache_clear()
    build_plane_convolution.cache_clear()
    clear_convolutions()
    if is_context_initialized():
        get_context().calls.clear()
