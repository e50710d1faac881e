"""How elements lie in memory: views as other dtypes, and flags."""

from collections.abc import Callable
from typing import Any, NamedTuple

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.core.array import Array, array_of, view_of
from vkdispatch.numpy.core.dtypes import Kind, kernel_type, parse_dtype
from vkdispatch.numpy.core.memory import Shape, Storage, View, is_c_order


class Flags(NamedTuple):
    """How an array lies in memory. See `numpy.ndarray.flags`; NumPy's names in brackets work too."""

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool
    writeable: bool
    aligned: bool = True

    def __getitem__(self, name: Any) -> Any:
        """Return a flag by its name, such as "C_CONTIGUOUS". Raises KeyError for an unknown one."""
        if not isinstance(name, str):
            return tuple(self)[name]
        short = {"c": "c_contiguous", "f": "f_contiguous", "o": "owndata", "w": "writeable", "a": "aligned"}
        lower = short.get(name.lower(), name.lower())
        if lower in _COMBINATIONS:
            return _COMBINATIONS[lower](self)
        if lower not in self._fields:
            raise KeyError(
                f"unknown flag {name!r}: expected one of {[each.upper() for each in self._fields]}"
            )
        return getattr(self, lower)


_COMBINATIONS: dict[str, Callable[[Flags], bool]] = {
    "forc": lambda flags: flags.f_contiguous or flags.c_contiguous,
    "fnc": lambda flags: flags.f_contiguous and not flags.c_contiguous,
    "behaved": lambda flags: flags.aligned and flags.writeable,
    "carray": lambda flags: flags.c_contiguous and flags["BEHAVED"],
    "farray": lambda flags: (
        flags.aligned and flags.writeable and flags.f_contiguous and not flags.c_contiguous
    ),
}


def array_flags(x: Array) -> Flags:
    """Return how an array lies in memory, after computing it."""
    view = view_of(x)
    repeats = any(stride == 0 and length > 1 for length, stride in zip(view.shape, view.strides, strict=True))
    return Flags(
        c_contiguous=view.is_contiguous,
        f_contiguous=is_c_order(view.shape[::-1], view.strides[::-1]),
        owndata=view.is_whole and not view.storage.memory.imported,
        writeable=not (repeats and view.size) and not view.storage.memory.read_only,
    )


def view_as(x: Array, dtype: Any = None) -> Array:
    """Return an array on the same memory, whose bytes are elements of another dtype.

    Raises
    ------
    TypeError
        Arrays cannot have the dtype.
    ValueError
        The elements' size differs, and they do not lie one behind the other or do not fill the last axis.
    """
    view = view_of(x)
    kind = view.dtype if dtype is None else parse_dtype(dtype)
    if kind == view.dtype:
        return array_of(View(view.storage, view.shape, kind, view.offset, view.strides))
    if view.dtype.kind == "b" or kind.kind == "b":
        raise ArgumentTypeError(f"dtype: {view.dtype} has no view as {kind}; use astype")
    shape, strides, offset = _lay_out(view, kind)
    own = view.storage.buffer
    view.storage.share()
    count = own.size * view.dtype.itemsize // kind.itemsize
    other = Buffer.of_memory(own.context, own._native, (count,), kernel_type(kind))
    return array_of(View(Storage(other, is_shared=True), shape, kind, offset, strides))


def _lay_out(view: View, kind: Kind) -> tuple[Shape, Shape, int]:
    """Return shape, strides and offset of a view in elements of another dtype."""
    old, new = view.dtype.itemsize, kind.itemsize
    if old == new:
        return view.shape, view.strides, view.offset
    if not view.shape or (view.strides[-1] != 1 and view.shape[-1] != 1):
        raise ArgumentValueError(
            f"dtype: a view as {kind} needs elements of the last axis one behind the other; copy it first"
        )
    numbers = [view.shape[-1] * old, view.offset * old, *(each * old for each in view.strides[:-1])]
    if any(number % new for number in numbers):
        raise ArgumentValueError(
            f"dtype: lines of {view.shape[-1]} elements of {view.dtype} are no lines of {kind}"
        )
    length, offset, *outer = (number // new for number in numbers)
    return (*view.shape[:-1], length), (*outer, 1), offset
