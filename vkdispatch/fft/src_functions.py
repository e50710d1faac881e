"""The functions of vkdispatch 0.1.0's module of this name; `vkdispatch.fft` has them too."""

from vkdispatch.fft.api.sources import *  # noqa: F403
from vkdispatch.fft.api.sources import __all__ as __all__
