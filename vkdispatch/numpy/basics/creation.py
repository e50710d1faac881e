"""New arrays of given values, and of data."""

from typing import Any, overload

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import use_context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.core import conversion
from vkdispatch.numpy.core.application import make_operation, number_as
from vkdispatch.numpy.core.array import Array, OfScalar, OfShape, Scalar, ScalarT, ShapeT, array_of, view_of
from vkdispatch.numpy.core.blanks import find_blank
from vkdispatch.numpy.core.conversion import asarray, copy_array, from_numpy, is_fortran, parse_shape
from vkdispatch.numpy.core.expressions import evaluate
from vkdispatch.numpy.core.kernels import new_view
from vkdispatch.numpy.core.memory import Kind, Shape, View, parse_device, parse_dtype, parse_real
from vkdispatch.numpy.core.operations import COPY
from vkdispatch.shader.map import MappedArray

# ---- from data -----------------------------------------------------------------------------------

asanyarray = asarray


@overload
def array(
    obj: Any, dtype: Scalar[OfScalar], *, copy: Any = ..., order: Any = ..., ndmin: int = 0, device: Any = ...
) -> Array[tuple[Any, ...], OfScalar]: ...
@overload
def array(
    obj: Any, dtype: Any = ..., *, copy: Any = ..., order: Any = ..., ndmin: int = 0, device: Any = ...
) -> Array: ...
def array(
    obj: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = None,
    ndmin: int = 0,
    device: Any = None,
) -> Array:
    """Return a new array of what is given, with at least `ndmin` axes. See `asarray` and `numpy.array`.

    Examples
    --------
    >>> vnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    on_device = isinstance(obj, (Array, Buffer, MappedArray))
    must_copy = copy if on_device or copy is False else None
    found = asarray(obj, dtype, copy=must_copy, device=device, order=order)
    if found.ndim >= ndmin:
        return found
    view = view_of(found)
    more = ndmin - found.ndim
    shape, strides = (1,) * more + view.shape, (0,) * more + view.strides
    return array_of(View(view.storage, shape, view.dtype, view.offset, strides))


def ascontiguousarray(a: Any, dtype: Any = None) -> Array:
    """Return an array of at least one axis whose elements lie one behind the other, copied if they do not.

    Examples
    --------
    >>> x = vnp.arange(6).reshape(2, 3)
    >>> vnp.ascontiguousarray(x.T)
    Array([[0, 3],
           [1, 4],
           [2, 5]], dtype=int64)
    """
    found = asarray(a, dtype, order="C")
    return found if found.ndim else found.reshape(1)


def asfortranarray(a: Any, dtype: Any = None) -> Array:
    """Return an array whose first axis changes fastest in memory, copied if it does not.

    Examples
    --------
    >>> x = vnp.asfortranarray(vnp.arange(6).reshape(2, 3))
    >>> vnp.isfortran(x)
    True
    """
    found = asarray(a, dtype, order="F")
    return found if found.ndim else found.reshape(1)


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Array:
    """Return an array with a dtype that lies in memory as required, if need be a copy. See `numpy.require`.

    Parameters
    ----------
    requirements
        One or several of "C" (the last axis changes fastest), "F" (the first one), "W" (writable), "O" (with
        memory of its own), "A" and "E", which all arrays have; or NumPy's longer names.

    Raises
    ------
    ValueError
        A requirement is none of these, or "C" and "F" are both required.

    Examples
    --------
    >>> vnp.require(vnp.arange(6).reshape(2, 3).T, vnp.float32, "C").flags.c_contiguous
    True
    """
    names = [requirements] if isinstance(requirements, str) else list(requirements or ())
    letters = {_REQUIREMENTS.get(str(name).upper(), "") for name in names}
    if "" in letters:
        raise ArgumentValueError(
            f"requirements: expected some of {', '.join(sorted(_REQUIREMENTS))}, got {requirements!r}"
        )
    if {"C", "F"} <= letters:
        raise ArgumentValueError("requirements: expected either C or F, got both")
    found = asarray(a, dtype)
    if found.ndim and letters & {"C", "F"}:
        found = asfortranarray(found) if "F" in letters else ascontiguousarray(found)
    flags = found.flags
    if ("W" in letters and not flags.writeable) or ("O" in letters and not flags.owndata):
        found = copy_array(found, "F" if "F" in letters else "C")
    return found


_REQUIREMENTS = {
    **{name: name for name in "CFAWOE"},
    "CONTIGUOUS": "C",
    "C_CONTIGUOUS": "C",
    "FORTRAN": "F",
    "F_CONTIGUOUS": "F",
    "ALIGNED": "A",
    "WRITEABLE": "W",
    "OWNDATA": "O",
    "ENSUREARRAY": "E",
}


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Array:
    """Return an array of data without NaN and infinity. See `numpy.asarray_chkfinite`. It waits for the data.

    Raises ValueError where an element is NaN or infinite.

    Examples
    --------
    >>> vnp.asarray_chkfinite([1.0, 2.0])
    Array([1., 2.], dtype=float64)
    """
    found = asarray(a, dtype, order=order)
    if found.dtype.kind in "fc" and not bool(found.__array_namespace__().isfinite(found).all()):
        raise ArgumentValueError("a: expected finite numbers, got NaN or infinity")
    return found


@overload
def copy(a: Array[ShapeT, ScalarT], order: Any = None) -> Array[ShapeT, ScalarT]: ...
@overload
def copy(a: Any, order: Any = None) -> Array: ...
def copy(a: Any, order: Any = None) -> Array:
    """Return a copy of an array, with memory of its own, in C order unless `order` is "F". See `numpy.copy`.

    Examples
    --------
    >>> x = vnp.arange(3)
    >>> y = vnp.copy(x)
    >>> y[0] = 9
    >>> x
    Array([0, 1, 2], dtype=int64)
    """
    return copy_array(asarray(a), order)


# ---- of one value --------------------------------------------------------------------------------


@overload
def empty(
    shape: OfShape | int, dtype: Scalar[OfScalar], order: Any = None, *, device: Any = None
) -> Array[OfShape, OfScalar]: ...
@overload
def empty(
    shape: OfShape | int, dtype: Any = None, order: Any = None, *, device: Any = None
) -> Array[OfShape]: ...
@overload
def empty(shape: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> Array: ...
def empty(shape: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> Array:
    """Return an array with undefined values, in C order unless `order` is "F". See `numpy.empty`.

    Examples
    --------
    >>> vnp.empty((2, 3)).shape
    (2, 3)
    """
    kind = parse_real(dtype)
    lengths = parse_shape(shape)
    if is_fortran(order):
        return empty(lengths[::-1], kind, device=device).T
    blank = find_blank(lengths, kind, device)
    return array_of(new_view(lengths, kind, parse_device(device).context)) if blank is None else blank


@overload
def full(
    shape: OfShape | int, fill_value: Any, dtype: Scalar[OfScalar], order: Any = None, *, device: Any = None
) -> Array[OfShape, OfScalar]: ...
@overload
def full(
    shape: OfShape | int, fill_value: Any, dtype: Any = None, order: Any = None, *, device: Any = None
) -> Array[OfShape]: ...
@overload
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = None, *, device: Any = None
) -> Array: ...
def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> Array:
    """Return an array with one value everywhere. See `numpy.full`.

    Parameters
    ----------
    fill_value
        A number, or an Array or sequence that broadcasts to the shape.
    dtype
        None: that of `fill_value`; of Python numbers as in `asarray`.

    Raises
    ------
    OverflowError
        The dtype does not hold the integer.
    ValueError
        NaN does not go into integers.

    Examples
    --------
    >>> vnp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int64)
    """
    lengths = parse_shape(shape)
    if device is None and isinstance(fill_value, Array):
        device = fill_value.device
    if not isinstance(fill_value, (Array, int, float, complex, np.generic)):
        fill_value = asarray(fill_value, device=device)
    if isinstance(fill_value, Array):
        kind = fill_value.dtype if dtype is None else parse_dtype(dtype)
        made = empty(lengths, kind, order, device=device)
        made[...] = fill_value
        return made
    kind = conversion.host_data(fill_value).dtype if dtype is None else parse_dtype(dtype)
    if isinstance(fill_value, complex) and kind.kind in "iuf":
        raise ArgumentTypeError(f"fill_value: a complex number does not go into an array of {kind}")
    if kind.kind in "iu":
        fill_value = number_as(fill_value, kind, "fill_value")
    return _fill(lengths, fill_value, kind, order, device)


def _fill(shape: Shape, value: Any, kind: Kind, order: Any, device: Any) -> Array:
    if is_fortran(order):
        return _fill(shape[::-1], value, kind, None, device).T
    blank = find_blank(shape, kind, device)
    if blank is not None:
        return blank
    return array_of(compute_on(make_operation(COPY, (value,), (kind,), shape, kind), device))


@overload
def zeros(
    shape: OfShape | int, dtype: Scalar[OfScalar], order: Any = None, *, device: Any = None
) -> Array[OfShape, OfScalar]: ...
@overload
def zeros(
    shape: OfShape | int, dtype: Any = None, order: Any = None, *, device: Any = None
) -> Array[OfShape]: ...
@overload
def zeros(shape: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> Array: ...
def zeros(shape: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> Array:
    """Return an array of zeros. See `numpy.zeros`.

    Examples
    --------
    >>> vnp.zeros(3, dtype=vnp.int32)
    Array([0, 0, 0], dtype=int32)
    """
    return _fill(parse_shape(shape), 0, parse_real(dtype), order, device)


@overload
def ones(
    shape: OfShape | int, dtype: Scalar[OfScalar], order: Any = None, *, device: Any = None
) -> Array[OfShape, OfScalar]: ...
@overload
def ones(
    shape: OfShape | int, dtype: Any = None, order: Any = None, *, device: Any = None
) -> Array[OfShape]: ...
@overload
def ones(shape: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> Array: ...
def ones(shape: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> Array:
    """Return an array of ones. See `numpy.ones`.

    Examples
    --------
    >>> vnp.ones((2, 2), dtype=vnp.int32)
    Array([[1, 1],
           [1, 1]], dtype=int32)
    """
    return _fill(parse_shape(shape), 1, parse_real(dtype), order, device)


def _parse_like(x: Any, dtype: Any, device: Any, shape: Any) -> tuple[Shape, Kind, Any]:
    if not isinstance(x, Array):
        x = conversion.host_data(x)  # whose elements do not matter
    if device is None and isinstance(x, Array):
        device = x.device
    lengths = x.shape if shape is None else parse_shape(shape)
    return lengths, x.dtype if dtype is None else parse_dtype(dtype), device


@overload
def empty_like(
    x: Array[ShapeT, ScalarT], /, *, order: Any = None, device: Any = None
) -> Array[ShapeT, ScalarT]: ...
@overload
def empty_like(
    x: Array[ShapeT], /, dtype: Scalar[OfScalar], order: Any = None, *, device: Any = None
) -> Array[ShapeT, OfScalar]: ...
@overload
def empty_like(
    x: Any, /, dtype: Any = None, order: Any = None, *, device: Any = None, shape: Any = None
) -> Array: ...
def empty_like(
    x: Any, /, dtype: Any = None, order: Any = None, *, device: Any = None, shape: Any = None
) -> Array:
    """Return an array like another one, with undefined values. See `numpy.empty_like`.

    Examples
    --------
    >>> vnp.empty_like(vnp.ones((2, 3))).shape
    (2, 3)
    """
    lengths, kind, device = _parse_like(x, dtype, device, shape)
    return empty(lengths, kind, order, device=device)


@overload
def zeros_like(
    x: Array[ShapeT, ScalarT], /, *, order: Any = None, device: Any = None
) -> Array[ShapeT, ScalarT]: ...
@overload
def zeros_like(
    x: Array[ShapeT], /, dtype: Scalar[OfScalar], order: Any = None, *, device: Any = None
) -> Array[ShapeT, OfScalar]: ...
@overload
def zeros_like(
    x: Any, /, dtype: Any = None, order: Any = None, *, device: Any = None, shape: Any = None
) -> Array: ...
def zeros_like(
    x: Any, /, dtype: Any = None, order: Any = None, *, device: Any = None, shape: Any = None
) -> Array:
    """Return an array like another one, of zeros. See `numpy.zeros_like`.

    Examples
    --------
    >>> vnp.zeros_like(vnp.arange(3))
    Array([0, 0, 0], dtype=int64)
    """
    lengths, kind, device = _parse_like(x, dtype, device, shape)
    return zeros(lengths, kind, order, device=device)


@overload
def ones_like(
    x: Array[ShapeT, ScalarT], /, *, order: Any = None, device: Any = None
) -> Array[ShapeT, ScalarT]: ...
@overload
def ones_like(
    x: Array[ShapeT], /, dtype: Scalar[OfScalar], order: Any = None, *, device: Any = None
) -> Array[ShapeT, OfScalar]: ...
@overload
def ones_like(
    x: Any, /, dtype: Any = None, order: Any = None, *, device: Any = None, shape: Any = None
) -> Array: ...
def ones_like(
    x: Any, /, dtype: Any = None, order: Any = None, *, device: Any = None, shape: Any = None
) -> Array:
    """Return an array like another one, of ones. See `numpy.ones_like`.

    Examples
    --------
    >>> vnp.ones_like(vnp.arange(3))
    Array([1, 1, 1], dtype=int64)
    """
    lengths, kind, device = _parse_like(x, dtype, device, shape)
    return ones(lengths, kind, order, device=device)


@overload
def full_like(
    x: Array[ShapeT, ScalarT], /, fill_value: Any, *, order: Any = None, device: Any = None
) -> Array[ShapeT, ScalarT]: ...
@overload
def full_like(
    x: Array[ShapeT], /, fill_value: Any, dtype: Scalar[OfScalar], order: Any = None, *, device: Any = None
) -> Array[ShapeT, OfScalar]: ...
@overload
def full_like(
    x: Any, /, fill_value: Any, dtype: Any = None, order: Any = None, *, device: Any = None, shape: Any = None
) -> Array: ...
def full_like(
    x: Any, /, fill_value: Any, dtype: Any = None, order: Any = None, *, device: Any = None, shape: Any = None
) -> Array:
    """Return an array like another one, with one value everywhere. See `numpy.full_like`.

    Examples
    --------
    >>> vnp.full_like(vnp.arange(3), 5)
    Array([5, 5, 5], dtype=int64)
    """
    lengths, kind, device = _parse_like(x, dtype, device, shape)
    return full(lengths, fill_value, kind, order, device=device)


def compute_on(node: Any, device: Any) -> Any:
    """Return an expression, which is computed if it is for another device than the current one."""
    place = parse_device(device)
    if not place.is_current:
        with use_context(place.context):
            evaluate(node)
    return node


def frombuffer(buffer: Any, dtype: Any = None, count: int = -1, offset: int = 0) -> Array:
    """Return an array of bytes of the host, which are copied. See `numpy.frombuffer`.

    Examples
    --------
    >>> vnp.frombuffer(bytes([1, 2, 3]), dtype=vnp.uint8)
    Array([1, 2, 3], dtype=uint8)
    """
    return from_numpy(np.frombuffer(buffer, parse_real(dtype), count, offset))


def fromiter(iter: Any, dtype: Any, count: int = -1) -> Array:
    """Return an array of the numbers of an iterable. See `numpy.fromiter`.

    Examples
    --------
    >>> vnp.fromiter((i * i for i in range(4)), dtype=vnp.int32)
    Array([0, 1, 4, 9], dtype=int32)
    """
    return from_numpy(np.fromiter(iter, parse_dtype(dtype), count))


def fromstring(string: str, dtype: Any = None, count: int = -1, *, sep: str) -> Array:
    """Return an array of numbers in a text. See `numpy.fromstring`.

    Examples
    --------
    >>> vnp.fromstring("1 2 3", dtype=vnp.int32, sep=" ")
    Array([1, 2, 3], dtype=int32)
    """
    return from_numpy(np.fromstring(string, parse_real(dtype), count, sep=sep))
