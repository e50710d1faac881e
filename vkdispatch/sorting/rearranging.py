"""Elements on their way into rows, and from rows to where they belong.

    array (before, length, after)     element (b, k, a) of the array is key k of row b * after + a
    into rows                         what a map gives, or keys along an axis that is not the last
    out of rows                       sorted keys, values at the positions that keys had, positions themselves

Elements that no map touches are moved as unsigned integers, so that all of their bits stay as they are.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand, plain_source
from vkdispatch.arrays.output import Output, Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import raw_type
from vkdispatch.sorting.launching import Rows, position_type

_GROUP = 128
_U32 = constant[dtype.uint32]
_ODD = {6: dtype.uhvec3, 12: dtype.uvec3}
_RAW_SIZES = (1, 2, 4, 8, 16)


@record
class Along:
    """An array as rows: how many elements there are before, along and after the axis."""

    before: int
    length: int
    after: int

    @property
    def rows(self) -> Rows:
        """The rows."""
        return Rows(self.before * self.after, self.length)

    @property
    def in_place(self) -> bool:
        """Whether rows lie in memory as they are."""
        return self.after == 1


@record
class Moving:
    """What a kernel that moves elements is specialised for.

    Attributes
    ----------
    what
        "in": elements into rows; "sorted": elements of rows to where they belong; "taken": those at
        positions; "positions": the positions.
    source, sink
        Where elements come from and go; for positions no source.
    positions
        The type of positions; None where there are none.
    after
        Whether rows do not lie as they are.
    several
        Whether there are several rows of which the values lie where the keys do.
    """

    what: str
    source: Source | None
    sink: Sink
    positions: DType | None
    after: bool
    several: bool


@remembered
def moving_kernel(form: Moving) -> ShaderFunction:
    """Return the kernel that moves elements.

    Its arguments are the result, those of source, positions and sink, and the three numbers of an `Along`.
    """
    source_types = form.source.annotations if form.source else []
    source_names = form.source.names if form.source else []
    arguments = [
        ("sort_result", buffer[form.sink.out_type]),
        *zip(source_names, source_types, strict=True),
        *([("sort_positions", buffer[form.positions])] if form.positions else []),
        *form.sink.parameters,
        *((name, _U32) for name in ("sort_before", "sort_length", "sort_after")),
    ]

    def body(result: Any, *others: Any) -> None:
        *buffers, _, length, after = others
        inputs = buffers[: len(source_types)]
        extras = buffers[len(source_types) + bool(form.positions) :]
        element = vc.global_invocation_id().x
        place: Any = element  # of the element in rows
        if form.after:
            outer = element // (length * after)
            place = (outer * after + element % after) * length + element // after % length
        if form.what == "in":
            assert form.source is not None
            form.sink.store(result, extras, place, form.source.value(inputs, element))
            return
        if form.what == "sorted":
            assert form.source is not None
            form.sink.store(result, extras, element, form.source.value(inputs, place))
            return
        found = buffers[len(source_types)][place].to_register("sort_position")
        if form.what == "positions":
            form.sink.store(result, extras, element, _position(found, form.sink.value_type))
            return
        if form.positions is not dtype.uint32:
            found = vc.pack_uint2x32(found).to_register()
        if form.after:
            outer = element // (length * after)
            found = (outer * length + found) * after + element % after
        elif form.several:
            found = element - element % length + found
        assert form.source is not None
        form.sink.store(result, extras, element, form.source.value(inputs, found))

    return traced(f"sort_{form.what}", body, arguments, _GROUP, exec_size="sort_result.size")


def _position(found: Any, kind: DType) -> Any:
    """Return a position as a value of a type, or of a raw type that stands for one."""
    if kind is found.var_type:
        return found
    if kind is dtype.uvec2:
        return vc.to_uvec2(found, 0)
    if found.var_type is dtype.uint32:
        return found.to_dtype(kind)
    if kind.item_size == 8:
        return vc.pack_uint2x32(found).to_dtype(kind)
    return found[0].to_dtype(kind)


def moved_type(kind: DType) -> DType:
    """Return the type as which elements are moved: of unsigned integers where one has the size."""
    if kind.item_size in _RAW_SIZES:
        return raw_type(kind)
    return _ODD.get(kind.item_size, kind)


def into_rows(x: Operand, along: Along, graph: CommandGraph | None) -> Buffer[Any]:
    """Return the elements of an array as rows in memory."""
    rows: Buffer[Any] = function_buffer(x.size, x.var_type)
    source, sink = _as_they_are(x, output(None, x.var_type))
    form = Moving("in", source, sink, None, not along.in_place, False)
    _launch(form, rows, x.arguments, None, (), along, graph)
    return rows


def out_of_rows(
    result: Buffer[Any], rows: Buffer[Any], to: Output, along: Along, graph: CommandGraph | None
) -> None:
    """Store elements of rows where they belong."""
    plain = to.sink.mapping is None
    source = plain_source(moved_type(rows.var_type) if plain else rows.var_type)
    sink = output(None, source.out_type).sink if plain else to.sink
    form = Moving("sorted", source, sink, None, not along.in_place, False)
    _launch(form, result, (rows,), None, to.arguments, along, graph)


def taken(
    result: Buffer[Any],
    values: Operand,
    positions: Buffer[Any],
    to: Output,
    along: Along,
    graph: CommandGraph | None,
    *,
    shared: bool = False,
) -> None:
    """Store the values at positions in their rows; `shared`: all rows have the same values."""
    source, sink = _as_they_are(values, to)
    several = along.rows.count > 1 and not shared
    form = Moving("taken", source, sink, position_type(along.length), not along.in_place, several)
    _launch(form, result, values.arguments, positions, to.arguments, along, graph)


def stored_positions(
    result: Buffer[Any], positions: Buffer[Any], to: Output, along: Along, graph: CommandGraph | None
) -> None:
    """Store positions in their rows as numbers of the result's type."""
    sink = to.sink
    if sink.mapping is None:
        sink = output(None, raw_type(sink.out_type)).sink
    form = Moving("positions", None, sink, position_type(along.length), not along.in_place, False)
    _launch(form, result, (), positions, to.arguments, along, graph)


def _as_they_are(x: Operand, to: Output) -> tuple[Source, Sink]:
    """Return a source and a sink that move bits, where no map asks for numbers."""
    if x.source.plain and to.sink.mapping is None:
        kind = moved_type(x.var_type)
        return plain_source(kind).elementwise(), output(None, kind).sink
    return x.source.elementwise(), to.sink


def _launch(
    form: Moving,
    result: Buffer[Any],
    inputs: tuple[Any, ...],
    positions: Buffer[Any] | None,
    extras: tuple[Any, ...],
    along: Along,
    graph: CommandGraph | None,
) -> None:
    found = () if positions is None else (positions,)
    # numbers that say nothing may not fit 32 bits
    length = along.length if form.after or form.several else 1
    numbers = (1, length, along.after)
    moving_kernel(form)(result, *inputs, *found, *extras, *numbers, graph=graph)


@remembered
def segment_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that gives each position the number of starts that are not behind it.

    Its arguments are the numbers (uint32), the starts of a type, and how many starts there are.
    """

    def body(numbers: Any, starts: Any, count: Any) -> None:
        position = vc.global_invocation_id().x
        low, high = vc.new_uint_register(0), count.to_register()
        with vc.while_block(low < high):
            middle = ((low + high) >> 1).to_register()
            with vc.if_block(_not_behind(starts[middle], position)):
                low[:] = middle + 1
            with vc.else_block():
                high[:] = middle
        numbers[position] = low

    arguments = [
        ("sort_numbers", buffer[dtype.uint32]),
        ("sort_starts", buffer[kind]),
        ("sort_starts_count", _U32),
    ]
    return traced("sort_segments", body, arguments, _GROUP, exec_size="sort_numbers.size")


def _not_behind(start: Any, position: Any) -> Any:
    if start.var_type.item_size == 8:
        return start <= position.to_dtype(start.var_type)
    return start.to_dtype(dtype.uint32) <= position
