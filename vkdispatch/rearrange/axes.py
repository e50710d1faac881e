"""Kernels whose result has at each position an element found axis by axis: roll, pad, flip, tile, repeat.

    result[i, j, k] = x[f(i), g(j), h(k)]

Each of f, g and h is one of a few kinds (see `Axis`). Axes are joined before a kernel is made: one that is
left alone goes with its neighbour, also with one that is rolled or padded with a constant, for that is as
well rolled or padded by whole rows. The last axis is of bytes at first, and then of the largest words that no
kind takes apart: a roll along the first axis of three moves 16 bytes at a time whatever the elements are.
"""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, trace_kernel
from vkdispatch.arrays.maps.operand import Operand
from vkdispatch.arrays.maps.output import Output
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.values.words import word_type
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.rearrange.fillers import Filler
from vkdispatch.rearrange.words import Moving, Numbers, largest_word, moves_words, numbers_of
from vkdispatch.shader.shader_function import ShaderFunction

GROUP = 256
# What may be done by whole rows.
_BY_ROWS = ("same", "roll", "constant", "wrap", "tile")


@record
class Axis:
    """Where positions along an axis of the result come from.

    Attributes
    ----------
    kind
        "same"; "roll" (on by `at`); "flip"; "tile"; "repeat" (`at` times each); or how there is padding of
        `at` elements in front: "constant", "edge", "reflect", "symmetric", "wrap".
    result, x
        Lengths in the result, and in the array.
    at
        See above.
    """

    kind: str
    result: int
    x: int
    at: int = 0

    def scaled(self, factor: int) -> "Axis":
        """Return it for rows of so many elements."""
        return Axis(self.kind, self.result * factor, self.x * factor, self.at * factor)

    @property
    def trivial(self) -> bool:
        """Whether it has one element, and keeps it."""
        return self.result == self.x == 1

    @property
    def near(self) -> "Axis":
        """Return it with the kind that needs no remainder, where the padding is no longer than the array."""
        most = self.x - (self.kind == "reflect")
        if (
            self.kind not in ("reflect", "symmetric", "wrap")
            or max(self.at, self.result - self.x - self.at) > most
        ):
            return self
        return Axis(f"{self.kind}_near", self.result, self.x, self.at)

    @property
    def numbers(self) -> dict[str, int]:
        """What a kernel needs to know, beside the length in the result."""
        period = {"reflect": 2 * (self.x - 1), "symmetric": 2 * self.x, "wrap": self.x}.get(self.kind, 0)
        match self.kind:
            case "same":
                return {"x": self.x}
            case "repeat" | "roll" | "constant" | "edge" | "reflect_near" | "symmetric_near" | "wrap_near":
                return {"x": self.x, "at": self.at}
            case "flip" | "tile":
                return {"x": self.x}
            case "wrap":
                return {"x": self.x, "at": -self.at % period}
        return {"x": self.x, "at": -self.at % period, "period": period}


def joined(axes: Sequence[Axis]) -> list[Axis]:
    """Join axes that are done by whole rows with the last one that is left alone after them."""
    found: list[Axis] = []
    for axis in reversed(axes):
        if axis.trivial and found:
            continue
        if axis.kind == "reflect" and axis.x == 1:
            axis = Axis("edge", axis.result, axis.x, axis.at)
        if found and found[0].kind == "same" and axis.kind in _BY_ROWS:
            rows = found.pop(0)
            axis = axis.scaled(rows.result)
        found.insert(0, axis)
    return found


def launch_by_axes(
    x: Operand,
    axes: Sequence[Axis],
    target: Output,
    buffer: Buffer[Any],
    graph: CommandGraph | None,
    filler: Filler | None = None,
) -> None:
    """Queue the launch that makes a result by axes; `filler` is what "constant" ones are padded with."""
    moving = Moving(None, x.source, target.sink)
    item = x.var_type.item_size
    values: tuple[Any, ...]
    if moves_words(x, target):
        found = joined([*axes, Axis("same", item, item)])
        last = found[-1]
        size = largest_word(last.result, last.x, last.at)
        moving = Moving(word_type(size))
        last = Axis(last.kind, last.result // size, last.x // size, last.at // size)
        found = [*found[:-1], last]
    else:
        found = joined(axes)
    if found and found[-1].trivial:
        del found[-1]
    found = [axis.near for axis in found]
    kinds = tuple(axis.kind for axis in found)
    # smaller words are stored as many at once as make 4 bytes, where they are of one row
    together = 4 // moving.word.item_size if moving.word is not None and moving.word.item_size < 4 else 1
    if not found or found[-1].result % together:
        together = 1
    named = {f"result{k}": axis.result for k, axis in enumerate(found) if k}
    if len(found) > 1:
        named[f"result{len(found) - 1}"] //= together
    named |= {f"{name}{k}": value for k, axis in enumerate(found) for name, value in axis.numbers.items()}
    named["total"] = math.prod(axis.result for axis in found) // together
    numbers, values = numbers_of(named)
    fills = filler.values(moving) if filler is not None else ()
    several = filler is not None and filler.several
    kernel = _kernel(moving, kinds, numbers, several, together)
    kernel(buffer, *x.arguments, *target.arguments, *fills, *values, graph=graph)


@memoize
def _kernel(
    moving: Moving, kinds: tuple[str, ...], numbers: Numbers, several: bool, together: int
) -> ShaderFunction:
    own = len(moving.arguments)
    arguments = moving.arguments
    if together > 1:
        arguments[0] = ("result", buffer[dtype.uint32])
    padded = [k for k, kind in enumerate(kinds) if kind == "constant"]
    names = [f"fill_{k}_{end}" for k in padded for end in ("before", "after")] if several else ["fill"]
    fills = [(name, constant[fill_type(moving)]) for name in names] if padded else []

    def body(*variables: Any) -> None:
        number = numbers.read(variables[own + len(fills) :])
        index = vc.global_invocation_id().x
        rest: Any = index
        parts: list[Any] = []
        for k in range(len(kinds) - 1, 0, -1):
            parts.insert(0, (rest % number[f"result{k}"]).to_register())
            rest = (rest // number[f"result{k}"]).to_register()
        parts.insert(0, rest)
        if together == 1:
            moving.store(variables[:own], index, found(variables, number, parts, index))
            return
        *rows, last = parts
        word: Any = None
        for k in range(together):
            value = found(variables, number, [*rows, last * together + k], index) << (32 // together * k)
            word = value if word is None else word | value
        variables[0][index] = word

    def found(variables: Any, number: dict[str, Any], parts: list[Any], index: Any) -> Any:
        """Return the element for a position in the result."""
        place: Any = 0
        outside: list[tuple[Any, Any]] = []
        for k, (kind, part) in enumerate(zip(kinds, parts, strict=False)):
            source = _source_of(kind, part, k, number, outside)
            place = source if k == 0 else place * number[f"x{k}"] + source
        place = place.to_register() if kinds else index
        filling = variables[own : own + len(fills)]
        if not filling:
            return moving.load(variables[:own], place)
        within = vc.all(*(each for before, after in outside for each in (~before, ~after)))
        value = moving.load(variables[:own], vc.select(within, place, 0).to_register())
        value = value.to_register()
        if not several:
            return vc.select(within, value, _filling(moving, filling[0])).to_register()
        # what was padded last covers the corners
        for (before, after), low, high in zip(outside, filling[::2], filling[1::2], strict=True):
            value = vc.select(before, _filling(moving, low), value)
            value = vc.select(after, _filling(moving, high), value)
        return value.to_register()

    return trace_kernel(
        f"move_{'_'.join(kinds)}_{moving.label}",
        body,
        [*arguments, *fills, *numbers.arguments],
        GROUP,
        exec_size=numbers.text("total"),
    )


def fill_type(moving: Moving) -> DType:
    """Return the dtype as which a kernel is given what it fills with."""
    return dtype.uint32 if moving.held is dtype.bool_ else moving.held


def _filling(moving: Moving, value: Any) -> Any:
    return value != 0 if moving.held is dtype.bool_ else value


def _source_of(kind: str, part: Any, k: int, number: dict[str, Any], outside: list[tuple[Any, Any]]) -> Any:
    """Return where a position along axis `k` of the result comes from."""
    length = number[f"x{k}"]
    at: Any = number.get(f"at{k}")
    match kind:
        case "same":
            return part
        case "roll":
            return vc.select(part < at, part + (length - at), part - at)
        case "flip":
            return (length - 1) - part
        case "tile":
            return part % length
        case "repeat":
            return part // at
        case "constant":
            outside.append((part < at, part >= at + length))
            return part - at
        case "edge":
            return vc.min(vc.select(part < at, 0, part - at), length - 1)
        case "wrap":
            return (part + at) % length
        case "wrap_near":
            inside = vc.select(part < at, part + (length - at), part - at)
            return vc.select(inside < length, inside, inside - length)
        case "reflect_near":
            inside = vc.select(part < at, at - part, part - at)
            return vc.select(inside < length, inside, (2 * length - 2) - inside)
        case "symmetric_near":
            inside = vc.select(part < at, (at - 1) - part, part - at)
            return vc.select(inside < length, inside, (2 * length - 1) - inside)
    period = number[f"period{k}"]
    folded = ((part + at) % period).to_register()
    other = period - folded if kind == "reflect" else (period - 1) - folded
    return vc.select(folded < length, folded, other)
