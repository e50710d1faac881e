"""Writing to arrays: by places, masks and diagonals."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.elementwise import choose, clip
from vkdispatch.numpy.basics.inputs import to_array, to_elements, to_index
from vkdispatch.numpy.basics.manipulation import parse_axis, reshape, view_with
from vkdispatch.numpy.basics.sequences import arange, range_along
from vkdispatch.numpy.core.application import refuse_read_only
from vkdispatch.numpy.core.array import Array, check_cast, describe, suggest_array, view_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.memory import Kind, View
from vkdispatch.numpy.indexing.indexing import nonzero

__all__ = ["copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"]


def _target(a: Any, name: str) -> Array:
    if not isinstance(a, Array):
        raise ArgumentTypeError(
            f"{name}: expected an Array, which is written to, got {describe(a)}{suggest_array(a)}"
        )
    return a


def _write_flat(target: Array, places: Array, values: Any) -> None:
    """Write values, repeated as needed, to places of a flattened array."""
    data = reshape(to_elements(values, target.dtype, "values"), -1)
    if places.size == 0:
        return
    if data.size == 0:
        raise ArgumentValueError("values: expected at least one")
    if data.size > 1:
        data = data[: places.size] if data.size >= places.size else data[arange(places.size) % data.size]
    view = view_of(target)
    if view.is_contiguous or target.ndim == 1:
        reshape(target, -1)[places] = data
        return
    rest, index = places, []
    for length in reversed(target.shape[1:]):
        index.append(rest % length)
        rest = rest // length
    target[tuple(reversed([*index, rest]))] = data


class FlatIterator:
    """The elements of an array along one axis, in C order: `x.flat`. See `numpy.flatiter`.

    It iterates over NumPy scalars, from a copy on the host that the first one makes. An index reads a copy,
    as an Array. What is written to an index goes to the array; values are repeated as needed.

    Attributes
    ----------
    base
        The array.
    """

    def __init__(self, base: Array) -> None:
        self.base = base
        self._values: Iterator[Any] | None = None

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> "FlatIterator":
        return self

    def __next__(self) -> Any:
        if self._values is None:
            self._values = iter(self.base.numpy().flat)
        return next(self._values)

    def __getitem__(self, index: Any) -> Array:
        return reshape(self.base, -1)[self._parse(index)].copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        places = arange(self.base.size, device=self.base.device)[self._parse(index)]
        if isinstance(value, np.ndarray):
            value = asarray(value, device=self.base.device)
        if not places.ndim and np.size(value) != 1:
            raise ArgumentValueError(f"value: expected one number for one element, got {np.size(value)}")
        _write_flat(self.base, reshape(places, -1), value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "np.ndarray[Any, Any]":
        return reshape(self.base, -1).__array__(dtype, copy)

    def copy(self) -> Array:
        """Return a copy of the elements as an array of one axis."""
        return self[...]

    @staticmethod
    def _parse(index: Any) -> Any:
        """Return an index along one axis. Raises IndexError for one with other axes, as NumPy's."""
        (own,) = index if isinstance(index, tuple) and len(index) == 1 else (index,)
        if isinstance(own, tuple) and not own:
            return ...
        if own is None or isinstance(own, (tuple, bool, np.bool_)):
            raise ArgumentIndexError(f"index: expected one index along the elements, got {index!r}")
        return own


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values to places of the flattened array. See `numpy.put`.

    Parameters
    ----------
    v
        Values, which are repeated as needed. Of several for one place the last one counts.
    mode
        What is done about places out of bounds: "raise" (an IndexError, at the latest with the next wait),
        "wrap" or "clip".

    Examples
    --------
    >>> x = vnp.arange(4)
    >>> vnp.put(x, [0, 2], [10, 20])
    >>> x
    Array([10,  1, 20,  3], dtype=int64)
    """
    target = _target(a, "a")
    if type(target._value) is View:
        refuse_read_only(target._value)
    places, data = reshape(to_index(ind), -1), to_elements(v, target.dtype, "v")
    if places.size == 0:
        return
    if target.size == 0:
        raise ArgumentIndexError("ind: there are no elements to write to")
    if mode == "wrap":
        places = places % target.size
    elif mode == "clip":
        places = clip(places, 0, target.size - 1)
    elif mode != "raise":
        raise ArgumentValueError(f"mode: expected 'raise', 'wrap' or 'clip', got {mode!r}")
    else:
        places = choose(places < 0, places + target.size, places)
        # what is out of bounds stays so along the first axis of an array that is not contiguous
        places = choose(places < 0, np.iinfo(np.int64).max // 2, places.astype(np.int64))
    _write_flat(target, places, data)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write one value to each line along an axis for each of its indices. See `numpy.put_along_axis`.

    Examples
    --------
    >>> x = vnp.asarray([[1, 2], [3, 4]])
    >>> vnp.put_along_axis(x, vnp.asarray([[0], [1]]), 9, axis=1)
    >>> x
    Array([[9, 2],
           [3, 9]], dtype=int64)
    """
    target = _target(arr, "arr")
    index = to_index(indices)
    if index.dtype.kind not in "iu":
        raise ArgumentIndexError(f"indices: expected integers, got {index.dtype}")
    if axis is None:
        if index.ndim != 1:
            raise ArgumentValueError(f"indices: expected one axis, got {index.ndim}")
        target, axis = reshape(target, -1, copy=False), 0
    place = parse_axis(axis, target.ndim)
    if index.ndim != target.ndim:
        raise ArgumentValueError(f"indices: expected {target.ndim} axes, got {index.ndim}")
    entries = [range_along(length, axis, target.ndim) for axis, length in enumerate(target.shape)]
    entries[place] = index
    target[tuple(entries)] = to_elements(values, target.dtype, "values")


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values, one after the other, where a mask holds. See `numpy.place`. The mask is waited for.

    Examples
    --------
    >>> x = vnp.arange(4)
    >>> vnp.place(x, x > 1, [10, 20])
    >>> x
    Array([ 0,  1, 10, 20], dtype=int64)
    """
    target = _target(arr, "arr")
    chosen = to_array(mask, "mask")
    if chosen.size != target.size:
        raise ArgumentValueError(f"mask: expected {target.size} elements, got {chosen.size}")
    values = to_elements(vals, target.dtype, "vals")
    check_cast(values.dtype, target.dtype, "vals", "safe")
    (places,) = nonzero(reshape(chosen, -1))
    _write_flat(target, places, values)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the values at the places of elements where a mask holds. See `numpy.putmask`.

    Examples
    --------
    >>> x = vnp.arange(4)
    >>> vnp.putmask(x, x > 1, 0)
    >>> x
    Array([0, 1, 0, 0], dtype=int64)
    """
    target = _target(a, "a")
    chosen = to_array(mask, "mask").astype(bool, copy=False)
    if chosen.shape != target.shape:
        raise ArgumentValueError(f"mask: expected the shape {target.shape}, got {chosen.shape}")
    data = reshape(to_elements(values, target.dtype, "values"), -1)
    check_cast(data.dtype, target.dtype, "values", "safe")
    data = data.astype(target.dtype, copy=False)
    if data.size == 0:
        return
    if data.size != target.size:
        data = data[arange(target.size) % data.size]
    target[...] = choose(chosen, reshape(data, target.shape), target)


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write an array, or a number, to another one, where a mask holds. See `numpy.copyto`.

    Raises TypeError where `casting` does not allow it.

    Examples
    --------
    >>> x = vnp.zeros(3)
    >>> vnp.copyto(x, 2.0)
    >>> x
    Array([2., 2., 2.], dtype=float64)
    """
    target = _target(dst, "dst")
    if isinstance(src, (bool, int, float, complex)) and not isinstance(src, np.generic):
        source: Any = src
        kind: Kind = np.result_type(target.dtype, src)
    else:
        source = to_array(src, "src")
        kind = source.dtype
    check_cast(kind, target.dtype, "src", casting)
    if where is True:
        target[...] = source
        return
    chosen = to_array(where, "where")
    if isinstance(source, Array):
        source = source.astype(target.dtype, copy=False)
    target[...] = choose(chosen, source, target)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write a value, or values one after the other, to the main diagonal. See `numpy.fill_diagonal`.

    Parameters
    ----------
    wrap
        Whether the diagonal of a matrix with more rows than columns begins again after its end.

    Raises
    ------
    ValueError
        The array has fewer than two axes, or more than two of different lengths.

    Examples
    --------
    >>> x = vnp.zeros((2, 2))
    >>> vnp.fill_diagonal(x, 5)
    >>> x
    Array([[5., 0.],
           [0., 5.]], dtype=float64)
    """
    target = _target(a, "a")
    if target.ndim < 2:
        raise ArgumentValueError(f"a: expected at least two axes, got the shape {target.shape}")
    if target.ndim > 2 and len(set(target.shape)) != 1:
        raise ArgumentValueError(f"a: expected axes of one length, got the shape {target.shape}")
    view = view_of(target)
    rows, columns = target.shape[0], target.shape[1]
    data = to_elements(val, target.dtype, "val")
    step = sum(view.strides)
    if not wrap or target.ndim > 2 or rows <= columns:
        lines = [(view.offset, min(target.shape))]
    else:
        # after the last column a row stays empty
        starts = range(0, rows, columns + 1)
        lines = [(view.offset + start * view.strides[0], min(columns, rows - start)) for start in starts]
    count = sum(length for _, length in lines)
    values: Any = data
    if data.ndim:
        flat = reshape(data, -1)
        values = flat[arange(count) % flat.size] if flat.size < count else flat[:count]
    done = 0
    for offset, length in lines:
        part = values[done : done + length] if data.ndim else values
        view_with(view, (length,), (step,), offset)[...] = part
        done += length
