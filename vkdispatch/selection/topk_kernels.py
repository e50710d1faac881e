"""The kernels of `vd.topk`: candidates for the first k elements of long rows; the first k of short rows."""

from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import Argument, buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import count_per_load, unpack_elements, view_type
from vkdispatch.selection.tuning import choose_group, find_planner, sum_before, sum_group, tuning
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit, Order
from vkdispatch.sorting.launching import Rows

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


# ---- The first k elements of rows of a few thousand elements, one workgroup for each row -----------------
#
# A kernel of `topk`.
#
#     row           | element 0 of each invocation | element 1 of each | ...
#     best          the first element of each invocation, in the order
#     bound         the k-th of these: at least k elements are up to it, and usually few more
#     candidates    elements up to the bound, in workgroup memory
#     rank          the number of candidates before each candidate; the first k are written to their ranks
#
#     If the candidates do not fit (usually because of equal elements), the bound is the k-th element itself,
#     found bit by bit. Candidates are all elements before it, and the first ones of those that equal it.
#
# Elements are read from device memory once, and again from caches. Invariant: the rank of an element
# depends on its code and its position only, not on the order in which invocations store candidates.


_LAST = 0xFFFFFFFF
# Candidates that another one is compared with at once. It divides the room of all forms.
_AT_ONCE = 8


@record
class RowForm:
    """What the kernel is specialised for.

    Attributes
    ----------
    order
        The order whose first k elements are wanted.
    group
        Invocations of a workgroup.
    room
        The most candidates in workgroup memory.
    together
        Elements of a load.
    loads
        Loads that an invocation has in flight.
    """

    order: Order
    group: int
    room: int
    together: int
    loads: int


def suits_rows(order: Order, length: int, k: int) -> bool:
    """Whether the kernel is fast for rows of a length."""
    return can_take_rows(order, k) and tuning.row_shortest <= length <= tuning.row_longest


def can_take_rows(order: Order, k: int) -> bool:
    """Whether the kernel can take the first k elements of rows."""
    return len(order.part_bits) == 1 and 0 < 2 * k <= choose_group(tuning.row_most_group)


def _choose_group(length: int, k: int) -> int:
    # a long row needs many invocations
    wanted = max(tuning.row_least_group, 2 * k, length // tuning.row_each)
    return choose_group(min(tuning.row_most_group, 1 << (wanted - 1).bit_length()))


def take_first_of_rows(
    keys: Buffer[Any], order: Order, rows: Rows, k: int, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the positions of the first k elements of each row."""
    group = _choose_group(rows.length, k)
    together = choose_together(order, rows.count, rows.length)
    form = RowForm(order, group, max(tuning.row_room, 2 * k), together, find_planner().row_loads)
    positions: Buffer[Any] = function_buffer(rows.count * k, dtype.uint32, context=keys.context)
    make_row_kernel(form)(keys, keys, positions, rows.count, rows.length, k, graph=graph)
    return positions


@store_results
def make_row_kernel(form: RowForm) -> ShaderFunction:
    """Return the kernel.

    Its arguments are the keys, their view, the positions of the first elements, the number of rows, their
    length, and k.
    """

    def body(keys: Any, view: Any, positions: Any, _: Any, length: Any, k: Any) -> None:
        _Row(form, keys, view, length, k).run(positions)

    raw = form.order.raw
    view_kind = view_type(raw, form.together)
    arguments = declare_arguments(raw, "keys view positions", "rows length k", view_kind)
    return trace_kernel(f"topk_rows_{form.order.kind.name}", body, arguments, form.group, "top_rows")


class _Row:
    """The kernel, in a trace."""

    def __init__(self, form: RowForm, keys: Any, view: Any, length: Any, k: Any) -> None:
        self._form, self._keys, self._view, self._length, self._k = form, keys, view, length, k
        self._lane = vc.local_invocation_id().x
        self._row = vc.workgroup_id().x
        self._base = (self._row * length).to_register("top_base")
        self._codes = vc.shared_buffer(dtype.uint32, form.room)
        self._places = vc.shared_buffer(dtype.uint32, form.room)
        # the number of candidates, and the bound
        self._state = vc.shared_buffer(dtype.uint32, 2)

    def _code(self, raw: Any) -> Any:
        bits = self._form.order.part_bits[0]
        code = self._form.order.part(raw, 0)
        return (code if bits == 32 else code & ((1 << bits) - 1)).to_register("top_code")

    def _visit(self, act: Callable[[Any, Any], None]) -> None:
        """Trace `act(code, place)` for each element of this invocation."""
        form, lane, group = self._form, self._lane, self._form.group
        together, in_flight = form.together, form.loads
        loads = (self._length // together).to_register("top_loads")
        whole = (loads // (group * in_flight)).to_register("top_whole") if in_flight > 1 else 0
        first = (self._base // together).to_register("top_first")

        def consume(load: Any, word: Any) -> None:
            raws = [word] if together == 1 else unpack_elements(form.order.raw, together, word)
            for i, raw in enumerate(raws):
                act(self._code(raw.to_register()), load * together + i)

        if in_flight > 1:
            with vc.for_block(0, whole) as number:
                places = [(lane + (number * in_flight + u) * group).to_register() for u in range(in_flight)]
                words = [self._view[first + place].to_register() for place in places]
                for place, word in zip(places, words, strict=True):
                    consume(place, word)
        with vc.for_block(lane + whole * (group * in_flight), loads, group) as load:
            consume(load, self._view[first + load].to_register())
        if together > 1:
            # elements of a single row that do not fill a load
            with vc.for_block(lane + loads * together, self._length, group) as place:
                act(self._code(self._keys[self._base + place].to_register()), place)

    def run(self, positions: Any) -> None:
        """Record the kernel's statements."""
        form, lane, state = self._form, self._lane, self._state
        with vc.if_block(lane == 0):
            state[0] = 0
        self._find_bound()
        bound = state[1].to_register("top_bound")
        self._visit(lambda code, place: self._put(code <= bound, code, place))
        vc.barrier()
        with vc.if_block(state[0] > form.room):
            self._find_exact_candidates()
        vc.barrier()
        count = state[0].to_register("top_count")
        with vc.for_block(lane, count, form.group) as candidate:
            code = self._codes[candidate].to_register()
            place = self._places[candidate].to_register()
            rank = vc.new_uint_register(0)
            with vc.for_block(0, (count + (_AT_ONCE - 1)) // _AT_ONCE) as number:
                others = [vc.min(number * _AT_ONCE + i, form.room - 1).to_register() for i in range(_AT_ONCE)]
                loaded = [
                    (self._codes[other].to_register(), self._places[other].to_register()) for other in others
                ]
                for other, (other_code, other_place) in zip(others, loaded, strict=True):
                    is_before = vc.any(other_code < code, vc.all(other_code == code, other_place < place))
                    rank += vc.select(vc.all(other < count, is_before), 1, 0)
            with vc.if_block(rank < self._k):
                positions[self._row * self._k + rank] = place

    def _put(self, condition: Any, code: Any, place: Any) -> None:
        with vc.if_block(condition):
            slot = vc.atomic_add(self._state[0], 1).to_register()
            with vc.if_block(slot < self._form.room):
                self._codes[slot] = code
                self._places[slot] = place

    def _find_bound(self) -> None:
        """Store the k-th of the best codes of all invocations in the state."""
        best = vc.new_uint_register(_LAST)

        def act(code: Any, _: Any) -> None:
            best[:] = vc.min(best, code)

        self._visit(act)
        # the memory for candidates is not used yet
        self._codes[self._lane] = best
        vc.barrier()
        rank = vc.new_uint_register(0)
        with vc.for_block(0, self._form.group // _AT_ONCE) as number:
            others = [(number * _AT_ONCE + i).to_dtype(dtype.uint32) for i in range(_AT_ONCE)]
            codes = [self._codes[other].to_register() for other in others]
            for other, code in zip(others, codes, strict=True):
                rank += vc.select(vc.any(code < best, vc.all(code == best, other < self._lane)), 1, 0)
        with vc.if_block(rank == self._k - 1):
            self._state[1] = best
        vc.barrier()

    def _find_exact_candidates(self) -> None:
        """Collect candidates again: exactly k."""
        form, lane, state = self._form, self._lane, self._state
        vc.barrier()
        bound = vc.new_uint_register(0)
        less = vc.new_uint_register(0)
        with vc.for_block(0, form.order.part_bits[0]) as number:
            bit = (form.order.part_bits[0] - 1 - number).to_dtype(dtype.uint32).to_register()
            tried = (bound | (vc.to_dtype(dtype.uint32, 1) << bit)).to_register("top_tried")
            count = self._count_less(tried)
            with vc.if_block(count < self._k):
                bound[:] = tried
                less[:] = count
        with vc.if_block(lane == 0):
            state[0] = 0
        vc.barrier()
        self._visit(lambda code, place: self._put(code < bound, code, place))
        # the first elements that equal the bound
        taken = less.to_register("top_taken")
        begin = vc.new_uint_register(0)
        with vc.while_block(vc.all(begin < self._length, taken < self._k)):
            place = (begin + lane).to_register()
            inside = vc.min(place, self._length - 1)
            code = self._code(self._keys[self._base + inside].to_register())
            equal = (
                vc.select(vc.all(place < self._length, code == bound), 1, 0)
                .to_dtype(dtype.uint32)
                .to_register()
            )
            before = sum_before(equal, lane, form.group)
            slot = (taken + before).to_register()
            with vc.if_block(vc.all(equal > 0, slot < self._k)):
                self._codes[slot] = code
                self._places[slot] = place
            vc.barrier()
            with vc.if_block(lane == form.group - 1):
                state[1] = taken + before + equal
            vc.barrier()
            taken[:] = state[1]
            begin += form.group
        vc.barrier()
        with vc.if_block(lane == 0):
            state[0] = self._k

    def _count_less(self, bound: Any) -> Any:
        """Return how many elements have a smaller code."""
        state = self._state
        vc.barrier()
        with vc.if_block(self._lane == 0):
            state[1] = 0
        vc.barrier()
        lower = vc.new_uint_register(0)

        def act(code: Any, _: Any) -> None:
            lower[:] = lower + vc.select(code < bound, 1, 0)

        self._visit(act)
        vc.atomic_add(state[1], lower)
        vc.barrier()
        return state[1].to_register("top_less")


# ---- The same by kernels that visit all elements, for CPU drivers ----------------------------------------
#
#     row         | run 0: invocation 0 | run 1: invocation 1 | ...
#     counted     candidates of each run; sums of the counts, along all runs, are places
#     collected   the candidates of each run after those of the runs before
#
# There are no words of flags: the second pass compares elements again. CPU drivers are fast at loops, and
# slow at barriers and at workgroups that return at once. Runs without candidates are not read again.
#
# Invariant: candidates are the same, in the same order.


# Elements of a run; invocations of a workgroup.
RUN = 512
GROUP = 8
_WORKGROUPS = f"(top_rows * top_runs + {GROUP - 1}) // {GROUP}"


@record(eq=False)
class _Run:
    """The run of an invocation, in a trace: its number, its row, where both begin, and its elements."""

    line: Any
    row: Any
    base: Any
    begin: Any
    count: Any


def _own_run(rows: Any, runs: Any, length: Any) -> _Run:
    line = (vc.workgroup_id().x * GROUP + vc.local_invocation_index()).to_register("top_line")
    # invocations beyond the last run have no elements
    inside = (line < rows * runs).to_register("top_inside")
    line = vc.min(line, rows * runs - 1).to_register()
    row = (line // runs).to_register("top_row")
    begin = ((line - row * runs) * RUN).to_register("top_begin")
    count = vc.select(inside, vc.min(length - begin, RUN), 0).to_register("top_count")
    return _Run(line, row, (row * length).to_register("top_base"), begin, count)


def _make_comparison(form: NarrowForm, bound: Any) -> Callable[[Any], Any]:
    """Return a function that tells whether an element is up to a bound."""
    other = form.code(bound)

    def is_within(raw: Any) -> Any:
        code = form.code(raw)
        return vc.any(is_before(code, other), is_equal(code, other))

    return is_within


@store_results
def make_count_runs_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that counts elements up to the bound of their row: a sum for each run.

    Its arguments are the keys, sums, bounds; and the shape: the number of rows, runs of each, and the length
    of rows.
    """

    def body(keys: Any, sums: Any, bounds: Any, rows: Any, runs: Any, length: Any) -> None:
        run = _own_run(rows, runs, length)
        is_within = _make_comparison(form, bounds[run.row].to_register())
        total = vc.new_uint_register(0)
        with vc.for_block(0, run.count) as place:
            raw = keys[run.base + (run.begin + place)].to_register()
            total += is_within(raw).to_dtype(dtype.uint32)
        with vc.if_block(run.count > 0):
            sums[run.line] = total

    arguments = declare_arguments(form.order.raw, "keys sums bounds", "rows runs length")
    return trace_kernel("topk_count_runs", body, arguments, GROUP, _WORKGROUPS)


@store_results
def make_collect_runs_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that collects candidates.

    Its arguments are the keys, the starts; the candidates and their positions; the bounds; k, room, and the
    shape.
    """

    def body(keys: Any, starts: Any, candidates: Any, positions: Any, bounds: Any, *others: Any) -> None:
        k, room, rows, runs, length = others
        run = _own_run(rows, runs, length)
        is_within = _make_comparison(form, bounds[run.row].to_register())
        has_some = vc.all(starts[run.line] < starts[run.line + 1], is_good(starts, run.row, runs, k, room))
        rank = (starts[run.line] - starts[run.row * runs]).to_register("top_rank")
        first = (run.row * room).to_register("top_first")
        with vc.for_block(0, vc.select(has_some, run.count, 0)) as place:
            raw = keys[run.base + (run.begin + place)].to_register()
            with vc.if_block(is_within(raw)):
                candidates[first + rank] = raw
                positions[first + rank] = run.begin + place
                rank += 1

    tables = "keys starts candidates positions bounds"
    arguments = declare_arguments(form.order.raw, tables, "k room rows runs length")
    return trace_kernel("topk_collect_runs", body, arguments, GROUP, _WORKGROUPS)


@store_results
def make_count_runs_exactly_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that counts elements before the k-th one, and those that equal it.

    Its arguments are the keys, the sums, the states; the starts of the sample's candidates; k, room, and the
    shape.
    """

    def body(keys: Any, sums: Any, states: Any, starts: Any, *others: Any) -> None:
        k, room, rows, runs, length = others
        run = _own_run(rows, runs, length)
        has_good = is_good(starts, run.row, runs, k, room)
        bound = load_bound(form, states, run.row)
        less, equal = vc.new_uint_register(0), vc.new_uint_register(0)
        with vc.for_block(0, vc.select(has_good, 0, run.count)) as place:
            code = form.code(keys[run.base + (run.begin + place)].to_register())
            less += is_before(code, bound).to_dtype(dtype.uint32)
            equal += is_equal(code, bound).to_dtype(dtype.uint32)
        with vc.if_block(run.count > 0):
            sums[run.line] = less
            sums[rows * runs + run.line] = equal

    tables = "keys sums states starts"
    arguments = declare_arguments(form.order.raw, tables, "k room rows runs length")
    return trace_kernel("topk_count_runs_exactly", body, arguments, GROUP, _WORKGROUPS)


@store_results
def make_collect_runs_exactly_kernel(form: NarrowForm) -> ShaderFunction:
    """Return the kernel that collects exactly k candidates of rows whose sample was not good.

    Its arguments are the keys, the exact starts; the candidates and their positions; the states; the starts
    of the sample's candidates; k, room, and the shape.
    """

    def body(keys: Any, starts: Any, candidates: Any, positions: Any, states: Any, *others: Any) -> None:
        sample_starts, k, room, rows, runs, length = others
        run = _own_run(rows, runs, length)
        has_good = is_good(sample_starts, run.row, runs, k, room)
        bound = load_bound(form, states, run.row)
        ties = states[run.row * (form.parts + 1) + form.parts].to_register("top_ties")
        half = (rows * runs).to_register("top_half")
        # sums over all rows may wrap around, but their differences in 32 bits are right
        line, begin = run.line, (run.row * runs).to_register()
        less = ((starts[line] - starts[begin]) & 0xFFFFFFFF).to_register("top_less")
        equal = ((starts[half + line] - starts[half + begin]) & 0xFFFFFFFF).to_register("top_equal")
        first = (run.row * room).to_register("top_first")
        with vc.for_block(0, vc.select(has_good, 0, run.count)) as place:
            raw = keys[run.base + (run.begin + place)].to_register()
            code = form.code(raw)
            is_less = is_before(code, bound).to_register()
            is_tie = vc.all(is_equal(code, bound), equal < ties).to_register()
            with vc.if_block(vc.any(is_less, is_tie)):
                target = (first + vc.select(is_less, less, (k - ties) + equal)).to_register("top_target")
                candidates[target] = raw
                positions[target] = run.begin + place
                less += is_less.to_dtype(dtype.uint32)
                equal += is_tie.to_dtype(dtype.uint32)

    tables = "keys starts candidates positions states sample_starts"
    arguments = declare_arguments(form.order.raw, tables, "k room rows runs length")
    return trace_kernel("topk_collect_runs_exactly", body, arguments, GROUP, _WORKGROUPS)
