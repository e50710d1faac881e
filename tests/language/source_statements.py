"""Random statements of kernels as Python source: assignments, branches, loops, jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .source_model import RANGES
from .source_tree import Block, Clause, Line, Parts, Statement, Value
from .source_values import BOOL, FLOAT, INT, NATURAL, SMALL, Values, number

Rule = Callable[[int], Statement | None]


class Statements(Values):
    """Draws statements. Subclasses have more, by features."""

    # -- statements

    def block(self, depth: int, count: int | None = None) -> list[Statement]:
        with self.nested():
            return [self.statement(depth) for _ in range(count or self.random.randint(1, 3))]

    def statement(self, depth: int) -> Statement:
        """Draw a statement, with others inside down to a depth."""
        choices = self.rules(depth)
        for _ in range(20):
            (rule,) = self.random.choices([rule for _, rule in choices], [weight for weight, _ in choices])
            drawn = rule(depth)
            if drawn is not None:
                return drawn
        return Line([["pass"]])

    def rules(self, depth: int) -> list[tuple[float, Rule]]:
        """Statements that may stand here, and how likely they are."""
        rules: list[tuple[float, Rule]]
        rules = [(4, self._assign), (2, self._declare), (2, self._update), (1, self._tuple)]
        if self.in_kernel:
            rules.append((4, self._store))
        if depth > 0:
            rules += [
                (3, self._if),
                (1, self._while),
                (1.5, self._for),
                (0.7, self._match),
                (1, self._definite),
            ]
        if self.loops and depth < 3 and not self.uniform:
            rules.append((2, self._jump))
        may_return = self.result is not None or (self.in_kernel and not self.barriers)
        if may_return and not self.uniform:
            rules.append((0.7, self._return))
        return rules

    def _assign(self, depth: int) -> Statement:
        if not self.scope.assignable:
            return self._declare(depth)
        target = self.random.choice(self.scope.assignable)
        return Line([[str(target), " = ", self.value_for(target)]])

    def _declare(self, depth: int) -> Statement:
        contract = self.random.choice(self.contracts())
        value = self.value_for(contract)
        return Line([[str(self.declared(contract)), " = ", value]])

    def _update(self, depth: int) -> Statement | None:
        targets = [each for each in self.scope.assignable if each.types in (INT, NATURAL)]
        if not targets:
            return None
        target = self.random.choice(targets)
        op = self.pick("+", "*", "-")
        value = self.coerced(self.integer(1), Value((), NATURAL if target.types == NATURAL else INT, 0, 1000))
        if op == "-" and target.low == 0:
            op = "+"
        return Line([[f"{target} {op}= ", value], [f"{target} %= {int(target.high) + 1}"]])

    def _tuple(self, depth: int) -> Statement | None:
        if len(self.scope.assignable) < 2:
            return None
        one, other = self.random.sample(self.scope.assignable, 2)
        if one.fits(other) and other.fits(one) and self.chance(0.5):
            return Line([[f"{one}, {other} = {other}, {one}"]])
        return Line([[f"{one}, {other} = ", self.value_for(one, 1), ", ", self.value_for(other, 1)]])

    def stored(self, name: str, value: Value) -> Value:
        """Make a value what a store to a buffer takes."""
        kind, element = self.kind(name), self.elements[name]
        if kind in ("i8", "u8"):
            types, low = (INT, -SMALL) if kind == "i8" else (NATURAL, 0)
            value = self.coerced(value, Value((), types, low, SMALL))
            convert = "vc.to_int(" if kind == "i8" else "vc.to_uint("
            return Value((convert, value, ")"), element.types, value.low, value.high)
        if kind == "i32":
            return self.coerced(value, Value((), INT, element.low, element.high))
        value = self.coerced(value, element)
        if kind in ("f32", "b8"):
            return value
        return value

    def any_value(self, name: str, depth: int = 2) -> Value:
        element = self.elements[name]
        return (
            self.float(depth)
            if element.types == FLOAT
            else self.condition(1)
            if element.types == BOOL
            else self.integer(depth)
        )

    def own(self) -> str:
        return self.random.choice([each for each in self.owned if self.is_scalar(each)])

    def _store(self, depth: int) -> Statement | None:
        name = self.own()
        kind = self.kind(name)
        if self.chance(0.3) and kind in ("i32", "f32", "i64", "u32", "i16"):
            place = self.slot()
            if kind == "f32":
                return Line(
                    [
                        [
                            f"{name}[",
                            place,
                            "] += ",
                            self.coerced(self.float(1), Value((), FLOAT, -64, 64, 2)),
                        ],
                        [f"{name}[", place, f"] = float(int({name}[", place, "]) % 64)"],
                    ]
                )
            element = self.elements[name]
            value = self.coerced(self.integer(1), Value((), INT if kind == "i32" else element.types, 0, 700))
            return (
                Line(
                    [
                        [f"{name}[", place, "] += ", value],
                        [f"{name}[", place, f"] %= {int(element.high) + 1 if kind != 'i16' else 1009}"],
                    ]
                )
                if element.high + 700 <= RANGES[kind][1]
                else None
            )
        return Line([[f"{name}[", self.slot(), "] = ", self.stored(name, self.any_value(name))]])

    @contextmanager
    def divergent(self, *, loop: bool = False) -> Iterator[None]:
        uniform, loops = self.uniform, self.loops
        self.uniform = False
        self.loops += loop
        yield
        self.uniform, self.loops = uniform, loops

    def _if(self, depth: int) -> Statement:
        clauses = []
        with self.divergent():
            clauses.append(Clause(["if ", self.condition(), ":"], self.block(depth - 1)))
            while self.chance(0.25):
                clauses.append(Clause(["elif ", self.condition(1), ":"], self.block(depth - 1)))
            if self.chance(0.5):
                clauses.append(Clause(["else:"], self.block(depth - 1)))
        return Block(clauses)

    def _while(self, depth: int) -> Statement:
        fuel = self.fresh("n")
        bound: str | Value = self.pick(
            str(self.random.randint(1, 4)), self.signed(self.remainder(self.integer(1), 5))
        )
        head: Parts = [f"while {fuel} < ", bound, ":"]
        if self.chance(0.5):
            head = [f"while {fuel} < ", bound, " and ", self.condition(1), ":"]
        with self.divergent(loop=True):
            body: list[Statement] = [Line([[f"{fuel} += 1"]], fixed=True), *self.block(depth - 1)]
        clauses = [Clause(head, body)]
        if self.chance(0.2):
            with self.divergent():
                clauses.append(Clause(["else:"], self.block(depth - 1)))
        return Block(clauses, before=[[f"{fuel} = 0"]])

    def _for(self, depth: int) -> Statement:
        name = self.fresh("n")
        start, step = self.random.randint(0, 3), self.random.randint(1, 2)
        bound = self.signed(self.remainder(self.integer(1), 5))
        items: Parts = self.pick(
            [f"range({self.random.randint(0, 4)})"],
            [f"vc.range({self.random.randint(0, 4)})"],
            ["range(", bound, ")"],
            [f"range({start}, ", bound, f", {step})"],
            ["range(", bound, f", -1, -{step})"],
            ["(", self.leaf_number(), ", 2, ", self.leaf_number(), ")"],
        )
        with self.nested(), self.divergent(loop=True):
            self.declared(Value((), NATURAL, 0, 12), assignable=False)
            renamed = self.scope.known.pop()
            counter = Value((name,), renamed.types, 0, 12)
            self.scope.known.append(counter)
            body = self.block(depth - 1)
        clauses = [Clause([f"for {name} in ", *items, ":"], body)]
        if self.chance(0.2):
            with self.divergent():
                clauses.append(Clause(["else:"], self.block(depth - 1)))
        return Block(clauses)

    def leaf_number(self) -> Value:
        return number(self.random.randint(0, 12))

    def _match(self, depth: int) -> Statement:
        numbers = self.random.sample(range(5), 4)
        with self.divergent():
            heads = [f"case {numbers[0]} | {numbers[1]}:", f"case {numbers[2]}:", "case _:"]
            heads = heads[: self.random.randint(1, 3)]
            rows: list[Statement] = [Block([Clause([head], self.block(depth - 1))]) for head in heads]
        return Block([Clause(["match ", self.signed(self.remainder(self.integer(1), 5)), ":"], rows)])

    def _jump(self, depth: int) -> Statement:
        with self.divergent():
            body = [*self.block(0, 1)] if self.chance(0.4) else []
        return Block(
            [Clause(["if ", self.condition(1), ":"], [*body, Line([[self.pick("break", "continue")]])])]
        )

    def _return(self, depth: int) -> Statement:
        line: Parts = ["return"] if self.result is None else ["return ", self.value_for(self.result, 1)]
        return Block([Clause(["if ", self.condition(1), ":"], [Line([line])])])

    def _definite(self, depth: int) -> Statement:
        """A name that gets its value on every way through an if, unless a jump leaves that way."""
        contract = Value((), INT, -SMALL, SMALL)
        name = self.fresh("h")
        clauses = []
        with self.divergent():
            heads: list[Parts] = [["if ", self.condition(1), ":"]]
            if self.chance(0.4):
                heads.append(["elif ", self.condition(1), ":"])
            heads.append(["else:"])
            for head in heads:
                body = self.block(depth - 1, 1) if self.chance(0.5) else []
                if self.loops and self.chance(0.3):
                    same = self.leaf()
                    test = self.pick("1 < 2", f"{same} == {same}", "True", str(self.condition(0)))
                    body.append(Block([Clause([f"if {test}:"], [Line([[self.pick("break", "continue")]])])]))
                body.append(Line([[f"{name} = ", self.value_for(contract, 1)]]))
                clauses.append(Clause(head, body))
        known = Value((name,), contract.types, contract.low, contract.high)
        self.scope.known.append(known)
        self.scope.assignable.append(known)
        return Block(clauses)
