"""`vd.topk`: the largest or smallest elements along an axis, and where they are.

    rows         elements along the axis
    candidates   long rows are narrowed down to elements that may be among the first k (see `narrowing`); one
                 workgroup takes the first k of a row of a few thousand elements (see `whole_rows`)
    sorted       positions of the candidates, the largest (or smallest) first                 (see `sorting`)
    taken        the first k of each row: their positions, and the elements there

Candidates are in the order of the row and sorts are stable, so equal elements keep their order.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_axis, parse_int, split_shape
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import (
    ArrayLike,
    Operand,
    Output,
    ResultMap,
    Sink,
    check_overlap,
    parse_operand,
    parse_output,
    parse_pair,
    prepare_result,
)
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import memoize
from vkdispatch.selection.topk.narrowing import find_candidates, plan_narrowing
from vkdispatch.selection.topk.whole_rows import can_take_rows, suits_rows, take_first_of_rows
from vkdispatch.selection.tuning import tuning
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order, is_sortable
from vkdispatch.sorting.launching import Rows, position_type, sort_rows
from vkdispatch.sorting.outputs import unpack_position
from vkdispatch.sorting.rearranging import Along, choose_copy, into_rows

_GROUP = 128
_NUMBERS = ("top_pitch", "top_candidates", "top_length", "top_k", "top_after")


@array_function
def topk(
    x: ArrayLike,
    k: int,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Any = None,
    output_map: ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Find the k largest or smallest elements along an axis, like `torch.topk`.

    NaN is larger than any number. Of equal elements, those with smaller indices are taken first.

    Parameters
    ----------
    x
        A buffer of scalars or complex numbers (ordered by their real parts, then their imaginary ones), or a
        map called with its arguments.
    k
        The number of elements, from 0 to the length of the axis.
    axis
        The axis to search along.
    largest
        Whether to find the largest elements; otherwise the smallest.
    sorted
        Accepted for compatibility with torch and ignored: results are always sorted, the largest (or
        smallest) first.
    out
        A pair of buffers to write to, for values and indices; either can be None.
    output_map
        A `vd.map` that is applied to each value.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    values, indices
        Two buffers of the shape of `x`, with k elements along the axis; indices along the axis are int64.

    Raises
    ------
    TypeError
        `x` is not an array of numbers or booleans, or `k` is not an int.
    ValueError
        There is no such axis, or it has fewer elements than k; `out` does not fit.

    Examples
    --------
    >>> values, places = vd.topk(vd.asbuffer(np.array([5, 1, 4, 2], np.float32)), 2)
    >>> values.read(0)
    array([5., 4.], dtype=float32)
    >>> places.read(0)
    array([0, 2])
    """
    values = parse_operand(x, "x")
    if not is_sortable(values.var_type):
        raise ArgumentTypeError(f"x: expected numbers or booleans, got {values.var_type.name}")
    axis = parse_axis(axis, len(values.shape))
    along = Along(*split_shape(values.shape, axis))
    k = parse_int(k, "k", least=0, most=along.length, note=", the length of the axis")
    shape = (*values.shape[:axis], k, *values.shape[axis + 1 :])
    values_out, indices_out = parse_pair(out, "values and indices")
    to = parse_output(output_map, values.var_type, shape)
    top = prepare_result(values_out, shape, to.out_type, values.context, "out[0]")
    indices = prepare_result(indices_out, shape, dtype.int64, values.context, "out[1]")
    check_overlap([("out[0]", values_out), ("out[1]", indices_out)], to, elsewhere=[values])
    if top.size == 0:
        return top, indices
    order = Order(values.var_type, descending=bool(largest))
    has_rows = values.source.is_plain and along.in_place
    source = values.arguments[0] if has_rows else into_rows(values, along, graph)
    rows, through = along.rows, None
    plan = plan_narrowing(along.length, k)
    takes_rows = suits_rows(order, along.length, k)
    if plan is not None:
        source, through = find_candidates(source, order, rows, k, plan, graph)
        rows = Rows(rows.count, plan.room)
        takes_rows = can_take_rows(order, k) and rows.length <= tuning.row_candidates
    if takes_rows:
        positions, pitch = take_first_of_rows(source, order, rows, k, graph), k
    else:
        positions, pitch = (
            function_buffer(rows.size, position_type(rows.length), context=values.context),
            rows.length,
        )
        sort_rows(source, order, rows, positions_to=positions, graph=graph)
    choice = _Choice(positions, pitch, through, rows.length, k)
    _take(values, along, choice, (top, indices), to, graph)
    return top, indices


@record(eq=False)
class _Choice:
    """Which elements of each row are taken.

    Attributes
    ----------
    positions, pitch
        Their positions, and the distance of two rows of positions.
    through, candidates
        The positions of candidates, if `positions` are places among these, and the candidates of a row.
    k
        The number of elements.
    """

    positions: Buffer[Any]
    pitch: int
    through: Buffer[Any] | None
    candidates: int
    k: int


@record
class _TakeForm:
    """What the kernel that takes elements is specialised for.

    Attributes
    ----------
    source, sink
        Where elements come from and go.
    positions
        The type of positions.
    has_candidates
        Whether positions are places among candidates.
    has_rows
        Whether there are several rows.
    """

    source: Source
    sink: Sink
    positions: DType
    has_candidates: bool
    has_rows: bool


def _take(
    x: Operand,
    along: Along,
    choice: _Choice,
    results: tuple[Buffer[Any], Buffer[Any]],
    to: Output,
    graph: CommandGraph | None,
) -> None:
    """Store the first k elements of each row, and their indices."""
    source, sink = choose_copy(x, to)
    has_rows = along.rows.count > 1
    # numbers that the kernel does not use may exceed 32 bits
    numbers = (choice.pitch, choice.candidates, along.length, choice.k, along.after) if has_rows else (1,) * 5
    positions, through = choice.positions, choice.through
    kernel = _make_take_kernel(_TakeForm(source, sink, positions.var_type, through is not None, has_rows))
    own = (positions,) if through is None else (positions, through)
    kernel(*results, *own, *x.arguments, *to.arguments, *numbers, graph=graph)


@memoize
def _make_take_kernel(form: _TakeForm) -> ShaderFunction:
    sink, source = form.sink, form.source
    arguments = [
        ("top_values", buffer[sink.out_type]),
        ("top_indices", buffer[dtype.int64]),
        ("top_positions", buffer[form.positions]),
        *([("top_through", buffer[dtype.uint32])] if form.has_candidates else []),
        *source.parameters,
        *sink.parameters,
        *((name, constant[dtype.uint32]) for name in _NUMBERS),
    ]
    count = len(source.annotations)

    def trace(values: Any, indices: Any, positions: Any, *others: Any) -> None:
        if form.has_candidates:
            through, *others = others  # type: ignore[assignment]
        inputs, extras = others[:count], others[count : -len(_NUMBERS)]
        pitch, among, length, k, after = others[-len(_NUMBERS) :]
        element = vc.global_invocation_id().x
        if not form.has_rows:
            position = unpack_position(positions[element], "top_position")
            if form.has_candidates:
                position = through[position].to_register("top_position")
            sink.store(values, extras, element, source.value(inputs, position))
            indices[element] = position.to_dtype(dtype.int64)
            return
        block = (element // after).to_register("top_block")
        column = (element - block * after).to_register("top_column")
        outer = (block // k).to_register("top_outer")
        rank = block - outer * k
        row = (outer * after + column).to_register("top_row")
        position = unpack_position(positions[row * pitch + rank], "top_position")
        if form.has_candidates:
            position = through[row * among + position].to_register("top_position")
        place = (outer * length + position) * after + column
        sink.store(values, extras, element, source.value(inputs, place))
        indices[element] = position.to_dtype(dtype.int64)

    return trace_kernel("topk", trace, arguments, _GROUP, exec_size="top_values.size")
