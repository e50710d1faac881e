"""vd.sort, vd.argsort, vd.sort_by_key: what they take, and the steps they are made of."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from vkdispatch.arrays.aliasing import check_overlap, is_same_memory
from vkdispatch.arrays.axes import around, checked_axis
from vkdispatch.arrays.calls import array_function, is_recorded
from vkdispatch.arrays.dtypes import parse_dtype
from vkdispatch.arrays.operand import Operand, operand
from vkdispatch.arrays.output import Output, output
from vkdispatch.arrays.results import result
from vkdispatch.arrays.starts import note_bad_starts
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.shader.map import MappedArray, MappingFunction, OutputMap
from vkdispatch.shader.parameters import given
from vkdispatch.sorting.keys import Order, is_sortable
from vkdispatch.sorting.launching import is_long, position_type, sort_rows
from vkdispatch.sorting.rearranging import (
    Along,
    into_rows,
    out_of_rows,
    segment_kernel,
    stored_positions,
    taken,
)

Array = Buffer[Any] | MappedArray
Map = MappingFunction | OutputMap
_POSITIONS = (dtype.int64, dtype.uint64, dtype.int32, dtype.uint32)
_STARTS = (dtype.uint32, dtype.int32, dtype.int64, dtype.uint64)


@record(eq=False)
class _Keys:
    """Keys to be sorted: an array as rows, its order, and where segments begin."""

    x: Operand
    shape: tuple[int, ...]
    along: Along
    order: Order
    starts: Buffer[Any] | None

    @property
    def nothing(self) -> bool:
        """Whether there are no keys."""
        return self.x.size == 0


@array_function
def sort(
    x: Array,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: "Buffer[Any] | np.ndarray[Any, Any] | Sequence[int] | None" = None,
    out: Buffer[Any] | None = None,
    output_map: Map | None = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return a sorted copy of an array, like `numpy.sort`.

    Equal keys keep their order, which shows where their bits differ: -0.0 and 0.0 are equal, and so are all
    NaNs, which count as larger than any number: they come last, and first if `descending`. Complex
    numbers are ordered by their real parts, then their imaginary parts, as NumPy's.

    Parameters
    ----------
    x
        A buffer of scalars or complex numbers, or a map called with its arguments.
    axis
        The axis along which it is sorted; None: of the flattened array.
    descending
        Whether the largest comes first. Equal keys keep their order then too.
    stable
        As in NumPy. Sorts here are stable, whatever it says.
    segments
        Where segments of the axis begin, as ints in ascending order: each segment is sorted for itself. The
        row starts of a CSR matrix, say, of which the last may be the end, or be left out. What lies before
        the first is a segment too. A sequence or array of ints, or a buffer of (u)int32 or (u)int64. A buffer
        is checked on the device; a recorded call does not check it.
    out
        Where the result goes: a buffer of its shape and dtype; `x` itself sorts in place. None: a new one.
    output_map
        What makes of each sorted key what is stored.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of the shape of `x`, or of one axis where `axis` is None.

    Raises
    ------
    TypeError
        An argument is of a wrong kind, or `x` is of vectors or matrices, which have no order.
    ValueError
        There is no such axis, `out` does not fit, or `segments` are negative, not ascending or beyond the
        end: those in a buffer raise it from a later wait or read.
    """
    keys = _keys("sort", x, "x", axis, descending, stable, segments, graph)
    to = output(output_map, keys.x.var_type, keys.shape)
    sorted_to = result(out, keys.shape, to.out_type, keys.x.context)
    check_overlap([("out", out)], to, before=[keys.x])
    if keys.nothing:
        return sorted_to
    if keys.starts is not None:
        read = any(is_same_memory(argument, sorted_to) for argument in keys.x.arguments)
        aside: Buffer[Any] = function_buffer(keys.x.size, to.out_type) if read else sorted_to
        taken(aside, keys.x, _positions(keys, graph), to, keys.along, graph)
        if read:
            _copy(sorted_to, aside, graph)
        return sorted_to
    direct = keys.along.in_place and to.sink.mapping is None
    source = _rows(keys, graph)
    rows = sorted_to if direct else function_buffer(keys.x.size, keys.x.var_type)
    sort_rows(source, keys.order, keys.along.rows, keys_to=rows, graph=graph)
    if not direct:
        out_of_rows(sorted_to, rows, to, keys.along, graph)
    return sorted_to


@array_function
def argsort(
    x: Array,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: "Buffer[Any] | np.ndarray[Any, Any] | Sequence[int] | None" = None,
    dtype: DType | None = None,
    out: Buffer[Any] | None = None,
    output_map: Map | None = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the positions along the axis that the keys of a sorted array had, like `numpy.argsort`.

    Parameters
    ----------
    x, axis, descending, stable, segments, graph
        As `sort`. With `segments` positions count from the start of the axis too.
    dtype
        Of the positions: (u)int32 or (u)int64; None: that of `out` if it is given without a map, else int64.
    out
        Where the positions go. None: a new buffer.
    output_map
        What makes of each position what is stored.

    Returns
    -------
    A buffer of the shape of `x`, or of one axis where `axis` is None.

    Raises
    ------
    TypeError, ValueError
        As `sort`; or positions do not fit `dtype`.
    """
    keys = _keys("argsort", x, "x", axis, descending, stable, segments, graph)
    kind = _position_kind(dtype, out if output_map is None else None, keys.along.length)
    to = output(output_map, kind, keys.shape)
    positions_to = result(out, keys.shape, to.out_type, keys.x.context)
    check_overlap([("out", out)], to, before=[keys.x])
    if keys.nothing:
        return positions_to
    stored = position_type(keys.along.length).item_size
    fits = kind.item_size == stored or (keys.starts is None and kind.item_size > stored)
    read = any(is_same_memory(argument, positions_to) for argument in keys.x.arguments)
    if to.sink.mapping is None and keys.along.in_place and fits and not read:
        return _positions(keys, graph, positions_to)
    stored_positions(positions_to, _positions(keys, graph), to, keys.along, graph)
    return positions_to


@overload
def sort_by_key(
    keys: Array,
    values: Array,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: "Buffer[Any] | np.ndarray[Any, Any] | Sequence[int] | None" = None,
    out: "tuple[Buffer[Any] | None, Buffer[Any] | None] | None" = None,
    output_map: Map | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Buffer[Any]]: ...


@overload
def sort_by_key(
    keys: Array,
    values: Sequence[Array],
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: "Buffer[Any] | np.ndarray[Any, Any] | Sequence[int] | None" = None,
    out: "tuple[Buffer[Any] | None, Sequence[Buffer[Any] | None] | None] | None" = None,
    output_map: Map | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], tuple[Buffer[Any], ...]]: ...


@array_function
def sort_by_key(
    keys: Array,
    values: Any,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: "Buffer[Any] | np.ndarray[Any, Any] | Sequence[int] | None" = None,
    out: Any = None,
    output_map: Map | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Any]:
    """Sort keys, and move values along with them.

    Parameters
    ----------
    keys
        What decides the order, as `x` of `sort`.
    values
        An array of the shape of the keys, of any dtype, vectors and matrices too; or several of them.
    axis, descending, stable, segments, graph
        As `sort`.
    out
        Where the results go: a pair of what is returned, either of them None for new buffers. The arrays
        themselves will do, for a sort in place.
    output_map
        What makes of each key, once they are sorted, what is stored. Values have maps of their own.

    Returns
    -------
    The sorted keys, and the values in their order: a buffer, or a tuple of buffers if several were given.

    Raises
    ------
    TypeError, ValueError
        As `sort`; or values have another shape than the keys.
    """
    ready = _keys("sort_by_key", keys, "keys", axis, descending, stable, segments, graph)
    several = isinstance(values, (tuple, list))
    given_values = list(values) if several else [values]
    names = [f"values[{i}]" for i in range(len(given_values))] if several else ["values"]
    operands = [operand(value, name) for value, name in zip(given_values, names, strict=True)]
    for each, name in zip(operands, names, strict=True):
        if each.shape != ready.x.shape:
            raise ArgumentValueError(
                f"{name}: expected the shape of the keys, {ready.x.shape}, got {each.shape}"
            )
    keys_out, values_out = _pair(out, several, len(operands))
    to = output(output_map, ready.x.var_type, ready.shape)
    sorted_to = result(keys_out, ready.shape, to.out_type, ready.x.context, "out[0]")
    moved_to = [
        result(buffer, ready.shape, each.var_type, ready.x.context, f"out[1]{name.removeprefix('values')}")
        for buffer, each, name in zip(values_out, operands, names, strict=True)
    ]
    names_out = ["out[0]", *(f"out[1]{name.removeprefix('values')}" for name in names)]
    check_overlap([*zip(names_out, [keys_out, *values_out], strict=True)], to, before=[ready.x, *operands])
    if not ready.nothing:
        _sort_by_key(ready, operands, to, sorted_to, moved_to, graph)
    return sorted_to, (tuple(moved_to) if several else moved_to[0])


def _sort_by_key(
    keys: _Keys,
    values: list[Operand],
    to: Output,
    sorted_to: Buffer[Any],
    moved_to: list[Buffer[Any]],
    graph: CommandGraph | None,
) -> None:
    """Queue the launches of a sort by key: positions first, for a value may be what is written to."""
    along = keys.along
    direct = along.in_place and to.sink.mapping is None and keys.starts is None
    if direct and _travel(keys, values, sorted_to, moved_to):
        sort_rows(
            _rows(keys, graph),
            keys.order,
            along.rows,
            keys_to=sorted_to,
            positions_to=moved_to[0],
            payload=values[0].arguments[0],
            graph=graph,
        )
        return
    rows: Buffer[Any] | None = None
    positions: Buffer[Any]
    if keys.starts is None:
        read = [argument for each in values for argument in each.arguments]
        free = direct and not any(is_same_memory(argument, sorted_to) for argument in read)
        rows = sorted_to if free else function_buffer(keys.x.size, keys.x.var_type)
        positions = function_buffer(keys.x.size, position_type(along.length))
        source = _rows(keys, graph)
        sort_rows(source, keys.order, along.rows, keys_to=rows, positions_to=positions, graph=graph)
    else:
        positions = _positions(keys, graph)
        rows = function_buffer(keys.x.size, to.out_type)
        taken(rows, keys.x, positions, to, along, graph)
    everything = [argument for each in values for argument in each.arguments]
    results = []
    for each, target in zip(values, moved_to, strict=True):
        # what is read by any of them is written last
        busy = any(is_same_memory(argument, target) for argument in everything)
        place: Buffer[Any] = function_buffer(target.shape, target.var_type) if busy else target
        taken(place, each, positions, output(None, each.var_type), along, graph)
        results.append((place, target))
    for place, target in results:
        if place is not target:
            _copy(target, place, graph)
    if keys.starts is not None:
        _copy(sorted_to, rows, graph)
    elif rows is not sorted_to:
        out_of_rows(sorted_to, rows, to, along, graph)


def _travel(keys: _Keys, values: list[Operand], sorted_to: Buffer[Any], moved_to: list[Buffer[Any]]) -> bool:
    """Whether values are moved along with keys that lie in rows, and not fetched once the order is known."""
    if len(values) != 1 or not values[0].source.plain or values[0].var_type.item_size not in (1, 2, 4, 8):
        return False
    value, target = values[0].arguments[0], moved_to[0]
    if any(
        is_same_memory(each, other) for each in (*keys.x.arguments, sorted_to) for other in (value, target)
    ):
        return False
    return is_long(keys.order, keys.along.rows)


def _copy(target: Buffer[Any], source: Buffer[Any], graph: CommandGraph | None) -> None:
    """Copy all elements, whatever the shapes."""
    out_of_rows(target, source, output(None, source.var_type), Along(1, source.size, 1), graph)


def _keys(
    function: str,
    x: object,
    name: str,
    axis: int | None,
    descending: bool,
    stable: bool,
    segments: object,
    graph: CommandGraph | None,
) -> _Keys:
    """Check what all functions take."""
    keys = operand(x, name)
    shape: tuple[int, ...]
    if not is_sortable(keys.var_type):
        raise ArgumentTypeError(
            f"{name}: {keys.var_type.name} has no order; sort by a component of it, or by its length"
        )
    flags: list[tuple[object, str]] = [(descending, "descending"), (stable, "stable")]
    for flag, what in flags:
        if not isinstance(flag, (bool, np.bool_)) and not (flag is None and what == "stable"):
            raise ArgumentTypeError(f"{what}: expected True or False, got {given(flag)}")
    if axis is None:
        shape, along = (keys.size,), Along(1, keys.size, 1)
    else:
        shape = keys.shape
        along = Along(*around(shape, checked_axis(axis, len(shape))))
    starts = None if segments is None else _starts(function, segments, along.length, graph)
    return _Keys(keys, shape, along, Order(keys.var_type, bool(descending)), starts)


def _starts(function: str, segments: object, length: int, graph: CommandGraph | None) -> Buffer[Any]:
    """Return where segments begin, in device memory; looked at unless the call is recorded."""
    if isinstance(segments, Buffer):
        segments.require_alive()
        if segments.var_type not in _STARTS:
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
            f"segments: expected where segments begin, as ints in ascending order, got {given(segments)}"
        )
    if starts.size and (np.any(starts[1:] < starts[:-1]) or starts[0] < 0 or int(starts[-1]) > length):
        raise ArgumentValueError(
            f"segments: expected ints from 0 to {length} in ascending order, got {segments!r}"
        )
    narrow = starts.astype(np.uint32 if length <= 0xFFFFFFFF else np.uint64)
    return asbuffer(narrow)


def _position_kind(kind: object, out: object, length: int) -> DType:
    """Return the dtype of positions."""
    if kind is None:
        kind = out.var_type if isinstance(out, Buffer) else dtype.int64
    try:
        found = parse_dtype(kind)
    except (ArgumentTypeError, ArgumentValueError):
        raise ArgumentTypeError(f"dtype: expected (u)int32 or (u)int64, got {given(kind)}") from None
    if found not in _POSITIONS:
        raise ArgumentTypeError(f"dtype: expected (u)int32 or (u)int64 for positions, got {found.name}")
    most = {dtype.int32: 1 << 31, dtype.uint32: 1 << 32}.get(found)
    if most is not None and length > most:
        raise ArgumentValueError(f"dtype: positions up to {length - 1} do not fit {found.name}")
    return found


def _pair(out: object, several: bool, count: int) -> tuple[Any, list[Any]]:
    """Return the buffers for keys and for each of the values, None for new ones."""
    if out is None:
        return None, [None] * count
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ArgumentTypeError(f"out: expected a pair, for the keys and for the values, got {given(out)}")
    if not several:
        return out[0], [out[1]]
    if out[1] is None:
        return out[0], [None] * count
    if not isinstance(out[1], (tuple, list)) or len(out[1]) != count:
        raise ArgumentTypeError(f"out: expected {count} buffers for the values, got {given(out[1])}")
    return out[0], list(out[1])


def _rows(keys: _Keys, graph: CommandGraph | None) -> Buffer[Any]:
    """Return the keys as rows in memory: the array itself where it is that."""
    if keys.x.source.plain and keys.along.in_place:
        buffer: Buffer[Any] = keys.x.arguments[0]
        return buffer
    return into_rows(keys.x, keys.along, graph)


def _positions(
    keys: _Keys, graph: CommandGraph | None, positions_to: Buffer[Any] | None = None
) -> Buffer[Any]:
    """Return the positions of the sorted keys in their rows, in a buffer of rows."""
    along, kind = keys.along, position_type(keys.along.length)
    positions: Buffer[Any] = function_buffer(keys.x.size, kind) if positions_to is None else positions_to
    source = _rows(keys, graph)
    if keys.starts is None or keys.starts.size == 0:
        sort_rows(source, keys.order, along.rows, positions_to=positions, graph=graph)
        return positions
    by_key: Buffer[Any] = function_buffer(keys.x.size, kind)
    sort_rows(source, keys.order, along.rows, positions_to=by_key, graph=graph)
    # then by their segments, which keeps the order within each
    numbers: Buffer[Any] = function_buffer(along.length, dtype.uint32)
    segment_kernel(keys.starts.var_type)(numbers, keys.starts, keys.starts.size, graph=graph)
    moved: Buffer[Any] = function_buffer(keys.x.size, dtype.uint32)
    plain = output(None, dtype.uint32)
    rows = Along(along.rows.count, along.length, 1)
    taken(moved, operand(numbers), by_key, plain, rows, graph, shared=True)
    order = Order(dtype.uint32, False, keys.starts.size.bit_length())
    sort_rows(moved, order, along.rows, positions_to=positions, payload=by_key, graph=graph)
    return positions
