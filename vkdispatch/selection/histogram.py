"""`vd.histogram` and `vd.bincount`: counts of elements between edges, and of numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer
from vkdispatch.base.dtype import DType, is_float_dtype, is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.arguments import parse_int
from vkdispatch.families.calls import agree_on_size, array_function, repeatable
from vkdispatch.families.kernels import buffers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.reduce.accumulators import make_sum
from vkdispatch.reduce.launching import Call, reduce_array
from vkdispatch.selection.counting import BinnedTask, Binning, count_bins, store_counts
from vkdispatch.selection.edges import Bins, find_extremes, make_bins, read_extremes
from vkdispatch.selection.tuning import parse_size
from vkdispatch.selection.weighing import sum_weights
from vkdispatch.shader.shader_function import ShaderFunction

# ---- `vd.bincount`: how often each number occurs ---------------------------------------------------------


_BINS = Binning("value")
_MAX_BINS = 1 << 32
_UNKNOWN = "how many counts there are"
_NARROW = (dtype.int8, dtype.uint8, dtype.int16, dtype.uint16, dtype.bool_)


@array_function
def bincount(
    x: operands.ArrayLike,
    weights: operands.ArrayLike | None = None,
    minlength: int = 0,
    size: int | None = None,
    *,
    output_map: operands.ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Count the occurrences of each number from 0 on, like `numpy.bincount`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments, of integers or booleans. Several axes are flattened.
    weights
        An array of the shape of `x`: the weight of each element. Sums of floats are rounded once, and are
        accurate to within float64; the same input gives the same bits.
    minlength
        The minimum number of counts.
    size
        The number of counts. Larger and negative numbers are then not counted, and the call does not wait.
        None: one more than the largest number, for which the call waits. Graphs need a size.
    output_map
        A `vd.map` that is applied to each count.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    Counts as int64, or with weights their sums as float64.

    Raises
    ------
    TypeError
        `x` is not an array of integers, or `weights` is not an array of real numbers.
    ValueError
        A number is negative and there is no `size`; shapes differ; `minlength` or `size` is negative.
    RuntimeError
        `size` is None in a graph.
    NotImplementedError
        There are `weights`, and the device has no float64.

    Examples
    --------
    >>> vd.bincount(vd.asbuffer(np.array([0, 1, 1, 3], np.int32))).read(0)
    array([1, 2, 0, 1])
    """
    least = parse_int(minlength, "minlength", least=0)
    if size is not None or getattr(x, "size", None) == 0:
        _parse(x, weights)
        bins = least if size is None else max(parse_int(size, "size", least=0), least)
    else:
        parse_size(size, graph, _UNKNOWN)
        bins = _read_bins(_find_extremes(x, weights), least)
    return _count_numbers(x, weights, bins, output_map, graph)


def _parse(x: operands.ArrayLike, weights: operands.ArrayLike | None) -> operands.Operand:
    values = operands.parse_operand(x, "x")
    kind = values.var_type
    if kind is not dtype.bool_ and not (is_scalar(kind) and is_integer_dtype(kind)) and kind not in _NARROW:
        raise ArgumentTypeError(f"x: expected integers, got {kind.name}; convert them with a map")
    if weights is None:
        return values
    parsed = operands.parse_operand(weights, "weights")
    if not is_scalar(parsed.var_type):
        raise ArgumentTypeError(f"weights: expected real numbers, got {parsed.var_type.name}; map parts")
    if parsed.shape != values.shape:
        raise ArgumentValueError(
            f"weights: expected an array of the shape of x, {values.shape}, got {parsed.shape}"
        )
    return values


@repeatable
def _find_extremes(x: operands.ArrayLike, weights: operands.ArrayLike | None) -> Buffer[Any]:
    """Check the arrays, and return the extremes that decide the number of counts. It does not wait."""
    return find_extremes(_parse(x, weights), None)


def _read_bins(extremes: Buffer[Any], least: int) -> int:
    """Wait for the largest number, and return the number of counts."""
    sizes = []
    for low, high in read_extremes(extremes):
        if low < 0:
            raise ArgumentValueError(f"x: expected numbers from 0 on, got {int(low)}")
        if int(high) >= _MAX_BINS - 1:
            raise ArgumentValueError(
                f"x: {int(high)} would need as many counts; expected numbers below 2**32 - 1"
            )
        sizes.append(max(int(high) + 1, least))
    return agree_on_size(sizes, "x", "size=")


@repeatable
def _count_numbers(
    x: operands.ArrayLike,
    weights: operands.ArrayLike | None,
    bins: int,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return `bins` counts, or sums of weights. It does not wait."""
    values = operands.parse_operand(x, "x")
    arrays = [values] if weights is None else [values, operands.parse_operand(weights, "weights")]
    kind = dtype.int64 if weights is None else dtype.float64
    sink, counts = operands.prepare_output(None, output_map, (bins,), kind, values.context, elsewhere=arrays)
    if bins == 0:
        return counts
    if values.size == 0:
        return store_counts(asbuffer(np.zeros(bins, np.uint32), context=values.context), counts, sink, graph)
    task = BinnedTask(values, _BINS, None, bins, counts, sink, graph)
    return count_bins(task) if weights is None else sum_weights(task, arrays[1])


# ---- `vd.histogram`: counts of the elements between edges ------------------------------------------------


_GROUP = 256


@array_function
def histogram(
    x: operands.ArrayLike,
    bins: int | Sequence[float] | np.ndarray[Any, Any] | Buffer[Any] = 10,
    range: Sequence[float] | None = None,
    density: bool | None = None,
    weights: operands.ArrayLike | None = None,
    *,
    output_map: operands.ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Count the elements between edges, with the same counts as `numpy.histogram`.

    A bin includes its left edge; the last one includes both. Elements outside, and NaN, are not counted.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments, of integers, floats or booleans, of any shape.
    bins
        The number of bins of equal width; or the ascending edges, as a sequence, or as a buffer of one axis,
        whose values are not checked.
    range
        The outer edges, two finite numbers, for bins of equal width. None: the smallest and the largest
        element, for which the call waits. In a graph it does not wait, and the edges stay on the device.
    density
        Whether to return a density, whose integral is 1.
    weights
        An array of the shape of `x`: the weight of each element. Sums of floats are rounded once, and are
        accurate to within float64; the same input gives the same bits.
    output_map
        A `vd.map` that is applied to each count.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    counts
        int64; with weights, their dtype (int64 for booleans); with `density`, float64.
    edges
        float64; for bins of equal width and floating-point `x`, the dtype of `x`. If `bins` is a buffer, that
        buffer.

    Raises
    ------
    TypeError
        `x` or `weights` is not an array of real numbers, or `bins` has another type.
    ValueError
        Shapes differ, `bins` is not positive or not ascending, `range` is not finite or descending; the
        smallest or largest element is not finite (not in graphs); or there are more bins than numbers between
        the edges.
    NotImplementedError
        The device has no float64, and edges of 64-bit elements, edges in a graph, `density` or sums of floats
        need it.

    Examples
    --------
    >>> counts, edges = vd.histogram(vd.asbuffer(np.array([1, 2, 1, 4], np.float32)), bins=3)
    >>> counts.read(0)
    array([2, 1, 1])
    """
    values = _check_real(operands.parse_operand(x, "x"), "x")
    if weights is not None:
        parsed = _check_real(operands.parse_operand(weights, "weights"), "weights")
        if parsed.shape != values.shape:
            raise ArgumentValueError(
                f"weights: expected an array of the shape of x, {values.shape}, got {parsed.shape}"
            )
    made = make_bins(values, bins, range, graph)
    return _count(x, weights, made, bool(density), output_map, graph), made.edges


def _count(
    x: operands.ArrayLike,
    weights: operands.ArrayLike | None,
    bins: Bins,
    has_density: bool,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return the counts of bins, sums of weights, or densities. It does not wait."""
    values = operands.parse_operand(x, "x")
    weighting = None if weights is None else operands.parse_operand(weights, "weights")
    kind = dtype.float64 if has_density else _count_type(weighting)
    last = operands.parse_output(output_map, kind, (bins.count,))
    operands.check_overlap((), last, elsewhere=[values] if weighting is None else [values, weighting])
    sink = operands.parse_output(None, kind, (bins.count,)) if has_density else last
    counts = operands.prepare_result(None, (bins.count,), sink.out_type, values.context)
    task = BinnedTask(values, bins.binning, bins.compared, bins.count, counts, sink, graph)
    if values.size == 0:
        _store_zeros(counts, sink, graph)
    elif weighting is None:
        count_bins(task)
    else:
        sum_weights(task, weighting)
    return _divide(counts, bins.edges, last, graph) if has_density else counts


def _check_real(values: operands.Operand, name: str) -> operands.Operand:
    if not is_scalar(values.var_type):
        raise ArgumentTypeError(
            f"{name}: expected integers, floats or booleans, got {values.var_type.name}; map its parts"
        )
    return values


def _count_type(weights: operands.Operand | None) -> DType:
    if weights is None or weights.var_type is dtype.bool_:
        return dtype.int64
    return weights.var_type


def _store_zeros(counts: Buffer[Any], sink: operands.Output, graph: CommandGraph | None) -> None:
    zeros = asbuffer(np.zeros(counts.size, np.uint32), context=counts.context)
    store_counts(zeros, counts, sink, graph)


def _divide(
    counts: Buffer[Any], edges: Buffer[Any], sink: operands.Output, graph: CommandGraph | None
) -> Buffer[Any]:
    wide = dtype.float64
    total = reduce_array(operands.parse_operand(counts), make_sum(wide, wide, wide), Call((0,), graph=graph))
    dense = operands.prepare_result(None, counts.shape, sink.out_type, counts.context)
    _make_divide_kernel(edges.var_type, sink.sink)(counts, edges, total, dense, *sink.arguments, graph=graph)
    return dense


@store_results
def _make_divide_kernel(kind: DType, sink: operands.Sink) -> ShaderFunction:
    def trace(counts: Any, edges: Any, total: Any, dense: Any, mapping: Any) -> None:
        index = vc.global_invocation_id().x
        wide = dtype.float64
        if is_float_dtype(kind):
            # the difference is rounded to the dtype of edges, as NumPy's is
            width = (edges[index + 1] - edges[index]).to_dtype(wide)
        else:
            width = edges[index + 1].to_dtype(wide) - edges[index].to_dtype(wide)
        sink.store(dense, mapping, index, (counts[index] / width / total[0]).to_register())

    tables = buffers(counts=dtype.float64, edges=kind, total=dtype.float64, dense=sink.out_type)
    return trace_kernel("density", trace, [*tables, sink.parameters], _GROUP, exec_size="dense.size")
