"""GPU values as NumPy arrays: one row for each invocation, or a single row for all of them.

A scalar is a row, a vector or complex number a row of components, a matrix a row of columns of components.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_count,
    component_type,
    is_array,
    is_complex,
    is_matrix,
    is_scalar,
    to_numpy_dtype,
)

Array = np.ndarray[Any, Any]
Extent = tuple[int, int, int]


def host_dtype(kind: DType) -> np.dtype[Any]:
    """Return the NumPy dtype of one component."""
    scalar = component_type(kind)
    return np.dtype(np.bool_ if scalar is bool_ else to_numpy_dtype(scalar))


def value_shape(kind: DType) -> tuple[int, ...]:
    """Return the shape of one value: () for scalars, (2,) for complex numbers, (N, N) for matrices."""
    if is_scalar(kind):
        return ()
    if is_matrix(kind):
        assert kind.child_type is not None
        return (kind.child_count, kind.child_type.child_count)
    if is_array(kind):
        assert kind.child_type is not None
        return (kind.child_count, *value_shape(kind.child_type))
    return (kind.child_count,)


def make_uniform(value: Any, kind: DType) -> Array:
    """Return a value as a single row for all invocations."""
    return np.asarray(value, host_dtype(kind)).reshape((1, *value_shape(kind)))


def broadcast_rows(value: Array, rows: int) -> Array:
    """Return a value with one row for each of `rows` invocations. Do not modify."""
    return value if len(value) == rows else np.broadcast_to(value, (rows, *value.shape[1:]))


def align(*values: Array) -> tuple[Array, ...]:
    """Add axes to scalars that are combined with vectors or matrices."""
    most = max(value.ndim for value in values)
    return tuple(value.reshape(value.shape + (1,) * (most - value.ndim)) for value in values)


def convert(value: Array, target: np.dtype[Any]) -> Array:
    """Convert components like GLSL constructors: integers wrap around, floats are truncated to integers."""
    if value.dtype == target:
        return value
    if target.kind == "b":
        result: Array = value != 0
        return result
    if value.dtype.kind == "f" and target.kind in "iu":
        # via the widest integer, so that overflow wraps around on every machine
        wide = np.uint64 if target == np.uint64 else np.int64
        return value.astype(wide).astype(target)
    return value.astype(target)


def construct(kind: DType, kinds: Sequence[DType], values: Sequence[Array]) -> Array:
    """Construct a value of type `kind` like the GLSL constructor."""
    target, shape = host_dtype(kind), value_shape(kind)
    if is_array(kind):
        if not values:
            return np.zeros((1, *shape), target)
        rows = max(len(value) for value in values)
        return np.stack([broadcast_rows(value, rows) for value in values], axis=1)
    if len(values) == 1:
        return _construct_from_one(kind, kinds[0], convert(values[0], target))
    rows = max(len(value) for value in values)
    parts = [broadcast_rows(convert(value, target), rows).reshape(rows, -1) for value in values]
    return np.concatenate(parts, axis=1).reshape(rows, *shape)


def _construct_from_one(kind: DType, source: DType, value: Array) -> Array:
    rows, shape = len(value), value_shape(kind)
    if is_scalar(kind):
        first: Array = value.reshape(rows, -1)[:, 0]
        return first
    if is_matrix(kind):
        return _matrix_from_one(shape, source, value)
    if is_scalar(source) and not is_complex(kind):
        return np.repeat(value[:, None], shape[0], axis=1)
    return value.reshape(rows, -1)[:, : component_count(kind)]


def _matrix_from_one(shape: tuple[int, ...], source: DType, value: Array) -> Array:
    rows = len(value)
    columns, height = shape
    if is_matrix(source):
        result = np.broadcast_to(np.eye(columns, height, dtype=value.dtype), (rows, *shape)).copy()
        fits = tuple(slice(min(a, b)) for a, b in zip(shape, value.shape[1:], strict=True))
        result[:, fits[0], fits[1]] = value[:, fits[0], fits[1]]
        return result
    if is_scalar(source):
        result = np.zeros((rows, *shape), value.dtype)
        for place in range(min(shape)):
            result[:, place, place] = value
        return result
    return value.reshape(rows, *shape)


def as_unsigned(value: Array) -> Array:
    """Reinterpret integers as unsigned numbers."""
    return value if value.dtype.kind == "u" else value.view(np.dtype(f"u{value.dtype.itemsize}"))


def reinterpret(value: Array, target: np.dtype[Any]) -> Array:
    """Reinterpret bits as another type of the same size."""
    return np.ascontiguousarray(value).view(target)
