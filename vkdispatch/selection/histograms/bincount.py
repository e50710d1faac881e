"""`vd.bincount`: how often each number occurs."""

from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer
from vkdispatch.base.dtype import DType, is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_int
from vkdispatch.families.calls import agree_on_size, array_function, repeatable
from vkdispatch.families.operands import ArrayLike, Operand, ResultMap, parse_operand, prepare_output
from vkdispatch.selection.histograms.binning import Binning
from vkdispatch.selection.histograms.counting import BinnedTask, count_bins, store_counts
from vkdispatch.selection.histograms.extremes import find_extremes, read_extremes
from vkdispatch.selection.histograms.weighing import sum_weights
from vkdispatch.selection.sizes import parse_size

_BINS = Binning("value")
_MOST_BINS = 1 << 32
_UNKNOWN = "how many counts there are"
_NARROW = (dtype.int8, dtype.uint8, dtype.int16, dtype.uint16, dtype.bool_)


@array_function
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    size: int | None = None,
    *,
    output_map: ResultMap | None = None,
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
        bins = _read_bins(_find_extremes(x, weights), x.var_type, least)
    return _count(x, weights, bins, output_map, graph)


def _parse(x: ArrayLike, weights: ArrayLike | None) -> Operand:
    values = parse_operand(x, "x")
    kind = values.var_type
    if kind is not dtype.bool_ and not (is_scalar(kind) and is_integer_dtype(kind)) and kind not in _NARROW:
        raise ArgumentTypeError(f"x: expected integers, got {kind.name}; convert them with a map")
    if weights is None:
        return values
    parsed = parse_operand(weights, "weights")
    if not is_scalar(parsed.var_type):
        raise ArgumentTypeError(f"weights: expected real numbers, got {parsed.var_type.name}; map parts")
    if parsed.shape != values.shape:
        raise ArgumentValueError(
            f"weights: expected an array of the shape of x, {values.shape}, got {parsed.shape}"
        )
    return values


@repeatable
def _find_extremes(x: ArrayLike, weights: ArrayLike | None) -> Buffer[Any]:
    """Check the arrays, and return the extremes that decide the number of counts. It does not wait."""
    return find_extremes(_parse(x, weights), None)


def _read_bins(extremes: Buffer[Any], kind: DType, least: int) -> int:
    """Wait for the largest number, and return the number of counts."""
    sizes = []
    for low, high in read_extremes(extremes, kind):
        if low < 0:
            raise ArgumentValueError(f"x: expected numbers from 0 on, got {int(low)}")
        if int(high) >= _MOST_BINS - 1:
            raise ArgumentValueError(
                f"x: {int(high)} would need as many counts; expected numbers below 2**32 - 1"
            )
        sizes.append(max(int(high) + 1, least))
    return agree_on_size(sizes, "x", "size=")


@repeatable
def _count(
    x: ArrayLike,
    weights: ArrayLike | None,
    bins: int,
    output_map: ResultMap | None,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return `bins` counts, or sums of weights. It does not wait."""
    values = parse_operand(x, "x")
    arrays = [values] if weights is None else [values, parse_operand(weights, "weights")]
    kind = dtype.int64 if weights is None else dtype.float64
    sink, counts = prepare_output(None, output_map, (bins,), kind, values.context, elsewhere=arrays)
    if bins == 0:
        return counts
    if values.size == 0:
        return store_counts(asbuffer(np.zeros(bins, np.uint32), context=values.context), counts, sink, graph)
    task = BinnedTask(values, _BINS, None, bins, counts, sink, graph)
    return count_bins(task) if weights is None else sum_weights(task, arrays[1])
