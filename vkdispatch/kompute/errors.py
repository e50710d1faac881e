"""What a wrong use of this layer raises, where Kompute raises RuntimeError, crashes or goes on."""

from vkdispatch.base.errors import VkDispatchError


class KomputeError(VkDispatchError, RuntimeError):
    """A value that cannot be used, or a call at the wrong time. A wrong type is a TypeError."""
