r"""The kernels that fill buffers with random numbers.

Each invocation computes a few blocks of Philox, and from each a vector of elements, that it stores at once::

    stream of words   | b b b b | b b b b | b b b b | ...      blocks, found from their numbers alone
                        \ \ \ \
    elements            e e e e   e e e e   e e e e            one word each, or two, or half of one

Where a draw starts inside a block, its elements come from two neighbouring blocks: an invocation has the
second's words from its neighbour, or computes them too. Which word an element is made of is decided by
its place alone, never by how the work is divided.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, trace_kernel
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.dtype import (
    DType,
    component_type,
    compute_type,
    float16,
    float32,
    float64,
    int32,
    is_complex,
    uint32,
    uint64,
)
from vkdispatch.codegen.functions.registers import precise
from vkdispatch.codegen.random.distributions import normal_pair, scaled, uniform32, uniform64
from vkdispatch.codegen.random.philox import own, product64, product_of_64_bits, words32, words64
from vkdispatch.random.forms import Form
from vkdispatch.shader.shader_function import ShaderFunction

# Blocks that one launch computes at most: their numbers have 32 bits.
MOST_BLOCKS = 1 << 31
# Integers that a word does not decide on take words of other keys.
_OTHER_KEY = (0x5851F42D, 0x14057B7E)


@memoize
def fill_kernel(form: Form) -> ShaderFunction:
    """Return the kernel of a form.

    Its arguments are the result; the same once more, as `form.view`, if that is not None; the buffer of the
    counter, if it is on the device; those of the sink; the words of counter and key; how often `MOST_BLOCKS`
    blocks come before this launch; the shift; then `form.numbers`. It is launched on workgroups of
    `form.group` invocations that compute `form.unroll` blocks each.
    """
    word = constant[form.word_type]
    arguments: list[tuple[str, Any]] = [("result", buffer[form.sink.out_type])]
    if form.view is not None:
        arguments.append(("vectors", buffer[form.view]))
    if form.on_device:
        arguments.append(("position", buffer[uint32]))
    arguments += form.sink.parameters
    arguments += [(f"counter{i}", word) for i in range(4)] + [("key0", word), ("key1", word)]
    arguments += [("turn", constant[uint32]), ("shift", constant[uint32])]
    arguments += [(name, constant[kind]) for name, kind in form.numbers]
    name = f"random_{form.made}_{form.sink.value_type.name}"
    return trace_kernel(
        name, lambda *variables: _Tracing(form, variables).run(), arguments, form.group, workgroups=1
    )


class _Tracing:
    """A kernel being traced."""

    def __init__(self, form: Form, variables: Sequence[Any]) -> None:
        self._form = form
        left = list(variables)
        self._result = left.pop(0)
        self._vectors = left.pop(0) if form.view is not None else None
        self._position = left.pop(0) if form.on_device else None
        count = len(form.sink.annotations)
        self._mapping, left = left[:count], left[count:]
        self._counter, self._key = left[:4], left[4:6]
        self._turn = left[6]
        # words that are passed over: a number, or known at the launch only
        self._shift = left[7].to_register() if form.shift < 0 else form.shift
        self._numbers = left[8:]
        # the number of the invocation's first block
        self._first: Any = None

    def run(self) -> None:
        """Record the kernel's statements."""
        form = self._form
        if self._position is not None:
            self._counter = self._from(self._position)
        first = vc.workgroup_id().x * (form.group * form.unroll) + vc.local_invocation_index()
        self._first = first.to_register("block")
        if form.single:
            value = self._values([self._numbers.pop()])[0]
            with vc.if_block(self._first == 0):
                self._element(self._first, value)
            return
        values = self._values(self._all_words())
        for number in range(form.unroll):
            part = values[number * form.together : (number + 1) * form.together]
            self._store(self._block(number), part)

    def _block(self, number: Any) -> Any:
        """Return the number of one of the invocation's blocks."""
        if isinstance(number, int):
            return (self._first + number * self._form.group).to_register() if number else self._first
        return (self._first + number * self._form.group).to_register()

    # -- words

    def _from(self, position: Any) -> list[Any]:
        """Return the counter of a launch whose stream begins where a buffer says."""
        low, high = position[0].to_register(), position[1].to_register()
        if self._form.wide:
            base = (high.to_dtype(uint64) << 32) | low.to_dtype(uint64)
            return [(base + self._counter[0]).to_register(), *self._counter[1:]]
        total, carry = vc.uadd_carry(low, self._counter[0])
        return [
            own(uint32, total),
            own(uint32, high + self._counter[1] + carry),
            *self._counter[2:],
        ]

    def _all_words(self) -> list[Any]:
        """Return the words that the invocation's elements are made of, in their order."""
        form = self._form
        own_words = [self._words(self._block(number)) for number in range(form.unroll)]
        if form.exchange:
            own_words = self._exchanged(own_words)
        elif form.shift or form.half:
            following = [self._words(self._block(number) + 1) for number in range(form.unroll)]
            own_words = [self._from_shift(a + b) for a, b in zip(own_words, following, strict=True)]
        if form.bits == 16:
            # the bits of the lower half, and of the upper one, from where `_uniform` takes them
            return [half.to_register() for words in own_words for half in self._halves_of(words)]
        found = [word for words in own_words for word in words]
        if form.bits == 64:
            return [_joined(low, high) for low, high in zip(found[::2], found[1::2], strict=True)]
        return found

    def _halves_of(self, words: list[Any]) -> list[Any]:
        """Return halves of words, each where `_uniform` takes it from: as many as elements of a block."""
        form = self._form
        halves = [half for word in words for half in (word << 7, word >> 9)]
        return halves[form.half : form.half + form.together]

    def _from_shift(self, words: list[Any]) -> list[Any]:
        """Return as many words as a block has from the shift on, and one more where that begins with half."""
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

    def _exchanged(self, blocks: list[list[Any]]) -> list[list[Any]]:
        """Return what `_from_shift` does, of which the last words are the first of the block behind.

        The next invocation has that one, or, behind the last, the first; the workgroup's last block needs one
        more.
        """
        form = self._form
        size = form.unroll * form.group
        count = form.shift + form.half
        firsts = vc.shared_buffer(uint32, count * (size + 1))
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
        """Return the words of a block, of 32 bits each."""
        form = self._form
        counter = self._counted(own(uint32, number))
        if not form.wide:
            return list(words32(counter, self._key, product_of_64_bits if form.long_products else None))
        words = [word.to_register() for word in words64(counter, self._key)]
        return [half.to_register() for word in words for half in _halves(word)]

    def _counted(self, number: Any) -> list[Any]:
        """Return the counter that is a number behind the first."""
        form, kind = self._form, self._form.word_type
        words = [own(kind, self._counter[0] + number.to_dtype(kind))]
        if form.wide and not form.far:
            return [*words, *self._counter[1:]]
        carried: Any = words[0] < self._counter[0]
        for word in self._counter[1:] if form.far else self._counter[1:2]:
            one = vc.select(carried, vc.to_dtype(kind, 1), vc.to_dtype(kind, 0))
            words.append(own(kind, word + one))
            carried = vc.all(carried, words[-1] == 0)
        return [*words, *self._counter[len(words) :]]

    # -- numbers

    def _values(self, words: list[Any]) -> list[Any]:
        form, kind = self._form, self._form.sink.value_type
        if form.made == "raw":
            return words
        if form.made == "integers":
            return self._integers(words)
        if form.made == "uniform":
            values = [_uniform(word, kind) for word in words]
        else:
            pairs = zip(words[::2], words[1::2], strict=True)
            values = [value for pair in pairs for value in normal_pair(*pair)]
        if form.scaled:
            low, width = self._numbers
            values = [scaled(value, low, width) for value in values]
        if kind is float16 and (form.scaled or form.made == "normal"):
            values = [_half(value) for value in values]
        return values

    def _integers(self, words: list[Any]) -> list[Any]:
        """Return integers of a range, all with the same probability (Lemire 2019)."""
        form = self._form
        low, *scale = self._numbers
        if not scale:
            return [self._offset(word, low) for word in words]
        count, surplus = scale
        products = [_product(word, count) for word in words]
        uppers = [upper for upper, _ in products]
        if form.rejecting:
            uppers = self._accepted(products, count, surplus)
        return [self._offset(upper, low) for upper in uppers]

    def _accepted(self, products: list[Any], count: Any, surplus: Any) -> list[Any]:
        """Return the upper halves of products, other ones for those that must not be taken."""
        kind = count.var_type
        uppers = [vc.new_register(kind, upper) for upper, _ in products]
        lowers = [lower.to_register() for _, lower in products]
        # seldom: one loop for all elements, and no loop where none needs it
        least = lowers[0]
        for lower in lowers[1:]:
            least = vc.min(least, lower)
        with vc.if_block(least < surplus), vc.for_block(len(uppers)) as element:
            lower = vc.new_register(kind, lowers[0])
            for place in range(1, len(lowers)):
                lower[:] = vc.select(element == place, lowers[place], lower)
            upper = vc.new_register(kind)
            turn = vc.new_register(uint32, 0)
            with vc.while_block(lower < surplus):
                turn += 1
                upper[:], lower[:] = _product(self._other_word(element, turn), count)
            for place, old in enumerate(uppers):
                old[:] = vc.select(vc.all(turn > 0, element == place), upper, old)
        return uppers

    def _offset(self, value: Any, low: Any) -> Any:
        kind = self._form.sink.value_type
        total = value.to_dtype(low.var_type) + low
        return total.to_dtype(kind) if kind.item_size >= 4 else total.to_dtype(int32)

    def _other_word(self, element: Any, turn: Any) -> Any:
        """Return what an element takes that its own word does not decide on, the first time or a later one.

        It belongs to the place of the element's word in the stream, and to another key than the stream's.
        """
        form, kind = self._form, self._form.word_type
        element = element.to_dtype(uint32).to_register()
        place = (self._shift + element % form.together * (form.bits // 32)).to_register()
        counter = self._counted(own(uint32, self._block(element // form.together) + place // form.words))
        key = [
            own(kind, self._key[0] ^ _OTHER_KEY[0]),
            own(kind, self._key[1] + _OTHER_KEY[1] + (turn * 8 + place % form.words).to_dtype(kind)),
        ]
        if form.wide:
            (word, *_) = words64(counter, key)
            return word if form.bits == 64 else word.to_dtype(uint32)
        low, high, *_ = words32(counter, key, product_of_64_bits if form.long_products else None)
        return low if form.bits == 32 else _joined(low, high)

    # -- stores

    def _store(self, number: Any, values: list[Any]) -> None:
        form = self._form
        start = ((self._turn * MOST_BLOCKS + number) * form.together).to_register("first")
        size = self._result.shape.w
        if self._vectors is None:
            for place, value in enumerate(values):
                with vc.if_block((start + place).to_dtype(int32) < size):
                    self._element(start + place, value)
            return
        with vc.if_block((start + form.together).to_dtype(int32) <= size):
            stored = [self._mapped(start + place, value) for place, value in enumerate(values)]
            words = _packed(form.sink.out_type, stored)
            width = self._vectors.var_type.item_size // 4
            for part in range(len(words) // width):
                vector = vc.to_dtype(self._vectors.var_type, *words[part * width : (part + 1) * width])
                place = (self._turn * MOST_BLOCKS + number) * (len(words) // width) + part
                self._vectors[place] = vector
        with vc.else_block():
            for place, value in enumerate(values):
                with vc.if_block((start + place).to_dtype(int32) < size):
                    self._element(start + place, value)

    def _mapped(self, index: Any, value: Any) -> Any:
        sink = self._form.sink
        if sink.mapping is None:
            return value
        return sink.mapped(self._mapping, index, value.to_dtype(compute_type(sink.value_type)))

    def _element(self, index: Any, value: Any) -> None:
        sink = self._form.sink
        sink.store(self._result, self._mapping, index, value.to_dtype(compute_type(sink.value_type)))


def _uniform(word: Any, kind: DType) -> Any:
    if kind is float64:
        return uniform64(word)
    if kind is float32:
        return uniform32(word)
    # 11 bits behind the point of a number of [1, 2)
    return vc.reinterpret(float32, (word & 0x7FF000) | 0x3F800000) - 1.0


def _half(value: Any) -> Any:
    """Return a float32 rounded to the 11 bits of a float16, so that devices do not round."""
    value = precise(value)
    far = precise(value * 8193.0)
    return precise(far - precise(far - value))


def _halves(word: Any) -> tuple[Any, Any]:
    return word.to_dtype(uint32), (word >> 32).to_dtype(uint32)


def _joined(low: Any, high: Any) -> Any:
    return ((high.to_dtype(uint64) << 32) | low.to_dtype(uint64)).to_register()


def _product(word: Any, count: Any) -> tuple[Any, Any]:
    """Return the upper and the lower half of a product."""
    return product64(word, count) if word.var_type is uint64 else vc.umul_extended(word, count)


def _packed(kind: DType, values: list[Any]) -> list[Any]:
    """Return elements as words of 32 bits, as they lie in memory."""
    if is_complex(kind):
        values = [part for value in values for part in (value.real, value.imag)]
        kind = component_type(kind)
    if kind.item_size == 8:
        pairs = [vc.unpack_double2x32(value) if kind is float64 else value for value in values]
        return [
            part
            for pair in pairs
            for part in ((pair.x, pair.y) if kind is float64 else _halves(pair.to_dtype(uint64)))
        ]
    if kind.item_size == 4:
        return [vc.reinterpret(uint32, value) for value in values]
    if kind is float16:
        floats = [value.to_dtype(float32) for value in values]
        return [vc.pack_half2x16(vc.to_vec2(*pair)) for pair in zip(floats[::2], floats[1::2], strict=True)]
    bits, count = 8 * kind.item_size, 4 // kind.item_size
    parts = [value.to_dtype(uint32) & (1 << bits) - 1 for value in values]
    words = []
    for first in range(0, len(parts), count):
        word = parts[first]
        for place in range(1, count):
            word = word | (parts[first + place] << (bits * place))
        words.append(word)
    return words
