"""Sequences of numbers, and matrices made by the places of their elements."""

import math
import operator
from collections.abc import Callable
from typing import Any, overload

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.errors import ArgumentOverflowError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.creation import compute_on
from vkdispatch.numpy.basics.elementwise import floor
from vkdispatch.numpy.core import array, memory
from vkdispatch.numpy.core.application import broadcast_to as broadcast_view
from vkdispatch.numpy.core.application import cast, make_operation
from vkdispatch.numpy.core.array import OfScalar, Scalar
from vkdispatch.numpy.core.conversion import asarray, from_numpy, is_of_python, parse_shape, read_nested
from vkdispatch.numpy.core.expressions import INDEX, Operation
from vkdispatch.numpy.core.operations import WHERE

uint64 = np.dtype(np.uint64)

_REALS = (int, float, np.integer, np.floating, np.bool_)

# its types are for arguments that are checked already
_on_host: Any = np


_ARANGE = Operation("arange", lambda index, start, step, kind: start + vc.precise(index * step))


@overload
def arange(
    start: Any = None, stop: Any = None, step: Any = 1, *, dtype: Scalar[OfScalar], device: Any = None
) -> array.Array[tuple[int], OfScalar]: ...
@overload
def arange(
    start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> array.Array[tuple[int]]: ...
def arange(
    start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> array.Array[tuple[int]]:
    """Return evenly spaced values of an interval without its end. See `numpy.arange`.

    As NumPy's, its values are `first + i * (second - first)`, where the first two are `start` and
    `start + step` in the result's dtype.

    Raises
    ------
    TypeError
        A limit is no real number.
    ValueError
        `step` is zero, or the length is not finite.
    OverflowError
        A Python integer fits no dtype of integers, or not the given one.

    Examples
    --------
    >>> vnp.arange(2, 10, 3)
    Array([2, 5, 8], dtype=int64)
    """
    if stop is None:
        start, stop = 0, start
    start, stop = _real_number(0 if start is None else start, "start"), _real_number(stop, "stop")
    step = _real_number(step, "step")
    if step == 0:
        raise ArgumentValueError("step: expected a number other than zero, got 0")
    whole = all(isinstance(value, (int, np.integer)) for value in (start, stop, step))
    count = _count(start, stop, step, whole)
    if dtype is not None:
        kind = memory.parse_dtype(dtype)
    elif whole:
        kind = memory.int64
        if count and not all(-(1 << 63) <= each < 1 << 63 for each in (start, start + (count - 1) * step)):
            kind = uint64
    else:
        kind = memory.default_real()
    if kind.kind == "b":
        if count > 2:
            raise ArgumentTypeError("dtype: a range of booleans has at most two elements")
        return from_numpy(_on_host.arange(start, stop, step, kind), device)
    if kind.kind in "iu":
        narrow = kind if kind.itemsize >= 4 else memory.int64
        first = int(start)
        second = int(start + step) if count > 1 else first
        limits = np.iinfo(kind)
        for value in (first, second) if count else ():
            if not limits.min <= value <= limits.max:
                raise ArgumentOverflowError(f"arange: {value} does not fit {kind}")
        width = 1 << (8 * narrow.itemsize)
        operands = (INDEX, _wrap(first, width, narrow), _wrap(second - first, width, narrow))
    else:
        part = memory.part_kind(kind)
        narrow = part if part.itemsize >= 4 else np.dtype(np.float32)
        with np.errstate(all="ignore"):
            first_, second_ = part.type(start).astype(narrow), part.type(start + step).astype(narrow)
            operands = (INDEX, first_, second_ - first_)
    node = make_operation(_ARANGE, operands, (narrow,) * 3, (count,), narrow)
    return array.array_of(cast(compute_on(node, device), kind))


def range_along(length: int, axis: int, ndim: int, dtype: Any = memory.int64) -> array.Array:
    """Return the numbers below a length along an axis, so that they broadcast with arrays of so many axes."""
    return arange(length, dtype=dtype).reshape(tuple(length if i == axis else 1 for i in range(ndim)))


def _real_number(value: Any, name: str) -> Any:
    if isinstance(value, array.Array) and not value.ndim:
        value = value.item()
    if not isinstance(value, _REALS):
        raise ArgumentTypeError(f"{name}: expected a real number, got {value!r}")
    return value


def _wrap(value: int, width: int, kind: memory.Kind) -> int:
    value %= width
    return value - width if kind.kind == "i" and value >= width // 2 else value


def _count(start: Any, stop: Any, step: Any, whole: bool) -> int:
    if whole:
        start, stop, step = int(start), int(stop), int(step)
        return int(max(0, -((start - stop) // step) if step > 0 else -((stop - start) // -step)))
    with np.errstate(all="ignore"):
        length = (stop - start) / step
    if not math.isfinite(length):
        raise ArgumentValueError(f"arange: the length of the range is {length}")
    return int(max(0, math.ceil(length)))


def _interpolate(index: Any, start: Any, stop: Any, step: Any, last: Any, kind: memory.Kind) -> Any:
    """Return element `index` of a linspace; the end is exact."""
    return vc.select(vc.logical_and(index == last, last > 0), stop, start + vc.precise(index * step))


def _interpolate_tiny(index: Any, start: Any, stop: Any, delta: Any, parts: Any, kind: memory.Kind) -> Any:
    """Do the same where the step would be 0; `parts` is negative without the end."""
    part = vc.precise(vc.precise(index / vc.abs(parts)) * delta)
    return vc.select(vc.logical_and(index == parts, parts > 0), stop, start + part)


_LINSPACE = Operation("linspace", _interpolate)

_TINY_LINSPACE = Operation("linspace", _interpolate_tiny)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop`. See `numpy.linspace`.

    Limits that are arrays are read, and the numbers computed on the host.

    Raises
    ------
    ValueError
        `num` is negative.

    Examples
    --------
    >>> vnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64)
    """
    count = array.parse_count(num, "num")
    given = None if dtype is None else memory.parse_dtype(dtype)
    is_real = isinstance(start, _REALS) and isinstance(stop, _REALS)
    common = np.result_type(*(limit if is_real else 1.0 for limit in (start, stop)), 1.0)
    if not is_real or common.itemsize < 4 or (common == memory.float64 and not memory.has_float64()):
        limits = read_nested(start), read_nested(stop)
        host, step = _on_host.linspace(*limits, count, endpoint, True, None, axis)
        given = _default_if_python(host, [start, stop], given)
        if given is not None and given.kind in "iu":
            host = np.floor(host)
        result = from_numpy(host if given is None else host.astype(given), device)
        return (result, step) if retstep else result
    if given is None:
        given = memory.default_real() if is_of_python([start, stop]) else common
    steps = count - 1 if endpoint else count
    low, high = common.type(start), common.type(stop)
    with np.errstate(all="ignore"):
        delta = high - low
        step = delta / common.type(steps) if steps > 0 else common.type(math.nan)
    last = steps if endpoint else -1
    if steps > 0 and step == 0:
        operands = (INDEX, low, high, delta, steps if endpoint else -steps)
        node = make_operation(_TINY_LINSPACE, operands, (common,) * 5, (count,), common)
    else:
        operands = (INDEX, low, high, step if steps > 0 else delta, last)
        node = make_operation(_LINSPACE, operands, (common,) * 5, (count,), common)
    result = array.array_of(compute_on(node, device))
    if given.kind in "iu":
        result = floor(result)
    result = array.array_of(cast(array.value_of(result), given))
    return (result, step) if retstep else result


def _default_if_python(host: Any, limits: Any, dtype: Any) -> Any:
    """Return the dtype of numbers that NumPy made from limits."""
    if dtype is not None:
        return dtype
    if not is_of_python(limits):
        return None
    return memory.default_complex() if host.dtype.kind == "c" else memory.default_real()


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> array.Array:
    """Return numbers spaced evenly on a logarithmic scale, computed on the host. See `numpy.logspace`.

    Examples
    --------
    >>> vnp.logspace(0, 3, 4)
    Array([   1.,   10.,  100., 1000.], dtype=float64)
    """
    limits = [read_nested(limit) for limit in (start, stop, base)]
    parse_shape(num, "num")
    host = _on_host.logspace(limits[0], limits[1], num, endpoint, limits[2], None, axis)
    return asarray(host, _default_if_python(host, [start, stop, base], dtype))


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> array.Array:
    """Return numbers of a geometric progression, computed on the host. See `numpy.geomspace`.

    Examples
    --------
    >>> vnp.geomspace(1, 1000, 4)
    Array([   1.,   10.,  100., 1000.], dtype=float64)
    """
    parse_shape(num, "num")
    host = _on_host.geomspace(read_nested(start), read_nested(stop), num, endpoint, None, axis)
    return asarray(host, _default_if_python(host, [start, stop], dtype))


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """Return what a function makes of arrays of the coordinates along each axis. See `numpy.fromfunction`.

    Examples
    --------
    >>> vnp.fromfunction(lambda i, j: i + j, (2, 3), dtype=vnp.int32)
    Array([[0, 1, 2],
           [1, 2, 3]], dtype=int32)
    """
    lengths = parse_shape(shape)
    places = []
    for axis, length in enumerate(lengths):
        view = array.view_of(arange(length, dtype=memory.default_real() if dtype is None else dtype))
        strides = tuple(int(i == axis) for i in range(len(lengths)))
        places.append(array.array_of(memory.View(view.storage, lengths, view.dtype, 0, strides)))
    return function(*places, **kwargs)


def _make_comparison(name: str, compare: Callable[[Any, Any], Any]) -> Operation:
    """Return the operation that compares column - row, of an element of the last two axes, with an offset."""

    def compute(index: Any, rows: Any, columns: Any, offset: Any, kind: memory.Kind) -> Any:
        row = (index // columns) % rows
        return compare(index % columns - row, offset)

    return Operation(name, compute)


_LOWER, _DIAGONAL = _make_comparison("lower", operator.le), _make_comparison("diagonal", operator.eq)


def _place_mask(operation: Operation, shape: memory.Shape, offset: int) -> Any:
    rows, columns = shape[-2:]
    operands = (INDEX, max(rows, 1), max(columns, 1), max(min(offset, columns), -rows - 1))
    return make_operation(operation, operands, (memory.int64,) * 4, shape, np.dtype(np.bool_))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> array.Array:  # noqa: N803
    """Return a matrix with ones on a diagonal and zeros elsewhere. See `numpy.eye`.

    Examples
    --------
    >>> vnp.eye(2, 3, dtype=vnp.int32)
    Array([[1, 0, 0],
           [0, 1, 0]], dtype=int32)
    """
    rows = array.parse_index(N, "N")
    columns = rows if M is None else array.parse_index(M, "M")
    kind = memory.parse_real(dtype)
    shape = parse_shape((rows, columns))
    node = _place_mask(_DIAGONAL, shape, array.parse_index(k, "k"))
    return array.array_of(cast(compute_on(node, device), kind))


def identity(n: int, dtype: Any = None) -> array.Array:
    """Return the identity matrix. See `numpy.identity`.

    Examples
    --------
    >>> vnp.identity(2, dtype=vnp.int32)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> array.Array:  # noqa: N803
    """Return a matrix with ones at and below a diagonal. See `numpy.tri`.

    Examples
    --------
    >>> vnp.tri(3, dtype=vnp.int32)
    Array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]], dtype=int32)
    """
    rows, columns = (max(array.parse_index(each, "N, M"), 0) for each in (N, N if M is None else M))
    kind = memory.parse_real(dtype)
    return array.array_of(cast(_place_mask(_LOWER, parse_shape((rows, columns)), k), kind))


def _part(x: Any, k: int, name: str, lower: bool) -> array.Array:
    value = array.parse_operand(x, name)
    if len(value.shape) == 1:
        value = broadcast_view(value, (value.size, value.size))
    if len(value.shape) < 2:
        raise ArgumentValueError(f"{name}: expected at least two axes, got the shape {value.shape}")
    mask = _place_mask(_LOWER, value.shape, array.parse_index(k, "k") - (0 if lower else 1))
    operands = (mask, value, 0) if lower else (mask, 0, value)
    kinds = (np.dtype(np.bool_), value.dtype, value.dtype)
    return array.array_of(make_operation(WHERE, operands, kinds, value.shape, value.dtype))


def tril(x: Any, /, k: int = 0) -> array.Array:
    """Return the lower triangles of matrices, zeros elsewhere. See `numpy.tril`.

    Examples
    --------
    >>> vnp.tril(vnp.ones((3, 3), dtype=vnp.int32))
    Array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]], dtype=int32)
    """
    return _part(x, k, "x", True)


def triu(x: Any, /, k: int = 0) -> array.Array:
    """Return the upper triangles of matrices, zeros elsewhere. See `numpy.triu`.

    Examples
    --------
    >>> vnp.triu(vnp.ones((3, 3), dtype=vnp.int32))
    Array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]], dtype=int32)
    """
    return _part(x, k, "x", False)
