"""The error of invalid calls, for which Kompute raises RuntimeError, crashes or continues."""

from vkdispatch.base.errors import VkDispatchError


class KomputeError(VkDispatchError, RuntimeError):
    """An invalid value, or a call at the wrong time. A wrong type is a TypeError."""
