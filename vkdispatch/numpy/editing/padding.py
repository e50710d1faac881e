"""Padding at the ends of axes."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.numpy.basics.elementwise import floor, rint
from vkdispatch.numpy.basics.inputs import asnumpy, to_array
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import broadcast_to, flip, reshape
from vkdispatch.numpy.basics.reductions import max as greatest
from vkdispatch.numpy.basics.reductions import mean
from vkdispatch.numpy.basics.reductions import min as least
from vkdispatch.numpy.core.application import number_as
from vkdispatch.numpy.core.array import Array, value_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.kernels import as_operand
from vkdispatch.numpy.indexing.gathering import array_from
from vkdispatch.numpy.statistics.quantiles import median
from vkdispatch.rearrange.padding import pad as pad_buffer

__all__ = [
    "pad",
]

_MOVES = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")
_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": greatest,
    "minimum": least,
    "mean": mean,
    "median": median,
}
_OPTIONS = {
    "constant": ("constant_values",),
    "linear_ramp": ("end_values",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    **dict.fromkeys(_STATISTICS, ("stat_length",)),
}

Pairs = list[tuple[Any, Any]]


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Array:
    """Return an array padded at the ends of its axes. See `numpy.pad`.

    Parameters
    ----------
    pad_width
        The number of elements before and after: an int, a pair, a pair for each axis, or a dict of axes.
    mode
        "constant", "edge", "reflect", "symmetric", "wrap", "empty", "linear_ramp", "maximum", "minimum",
        "mean" or "median".
    kwargs
        `constant_values`, `end_values`, `stat_length` and `reflect_type` of the modes that take them.

    Raises
    ------
    TypeError
        `pad_width` are no ints.
    ValueError
        A width is negative, there is no such mode, or it does not take an argument; an axis without elements
        would be padded with its elements.
    NotImplementedError
        `mode` is a function.

    Examples
    --------
    >>> vnp.pad(vnp.asarray([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int64)
    """
    source = to_array(array, "array")
    if callable(mode):
        raise UnsupportedError("mode: functions are not implemented; use mode='empty', and fill the ends")
    if mode not in _MOVES and mode not in _STATISTICS and mode != "linear_ramp":
        known = ", ".join(map(repr, (*_MOVES, *_STATISTICS, "linear_ramp")))
        raise ArgumentValueError(f"mode: expected one of {known}, got {mode!r}")
    wrong = set(kwargs) - set(_OPTIONS.get(mode, ()))
    if wrong:
        raise ArgumentValueError(f"{sorted(wrong)[0]}: mode {mode!r} does not take it")
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise ArgumentValueError(f"reflect_type: expected 'even' or 'odd', got {reflect_type!r}")
    widths = _parse_widths(pad_width, source.ndim)
    if not any(any(pair) for pair in widths):
        return source.copy()
    if reflect_type == "odd":
        return _reflect_oddly(source, widths, mode)
    if mode in _MOVES:
        return _move(source, widths, mode, kwargs.get("constant_values", 0))
    result = source
    option = kwargs.get("end_values", 0) if mode == "linear_ramp" else kwargs.get("stat_length")
    options = _parse_pairs(option, source.ndim, "end_values" if mode == "linear_ramp" else "stat_length")
    for axis, (width, own) in enumerate(zip(widths, options, strict=True)):
        if any(width):
            if not result.shape[axis]:
                raise ArgumentValueError(f"pad_width: axis {axis} has no elements for mode {mode!r}")
            make = _ramp if mode == "linear_ramp" else _repeat_statistic
            low, high = make(result, axis, width, own, mode)
            result = concatenate([low, result, high], axis=axis, dtype=source.dtype)
    return result


def _parse_pairs(value: Any, ndim: int, name: str) -> Pairs:
    if value is None:
        return [(None, None)] * ndim
    given = asnumpy(value)
    try:
        wide = np.broadcast_to(given, (ndim, 2))
    except ValueError:
        raise ArgumentValueError(
            f"{name}: expected a number, a pair, or a pair for each of {ndim} axes, got {value!r}"
        ) from None
    return [(low, high) for low, high in wide.tolist()]


def _parse_widths(value: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(value, Mapping):
        pairs: list[Any] = [(0, 0)] * ndim
        for axis, width in value.items():
            if not -ndim <= axis < ndim:
                raise ArgumentValueError(f"pad_width: axis {axis} is out of bounds for {ndim} axes")
            pairs[axis] = (width, width) if isinstance(width, (int, np.integer)) else tuple(width)
        value = pairs
    given = asnumpy(value)
    if given.dtype.kind not in "iu":
        raise ArgumentTypeError(f"pad_width: expected ints, got {value!r}")
    if (given < 0).any():
        raise ArgumentValueError(f"pad_width: expected at least 0, got {value!r}")
    return _parse_pairs(given, ndim, "pad_width")


def _move(x: Array, widths: list[tuple[int, int]], mode: str, constants: Any) -> Array:
    """Pad with constants or elements: up to three axes at once, more of them one after the other."""
    values = _parse_pairs(constants, x.ndim, "constant_values")
    if x.dtype.kind in "iu" and constants is not None:
        values = [tuple(number_as(each, x.dtype, "constant_values") for each in pair) for pair in values]
    if x.ndim <= 3:
        return _pad_lines(x, x.shape, widths, mode, values)
    result = x
    for axis, width in enumerate(widths):
        if any(width):
            shape = result.shape
            lines = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
            moved = _pad_lines(result, lines, [(0, 0), width, (0, 0)], mode, [(0, 0), values[axis], (0, 0)])
            result = reshape(moved, (*shape[:axis], shape[axis] + sum(width), *shape[axis + 1 :]))
    return result


def _pad_lines(
    x: Array, shape: tuple[int, ...], widths: list[tuple[int, int]], mode: str, values: Pairs
) -> Array:
    options: dict[str, Any] = {"constant_values": values} if mode == "constant" else {}
    return array_from(pad_buffer(as_operand(value_of(x), shape), widths, mode, **options))


def _reflect_oddly(x: Array, widths: list[tuple[int, int]], mode: str) -> Array:
    """Pad with reflections through the points of the first and the last elements."""
    if x.dtype.kind == "b":
        raise ArgumentTypeError("array: booleans have no differences to reflect; convert them with astype")
    for axis, (low, high) in enumerate(widths):
        length = x.shape[axis]
        if not (low or high):
            continue
        if not length:
            raise ArgumentValueError(f"pad_width: axis {axis} has no elements for mode {mode!r}")
        skip = int(mode == "reflect")
        period = length - skip
        if not period:
            x = pad(x, [(low, high) if each == axis else (0, 0) for each in range(x.ndim)], "edge")
            continue
        before = (slice(None),) * axis
        while low or high:
            length = x.shape[axis]
            # whole periods are turned about the first and the last element
            most = (length - skip) // period * period
            left, right = min(most, low), min(most, high)
            x = concatenate(
                [
                    2 * x[(*before, slice(0, 1))] - flip(x[(*before, slice(skip, skip + left))], axis),
                    x,
                    2 * x[(*before, slice(-1, None))]
                    - flip(x[(*before, slice(length - skip - right, length - skip))], axis),
                ],
                axis=axis,
            )
            low, high = low - left, high - right
    return x


def _ramp(
    x: Array, axis: int, width: tuple[int, int], ends: tuple[Any, Any], mode: str
) -> tuple[Array, Array]:
    """Return values that go evenly from numbers to the first and from the last elements."""
    before, after = (slice(None),) * axis, (1,) * (x.ndim - axis - 1)
    found = []
    for at, (count, end) in enumerate(zip(width, ends, strict=True)):
        edge = x[(*before, slice(0, 1) if at == 0 else slice(-1, None))]
        share = np.arange(count) / count if count else np.zeros(0)
        wide = np.float32 if x.dtype.itemsize <= 4 and x.dtype.kind == "f" else np.float64
        parts = asarray((share if at == 0 else share[::-1]).astype(wide).reshape(-1, *after))
        made = parts * (edge.astype(parts.dtype) if x.dtype.kind != "c" else edge)
        if end:
            made = made + end * (1 - parts)
        if x.dtype.kind in "iu":
            made = floor(made)
        found.append(made.astype(x.dtype))
    return found[0], found[1]


def _repeat_statistic(
    x: Array, axis: int, width: tuple[int, int], lengths: tuple[Any, Any], mode: str
) -> tuple[Array, Array]:
    """Return statistics of the first and of the last elements along an axis, repeated."""
    before = (slice(None),) * axis
    found = []
    for at, (count, length) in enumerate(zip(width, lengths, strict=True)):
        own = x.shape[axis] if length is None else min(int(length), x.shape[axis])
        if own < 1:
            raise ArgumentValueError(f"stat_length: expected at least 1, got {length}")
        part = x[(*before, slice(0, own) if at == 0 else slice(x.shape[axis] - own, None))]
        value = _STATISTICS[mode](part, axis=axis, keepdims=True)
        if x.dtype.kind in "iu" and mode in ("mean", "median"):
            value = rint(value)
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        found.append(broadcast_to(value.astype(x.dtype), shape))
    return found[0], found[1]
