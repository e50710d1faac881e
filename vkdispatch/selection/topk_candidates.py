"""Candidates for the first k elements of long rows, by samples and by radix select."""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.kernels import Argument, buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import count_per_load, unpack_elements, view_type
from vkdispatch.selection.tuning import sum_before, sum_group
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit, Order

# ---- What kernels that narrow long rows down to candidates have in common -------------------------------


WORD = 32
WIDTH = 11
BINS = 1 << WIDTH
# The arguments whose elements are keys; all others have words of 32 bits.
_OF_KEYS = ("keys", "candidates", "bounds", "samples")


@record
class NarrowForm:
    """What kernels are specialised for.

    Attributes
    ----------
    order
        The order whose first k elements are wanted.
    group
        Invocations of a workgroup.
    together
        Elements of a load.
    loads
        Loads that an invocation has in flight.
    """

    order: Order
    group: int
    together: int
    loads: int

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.group * WORD

    @property
    def digits(self) -> tuple[Digit, ...]:
        """The digits of a code, the most significant first."""
        return self.order.digits(WIDTH)[::-1]

    @property
    def view(self) -> DType:
        """The type of a load."""
        return view_type(self.order.raw, self.together) or self.order.raw

    @property
    def parts(self) -> int:
        """The number of parts of a code."""
        return len(self.order.part_bits)

    def code(self, raw: Any) -> list[Any]:
        """Return the parts of the code of an element."""
        parts = [(self.order.part(raw, part), bits) for part, bits in enumerate(self.order.part_bits)]
        return [(part if bits == 32 else part & ((1 << bits) - 1)).to_register() for part, bits in parts]


def choose_together(order: Order, rows: int, length: int) -> int:
    """Return the number of elements of a load."""
    together = count_per_load([order.raw])
    if view_type(order.raw, together) is None or (rows > 1 and length % together):
        return 1
    return together


def declare_arguments(raw: DType, tables: str, sizes: str, view: DType | None = None) -> list[Argument]:
    """Return a kernel's arguments.

    Parameters
    ----------
    raw
        The type that keys are moved as.
    tables, sizes
        Names of buffers and numbers, without their prefix.
    view
        The type of the argument `view`.
    """
    kinds = dict.fromkeys(_OF_KEYS, raw) | {"view": view or raw}
    return [
        *buffers(**{f"top_{name}": kinds.get(name, dtype.uint32) for name in tables.split()}),
        *numbers(*(f"top_{name}" for name in sizes.split())),
    ]


def load_bound(form: NarrowForm, states: Any, row: Any) -> list[Any]:
    """Return the code of the k-th element of a row."""
    state = (row * (form.parts + 1)).to_register("top_state")
    return [states[state + part].to_register() for part in range(form.parts)]


def is_before(code: list[Any], other: list[Any]) -> Any:
    """Return whether a code is smaller than another."""
    smaller: Any = None
    for part, bound in zip(code, other, strict=True):
        is_less = part < bound
        smaller = is_less if smaller is None else vc.any(is_less, vc.all(part == bound, smaller))
    return smaller


def is_equal(code: list[Any], other: list[Any]) -> Any:
    """Return whether a code equals another."""
    same = [part == bound for part, bound in zip(code, other, strict=True)]
    return vc.all(*same) if len(same) > 1 else same[0]


def is_good(starts: Any, row: Any, tiles: Any, k: Any, room: Any) -> Any:
    """Return whether the sample of a row gave at least k candidates, and no more than there is room for."""
    count = (starts[(row + 1) * tiles] - starts[row * tiles]).to_register("top_found")
    return vc.all(count >= k, count <= room)


# ---- Tiles of long rows, in a trace ----------------------------------------------------------------------
#
# Flags of elements are stored, and elements of set flags are collected.


# Returns some flags of an element.
FlagsOf = Callable[[Any], list[Any]]


def flag_tile(
    form: NarrowForm, arrays: tuple[Any, Any], place: tuple[Any, Any, Any], flags_of: FlagsOf, count: int
) -> list[Any]:
    """Return this invocation's words of flags.

    Parameters
    ----------
    arrays
        The keys, and a view of them.
    place
        The row, the tile in the row, and the length of rows.
    flags_of
        Returns `count` flags of an element.
    """
    (keys, view), (row, tile, length) = arrays, place
    group = form.group
    lane = vc.local_invocation_id().x
    memories = [vc.shared_buffer(dtype.uint32, group) for _ in range(count)]
    for memory in memories:
        memory[lane] = 0
    vc.barrier()
    base = (row * length).to_register("top_base")
    begin = (tile * form.tile).to_register("top_begin")
    left = vc.min(length - begin, form.tile).to_register("top_left")
    with vc.if_block(left == form.tile):
        _flag_whole_tile(form, view, (base + begin).to_register(), memories, flags_of)
    with vc.else_block(), vc.for_block(lane, left, group) as offset:
        flags = flags_of(keys[base + begin + offset].to_register())
        for memory, flag in zip(memories, flags, strict=True):
            with vc.if_block(flag):
                vc.atomic_or(memory[offset // WORD], vc.to_dtype(dtype.uint32, 1) << (offset % WORD))
    vc.barrier()
    return [memory[lane].to_register() for memory in memories]


def store_flags(form: NarrowForm, words: list[Any], bits: Any, sums: Any, tile: Any, half: Any) -> None:
    """Store this invocation's words of flags, and the sum of the tile; `half`: tiles of each kind of flag."""
    lane = vc.local_invocation_id().x
    for number, word in enumerate(words):
        place = tile + number * half if number else tile
        bits[place * form.group + lane] = word
        total = sum_group(vc.bit_count(word).to_dtype(dtype.uint32), lane, form.group)
        with vc.if_block(lane == 0):
            sums[place] = total


def _flag_whole_tile(form: NarrowForm, view: Any, first: Any, memories: list[Any], flags_of: FlagsOf) -> None:
    lane = vc.local_invocation_id().x
    together, group = form.together, form.group
    loads = WORD // together
    in_flight = min(loads, form.loads)
    start = (first // together).to_register("top_load")
    with vc.for_block(0, loads // in_flight) as number:
        offsets = [(lane + (number * in_flight + u) * group).to_register() for u in range(in_flight)]
        words = [view[start + offset].to_register() for offset in offsets]
        for offset, word in zip(offsets, words, strict=True):
            raws = [word] if together == 1 else unpack_elements(form.order.raw, together, word)
            masks: list[Any] = [vc.new_uint_register(0) for _ in memories]
            for i, raw in enumerate(raws):
                for which, flag in enumerate(flags_of(raw.to_register())):
                    masks[which] |= vc.select(flag, 1 << i, 0)
            place = offset * together
            for memory, mask in zip(memories, masks, strict=True):
                with vc.if_block(mask != 0):
                    vc.atomic_or(memory[place // WORD], mask << (place % WORD))


@record(eq=False)
class Target:
    """Where candidates come from and go, in a trace.

    Attributes
    ----------
    keys, length
        The keys, and the length of rows.
    candidates, positions, first
        The candidates and their positions; the place of the first candidate of the row.
    tile, row, tiles
        The tile and its row, and the tiles of a row.
    """

    keys: Any
    length: Any
    candidates: Any
    positions: Any
    first: Any
    tile: Any
    row: Any
    tiles: Any


def collect_tile(
    form: NarrowForm, to: Target, bits: Any, starts: Any, half: Any, most: Any, shift: Any
) -> None:
    """Store the flagged elements of a tile after those of the tiles before.

    Parameters
    ----------
    half
        The number of the first tile with this kind of flags.
    most
        The most candidates of the row.
    shift
        The number of the first candidate.
    """
    tile, row, tiles = to.tile, to.row, to.tiles
    lane = vc.local_invocation_id().x
    begin = ((tile - row * tiles) * form.tile).to_register("top_begin")
    with vc.if_block(most > 0):
        # sums over all rows may wrap around, but their differences in 32 bits are right
        first = ((starts[half + tile] - starts[half + row * tiles]) & 0xFFFFFFFF).to_register("top_first")
        word = bits[(half + tile) * form.group + lane].to_register()
        before = sum_before(vc.bit_count(word).to_dtype(dtype.uint32), lane, form.group)
        rank = (first + before).to_register("top_rank")
        with vc.while_block(vc.all(word != 0, rank < most)):
            bit = vc.find_lsb(word).to_dtype(dtype.uint32).to_register()
            place = begin + (lane * WORD + bit)
            target = (to.first + (shift + rank)).to_register("top_target")
            to.candidates[target] = to.keys[row * to.length + place].to_register()
            to.positions[target] = place
            word &= word - 1
            rank += 1


# ---- Candidates for the first k elements of long rows, from a sample: `topk`'s kernels -------------------
#
#     sample      s elements of each row, sorted: the r-th one is a bound, and about how many elements are
#     before
#                 it is known
#     flag        one bit for each element: is it before the bound? And a sum for each tile
#     collect     elements of set bits, and their positions, in the order of the row
#                 -> candidates: nearly always at least k, and no more than there is room for
#
# If there are fewer or more candidates, the radix select below finds them. With a good sample the elements
# are read once, apart from the candidates, and the result is that of a stable sort whatever the sample was.
# Codes are those of `sorting.keys`. Invariants: counts are integers, so they do not depend on the order of
# execution. Candidates are in the order of their positions, and the sort of the candidates is stable.
#
# A bound from a sample is used in Floyd and Rivest's selection (1975).


@store_results
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


@store_results
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


@store_results
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

    tables = "keys view bits sums bounds"
    arguments = declare_arguments(form.order.raw, tables, "rows tiles length", form.view)
    return trace_kernel("topk_flag", body, arguments, form.group, "top_rows * top_tiles")


@store_results
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

    tables = "keys bits starts candidates positions"
    arguments = declare_arguments(form.order.raw, tables, "k room rows tiles length")
    return trace_kernel("topk_collect", body, arguments, form.group, "top_rows * top_tiles")


@store_results
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


# ---- Radix select, for rows whose sample was not good ----------------------------------------------------
#
# `topk`'s kernels that find exactly k candidates.
#
#     count       how many elements have each value of a digit of their code, the most significant digit first
#     choose      the digit of the k-th element; continue with the elements that have it
#     flag        elements before the code that was found, and those that equal it
#     collect     all of the former, and the first ones of the latter, until there are k
#
# The kernels return at once in rows whose sample was good. They follow Alabi, Blanchard, Gordon and
# Steinbach (2012). Invariant: counts are integers, so they do not depend on the order of execution.


@store_results
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
        group = (vc.workgroup_id().x - row * groups).to_register("top_own")
        memory = vc.shared_buffer(dtype.uint32, 1 << digit.bits)
        has_good = is_good(starts, row, tiles, k, room)
        end = (vc.select(has_good, 0, length)).to_register("top_end")
        with vc.for_block(lane, 1 << digit.bits, form.group) as place:
            memory[place] = 0
        vc.barrier()
        chosen = [states[row * (form.parts + 1) + part].to_register() for part in range(form.parts)]
        base = (row * length).to_register("top_base")
        begin = group * form.group + lane
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

    tables = "keys counts states starts"
    arguments = declare_arguments(form.order.raw, tables, "k room groups rows tiles length")
    return trace_kernel("topk_count", body, arguments, form.group, "top_rows * top_groups")


@store_results
def make_choose_kernel(form: NarrowForm, digit: Digit) -> ShaderFunction:
    """Return the kernel that chooses the digit of the k-th element, and clears the counts.

    Its arguments are the counts, the states, and the number of rows. A state is the known part of the code of
    the k-th element, and how many candidates have that part.
    """
    share = BINS // form.group

    def body(counts: Any, states: Any, _: Any) -> None:
        lane = vc.local_invocation_id().x
        row = vc.workgroup_id().x
        state = (row * (form.parts + 1)).to_register("top_state")
        left = states[state + form.parts].to_register("top_left")
        part = states[state + digit.part].to_register("top_part")
        shares = [counts[row * BINS + (lane * share + i)].to_register() for i in range(share)]
        total: Any = vc.new_uint_register(0)
        for count in shares:
            total += count
        before = sum_before(total, lane, form.group)
        vc.barrier()
        for i, count in enumerate(shares):
            with vc.if_block(vc.all(before < left, before + count >= left)):
                states[state + digit.part] = part | ((lane * share + i) << digit.shift)
                states[state + form.parts] = left - before
            before += count
            counts[row * BINS + (lane * share + i)] = 0

    arguments = declare_arguments(form.order.raw, "counts states", "rows")
    return trace_kernel("topk_choose", body, arguments, form.group, "top_rows")


@store_results
def make_begin_kernel(parts: int) -> ShaderFunction:
    """Return the kernel that initialises states: no part of the code is known, k candidates have it."""

    def body(states: Any, k: Any) -> None:
        index = vc.global_invocation_id().x
        states[index] = vc.select(index % (parts + 1) == parts, k, 0)

    arguments = declare_arguments(dtype.uint32, "states", "k")
    return trace_kernel("topk_begin", body, arguments, 128, exec_size="top_states.size")


@store_results
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

    tables, sizes = "keys view bits sums states starts", "sample_tiles k room rows tiles length"
    arguments = declare_arguments(form.order.raw, tables, sizes, form.view)
    return trace_kernel("topk_flag_exactly", body, arguments, form.group, "top_rows * top_tiles")


@store_results
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

    tables = "keys bits starts candidates positions states sample_starts"
    arguments = declare_arguments(form.order.raw, tables, "sample_tiles k room rows tiles length")
    return trace_kernel("topk_collect_exactly", body, arguments, form.group, "top_rows * top_tiles")
