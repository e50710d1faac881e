"""Objects that depend on a device: they can be neither copied nor pickled."""

from typing import Any, ClassVar

from vkdispatch.base.errors import ArgumentTypeError


class Unshared:
    """Base of classes that refuse `copy.copy`, `copy.deepcopy` and `pickle`, and say what to do instead."""

    _instead: ClassVar[str] = "make another one"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raise TypeError."""
        raise ArgumentTypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it belongs to a device; {self._instead}"
        )
