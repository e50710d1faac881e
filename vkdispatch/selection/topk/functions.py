"""`vd.topk`: the largest or smallest elements along an axis, and where they are.

    rows         elements along the axis, of every row
    candidates   of long rows those that can be among the first k: radix select, or what a sample tells (see
                 `candidates`); rows of a few thousand are done at once (see `rowwise`), and short ones left
                 as they are
    sorted       positions of the candidates in their order, largest (or smallest) first      (see `sorting`)
    taken        the first k of each row: their positions, and the elements there

Candidates lie in the order of the row and sorts are stable, so that of equal elements those come first that
lie first.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.axes import around, checked_axis
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.numbers import checked_int
from vkdispatch.arrays.operand import Operand, operand, plain_source
from vkdispatch.arrays.output import Output, Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.results import result
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.selection.topk.narrowing import candidates, planned
from vkdispatch.selection.topk.whole_rows import first_of_rows, fits, is_possible
from vkdispatch.shader.parameters import given
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order, is_sortable
from vkdispatch.sorting.launching import Rows, position_type, sort_rows
from vkdispatch.sorting.rearranging import Along, copied_type, into_rows

_GROUP = 128
_NUMBERS = ("top_pitch", "top_candidates", "top_length", "top_k", "top_after")
# Candidates of a row that one workgroup goes over.
_MOST_AT_ONCE = 1 << 18


@array_function
def topk(
    x: Any,
    k: int,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Any = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Find the k largest elements along an axis, or the smallest: `torch.topk`.

    NaN counts as larger than any number. Of equal elements those are taken that come first.

    Parameters
    ----------
    x
        A buffer of scalars or complex numbers (ordered by their real parts, then their imaginary ones), or a
        map called with its arguments.
    k
        How many, from 0 to the length of the axis.
    axis
        The axis along which they are looked for.
    largest
        Whether the largest are wanted; else the smallest.
    sorted
        As in torch. Results are sorted here, whatever it says: best first.
    out
        Where the results go: a pair of buffers, for values and indices, either of them None.
    output_map
        A map that is given each value found.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    values, indices
        Two buffers of the shape of `x` with k elements along the axis; indices along the axis are int64.

    Raises
    ------
    TypeError
        `x` is no array of numbers or truth values, or `k` no int.
    ValueError
        There is no such axis, or it has fewer elements than k; `out` does not fit.
    """
    values = operand(x, "x")
    if not is_sortable(values.var_type):
        raise ArgumentTypeError(f"x: expected numbers or truth values, got {values.var_type.name}")
    axis = checked_axis(axis, len(values.shape))
    along = Along(*around(values.shape, axis))
    k = checked_int(k, "k", least=0, most=along.length, note=", the length of the axis")
    shape = (*values.shape[:axis], k, *values.shape[axis + 1 :])
    values_out, indices_out = _pair(out)
    to = output(output_map, values.var_type, shape)
    found = result(values_out, shape, to.out_type, values.context, "out[0]")
    indices = result(indices_out, shape, dtype.int64, values.context, "out[1]")
    check_overlap([("out[0]", values_out), ("out[1]", indices_out)], to, elsewhere=[values])
    if found.size == 0:
        return found, indices
    order = Order(values.var_type, descending=bool(largest))
    in_memory = values.source.plain and along.in_place
    source = values.arguments[0] if in_memory else into_rows(values, along, graph)
    rows, through = along.rows, None
    plan = planned(along.length, k)
    at_once = fits(order, along.length, k)
    if plan is not None:
        source, through = candidates(source, order, rows, k, plan, graph)
        rows = Rows(rows.count, plan.room)
        at_once = is_possible(order, k) and rows.length <= _MOST_AT_ONCE
    if at_once:
        positions, pitch = first_of_rows(source, order, rows, k, graph), k
    else:
        positions, pitch = (
            function_buffer(rows.size, position_type(rows.length), context=values.context),
            rows.length,
        )
        sort_rows(source, order, rows, positions_to=positions, graph=graph)
    _take(values, along, rows.length, pitch, positions, through, k, found, indices, to, graph)
    return found, indices


def _pair(out: object) -> tuple[Any, Any]:
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ArgumentTypeError(f"out: expected a pair, for values and indices, got {given(out)}")
    return out[0], out[1]


@record
class _Taking:
    """What the kernel that takes elements is specialised for.

    Attributes
    ----------
    source, sink
        Where elements come from and go.
    positions
        The type of positions.
    through
        Whether positions are those of candidates.
    several
        Whether there are several rows.
    """

    source: Source
    sink: Sink
    positions: DType
    through: bool
    several: bool


def _take(
    x: Operand,
    along: Along,
    candidates: int,
    pitch: int,
    positions: Buffer[Any],
    through: Buffer[Any] | None,
    k: int,
    values: Buffer[Any],
    indices: Buffer[Any],
    to: Output,
    graph: CommandGraph | None,
) -> None:
    """Store the first k positions of each row, and what is there.

    `pitch` is from row to row of positions, which are in the row, or among so many candidates whose positions
    are in `through`.
    """
    source, sink = x.source.elementwise(), to.sink
    if x.source.plain and sink.mapping is None:
        # bits are moved as they are
        kind = copied_type(x.var_type)
        source, sink = plain_source(kind).elementwise(), output(None, kind).sink
    several = along.rows.count > 1
    # numbers that say nothing may not fit 32 bits
    numbers = (pitch, candidates, along.length, k, along.after) if several else (1, 1, 1, 1, 1)
    kernel = _taking(_Taking(source, sink, positions.var_type, through is not None, several))
    own = (positions,) if through is None else (positions, through)
    kernel(values, indices, *own, *x.arguments, *to.arguments, *numbers, graph=graph)


@remembered
def _taking(form: _Taking) -> ShaderFunction:
    sink, source = form.sink, form.source
    arguments = [
        ("top_values", buffer[sink.out_type]),
        ("top_indices", buffer[dtype.int64]),
        ("top_positions", buffer[form.positions]),
        *([("top_through", buffer[dtype.uint32])] if form.through else []),
        *source.parameters,
        *sink.parameters,
        *((name, constant[dtype.uint32]) for name in _NUMBERS),
    ]
    count = len(source.annotations)

    def trace(values: Any, indices: Any, positions: Any, *others: Any) -> None:
        if form.through:
            through, *others = others  # type: ignore[assignment]
        inputs, extras = others[:count], others[count : -len(_NUMBERS)]
        pitch, among, length, k, after = others[-len(_NUMBERS) :]
        element = vc.global_invocation_id().x
        if not form.several:
            found = _position(positions[element])
            if form.through:
                found = through[found].to_register("top_position")
            sink.store(values, extras, element, source.value(inputs, found))
            indices[element] = found.to_dtype(dtype.int64)
            return
        block = (element // after).to_register("top_block")
        column = (element - block * after).to_register("top_column")
        outer = (block // k).to_register("top_outer")
        rank = block - outer * k
        row = (outer * after + column).to_register("top_row")
        found = _position(positions[row * pitch + rank])
        if form.through:
            found = through[row * among + found].to_register("top_position")
        place = (outer * length + found) * after + column
        sink.store(values, extras, element, source.value(inputs, place))
        indices[element] = found.to_dtype(dtype.int64)

    return traced("topk", trace, arguments, _GROUP, exec_size="top_values.size")


def _position(found: Any) -> Any:
    found = found.to_register("top_position")
    return found if found.var_type is dtype.uint32 else vc.pack_uint2x32(found).to_register()
