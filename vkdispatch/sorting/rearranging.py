"""Elements copied into rows, which are sorted, and back; and the arguments of sorts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.kernels import buffers, note_bad_starts, numbers, trace_kernel
from vkdispatch.families.operands import parse_axis, parse_dtype, split_shape
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe
from vkdispatch.sorting.keys import Order, is_sortable, raw_type, widen
from vkdispatch.sorting.launching import Rows, position_type

# ---- Elements are copied into rows, which are sorted, and from rows into results -------------------------
#
#   array (before, length, after)     element (b, k, a) of the array is key k of row b * after + a
#   into rows                         values of a map, or keys along an axis that is not the last
#   out of rows                       sorted keys, values at the positions that keys had, positions themselves
#
# Elements that no map changes are copied as unsigned integers, so all of their bits are kept.


_GROUP = 128
_ODD = {6: dtype.uhvec3, 12: dtype.uvec3}
_RAW_SIZES = (1, 2, 4, 8, 16)


@record
class Along:
    """An array as rows: the numbers of elements before, along and after the axis."""

    before: int
    length: int
    after: int

    @property
    def rows(self) -> Rows:
        """The rows."""
        return Rows(self.before * self.after, self.length)

    @property
    def in_place(self) -> bool:
        """Whether the array in memory already consists of rows."""
        return self.after == 1


@record
class CopyForm:
    """What a kernel that copies elements is specialised for.

    Attributes
    ----------
    mode
        "in": elements into rows; "sorted": elements of rows into a result; "taken": elements at positions;
        "positions": the positions themselves.
    source, sink
        Where elements come from and go. Positions have no source.
    positions
        The type of positions; None without positions.
    is_strided
        Whether the axis is not the last one.
    has_own_values
        Whether there are several rows, each with values of its own.
    """

    mode: str
    source: Source | None
    sink: operands.Sink
    positions: DType | None
    is_strided: bool
    has_own_values: bool


@store_results
def make_copy_kernel(form: CopyForm) -> ShaderFunction:
    """Return the kernel that copies elements.

    Its arguments are the result, those of source, positions and sink, and the three numbers of an `Along`.
    """
    arguments = [
        *buffers(sort_result=form.sink.out_type),
        form.source.parameters if form.source else [],
        *buffers(sort_positions=form.positions),
        form.sink.parameters,
        numbers("sort_before", "sort_length", "sort_after"),
    ]

    def body(result: Any, inputs: Any, positions: Any, extras: Any, along: Any) -> None:
        _, length, after = along
        element = vc.global_invocation_id().x
        place: Any = element  # in rows
        if form.is_strided:
            outer = element // (length * after)
            place = (outer * after + element % after) * length + element // after % length
        if form.mode == "in":
            assert form.source is not None
            form.sink.store(result, extras, place, form.source.value(inputs, element))
            return
        if form.mode == "sorted":
            assert form.source is not None
            form.sink.store(result, extras, element, form.source.value(inputs, place))
            return
        position = positions[place].to_register("sort_position")
        if form.mode == "positions":
            form.sink.store(result, extras, element, _convert_position(position, form.sink.value_type))
            return
        if form.positions is not dtype.uint32:
            position = vc.pack_uint2x32(position).to_register()
        if form.is_strided:
            outer = element // (length * after)
            position = (outer * length + position) * after + element % after
        elif form.has_own_values:
            position = element - element % length + position
        assert form.source is not None
        form.sink.store(result, extras, element, form.source.value(inputs, position))

    return trace_kernel(f"sort_{form.mode}", body, arguments, _GROUP, exec_size="sort_result.size")


def _convert_position(position: Any, kind: DType) -> Any:
    """Return a position as a value of a dtype, or of its raw type."""
    if kind is position.var_type:
        return position
    if kind is dtype.uvec2:
        return widen(position)
    if position.var_type is dtype.uint32:
        return position.to_dtype(kind)
    if kind.item_size == 8:
        return vc.pack_uint2x32(position).to_dtype(kind)
    return position[0].to_dtype(kind)


def copied_type(kind: DType) -> DType:
    """Return the type that elements are copied as: one of unsigned integers, if one has their size."""
    if kind.item_size in _RAW_SIZES:
        return raw_type(kind)
    return _ODD.get(kind.item_size, kind)


def into_rows(x: operands.Operand, along: Along, graph: CommandGraph | None) -> Buffer[Any]:
    """Return a buffer with the elements of an array as rows."""
    rows: Buffer[Any] = function_buffer(x.size, x.var_type)
    source, sink = choose_copy(x, operands.parse_output(None, x.var_type))
    form = CopyForm("in", source, sink, None, not along.in_place, False)
    _launch(form, rows, x.arguments, None, (), along, graph)
    return rows


def out_of_rows(
    result: Buffer[Any], rows: Buffer[Any], to: operands.Output, along: Along, graph: CommandGraph | None
) -> None:
    """Store the elements of rows as an array."""
    plain = to.sink.mapping is None
    source = operands.plain_source(copied_type(rows.var_type) if plain else rows.var_type)
    sink = operands.parse_output(None, source.out_type).sink if plain else to.sink
    form = CopyForm("sorted", source, sink, None, not along.in_place, False)
    _launch(form, result, (rows,), None, to.arguments, along, graph)


def take_at(
    result: Buffer[Any],
    values: operands.Operand,
    positions: Buffer[Any],
    to: operands.Output,
    along: Along,
    graph: CommandGraph | None,
    *,
    is_shared: bool = False,
) -> None:
    """Store the values at positions in their rows; `is_shared`: all rows have the same values."""
    source, sink = choose_copy(values, to)
    has_own_values = along.rows.count > 1 and not is_shared
    form = CopyForm("taken", source, sink, position_type(along.length), not along.in_place, has_own_values)
    _launch(form, result, values.arguments, positions, to.arguments, along, graph)


def store_positions(
    result: Buffer[Any], positions: Buffer[Any], to: operands.Output, along: Along, graph: CommandGraph | None
) -> None:
    """Store positions in their rows as numbers of the result's dtype."""
    sink = to.sink
    if sink.mapping is None:
        sink = operands.parse_output(None, raw_type(sink.out_type)).sink
    form = CopyForm("positions", None, sink, position_type(along.length), not along.in_place, False)
    _launch(form, result, (), positions, to.arguments, along, graph)


def choose_copy(x: operands.Operand, to: operands.Output) -> tuple[Source, operands.Sink]:
    """Return the source and the sink of a copy from an array: they copy bits, unless there is a map."""
    if x.source.is_plain and to.sink.mapping is None:
        kind = copied_type(x.var_type)
        return operands.plain_source(kind).elementwise(), operands.parse_output(None, kind).sink
    return x.source.elementwise(), to.sink


def _launch(
    form: CopyForm,
    result: Buffer[Any],
    inputs: tuple[Any, ...],
    positions: Buffer[Any] | None,
    extras: tuple[Any, ...],
    along: Along,
    graph: CommandGraph | None,
) -> None:
    read = () if positions is None else (positions,)
    # a length that the kernel does not use may exceed 32 bits
    length = along.length if form.is_strided or form.has_own_values else 1
    make_copy_kernel(form)(result, *inputs, *read, *extras, 1, length, along.after, graph=graph)


@store_results
def make_segment_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that counts, for each position, the starts up to it.

    Its arguments are the numbers (uint32), the starts, and the number of starts.
    """

    def body(segments: Any, starts: Any, count: Any) -> None:
        position = vc.global_invocation_id().x
        low, high = vc.new_uint_register(0), count.to_register()
        with vc.while_block(low < high):
            middle = ((low + high) >> 1).to_register()
            with vc.if_block(_is_up_to(starts[middle], position)):
                low[:] = middle + 1
            with vc.else_block():
                high[:] = middle
        segments[position] = low

    arguments = [*buffers(sort_numbers=dtype.uint32, sort_starts=kind), *numbers("sort_starts_count")]
    return trace_kernel("sort_segments", body, arguments, _GROUP, exec_size="sort_numbers.size")


def _is_up_to(start: Any, position: Any) -> Any:
    if start.var_type.item_size == 8:
        return start <= position.to_dtype(start.var_type)
    return start.to_dtype(dtype.uint32) <= position


# ---- What `vd.sort`, `vd.argsort` and `vd.sort_by_key` are called with, checked --------------------------


Segments = Buffer[Any] | np.ndarray[Any, Any] | Sequence[int]
_POSITION_TYPES = (dtype.int64, dtype.uint64, dtype.int32, dtype.uint32)


@record(eq=False)
class SortOptions:
    """The options that all sorts have; see `vd.sort`."""

    axis: int | None
    descending: bool
    stable: bool | None
    segments: "Segments | None"
    graph: CommandGraph | None


@record(eq=False)
class SortKeys:
    """Keys to be sorted.

    Attributes
    ----------
    x, shape
        The array, and the shape of the result.
    along
        The array as rows.
    order
        The order of the keys.
    starts
        Where segments begin, in device memory; None without segments.
    graph
        The graph to record into.
    """

    x: operands.Operand
    shape: tuple[int, ...]
    along: Along
    order: Order
    starts: Buffer[Any] | None
    graph: CommandGraph | None


def parse_keys(function: str, x: operands.ArrayLike, options: SortOptions, name: str = "x") -> SortKeys:
    """Check the keys and the options of a sort. See `vd.sort` for what it raises."""
    keys = operands.parse_operand(x, name)
    shape: tuple[int, ...]
    if not is_sortable(keys.var_type):
        raise ArgumentTypeError(
            f"{name}: {keys.var_type.name} has no order; sort by a component of it, or by its length"
        )
    flags: list[tuple[object, str]] = [(options.descending, "descending"), (options.stable, "stable")]
    for flag, what in flags:
        if not isinstance(flag, (bool, np.bool_)) and not (flag is None and what == "stable"):
            raise ArgumentTypeError(f"{what}: expected True or False, got {describe(flag)}")
    if options.axis is None:
        shape, along = (keys.size,), Along(1, keys.size, 1)
    else:
        shape = keys.shape
        along = Along(*split_shape(shape, parse_axis(options.axis, len(shape))))
    segments, graph = options.segments, options.graph
    starts = None if segments is None else _parse_segments(function, segments, along.length, graph)
    return SortKeys(keys, shape, along, Order(keys.var_type, bool(options.descending)), starts, graph)


def _parse_segments(
    function: str, segments: Segments, length: int, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return where segments begin, in device memory. The device checks those in a buffer."""
    if isinstance(segments, Buffer):
        segments.require_alive()
        if segments.var_type not in _POSITION_TYPES:
            raise ArgumentTypeError(
                f"segments: expected a buffer of (u)int32 or (u)int64, got {segments.var_type.name}"
            )
        if len(segments.shape) != 1:
            raise ArgumentValueError(f"segments: expected one axis, got the shape {segments.shape}")
        if not is_recorded(graph):
            note_bad_starts(function, segments, length)
        return segments
    try:
        starts = np.asarray(segments)
    except ValueError:
        starts = np.empty((0, 0))
    if starts.ndim == 1 and not starts.size:
        starts = starts.astype(np.int64)
    if starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"segments: expected where segments begin, as ints in ascending order, got {describe(segments)}"
        )
    if starts.size and (np.any(starts[1:] < starts[:-1]) or starts[0] < 0 or int(starts[-1]) > length):
        raise ArgumentValueError(
            f"segments: expected ints from 0 to {length} in ascending order, got {segments!r}"
        )
    narrow = starts.astype(np.uint32 if length <= 0xFFFFFFFF else np.uint64)
    return asbuffer(narrow)


def parse_position_type(kind: object, out: object, length: int) -> DType:
    """Return the dtype of positions in rows of a length. By default it is that of `out`, or int64."""
    if kind is None:
        kind = out.var_type if isinstance(out, Buffer) else dtype.int64
    try:
        parsed = parse_dtype(kind)
    except (ArgumentTypeError, ArgumentValueError):
        raise ArgumentTypeError(f"dtype: expected (u)int32 or (u)int64, got {describe(kind)}") from None
    if parsed not in _POSITION_TYPES:
        raise ArgumentTypeError(f"dtype: expected (u)int32 or (u)int64 for positions, got {parsed.name}")
    most = {dtype.int32: 1 << 31, dtype.uint32: 1 << 32}.get(parsed)
    if most is not None and length > most:
        raise ArgumentValueError(f"dtype: positions up to {length - 1} do not fit {parsed.name}")
    return parsed


def parse_outputs(out: object, has_several: bool, count: int) -> tuple[Any, list[Any]]:
    """Return the buffers for the keys and for each of the values; None for new ones."""
    keys, values = operands.parse_pair(out, "the keys and for the values")
    if not has_several:
        return keys, [values]
    if values is None:
        return keys, [None] * count
    if not isinstance(values, (tuple, list)) or len(values) != count:
        raise ArgumentTypeError(f"out: expected {count} buffers for the values, got {describe(values)}")
    return keys, list(values)
