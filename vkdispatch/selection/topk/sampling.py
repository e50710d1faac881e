"""Which elements of long rows can be among their first k: `topk`'s kernels.

    sample      s elements of each row, sorted: about how many lie before its r-th one is known
    flag        one bit an element: does it come before that one? And the sum of each tile
    collect     elements of set bits, and where they were, in the order in which they lie
                -> candidates, at least k and at most as many as there is room for, nearly always

    where they are fewer or more (the kernels below leave at once where they are not):
    count       how many elements have each value of a digit of their code, the most important digit first
    choose      the digit at which the k-th element is found; on with the elements that have it: radix select
    flag        elements before the code that was found; then those that have it
    collect     all of the former, and as many of the latter as there are to be, the first ones

With a good sample elements are read once, but for the few candidates, and the result is that of a stable sort
whatever the sample was. Codes are those of `sorting.keys`, compared part by part from the last. Invariants:
counts are integers, so that no order of execution shows; candidates lie in the order of their positions, and
the sort that ends it is stable.

Sources: radix select for GPUs, Alabi, Blanchard, Gordon, Steinbach 2012; a bound from a sample as in Floyd
and Rivest's selection, 1975.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.elements import most_together, unpacked, view_type
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.selection.compaction.flags import summed, summed_before
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Digit, Order

WORD = 32
WIDTH = 11
BINS = 1 << WIDTH
_U32 = constant[dtype.uint32]


@record
class Form:
    """What kernels are specialised for.

    Attributes
    ----------
    order
        The order, in which the first k elements are wanted.
    group
        Invocations of a workgroup.
    together
        How many elements a load takes.
    flight
        Loads of an invocation that are under way at once.
    """

    order: Order
    group: int
    together: int
    flight: int

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.group * WORD

    @property
    def digits(self) -> tuple[Digit, ...]:
        """The digits of a code, the most important first."""
        return self.order.digits(WIDTH)[::-1]

    @property
    def parts(self) -> int:
        """How many words the code of an element has."""
        return len(self.order.part_bits)

    def code(self, raw: Any) -> list[Any]:
        """Return the code of an element, of each part the bits that count."""
        parts = [(self.order.part(raw, part), bits) for part, bits in enumerate(self.order.part_bits)]
        return [(part if bits == 32 else part & ((1 << bits) - 1)).to_register() for part, bits in parts]


def together_of(order: Order, rows: int, length: int) -> int:
    """Return how many elements a load takes."""
    together = most_together([order.raw])
    if view_type(order.raw, together) is None or (rows > 1 and length % together):
        return 1
    return together


def _view(form: Form) -> DType:
    return view_type(form.order.raw, form.together) or form.order.raw


def is_before(code: list[Any], other: list[Any]) -> Any:
    """Whether a code is smaller than another."""
    smaller: Any = None
    for own, threshold in zip(code, other, strict=True):
        less = own < threshold
        smaller = less if smaller is None else vc.any(less, vc.all(own == threshold, smaller))
    return smaller


def is_equal(code: list[Any], other: list[Any]) -> Any:
    """Whether a code is the same as another."""
    same = [own == threshold for own, threshold in zip(code, other, strict=True)]
    return vc.all(*same) if len(same) > 1 else same[0]


# -- the sample


@remembered
def sample_kernel(order: Order) -> ShaderFunction:
    """Return the kernel that takes samples.

    Its arguments are the keys, the samples, their number in a row, a row's length and stride.
    """

    def body(keys: Any, samples: Any, count: Any, length: Any, stride: Any) -> None:
        element = vc.global_invocation_id().x
        row = (element // count).to_register("top_row")
        number = (element - row * count).to_register("top_number")
        # anywhere in each stride: what repeats in the array must not meet the same places
        mixed = (number.to_dtype(dtype.uint32) * 2654435769).to_register()
        jitter = ((mixed ^ (mixed >> 15)) * 2246822519 >> 8) % stride
        samples[element] = keys[row * length + (number * stride + jitter)]

    arguments = [
        ("top_keys", buffer[order.raw]),
        ("top_samples", buffer[order.raw]),
        *((name, _U32) for name in ("top_count", "top_row_length", "top_stride")),
    ]
    return traced("topk_sample", body, arguments, 128, exec_size="top_samples.size")


@remembered
def bound_kernel(order: Order) -> ShaderFunction:
    """Return the kernel that takes one sample of each row.

    Its arguments are the samples; positions in them, in their order; the bounds; how many samples a row has,
    how many positions, and which of these counts.
    """

    def body(samples: Any, positions: Any, bounds: Any, count: Any, pitch: Any, rank: Any) -> None:
        row = vc.global_invocation_id().x
        bounds[row] = samples[row * count + positions[row * pitch + rank]]

    arguments = [
        ("top_samples", buffer[order.raw]),
        ("top_positions", buffer[dtype.uint32]),
        ("top_bounds", buffer[order.raw]),
        *((name, _U32) for name in ("top_count", "top_pitch", "top_rank")),
    ]
    return traced("topk_bound", body, arguments, 64, exec_size="top_bounds.size")


# -- bits and sums


def is_good(starts: Any, row: Any, tiles: Any, k: Any, room: Any) -> Any:
    """Whether the sample gave as many candidates of a row as are wanted."""
    found = (starts[(row + 1) * tiles] - starts[row * tiles]).to_register("top_found")
    return vc.all(found >= k, found <= room)


_SHAPE = ("top_rows", "top_tiles", "top_length")


@remembered
def flag_kernel(form: Form) -> ShaderFunction:
    """Return the kernel that flags elements that are as good as a sample.

    Its arguments are the keys, their view, bits, sums; an element of each row that others are compared with;
    and the shape: rows, tiles of each, and the length of rows.
    """

    def body(
        keys: Any, view: Any, bits: Any, sums: Any, bounds: Any, _: Any, tiles: Any, length: Any
    ) -> None:
        tile = vc.workgroup_id().x
        row = (tile // tiles).to_register("top_row")
        bound = form.code(bounds[row].to_register())

        def kept(raw: Any) -> list[Any]:
            code = form.code(raw)
            return [vc.any(is_before(code, bound), is_equal(code, bound))]

        words = _flagged(form, keys, view, row, tile - row * tiles, length, kept, 1)
        _write(form, words, bits, sums, tile, 1)

    arguments = [
        ("top_keys", buffer[form.order.raw]),
        ("top_view", buffer[_view(form)]),
        ("top_bits", buffer[dtype.uint32]),
        ("top_sums", buffer[dtype.uint32]),
        ("top_bounds", buffer[form.order.raw]),
        *((name, _U32) for name in _SHAPE),
    ]
    return traced("topk_flag", body, arguments, form.group, "top_rows * top_tiles")


@remembered
def exact_kernel(form: Form) -> ShaderFunction:
    """Return the kernel that flags elements before the k-th one, and those that equal it.

    Bits and sums of the former come first in their buffers, then those of the latter. Its arguments are the
    keys, their view, bits, sums, states; the starts of the sample's candidates and the tiles of a row there,
    k, and room; and the shape.
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
            state = (row * (form.parts + 1)).to_register("top_state")
            bound = [states[state + part].to_register() for part in range(form.parts)]

            def kept(raw: Any) -> list[Any]:
                code = form.code(raw)
                return [is_before(code, bound), is_equal(code, bound)]

            words = _flagged(form, keys, view, row, tile - row * tiles, length, kept, 2)
            _write(form, words, bits, sums, tile, half)

    arguments = [
        ("top_keys", buffer[form.order.raw]),
        ("top_view", buffer[_view(form)]),
        ("top_bits", buffer[dtype.uint32]),
        ("top_sums", buffer[dtype.uint32]),
        ("top_states", buffer[dtype.uint32]),
        ("top_starts", buffer[dtype.uint32]),
        *((name, _U32) for name in ("top_sample_tiles", "top_k", "top_room", *_SHAPE)),
    ]
    return traced("topk_flag_exactly", body, arguments, form.group, "top_rows * top_tiles")


def _flagged(
    form: Form, keys: Any, view: Any, row: Any, own: Any, length: Any, kept: Any, count: int
) -> list[Any]:
    """Return this invocation's words of flags; `kept` returns `count` of them for an element."""
    group = form.group
    lane = vc.local_invocation_id().x
    memories = [vc.shared_buffer(dtype.uint32, group) for _ in range(count)]
    for memory in memories:
        memory[lane] = 0
    vc.barrier()
    base = (row * length).to_register("top_base")
    begin = (own * form.tile).to_register("top_begin")
    left = vc.min(length - begin, form.tile).to_register("top_left")
    with vc.if_block(left == form.tile):
        _whole_tile(form, view, (base + begin).to_register(), lane, memories, kept)
    with vc.else_block(), vc.for_block(lane, left, group) as offset:
        flags = kept(keys[base + begin + offset].to_register())
        for memory, flag in zip(memories, flags, strict=True):
            with vc.if_block(flag):
                vc.atomic_or(memory[offset // WORD], vc.to_dtype(dtype.uint32, 1) << (offset % WORD))
    vc.barrier()
    return [memory[lane].to_register() for memory in memories]


def _write(form: Form, words: list[Any], bits: Any, sums: Any, tile: Any, half: Any) -> None:
    lane = vc.local_invocation_id().x
    for number, word in enumerate(words):
        place = tile + number * half if number else tile
        bits[place * form.group + lane] = word
        total = summed(vc.bit_count(word).to_dtype(dtype.uint32), lane, form.group)
        with vc.if_block(lane == 0):
            sums[place] = total


def _whole_tile(form: Form, view: Any, first: Any, lane: Any, memories: Any, kept: Any) -> None:
    together, group = form.together, form.group
    loads = WORD // together
    flight = min(loads, form.flight)
    start = (first // together).to_register("top_load")
    with vc.for_block(0, loads // flight) as number:
        offsets = [(lane + (number * flight + u) * group).to_register() for u in range(flight)]
        words = [view[start + offset].to_register() for offset in offsets]
        for offset, word in zip(offsets, words, strict=True):
            raws = [word] if together == 1 else unpacked(form.order.raw, together, word)
            masks: list[Any] = [vc.new_uint_register(0) for _ in memories]
            for i, raw in enumerate(raws):
                for which, flag in enumerate(kept(raw.to_register())):
                    masks[which] |= vc.select(flag, 1 << i, 0)
            place = offset * together
            for memory, mask in zip(memories, masks, strict=True):
                with vc.if_block(mask != 0):
                    vc.atomic_or(memory[place // WORD], mask << (place % WORD))


@remembered
def collect_kernel(form: Form) -> ShaderFunction:
    """Return the kernel that puts candidates together.

    Its arguments are the keys, bits, starts; the candidates and their positions; k, room, and the shape.
    """

    def body(keys: Any, bits: Any, starts: Any, candidates: Any, positions: Any, *others: Any) -> None:
        k, room, _, tiles, length = others
        tile = vc.workgroup_id().x
        row = (tile // tiles).to_register("top_row")
        good = is_good(starts, row, tiles, k, room)
        most = vc.select(vc.all(starts[tile] < starts[tile + 1], good), room, 0).to_register("top_most")
        to = _Target(keys, candidates, positions, (row * room).to_register(), length)
        _collect(form, to, bits, starts, tile, row, tiles, 0, most, 0)

    arguments = [*_collecting(form), *((name, _U32) for name in ("top_k", "top_room", *_SHAPE))]
    return traced("topk_collect", body, arguments, form.group, "top_rows * top_tiles")


@remembered
def collect_exactly_kernel(form: Form) -> ShaderFunction:
    """Return the kernel that puts exactly k candidates together where a sample was not good.

    Its arguments are the keys, bits, starts; the candidates and their positions; the states; the starts of
    the sample's candidates and the tiles of a row there; k, room, and the shape.
    """

    def body(keys: Any, bits: Any, starts: Any, candidates: Any, positions: Any, *others: Any) -> None:
        states, sample_starts, sample_tiles, k, room, rows, tiles, length = others
        tile = vc.workgroup_id().x
        row = (tile // tiles).to_register("top_row")
        good = is_good(sample_starts, row, sample_tiles, k, room)
        ties = states[row * (form.parts + 1) + form.parts].to_register("top_ties")
        half = (rows * tiles).to_register("top_half")
        to = _Target(keys, candidates, positions, (row * room).to_register(), length)
        for number in range(2):
            place = (tile + half * number).to_register() if number else tile
            wanted, shift = (ties, (k - ties).to_register()) if number else (k, 0)
            some = vc.all(starts[place] < starts[place + 1], ~good)
            most = vc.select(some, wanted, 0).to_register("top_most")
            _collect(form, to, bits, starts, tile, row, tiles, half * number if number else 0, most, shift)

    arguments = [
        *_collecting(form),
        ("top_states", buffer[dtype.uint32]),
        ("top_sample_starts", buffer[dtype.uint32]),
        *((name, _U32) for name in ("top_sample_tiles", "top_k", "top_room", *_SHAPE)),
    ]
    return traced("topk_collect_exactly", body, arguments, form.group, "top_rows * top_tiles")


def _collecting(form: Form) -> list[tuple[str, Any]]:
    return [
        ("top_keys", buffer[form.order.raw]),
        ("top_bits", buffer[dtype.uint32]),
        ("top_starts", buffer[dtype.uint32]),
        ("top_candidates", buffer[form.order.raw]),
        ("top_positions", buffer[dtype.uint32]),
    ]


@record(eq=False)
class _Target:
    """Where candidates come from and go, in a kernel: `first` is the row's first candidate."""

    keys: Any
    candidates: Any
    positions: Any
    first: Any
    length: Any


def _collect(
    form: Form,
    to: _Target,
    bits: Any,
    starts: Any,
    tile: Any,
    row: Any,
    tiles: Any,
    half: Any,
    most: Any,
    shift: Any,
) -> None:
    """Put a tile's flagged elements behind those of the row's tiles before, `most` of them at most."""
    lane = vc.local_invocation_id().x
    begin = ((tile - row * tiles) * form.tile).to_register("top_begin")
    with vc.if_block(most > 0):
        # sums over all rows may have wrapped around, which differences do not show in 32 bits
        first = ((starts[half + tile] - starts[half + row * tiles]) & 0xFFFFFFFF).to_register("top_first")
        word = bits[(half + tile) * form.group + lane].to_register()
        before = summed_before(vc.bit_count(word).to_dtype(dtype.uint32), lane, form.group)
        rank = (first + before).to_register("top_rank")
        with vc.while_block(vc.all(word != 0, rank < most)):
            bit = vc.find_lsb(word).to_dtype(dtype.uint32).to_register()
            place = begin + (lane * WORD + bit)
            target = (to.first + (shift + rank)).to_register("top_target")
            to.candidates[target] = to.keys[row * to.length + place].to_register()
            to.positions[target] = place
            word &= word - 1
            rank += 1


@remembered
def pad_kernel(form: Form, words: tuple[int, ...]) -> ShaderFunction:
    """Return the kernel that fills the room behind candidates with an element after all others: `words`.

    Its arguments are the candidates and their positions, the sample's starts, k, room and tiles.
    """

    def body(candidates: Any, positions: Any, starts: Any, k: Any, room: Any, tiles: Any) -> None:
        element = vc.global_invocation_id().x
        row = (element // room).to_register("top_row")
        rank = (element - row * room).to_register("top_rank")
        found = (starts[(row + 1) * tiles] - starts[row * tiles]).to_register()
        count = vc.select(vc.all(found >= k, found <= room), found, k)
        with vc.if_block(rank >= count):
            raw = form.order.raw
            candidates[element] = vc.to_dtype(raw, *words) if len(words) > 1 else words[0]
            positions[element] = 0

    arguments = [
        ("top_candidates", buffer[form.order.raw]),
        ("top_positions", buffer[dtype.uint32]),
        ("top_starts", buffer[dtype.uint32]),
        *((name, _U32) for name in ("top_k", "top_room", "top_tiles")),
    ]
    return traced("topk_pad", body, arguments, 128, exec_size="top_candidates.size")


# -- radix select, where a sample was not good


@remembered
def count_kernel(form: Form, digit: Digit) -> ShaderFunction:
    """Return the kernel that counts a digit among the elements that have the digits chosen before.

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
        good = is_good(starts, row, tiles, k, room)
        end = (vc.select(good, 0, length)).to_register("top_end")
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
            found = memory[place].to_register()
            with vc.if_block(found > 0):
                vc.atomic_add(counts[row * BINS + place], found)

    arguments = [
        ("top_keys", buffer[form.order.raw]),
        ("top_counts", buffer[dtype.uint32]),
        ("top_states", buffer[dtype.uint32]),
        ("top_starts", buffer[dtype.uint32]),
        *((name, _U32) for name in ("top_k", "top_room", "top_groups", *_SHAPE)),
    ]
    return traced("topk_count", body, arguments, form.group, "top_rows * top_groups")


@remembered
def choose_kernel(form: Form, digit: Digit) -> ShaderFunction:
    """Return the kernel that chooses the digit at which the k-th element is, and clears the counts.

    Its arguments are the counts, the states, and how many rows there are. A state is the code as far as it is
    known, and how many elements with it there are to be.
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
        for found in own:
            total += found
        before = summed_before(total, lane, form.group)
        vc.barrier()
        for i, found in enumerate(own):
            with vc.if_block(vc.all(before < left, before + found >= left)):
                states[state + digit.part] = part | ((lane * each + i) << digit.shift)
                states[state + form.parts] = left - before
            before += found
            counts[row * BINS + (lane * each + i)] = 0

    arguments = [
        ("top_counts", buffer[dtype.uint32]),
        ("top_states", buffer[dtype.uint32]),
        ("top_rows", _U32),
    ]
    return traced("topk_choose", body, arguments, form.group, "top_rows")


@remembered
def begin_kernel(parts: int) -> ShaderFunction:
    """Return the kernel that begins states: of no digits, with k elements to be found."""

    def body(states: Any, k: Any) -> None:
        index = vc.global_invocation_id().x
        states[index] = vc.select(index % (parts + 1) == parts, k, 0)

    arguments = [("top_states", buffer[dtype.uint32]), ("top_k", _U32)]
    return traced("topk_begin", body, arguments, 128, exec_size="top_states.size")
