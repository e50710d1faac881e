"""Statements on structures, arrays in them and local arrays of them."""

from __future__ import annotations

from .source_features import Features
from .source_statements import Rule
from .source_tree import Line, Parts, Statement, Value
from .source_values import INT, SMALL

TEXT = """from dataclasses import dataclass
@dataclass
class Inner:
    n: vd.int32
    list: vd.int32[3]
@dataclass
class Item:
    n: vd.int32
    pair: vd.ivec2
    grid: vd.int32[2, 3]
    inner: Inner
    more: vd.fixed_array(Inner, 2)
def bump(box, value):
    box.n = value
    box.inner.list[1] = value
    return box.n + box.more[1].n"""
# Places of integers: numbers stand for indices below them.
_PLACES = (
    "boxes[3].n", "boxes[3].pair.x", "boxes[3].pair.y", "boxes[3].grid[2, 3]", "boxes[3].grid[2][3]",
    "boxes[3].inner.n", "boxes[3].inner.list[3]", "boxes[3].more[2].list[3]", "boxes[3].more[2].n",
    "cells[2, 3]", "cells[2][3]",
)  # fmt: skip


class Structures(Features):
    """Draws statements on `boxes`, an array of structures, and `cells`, an array of two axes."""

    def rules(self, depth: int) -> list[tuple[float, Rule]]:
        """Statements that may stand here, and how likely they are."""
        rules = super().rules(depth)
        return [*rules, (8, self._structure)] if self.has("structures") and self.in_kernel else rules

    def declare_structures(self) -> Line:
        """Return the declaration of the arrays."""
        rows: list[Parts] = [
            ["boxes = vc.local_array(Item, 3)"],
            ["cells = vc.local_array(vc.i32, (2, 3), 'cells')"],
        ]
        return Line(rows, fixed=True)

    def store_structures(self, slots: int) -> list[Statement]:
        """Store what the arrays hold at the end."""
        found: list[Statement] = []
        for pattern in _PLACES:
            slot = f"p[i * {slots} + {self.random.randrange(slots)}]"
            found.append(Line([[f"{slot} = ({slot} * 3 + ", *self._place(pattern), f") % {SMALL}"]]))
        return found

    def _place(self, pattern: str | None = None) -> Parts:
        """Return a place, with drawn indices."""
        parts: Parts = []
        text = ""
        for letter in pattern or self.pick(*_PLACES):
            if letter.isdigit():
                parts += [text, self._at(int(letter))]
                text = ""
            else:
                text += letter
        return [*parts, text]

    def _at(self, count: int) -> Value:
        if self.chance(0.3):
            place = self.random.randrange(count)
            return Value((str(place),), INT, 0, count - 1)
        return self.remainder(self.signed(self.reduced(self.integer(1))), count)

    def _number(self) -> Value:
        return self.coerced(self.integer(1), Value((), INT, -SMALL, SMALL))

    def _structure(self, depth: int) -> Statement:
        box: Parts = ["boxes[", self._at(3), "]"]
        other: Parts = ["boxes[", self._at(3), "]"]
        form = self.random.randrange(14)
        if form <= 2:
            return Line([[*self._place(), " = ", self._number()]])
        if form == 3:
            place = self._place()
            return Line([[*place, " += ", self._number()], [*place, f" %= {SMALL + 1}"]])
        if form == 4:
            return Line([[*box, " = ", *other]])
        if form == 5:
            return Line([[*box, ", ", *other, " = ", *other, ", ", *box]])
        if form == 6:
            name = self.fresh("s")
            rows: list[Parts] = [
                [f"{name} = ", *box],
                [f"{name}.n = ", self._number()],
                [f"{name}.inner.list[", self._at(3), "] = ", self._number()],
                [f"{name}.grid[", self._at(2), ", ", self._at(3), "] = ", self._number()],
                [*other, f" = {name}"],
            ]
            read: Parts = [f"{name}.more[", self._at(2), "].n"]
            return Line([*rows, [f"{self._target()} = ", *read]])
        if form == 7:
            one: Parts = [*box, ".inner"]
            two: Parts = [*other, ".more[", self._at(2), "]"]
            return Line([[*one, " = ", *two] if self.chance(0.5) else [*two, " = ", *one]])
        if form == 8:
            numbers: Parts = ["[", self._number(), ", ", self._number(), ", ", self._number(), "]"]
            if self.chance(0.5):
                return Line([[*box, ".inner.list = ", *numbers]])
            return Line([[*box, ".inner = Inner(", self._number(), ", ", *numbers, ")"]])
        if form == 9:
            row: Parts = ["cells[", self._at(2), "]"]
            part: Parts = [*box, ".grid[", self._at(2), "]"]
            return Line([[*row, "[:] = ", *part] if self.chance(0.5) else [*part, " = ", *row]])
        if form == 10:
            call: Parts = ["bump(", *box, ", ", self._number(), f") % {SMALL}"]
            return Line([[f"{self._target()} = ", *call]])
        if form == 11:
            name = self.fresh("s")
            rows = [
                [f"{name} = cells[", self._at(2), "]"],
                [f"{name}[", self._at(3), "] = ", self._number()],
                [f"{name}[", self._at(3), "] += 1"],
                [f"{name}[:] = [{name}[2], {name}[0], {name}[1] % {SMALL}]"],
                *([f"{name}[{place}] %= {SMALL + 1}"] for place in range(3)),
            ]
            return Line(rows)
        if form == 12:
            name = self.fresh("n")
            items = self.pick("range(3)", "vc.range(3)", "vc.range(1, 3)")
            step: Parts = [f"    boxes[{name}].n = boxes[(2 * {name}) % 3].n + cells[{name} % 2, {name}] % 7"]
            return Line([[f"for {name} in {items}:"], step, [f"    boxes[{name}].n %= {SMALL + 1}"]])
        place = self._place()
        return Line([[f"{self._target()} = ", *place]])

    def _target(self) -> Value:
        return self.declared(Value((), frozenset({"i32"}), -2 * SMALL, 2 * SMALL), assignable=False)
