"""The kernel that transposes planes of a few long rows or columns, such as the colours of pixels.

    interleaved    r g b r g b r g b r g b ...         one run of 3 words of 4 bytes is 4 pixels
    planes         r r r r ...  g g g g ...  b b b b ...

An invocation takes one word of each plane, which on the interleaved side are as many neighbouring words.
These pass through workgroup memory, so that neighbouring invocations load and store neighbouring words. The
elements of words are rearranged in registers. Invariant: the long side is a multiple of the elements of a
word, so that every plane begins with a word of its own.
"""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.record import record
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import word_type
from vkdispatch.rearrange.moves import Move, Numbers, pack_numbers
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256
_MOST_PLANES = 8


@record
class NarrowForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    item, word
        Bytes of an element, and of the words that are moved.
    planes
        Number of planes.
    joins
        Whether the kernel interleaves planes.
    apart
        Whether each plane that is interleaved is a buffer of its own.
    group
        Invocations of a workgroup.
    numbers
        The numbers of a launch: `length`, the words of a plane; `total`, those of one plane of each batch.
    """

    item: int
    word: int
    planes: int
    joins: bool
    group: int
    numbers: Numbers
    apart: bool = False


def plan_interleave(planes: int, length: int, item: int) -> tuple[NarrowForm, tuple[int, ...]] | None:
    """Return the form and numbers of a launch that interleaves arrays of `length` elements, or None."""
    if not 2 <= planes <= _MOST_PLANES or item > 4 or not length:
        return None
    most = 16 if planes <= 4 else 8
    word = next((word for word in (16, 8, 4) if word <= most and not length * item % word), 0)
    if not word:
        return None
    words = length * item // word
    numbers, values = pack_numbers({"length": words, "total": words})
    return NarrowForm(item, word, planes, True, _GROUP, numbers, apart=True), values


@memoize
def make_narrow_kernel(form: NarrowForm) -> ShaderFunction:
    """Trace a kernel; its arguments are the result, the array (or arrays), and `form.numbers`."""
    move = Move(word_type(form.word))
    planes, group = form.planes, form.group
    result, plain = move.arguments
    arrays = [(f"x{c}", plain[1]) for c in range(planes)] if form.apart else [plain]

    def body(*variables: Any) -> None:
        number = form.numbers.read(variables[1 + len(arrays) :])
        memory = vc.shared_buffer(move.register_type, group * planes)
        lane = vc.local_invocation_index()
        first = (vc.workgroup_id().x * group).to_register("first")
        unit = vc.min(first + lane, number["total"] - 1).to_register("unit")
        batch = (unit // number["length"]).to_register("batch")
        place = (batch * (planes - 1) * number["length"] + unit).to_register("place")
        together = [lane + step * group for step in range(planes)]
        count = (number["total"] * planes).to_register("count")
        if form.joins:
            if form.apart:
                words = [move.load((variables[0], variables[1 + c]), unit) for c in range(planes)]
            else:
                words = [move.load(variables, place + number["length"] * c) for c in range(planes)]
            for c, value in enumerate(_join_planes(words, form)):
                memory[lane * planes + c] = value
            vc.barrier()
            for each in together:
                with vc.if_block(first * planes + each < count):
                    move.store(variables, first * planes + each, memory[each].to_register())
            return
        loaded = [move.load(variables, vc.min(first * planes + each, count - 1)) for each in together]
        for each, value in zip(together, loaded, strict=True):
            memory[each] = value
        vc.barrier()
        words = [memory[lane * planes + c].to_register() for c in range(planes)]
        with vc.if_block(first + lane < number["total"]):
            for c, value in enumerate(_split_planes(words, form)):
                move.store(variables, place + number["length"] * c, value)

    return trace_kernel(
        f"{'interleave' if form.joins else 'part'}_{planes}_{form.item}",
        body,
        [result, *arrays, *form.numbers.arguments],
        group,
        workgroups=f"-(-{form.numbers.text('total')} // {group})",
    )


def _split_planes(words: Sequence[Any], form: NarrowForm) -> list[Any]:
    """Return a word of each plane, given the words of the interleaved side."""
    elements = _split_elements(words, form)
    return [_join_elements(elements[c :: form.planes], form) for c in range(form.planes)]


def _join_planes(words: Sequence[Any], form: NarrowForm) -> list[Any]:
    """Return the words of the interleaved side, given one of each plane."""
    each = [_split_elements([word], form) for word in words]
    elements = [plane[i] for i in range(form.word // form.item) for plane in each]
    run = form.word // form.item
    return [_join_elements(elements[first : first + run], form) for first in range(0, len(elements), run)]


def _split_elements(words: Sequence[Any], form: NarrowForm) -> list[tuple[Any, int]]:
    """Return elements in order, each as the 32 bits that hold it and its lowest bit in them."""
    parts = [word if form.word == 4 else word[i] for word in words for i in range(form.word // 4)]
    return [(part, shift) for part in parts for shift in range(0, 32, 8 * form.item)]


def _join_elements(elements: Sequence[tuple[Any, int]], form: NarrowForm) -> Any:
    """Return a word of these elements."""
    bits, each = 8 * form.item, 4 // form.item
    parts: list[Any] = []
    for first in range(0, len(elements), each):
        part: Any = None
        for k, (held, shift) in enumerate(elements[first : first + each]):
            moved = _move_bits(held, shift, bits * k, bits)
            part = moved if part is None else part | moved
        parts.append(part.to_register())
    return parts[0] if form.word == 4 else vc.to_dtype(word_type(form.word), *parts)


def _move_bits(held: Any, shift: int, wanted: int, bits: int) -> Any:
    """Return 32 bits of which `bits` from `wanted` on are those from `shift` on, and others 0."""
    if bits == 32:
        return held
    if shift == 32 - bits:
        alone = held >> shift
        return alone << wanted if wanted else alone
    if wanted == 32 - bits and not shift:
        return held << wanted
    if shift >= wanted:
        alone = held >> (shift - wanted) if shift > wanted else held
    else:
        alone = held << (wanted - shift)
    return alone & (((1 << bits) - 1) << wanted)
