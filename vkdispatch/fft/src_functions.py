"""The functions of `vkdispatch.fft.api.sources`, under the name of the module in vkdispatch 0.1.0."""

from vkdispatch.fft.api.sources import *  # noqa: F403
