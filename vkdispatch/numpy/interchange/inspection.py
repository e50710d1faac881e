"""What the namespace can do, and rules of dtypes: for code that is written for the array API standard."""

import math
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.manipulation import parse_axes
from vkdispatch.numpy.core.array import Array, value_of, view_of
from vkdispatch.numpy.core.devices import Device, parse_device
from vkdispatch.numpy.core.dtypes import default_complex, default_real, has_float64, int64, parse_dtype
from vkdispatch.numpy.core.memory import View, bounds, overlaps

__all__ = [
    "__array_namespace_info__",
    "can_cast",
    "common_type",
    "isdtype",
    "isscalar",
    "may_share_memory",
    "min_scalar_type",
    "ndim",
    "promote_types",
    "shape",
    "shares_memory",
    "size",
]

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
_LETTERS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


class NamespaceInfo:
    """See `__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        """Return what the standard leaves open."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Device:
        """Return the current context's device."""
        return parse_device(None)

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that `device=` takes."""
        return (parse_device(None),)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the dtypes of what has none of its own."""
        return {
            "real floating": default_real(),
            "complex floating": default_complex(),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the dtypes that the device has, of a kind or of several."""
        parse_device(device)
        if kind is None:
            names: tuple[str, ...] = _KINDS["bool"] + _KINDS["numeric"]
        elif isinstance(kind, tuple):
            names = tuple(name for each in kind for name in self.dtypes(kind=each))
        elif kind in _KINDS:
            names = _KINDS[kind]
        else:
            raise ArgumentValueError(f"kind: expected one of {sorted(_KINDS)}, got {kind!r}")
        missing = () if has_float64() else ("float64", "complex128")
        return {name: np.dtype(name) for name in names if name not in missing}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807
    """Return what the namespace can do, as the array API standard asks for.

    Examples
    --------
    >>> vnp.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int64')
    """
    return NamespaceInfo()


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another dtype, or of a kind such as "integral". See `numpy.isdtype`.

    Raises TypeError for an unknown kind.

    Examples
    --------
    >>> vnp.isdtype(vnp.float32, "real floating")
    True
    """
    own = parse_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _LETTERS:
            raise ArgumentTypeError(f"kind: expected one of {sorted(_LETTERS)}, got {kind!r}")
        return own.kind in _LETTERS[kind]
    return own == parse_dtype(kind, "kind")


def can_cast(from_: Any, to: Any, /, casting: Any = "safe") -> bool:
    """Whether a dtype, or that of an array, can be cast to another. See `numpy.can_cast`.

    Examples
    --------
    >>> vnp.can_cast(vnp.int32, vnp.float64)
    True
    """
    return bool(
        np.can_cast(from_.dtype if isinstance(from_, Array) else parse_dtype(from_), parse_dtype(to), casting)
    )


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape of an array. See `numpy.shape`.

    Examples
    --------
    >>> vnp.shape(vnp.zeros((2, 3)))
    (2, 3)
    """
    return a.shape if isinstance(a, Array) else np.shape(a)


def ndim(a: Any) -> int:
    """Return the number of axes of an array. See `numpy.ndim`.

    Examples
    --------
    >>> vnp.ndim(vnp.zeros((2, 3)))
    2
    """
    return a.ndim if isinstance(a, Array) else np.ndim(a)


def size(a: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """Return the number of elements of an array, or along its axes. See `numpy.size`.

    Examples
    --------
    >>> vnp.size(vnp.zeros((2, 3)))
    6
    """
    if axis is None:
        return a.size if isinstance(a, Array) else np.size(a)
    lengths = shape(a)
    return math.prod(lengths[i] for i in parse_axes(axis, len(lengths)))


def isscalar(element: Any) -> bool:
    """Whether something is a number, and no array. See `numpy.isscalar`.

    Examples
    --------
    >>> vnp.isscalar(3.0)
    True
    """
    return bool(np.isscalar(element))


def common_type(*arrays: Any) -> Any:
    """Return the real or complex type that all arrays fit into. See `numpy.common_type`.

    Examples
    --------
    >>> vnp.common_type(vnp.zeros(1, dtype=vnp.float32), vnp.zeros(1, dtype=vnp.int32))
    <class 'numpy.float64'>
    """
    return np.common_type(*(np.empty(0, each.dtype) for each in arrays))


def min_scalar_type(a: Any, /) -> Any:
    """Return the dtype of an array; of a number the smallest that holds it. See `numpy.min_scalar_type`.

    Examples
    --------
    >>> vnp.min_scalar_type(300)
    dtype('uint16')
    """
    return (
        a.dtype
        if isinstance(a, Array) and a.ndim
        else np.min_scalar_type(np.asarray(a) if isinstance(a, Array) else a)
    )


def promote_types(type1: Any, type2: Any) -> Any:
    """Return the dtype to which two dtypes promote. See `numpy.promote_types`.

    Examples
    --------
    >>> vnp.promote_types(vnp.int32, vnp.float32)
    dtype('float64')
    """
    return np.promote_types(parse_dtype(type1), parse_dtype(type2))


def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays may show the same memory. See `numpy.may_share_memory`.

    Examples
    --------
    >>> x = vnp.arange(6)
    >>> vnp.may_share_memory(x, x[2:])
    True
    """
    if not (isinstance(a, Array) and isinstance(b, Array)):
        return False
    if a is b:
        return a.size > 0
    first, second = value_of(a), value_of(b)
    return isinstance(first, View) and isinstance(second, View) and overlaps(first, second)


def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays show an element both: exact, so it takes time. See `numpy.shares_memory`.

    Examples
    --------
    >>> x = vnp.arange(6)
    >>> vnp.shares_memory(x[:2], x[4:])
    False
    """
    if not may_share_memory(a, b):
        return False
    first, second = view_of(a), view_of(b)
    low = min(bounds(first)[0], bounds(second)[0])
    base = np.empty(max(bounds(first)[1], bounds(second)[1]) - low + 1, np.uint8)

    def show(view: View) -> Any:
        return np.lib.stride_tricks.as_strided(base[view.offset - low :], view.shape, view.strides)

    return np.shares_memory(show(first), show(second))
