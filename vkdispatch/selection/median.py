"""`vd.median`: the middle of each sorted row.

array      elements along the axes; axes that are not neighbours are moved together first (see `rearrange`)
rows       one for each element of the result, in its order
sorted     rows in ascending order, NaN last                                           (see `sorting`)
middle     the mean of the two elements in the middle, or the element there; the last one if it is NaN
"""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, is_float_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.arguments import DTypeLike
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import wide_type
from vkdispatch.rearrange.transposing import launch_transpose
from vkdispatch.reduce.accumulators import make_sum
from vkdispatch.reduce.arguments import check_real, count_or_warn, mean_type, parse_call
from vkdispatch.reduce.launching import reduce_array
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.launching import Rows, sort_rows
from vkdispatch.sorting.rearranging import Along, into_rows

_GROUP = 128
_LONGEST = 0xFFFFFFFF


@array_function
def median(
    x: operands.ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike = None,
    out: Buffer[Any] | None = None,
    output_map: operands.OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the median along axes, like `numpy.median`; NaN if an element is NaN.

    For an even number of elements it is the mean of the middle two. The median of no elements is NaN, with a
    RuntimeWarning.

    Parameters
    ----------
    x
        A buffer of integers, floats or booleans, or a map called with its arguments.
    axis
        An axis or several; None: all.
    keepdims
        Whether to keep the reduced axes, with length one.
    dtype
        The dtype of the result, a float. None is float64 for integers and booleans, else the dtype of `x`.
        The mean of two elements is computed in this dtype, or in float32 for float16 and bfloat16.
    out
        A buffer for the result, with its shape and dtype; None creates one.
    output_map
        A `vd.map` that is applied to each result; its first parameter is the value.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    Buffer
        Of the shape of `x` without the reduced axes.

    Raises
    ------
    TypeError
        `x` is complex or has vectors or matrices, or another argument has a wrong type.
    ValueError
        There is no such axis, there are 2**32 or more elements for one median, or `dtype` or `out` does not
        fit.
    NotImplementedError
        The result is float64, which the device lacks; pass a `dtype`.

    Examples
    --------
    >>> float(vd.median(vd.asbuffer(np.array([5, 1, 3], np.float32))))
    3.0
    """
    array, call = parse_call(x, axis, out, keepdims, output_map, graph)
    if not is_scalar(array.var_type):
        raise ArgumentTypeError(
            f"x: expected integers, floats or booleans, got {array.var_type.name}; map them to numbers"
        )
    check_real("median", array.var_type, dtype)
    kind = mean_type("median", array.var_type, dtype, array.context)
    if array.size == 0:
        count = count_or_warn(array, call, "Mean of empty slice.", 0)
        return reduce_array(
            array, make_sum(array.var_type, wide_type(kind), kind, True), call, (float(count),)
        )
    length = call.length(array.shape)
    if length > _LONGEST:
        raise ArgumentValueError(f"axis: {length} elements for one median are too many; at most 2**32 - 1")
    to, result = operands.prepare_output(
        out, output_map, call.shape(array.shape), kind, array.context, before=[array]
    )
    rows = _sort(array, sorted(call.axes), length, graph)
    _make_middle_kernel(array.var_type, to.sink)(result, rows, *to.arguments, length, graph=graph)
    return result


def _sort(
    array: operands.Operand, axes: Sequence[int], length: int, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the elements along the axes as sorted rows."""
    shape = array.shape
    if axes and axes[-1] - axes[0] >= len(axes):
        order = [*(axis for axis in range(len(shape)) if axis not in axes), *axes]
        moved: Buffer[Any] = function_buffer(array.size, array.var_type, context=array.context)
        launch_transpose(array, order, operands.parse_output(None, array.var_type), moved, graph)
        array, along = operands.parse_operand(moved), Along(array.size // length, length, 1)
    else:
        after = math.prod(shape[axes[-1] + 1 :]) if axes else 1
        along = Along(array.size // (length * after), length, after)
    kind = array.var_type
    if array.source.is_plain and along.in_place:
        source: Buffer[Any] = array.arguments[0]
        rows: Buffer[Any] = function_buffer(array.size, kind, context=array.context)
    else:
        source = rows = into_rows(array, along, graph)
    sort_rows(source, Order(kind), Rows(along.rows.count, length), keys_to=rows, graph=graph)
    return rows


@store_results
def _make_middle_kernel(kind: DType, sink: operands.Sink) -> ShaderFunction:
    """Return the kernel that stores the middle of sorted rows.

    Its arguments are the result, the rows, those of the sink, and the length of a row.
    """
    source = operands.plain_source(kind).elementwise()
    wide = wide_type(sink.value_type)

    def body(result: Any, rows: Any, extras: Any, length: Any) -> None:
        row = vc.global_invocation_id().x
        first = (row * length).to_register("median_first")

        def element(place: Any) -> Any:
            value = source.value([rows], first + place)
            return value.to_dtype(wide).to_register()

        low, high = element((length - 1) >> 1), element(length >> 1)
        # one element is not added to itself: the sum might overflow
        middle = vc.select((length & 1) == 1, low, (low + high) * 0.5)
        if is_float_dtype(kind):
            last = element(length - 1)
            middle = vc.select(vc.isnan(last), last, middle)
        sink.store(result, extras, row, middle)

    tables = buffers(median_result=sink.out_type, median_rows=kind)
    arguments = [*tables, sink.parameters, *numbers("median_length")]
    return trace_kernel("median", body, arguments, _GROUP, exec_size="median_result.size")
