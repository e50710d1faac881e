"""Compaction: flags of the elements that are kept, their places, and filling behind them."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, compute_type, is_complex, is_float_dtype, is_matrix, is_vector
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import agree_on_size, read_queues
from vkdispatch.families.kernels import Argument, buffers, numbers, trace_kernel
from vkdispatch.families.operands import Operand, fit_source, plain_source
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.scans.segments import exclusive_sum
from vkdispatch.selection.tuning import choose_group, sum_before, sum_group, tuning
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.rearranging import copied_type

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
