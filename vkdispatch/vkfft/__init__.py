"""Fourier transforms and convolutions with the VkFFT library: any length, along any axes."""

from vkdispatch.vkfft.functions import (
    convolve2D,
    fft,
    fft2,
    fft3,
    ifft,
    ifft2,
    ifft3,
    irfft,
    irfft2,
    irfft3,
    rfft,
    rfft2,
    rfft3,
    transpose_kernel2D,
)
from vkdispatch.vkfft.plan import VkFFTPlan
from vkdispatch.vkfft.program import clear_plan_cache

__all__ = [
    "VkFFTPlan",
    "clear_plan_cache",
    "convolve2D",
    "fft",
    "fft2",
    "fft3",
    "ifft",
    "ifft2",
    "ifft3",
    "irfft",
    "irfft2",
    "irfft3",
    "rfft",
    "rfft2",
    "rfft3",
    "transpose_kernel2D",
]


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
