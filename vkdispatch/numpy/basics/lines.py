"""Arrays of any number of axes as lines of at most three, for functions on buffers along one axis."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from vkdispatch.numpy.basics.manipulation import permute_dims
from vkdispatch.numpy.core.array import array_of, value_of
from vkdispatch.numpy.core.kernels import as_operand
from vkdispatch.numpy.core.memory import Shape


def lines_of(value: Any, axes: Sequence[int]) -> tuple[Any, Shape, int]:
    """Return a value, the shape of at most three axes with which it is reduced, and the axis to reduce."""
    shape = value.shape
    low, high = (min(axes), max(axes) + 1) if axes else (len(shape), len(shape))
    if len(axes) == high - low:
        outer, inner = math.prod(shape[:low]), math.prod(shape[high:])
        length = math.prod(shape[low:high])
        if inner == 1:
            return value, (outer, length), 1
        if outer == 1:
            return value, (length, inner), 0
        return value, (outer, length, inner), 1
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    turned = value_of(permute_dims(array_of(value), (*kept, *axes)))
    rows = math.prod(shape[axis] for axis in kept)
    return turned, (rows, math.prod(shape[axis] for axis in axes)), 1


def as_reduction(value: Any, axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Return a value as the functions on buffers reduce it along axes, and which of its axes those are.

    Expressions are computed where they are read. Where reduced axes and others alternate, elements are read
    in another order, but always along the last axis.
    """
    order, shape, along = _join_runs(value.shape, axes)
    return as_operand(value, shape, order), along


@lru_cache(4096)
def _join_runs(shape: Shape, axes: tuple[int, ...]) -> tuple[tuple[int, ...] | None, Shape, tuple[int, ...]]:
    """Return an order of axes, or None, the shape of at most three axes then, and those that are reduced."""
    runs: list[tuple[bool, int, list[int]]] = []
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        reduced = axis in axes
        if runs and runs[-1][0] == reduced:
            _, size, members = runs.pop()
            runs.append((reduced, size * length, [*members, axis]))
        else:
            runs.append((reduced, length, [axis]))
    if not any(reduced for reduced, _, _ in runs):
        runs.append((True, 1, []))
    order = None
    if len(runs) > 3:
        last = [] if runs[-1][0] else [runs.pop()]
        kept = [run for run in runs if not run[0]]
        dropped = [run for run in runs if run[0]]
        single = [axis for axis, length in enumerate(shape) if length == 1]
        order = (*single, *(axis for run in (*kept, *dropped, *last) for axis in run[2]))
        joined = [
            (flag, math.prod(run[1] for run in some)) for flag, some in ((False, kept), (True, dropped))
        ]
        sides = [*joined, *((False, run[1]) for run in last)]
    else:
        sides = [(reduced, size) for reduced, size, _ in runs]
    along = tuple(place for place, (reduced, _) in enumerate(sides) if reduced)
    return order, tuple(size for _, size in sides), along


def final_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """Return the shape of an array that is reduced along axes."""
    if keepdims:
        return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)
