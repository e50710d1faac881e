"""Candidates for the first k elements of long rows, from a sample: `topk`'s kernels.

    sample      s elements of each row, sorted: the r-th one is a bound, and about how many elements are
    before
                it is known
    flag        one bit for each element: is it before the bound? And a sum for each tile
    collect     elements of set bits, and their positions, in the order of the row
                -> candidates: nearly always at least k, and no more than there is room for

If there are fewer or more candidates, `radix_select` finds them. With a good sample the elements are read
once, apart from the candidates, and the result is that of a stable sort whatever the sample was. Codes are
those of `sorting.keys`. Invariants: counts are integers, so they do not depend on the order of execution.
Candidates are in the order of their positions, and the sort of the candidates is stable.

A bound from a sample is used in Floyd and Rivest's selection (1975).
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.selection.topk.form import NarrowForm, declare_arguments, is_before, is_equal, is_good
from vkdispatch.selection.topk.tiles import Target, collect_tile, flag_tile, store_flags
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order


@memoize
def make_sample_kernel(order: Order) -> ShaderFunction:
    """Return the kernel that takes samples.

    Its arguments are the keys, the samples, their number in a row, the length of a row, and the stride.
    """

    def body(keys: Any, samples: Any, count: Any, length: Any, stride: Any) -> None:
        element = vc.global_invocation_id().x
        row = (element // count).to_register("top_row")
        number = (element - row * count).to_register("top_number")
        # a random place in each stride, so that periodic arrays are sampled well
        mixed = (number.to_dtype(dtype.uint32) * 2654435769).to_register()
        jitter = ((mixed ^ (mixed >> 15)) * 2246822519 >> 8) % stride
        samples[element] = keys[row * length + (number * stride + jitter)]

    arguments = declare_arguments(order.raw, "keys samples", "count row_length stride")
    return trace_kernel("topk_sample", body, arguments, 128, exec_size="top_samples.size")


@memoize
def make_bound_kernel(order: Order) -> ShaderFunction:
    """Return the kernel that takes one sample of each row as its bound.

    Its arguments are the samples, their sorted positions, the bounds; the samples of a row, the positions of
    a row, and the number of the position to take.
    """

    def body(samples: Any, positions: Any, bounds: Any, count: Any, pitch: Any, rank: Any) -> None:
        row = vc.global_invocation_id().x
        bounds[row] = samples[row * count + positions[row * pitch + rank]]

    arguments = declare_arguments(order.raw, "samples positions bounds", "count pitch rank")
    return trace_kernel("topk_bound", body, arguments, 64, exec_size="top_bounds.size")


@memoize
def make_flag_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that flags elements up to the bound of their row.

    Its arguments are the keys, their view, bits, sums, bounds; and the shape: the number of rows, tiles of
    each, and the length of rows.
    """

    def body(
        keys: Any, view: Any, bits: Any, sums: Any, bounds: Any, _: Any, tiles: Any, length: Any
    ) -> None:
        tile = vc.workgroup_id().x
        row = (tile // tiles).to_register("top_row")
        bound = form.code(bounds[row].to_register())

        def flags_of(raw: Any) -> list[Any]:
            code = form.code(raw)
            return [vc.any(is_before(code, bound), is_equal(code, bound))]

        words = flag_tile(form, (keys, view), (row, tile - row * tiles, length), flags_of, 1)
        store_flags(form, words, bits, sums, tile, 1)

    buffers = "keys view bits sums bounds"
    arguments = declare_arguments(form.order.raw, buffers, "rows tiles length", form.view)
    return trace_kernel("topk_flag", body, arguments, form.group, "top_rows * top_tiles")


@memoize
def make_collect_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that collects candidates.

    Its arguments are the keys, bits, starts; the candidates and their positions; k, room, and the shape.
    """

    def body(keys: Any, bits: Any, starts: Any, candidates: Any, positions: Any, *others: Any) -> None:
        k, room, _, tiles, length = others
        tile = vc.workgroup_id().x
        row = (tile // tiles).to_register("top_row")
        has_good = is_good(starts, row, tiles, k, room)
        most = vc.select(vc.all(starts[tile] < starts[tile + 1], has_good), room, 0).to_register("top_most")
        first = (row * room).to_register()
        to = Target(keys, length, candidates, positions, first, tile, row, tiles)
        collect_tile(form, to, bits, starts, 0, most, 0)

    buffers = "keys bits starts candidates positions"
    arguments = declare_arguments(form.order.raw, buffers, "k room rows tiles length")
    return trace_kernel("topk_collect", body, arguments, form.group, "top_rows * top_tiles")


@memoize
def make_pad_kernel(form: NarrowForm, words: tuple[int, ...]) -> ShaderFunction:
    """Return the kernel that fills the room after candidates with an element after all others.

    `words` are those of that element. The kernel's arguments are the candidates and their positions, the
    starts of the sample's candidates, k, room and tiles.
    """

    def body(candidates: Any, positions: Any, starts: Any, k: Any, room: Any, tiles: Any) -> None:
        element = vc.global_invocation_id().x
        row = (element // room).to_register("top_row")
        rank = (element - row * room).to_register("top_rank")
        sampled = (starts[(row + 1) * tiles] - starts[row * tiles]).to_register()
        count = vc.select(vc.all(sampled >= k, sampled <= room), sampled, k)
        with vc.if_block(rank >= count):
            raw = form.order.raw
            candidates[element] = vc.to_dtype(raw, *words) if len(words) > 1 else words[0]
            positions[element] = 0

    arguments = declare_arguments(form.order.raw, "candidates positions starts", "k room tiles")
    return trace_kernel("topk_pad", body, arguments, 128, exec_size="top_candidates.size")
