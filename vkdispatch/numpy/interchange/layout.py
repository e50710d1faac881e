"""How elements lie in memory: views as other dtypes, and flags."""

from collections.abc import Callable
from typing import Any, NamedTuple

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.creation import empty, zeros
from vkdispatch.numpy.basics.manipulation import broadcast_to
from vkdispatch.numpy.core.array import Array, array_of, view_of
from vkdispatch.numpy.core.dtypes import Kind, parse_dtype, part_kind
from vkdispatch.numpy.core.memory import (
    Shape,
    View,
    c_strides,
    is_f_order,
    is_read_only,
    part_of,
    share_storage,
)


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

    def __getattr__(self, name: str) -> bool:
        """Return a combination of flags that NumPy has: `forc`, `fnc`, `behaved`, `carray`, `farray`."""
        if name in _COMBINATIONS:
            return _COMBINATIONS[name](self)
        raise AttributeError(f"flags: no flag {name!r}")


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
    return Flags(
        c_contiguous=view.is_contiguous,
        f_contiguous=is_f_order(view),
        owndata=view.is_whole and not view.storage.memory.imported,
        writeable=not is_read_only(view),
    )


def base_of(x: Array) -> Array | None:
    """Return None for an array with memory of its own; for a view, an array of all elements of its memory."""
    view = view_of(x)
    if view.is_whole and not view.storage.memory.imported:
        return None
    return array_of(View(view.storage, (view.storage.buffer.size,), view.dtype))


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
    return array_of(View(share_storage(view.storage, kind), shape, kind, offset, strides))


def view_part(x: Array, number: int) -> Array:
    """Return the real parts of an array (0), or the imaginary ones (1): a view.

    The imaginary parts of other than complex numbers are read-only zeros.
    """
    kind = part_kind(x.dtype)
    if x.dtype.kind != "c":
        return broadcast_to(zeros((), kind, device=x.device), x.shape) if number else x
    view = view_of(x)
    if not view.size:
        return empty(view.shape, kind, device=x.device)
    return array_of(part_of(view, number, kind))


def _lay_out(view: View, kind: Kind) -> tuple[Shape, Shape, int]:
    """Return shape, strides and offset of a view in elements of another dtype."""
    old, new = view.dtype.itemsize, kind.itemsize
    if old == new:
        return view.shape, view.strides, view.offset
    if not view.shape or (view.size and view.strides[-1] != 1 and view.shape[-1] != 1):
        raise ArgumentValueError(f"dtype: a view as {kind} needs a contiguous last axis; copy it first")
    if not view.size and view.shape[-1] * old % new == 0:
        shape = (*view.shape[:-1], view.shape[-1] * old // new)
        return shape, c_strides(shape), 0
    strides = view.strides if view.size else c_strides((*view.shape[:-1], 0))
    numbers = [view.shape[-1] * old, view.offset * old, *(each * old for each in strides[:-1])]
    if any(number % new for number in numbers):
        raise ArgumentValueError(
            f"dtype: lines of {view.shape[-1]} elements of {view.dtype} are no lines of {kind}"
        )
    length, offset, *outer = (number // new for number in numbers)
    return (*view.shape[:-1], length), (*outer, 1), offset
