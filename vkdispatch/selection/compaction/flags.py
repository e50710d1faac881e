"""Flags of the elements that are kept: the first pass of a compaction.

    elements   x x . x | . . . x | x x . . | ...     tiles of 32 elements for each invocation of a workgroup
    flags      1 1 0 1   0 0 0 1   1 1 0 0           first pass: a bit for each element, a sum for each tile
    sums       3         1         2
    starts     0         3         4                 exclusive sum over all tiles
    result     x x x     x         x x               second pass (`writing`): the place of an element is the
                                                     start of its tile plus the flags before it in the tile

If tiles are few, starts need no launch: the second pass adds up the sums before its tile by itself, and the
host adds up all sums if it waits for the number of elements.

The condition is evaluated once for each element. The second pass reads bits, and the elements that are kept.
Invariants: bit i of word w of a tile is element 32 w + i of the tile. Bits beyond the last element are 0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import is_complex, is_float_dtype, is_matrix, is_vector
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import agree_on_size, read_queues
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import Operand, fit_source, plain_source
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import memoize
from vkdispatch.scans.sums import exclusive_sum
from vkdispatch.selection.tuning import choose_group, tuning
from vkdispatch.selection.workgroup_sums import sum_group
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order

WORD = 32
# Elements are counted in 32 bits.
_MOST = 0xFFFFFFFF

_SINGLES = Order(dtype.float32)


@record(eq=False)
class Flags:
    """Which elements are kept.

    Attributes
    ----------
    bits
        A word for every 32 elements.
    starts
        How many elements are kept before each tile, and last in all. Or, with one number less, how many are
        kept in each tile.
    size, group, tiles
        The numbers of elements, of invocations of a workgroup, and of tiles.
    """

    bits: Buffer[Any]
    starts: Buffer[Any]
    size: int
    group: int
    tiles: int

    @property
    def has_sums(self) -> bool:
        """Whether `starts` are sums over the tiles before."""
        return self.starts.size > self.tiles

    def read_total(self, name: str) -> int:
        """Wait for the device, and return how many elements are kept.

        Raises ValueError, which names an argument, if the queues of the context keep different numbers.
        """
        totals = read_queues(self.starts, self.tiles if self.has_sums else 0)
        return agree_on_size([int(each.sum(dtype=np.int64)) for each in totals], name, "size=")


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
    bits, other = (vc.reinterpret(dtype.uint32, each.to_register()).to_register() for each in (a, b))
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
    x: Operand,
    graph: CommandGraph | None,
    *,
    needs_sums: bool,
    keeps_heads: bool = False,
    equal_nan: bool = True,
) -> Flags:
    """Find out which elements are kept.

    Parameters
    ----------
    needs_sums
        Whether kernels need the number of elements that are kept; otherwise only `Flags.read_total` does.
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
    if x.size > _MOST:
        raise ArgumentValueError(f"x: expected fewer than 2**32 elements, got {x.size}; take parts of it")
    source = fit_source(_as_bytes(x.source), x.size)
    bits: Buffer[Any] = function_buffer(tiles * group, dtype.uint32, context=x.context)
    sums: Buffer[Any] = function_buffer(tiles, dtype.uint32, context=x.context)
    views = tuple(x.arguments[position] for position, _ in source.views)
    whole, rest = divmod(x.size, tile)
    kernel = _make_flag_kernel(Condition(source, keeps_heads, equal_nan), group)
    kernel(bits, sums, *x.arguments, *views, whole, rest, tiles, graph=graph)
    starts = exclusive_sum(sums, graph=graph) if needs_sums or tiles > tuning.flag_few else sums
    return Flags(bits, starts, x.size, group, tiles)


def _as_bytes(source: Source) -> Source:
    """Return a source of booleans in a buffer as one of bytes, so a load takes many."""
    if source.is_plain and source.out_type is dtype.bool_:
        return plain_source(dtype.uint8)
    return source


def is_countable(x: Operand) -> bool:
    """Whether elements are either zero or not: vectors and matrices are neither."""
    return not (is_vector(x.var_type) or is_matrix(x.var_type))


@memoize
def _make_flag_kernel(condition: Condition, group: int) -> ShaderFunction:
    source = condition.source
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
        for offset, each in zip(offsets, flags, strict=True):
            mask: Any = vc.new_uint_register(0)
            for i, flag in enumerate(each):
                mask |= vc.select(flag, 1 << i, 0)
            with vc.if_block(mask != 0):
                first = offset * together
                vc.atomic_or(memory[first // WORD], mask << (first % WORD))
