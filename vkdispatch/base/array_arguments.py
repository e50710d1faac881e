"""Arrays where buffers are expected: of `vkdispatch.numpy`, known by two methods, and of other libraries.

`__vkdispatch_argument__(is_recorded, is_mapped)` returns what stands for an array in a call: its memory if
the elements fill that in C order, else a copy, which nothing can write, or a map if that will do.
`__vkdispatch_result__(buffer)` of the class makes an array of a buffer that a function returns. Arrays of
other libraries are taken by DLPack, if that needs no copy, and results stay buffers.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.foreign import share_argument
from vkdispatch.base.dtype import DType
from vkdispatch.base.sharing.imports import has_dlpack

_NO_KINDS: Mapping[int, DType] = {}
_TAKE, _MAKE = "__vkdispatch_argument__", "__vkdispatch_result__"


class Given:
    """The arrays among the arguments of a call, and the buffers that stand for them.

    Attributes
    ----------
    is_recorded
        Whether the call is recorded, so that it reads memory later.
    is_mapped
        Whether the call takes maps called with their arguments in place of buffers that it reads.
    name
        What messages call arrays of other libraries; "" if those are not replaced.
    pairs
        Each array that was replaced, and its buffer.
    """

    __slots__ = ("is_mapped", "is_recorded", "name", "pairs")

    def __init__(self, is_recorded: bool, is_mapped: bool, name: str) -> None:
        self.is_recorded = is_recorded
        self.is_mapped = is_mapped
        self.name = name
        self.pairs: list[tuple[Any, Any]] = []

    def replace(self, value: Any) -> Any:
        """Return an argument with the arrays in it replaced.

        Raises
        ------
        ValueError
            The call is recorded, and an array would have to be copied; or an array of another library would.
        """
        if type(value) in (list, tuple):
            return type(value)(self.replace(each) for each in value)
        take = getattr(type(value), _TAKE, None)
        if take is None and not (self.name and is_foreign(value)):
            return value
        for known, replaced in self.pairs:
            if known is value:
                return replaced
        if take is None:
            buffer: Any = share_argument(value, self.name)
        else:
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
        make_array = getattr(type(self.pairs[0][0]), _MAKE, None)
        if make_array is not None and type(result) is kind and getattr(result, "_order", None) is None:
            return make_array(result)
        return result


def has_arrays(values: Iterable[Any]) -> bool:
    """Whether there is an array of this library among values, or in the lists and tuples among them."""
    return any(
        has_arrays(each) if type(each) in (list, tuple) else hasattr(type(each), _TAKE) for each in values
    )


def is_foreign(value: object) -> bool:
    """Whether a value is an array of another library."""
    return has_dlpack(value) and not isinstance(value, Buffer) and not hasattr(type(value), _TAKE)


def has_foreign(values: Iterable[Any]) -> bool:
    """Whether there is an array of another library among values, or in the lists and tuples among them."""
    return any(has_foreign(each) if type(each) in (list, tuple) else is_foreign(each) for each in values)


def replace_arrays(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    is_recorded: bool,
    is_mapped: bool = False,
    foreign: str = "",
) -> tuple[Given, tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a call with arrays replaced; None if there are none. Raises as `Given`.

    With a name in `foreign`, arrays of other libraries are replaced, too.
    """
    values = (*args, *kwargs.values())
    if not has_arrays(values) and not (foreign and has_foreign(values)):
        return None
    given = Given(is_recorded, is_mapped, foreign)
    return (
        given,
        tuple(given.replace(each) for each in args),
        {name: given.replace(each) for name, each in kwargs.items()},
    )


def replace_foreign(
    values: tuple[Any, ...], names: Mapping[int, str], kinds: Mapping[int, DType] = _NO_KINDS
) -> tuple[Any, ...] | None:
    """Return values with arrays of other libraries as buffers, at positions with names for messages.

    Where the kind is a vector or matrix, an array may have the axes of its components last. Returns None if
    there are no such arrays. Raises as `Given`.
    """
    if not any(is_foreign(values[position]) for position in names):
        return None
    replaced = list(values)
    known: list[tuple[Any, Buffer[Any]]] = []
    for position, name in names.items():
        value = values[position]
        if is_foreign(value):
            found = [buffer for array, buffer in known if array is value]
            kind = kinds.get(position)
            replaced[position] = found[0] if found else share_argument(value, name, kind)
            known.append((value, replaced[position]))
    return tuple(replaced)
