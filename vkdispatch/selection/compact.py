"""`vd.compact`, `vd.nonzero` and `vd.unique`: elements that a condition keeps, or that are distinct."""

from collections.abc import Sequence
from dataclasses import dataclass
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
from vkdispatch.families.calls import array_function, repeatable
from vkdispatch.families.kernels import Argument, buffers, clear_buffer, numbers, trace_kernel
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.selection import compaction
from vkdispatch.selection.tuning import parse_size
from vkdispatch.shader.map import MappedArray, MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order, is_sortable, raw_type, unpack_position
from vkdispatch.sorting.launching import position_type, sort_rows
from vkdispatch.sorting.rearranging import Along, choose_copy, into_rows

# ---- `vd.compact` and `vd.nonzero`: elements that a condition keeps, and their indices -------------------


_ZERO = np.zeros(1, np.uint32)
_UNKNOWN = "how many elements are kept"


@array_function
def compact(
    x: operands.ArrayLike,
    condition: operands.ArrayLike | MappingFunction,
    *,
    size: int | None = None,
    fill_value: object = 0,
    output_map: operands.ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> Any:
    """Return the elements for which a condition is true, in their order, like `numpy.compress`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments. Several axes are flattened.
    condition
        An array of numbers or booleans; nonzero ones are true. Or a `vd.map` with one parameter, which is
        applied to each element of `x`. A condition shorter than `x` keeps no elements beyond its end.
    size
        The size of the result. None: the number of elements that are kept, for which the call waits. Graphs
        need a size.
    fill_value
        With `size`: the number that fills the result after the last element.
    output_map
        A `vd.map` that is applied to each element that is kept; `mapped_index()` is its index in the result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of one axis. With `size`, a tuple of that buffer and a buffer of one int64: the number of
    elements that the condition keeps, which may be larger than `size`.

    Raises
    ------
    TypeError
        An argument is not an array, or the condition has vectors.
    ValueError
        The condition has more elements than `x`, or 2**32 or more; `size` is negative.
    RuntimeError
        `size` is None in a graph.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([5, -1, 4, -2], np.float32))
    >>> mask = vd.asbuffer(np.array([True, False, True, False]))
    >>> vd.compact(x, mask).read(0)
    array([5., 4.], dtype=float32)
    """
    if isinstance(condition, MappingFunction):
        condition = _call_condition(condition, x)
    size = parse_size(size, graph, _UNKNOWN)
    bits, starts = _flag_kept(x, condition, size, output_map, graph)
    count = _read_total(condition, bits, starts, "condition") if size is None else size
    kept = _write_elements(x, condition, bits, starts, count, output_map, graph)
    if size is None:
        return kept
    if size:
        compaction.fill_rest(kept, starts, fill_value, graph)
    return kept, make_total(starts, graph)


@repeatable
def _flag_kept(
    x: operands.ArrayLike,
    condition: Any,
    size: int | None,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Check the arguments of `compact`, and return `bits` and `starts` of `Flags`. It does not wait."""
    values, parsed = operands.parse_operand(x, "x"), _parse_condition(condition)
    if parsed.size > values.size:
        raise ArgumentValueError(
            f"condition: expected at most {values.size} elements, as x has, got {parsed.size}"
        )
    most = parsed.size if size is None else min(parsed.size, size)
    sink = operands.parse_output(output_map, values.var_type, most=most)
    operands.check_overlap((), sink, elsewhere=[values, parsed])
    return _flag_where(parsed, graph)


@repeatable
def _write_elements(
    x: operands.ArrayLike,
    condition: Any,
    bits: Buffer[Any],
    starts: Buffer[Any],
    count: int,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return the first `count` elements that are kept. It does not wait."""
    values = operands.parse_operand(x, "x")
    sink = operands.parse_output(output_map, values.var_type, most=min(condition.size, count))
    kept = operands.prepare_result(None, (count,), sink.out_type, values.context)
    if count and condition.size:
        arguments = (kept, *values.arguments, *sink.arguments)
        writer = Values(*choose_copy(values, sink))
        compaction.write_elements(
            compaction.flags_from(bits, starts, condition.size), writer, arguments, count, graph
        )
    return kept


@array_function
def nonzero(
    x: operands.ArrayLike, *, size: int | None = None, fill_value: int = 0, graph: CommandGraph | None = None
) -> tuple[Buffer[Any], ...]:
    """Return the indices of the nonzero elements, like `numpy.nonzero`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments, of at least one axis. NaN is nonzero.
    size
        The number of indices. None: the number of nonzero elements, for which the call waits. Graphs need a
        size.
    fill_value
        With `size`: the index that fills the results after the last one.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A tuple of buffers of one axis, int64: for each axis of `x`, the indices along it, in the order of the
    elements.

    Raises
    ------
    TypeError
        `x` is not an array of numbers or booleans.
    ValueError
        It has no axes, or 2**32 elements or more; `size` is negative.
    RuntimeError
        `size` is None in a graph.

    Examples
    --------
    >>> (places,) = vd.nonzero(vd.asbuffer(np.array([0, 3, 0, 5], np.int32)))
    >>> places.read(0)
    array([1, 3])
    """
    size = parse_size(size, graph, _UNKNOWN)
    bits, starts = _flag_nonzero(x, graph)
    count = _read_total(x, bits, starts, "x") if size is None else size
    indices = _write_indices(x, bits, starts, count, graph)
    if size:
        for result in indices:
            compaction.fill_rest(result, starts, fill_value, graph)
    return indices


@repeatable
def _flag_nonzero(x: operands.ArrayLike, graph: CommandGraph | None) -> tuple[Buffer[Any], Buffer[Any]]:
    """Check the argument of `nonzero`, and return `bits` and `starts` of `Flags`. It does not wait."""
    values = _parse_condition(x, "x")
    if not values.shape:
        raise ArgumentValueError("x: an array of no axes has no indices")
    return _flag_where(values, graph)


@repeatable
def _write_indices(
    x: operands.ArrayLike, bits: Buffer[Any], starts: Buffer[Any], count: int, graph: CommandGraph | None
) -> tuple[Buffer[Any], ...]:
    """Return the first `count` indices along each axis. It does not wait."""
    indices = tuple(operands.prepare_result(None, (count,), dtype.int64, x.context) for _ in x.shape)
    if count and x.size:
        arguments = (*indices, *x.shape[1:])
        compaction.write_elements(
            compaction.flags_from(bits, starts, x.size), Indices(len(x.shape)), arguments, count, graph
        )
    return indices


def _call_condition(condition: MappingFunction, x: operands.ArrayLike) -> MappedArray:
    """Return a condition, given as a map, called with the array."""
    called = condition(x) if len(condition.buffer_types) == 1 else None
    if not isinstance(called, MappedArray):
        raise ArgumentTypeError(
            f"condition: {condition.name!r} has more than one parameter; call it: {condition.name}(x, ...)"
        )
    return called


def _parse_condition(array: Any, name: str = "condition") -> operands.Operand:
    parsed = operands.parse_operand(array, name)
    if not compaction.is_countable(parsed):
        raise ArgumentTypeError(f"{name}: expected numbers or booleans, got {parsed.var_type.name}")
    return parsed


def _flag_where(condition: operands.Operand, graph: CommandGraph | None) -> tuple[Buffer[Any], Buffer[Any]]:
    if condition.size == 0:
        none = asbuffer(_ZERO, context=condition.context)
        return none, none
    flags = compaction.flag_elements(condition, graph)
    return flags.bits, flags.starts


def _read_total(condition: Any, bits: Buffer[Any], starts: Buffer[Any], name: str) -> int:
    """Wait for the number of elements that are kept."""
    return compaction.flags_from(bits, starts, condition.size).read_total(name) if condition.size else 0


def make_total(starts: Buffer[Any], graph: CommandGraph | None) -> Buffer[Any]:
    """Return the number of elements that are kept, the last of the starts of `Flags`, as an int64."""
    total: Buffer[Any] = function_buffer(1, dtype.int64, context=starts.context)
    _make_total_kernel()(starts, total, graph=graph)
    return total


@store_results
def _make_total_kernel() -> ShaderFunction:
    def trace(starts: Any, total: Any) -> None:
        total[0] = starts[starts.shape.w - 1].to_dtype(dtype.int64)

    return trace_kernel("total", trace, buffers(starts=dtype.uint32, total=dtype.int64), 1, 1)


@dataclass(frozen=True)
class Values(compaction.Writer):
    """Writes elements of an array through a map."""

    source: Source
    sink: operands.Sink
    name = "compact"

    def arguments(self) -> list[Argument | list[Argument]]:
        """See `Writer`."""
        return [*buffers(kept=self.sink.out_type), self.source.parameters, self.sink.parameters]

    @property
    def reads_all(self) -> bool:  # type: ignore[override]
        """See `Writer`."""
        # the condition may guard a map against indices that it must not read
        return self.source.is_plain

    def value(self, variables: Sequence[Any], index: Any) -> Any:
        """See `Writer`."""
        return self.source.value(variables[1], index)

    def write(self, variables: Sequence[Any], place: Any, index: Any, value: Any) -> None:
        """See `Writer`."""
        kept, _, mapping = variables
        self.sink.store(kept, mapping, place, value)


@dataclass(frozen=True)
class Indices(compaction.Writer):
    """Writes indices along each axis."""

    axes: int
    name = "nonzero"

    def arguments(self) -> list[Argument | list[Argument]]:
        """See `Writer`."""
        results = buffers(**{f"indices{axis}": dtype.int64 for axis in range(self.axes)})
        return [results, numbers(*(f"length{axis}" for axis in range(1, self.axes)))]

    def write(self, variables: Sequence[Any], place: Any, index: Any, value: Any) -> None:
        """See `Writer`."""
        results, lengths = variables
        left = index.to_register("flat_index")
        for axis in range(self.axes - 1, 0, -1):
            quotient = (left // lengths[axis - 1]).to_register()
            results[axis][place] = (left - quotient * lengths[axis - 1]).to_dtype(dtype.int64)
            left = quotient
        results[0][place] = left.to_dtype(dtype.int64)


# ---- `vd.unique`: the distinct elements of an array ------------------------------------------------------
#
# elements   3 1 3 2 1          sorted, with their positions:        1 1 2 3 3    positions  1 4 3 0 2
# heads      elements that differ from the one before                1 0 1 1 0    flags
# unique     the heads, without gaps                                 1   2 3      (see `compaction`)
# index      positions of the heads: sorts are stable, so these      1   3 0
#            are the first positions
# counts     distances from each head to the next                    2   1 2
# inverse    the number of heads up to an element, minus one,        2 0 2 1 0
#            stored at the position of the element


_GROUP = 256
# `bits` and `starts` of the `Flags` of heads; the sorted elements, and their positions.
_Runs = tuple[Buffer[Any], Buffer[Any], Buffer[Any], Buffer[Any] | None]


# NumPy's arguments
@array_function
def unique(  # noqa: PLR0913
    x: operands.ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: object = None,
    output_map: operands.ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> Any:
    """Return the sorted distinct elements of an array, like `numpy.unique`.

    Parameters
    ----------
    x
        A buffer of scalars or complex numbers, or a map called with its arguments. Several axes are
        flattened.
    return_index
        Whether to return the first index of each distinct element in `x`.
    return_inverse
        Whether to return for each element of `x` its index in the result.
    return_counts
        Whether to return how often each distinct element occurs.
    equal_nan
        Whether all NaNs are equal, as the last element; otherwise they are distinct.
    size
        The size of the result, which holds the first elements if there are more. None: the number of distinct
        elements, for which the call waits. Graphs need a size.
    fill_value
        With `size`: the number that fills the result after the last element. None: the smallest element.
        Indices there are the index of the smallest element, and counts are 0.
    output_map
        A `vd.map` that is applied to each distinct element.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of one axis. With any `return_` argument, a tuple: that buffer and, as int64, the index, the
    inverse (of the shape of `x`) and the counts that were requested.

    Raises
    ------
    TypeError
        `x` is not an array of numbers or booleans.
    ValueError
        `size` is negative, or not 0 for an empty array without a `fill_value`; `x` has 2**32 elements or
        more.
    RuntimeError
        `size` is None in a graph.

    Examples
    --------
    >>> vd.unique(vd.asbuffer(np.array([3, 1, 3, 2], np.int32))).read(0)
    array([1, 2, 3], dtype=int32)
    """
    size = parse_size(size, graph, "how many elements there are")
    requests = (bool(return_index), bool(return_inverse), bool(return_counts))
    if getattr(x, "size", None) == 0:
        return _return_nothing(x, _Requests(*requests), size, fill_value, output_map, graph)
    needs_positions = bool(return_index or return_inverse)
    runs = _flag_heads(x, needs_positions, bool(equal_nan), size, output_map, graph)
    count = compaction.flags_from(runs[0], runs[1], x.size).read_total("x") if size is None else size
    results = _Results(*_write_heads(x, requests, runs, count, size is not None, output_map, graph))
    if size:
        _fill_rest(results, runs[1], fill_value, graph)
    return results.pack()


def _parse(
    x: operands.ArrayLike, size: int | None, output_map: operands.ResultMap | None
) -> tuple[operands.Operand, operands.Output]:
    values = operands.parse_operand(x, "x")
    if not is_sortable(values.var_type):
        raise ArgumentTypeError(f"x: expected numbers or booleans, got {values.var_type.name}")
    sink = operands.parse_output(
        output_map, values.var_type, most=values.size if size is None else min(values.size, size)
    )
    operands.check_overlap((), sink, elsewhere=[values])
    return values, sink


@repeatable
def _flag_heads(
    x: operands.ArrayLike,
    needs_positions: bool,
    equal_nan: bool,
    size: int | None,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> _Runs:
    """Check the arguments of `unique`, sort, and flag the heads of runs. It does not wait."""
    values, _ = _parse(x, size, output_map)
    keys, positions = _sort(values, needs_positions, graph)
    flags = compaction.flag_elements(
        operands.parse_operand(keys), graph, keeps_heads=True, equal_nan=equal_nan
    )
    return flags.bits, flags.starts, keys, positions


@repeatable
def _write_heads(
    x: operands.ArrayLike,
    requests: tuple[bool, bool, bool],
    runs: _Runs,
    count: int,
    has_size: bool,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> tuple[Buffer[Any], Buffer[Any] | None, Buffer[Any] | None, Buffer[Any] | None]:
    """Return the first `count` distinct elements, and the index, inverse and counts that were requested.

    It does not wait. With `has_size` there may be more distinct elements, or fewer.
    """
    values, requested = operands.parse_operand(x, "x"), _Requests(*requests)
    bits, starts, keys, positions = runs
    sink = operands.parse_output(output_map, values.var_type, most=min(values.size, count))
    results = _make_results(values, requested, sink.out_type, count)
    # one more place than elements: the count of the last one needs the next head
    heads: Buffer[Any] | None = (
        function_buffer(count + 1, dtype.int64, context=x.context) if requested.counts else None
    )
    if count or requested.inverse:
        kind = None if positions is None else positions.var_type
        plain = sink.sink.mapping is None
        # without a map, bits are copied
        copied = raw_type(keys.var_type) if plain else keys.var_type
        writer = Heads(
            copied, operands.parse_output(None, copied).sink if plain else sink.sink, requested, kind
        )
        others = [
            buffer for buffer in (positions, results.index, heads, results.inverse) if buffer is not None
        ]
        flags = compaction.flags_from(bits, starts, values.size)
        compaction.write_elements(
            flags, writer, (results.values, keys, *others, *sink.arguments), count + 1, graph
        )
    if count and results.counts is not None:
        ends = (starts,) if has_size else ()
        _make_count_kernel(keys.var_type, has_size)(results.counts, heads, keys, *ends, graph=graph)
    return results.values, results.index, results.inverse, results.counts


@record
class _Requests:
    """What is returned in addition to the elements."""

    index: bool
    inverse: bool
    counts: bool


@record(eq=False)
class _Results:
    """The buffers of results; None for those that were not requested."""

    values: Buffer[Any]
    index: Buffer[Any] | None
    inverse: Buffer[Any] | None
    counts: Buffer[Any] | None

    def pack(self) -> Any:
        """Return the results as `unique` does."""
        others = [buffer for buffer in (self.index, self.inverse, self.counts) if buffer is not None]
        return (self.values, *others) if others else self.values


def _make_results(x: operands.Operand, requested: _Requests, kind: DType, count: int) -> _Results:
    def integers(is_requested: bool, shape: tuple[int, ...]) -> Buffer[Any] | None:
        return operands.prepare_result(None, shape, dtype.int64, x.context) if is_requested else None

    return _Results(
        operands.prepare_result(None, (count,), kind, x.context),
        integers(requested.index, (count,)),
        integers(requested.inverse, x.shape),
        integers(requested.counts, (count,)),
    )


def _return_nothing(
    x: operands.ArrayLike,
    requested: _Requests,
    size: int | None,
    fill_value: Any,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> Any:
    values, sink = _parse(x, size, output_map)
    count = size or 0
    if count and fill_value is None:
        raise ArgumentValueError("fill_value: required, because x has no elements to fill the result with")
    results = _make_results(values, requested, sink.out_type, count)
    if count:
        none = asbuffer(np.zeros(1, np.uint32), context=x.context)
        compaction.fill_rest(results.values, none, fill_value, graph)
        for result in (results.index, results.counts):
            if result is not None:
                clear_buffer(result, graph)
    return results.pack()


def _sort(
    x: operands.Operand, needs_positions: bool, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any] | None]:
    """Return the sorted elements, and their positions in the array."""
    rows = Along(1, x.size, 1)
    source = x.arguments[0] if x.source.is_plain else into_rows(x, rows, graph)
    keys: Buffer[Any] = function_buffer(x.size, x.var_type, context=x.context)
    positions: Buffer[Any] | None = None
    if needs_positions:
        positions = function_buffer(x.size, position_type(x.size), context=x.context)
    sort_rows(source, Order(x.var_type), rows.rows, keys_to=keys, positions_to=positions, graph=graph)
    return keys, positions


@dataclass(frozen=True)
class Heads(compaction.Writer):
    """Writes the heads of runs, their positions, where runs begin, and the run of each element."""

    kind: DType
    sink: operands.Sink
    requested: _Requests
    position: DType | None
    name = "unique"

    @property
    def has_visits(self) -> bool:  # type: ignore[override]
        """See `Writer`."""
        return self.requested.inverse

    def arguments(self) -> list[Argument | list[Argument]]:
        """See `Writer`."""
        return [
            *buffers(
                unique_values=self.sink.out_type,
                unique_keys=self.kind,
                unique_positions=self.position,
                unique_index=dtype.int64 if self.requested.index else None,
                unique_heads=dtype.int64 if self.requested.counts else None,
                unique_inverse=dtype.int64 if self.requested.inverse else None,
            ),
            self.sink.parameters,
        ]

    def value(self, variables: Sequence[Any], index: Any) -> Any:
        """See `Writer`."""
        _, keys, *_ = variables
        return keys[index].to_register()

    def write(self, variables: Sequence[Any], place: Any, index: Any, value: Any) -> None:
        """See `Writer`."""
        values, _, positions, firsts, heads, _, mapping = variables
        with vc.if_block(place.to_dtype(dtype.int32) < values.shape.w):
            self.sink.store(values, mapping, place, value)
            if firsts is not None:
                firsts[place] = unpack_position(positions[index]).to_dtype(dtype.int64)
        if heads is not None:
            heads[place] = index.to_dtype(dtype.int64)

    def visit(self, variables: Sequence[Any], rank: Any, index: Any) -> None:
        """See `Writer`."""
        _, _, positions, _, _, inverse, _ = variables
        inverse[unpack_position(positions[index])] = (rank - 1).to_dtype(dtype.int64)


@store_results
def _make_count_kernel(kind: DType, has_size: bool) -> ShaderFunction:
    """Return the kernel that computes counts from heads.

    With `has_size` there may be more counts than heads, or fewer; `starts` has the number of heads.
    """

    def trace(counts: Any, heads: Any, keys: Any, starts: Any) -> None:
        index = vc.global_invocation_id().x
        runs = (starts[starts.shape.w - 1] if has_size else counts.shape.w).to_register()
        count = vc.new_int64_register(0)
        with vc.if_block(index < runs):
            end = vc.new_int64_register(0)
            with vc.if_block(index + 1 < runs):
                end[:] = heads[index + 1]
            with vc.else_block():
                end[:] = keys.shape.w.to_dtype(dtype.int64)
            count[:] = end - heads[index]
        counts[index] = count

    starts = dtype.uint32 if has_size else None
    arguments = buffers(counts=dtype.int64, heads=dtype.int64, keys=kind, starts=starts)
    return trace_kernel("unique_counts", trace, arguments, _GROUP, exec_size="counts.size")


def _fill_rest(results: _Results, starts: Buffer[Any], fill_value: Any, graph: CommandGraph | None) -> None:
    """Fill the places after the last distinct element."""
    if fill_value is not None:
        compaction.fill_rest(results.values, starts, fill_value, graph)
    for result in (results.values if fill_value is None else None, results.index):
        if result is not None:
            compaction.fill_with_first(result, starts, graph)
