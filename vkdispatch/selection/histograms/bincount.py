"""`vd.bincount`: how often each number is there."""

from typing import Any

import numpy as np

from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.calls import array_function, is_recorded
from vkdispatch.arrays.numbers import checked_int
from vkdispatch.arrays.operand import Operand, operand
from vkdispatch.arrays.output import output
from vkdispatch.arrays.repeating import repeatable
from vkdispatch.arrays.results import result
from vkdispatch.arrays.waiting import agreed_size
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer
from vkdispatch.base.dtype import DType, is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.selection.histograms.binning import Binning
from vkdispatch.selection.histograms.counting import counted, stored
from vkdispatch.selection.histograms.extremes import extremes, extremes_read
from vkdispatch.selection.histograms.weighing import weighed
from vkdispatch.selection.sizes import checked_size

_BINS = Binning("value")
_MOST_BINS = 1 << 32
_NARROW = (dtype.int8, dtype.uint8, dtype.int16, dtype.uint16, dtype.bool_)


@array_function
def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    size: int | None = None,
    *,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Count how often each number from 0 on is there: `np.bincount`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments; of integers or truth values. All of its axes are taken
        as one.
    weights
        An array of the shape of `x`: what each element counts for. Sums of floats are exact but for one
        rounding, as far as their float64 can tell, and the same bits each time.
    minlength
        The least number of counts.
    size
        The number of counts: numbers beyond, and negative ones, are not counted, and nothing is waited for.
        None: one more than the largest number, for which the call waits; graphs need `size`.
    output_map
        A map that is given each count, of the type said below.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    Counts, int64; with weights their sums, float64.

    Raises
    ------
    TypeError
        `x` is no array of integers, or `weights` none of real numbers.
    ValueError
        Without `size`, a number is negative; shapes differ; `minlength` or `size` is negative.
    RuntimeError
        Without `size` in a graph.
    NotImplementedError
        There are `weights`, and the device has no float64.
    """
    least = checked_int(minlength, "minlength", least=0)
    if size is not None or getattr(x, "size", None) == 0:
        _check(x, weights)
        bins = least if size is None else max(checked_size(size), least)
    elif is_recorded(graph):
        raise UsageError("size: how many counts there are is not known in a graph; give size=")
    else:
        bins = _length(_find_extremes(x, weights), x.var_type, least)
    return _counts(x, weights, bins, output_map, graph)


def _check(x: Any, weights: Any) -> Operand:
    values = operand(x, "x")
    kind = values.var_type
    if kind is not dtype.bool_ and not (is_scalar(kind) and is_integer_dtype(kind)) and kind not in _NARROW:
        raise ArgumentTypeError(f"x: expected integers, got {kind.name}; convert them with a map")
    if weights is None:
        return values
    weighing = operand(weights, "weights")
    if not is_scalar(weighing.var_type):
        raise ArgumentTypeError(f"weights: expected real numbers, got {weighing.var_type.name}; map parts")
    if weighing.shape != values.shape:
        raise ArgumentValueError(
            f"weights: expected an array of the shape of x, {values.shape}, got {weighing.shape}"
        )
    return values


@repeatable
def _find_extremes(x: Any, weights: Any) -> Buffer[Any]:
    """Check the arrays, and return the extremes that decide how many counts there are; waits for nothing."""
    return extremes(_check(x, weights), None)


def _length(found: Buffer[Any], kind: DType, least: int) -> int:
    """Return the number of counts that the largest number needs; waits for it."""
    sizes = []
    for low, high in extremes_read(found, kind):
        if low < 0:
            raise ArgumentValueError(f"x: expected numbers from 0 on, got {int(low)}")
        if int(high) >= _MOST_BINS - 1:
            raise ArgumentValueError(
                f"x: {int(high)} would need as many counts; expected numbers below 2**32 - 1"
            )
        sizes.append(max(int(high) + 1, least))
    return agreed_size(sizes, "x", "size=")


@repeatable
def _counts(x: Any, weights: Any, bins: int, output_map: Any, graph: CommandGraph | None) -> Buffer[Any]:
    """Return so many counts, or sums of weights; waits for nothing."""
    values = operand(x, "x")
    weighing = None if weights is None else operand(weights, "weights")
    sink = output(output_map, dtype.int64 if weighing is None else dtype.float64, (bins,))
    check_overlap((), sink, elsewhere=[values] if weighing is None else [values, weighing])
    counts = result(None, (bins,), sink.out_type, values.context)
    if bins == 0:
        return counts
    if values.size == 0:
        return stored(asbuffer(np.zeros(bins, np.uint32), context=values.context), counts, sink, graph)
    if weighing is None:
        return counted(values, _BINS, None, bins, counts, sink, graph)
    return weighed(values, weighing, _BINS, None, bins, counts, sink, graph)
