"""What the objects that a Manager makes have in common."""

from typing import Any, NoReturn

from vkdispatch.base.errors import ArgumentTypeError


class Opaque:
    """An object that only a Manager makes: equal to itself alone, without other attributes, not pickled."""

    __slots__ = ("__weakref__",)

    _made_by = "kp.Manager"

    def __init__(self, *_: object, **__: object) -> None:
        """Refuse. Raises TypeError."""
        name = type(self).__name__
        raise ArgumentTypeError(f"kp.{name} has no constructor: {self._made_by} makes it")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be pickled. Raises TypeError."""
        raise ArgumentTypeError(f"kp.{type(self).__name__} cannot be pickled: it lies on a device")
