"""`vd.sort`, `vd.argsort` and `vd.sort_by_key`, and the steps of each."""

from collections.abc import Sequence
from typing import Any, overload

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function
from vkdispatch.families.operands import (
    ArrayLike,
    Operand,
    Output,
    ResultMap,
    check_overlap,
    parse_operand,
    parse_output,
    prepare_output,
    prepare_result,
    share_memory,
)
from vkdispatch.sorting import rearranging
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.launching import is_long, position_type, sort_rows


@array_function
def sort(
    x: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: rearranging.Segments | None = None,
    out: Buffer[Any] | None = None,
    output_map: ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return a sorted copy of an array, like `numpy.sort`.

    The sort is stable: equal keys keep their order. -0.0 and 0.0 are equal. All NaNs are equal, and larger
    than any number: they come last, or first if `descending`. Complex numbers are ordered by their real
    parts, then by their imaginary parts, as in NumPy.

    Parameters
    ----------
    x
        A buffer of scalars or complex numbers, or a map called with its arguments.
    axis
        The axis to sort along. None sorts the flattened array.
    descending
        Whether the largest key comes first. Equal keys keep their order as well.
    stable
        Accepted for compatibility with NumPy and ignored: all sorts are stable.
    segments
        The indices along the axis where segments begin, in ascending order, such as the row offsets of a CSR
        matrix, whose last element (the end) can be omitted. Each segment is sorted separately. Keys before
        the first index are a segment too. A sequence or array of ints, or a buffer of (u)int32 or (u)int64.
        The device checks a buffer, unless the call is recorded.
    out
        A buffer for the result, with its shape and dtype; None creates one. Pass `x` to sort in place.
    output_map
        A `vd.map` that is applied to each sorted key.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of the shape of `x`, or of one axis if `axis` is None.

    Raises
    ------
    TypeError
        An argument has a wrong type, or `x` has vectors or matrices, which have no order.
    ValueError
        There is no such axis, `out` does not fit, or `segments` are negative, not ascending or beyond the
        end. For a buffer of segments, a later wait or read raises the error.

    Examples
    --------
    >>> vd.sort(vd.asbuffer(np.array([3, 1, 2], np.float32))).read(0)
    array([1., 2., 3.], dtype=float32)
    """
    keys = rearranging.parse_keys(
        "sort", x, rearranging.SortOptions(axis, descending, stable, segments, graph)
    )
    to, sorted_to = prepare_output(
        out, output_map, keys.shape, keys.x.var_type, keys.x.context, before=[keys.x]
    )
    if keys.x.size == 0:
        return sorted_to
    if keys.starts is not None:
        is_read = any(share_memory(argument, sorted_to) for argument in keys.x.arguments)
        aside: Buffer[Any] = function_buffer(keys.x.size, to.out_type) if is_read else sorted_to
        rearranging.take_at(aside, keys.x, _sort_positions(keys), to, keys.along, graph)
        if is_read:
            _copy(sorted_to, aside, graph)
        return sorted_to
    is_direct = keys.along.in_place and to.sink.mapping is None
    source = _as_rows(keys)
    rows = sorted_to if is_direct else function_buffer(keys.x.size, keys.x.var_type)
    sort_rows(source, keys.order, keys.along.rows, keys_to=rows, graph=graph)
    if not is_direct:
        rearranging.out_of_rows(sorted_to, rows, to, keys.along, graph)
    return sorted_to


# NumPy's arguments
@array_function
def argsort(  # noqa: PLR0913
    x: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: rearranging.Segments | None = None,
    dtype: DType | None = None,
    out: Buffer[Any] | None = None,
    output_map: ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the indices along the axis that would sort an array, like `numpy.argsort`.

    Parameters
    ----------
    x, axis, descending, stable, segments, graph
        As in `sort`. Indices count from the start of the axis, also with `segments`.
    dtype
        dtype of the indices: (u)int32 or (u)int64. None: that of `out` if it is passed without a map, else
        int64.
    out
        A buffer to write the indices to. None creates one.
    output_map
        A `vd.map` that is applied to each index.

    Returns
    -------
    A buffer of the shape of `x`, or of one axis if `axis` is None.

    Raises
    ------
    TypeError, ValueError
        As in `sort`; or indices do not fit `dtype`.

    Examples
    --------
    >>> vd.argsort(vd.asbuffer(np.array([3, 1, 2], np.float32))).read(0)
    array([1, 2, 0])
    """
    keys = rearranging.parse_keys(
        "argsort", x, rearranging.SortOptions(axis, descending, stable, segments, graph)
    )
    kind = rearranging.parse_position_type(dtype, out if output_map is None else None, keys.along.length)
    to, positions_to = prepare_output(out, output_map, keys.shape, kind, keys.x.context, before=[keys.x])
    if keys.x.size == 0:
        return positions_to
    stored = position_type(keys.along.length).item_size
    fits = kind.item_size == stored or (keys.starts is None and kind.item_size > stored)
    is_read = any(share_memory(argument, positions_to) for argument in keys.x.arguments)
    if to.sink.mapping is None and keys.along.in_place and fits and not is_read:
        return _sort_positions(keys, positions_to)
    rearranging.store_positions(positions_to, _sort_positions(keys), to, keys.along, graph)
    return positions_to


@overload
def sort_by_key(
    keys: ArrayLike,
    values: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: rearranging.Segments | None = None,
    out: "tuple[Buffer[Any] | None, Buffer[Any] | None] | None" = None,
    output_map: ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Buffer[Any]]: ...


@overload
def sort_by_key(
    keys: ArrayLike,
    values: Sequence[ArrayLike],
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: rearranging.Segments | None = None,
    out: "tuple[Buffer[Any] | None, Sequence[Buffer[Any] | None] | None] | None" = None,
    output_map: ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], tuple[Buffer[Any], ...]]: ...


# NumPy's arguments
@array_function
def sort_by_key(  # noqa: PLR0913
    keys: ArrayLike,
    values: ArrayLike | Sequence[ArrayLike],
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    segments: rearranging.Segments | None = None,
    out: Any = None,
    output_map: ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Any]:
    """Sort keys, and reorder values in the same way.

    Parameters
    ----------
    keys
        The array to sort, as `x` of `sort`.
    values
        An array of the shape of the keys, of any dtype, including vectors and matrices; or several of them.
    axis, descending, stable, segments, graph
        As in `sort`.
    out
        A pair of buffers to write to, as the call returns them; None creates them. Pass the arrays themselves
        to sort in place.
    output_map
        A `vd.map` that is applied to each sorted key, not to values.

    Returns
    -------
    The sorted keys, and the reordered values: a buffer, or a tuple of buffers if there are several.

    Raises
    ------
    TypeError, ValueError
        As in `sort`; or the values have another shape than the keys.

    Examples
    --------
    >>> keys = vd.asbuffer(np.array([3, 1, 2], np.int32))
    >>> values = vd.asbuffer(np.array([30, 10, 20], np.float32))
    >>> keys, values = vd.sort_by_key(keys, values)
    >>> values.read(0)
    array([10., 20., 30.], dtype=float32)
    """
    options = rearranging.SortOptions(axis, descending, stable, segments, graph)
    parsed = rearranging.parse_keys("sort_by_key", keys, options, "keys")
    has_several = isinstance(values, (tuple, list))
    arrays = list(values) if has_several else [values]
    names = [f"values[{i}]" for i in range(len(arrays))] if has_several else ["values"]
    operands = [parse_operand(value, name) for value, name in zip(arrays, names, strict=True)]
    for operand, name in zip(operands, names, strict=True):
        if operand.shape != parsed.x.shape:
            raise ArgumentValueError(
                f"{name}: expected the shape of the keys, {parsed.x.shape}, got {operand.shape}"
            )
    keys_out, values_out = rearranging.parse_outputs(out, has_several, len(operands))
    to = parse_output(output_map, parsed.x.var_type, parsed.shape)
    names_out = ["out[0]", *(f"out[1]{name.removeprefix('values')}" for name in names)]
    sorted_to = prepare_result(keys_out, parsed.shape, to.out_type, parsed.x.context, names_out[0])
    moved_to = [
        prepare_result(buffer, parsed.shape, operand.var_type, parsed.x.context, name)
        for buffer, operand, name in zip(values_out, operands, names_out[1:], strict=True)
    ]
    check_overlap([*zip(names_out, [keys_out, *values_out], strict=True)], to, before=[parsed.x, *operands])
    if parsed.x.size:
        _sort_by_key(parsed, operands, to, sorted_to, moved_to)
    return sorted_to, (tuple(moved_to) if has_several else moved_to[0])


def _sort_by_key(
    keys: rearranging.SortKeys,
    values: list[Operand],
    to: Output,
    sorted_to: Buffer[Any],
    moved_to: list[Buffer[Any]],
) -> None:
    """Queue the launches of a sort by key.

    Positions are computed first, because results may be written to the memory of values.
    """
    along, graph = keys.along, keys.graph
    is_direct = along.in_place and to.sink.mapping is None and keys.starts is None
    if is_direct and _can_move_along(keys, values, sorted_to, moved_to):
        sort_rows(
            _as_rows(keys),
            keys.order,
            along.rows,
            keys_to=sorted_to,
            positions_to=moved_to[0],
            payload=values[0].arguments[0],
            graph=graph,
        )
        return
    rows: Buffer[Any]
    positions: Buffer[Any]
    arguments = [argument for value in values for argument in value.arguments]
    if keys.starts is None:
        is_free = is_direct and not any(share_memory(argument, sorted_to) for argument in arguments)
        rows = sorted_to if is_free else function_buffer(keys.x.size, keys.x.var_type)
        positions = function_buffer(keys.x.size, position_type(along.length))
        source = _as_rows(keys)
        sort_rows(source, keys.order, along.rows, keys_to=rows, positions_to=positions, graph=graph)
    else:
        positions = _sort_positions(keys)
        rows = function_buffer(keys.x.size, to.out_type)
        rearranging.take_at(rows, keys.x, positions, to, along, graph)
    copied = []
    for operand, target in zip(values, moved_to, strict=True):
        place = target
        if any(share_memory(argument, target) for argument in arguments):
            # memory that any value is read from is written last
            place = function_buffer(target.shape, target.var_type)
            copied.append((target, place))
        rearranging.take_at(place, operand, positions, parse_output(None, operand.var_type), along, graph)
    for target, place in copied:
        _copy(target, place, graph)
    if keys.starts is not None:
        _copy(sorted_to, rows, graph)
    elif rows is not sorted_to:
        rearranging.out_of_rows(sorted_to, rows, to, along, graph)


def _can_move_along(
    keys: rearranging.SortKeys, values: list[Operand], sorted_to: Buffer[Any], moved_to: list[Buffer[Any]]
) -> bool:
    """Whether values are moved together with keys, instead of being read once the order is known."""
    if len(values) != 1 or not values[0].source.is_plain or values[0].var_type.item_size not in (1, 2, 4, 8):
        return False
    value, target = values[0].arguments[0], moved_to[0]
    if any(
        share_memory(source, other) for source in (*keys.x.arguments, sorted_to) for other in (value, target)
    ):
        return False
    return is_long(keys.order, keys.along.rows)


def _copy(target: Buffer[Any], source: Buffer[Any], graph: CommandGraph | None) -> None:
    """Copy all elements of a buffer to another of the same size."""
    rearranging.out_of_rows(
        target, source, parse_output(None, source.var_type), rearranging.Along(1, source.size, 1), graph
    )


def _as_rows(keys: rearranging.SortKeys) -> Buffer[Any]:
    """Return the keys as rows in memory: the array itself if it already consists of rows."""
    if keys.x.source.is_plain and keys.along.in_place:
        buffer: Buffer[Any] = keys.x.arguments[0]
        return buffer
    return rearranging.into_rows(keys.x, keys.along, keys.graph)


def _sort_positions(keys: rearranging.SortKeys, positions_to: Buffer[Any] | None = None) -> Buffer[Any]:
    """Return the positions of the sorted keys in their rows, in a buffer of rows."""
    graph = keys.graph
    along, kind = keys.along, position_type(keys.along.length)
    positions: Buffer[Any] = function_buffer(keys.x.size, kind) if positions_to is None else positions_to
    source = _as_rows(keys)
    if keys.starts is None or keys.starts.size == 0:
        sort_rows(source, keys.order, along.rows, positions_to=positions, graph=graph)
        return positions
    by_key: Buffer[Any] = function_buffer(keys.x.size, kind)
    sort_rows(source, keys.order, along.rows, positions_to=by_key, graph=graph)
    # then by their segments: the sort is stable, so it keeps the order within each
    numbers: Buffer[Any] = function_buffer(along.length, dtype.uint32)
    rearranging.make_segment_kernel(keys.starts.var_type)(numbers, keys.starts, keys.starts.size, graph=graph)
    moved: Buffer[Any] = function_buffer(keys.x.size, dtype.uint32)
    plain = parse_output(None, dtype.uint32)
    rows = rearranging.Along(along.rows.count, along.length, 1)
    rearranging.take_at(moved, parse_operand(numbers), by_key, plain, rows, graph, is_shared=True)
    order = Order(dtype.uint32, False, keys.starts.size.bit_length())
    sort_rows(moved, order, along.rows, positions_to=positions, payload=by_key, graph=graph)
    return positions
