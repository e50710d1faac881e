"""What is kept of an array goes together, in its order.

    elements   x x . x | . . . x | x x . . | ...     tiles of 32 elements for each invocation of a workgroup
    flags      1 1 0 1   0 0 0 1   1 1 0 0           first pass: one bit an element, and the sum of each tile
    sums       3         1         2
    starts     0         3         4                 exclusive sum over all tiles
    result     x x x     x         x x               second pass: an element's place is its tile's start
                                                     and the number of flags before it in the tile

The second pass adds up the sums before its tile by itself where tiles are few: the starts take no launch
then, and whoever waits for the number of flags reads all sums and adds them up.

Elements are looked at once, whatever decides on them; the second pass reads bits, and those elements that it
keeps. Invariants: bit i of word w of a tile is element 32 w + i of the tile; bits beyond the last element are
0.

Tiles that keep much go element by element, so that neighbours write to neighbours; those that keep little go
bit by bit.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand, fitting, plain_source
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.waiting import agreed_size, read_queues
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, compute_type, is_complex, is_float_dtype, is_matrix, is_vector
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.scans.sums import exclusive_sum
from vkdispatch.selection.histograms.streaming import group_size
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order

_WORD = 32
# Sums of more subgroups are added up in a loop; of small subgroups sooner, on CPU drivers all: SwiftShader
# compiles many conditions in a loop for minutes.
_MOST_UNROLLED = 32
_MOST_OF_SMALL = 16
_FILL = 256
# Places of each invocation, if there is nothing but places to be filled.
_FILL_EACH = 64
# What is kept is counted in 32 bits.
_MOST = 0xFFFFFFFF
# Sums that each workgroup of a second pass adds up by itself.
_FEW = 2048

_SINGLES = Order(dtype.float32)


@record(frozen=False)
class Tuning:
    """Numbers that were found by measurement, on GPUs.

    Attributes
    ----------
    group
        Invocations of a workgroup; a tile has 32 elements for each.
    flight
        Loads that an invocation has under way.
    sparse
        Tiles that keep fewer than one of so many elements go bit by bit.
    unroll
        Elements that an invocation has under way where tiles go element by element.
    """

    group: int = 256
    flight: int = 8
    sparse: int = 16
    unroll: int = 8


tuning = Tuning()


@record(eq=False)
class Flags:
    """Which elements are kept.

    Attributes
    ----------
    bits
        A word for every 32 elements.
    starts
        How many are kept before each tile; last, how many in all. Or, one element fewer, how many are kept of
        each tile.
    size, group, tiles
        How many elements there are, the invocations of a workgroup whose tiles these are, and how many tiles.
    """

    bits: Buffer[Any]
    starts: Buffer[Any]
    size: int
    group: int
    tiles: int

    @property
    def summed(self) -> bool:
        """Whether `starts` are sums up to each tile, not of each."""
        return self.starts.size > self.tiles

    def total(self, name: str) -> int:
        """Return how many elements are kept; waits for the device.

        Raises ValueError, which names an argument, where the queues of the context keep different numbers.
        """
        totals = read_queues(self.starts, self.tiles if self.summed else 0)
        return agreed_size([int(each.sum(dtype=np.int64)) for each in totals], name, "size=")


def flags_of(bits: Buffer[Any], starts: Buffer[Any], size: int) -> Flags:
    """Return flags of so many elements from their buffers, as `flagged` has made them."""
    group = _tile_group()
    return Flags(bits, starts, size, group, -(-size // (group * _WORD)))


def _tile_group() -> int:
    """Return the invocations of a workgroup, of which each has a word of flags."""
    return max(group_size(tuning.group), _WORD)


@record
class Decision:
    """What decides on elements: `act(variables, index)` returns whether one is kept.

    `source` gives values, of which the true ones (not 0) are kept; without `differs`. With it, elements are
    kept that differ from the one before: the heads of runs in sorted arrays, of which NaNs are one if they
    are `equal_nan`.
    """

    source: Source
    differs: bool = False
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
        if not self.differs:
            return self.of_value(self.source.value(arguments, index))
        return self.of_run(arguments, index, [self.source.value(arguments, index)])[0]

    def of_run(self, arguments: Sequence[Any], index: Any, values: Sequence[Any]) -> list[Any]:
        """Return whether each of some neighbours, from an index on, differs from the one before."""
        single = self.source.elementwise()
        before = single.value(arguments, vc.select(index == 0, 0, index - 1)).to_register()
        first = vc.any(index == 0, are_different(values[0], before, self.equal_nan))
        rest = zip(values[1:], values, strict=False)
        return [first, *(are_different(value, last, self.equal_nan) for value, last in rest)]


def _is_not_zero(value: Any) -> Any:
    if value.var_type is not dtype.float32:
        return value != 0
    # devices may take subnormal numbers for zeros when they compare floats
    return (vc.reinterpret(dtype.uint32, value.to_register()) << 1) != 0


def _numbers_differ(a: Any, b: Any) -> Any:
    """Whether two numbers that are not NaN differ."""
    if a.var_type is not dtype.float32:
        return a != b
    bits, other = (vc.reinterpret(dtype.uint32, each.to_register()).to_register() for each in (a, b))
    return vc.all(bits != other, ((bits | other) << 1) != 0)


def are_different(a: Any, b: Any, equal_nan: bool = True) -> Any:
    """Whether two values differ; NaNs differ from numbers, and from one another as it is said."""
    if is_complex(a.var_type):
        nan_a = vc.any(vc.isnan(a.real), vc.isnan(a.imag))
        nan_b = vc.any(vc.isnan(b.real), vc.isnan(b.imag))
        numbers_differ = vc.any(_numbers_differ(a.real, b.real), _numbers_differ(a.imag, b.imag))
    elif is_float_dtype(a.var_type):
        if a.var_type is dtype.float32 and equal_nan:
            # values that sort as equals
            return _SINGLES.part(vc.reinterpret(dtype.uint32, a), 0) != _SINGLES.part(
                vc.reinterpret(dtype.uint32, b), 0
            )
        nan_a, nan_b = vc.isnan(a), vc.isnan(b)
        numbers_differ = _numbers_differ(a, b)
    else:
        return a != b
    # what comparisons say of NaN is not asked
    either = vc.any(vc.all(nan_a, ~nan_b), vc.all(~nan_a, nan_b)) if equal_nan else vc.any(nan_a, nan_b)
    return vc.any(either, vc.all(~nan_a, ~nan_b, numbers_differ))


def flagged(
    x: Operand,
    graph: CommandGraph | None,
    *,
    summed: bool,
    differs: bool = False,
    equal_nan: bool = True,
) -> Flags:
    """Find out which elements are kept.

    Parameters
    ----------
    summed
        Whether kernels need the number of all that are kept; else it is for `Flags.total` alone.

    Raises
    ------
    ValueError
        The array has 2**32 elements or more.
    """
    group = _tile_group()
    tile = group * _WORD
    tiles = -(-x.size // tile)
    if x.size > _MOST:
        raise ArgumentValueError(f"x: expected fewer than 2**32 elements, got {x.size}; take parts of it")
    source = fitting(_bytewise(x.source), x.size)
    bits: Buffer[Any] = function_buffer(tiles * group, dtype.uint32, context=x.context)
    sums: Buffer[Any] = function_buffer(tiles, dtype.uint32, context=x.context)
    views = tuple(x.arguments[position] for position, _ in source.views)
    whole, rest = divmod(x.size, tile)
    kernel = _flagging(Decision(source, differs, equal_nan), group)
    kernel(bits, sums, *x.arguments, *views, whole, rest, tiles, graph=graph)
    starts = exclusive_sum(sums, graph=graph) if summed or tiles > _FEW else sums
    return Flags(bits, starts, x.size, group, tiles)


def _bytewise(source: Source) -> Source:
    """Return a source of truth values in a buffer as one of bytes, of which a load takes many."""
    if source.plain and source.out_type is dtype.bool_:
        return plain_source(dtype.uint8)
    return source


def is_countable(x: Operand) -> bool:
    """Whether elements are true or false."""
    return not (is_vector(x.var_type) or is_matrix(x.var_type))


@remembered
def _flagging(decision: Decision, group: int) -> ShaderFunction:
    source = decision.source
    arguments = [
        ("flag_bits", buffer[dtype.uint32]),
        ("flag_sums", buffer[dtype.uint32]),
        *source.parameters,
        *((f"view{i}_{view.name}", buffer[view]) for i, view in source.views),
        *((name, constant[dtype.uint32]) for name in ("flag_whole", "flag_rest", "flag_tiles")),
    ]
    count = len(source.annotations)

    def trace(bits: Any, sums: Any, *variables: Any) -> None:
        own, views = variables[:count], variables[count:-3]
        whole, rest = variables[-3:-1]
        lane = vc.local_invocation_id().x
        tile = vc.workgroup_id().x
        memory = vc.shared_buffer(dtype.uint32, group)
        memory[lane] = 0
        vc.barrier()
        with vc.if_block(tile < whole):
            _whole_tile(decision, own, views, tile, lane, group, memory)
        with vc.else_block(), vc.for_block(lane, rest, group) as offset:
            kept = decision.at(own, tile * (group * _WORD) + offset)
            with vc.if_block(kept):
                vc.atomic_or(memory[offset // _WORD], vc.to_dtype(dtype.uint32, 1) << (offset % _WORD))
        vc.barrier()
        word = memory[lane].to_register()
        bits[tile * group + lane] = word
        total = summed(vc.bit_count(word).to_dtype(dtype.uint32), lane, group)
        with vc.if_block(lane == 0):
            sums[tile] = total

    name = "flag_heads" if decision.differs else "flag"
    return traced(name, trace, arguments, group, "flag_tiles")


def _whole_tile(
    decision: Decision, own: Any, views: Any, tile: Any, lane: Any, group: int, memory: Any
) -> None:
    """Put the flags of a whole tile into memory: 32 elements of each invocation, some loads at once."""
    source, together = decision.source, decision.source.together
    loads = _WORD // together
    flight = min(loads, max(1, tuning.flight))
    with vc.for_block(0, loads // flight) as number:
        offsets = [(lane + (number * flight + u) * group).to_register() for u in range(flight)]
        places = [tile * (group * loads) + offset for offset in offsets]
        if together == 1:
            flags = [[decision.at(own, place).to_register()] for place in places]
        else:
            words = [source.loaded(views, place) for place in places]
            flags = [
                decision.of_run(own, place * together, values)
                if decision.differs
                else [decision.of_value(value) for value in values]
                for place, values in (
                    (place, source.values(own, place, word))
                    for place, word in zip(places, words, strict=True)
                )
            ]
        for offset, each in zip(offsets, flags, strict=True):
            mask: Any = vc.new_uint_register(0)
            for i, flag in enumerate(each):
                mask |= vc.select(flag, 1 << i, 0)
            with vc.if_block(mask != 0):
                first = offset * together
                vc.atomic_or(memory[first // _WORD], mask << (first % _WORD))


def summed(value: Any, lane: Any, group: int) -> Any:
    """Return the sum of a value over the workgroup, known to its first invocation."""
    subgroup = device_facts().subgroup
    part = vc.subgroup_add(value).to_register()
    count = max(1, group // subgroup)
    memory = vc.shared_buffer(dtype.uint32, count)
    with vc.if_block(lane % subgroup == 0):
        memory[lane // subgroup] = part
    vc.barrier()
    total = vc.new_uint_register(0)
    with vc.if_block(lane == 0):
        if _adds_in_loop(count):
            with vc.for_block(0, count) as each:
                total += memory[each]
        else:
            for i in range(count):
                total += memory[i]
    return total


def summed_before(value: Any, lane: Any, group: int) -> Any:
    """Return the sum of a value over the invocations of the workgroup before each."""
    subgroup = device_facts().subgroup
    own = vc.subgroup_exclusive_add(value).to_register()
    count = max(1, group // subgroup)
    memory = vc.shared_buffer(dtype.uint32, count)
    with vc.if_block(lane % subgroup == subgroup - 1):
        memory[lane // subgroup] = own + value
    vc.barrier()
    before = vc.new_uint_register(0)
    if _adds_in_loop(count):
        with vc.for_block(0, lane // subgroup) as each:
            before += memory[each]
        return (own + before).to_register()
    for i in range(count - 1):
        before += vc.select(lane // subgroup > i, memory[i], 0)
    return (own + before).to_register()


def _adds_in_loop(count: int) -> bool:
    facts = device_facts()
    return facts.cpu or count > (_MOST_UNROLLED if facts.subgroup >= 32 else _MOST_OF_SMALL)


# -- the second pass


class Writer:
    """What is written of the elements that are kept. Equal writers, frozen dataclasses, have one kernel."""

    name = "compact"
    # whether `number` is to be called
    numbers = False
    # whether values may be asked for of elements that are not kept
    reads = True

    def arguments(self) -> list[tuple[str, Any]]:
        """Return names and annotations of the kernel's arguments for it."""
        raise NotImplementedError

    def value(self, variables: Sequence[Any], index: Any) -> Any:
        """Return, in registers, what `write` needs of the element at an index."""
        return index

    def write(self, variables: Sequence[Any], place: Any, index: Any, value: Any) -> None:
        """Write the element at an index to a place."""
        raise NotImplementedError

    def number(self, variables: Sequence[Any], rank: Any, index: Any) -> None:
        """Do something with every element, kept or not; `rank` are kept up to it, itself included."""


def compacted(
    flags: Flags, writer: Writer, arguments: Sequence[Any], size: int, graph: CommandGraph | None
) -> None:
    """Write what is kept to the places from 0 to `size`; what is more is left out."""
    group = flags.group
    kernel = _writing(writer, group, flags.summed)
    low, high = size & 0x7FFFFFFF, size >> 31
    whole, rest = divmod(flags.size, group * _WORD)
    kernel(flags.bits, flags.starts, *arguments, low, high, whole, rest, flags.tiles, graph=graph)


@remembered
def _writing(writer: Writer, group: int, summed: bool) -> ShaderFunction:
    names = ("size_low", "size_high", "write_whole", "write_rest", "write_tiles")
    arguments = [
        ("flag_bits", buffer[dtype.uint32]),
        ("flag_starts", buffer[dtype.uint32]),
        *writer.arguments(),
        *((name, constant[dtype.uint32]) for name in names),
    ]
    tile_size = group * _WORD
    unroll = tuning.unroll

    def trace(bits: Any, starts: Any, *variables: Any) -> None:
        own = variables[:-5]
        low, high, whole, rest = variables[-5:-1]
        lane = vc.local_invocation_id().x
        tile = vc.workgroup_id().x
        word = bits[tile * group + lane].to_register()
        if summed:
            start = starts[tile].to_register("write_start")
            kept = (starts[tile + 1] - start).to_register()
        else:
            start = _start(starts, tile, lane, group)
            kept = starts[tile].to_register()
        before = summed_before(vc.bit_count(word).to_dtype(dtype.uint32), lane, group)
        words = vc.shared_buffer(dtype.uint32, group)
        ranks = vc.shared_buffer(dtype.uint32, group)
        words[lane] = word
        ranks[lane] = before
        vc.barrier()
        # places beyond the size are those of a caller that wanted fewer
        room = _room(low, high, start)

        def act(offset: Any, rank: Any) -> None:
            with vc.if_block(rank < room):
                index = tile * tile_size + offset
                writer.write(own, start + rank, index, writer.value(own, index))

        def bit_by_bit() -> None:
            left = word.to_register()
            rank = before.to_register()
            with vc.while_block(left != 0):
                bit = vc.find_lsb(left).to_dtype(dtype.uint32).to_register()
                act(lane * _WORD + bit, rank)
                left &= left - 1
                rank += 1

        def element_by_element() -> None:
            inside = vc.select(tile < whole, tile_size, rest).to_register()
            with vc.for_block(0, _WORD // unroll) as number:
                steps = [_step(number * unroll + u) for u in range(unroll)]
                # all loads before the first store; what is not kept is read too, for its line is
                read = [
                    writer.value(own, tile * tile_size + vc.min(offset, inside - 1)) if writer.reads else None
                    for offset, _, _ in steps
                ]
                for (offset, rank, flag), value in zip(steps, read, strict=True):
                    with vc.if_block(vc.all(flag != 0, rank < room)):
                        index = tile * tile_size + offset
                        found = writer.value(own, index) if value is None else value
                        writer.write(own, start + rank, index, found)
                    if writer.numbers:
                        with vc.if_block(offset < inside.to_dtype(dtype.int32)):
                            writer.number(own, start + rank + flag, tile * tile_size + offset)

        def _step(number: Any) -> tuple[Any, Any, Any]:
            offset = (lane + number * group).to_register()
            mine = words[offset // _WORD].to_register()
            bit = (offset % _WORD).to_register()
            below = mine & ((vc.to_dtype(dtype.uint32, 1) << bit) - 1)
            rank = (ranks[offset // _WORD] + vc.bit_count(below).to_dtype(dtype.uint32)).to_register()
            return offset, rank, ((mine >> bit) & 1).to_register()

        if writer.numbers:
            element_by_element()
            return
        with vc.if_block(kept * tuning.sparse < tile_size):
            bit_by_bit()
        with vc.else_block():
            element_by_element()

    return traced(writer.name, trace, arguments, group, "write_tiles")


def _start(sums: Any, tile: Any, lane: Any, group: int) -> Any:
    """Return how many elements are kept before a tile."""
    part = vc.new_uint_register(0)
    with vc.for_block(lane, tile, group) as place:
        part += sums[place]
    total = summed(part, lane, group)
    memory = vc.shared_buffer(dtype.uint32, 1)
    with vc.if_block(lane == 0):
        memory[0] = total
    vc.barrier()
    return memory[0].to_register("write_start")


def _room(low: Any, high: Any, start: Any) -> Any:
    """Return how many places there are from a tile's start on, or more than any tile needs."""
    size = (low + (high << 31)).to_register()
    left = vc.select(size > start, size - start, 0)
    return vc.select(high > 1, 0xFFFFFFFF, left).to_register()


# -- what is not kept


def filled(result: Buffer[Any], starts: Buffer[Any], value: Any, graph: CommandGraph | None) -> None:
    """Fill the places behind all that is kept with a number; of vectors and matrices, every component."""
    kind = result.var_type
    if is_vector(kind):
        value = [value] * kind.child_count
    elif is_matrix(kind):
        value = [[value] * kind.child_count] * kind.child_count
    _filling(kind)(result, starts, value, fill_groups(result.size), graph=graph)


def fill_groups(size: int) -> int:
    """Return how many workgroups fill places, of which nearly always few are left to be filled."""
    return -(-size // (_FILL * _FILL_EACH))


def rest(result: Any, starts: Any, groups: Any) -> Any:
    """Return the block in which an invocation goes over its places behind all that is kept."""
    first = starts[starts.shape.w - 1].to_register("fill_first")
    begin = first + (vc.workgroup_id().x * _FILL + vc.local_invocation_id().x)
    return vc.for_block(begin, result.shape.w, groups * _FILL)


@remembered
def _filling(kind: DType) -> ShaderFunction:
    def trace(result: Any, starts: Any, value: Any, groups: Any) -> None:
        with rest(result, starts, groups) as index:
            result[index] = value

    number = compute_type(kind)
    arguments = [
        ("result", buffer[kind]),
        ("starts", buffer[dtype.uint32]),
        ("fill_value", constant[number]),
        ("fill_groups", constant[dtype.uint32]),
    ]
    return traced("fill_rest", trace, arguments, _FILL, "fill_groups")
