"""`vd.compact`, `vd.nonzero` and `vd.unique`: elements that a condition keeps, or the first of their kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.dtype import DType, compute_type, is_complex, is_float_dtype, is_matrix, is_vector
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.calls import agree_on_size, array_function, read_queues, repeatable
from vkdispatch.families.kernels import Argument, buffers, clear_buffer, numbers, trace_kernel
from vkdispatch.families.operands import Operand, fit_source, plain_source
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.scans.launching import exclusive_sum
from vkdispatch.selection.tuning import choose_group, parse_size, sum_before, sum_group, tuning
from vkdispatch.shader.map import MappedArray, MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order, is_sortable, raw_type, unpack_position
from vkdispatch.sorting.launching import position_type, sort_rows
from vkdispatch.sorting.rearranging import Along, choose_copy, copied_type, into_rows

# ---- Filling: the places of a result of a fixed size after its last element get a value ------------------


_GROUP = 256


def fill_rest(result: Buffer[Any], starts: Buffer[Any], value: Any, graph: CommandGraph | None) -> None:
    """Fill the places after the last element with a number: all components of vectors and matrices."""
    kind = result.var_type
    if is_vector(kind):
        value = [value] * kind.child_count
    elif is_matrix(kind):
        value = [[value] * kind.child_count] * kind.child_count
    _make_fill_kernel(kind)(result, starts, value, count_fill_groups(result.size), graph=graph)


@store_results
def _make_fill_kernel(kind: DType) -> ShaderFunction:
    def trace(result: Any, starts: Any, value: Any, groups: Any) -> None:
        with each_free_place(result, starts, groups) as index:
            result[index] = value

    value = numbers("fill_value", kind=compute_type(kind))
    arguments = [*buffers(result=kind, starts=dtype.uint32), *value, *numbers("fill_groups")]
    return trace_kernel("fill_rest", trace, arguments, _GROUP, "fill_groups")


def fill_with_first(values: Buffer[Any], starts: Buffer[Any], graph: CommandGraph | None) -> None:
    """Fill the places after the last element with the first element."""
    kernel = _make_fill_with_first_kernel(copied_type(values.var_type))
    kernel(values, starts, count_fill_groups(values.size), graph=graph)


@store_results
def _make_fill_with_first_kernel(kind: DType) -> ShaderFunction:
    def trace(values: Any, starts: Any, groups: Any) -> None:
        first = values[0].to_register()
        with each_free_place(values, starts, groups) as index:
            values[index] = first

    arguments = [*buffers(values=kind, starts=dtype.uint32), *numbers("fill_groups")]
    return trace_kernel("unique_rest", trace, arguments, _GROUP, "fill_groups")


def count_fill_groups(size: int) -> int:
    """Return how many workgroups fill places. Few places are usually left, so each may have many."""
    return -(-size // (_GROUP * tuning.fill_each))


def each_free_place(result: Any, starts: Any, groups: Any) -> Any:
    """Return a loop over the places after the last element that belong to an invocation, in a trace."""
    first = starts[starts.shape.w - 1].to_register("fill_first")
    begin = first + (vc.workgroup_id().x * _GROUP + vc.local_invocation_id().x)
    return vc.for_block(begin, result.shape.w, groups * _GROUP)


# ---- Flags of the elements that are kept: the first pass of a compaction ---------------------------------
#
#     elements   x x . x | . . . x | x x . . | ...     tiles of 32 elements for each invocation of a workgroup
#     flags      1 1 0 1   0 0 0 1   1 1 0 0           first pass: a bit for each element, a sum for each tile
#     sums       3         1         2
#     starts     0         3         4                 exclusive sum over all tiles
#     result     x x x     x         x x               second pass (below): the place   of an element is the
#                                                      start of its tile plus the flags before it in the tile
#
# The condition is evaluated once for each element. The second pass reads bits, and the elements that are
# kept. Invariants: bit i of word w of a tile is element 32 w + i of the tile. Bits beyond the last element
# are 0.


WORD = 32
# Elements are counted in 32 bits.
_MAX_COUNT = 0xFFFFFFFF

_SINGLES = Order(dtype.float32)


@record(eq=False)
class Flags:
    """Which elements are kept.

    Attributes
    ----------
    bits
        A word for every 32 elements.
    starts
        How many elements are kept before each tile, and last in all.
    size, group, tiles
        The numbers of elements, of invocations of a workgroup, and of tiles.
    """

    bits: Buffer[Any]
    starts: Buffer[Any]
    size: int
    group: int
    tiles: int

    def read_total(self, name: str) -> int:
        """Wait for the device, and return how many elements are kept.

        Raises ValueError, which names an argument, if the queues of the context keep different numbers.
        """
        totals = read_queues(self.starts, self.tiles)
        return agree_on_size([int(total[0]) for total in totals], name, "size=")


def flags_from(bits: Buffer[Any], starts: Buffer[Any], size: int) -> Flags:
    """Return flags of `size` elements from the buffers that `flag_elements` made."""
    group = _choose_tile_group()
    return Flags(bits, starts, size, group, -(-size // (group * WORD)))


def _choose_tile_group() -> int:
    """Return the invocations of a workgroup; each has a word of flags."""
    return max(choose_group(tuning.flag_group), WORD)


@record
class Condition:
    """Which elements are kept.

    Attributes
    ----------
    source
        The values that decide.
    keeps_heads
        Whether elements are kept that differ from the one before: the heads of runs in a sorted array.
        Otherwise values other than 0 are kept.
    equal_nan
        Whether all NaNs are one run.
    """

    source: Source
    keeps_heads: bool = False
    equal_nan: bool = True

    def of_value(self, value: Any) -> Any:
        """Return whether an element of this value is kept."""
        kind = value.var_type
        if kind is dtype.bool_:
            return value
        if is_complex(kind):
            return vc.any(_is_not_zero(value.real), _is_not_zero(value.imag))
        return _is_not_zero(value)

    def at(self, arguments: Sequence[Any], index: Any) -> Any:
        """Return whether the element at an index is kept."""
        if not self.keeps_heads:
            return self.of_value(self.source.value(arguments, index))
        return self.of_run(arguments, index, [self.source.value(arguments, index)])[0]

    def of_run(self, arguments: Sequence[Any], index: Any, values: Sequence[Any]) -> list[Any]:
        """Return for neighbours from an index on whether each differs from the one before."""
        single = self.source.elementwise()
        before = single.value(arguments, vc.select(index == 0, 0, index - 1)).to_register()
        first = vc.any(index == 0, are_different(values[0], before, self.equal_nan))
        pairs = zip(values[1:], values, strict=False)
        return [first, *(are_different(value, last, self.equal_nan) for value, last in pairs)]


def _is_not_zero(value: Any) -> Any:
    if value.var_type is not dtype.float32:
        return value != 0
    # float comparisons of devices may treat subnormal numbers as zero
    return (vc.reinterpret(dtype.uint32, value.to_register()) << 1) != 0


def _numbers_differ(a: Any, b: Any) -> Any:
    """Whether two numbers that are not NaN differ."""
    if a.var_type is not dtype.float32:
        return a != b
    bits, other = (vc.reinterpret(dtype.uint32, value.to_register()).to_register() for value in (a, b))
    return vc.all(bits != other, ((bits | other) << 1) != 0)


def are_different(a: Any, b: Any, equal_nan: bool = True) -> Any:
    """Whether two values differ. NaNs differ from numbers, and without `equal_nan` from each other."""
    if is_complex(a.var_type):
        nan_a = vc.any(vc.isnan(a.real), vc.isnan(a.imag))
        nan_b = vc.any(vc.isnan(b.real), vc.isnan(b.imag))
        numbers_differ = vc.any(_numbers_differ(a.real, b.real), _numbers_differ(a.imag, b.imag))
    elif is_float_dtype(a.var_type):
        if a.var_type is dtype.float32 and equal_nan:
            # values with equal codes are equal to a sort
            return _SINGLES.part(vc.reinterpret(dtype.uint32, a), 0) != _SINGLES.part(
                vc.reinterpret(dtype.uint32, b), 0
            )
        nan_a, nan_b = vc.isnan(a), vc.isnan(b)
        numbers_differ = _numbers_differ(a, b)
    else:
        return a != b
    # comparisons of NaN are unreliable on some devices
    either = vc.any(vc.all(nan_a, ~nan_b), vc.all(~nan_a, nan_b)) if equal_nan else vc.any(nan_a, nan_b)
    return vc.any(either, vc.all(~nan_a, ~nan_b, numbers_differ))


def flag_elements(
    x: Operand, graph: CommandGraph | None, *, keeps_heads: bool = False, equal_nan: bool = True
) -> Flags:
    """Find out which elements are kept.

    Parameters
    ----------
    keeps_heads, equal_nan
        See `Condition`.

    Raises
    ------
    ValueError
        The array has 2**32 elements or more.
    """
    group = _choose_tile_group()
    tile = group * WORD
    tiles = -(-x.size // tile)
    if x.size > _MAX_COUNT:
        raise ArgumentValueError(f"x: expected fewer than 2**32 elements, got {x.size}; take parts of it")
    source = fit_source(_as_bytes(x.source), x.size)
    bits: Buffer[Any] = function_buffer(tiles * group, dtype.uint32, context=x.context)
    sums: Buffer[Any] = function_buffer(tiles, dtype.uint32, context=x.context)
    views = tuple(x.arguments[position] for position, _ in source.views)
    whole, rest = divmod(x.size, tile)
    kernel = _make_flag_kernel(Condition(source, keeps_heads, equal_nan), group)
    kernel(bits, sums, *x.arguments, *views, whole, rest, tiles, graph=graph)
    return Flags(bits, exclusive_sum(sums, graph=graph), x.size, group, tiles)


def _as_bytes(source: Source) -> Source:
    """Return a source of booleans in a buffer as one of bytes, so a load takes many."""
    if source.is_plain and source.out_type is dtype.bool_:
        return plain_source(dtype.uint8)
    return source


def is_countable(x: Operand) -> bool:
    """Whether elements are either zero or not: vectors and matrices are neither."""
    return not (is_vector(x.var_type) or is_matrix(x.var_type))


@store_results
def _make_flag_kernel(condition: Condition, group: int) -> ShaderFunction:
    source = condition.source
    arguments = [
        *buffers(flag_bits=dtype.uint32, flag_sums=dtype.uint32),
        source.parameters,
        buffers(**{f"view{i}_{view.name}": view for i, view in source.views}),
        *numbers("flag_whole", "flag_rest", "flag_tiles"),
    ]

    def trace(bits: Any, sums: Any, own: Any, views: Any, whole: Any, rest: Any, _: Any) -> None:
        lane = vc.local_invocation_id().x
        tile = vc.workgroup_id().x
        memory = vc.shared_buffer(dtype.uint32, group)
        memory[lane] = 0
        vc.barrier()
        with vc.if_block(tile < whole):
            _flag_whole_tile(condition, own, views, tile, lane, group, memory)
        with vc.else_block(), vc.for_block(lane, rest, group) as offset:
            kept = condition.at(own, tile * (group * WORD) + offset)
            with vc.if_block(kept):
                vc.atomic_or(memory[offset // WORD], vc.to_dtype(dtype.uint32, 1) << (offset % WORD))
        vc.barrier()
        word = memory[lane].to_register()
        bits[tile * group + lane] = word
        total = sum_group(vc.bit_count(word).to_dtype(dtype.uint32), lane, group)
        with vc.if_block(lane == 0):
            sums[tile] = total

    name = "flag_heads" if condition.keeps_heads else "flag"
    return trace_kernel(name, trace, arguments, group, "flag_tiles")


def _flag_whole_tile(
    condition: Condition, own: Any, views: Any, tile: Any, lane: Any, group: int, memory: Any
) -> None:
    """Store the flags of a whole tile: an invocation has 32 elements, with several loads in in_flight."""
    source, together = condition.source, condition.source.together
    loads = WORD // together
    in_flight = min(loads, max(1, tuning.flag_loads))
    with vc.for_block(0, loads // in_flight) as number:
        offsets = [(lane + (number * in_flight + u) * group).to_register() for u in range(in_flight)]
        places = [tile * (group * loads) + offset for offset in offsets]
        if together == 1:
            flags = [[condition.at(own, place).to_register()] for place in places]
        else:
            words = [source.load(views, place) for place in places]
            flags = [
                condition.of_run(own, place * together, values)
                if condition.keeps_heads
                else [condition.of_value(value) for value in values]
                for place, values in (
                    (place, source.values(own, place, word))
                    for place, word in zip(places, words, strict=True)
                )
            ]
        for offset, bits in zip(offsets, flags, strict=True):
            mask: Any = vc.new_uint_register(0)
            for i, flag in enumerate(bits):
                mask |= vc.select(flag, 1 << i, 0)
            with vc.if_block(mask != 0):
                first = offset * together
                vc.atomic_or(memory[first // WORD], mask << (first % WORD))


# ---- The second pass of a compaction: elements that are kept are written, in their order -----------------
#
# If tiles are few, the pass itself sums up the counts of the tiles before its own. Tiles that keep much are
# written element by element, so neighbours write to neighbours; tiles that keep little are written bit by
# bit.


class Writer:
    """What is written for each element that is kept. Equal writers, frozen dataclasses, share a kernel."""

    name = "compact"
    # whether `visit` is called
    has_visits = False
    # whether `value` may be called for elements that are not kept
    reads_all = True

    def arguments(self) -> list[Argument | list[Argument]]:
        """Return the kernel's arguments for it; the other methods get the variables of these."""
        raise NotImplementedError

    def value(self, variables: Sequence[Any], index: Any) -> Any:
        """Return, in registers, what `write` needs to know about the element at an index."""
        return index

    def write(self, variables: Sequence[Any], place: Any, index: Any, value: Any) -> None:
        """Write the element at an index to a place."""
        raise NotImplementedError

    def visit(self, variables: Sequence[Any], rank: Any, index: Any) -> None:
        """Handle an element, kept or not; `rank` elements are kept up to it, including itself."""


def write_elements(
    flags: Flags, writer: Writer, arguments: Sequence[Any], size: int, graph: CommandGraph | None
) -> None:
    """Write the first `size` elements that are kept."""
    group = flags.group
    kernel = _make_write_kernel(writer, group, tuning.flag_unroll, tuning.flag_sparse)
    low, high = size & 0x7FFFFFFF, size >> 31
    whole, rest = divmod(flags.size, group * WORD)
    kernel(flags.bits, flags.starts, *arguments, low, high, whole, rest, flags.tiles, graph=graph)


@store_results
def _make_write_kernel(writer: Writer, group: int, unroll: int, sparse: int) -> ShaderFunction:
    arguments = [
        *buffers(flag_bits=dtype.uint32, flag_starts=dtype.uint32),
        *writer.arguments(),
        numbers("size_low", "size_high", "write_whole", "write_rest", "write_tiles"),
    ]
    tile_size = group * WORD

    def trace(bits: Any, starts: Any, *variables: Any) -> None:
        *written, (low, high, whole, rest, _) = variables
        lane = vc.local_invocation_id().x
        tile = vc.workgroup_id().x
        word = bits[tile * group + lane].to_register()
        start = starts[tile].to_register("write_start")
        kept = (starts[tile + 1] - start).to_register()
        before = sum_before(vc.bit_count(word).to_dtype(dtype.uint32), lane, group)
        words = vc.shared_buffer(dtype.uint32, group)
        ranks = vc.shared_buffer(dtype.uint32, group)
        words[lane] = word
        ranks[lane] = before
        vc.barrier()
        # the caller may want fewer elements than are kept
        room = _count_room(low, high, start)

        def write_one(offset: Any, rank: Any) -> None:
            with vc.if_block(rank < room):
                index = tile * tile_size + offset
                writer.write(written, start + rank, index, writer.value(written, index))

        def write_bit_by_bit() -> None:
            left = word.to_register()
            rank = before.to_register()
            with vc.while_block(left != 0):
                bit = vc.find_lsb(left).to_dtype(dtype.uint32).to_register()
                write_one(lane * WORD + bit, rank)
                left &= left - 1
                rank += 1

        def write_element_by_element() -> None:
            inside = vc.select(tile < whole, tile_size, rest).to_register()
            with vc.for_block(0, WORD // unroll) as number:
                elements = [find(number * unroll + u) for u in range(unroll)]
                # all loads before the first store; elements that are not kept share cache lines with others
                values = [
                    writer.value(written, tile * tile_size + vc.min(offset, inside - 1))
                    if writer.reads_all
                    else None
                    for offset, _, _ in elements
                ]
                for (offset, rank, flag), value in zip(elements, values, strict=True):
                    with vc.if_block(vc.all(flag != 0, rank < room)):
                        index = tile * tile_size + offset
                        loaded = writer.value(written, index) if value is None else value
                        writer.write(written, start + rank, index, loaded)
                    if writer.has_visits:
                        with vc.if_block(offset < inside.to_dtype(dtype.int32)):
                            writer.visit(written, start + rank + flag, tile * tile_size + offset)

        def find(number: Any) -> tuple[Any, Any, Any]:
            """Return the offset of an element in the tile, its rank, and its flag."""
            offset = (lane + number * group).to_register()
            flags = words[offset // WORD].to_register()
            bit = (offset % WORD).to_register()
            below = flags & ((vc.to_dtype(dtype.uint32, 1) << bit) - 1)
            rank = (ranks[offset // WORD] + vc.bit_count(below).to_dtype(dtype.uint32)).to_register()
            return offset, rank, ((flags >> bit) & 1).to_register()

        if writer.has_visits:
            write_element_by_element()
            return
        with vc.if_block(kept * sparse < tile_size):
            write_bit_by_bit()
        with vc.else_block():
            write_element_by_element()

    return trace_kernel(writer.name, trace, arguments, group, "write_tiles")


def _count_room(low: Any, high: Any, start: Any) -> Any:
    """Return how many places there are from a tile's start on, or more than a tile needs."""
    size = (low + (high << 31)).to_register()
    left = vc.select(size > start, size - start, 0)
    return vc.select(high > 1, 0xFFFFFFFF, left).to_register()


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
        fill_rest(kept, starts, fill_value, graph)
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
        write_elements(flags_from(bits, starts, condition.size), writer, arguments, count, graph)
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
            fill_rest(result, starts, fill_value, graph)
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
        write_elements(flags_from(bits, starts, x.size), Indices(len(x.shape)), arguments, count, graph)
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
    if not is_countable(parsed):
        raise ArgumentTypeError(f"{name}: expected numbers or booleans, got {parsed.var_type.name}")
    return parsed


def _flag_where(condition: operands.Operand, graph: CommandGraph | None) -> tuple[Buffer[Any], Buffer[Any]]:
    if condition.size == 0:
        none = asbuffer(_ZERO, context=condition.context)
        return none, none
    flags = flag_elements(condition, graph)
    return flags.bits, flags.starts


def _read_total(condition: Any, bits: Buffer[Any], starts: Buffer[Any], name: str) -> int:
    """Wait for the number of elements that are kept."""
    return flags_from(bits, starts, condition.size).read_total(name) if condition.size else 0


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
class Values(Writer):
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
class Indices(Writer):
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
# unique     the heads, without gaps                                 1   2 3      (see above)
# index      positions of the heads: sorts are stable, so these      1   3 0
#            are the first positions
# counts     distances from each head to the next                    2   1 2
# inverse    the number of heads up to an element, minus one,        2 0 2 1 0
#            stored at the position of the element


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
    count = flags_from(runs[0], runs[1], x.size).read_total("x") if size is None else size
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
    flags = flag_elements(operands.parse_operand(keys), graph, keeps_heads=True, equal_nan=equal_nan)
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
        flags = flags_from(bits, starts, values.size)
        write_elements(flags, writer, (results.values, keys, *others, *sink.arguments), count + 1, graph)
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
        fill_rest(results.values, none, fill_value, graph)
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
class Heads(Writer):
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
        fill_rest(results.values, starts, fill_value, graph)
    for result in (results.values if fill_value is None else None, results.index):
        if result is not None:
            fill_with_first(result, starts, graph)
