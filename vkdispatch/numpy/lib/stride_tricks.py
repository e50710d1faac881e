"""Views with other shapes and strides: `numpy.lib.stride_tricks`."""

from vkdispatch.numpy.basics.manipulation import as_strided, sliding_window_view

__all__ = ["as_strided", "sliding_window_view"]
