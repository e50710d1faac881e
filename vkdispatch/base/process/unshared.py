"""What is nothing without its device, or the moment it stands for: it is neither copied nor pickled."""

from typing import Any, ClassVar

from vkdispatch.base.errors import ArgumentTypeError


class Unshared:
    """Refuses `copy.copy`, `copy.deepcopy` and `pickle`, and says what would do."""

    _instead: ClassVar[str] = "make another one"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse. Raises TypeError."""
        raise ArgumentTypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it belongs to a device; {self._instead}"
        )
