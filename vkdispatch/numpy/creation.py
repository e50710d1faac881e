"""New arrays: of given values, of data, of sequences of numbers."""

import math
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import use_context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.core.application import cast, make_operation
from vkdispatch.numpy.core.array import Array, array_of, parse_index, parse_operand, value_of, view_of
from vkdispatch.numpy.core.conversion import (
    asarray,
    copy_array,
    default_kind,
    from_numpy,
    parse_shape,
    read_nested,
)
from vkdispatch.numpy.core.devices import Device, parse_device
from vkdispatch.numpy.core.dtypes import Kind, default_complex, default_real, has_float64, int64, parse_dtype
from vkdispatch.numpy.core.expressions import INDEX, Operation, evaluate
from vkdispatch.numpy.core.kernels import gather, new_view
from vkdispatch.numpy.core.memory import Shape
from vkdispatch.numpy.core.operations import COPY, WHERE
from vkdispatch.numpy.elementwise import floor

__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "identity",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


# ---- from data -----------------------------------------------------------------------------------

asanyarray = asarray


def array(obj: Any, dtype: Any = None, *, copy: bool | None = True, device: Any = None) -> Array:
    """Return a new array of what is given. See `asarray` and `numpy.array`."""
    return asarray(
        obj,
        dtype,
        copy=copy if isinstance(obj, (Array, Buffer)) else None,
        device=device,
    )


def ascontiguousarray(a: Any, dtype: Any = None) -> Array:
    """Return an array whose elements lie one behind the other, copied if they do not."""
    found = asarray(a, dtype)
    view = view_of(found)
    return found if view.is_contiguous else array_of(gather(view))


def copy(a: Any) -> Array:
    """Return a copy of an array, with memory of its own."""
    return copy_array(asarray(a))


# ---- of one value --------------------------------------------------------------------------------


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Return an array with undefined values. See `numpy.empty`."""
    kind = default_real() if dtype is None else parse_dtype(dtype)
    return array_of(new_view(parse_shape(shape), kind, parse_device(device).context))


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Return an array with one value everywhere. See `numpy.full`.

    Parameters
    ----------
    fill_value
        A number, or an Array that broadcasts to the shape.
    dtype
        None: that of `fill_value`; of Python numbers as in `asarray`.
    """
    lengths = parse_shape(shape)
    if isinstance(fill_value, Array):
        kind = fill_value.dtype if dtype is None else parse_dtype(dtype)
        made = array_of(new_view(lengths, kind))
        made[...] = fill_value
        return made
    kind = default_kind(fill_value, np.asarray(fill_value)) if dtype is None else parse_dtype(dtype)
    return _filled(lengths, fill_value, kind, parse_device(device))


def _filled(shape: Shape, value: Any, kind: Kind, device: Device) -> Array:
    node = make_operation(COPY, (value,), (kind,), shape, kind)
    if not device.is_current:
        with use_context(device.context):
            evaluate(node)
    return array_of(node)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Return an array of zeros. See `numpy.zeros`."""
    return _filled(
        parse_shape(shape), 0, default_real() if dtype is None else parse_dtype(dtype), parse_device(device)
    )


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Return an array of ones. See `numpy.ones`."""
    return _filled(
        parse_shape(shape), 1, default_real() if dtype is None else parse_dtype(dtype), parse_device(device)
    )


def _like(x: Any, dtype: Any, shape: Any) -> tuple[Shape, Kind]:
    if not isinstance(x, Array):
        x = asarray(x)
    return (
        x.shape if shape is None else parse_shape(shape),
        x.dtype if dtype is None else parse_dtype(dtype),
    )


def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Array:
    """Return an array like another one, with undefined values. See `numpy.empty_like`."""
    lengths, kind = _like(x, dtype, shape)
    return empty(lengths, kind, device=device)


def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Array:
    """Return an array like another one, of zeros. See `numpy.zeros_like`."""
    lengths, kind = _like(x, dtype, shape)
    return zeros(lengths, kind, device=device)


def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Array:
    """Return an array like another one, of ones. See `numpy.ones_like`."""
    lengths, kind = _like(x, dtype, shape)
    return ones(lengths, kind, device=device)


def full_like(
    x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None, shape: Any = None
) -> Array:
    """Return an array like another one, with one value everywhere. See `numpy.full_like`."""
    lengths, kind = _like(x, dtype, shape)
    return full(lengths, fill_value, kind, device=device)


# ---- sequences and matrices ----------------------------------------------------------------------


def _count_from(index: Any, start: Any, step: Any, kind: Kind) -> Any:
    return start + vc.precise(index * step)


_ARANGE = Operation("arange", _count_from)


def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> Array:
    """Return evenly spaced values of an interval without its end. See `numpy.arange`.

    Raises
    ------
    ValueError
        `step` is zero.
    """
    if stop is None:
        start, stop = 0, start
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if isinstance(value, complex) or not isinstance(value, (int, float, np.number, np.bool_)):
            raise ArgumentTypeError(f"{name}: expected a real number, got {value!r}")
    if step == 0:
        raise ArgumentValueError("step: expected a number other than zero, got 0")
    count = max(0, math.ceil((stop - start) / step)) if isinstance(step, float) else _count(start, stop, step)
    if dtype is None:
        whole = all(isinstance(value, (int, np.integer)) for value in (start, stop, step))
        kind = int64 if whole else default_real()
    else:
        kind = parse_dtype(dtype)
    narrow = kind if kind.kind not in "b" and kind.itemsize >= 4 else int64
    if narrow.kind == "i" and not all(float(value).is_integer() for value in (start, step)):
        narrow = default_real()
    if count and narrow.kind in "iu":  # the values that matter, modulo the width of the dtype
        width = 1 << (8 * narrow.itemsize)
        first, each = (_wrap(int(value), width, narrow) for value in (start, step))
    else:
        first, each = start, step
    node = make_operation(_ARANGE, (INDEX, first, each), (narrow,) * 3, (count,), narrow)
    return array_of(cast(_placed(node, device), kind))


def _wrap(value: int, width: int, kind: Kind) -> int:
    value %= width
    return value - width if kind.kind == "i" and value >= width // 2 else value


def _count(start: Any, stop: Any, step: Any) -> int:
    if all(isinstance(value, (int, np.integer)) for value in (start, stop, step)):
        start, stop, step = int(start), int(stop), int(step)
        return int(max(0, -((start - stop) // step) if step > 0 else -((stop - start) // -step)))
    return int(max(0, math.ceil((stop - start) / step)))


def _placed(node: Any, device: Any) -> Any:
    place = parse_device(device)
    if not place.is_current:
        with use_context(place.context):
            evaluate(node)
    return node


def _interpolate(index: Any, start: Any, stop: Any, step: Any, last: Any, kind: Kind) -> Any:
    """Return element `index` of a linspace; the end is exact."""
    return vc.select(vc.logical_and(index == last, last > 0), stop, start + index * step)


_LINSPACE = Operation("linspace", _interpolate)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop`. See `numpy.linspace`.

    Raises
    ------
    ValueError
        `num` is negative.
    """
    count = parse_index(num, "num")
    if count < 0:
        raise ArgumentValueError(f"num: expected at least 0, got {count}")
    if isinstance(start, Array) or isinstance(stop, Array):
        return asarray(np.linspace(read_nested(start), read_nested(stop), count, endpoint=endpoint), dtype)
    complex_ = isinstance(start, complex) or isinstance(stop, complex)
    kind = (default_complex() if complex_ else default_real()) if dtype is None else parse_dtype(dtype)
    steps = count - 1 if endpoint else count
    step = (stop - start) / steps if steps > 0 else math.nan
    if complex_ or kind.kind == "c":
        host = np.linspace(start, stop, count, endpoint=endpoint).astype(kind)
        result = from_numpy(host, device)
    else:
        narrow = kind if kind.kind == "f" and kind.itemsize >= 4 else default_real()
        if kind.kind == "f" and has_float64():
            narrow = np.dtype(np.float64)
        operands = (INDEX, start, stop, 0.0 if steps <= 0 else step, steps if endpoint else -1)
        node = make_operation(_LINSPACE, operands, (narrow,) * 5, (count,), narrow)
        value = _placed(node, device)
        result = array_of(value)
        if kind.kind in "iu":
            result = floor(result)
        result = array_of(cast(value_of(result), kind))
    return (result, step) if retstep else result


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None
) -> Array:
    """Return numbers spaced evenly on a logarithmic scale. See `numpy.logspace`."""
    return asarray(np.logspace(start, stop, num, endpoint, base), default_real() if dtype is None else dtype)


def _compare_places(index: Any, rows: Any, columns: Any, offset: Any, kind: Kind) -> Any:
    """Return column - row <= offset for an element of the last two axes."""
    row = (index // columns) % rows
    return index % columns - row <= offset


def _on_diagonal(index: Any, rows: Any, columns: Any, offset: Any, kind: Kind) -> Any:
    row = (index // columns) % rows
    return index % columns - row == offset


_LOWER = Operation("lower", _compare_places)
_DIAGONAL = Operation("diagonal", _on_diagonal)


def _place_mask(operation: Operation, shape: Shape, offset: int) -> Any:
    rows, columns = shape[-2:]
    operands = (INDEX, max(rows, 1), max(columns, 1), max(min(offset, columns), -rows - 1))
    return make_operation(operation, operands, (int64,) * 4, shape, np.dtype(np.bool_))


def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Array:
    """Return a matrix with ones on a diagonal and zeros elsewhere. See `numpy.eye`."""
    rows = parse_index(n_rows, "n_rows")
    columns = rows if n_cols is None else parse_index(n_cols, "n_cols")
    kind = default_real() if dtype is None else parse_dtype(dtype)
    shape = parse_shape((rows, columns))
    node = _place_mask(_DIAGONAL, shape, parse_index(k, "k"))
    return array_of(cast(_placed(node, device), kind))


def identity(n: int, dtype: Any = None) -> Array:
    """Return the identity matrix. See `numpy.identity`."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:  # noqa: N803
    """Return a matrix with ones at and below a diagonal. See `numpy.tri`."""
    columns = N if M is None else M
    kind = default_real() if dtype is None else parse_dtype(dtype)
    return array_of(cast(_place_mask(_LOWER, parse_shape((N, columns)), k), kind))


def _part(x: Any, k: int, name: str, lower: bool) -> Array:
    value = parse_operand(x, name)
    if len(value.shape) < 2:
        raise ArgumentValueError(f"{name}: expected at least two axes, got the shape {value.shape}")
    mask = _place_mask(_LOWER, value.shape, parse_index(k, "k") - (0 if lower else 1))
    operands = (mask, value, 0) if lower else (mask, 0, value)
    kinds = (np.dtype(np.bool_), value.dtype, value.dtype)
    return array_of(make_operation(WHERE, operands, kinds, value.shape, value.dtype))


def tril(x: Any, /, k: int = 0) -> Array:
    """Return the lower triangles of matrices, zeros elsewhere. See `numpy.tril`."""
    return _part(x, k, "x", True)


def triu(x: Any, /, k: int = 0) -> Array:
    """Return the upper triangles of matrices, zeros elsewhere. See `numpy.triu`."""
    return _part(x, k, "x", False)
