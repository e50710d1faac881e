"""Arrays of `vkdispatch.numpy` where buffers are expected, known here by two methods of their class.

`__vkdispatch_argument__(is_recorded, is_mapped)` returns what stands for an array in a call: its memory if
the elements fill that in C order, else a copy, which nothing can write, or a map if that will do.
`__vkdispatch_result__(buffer)` of the class makes an array of a buffer that a function returns.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_TAKE, _MAKE = "__vkdispatch_argument__", "__vkdispatch_result__"


class Given:
    """The arrays among the arguments of a call, and the buffers that stand for them.

    Attributes
    ----------
    is_recorded
        Whether the call is recorded, so that it reads memory later.
    is_mapped
        Whether the call takes maps called with their arguments in place of buffers that it reads.
    pairs
        Each array that was replaced, and its buffer.
    """

    __slots__ = ("is_mapped", "is_recorded", "pairs")

    def __init__(self, is_recorded: bool, is_mapped: bool) -> None:
        self.is_recorded = is_recorded
        self.is_mapped = is_mapped
        self.pairs: list[tuple[Any, Any]] = []

    def replace(self, value: Any) -> Any:
        """Return an argument with the arrays in it replaced.

        Raises
        ------
        ValueError
            The call is recorded, and an array would have to be copied.
        """
        if type(value) in (list, tuple):
            return type(value)(self.replace(each) for each in value)
        take = getattr(type(value), _TAKE, None)
        if take is None:
            return value
        for known, buffer in self.pairs:
            if known is value:
                return buffer
        buffer = take(value, self.is_recorded, self.is_mapped)
        self.pairs.append((value, buffer))
        return buffer

    def restore(self, result: Any, kind: type[Any]) -> Any:
        """Return the result of a call with its buffers of exactly this class as arrays."""
        for array, buffer in self.pairs:
            if result is buffer:
                return array
        if isinstance(result, tuple):
            make = getattr(type(result), "_make", tuple)
            return make([self.restore(each, kind) for each in result])
        if type(result) is kind and getattr(result, "_order", None) is None:
            return getattr(type(self.pairs[0][0]), _MAKE)(result)
        return result


def has_arrays(values: Iterable[Any]) -> bool:
    """Whether there is an array among values, or in the lists and tuples among them."""
    return any(
        has_arrays(each) if type(each) in (list, tuple) else hasattr(type(each), _TAKE) for each in values
    )


def replace_arrays(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    is_recorded: bool,
    is_mapped: bool = False,
) -> tuple[Given, tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a call with arrays replaced; None if there are none. Raises as `Given`."""
    if not has_arrays(args) and not has_arrays(kwargs.values()):
        return None
    given = Given(is_recorded, is_mapped)
    return (
        given,
        tuple(given.replace(each) for each in args),
        {name: given.replace(each) for name, each in kwargs.items()},
    )
