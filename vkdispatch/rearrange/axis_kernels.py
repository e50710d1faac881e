"""Kernels that find the source of each element axis by axis: roll, pad, flip, tile, repeat.

    result[i, j, k] = x[f(i), g(j), h(k)]

Each of f, g and h is one of a few kinds (see `Axis`). Axes are joined before a kernel is made: an unchanged
axis is joined with its neighbour, also with one that is rolled or padded with a constant, because whole rows
can be rolled and padded. The last axis first has bytes, and then the largest words that no kind splits: a
roll along the first axis of three moves 16 bytes at a time, whatever the dtype.
"""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import Operand, Output
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import word_type
from vkdispatch.rearrange.fillers import Filler
from vkdispatch.rearrange.moves import (
    Move,
    Numbers,
    find_largest_word,
    is_moved_as_words,
    pack_numbers,
    split_index,
)
from vkdispatch.shader.shader_function import ShaderFunction

GROUP = 256
# Kinds that can move whole rows.
_BY_ROWS = ("same", "roll", "constant", "wrap", "tile")


@record
class Axis:
    """How positions along an axis of the result depend on those of the array.

    Attributes
    ----------
    kind
        "same"; "roll" (by `at`); "flip"; "tile"; "repeat" (`at` times each); or the mode of padding with `at`
        elements before: "constant", "edge", "reflect", "symmetric", "wrap".
    result, x
        Lengths in the result and in the array.
    at
        See `kind`.
    """

    kind: str
    result: int
    x: int
    at: int = 0

    def scale(self, factor: int) -> "Axis":
        """Return the axis in elements, if it counts rows of `factor` elements."""
        return Axis(self.kind, self.result * factor, self.x * factor, self.at * factor)

    @property
    def is_trivial(self) -> bool:
        """Whether the axis has one element, and keeps it."""
        return self.result == self.x == 1

    @property
    def near(self) -> "Axis":
        """The axis with a kind that needs no remainder, if no padding is longer than the array."""
        most = self.x - (self.kind == "reflect")
        if (
            self.kind not in ("reflect", "symmetric", "wrap")
            or max(self.at, self.result - self.x - self.at) > most
        ):
            return self
        return Axis(f"{self.kind}_near", self.result, self.x, self.at)

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers that a kernel needs besides the length in the result."""
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


def join_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Join axes that can move whole rows with an unchanged axis behind them."""
    found: list[Axis] = []
    for axis in reversed(axes):
        if axis.is_trivial and found:
            continue
        if axis.kind == "reflect" and axis.x == 1:
            axis = Axis("edge", axis.result, axis.x, axis.at)
        if found and found[0].kind == "same" and axis.kind in _BY_ROWS:
            rows = found.pop(0)
            axis = axis.scale(rows.result)
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
    """Queue the launch that finds elements axis by axis; `filler` pads the axes of the kind "constant"."""
    move = Move(None, x.source, target.sink)
    item = x.var_type.item_size
    values: tuple[Any, ...]
    if is_moved_as_words(x, target):
        found = join_axes([*axes, Axis("same", item, item)])
        last = found[-1]
        size = find_largest_word(last.result, last.x, last.at)
        move = Move(word_type(size))
        last = Axis(last.kind, last.result // size, last.x // size, last.at // size)
        found = [*found[:-1], last]
    else:
        found = join_axes(axes)
    if found and found[-1].is_trivial:
        del found[-1]
    found = [axis.near for axis in found]
    kinds = tuple(axis.kind for axis in found)
    # smaller words of a row are stored 4 bytes at once
    together = 4 // move.word.item_size if move.word is not None and move.word.item_size < 4 else 1
    if not found or found[-1].result % together:
        together = 1
    named = {f"result{k}": axis.result for k, axis in enumerate(found) if k}
    if len(found) > 1:
        named[f"result{len(found) - 1}"] //= together
    named |= {f"{name}{k}": value for k, axis in enumerate(found) for name, value in axis.numbers.items()}
    named["total"] = math.prod(axis.result for axis in found) // together
    numbers, values = pack_numbers(named)
    fills = filler.values(move) if filler is not None else ()
    several = filler is not None and filler.is_several
    kernel = _make_kernel(move, kinds, numbers, several, together)
    kernel(buffer, *x.arguments, *target.arguments, *fills, *values, graph=graph)


@memoize
def _make_kernel(
    move: Move, kinds: tuple[str, ...], numbers: Numbers, several: bool, together: int
) -> ShaderFunction:
    own = len(move.arguments)
    arguments = move.arguments
    if together > 1:
        arguments[0] = ("result", buffer[dtype.uint32])
    padded = [k for k, kind in enumerate(kinds) if kind == "constant"]
    names = [f"fill_{k}_{end}" for k in padded for end in ("before", "after")] if several else ["fill"]
    fills = [(name, constant[fill_type(move)]) for name in names] if padded else []

    def body(*variables: Any) -> None:
        number = numbers.read(variables[own + len(fills) :])
        index = vc.global_invocation_id().x
        parts = split_index(index, [number[f"result{k}"] for k in range(1, len(kinds))])
        if together == 1:
            move.store(variables[:own], index, found(variables, number, parts, index))
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
            source = _find_source(kind, part, k, number, outside)
            place = source if k == 0 else place * number[f"x{k}"] + source
        place = place.to_register() if kinds else index
        filling = variables[own : own + len(fills)]
        if not filling:
            return move.load(variables[:own], place)
        within = vc.all(*(each for before, after in outside for each in (~before, ~after)))
        value = move.load(variables[:own], vc.select(within, place, 0).to_register())
        value = value.to_register()
        if not several:
            return vc.select(within, value, _load_fill(move, filling[0])).to_register()
        # the last padded axis fills the corners
        for (before, after), low, high in zip(outside, filling[::2], filling[1::2], strict=True):
            value = vc.select(before, _load_fill(move, low), value)
            value = vc.select(after, _load_fill(move, high), value)
        return value.to_register()

    return trace_kernel(
        f"move_{'_'.join(kinds)}_{move.label}",
        body,
        [*arguments, *fills, *numbers.arguments],
        GROUP,
        exec_size=numbers.text("total"),
    )


def fill_type(move: Move) -> DType:
    """Return the dtype of the numbers that fill, as arguments of kernels."""
    return dtype.uint32 if move.register_type is dtype.bool_ else move.register_type


def _load_fill(move: Move, value: Any) -> Any:
    return value != 0 if move.register_type is dtype.bool_ else value


def _find_source(kind: str, part: Any, k: int, number: dict[str, Any], outside: list[tuple[Any, Any]]) -> Any:
    """Return the position in the array for a position along axis `k` of the result."""
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
