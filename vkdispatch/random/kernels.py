"""The kernels that fill buffers with random numbers, and what they are specialised for."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.record import record
from vkdispatch.codegen import random
from vkdispatch.codegen.annotations import constant
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.operands import Sink
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import view_type
from vkdispatch.shader.shader_function import ShaderFunction

# ---- What kernels that fill buffers are specialised for --------------------------------------------------


@record
class Form:
    """What a kernel is specialised for.

    Attributes
    ----------
    distribution
        "raw", "uniform", "normal" or "integers".
    is_wide
        Whether the generator is Philox4x64.
    bits
        Bits of the stream for each element: 16, 32 or 64.
    shift
        Words of 32 bits of the first block that are skipped; negative if the launch passes their number.
    half
        Whether half of a word is skipped behind them.
    sink
        How values are stored; its `value_type` is their dtype.
    is_scaled
        Whether numbers are scaled. Integers are, unless each value of a word is one of them.
    is_rejecting
        Whether integers may need several tries.
    is_single
        Whether the kernel makes only one element, of a word that the launch passes.
    is_far
        Whether the counter may carry beyond 64 bits.
    on_device
        Whether the counter lies in a buffer.
    has_vectors
        Whether several elements are stored at once.
    group, unroll, long_products
        See `Tuning`.
    has_exchange
        Whether the invocations of a workgroup exchange words.
    """

    distribution: str
    is_wide: bool
    bits: int
    shift: int
    sink: Sink
    half: bool = False
    is_scaled: bool = False
    is_rejecting: bool = False
    is_single: bool = False
    is_far: bool = False
    on_device: bool = False
    has_vectors: bool = True
    group: int = 256
    unroll: int = 1
    long_products: bool = False
    has_exchange: bool = False

    @property
    def words(self) -> int:
        """Words of 32 bits in a block."""
        return 8 if self.is_wide else 4

    @property
    def together(self) -> int:
        """Elements that a block makes."""
        return self.words * 32 // self.bits

    @property
    def word_type(self) -> dt.DType:
        """Type of the words of the counter and the key."""
        return dt.uint64 if self.is_wide else dt.uint32

    @property
    def numbers(self) -> list[tuple[str, dt.DType]]:
        """Names and types of the numbers of a launch behind those of the stream."""
        kind = self.sink.value_type
        scale: list[tuple[str, dt.DType]] = []
        if self.distribution == "integers":
            drawn = dt.uint64 if self.bits == 64 else dt.uint32
            scale = [("low", dt.uint64 if kind.item_size == 8 else dt.uint32)]
            scale += [("count", drawn), ("surplus", drawn)] if self.is_scaled else []
        elif self.is_scaled:
            real = dt.float64 if kind is dt.float64 else dt.float32
            scale = [("low", real), ("width", real)]
        return [*scale, ("word", dt.uint32)] if self.is_single else scale

    @property
    def view(self) -> dt.DType | None:
        """Type of a store of several elements; None if elements are stored one by one."""
        if not self.has_vectors:
            return None
        kind = self.sink.out_type
        plain = kind is not dt.bool_ and (dt.is_scalar(kind) or dt.is_complex(kind))
        for count in (self.together, self.together // 2, self.together // 4):
            if plain and count > 1 and (view := view_type(kind, count)) is not None:
                return view
        return None


# ---- The kernels that fill buffers with random numbers ---------------------------------------------------
#
# Each invocation computes a few blocks of Philox, makes a vector of elements of each, and stores it at
# once:
#
#     stream of words   | b b b b | b b b b | b b b b | ...      blocks, found from their numbers alone
#                         \ \ \ \
#     elements            e e e e   e e e e   e e e e            one word each, or two, or half of one
#
# If a draw starts inside a block, its elements come from two neighbouring blocks: an invocation gets the
# words of the second one from its neighbour, or computes them, too. The place of an element alone decides
# of which word it is made, never the division of the work.


# The most blocks that one launch computes: their numbers have 32 bits.
MAX_BLOCKS = 1 << 31
# Integers whose word is rejected take words of another key, which differs by these.
_OTHER_KEY = (0x5851F42D, 0x14057B7E)


@store_results
def make_fill_kernel(form: Form) -> ShaderFunction:
    """Return the kernel of a form.

    Its arguments are the result; the result again as `form.view`, if that is not None; the buffer of the
    counter, if the device has it; the arguments of the sink; the words of the counter and the key; how often
    `MAX_BLOCKS` blocks come before this launch; the shift; then `form.numbers`. Each of the `form.group`
    invocations of a workgroup computes `form.unroll` blocks.
    """
    word = form.word_type
    arguments = [
        *buffers(
            result=form.sink.out_type, vectors=form.view, position=dt.uint32 if form.on_device else None
        ),
        form.sink.parameters,
        numbers("counter0", "counter1", "counter2", "counter3", kind=word),
        numbers("key0", "key1", kind=word),
        *numbers("turn", "shift"),
        [(name, constant[kind]) for name, kind in form.numbers],
    ]
    name = f"random_{form.distribution}_{form.sink.value_type.name}"
    return trace_kernel(
        name, lambda *variables: _Tracing(form, variables).run(), arguments, form.group, workgroups=1
    )


class _Tracing:
    """A kernel being traced."""

    def __init__(self, form: Form, variables: Sequence[Any]) -> None:
        self._form = form
        self._result, self._vectors, self._position, self._mapping = variables[:4]
        self._counter, self._key, self._turn, shift, scale = variables[4:]
        # skipped words: a number, or a variable that the launch passes
        self._shift = shift.to_register() if form.shift < 0 else form.shift
        self._numbers = list(scale)
        # the number of the first block of the invocation
        self._first: Any = None

    def run(self) -> None:
        """Record the kernel's statements."""
        form = self._form
        if self._position is not None:
            self._counter = self._read_counter(self._position)
        first = vc.workgroup_id().x * (form.group * form.unroll) + vc.local_invocation_index()
        self._first = first.to_register("block")
        if form.is_single:
            value = self._values([self._numbers.pop()])[0]
            with vc.if_block(self._first == 0):
                self._element(self._first, value)
            return
        values = self._values(self._all_words())
        for number in range(form.unroll):
            part = values[number * form.together : (number + 1) * form.together]
            self._store(self._block(number), part)

    def _block(self, number: Any) -> Any:
        """Return the number of a block of the invocation."""
        if isinstance(number, int):
            return (self._first + number * self._form.group).to_register() if number else self._first
        return (self._first + number * self._form.group).to_register()

    # -- words

    def _read_counter(self, position: Any) -> list[Any]:
        """Return the counter of a launch that begins at a position in a buffer."""
        low, high = position[0].to_register(), position[1].to_register()
        if self._form.is_wide:
            base = (high.to_dtype(dt.uint64) << 32) | low.to_dtype(dt.uint64)
            return [(base + self._counter[0]).to_register(), *self._counter[1:]]
        total, carry = vc.uadd_carry(low, self._counter[0])
        return [
            random.own(dt.uint32, total),
            random.own(dt.uint32, high + self._counter[1] + carry),
            *self._counter[2:],
        ]

    def _all_words(self) -> list[Any]:
        """Return the words of the elements of the invocation, in order."""
        form = self._form
        own_words = [self._words(self._block(number)) for number in range(form.unroll)]
        if form.has_exchange:
            own_words = self._exchange(own_words)
        elif form.shift or form.half:
            following = [self._words(self._block(number) + 1) for number in range(form.unroll)]
            own_words = [self._from_shift(a + b) for a, b in zip(own_words, following, strict=True)]
        if form.bits == 16:
            # lower and upper halves, with their bits where `_uniform` expects them
            return [half.to_register() for words in own_words for half in self._halves_of(words)]
        flat = [word for words in own_words for word in words]
        if form.bits == 64:
            return [_join_words(low, high) for low, high in zip(flat[::2], flat[1::2], strict=True)]
        return flat

    def _halves_of(self, words: list[Any]) -> list[Any]:
        """Return the halves of words for the elements of a block, each as `_uniform` expects it."""
        form = self._form
        halves = [half for word in words for half in (word << 7, word >> 9)]
        return halves[form.half : form.half + form.together]

    def _from_shift(self, words: list[Any]) -> list[Any]:
        """Return the words of a block from the shift on, and one more if half of the first is skipped."""
        form = self._form
        count = form.words + form.half
        if form.shift >= 0:
            return words[form.shift : form.shift + count]
        step = form.words // 2
        while step:
            other: Any = (self._shift & step) != 0
            far = other.to_register()
            left = range(len(words) - step)
            words = [vc.select(far, words[place + step], words[place]).to_register() for place in left]
            step //= 2
        return words[:count]

    def _exchange(self, blocks: list[list[Any]]) -> list[list[Any]]:
        """Return what `_from_shift` returns; its last words are the first words of the following block.

        The next invocation has that block; the last invocation of a workgroup computes it itself.
        """
        form = self._form
        size = form.unroll * form.group
        count = form.shift + form.half
        firsts = vc.shared_buffer(dt.uint32, count * (size + 1))
        lane = vc.local_invocation_index()
        for turn, words in enumerate(blocks):
            for place in range(count):
                firsts[place * (size + 1) + turn * form.group + lane] = words[place]
        with vc.if_block(lane == form.group - 1):
            behind = self._words(self._block(form.unroll - 1) + 1)
            for place in range(count):
                firsts[place * (size + 1) + size] = behind[place]
        vc.barrier()
        return [
            [
                *words[form.shift :],
                *(
                    firsts[place * (size + 1) + turn * form.group + lane + 1].to_register()
                    for place in range(count)
                ),
            ]
            for turn, words in enumerate(blocks)
        ]

    def _words(self, number: Any) -> list[Any]:
        """Return the words of 32 bits of a block."""
        form = self._form
        counter = self._add_to_counter(random.own(dt.uint32, number))
        if not form.is_wide:
            return list(
                random.words32(counter, self._key, random.product_of_64_bits if form.long_products else None)
            )
        words = [word.to_register() for word in random.words64(counter, self._key)]
        return [half.to_register() for word in words for half in _split_halves(word)]

    def _add_to_counter(self, number: Any) -> list[Any]:
        """Return the sum of the counter of the first block and a number."""
        form, kind = self._form, self._form.word_type
        words = [random.own(kind, self._counter[0] + number.to_dtype(kind))]
        if form.is_wide and not form.is_far:
            return [*words, *self._counter[1:]]
        carried: Any = words[0] < self._counter[0]
        for word in self._counter[1:] if form.is_far else self._counter[1:2]:
            one = vc.select(carried, vc.to_dtype(kind, 1), vc.to_dtype(kind, 0))
            words.append(random.own(kind, word + one))
            carried = vc.all(carried, words[-1] == 0)
        return [*words, *self._counter[len(words) :]]

    # -- numbers

    def _values(self, words: list[Any]) -> list[Any]:
        form, kind = self._form, self._form.sink.value_type
        if form.distribution == "raw":
            return words
        if form.distribution == "integers":
            return self._integers(words)
        if form.distribution == "uniform":
            values = [_uniform(word, kind) for word in words]
        else:
            pairs = zip(words[::2], words[1::2], strict=True)
            values = [value for pair in pairs for value in random.normal_pair(*pair)]
        if form.is_scaled:
            low, width = self._numbers
            values = [random.scaled(value, low, width) for value in values]
        if kind is dt.float16 and (form.is_scaled or form.distribution == "normal"):
            values = [_round_to_half(value) for value in values]
        return values

    def _integers(self, words: list[Any]) -> list[Any]:
        """Return integers of a range, each with the same probability (Lemire 2019)."""
        form = self._form
        low, *scale = self._numbers
        if not scale:
            return [self._add_low(word, low) for word in words]
        count, surplus = scale
        products = [_multiply(word, count) for word in words]
        uppers = [upper for upper, _ in products]
        if form.is_rejecting:
            uppers = self._accept(products, count, surplus)
        return [self._add_low(upper, low) for upper in uppers]

    def _accept(self, products: list[Any], count: Any, surplus: Any) -> list[Any]:
        """Return the upper halves of products, with other ones for those that are rejected."""
        kind = count.var_type
        uppers = [vc.new_register(kind, upper) for upper, _ in products]
        lowers = [lower.to_register() for _, lower in products]
        # rejection is rare: one loop for all elements, and none if no element needs it
        least = lowers[0]
        for lower in lowers[1:]:
            least = vc.min(least, lower)
        with vc.if_block(least < surplus), vc.for_block(len(uppers)) as element:
            lower = vc.new_register(kind, lowers[0])
            for place in range(1, len(lowers)):
                lower[:] = vc.select(element == place, lowers[place], lower)
            upper = vc.new_register(kind)
            turn = vc.new_register(dt.uint32, 0)
            with vc.while_block(lower < surplus):
                turn += 1
                upper[:], lower[:] = _multiply(self._other_word(element, turn), count)
            for place, old in enumerate(uppers):
                old[:] = vc.select(vc.all(turn > 0, element == place), upper, old)
        return uppers

    def _add_low(self, value: Any, low: Any) -> Any:
        kind = self._form.sink.value_type
        total = value.to_dtype(low.var_type) + low
        return total.to_dtype(kind) if kind.item_size >= 4 else total.to_dtype(dt.int32)

    def _other_word(self, element: Any, turn: Any) -> Any:
        """Return the word of a try for an element whose word was rejected.

        It belongs to the place of that word in the stream of another key.
        """
        form, kind = self._form, self._form.word_type
        element = element.to_dtype(dt.uint32).to_register()
        place = (self._shift + element % form.together * (form.bits // 32)).to_register()
        counter = self._add_to_counter(
            random.own(dt.uint32, self._block(element // form.together) + place // form.words)
        )
        key = [
            random.own(kind, self._key[0] ^ _OTHER_KEY[0]),
            random.own(kind, self._key[1] + _OTHER_KEY[1] + (turn * 8 + place % form.words).to_dtype(kind)),
        ]
        if form.is_wide:
            (word, *_) = random.words64(counter, key)
            return word if form.bits == 64 else word.to_dtype(dt.uint32)
        low, high, *_ = random.words32(
            counter, key, random.product_of_64_bits if form.long_products else None
        )
        return low if form.bits == 32 else _join_words(low, high)

    # -- stores

    def _store(self, number: Any, values: list[Any]) -> None:
        form = self._form
        start = ((self._turn * MAX_BLOCKS + number) * form.together).to_register("first")
        size = self._result.shape.w
        if self._vectors is None:
            for place, value in enumerate(values):
                with vc.if_block((start + place).to_dtype(dt.int32) < size):
                    self._element(start + place, value)
            return
        with vc.if_block((start + form.together).to_dtype(dt.int32) <= size):
            stored = [self._map(start + place, value) for place, value in enumerate(values)]
            words = _pack(form.sink.out_type, stored)
            width = self._vectors.var_type.item_size // 4
            for part in range(len(words) // width):
                vector = vc.to_dtype(self._vectors.var_type, *words[part * width : (part + 1) * width])
                place = (self._turn * MAX_BLOCKS + number) * (len(words) // width) + part
                self._vectors[place] = vector
        with vc.else_block():
            for place, value in enumerate(values):
                with vc.if_block((start + place).to_dtype(dt.int32) < size):
                    self._element(start + place, value)

    def _map(self, index: Any, value: Any) -> Any:
        sink = self._form.sink
        if sink.mapping is None:
            return value
        return sink.map_value(self._mapping, index, value.to_dtype(dt.compute_type(sink.value_type)))

    def _element(self, index: Any, value: Any) -> None:
        sink = self._form.sink
        sink.store(self._result, self._mapping, index, value.to_dtype(dt.compute_type(sink.value_type)))


def _uniform(word: Any, kind: dt.DType) -> Any:
    if kind is dt.float64:
        return random.uniform64(word)
    if kind is dt.float32:
        return random.uniform32(word)
    # 11 bits of the fraction of a number in [1, 2)
    return vc.reinterpret(dt.float32, (word & 0x7FF000) | 0x3F800000) - 1.0


def _round_to_half(value: Any) -> Any:
    """Return a float32 rounded to the 11 bits of a float16, so that the device has nothing to round."""
    value = vc.precise(value)
    far = vc.precise(value * 8193.0)
    return vc.precise(far - vc.precise(far - value))


def _split_halves(word: Any) -> tuple[Any, Any]:
    return word.to_dtype(dt.uint32), (word >> 32).to_dtype(dt.uint32)


def _join_words(low: Any, high: Any) -> Any:
    return ((high.to_dtype(dt.uint64) << 32) | low.to_dtype(dt.uint64)).to_register()


def _multiply(word: Any, count: Any) -> tuple[Any, Any]:
    """Return the upper and the lower half of a product."""
    return random.product64(word, count) if word.var_type is dt.uint64 else vc.umul_extended(word, count)


def _pack(kind: dt.DType, values: list[Any]) -> list[Any]:
    """Return elements as the words of 32 bits that they are in memory."""
    if dt.is_complex(kind):
        values = [part for value in values for part in (value.real, value.imag)]
        kind = dt.component_type(kind)
    if kind.item_size == 8:
        pairs = [vc.unpack_double2x32(value) if kind is dt.float64 else value for value in values]
        return [
            part
            for pair in pairs
            for part in ((pair.x, pair.y) if kind is dt.float64 else _split_halves(pair.to_dtype(dt.uint64)))
        ]
    if kind.item_size == 4:
        return [vc.reinterpret(dt.uint32, value) for value in values]
    if kind is dt.float16:
        floats = [value.to_dtype(dt.float32) for value in values]
        return [vc.pack_half2x16(vc.to_vec2(*pair)) for pair in zip(floats[::2], floats[1::2], strict=True)]
    bits, count = 8 * kind.item_size, 4 // kind.item_size
    parts = [value.to_dtype(dt.uint32) & (1 << bits) - 1 for value in values]
    words = []
    for first in range(0, len(parts), count):
        word = parts[first]
        for place in range(1, count):
            word = word | (parts[first + place] << (bits * place))
        words.append(word)
    return words
