"""Parts of arrays by conditions, arrays of blocks, bits in bytes, and real parts."""

from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.elementwise import absolute, imag_of, real
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import all_axes, parse_axis, reshape
from vkdispatch.numpy.basics.reductions import all as all_of
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core.array import Array, store_result
from vkdispatch.numpy.core.dtypes import default_complex
from vkdispatch.numpy.indexing.gathering import nonzero
from vkdispatch.numpy.sorting.searching import sort, take

__all__ = ["block", "compress", "extract", "packbits", "real_if_close", "sort_complex", "unpackbits"]


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Array:
    """Return the parts along an axis for which a condition holds, which is waited for. See `numpy.compress`.

    Raises
    ------
    ValueError
        The condition is no vector.
    IndexError
        It holds beyond the end of the axis.

    Examples
    --------
    >>> vnp.compress([True, False, True], vnp.asarray([10, 20, 30]))
    Array([10, 30], dtype=int64)
    """
    chosen, array = to_array(condition, "condition"), to_array(a, "a")
    if chosen.ndim != 1:
        raise ArgumentValueError(f"condition: expected a vector, got the shape {chosen.shape}")
    if all_axes(axis, array.ndim) is None:
        array, axis = reshape(array, -1), 0
    place = parse_axis(axis, array.ndim)
    (places,) = nonzero(chosen)
    if chosen.size > array.shape[place] and int(places[-1:].numpy().max(initial=-1)) >= array.shape[place]:
        raise ArgumentIndexError(f"condition: longer than axis {place} with {array.shape[place]} elements")
    found = take(array, places, axis=place)
    return store_result(out, found)


def extract(condition: Any, arr: Any) -> Array:
    """Return the elements for which a condition holds, which is waited for. See `numpy.extract`.

    Examples
    --------
    >>> x = vnp.arange(6)
    >>> vnp.extract(x % 3 == 0, x)
    Array([0, 3], dtype=int64)
    """
    (places,) = nonzero(reshape(to_array(condition, "condition"), -1))
    return take(reshape(to_array(arr, "arr"), -1), places)


def block(arrays: Any) -> Array:
    """Return the array that nested lists of blocks make. See `numpy.block`.

    Raises
    ------
    ValueError
        A list is empty, lists are not nested alike, or shapes do not fit.
    TypeError
        A block is a tuple.

    Examples
    --------
    >>> vnp.block([[vnp.eye(2), vnp.zeros((2, 1))]])
    Array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float64)
    """
    depth = _find_depth(arrays)
    ndim = max(depth, max(each.ndim for each in _find_blocks(arrays)))
    return _join(arrays, depth, ndim)


def _find_depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise ArgumentTypeError("arrays: expected lists, got a tuple")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ArgumentValueError("arrays: expected lists with blocks, got an empty one")
    depths = {_find_depth(each) for each in arrays}
    if len(depths) > 1:
        raise ArgumentValueError("arrays: expected lists that are nested alike")
    return depths.pop() + 1


def _find_blocks(arrays: Any) -> list[Array]:
    if isinstance(arrays, list):
        return [block for each in arrays for block in _find_blocks(each)]
    return [to_array(arrays, "arrays")]


def _join(arrays: Any, depth: int, ndim: int) -> Array:
    if not isinstance(arrays, list):
        array = to_array(arrays, "arrays")
        return reshape(array, (*(1,) * (ndim - array.ndim), *array.shape), copy=True)
    return concatenate([_join(each, depth - 1, ndim) for each in arrays], axis=ndim - depth)


def _bits_order(bitorder: str) -> Array:
    if bitorder not in ("big", "little"):
        raise ArgumentValueError(f"bitorder: expected 'big' or 'little', got {bitorder!r}")
    places = arange(8, dtype=np.uint8)
    return 7 - places if bitorder == "big" else places


def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Array:
    """Return bytes whose bits are truth values along an axis. See `numpy.packbits`.

    Examples
    --------
    >>> vnp.packbits(vnp.asarray([1, 0, 1], dtype=vnp.uint8))
    Array([160], dtype=uint8)
    """
    array = to_array(a, "a")
    if array.dtype.kind not in "biu":
        raise ArgumentTypeError(f"a: expected integers or booleans, got {array.dtype}")
    if all_axes(axis, array.ndim) is None:
        array, axis = reshape(array, -1), 0
    place = parse_axis(axis, array.ndim)
    rest = -array.shape[place] % 8
    bits = (array != 0).astype(np.uint8)
    if rest:
        edge = zeros((*array.shape[:place], rest, *array.shape[place + 1 :]), np.uint8)
        bits = concatenate([bits, edge], axis=place)
    groups = reshape(bits, (*bits.shape[:place], bits.shape[place] // 8, 8, *bits.shape[place + 1 :]))
    order = reshape(_bits_order(bitorder), (8, *(1,) * (array.ndim - place - 1)))
    return total(groups << order, axis=place + 1, dtype=np.uint8)


def unpackbits(a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """Return the bits of bytes along an axis, as uint8. See `numpy.unpackbits`.

    Examples
    --------
    >>> vnp.unpackbits(vnp.asarray([160], dtype=vnp.uint8))
    Array([1, 0, 1, 0, 0, 0, 0, 0], dtype=uint8)
    """
    array = to_array(a, "a")
    if array.dtype != np.uint8:
        raise ArgumentTypeError(f"a: expected uint8, got {array.dtype}")
    if all_axes(axis, array.ndim) is None:
        array, axis = reshape(array, -1), 0
    place = parse_axis(axis, array.ndim)
    after = (1,) * (array.ndim - place - 1)
    wide = reshape(array, (*array.shape[: place + 1], 1, *array.shape[place + 1 :]))
    bits = (wide >> reshape(_bits_order(bitorder), (8, *after))) & 1
    length = array.shape[place] * 8
    found = reshape(bits, (*array.shape[:place], length, *array.shape[place + 1 :]))
    if count is None:
        return found
    wanted = count if count >= 0 else max(length + count, 0)
    before = (slice(None),) * place
    if wanted > length:
        edge = zeros((*array.shape[:place], wanted - length, *array.shape[place + 1 :]), np.uint8)
        return concatenate([found, edge], axis=place)
    return found[(*before, slice(0, wanted))]


def real_if_close(a: Any, tol: float = 100) -> Array:
    """Return the real parts if all imaginary ones are near zero, which are waited for, else the array.

    See `numpy.real_if_close`.

    Examples
    --------
    >>> vnp.real_if_close(vnp.asarray([1 + 1e-15j]))
    Array([1.], dtype=float64)
    """
    array = to_array(a, "a")
    if array.dtype.kind != "c":
        return array
    limit = tol * float(np.finfo(array.dtype).eps) if tol > 1 else tol
    return real(array) if bool(all_of(absolute(imag_of(array)) < limit)) else array


def sort_complex(a: Any) -> Array:
    """Return the elements sorted by real parts, then by imaginary ones, as complex numbers.

    See `numpy.sort_complex`.

    Examples
    --------
    >>> vnp.sort_complex(vnp.asarray([2, 1 + 1j, 1]))
    Array([1.+0.j, 1.+1.j, 2.+0.j], dtype=complex128)
    """
    ordered = sort(to_array(a, "a"))
    if ordered.dtype.kind == "c":
        return ordered
    is_short = ordered.dtype.kind in "iu" and ordered.dtype.itemsize <= 2
    return ordered.astype(np.complex64 if is_short else default_complex())
