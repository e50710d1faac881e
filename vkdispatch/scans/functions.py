"""`vd.cumsum`, `vd.cumprod`, `vd.cummax`, `vd.cummin`: running sums, products and extremes, as NumPy's."""

from typing import Any

from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.dtypes import parse_dtype
from vkdispatch.arrays.maps.operand import parse_operand
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.values.elements import wide_type
from vkdispatch.arrays.values.promotion import sum_type
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, bool_, is_scalar, uint32
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.scans.launching import Wish
from vkdispatch.scans.operations import (
    OURS,
    ScanOp,
    check_ours,
    identity_parts,
    make_operation,
)
from vkdispatch.scans.scan_function import check_convertible, run_scan
from vkdispatch.shader.map import MappingFunction

_COMMON = """
    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    axis
        Along which axis; None takes all elements as one row.
    dtype
        Of the {what}; None: {default}.
    out
        Where they go: a buffer of the result's shape and dtype. It may be x, or what a map of x reads at the
        mapped index alone.
    exclusive
        Whether each is of the elements before, without the element itself; the first is {identity}.
    reverse
        Whether to begin with the last element.
    segments
        Begin anew where a segment begins: a buffer of bool, of x's shape, with true there; or, for one row,
        of integers: the places where segments begin, in any order. Places beyond the end are
        ignored, and so are negative ones, which raise a ValueError from a later wait or read; not so where
        the call is recorded.
    output_map
        A `vd.map` of each result.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of x's shape, or of its size without `axis`, of `dtype`, or of what the output map returns.

    Raises
    ------
    TypeError, ValueError
        An argument is not what it should be, or the dtype has no such {what}.
    """


# running sums of truth values say whether any was true, products whether all were
_OF_TRUTH = {"cumsum": "cummax", "cumprod": "cummin"}


@memoize
def _ours(name: str, kind: DType) -> ScanOp:
    function, identity = OURS[name]
    # of int8, -infinity is -128, though its values are combined as int32
    parts = (int(name == "cummin"),) if kind is bool_ else identity_parts(identity, kind)
    combined = uint32 if kind is bool_ else wide_type(kind)
    # of a 0 and a -0 the first one is the largest: these two keep to the order
    return make_operation(name, function, combined, parts, commutative=name in ("cumsum", "cumprod"))


@memoize
def _as_truth(kind: DType) -> MappingFunction:
    """Return a map of numbers to truth values; conversions would cut fractions off before."""
    return MappingFunction([kind], bool_, lambda value: value != 0)


def _scanned(
    name: str,
    x: Any,
    axis: int | None,
    dtype: Any,
    out: Buffer[Any] | None,
    wish: Wish,
    segments: Buffer[Any] | None,
    output_map: Any,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    values = parse_operand(x)
    sums = name in ("cumsum", "cumprod")
    if dtype is not None:
        kind = parse_dtype(dtype)
    elif sums:
        kind = sum_type(values.var_type)
    else:
        kind = values.var_type
    if kind is bool_ and is_scalar(values.var_type) and values.var_type is not bool_:
        values = parse_operand(_as_truth(values.var_type)(x))
    check_ours(name, kind)
    check_convertible(name, values.var_type, kind)
    operation = _ours(_OF_TRUTH.get(name, name) if kind is bool_ else name, kind)
    return run_scan(name, operation, values, kind, axis, out, wish, segments, output_map, graph)


@array_function
def cumsum(
    x: Any,
    axis: int | None = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    segments: Buffer[Any] | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return running sums, as `numpy.cumsum`."""
    wish = Wish(reverse=bool(reverse), exclusive=bool(exclusive))
    return _scanned("cumsum", x, axis, dtype, out, wish, segments, output_map, graph)


@array_function
def cumprod(
    x: Any,
    axis: int | None = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    segments: Buffer[Any] | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return running products, as `numpy.cumprod`."""
    wish = Wish(reverse=bool(reverse), exclusive=bool(exclusive))
    return _scanned("cumprod", x, axis, dtype, out, wish, segments, output_map, graph)


@array_function
def cummax(
    x: Any,
    axis: int | None = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    segments: Buffer[Any] | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the largest element so far, as `numpy.maximum.accumulate`: NaN from the first NaN on."""
    wish = Wish(reverse=bool(reverse), exclusive=bool(exclusive))
    return _scanned("cummax", x, axis, dtype, out, wish, segments, output_map, graph)


@array_function
def cummin(
    x: Any,
    axis: int | None = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    segments: Buffer[Any] | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the smallest element so far, as `numpy.minimum.accumulate`: NaN from the first NaN on."""
    wish = Wish(reverse=bool(reverse), exclusive=bool(exclusive))
    return _scanned("cummin", x, axis, dtype, out, wish, segments, output_map, graph)


def _describe(function: Any, what: str, default: str, identity: str) -> None:
    if function.__doc__:  # python -OO leaves them out
        function.__doc__ += "\n" + _COMMON.format(what=what, default=default, identity=identity)


_SUM_TYPE = "x's, but int64 or uint64 for integers of fewer bits and truth values"
_describe(cumsum, "sums", _SUM_TYPE, "0")
_describe(cumprod, "products", _SUM_TYPE, "1")
_describe(cummax, "maxima", "x's", "-infinity, or the smallest number")
_describe(cummin, "minima", "x's", "infinity, or the largest number")
