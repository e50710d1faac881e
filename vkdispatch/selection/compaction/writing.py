"""The second pass of a compaction: elements that are kept are written, in their order.

If tiles are few, the pass itself sums up the counts of the tiles before its own. Tiles that keep much are
written element by element, so neighbours write to neighbours; tiles that keep little are written bit by bit.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.selection.compaction.flags import WORD, Flags
from vkdispatch.selection.tuning import tuning
from vkdispatch.selection.workgroup_sums import sum_before, sum_group
from vkdispatch.shader.shader_function import ShaderFunction


class Writer:
    """What is written for each element that is kept. Equal writers, frozen dataclasses, share a kernel."""

    name = "compact"
    # whether `visit` is called
    has_visits = False
    # whether `value` may be called for elements that are not kept
    reads_all = True

    def arguments(self) -> list[tuple[str, Any]]:
        """Return names and annotations of the kernel's arguments for it."""
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
    kernel = _make_write_kernel(writer, group, flags.has_sums, tuning.flag_unroll, tuning.flag_sparse)
    low, high = size & 0x7FFFFFFF, size >> 31
    whole, rest = divmod(flags.size, group * WORD)
    kernel(flags.bits, flags.starts, *arguments, low, high, whole, rest, flags.tiles, graph=graph)


@memoize
def _make_write_kernel(
    writer: Writer, group: int, has_sums: bool, unroll: int, sparse: int
) -> ShaderFunction:
    names = ("size_low", "size_high", "write_whole", "write_rest", "write_tiles")
    arguments = [
        ("flag_bits", buffer[dtype.uint32]),
        ("flag_starts", buffer[dtype.uint32]),
        *writer.arguments(),
        *((name, constant[dtype.uint32]) for name in names),
    ]
    tile_size = group * WORD

    def trace(bits: Any, starts: Any, *variables: Any) -> None:
        own = variables[:-5]
        low, high, whole, rest = variables[-5:-1]
        lane = vc.local_invocation_id().x
        tile = vc.workgroup_id().x
        word = bits[tile * group + lane].to_register()
        if has_sums:
            start = starts[tile].to_register("write_start")
            kept = (starts[tile + 1] - start).to_register()
        else:
            start = _sum_tiles(starts, tile, lane, group)
            kept = starts[tile].to_register()
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
                writer.write(own, start + rank, index, writer.value(own, index))

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
                    writer.value(own, tile * tile_size + vc.min(offset, inside - 1))
                    if writer.reads_all
                    else None
                    for offset, _, _ in elements
                ]
                for (offset, rank, flag), value in zip(elements, values, strict=True):
                    with vc.if_block(vc.all(flag != 0, rank < room)):
                        index = tile * tile_size + offset
                        loaded = writer.value(own, index) if value is None else value
                        writer.write(own, start + rank, index, loaded)
                    if writer.has_visits:
                        with vc.if_block(offset < inside.to_dtype(dtype.int32)):
                            writer.visit(own, start + rank + flag, tile * tile_size + offset)

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


def _sum_tiles(sums: Any, tile: Any, lane: Any, group: int) -> Any:
    """Return how many elements the tiles before keep."""
    part = vc.new_uint_register(0)
    with vc.for_block(lane, tile, group) as place:
        part += sums[place]
    total = sum_group(part, lane, group)
    memory = vc.shared_buffer(dtype.uint32, 1)
    with vc.if_block(lane == 0):
        memory[0] = total
    vc.barrier()
    return memory[0].to_register("write_start")


def _count_room(low: Any, high: Any, start: Any) -> Any:
    """Return how many places there are from a tile's start on, or more than a tile needs."""
    size = (low + (high << 31)).to_register()
    left = vc.select(size > start, size - start, 0)
    return vc.select(high > 1, 0xFFFFFFFF, left).to_register()
