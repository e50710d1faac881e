"""Updates at indices that may occur more than once: the method `at` of ufuncs."""

from typing import Any

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.numpy.basics.elementwise import UFUNCS, choose
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import broadcast_to, reshape
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core.array import Array, check_cast, view_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.sorting.searching import argsort, searchsorted

__all__: list[str] = []

# With what several values for one place are combined before.
_COMBINING = {
    "add": "add",
    "subtract": "add",
    "multiply": "multiply",
    "divide": "multiply",
    **{
        name: name
        for name in ("maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or", "bitwise_xor")
    },
    **{
        name: name
        for name in ("logical_and", "logical_or", "logical_xor", "gcd", "lcm", "logaddexp", "hypot")
    },
}


def update_at(name: str, x: Array, index: Any, values: Any) -> None:
    """Set `x[index]` to a ufunc of it and of values; indices that occur several times count several times.

    See `numpy.ufunc.at`. Several values for one place are combined in pairs, so that floats may differ from
    NumPy's in their last bits.

    Raises
    ------
    TypeError
        The ufunc is none whose values can be combined, or its result does not fit the dtype of `x`.
    """
    if name not in _COMBINING:
        raise ArgumentTypeError(
            f"np.{name}.at: arrays have it for {', '.join(_COMBINING)}; compute on the host with x.numpy()"
        )
    if not x.size:
        return
    function, combine = UFUNCS[name], UFUNCS[_COMBINING[name]]
    places = reshape(arange(x.size), x.shape)[index]
    given = values if isinstance(values, Array) else asarray(values, x.dtype if _is_weak(values) else None)
    data = reshape(broadcast_to(given, places.shape), (-1,))
    places = reshape(places, (-1,))
    if not places.size:
        return
    order = argsort(places)
    places, data = places[order], data[order]
    rank = arange(places.size) - searchsorted(places, places)
    while int(rank.max()):
        # ranks 2k and 2k + 1 of a place become one
        is_first = rank % 2 == 0
        beside = concatenate([places[1:] == places[:-1], arange(1) > 0])
        following = concatenate([data[1:], data[:1]])
        data = choose(is_first & beside, combine(data, following), data)[is_first]
        places, rank = places[is_first], rank[is_first] // 2
    if view_of(x).is_contiguous:
        flat = reshape(x, (-1,))
        _set(name, flat, places, function(flat[places], data))
    else:
        copied = x.copy()
        flat = reshape(copied, (-1,))
        _set(name, flat, places, function(flat[places], data))
        x[...] = copied


def _is_weak(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _set(name: str, flat: Array, places: Array, result: Array) -> None:
    check_cast(result.dtype, flat.dtype, f"np.{name}.at")
    flat[places] = result
