"""The base class of the objects that a Manager makes."""

from typing import Any, NoReturn

from vkdispatch.base.errors import ArgumentTypeError


class Opaque:
    """An object that only a Manager makes. It is compared by identity and cannot be pickled."""

    __slots__ = ("__weakref__",)

    _maker = "kp.Manager"

    def __init__(self, *_: object, **__: object) -> None:
        """Raise TypeError: a Manager makes these objects."""
        name = type(self).__name__
        raise ArgumentTypeError(f"kp.{name} has no constructor: {self._maker} makes it")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Raise TypeError: the object cannot be pickled."""
        raise ArgumentTypeError(f"kp.{type(self).__name__} cannot be pickled: it lies on a device")
