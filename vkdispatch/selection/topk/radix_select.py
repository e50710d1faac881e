"""Radix select, for rows whose sample was not good: `topk`'s kernels that find exactly k candidates.

    count       how many elements have each value of a digit of their code, the most significant digit first
    choose      the digit of the k-th element; continue with the elements that have it
    flag        elements before the code that was found, and those that equal it
    collect     all of the former, and the first ones of the latter, until there are k

The kernels return at once in rows whose sample was good. They follow Alabi, Blanchard, Gordon and Steinbach
(2012). Invariant: counts are integers, so they do not depend on the order of execution.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.selection.topk.form import (
    BINS,
    NarrowForm,
    declare_arguments,
    is_before,
    is_equal,
    is_good,
    load_bound,
)
from vkdispatch.selection.topk.tiles import Target, collect_tile, flag_tile, store_flags
from vkdispatch.selection.workgroup_sums import sum_before
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit


@memoize
def make_count_kernel(form: NarrowForm, digit: Digit) -> ShaderFunction:
    """Return the kernel that counts a digit of the elements that have the digits chosen before.

    Its arguments are the keys, counts, states, the starts of the sample's candidates, k, room, the workgroups
    of a row, and the shape.
    """
    upper = digit.shift + digit.bits

    def body(keys: Any, counts: Any, states: Any, starts: Any, *others: Any) -> None:
        k, room, groups, _, tiles, length = others
        lane = vc.local_invocation_id().x
        row = (vc.workgroup_id().x // groups).to_register("top_row")
        own = (vc.workgroup_id().x - row * groups).to_register("top_own")
        memory = vc.shared_buffer(dtype.uint32, 1 << digit.bits)
        has_good = is_good(starts, row, tiles, k, room)
        end = (vc.select(has_good, 0, length)).to_register("top_end")
        with vc.for_block(lane, 1 << digit.bits, form.group) as place:
            memory[place] = 0
        vc.barrier()
        chosen = [states[row * (form.parts + 1) + part].to_register() for part in range(form.parts)]
        base = (row * length).to_register("top_base")
        begin = own * form.group + lane
        with vc.for_block(begin, end, form.group * groups) as place:
            code = form.code(keys[base + place].to_register())
            same: list[Any] = [code[part] == chosen[part] for part in range(digit.part + 1, form.parts)]
            if upper < 32:
                same.append((code[digit.part] >> upper) == (chosen[digit.part] >> upper))
            number = (code[digit.part] >> digit.shift) & ((1 << digit.bits) - 1)
            with vc.if_block(vc.all(*same) if len(same) > 1 else same[0] if same else place >= 0):
                vc.atomic_add(memory[number], 1)
        vc.barrier()
        with vc.for_block(lane, 1 << digit.bits, form.group) as place:
            count = memory[place].to_register()
            with vc.if_block(count > 0):
                vc.atomic_add(counts[row * BINS + place], count)

    buffers = "keys counts states starts"
    arguments = declare_arguments(form.order.raw, buffers, "k room groups rows tiles length")
    return trace_kernel("topk_count", body, arguments, form.group, "top_rows * top_groups")


@memoize
def make_choose_kernel(form: NarrowForm, digit: Digit) -> ShaderFunction:
    """Return the kernel that chooses the digit of the k-th element, and clears the counts.

    Its arguments are the counts, the states, and the number of rows. A state is the known part of the code of
    the k-th element, and how many candidates have that part.
    """
    each = BINS // form.group

    def body(counts: Any, states: Any, _: Any) -> None:
        lane = vc.local_invocation_id().x
        row = vc.workgroup_id().x
        state = (row * (form.parts + 1)).to_register("top_state")
        left = states[state + form.parts].to_register("top_left")
        part = states[state + digit.part].to_register("top_part")
        own = [counts[row * BINS + (lane * each + i)].to_register() for i in range(each)]
        total: Any = vc.new_uint_register(0)
        for count in own:
            total += count
        before = sum_before(total, lane, form.group)
        vc.barrier()
        for i, count in enumerate(own):
            with vc.if_block(vc.all(before < left, before + count >= left)):
                states[state + digit.part] = part | ((lane * each + i) << digit.shift)
                states[state + form.parts] = left - before
            before += count
            counts[row * BINS + (lane * each + i)] = 0

    arguments = declare_arguments(form.order.raw, "counts states", "rows")
    return trace_kernel("topk_choose", body, arguments, form.group, "top_rows")


@memoize
def make_begin_kernel(parts: int) -> ShaderFunction:
    """Return the kernel that initialises states: no part of the code is known, k candidates have it."""

    def body(states: Any, k: Any) -> None:
        index = vc.global_invocation_id().x
        states[index] = vc.select(index % (parts + 1) == parts, k, 0)

    arguments = declare_arguments(dtype.uint32, "states", "k")
    return trace_kernel("topk_begin", body, arguments, 128, exec_size="top_states.size")


@memoize
def make_exact_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that flags elements before the k-th one, and those that equal it.

    Bits and sums of the former come first in their buffers, then those of the latter. The arguments are the
    keys, their view, bits, sums, states; the starts of the sample's candidates and the tiles of a row there;
    k, room, and the shape.
    """

    def body(keys: Any, view: Any, bits: Any, sums: Any, states: Any, *others: Any) -> None:
        starts, sample_tiles, k, room, rows, tiles, length = others
        lane = vc.local_invocation_id().x
        tile = vc.workgroup_id().x
        row = (tile // tiles).to_register("top_row")
        half = (rows * tiles).to_register("top_half")
        with vc.if_block(is_good(starts, row, sample_tiles, k, room)), vc.if_block(lane == 0):
            sums[tile] = 0
            sums[half + tile] = 0
        with vc.else_block():
            bound = load_bound(form, states, row)

            def flags_of(raw: Any) -> list[Any]:
                code = form.code(raw)
                return [is_before(code, bound), is_equal(code, bound)]

            words = flag_tile(form, (keys, view), (row, tile - row * tiles, length), flags_of, 2)
            store_flags(form, words, bits, sums, tile, half)

    buffers, numbers = "keys view bits sums states starts", "sample_tiles k room rows tiles length"
    arguments = declare_arguments(form.order.raw, buffers, numbers, form.view)
    return trace_kernel("topk_flag_exactly", body, arguments, form.group, "top_rows * top_tiles")


@memoize
def make_collect_exactly_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that collects exactly k candidates of rows whose sample was not good.

    Its arguments are the keys, bits, starts; the candidates and their positions; the states; the starts of
    the sample's candidates and the tiles of a row there; k, room, and the shape.
    """

    def body(keys: Any, bits: Any, starts: Any, candidates: Any, positions: Any, *others: Any) -> None:
        states, sample_starts, sample_tiles, k, room, rows, tiles, length = others
        tile = vc.workgroup_id().x
        row = (tile // tiles).to_register("top_row")
        has_good = is_good(sample_starts, row, sample_tiles, k, room)
        ties = states[row * (form.parts + 1) + form.parts].to_register("top_ties")
        half = (rows * tiles).to_register("top_half")
        first = (row * room).to_register()
        to = Target(keys, length, candidates, positions, first, tile, row, tiles)
        for number in range(2):
            place = (tile + half * number).to_register() if number else tile
            wanted, shift = (ties, (k - ties).to_register()) if number else (k, 0)
            has_some = vc.all(starts[place] < starts[place + 1], ~has_good)
            most = vc.select(has_some, wanted, 0).to_register("top_most")
            collect_tile(form, to, bits, starts, half * number if number else 0, most, shift)

    buffers = "keys bits starts candidates positions states sample_starts"
    arguments = declare_arguments(form.order.raw, buffers, "sample_tiles k room rows tiles length")
    return trace_kernel("topk_collect_exactly", body, arguments, form.group, "top_rows * top_tiles")
