"""Parts of NumPy's `numpy.lib`: `stride_tricks`."""

from vkdispatch.numpy.lib import stride_tricks as stride_tricks

__all__ = ["stride_tricks"]
