"""Forgetting the kernels that were made."""

from vkdispatch.fft.convolution import clear_convolutions
from vkdispatch.fft.shaders import clear_transforms


def cache_clear() -> None:
    """Forget the kernels of transforms, convolutions and transpositions: each is made anew when next used."""
    clear_transforms()
    clear_convolutions()
