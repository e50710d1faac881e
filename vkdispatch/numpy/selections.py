"""Sets, parts of arrays, choices, and comparisons of whole arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.creation import ones, zeros, zeros_like
from vkdispatch.numpy.basics.elementwise import absolute, clip, imag_of, isclose, isnan, real
from vkdispatch.numpy.basics.elementwise import choose as choose_between
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import all_axes, broadcast_arrays, reshape, result_type
from vkdispatch.numpy.basics.reductions import all as all_of
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core.array import Array, store_result
from vkdispatch.numpy.core.conversion import require_choice, to_array
from vkdispatch.numpy.core.memory import default_complex
from vkdispatch.numpy.core.repeating import repeat_calls, repeat_reductions
from vkdispatch.numpy.indexing import nonzero
from vkdispatch.numpy.searching import argsort, isin, sort, take, unique

# ---- Sets of different elements, as sorted vectors -------------------------------------------------------
#
# Sizes depend on the data, so that these functions wait.


def _flat(x: Any, name: str) -> Array:
    return reshape(to_array(x, name), -1)


def union1d(ar1: Any, ar2: Any) -> Array:
    """Return the elements that are in either array. See `numpy.union1d`.

    Examples
    --------
    >>> vnp.union1d(vnp.asarray([1, 2, 3]), vnp.asarray([2, 3, 4]))
    Array([1, 2, 3, 4], dtype=int64)
    """
    return unique(concatenate([_flat(ar1, "ar1"), _flat(ar2, "ar2")]))  # type: ignore[no-any-return]


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the elements that are in both arrays, and their first places if asked. See `numpy.intersect1d`.

    Parameters
    ----------
    assume_unique
        Whether each array has each of its elements once.

    Examples
    --------
    >>> vnp.intersect1d(vnp.asarray([1, 2, 3]), vnp.asarray([2, 3, 4]))
    Array([2, 3], dtype=int64)
    """
    first, second = _flat(ar1, "ar1"), _flat(ar2, "ar2")
    if not assume_unique:
        first, first_places = unique(first, return_index=True)
        second, second_places = unique(second, return_index=True)
    joined = concatenate([first, second])
    if not return_indices:
        ordered = sort(joined)
        return ordered[1:][ordered[1:] == ordered[:-1]]
    order = argsort(joined)
    ordered = joined[order]
    same = ordered[1:] == ordered[:-1]
    left, right = order[:-1][same], order[1:][same] - first.size
    if not assume_unique:
        left, right = first_places[left], second_places[right]
    return ordered[:-1][same], left, right


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the elements of the first array that are not in the second. See `numpy.setdiff1d`.

    Examples
    --------
    >>> vnp.setdiff1d(vnp.asarray([1, 2, 3]), vnp.asarray([2, 3, 4]))
    Array([1], dtype=int64)
    """
    first, second = _flat(ar1, "ar1"), _flat(ar2, "ar2")
    if not assume_unique:
        first = unique(first)
    return first[isin(first, second, invert=True)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """Return the elements that are in exactly one of two arrays. See `numpy.setxor1d`.

    Examples
    --------
    >>> vnp.setxor1d(vnp.asarray([1, 2, 3]), vnp.asarray([2, 3, 4]))
    Array([1, 4], dtype=int64)
    """
    parts = [_flat(ar1, "ar1"), _flat(ar2, "ar2")]
    if not assume_unique:
        parts = [unique(part) for part in parts]
    ordered = sort(concatenate(parts))
    if not ordered.size:
        return ordered
    edge = ones((1,), bool)
    differs = concatenate([edge, ordered[1:] != ordered[:-1], edge])
    return ordered[differs[1:] & differs[:-1]]


# ---- Whether whole arrays are equal, or close to each other ----------------------------------------------
#
# These functions wait for their result.


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether two arrays are equal within tolerances. See `numpy.allclose`.

    Examples
    --------
    >>> vnp.allclose(vnp.asarray([1.0, 2.0]), vnp.asarray([1.0, 2.0 + 1e-9]))
    True
    """
    return bool(_are_close(to_array(a, "a"), to_array(b, "b"), rtol, atol, equal_nan))


@repeat_reductions
def _are_close(a: Array, b: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    return all_of(isclose(a, b, rtol, atol, equal_nan))


@repeat_reductions
def _are_equal(x: Array, y: Array, equal_nan: bool) -> Array:
    same = x == y
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same = same | (isnan(x) & isnan(y))
    return all_of(same)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements. See `numpy.array_equal`.

    Examples
    --------
    >>> vnp.array_equal(vnp.arange(3), vnp.asarray([0, 1, 2]))
    True
    """
    x, y = to_array(a1, "a1"), to_array(a2, "a2")
    return x.shape == y.shape and bool(_are_equal(x, y, equal_nan))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays are equal after broadcasting. See `numpy.array_equiv`.

    Examples
    --------
    >>> vnp.array_equiv(vnp.asarray([1, 2]), vnp.asarray([[1, 2], [1, 2]]))
    True
    """
    x, y = to_array(a1, "a1"), to_array(a2, "a2")
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return bool(_are_equal(x, y, False))


def iscomplex(x: Any) -> Array:
    """Return where the imaginary part is not zero. See `numpy.iscomplex`.

    Examples
    --------
    >>> vnp.iscomplex(vnp.asarray([1, 2j]))
    Array([False,  True], dtype=bool)
    """
    return imag_of(to_array(x)) != 0


def isreal(x: Any) -> Array:
    """Return where the imaginary part is zero. See `numpy.isreal`.

    Examples
    --------
    >>> vnp.isreal(vnp.asarray([1, 2j]))
    Array([ True, False], dtype=bool)
    """
    return imag_of(to_array(x)) == 0


# ---- Elements chosen among several arrays, by conditions or numbers --------------------------------------


@repeat_calls
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Return elements of the first choice whose condition holds, else the default. See `numpy.select`.

    Raises
    ------
    TypeError
        A condition is not boolean.
    ValueError
        There are no conditions, or not as many as choices.

    Examples
    --------
    >>> x = vnp.arange(5)
    >>> vnp.select([x < 2, x > 3], [x, x * x], default=-1)
    Array([ 0,  1, -1, -1, 16], dtype=int64)
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentValueError(
            f"condlist, choicelist: expected as many of both, got {len(condlist)} and {len(choicelist)}"
        )
    conditions = [to_array(each, f"condlist[{i}]") for i, each in enumerate(condlist)]
    for i, each in enumerate(conditions):
        if each.dtype.kind != "b":
            raise ArgumentTypeError(f"condlist[{i}]: expected booleans, got {each.dtype}")
    choices = [each if _is_number(each) else to_array(each, "choicelist") for each in choicelist]
    kind = result_type(*choices, default if _is_number(default) else to_array(default, "default"))
    result: Any = to_array(default, "default").astype(kind)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = choose_between(condition, to_array(choice).astype(kind), result)
    return result  # type: ignore[no-any-return]


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


@repeat_calls
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    """Return for each element that of the choice with its number. See `numpy.choose`.

    Parameters
    ----------
    choices
        A sequence of arrays that broadcast with `a`, or an array whose first axis counts them.
    mode
        What is done about numbers out of bounds: "raise" (for which they are waited for), "wrap" or "clip".

    Raises
    ------
    TypeError
        `a` has no integers.
    ValueError
        There are no choices, or a number is out of bounds.

    Examples
    --------
    >>> vnp.choose(vnp.asarray([0, 1, 0]), [vnp.asarray([1, 2, 3]), vnp.asarray([10, 20, 30])])
    Array([ 1, 20,  3], dtype=int64)
    """
    index = to_array(a, "a")
    if index.dtype.kind not in "biu":
        raise ArgumentTypeError(f"a: expected integers, got {index.dtype}")
    given = list(choices)
    each = [to_array(choice, "choices") for choice in given]
    if not each:
        raise ArgumentValueError("choices: expected at least one")
    if index.dtype.kind == "b":
        index = index.astype(np.uint8)
    count = len(each)
    require_choice(mode, "mode", "raise", "wrap", "clip")
    if mode == "wrap":
        index = index % count
    elif mode == "clip":
        index = clip(index, 0, count - 1)
    elif index.size and bool(any_of((index < 0) | (index >= count))):
        raise ArgumentValueError(f"a: a number is out of bounds for {count} choices; mode='clip' allows it")
    # Python numbers adapt to the arrays
    kind = result_type(*(one if _is_number(one) else array for one, array in zip(given, each, strict=True)))
    index, *each = broadcast_arrays(index, *each)
    result = each[0].astype(kind, copy=False)
    for number in range(1, count):
        result = choose_between(index == number, each[number].astype(kind, copy=False), result)
    if out is not None:
        return store_result(out, result)
    return result.copy() if count == 1 else result


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Return a function that is defined piece by piece. See `numpy.piecewise`.

    Each function gets the elements for which its condition holds, which are waited for.

    Raises
    ------
    ValueError
        There are neither as many functions as conditions nor one more.

    Examples
    --------
    >>> x = vnp.asarray([-1.0, 2.0])
    >>> vnp.piecewise(x, [x < 0, x >= 0], [0.0, lambda x: x * x])
    Array([0., 4.], dtype=float64)
    """
    array = to_array(x)
    given = [condlist] if _is_condition(condlist) else list(condlist)
    conditions = [to_array(each, "condlist").astype(bool, copy=False) for each in given]
    if len(funclist) == len(conditions) + 1:
        covered: Any = conditions[0]
        for each in conditions[1:]:
            covered = covered | each
        conditions.append(~covered)
    elif len(funclist) != len(conditions):
        raise ArgumentValueError(
            f"funclist: expected {len(conditions)} or {len(conditions) + 1} functions, got {len(funclist)}"
        )
    result = zeros_like(array)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            result[condition] = function
            continue
        part = array[condition]
        if part.size:
            result[condition] = function(part, *args, **kw)
    return result


def _is_condition(value: Any) -> bool:
    """Whether a value is one condition rather than several."""
    if isinstance(value, Array):
        return value.ndim <= 1 and value.dtype.kind == "b"
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, (bool, np.bool_)) for item in value)
    return True


# ---- Parts of arrays by conditions, arrays of blocks, bits in bytes, and real parts ----------------------


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
    array, place = manipulation.lines_along(array, all_axes(axis, array.ndim))
    (places,) = nonzero(chosen)
    if chosen.size > array.shape[place] and int(places[-1:].numpy().max(initial=-1)) >= array.shape[place]:
        raise ArgumentIndexError(f"condition: longer than axis {place} with {array.shape[place]} elements")
    return store_result(out, take(array, places, axis=place))


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


@repeat_calls
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
    ndim = max(depth, max(block.ndim for block in _find_blocks(arrays)))
    return _join(arrays, depth, ndim)


def _find_depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise ArgumentTypeError("arrays: expected lists, got a tuple")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ArgumentValueError("arrays: expected lists with blocks, got an empty one")
    depths = {_find_depth(array) for array in arrays}
    if len(depths) > 1:
        raise ArgumentValueError("arrays: expected lists that are nested alike")
    return depths.pop() + 1


def _find_blocks(arrays: Any) -> list[Array]:
    if isinstance(arrays, list):
        return [block for array in arrays for block in _find_blocks(array)]
    return [to_array(arrays, "arrays")]


def _join(arrays: Any, depth: int, ndim: int) -> Array:
    if not isinstance(arrays, list):
        array = to_array(arrays, "arrays")
        return reshape(array, (*(1,) * (ndim - array.ndim), *array.shape), copy=True)
    return concatenate([_join(each, depth - 1, ndim) for each in arrays], axis=ndim - depth)


def _bits_order(bitorder: str) -> Array:
    require_choice(bitorder, "bitorder", "big", "little")
    places = arange(8, dtype=np.uint8)
    return 7 - places if bitorder == "big" else places


@repeat_calls
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
    array, place = manipulation.lines_along(array, all_axes(axis, array.ndim))
    rest = -array.shape[place] % 8
    bits = (array != 0).astype(np.uint8)
    if rest:
        edge = zeros(manipulation.replace_axis(array.shape, place, rest), np.uint8)
        bits = concatenate([bits, edge], axis=place)
    groups = reshape(bits, manipulation.replace_axis(bits.shape, place, bits.shape[place] // 8, 8))
    order = reshape(_bits_order(bitorder), (8, *(1,) * (array.ndim - place - 1)))
    return total(groups << order, axis=place + 1, dtype=np.uint8)


@repeat_calls
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
    array, place = manipulation.lines_along(array, all_axes(axis, array.ndim))
    after = (1,) * (array.ndim - place - 1)
    wide = reshape(array, manipulation.replace_axis(array.shape, place, array.shape[place], 1))
    bits = (wide >> reshape(_bits_order(bitorder), (8, *after))) & 1
    length = array.shape[place] * 8
    found = reshape(bits, manipulation.replace_axis(array.shape, place, length))
    if count is None:
        return found
    wanted = count if count >= 0 else max(length + count, 0)
    if wanted > length:
        edge = zeros(manipulation.replace_axis(array.shape, place, wanted - length), np.uint8)
        return concatenate([found, edge], axis=place)
    return manipulation.slice_axis(found, place, 0, wanted)


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


@repeat_calls
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
