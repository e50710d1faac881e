"""Elements chosen among several arrays, by conditions or numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.creation import zeros_like
from vkdispatch.numpy.basics.elementwise import choose as choose_between
from vkdispatch.numpy.basics.elementwise import clip
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.manipulation import broadcast_arrays, result_type
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.core.array import Array, store_result

__all__ = [
    "choose",
    "piecewise",
    "select",
]


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
    if mode == "wrap":
        index = index % count
    elif mode == "clip":
        index = clip(index, 0, count - 1)
    elif mode != "raise":
        raise ArgumentValueError(f"mode: expected 'raise', 'wrap' or 'clip', got {mode!r}")
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
        return all(isinstance(each, (bool, np.bool_)) for each in value)
    return True
