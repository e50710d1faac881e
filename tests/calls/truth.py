"""What calls ought to give, computed by NumPy: exactly, or in more digits with a bound for the rounding."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .values import Array, Shape, host_of, name_of, parts_of


class Refused(ValueError):
    """A call that has to be refused; the message says why."""


def refuse(why: str) -> Any:
    """Raise: the call has to be refused."""
    raise Refused(why)


@dataclass(frozen=True)
class Expected:
    """What a buffer ought to hold.

    `bound` is how far each number may be from `value`, None if they are to be equal; infinite where anything
    may be. With `bits` every bit counts, of zeros and NaNs too.
    """

    value: Array
    kind: str
    bound: Array | None = None
    bits: bool = False

    @property
    def shape(self) -> Shape:
        parts = len(parts_of(self.kind))
        return self.value.shape[: self.value.ndim - parts]


def expected(value: Any) -> Expected:
    """Return a result of NumPy's as what a buffer ought to hold."""
    if isinstance(value, Expected):
        return value
    array = np.asarray(value)
    return Expected(array, name_of(array.dtype))


def bits(value: Any, kind: str | None = None) -> Expected:
    """Return what has to be the same in every bit."""
    array = np.asarray(value)
    return Expected(array, kind or name_of(array.dtype), bits=True)


def after(function: Callable[..., Array], found: Any, *arguments: Any) -> Expected:
    """Return what a map makes of an exact result."""
    return expected(function(expected(found).value, *arguments))


def moved(function: Callable[[Array], Array], x: Array, kind: str, other: Any = None) -> Expected:
    """Return what an array becomes if its elements go where a function of NumPy's moves them.

    Places that the function makes -1 get `other`.
    """
    parts = parts_of(kind)
    shape = x.shape[: x.ndim - len(parts)]
    flat = x.reshape(-1, *parts)
    places = np.asarray(function(np.arange(len(flat)).reshape(shape)))
    if other is not None:
        flat = np.concatenate([flat, np.full((1, *parts), other).astype(x.dtype)])
    found = flat[places] if len(flat) else np.empty((*places.shape, *parts), x.dtype)
    return Expected(found, kind, bits=True)


def compare(actual: Any, wanted: Expected) -> str | None:
    """Return how an array differs from what it ought to be, or None."""
    right = wanted.value
    host = host_of(wanted.kind)
    if not isinstance(actual, np.ndarray) and not isinstance(actual, np.generic):
        return f"a {type(actual).__name__} in place of an array"
    actual = np.asarray(actual)
    if actual.dtype != host:
        return f"dtype {actual.dtype}, right is {host}"
    if actual.shape != right.shape:
        return f"shape {actual.shape}, right is {right.shape}"
    with np.errstate(all="ignore"):
        wrong = _wrong(actual, wanted)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    more = f" (and {int(wrong.sum()) - 1} more of {wrong.size})" if wrong.sum() > 1 else ""
    bound = "" if wanted.bound is None else f" within {np.broadcast_to(wanted.bound, right.shape)[at]:.3g}"
    return f"value {actual[at]!r} at {at}, right is {right[at]!r}{bound}{more}"


def _wrong(actual: Array, wanted: Expected) -> Array:
    right = wanted.value
    if wanted.bits:
        size = actual.dtype.itemsize
        pairs = [
            np.frombuffer(each.tobytes(), np.uint8).reshape(-1, size)
            for each in (actual, right.astype(actual.dtype))
        ]
        return np.asarray((pairs[0] != pairs[1]).any(-1)).reshape(actual.shape)
    if actual.dtype.kind not in "fc":
        free = wanted.bound is not None and np.isinf(wanted.bound)
        return np.asarray(actual != right) & ~np.asarray(free)
    if actual.dtype.kind == "c" and wanted.bound is None:
        nans = np.isnan(actual) & np.isnan(right)
        return ~((actual == right) | nans)
    if wanted.bound is None:
        return ~((actual == right) | (np.isnan(actual) & np.isnan(right)))
    bound = np.broadcast_to(wanted.bound, right.shape)
    if actual.dtype.kind == "c":
        parts = [_apart(actual.real, right.real, bound), _apart(actual.imag, right.imag, bound)]
        return np.asarray(parts[0] | parts[1])
    return _apart(actual, right, bound)


def _apart(actual: Array, right: Array, bound: Array) -> Array:
    """Where numbers are farther apart than they may be."""
    most = np.finfo(actual.dtype).max
    wide = actual.astype(np.longdouble)
    close = np.abs(wide - right) <= bound
    both_nan = np.isnan(actual) & np.isnan(right)
    infinite = np.isinf(actual) & (np.sign(actual) == np.sign(right)) & (np.abs(right) + bound >= most)
    anything = np.isinf(bound) | np.isnan(bound)
    finite_right = np.isfinite(right)
    return ~(anything | both_nan | np.where(finite_right, close, False) | (actual == right) | infinite)


# -- helpers for functions that round


def wide(x: Array) -> Array:
    """Return floats with more digits; integers as they are."""
    if x.dtype.kind == "f":
        return x.astype(np.longdouble)
    return x.astype(np.clongdouble) if x.dtype.kind == "c" else x


def epsilon(kind: str) -> float:
    """Return the relative distance of two neighbours among the numbers of a dtype."""
    host = host_of(kind)
    return float(np.finfo(host).eps) if host.kind in "fc" else 0.0


def accumulated(kind: str) -> str:
    """Return what values are added up in: float16 in float32."""
    return "float32" if kind == "float16" else kind


def least(kind: str) -> float:
    """Return the smallest normal number, below which devices may take numbers for zero."""
    return float(np.finfo(host_of(kind)).tiny)


def most(kind: str) -> float:
    """Return the largest number."""
    return float(np.finfo(host_of(kind)).max)


def rounded(value: Array, error: Array, kind: str, magnitude: Array | None = None) -> Expected:
    """Return floats that were computed with an error and then rounded to a dtype.

    `magnitude` is the largest that a number on the way may have been: beyond the largest float, anything may
    come of it.
    """
    bound = error + epsilon(kind) * np.abs(value) + 4 * least(kind)
    if magnitude is not None:
        bound = np.where(magnitude > most(accumulated(kind)) / 4, np.inf, bound)
    # an error beyond the largest number leaves the sign of an infinity open
    bound = np.where(bound > most(kind), np.inf, bound)
    # one part of a complex number may be a NaN, and the other a number
    bound = np.where(np.isnan(bound) & (np.isfinite(value) | np.iscomplexobj(value)), np.inf, bound)
    return Expected(np.asarray(value), kind, np.asarray(np.nan_to_num(bound, nan=0.0, posinf=np.inf)))


def by_parts(function: Callable[[Array], Any], x: Array, kind: str) -> Expected:
    """Compute on each component of vectors, and put the results together."""
    found = [expected(function(x[..., part].copy())) for part in range(x.shape[-1])]
    value = np.stack([each.value for each in found], -1)
    bound = (
        None
        if found[0].bound is None
        else np.stack(
            [np.broadcast_to(each.bound, each.value.shape) for each in found],
            -1,  # type: ignore[arg-type]
        )
    )
    return Expected(value, kind, bound)


def axes_of(axis: Any, dimensions: int) -> tuple[int, ...]:
    """Return axes from 0 on, by NumPy's rules."""
    if axis is None:
        return tuple(range(dimensions))
    several = axis if isinstance(axis, tuple) else (axis,)
    found = [operator.index(each) for each in several]
    if any(not -dimensions <= each < dimensions for each in found):
        raise Refused("axis")
    found = [each % dimensions for each in found]
    if len(set(found)) < len(found):
        raise Refused("axis")
    return tuple(found)
