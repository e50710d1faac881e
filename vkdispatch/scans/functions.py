"""`vd.cumsum`, `vd.cumprod`, `vd.cummax`, `vd.cummin`: running sums, products and extremes, as NumPy's."""

from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, bool_, is_scalar, uint32
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import DTypeLike, parse_dtype
from vkdispatch.families.calls import define_variant
from vkdispatch.families.operands import ArrayLike, OutputLike, parse_operand
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import sum_type, wide_type
from vkdispatch.scans.launching import Direction
from vkdispatch.scans.operations import ACCUMULATIONS, ScanOp, check_dtype, make_operation, parse_identity
from vkdispatch.scans.scan_function import ScanOptions, check_convertible, run_scan
from vkdispatch.shader.map import MappingFunction

_DOCUMENTATION = """Return {summary}.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    axis
        The axis to scan along. None scans all elements as one row.
    dtype
        dtype of the {what}. Default: {default}.
    out
        A buffer for the result, with its shape and dtype. It can be x, or a buffer that a map of x reads only
        at the mapped index.
    exclusive
        Whether each result combines only the elements before it. The first result is then {identity}.
    reverse
        Whether to start with the last element.
    segments
        Where segments begin; the scan restarts there. Either a buffer of bool with x's shape, or, for one
        row, a buffer of integers: the indices, in any order. Indices beyond the end, and negative ones, are
        ignored. Negative ones raise a ValueError at a later wait or read, unless the call is recorded.
    output_map
        A `vd.map` that is applied to each result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of x's shape, or of x's size if `axis` is None, of `dtype`, or of what the output map returns.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, or the dtype has no such {what}.

    Examples
    --------
    >>> vd.{name}(vd.asbuffer(np.array({values}, np.float32))).read(0)
    array({results}, dtype=float32)
    """


# sums of booleans tell whether any was true, products whether all were
_BOOLEAN_NAMES = {"cumsum": "cummax", "cumprod": "cummin"}


@memoize
def _make_operation(name: str, kind: DType) -> ScanOp:
    function, identity = ACCUMULATIONS[name]
    # the identity is that of the dtype, which may be narrower than the one that is combined
    parts = (int(name == "cummin"),) if kind is bool_ else parse_identity(identity, kind)
    combined = uint32 if kind is bool_ else wide_type(kind)
    # extremes depend on the order of their operands: of 0.0 and -0.0 the first one is returned
    return make_operation(name, function, combined, parts, is_commutative=name in ("cumsum", "cumprod"))


@memoize
def _boolean_map(kind: DType) -> MappingFunction:
    """Return a map that compares numbers with 0. A conversion to integers would drop fractions first."""
    return MappingFunction([kind], bool_, lambda value: value != 0)


# the signature of `cumsum` and the others
def _accumulate(  # noqa: PLR0913
    name: str,
    x: ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike = None,
    out: Buffer[Any] | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    segments: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    direction = Direction(is_reverse=bool(reverse), is_exclusive=bool(exclusive))
    options = ScanOptions(axis, out, direction, segments, output_map, graph)
    values = parse_operand(x)
    if dtype is not None:
        kind = parse_dtype(dtype)
    elif name in ("cumsum", "cumprod"):
        kind = sum_type(values.var_type)
    else:
        kind = values.var_type
    if kind is bool_ and is_scalar(values.var_type) and values.var_type is not bool_:
        values = parse_operand(_boolean_map(values.var_type)(x))
    check_dtype(name, kind)
    check_convertible(name, values.var_type, kind)
    operation = _make_operation(_BOOLEAN_NAMES.get(name, name) if kind is bool_ else name, kind)
    return run_scan(name, operation, values, kind, options)


_SUM_TYPE = "that of x, but int64 or uint64 for booleans and narrower integers"
cumsum = define_variant(
    _accumulate,
    "cumsum",
    "cumsum",
    _DOCUMENTATION.format(
        name="cumsum",
        values="[1, 2, 3, 4]",
        results="[ 1.,  3.,  6., 10.]",
        summary="running sums, as `numpy.cumsum`",
        what="sums",
        default=_SUM_TYPE,
        identity="0",
    ),
)
cumprod = define_variant(
    _accumulate,
    "cumprod",
    "cumprod",
    _DOCUMENTATION.format(
        name="cumprod",
        values="[1, 2, 3, 4]",
        results="[ 1.,  2.,  6., 24.]",
        summary="running products, as `numpy.cumprod`",
        what="products",
        default=_SUM_TYPE,
        identity="1",
    ),
)
cummax = define_variant(
    _accumulate,
    "cummax",
    "cummax",
    _DOCUMENTATION.format(
        name="cummax",
        values="[1, 3, 2, 5]",
        results="[1., 3., 3., 5.]",
        summary="the largest element so far, as `numpy.maximum.accumulate`: NaN from the first NaN on",
        what="maxima",
        default="that of x",
        identity="-infinity, or the smallest number",
    ),
)
cummin = define_variant(
    _accumulate,
    "cummin",
    "cummin",
    _DOCUMENTATION.format(
        name="cummin",
        values="[4, 3, 5, 1]",
        results="[4., 3., 3., 1.]",
        summary="the smallest element so far, as `numpy.minimum.accumulate`: NaN from the first NaN on",
        what="minima",
        default="that of x",
        identity="infinity, or the largest number",
    ),
)
