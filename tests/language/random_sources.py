"""Random kernels as Python source, whose truth is Python itself.

Every name and buffer has a fixed range, so that no integer leaves the type that the device gives it: then a
kernel means the same with Python's integers. Every invocation writes elements of its own only, but for atomics
whose order does not show and for shared memory between barriers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from .edge_sources import write_edge
from .source_model import RANGES
from .source_tree import Block, Buffer, Clause, Line, Parts, Program, Statement, Value

FEATURES = (
    "base", "reads", "alias", "functions", "conversions", "narrow", "wide", "floats", "vectors", "shared",
    "subgroups", "atomics", "edges", "partial", "loops",
)  # fmt: skip

_RANK = ["u16", "i16", "u32", "i32", "u64", "i64"]
_INT = frozenset({"py", "i32"})
_NATURAL = frozenset({"py", "i32", "u32"})
_FLOAT = frozenset({"f32"})
_BOOL = frozenset({"b8"})
_UNSIGNED = frozenset({"u16", "u32", "u64"})
_SMALL = 1008
_SLOTS = 4
_FLOAT_BOUND = 64.0


def number(value: int) -> Value:
    return Value((str(value) if value >= 0 else f"({value})",), frozenset({"py"}), value, value)


def real(value: float) -> Value:
    places = next(n for n in range(30) if value * 2**n == int(value * 2**n))
    return Value((repr(value) if value >= 0 else f"({value!r})",), _FLOAT, value, value, places)


def truth(*parts: str | Value) -> Value:
    return Value(parts, _BOOL, 0, 1)


def _meet(a: str, b: str) -> str:
    if "py" in (a, b):
        return b if a == "py" else a
    return max(a, b, key=_RANK.index)


def _holds(kind: str, low: float, high: float) -> bool:
    least, most = RANGES["i32" if kind == "py" else kind]
    return least <= low and high <= most


class Scope:
    """What a function knows: names to read, names to assign, the function that it is."""

    def __init__(self) -> None:
        self.known: list[Value] = []
        self.assignable: list[Value] = []
        self.vectors: list[tuple[Value, str]] = []
        self.functions: list[tuple[str, list[Value], Value]] = []


class Writer:
    """Writes one program."""

    def __init__(self, seed: int, features: tuple[str, ...]) -> None:
        self.random = Random(f"{seed} {' '.join(features)}")
        self.seed, self.features = seed, features
        self.scope = Scope()
        self.counter = itertools.count()
        self.buffers: list[Buffer] = []
        self.parameters: list[tuple[str, int]] = []
        self.elements: dict[str, Value] = {}
        self.owned: list[str] = []
        self.read_only: list[str] = []
        self.counters: list[tuple[str, str, int]] = []
        self.functions: list[Statement] = []
        self.loops = 0
        self.result: Value | None = None
        self.in_kernel = True
        self.uniform = True
        self.calls = 3
        self.barriers = self.has("shared") or (self.has("partial") and self.chance(0.5))

    # -- chances and names

    def has(self, feature: str) -> bool:
        return feature in self.features

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, *values: Any) -> Any:
        return self.random.choice(values)

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self.counter)}"

    # -- values: integers

    def integers(self) -> list[Value]:
        return [each for each in self.scope.known if not each.types & (_FLOAT | _BOOL)]

    def integer(self, depth: int = 2) -> Value:
        """Draw an integer value."""
        if depth <= 0 or self.chance(0.15):
            return self.leaf()
        a = self.integer(depth - 1)
        family = self.random.randrange(13)
        if family < 5:
            return self.binary(
                self.pick("+", "-", "*", "+", "-", "*", "&", "|", "^"), a, self.integer(depth - 1)
            )
        if family == 5:
            return self.quotient(a)
        if family == 6:
            return self.remainder(a, self.pick(2, 3, 7, 16, 100, 1009))
        if family == 7:
            return self.choice(a, self.integer(depth - 1))
        if family == 8:
            return self.extreme(a, self.integer(depth - 1))
        if family == 9:
            return self.unary(a)
        if family == 10:
            return self.call(depth) or a
        if family == 11:
            return self.element() or a
        return self.shift(a)

    def leaf(self) -> Value:
        if self.chance(0.25):
            return number(self.pick(0, 1, 2, 3, 5, 7, 11, 12))
        return self.random.choice(self.integers())

    def joined(self, a: Value, b: Value, low: float, high: float) -> frozenset[str] | None:
        """Types of an operation, or None if a number does not fit in one of them."""
        types = set()
        for one, other in itertools.product(a.types, b.types):
            kind = _meet(one, other)
            fits = _holds(kind, a.low, a.high) and _holds(kind, b.low, b.high) and _holds(kind, low, high)
            if not fits:
                return None
            types.add(kind)
        return frozenset(types)

    def binary(self, op: str, a: Value, b: Value) -> Value:
        for one, other in (
            (a, b),
            (self.reduced(a), b),
            (a, self.reduced(b)),
            (self.reduced(a), self.reduced(b)),
        ):
            found = self._binary(op, one, other)
            if found is not None:
                return found
        one, other = self.signed(self.reduced(a)), self.signed(self.reduced(b))
        return self._binary(op, one, other) or self._binary("+", one, other) or one

    def _binary(self, op: str, a: Value, b: Value) -> Value | None:
        if op in "&|^":
            if a.low < 0 or b.low < 0:
                return None
            bits = max(int(a.high), int(b.high)).bit_length()
            low, high = 0.0, float(min(a.high, b.high)) if op == "&" else (1 << bits) - 1
        else:
            ends = [
                {"+": x + y, "-": x - y, "*": x * y}[op] for x in (a.low, a.high) for y in (b.low, b.high)
            ]
            if op == "-":
                ends = [a.low - b.high, a.high - b.low]
            low, high = min(ends), max(ends)
        types = self.joined(a, b, low, high)
        return None if types is None else Value(("(", a, f" {op} ", b, ")"), types, low, high)

    def signed(self, value: Value) -> Value:
        """An int32 of a small value."""
        if value.types <= _INT:
            return value
        wide = value.types & {"i64", "u64"}
        return self.converted("vc.to_int(" if wide else self.pick("int(", "vc.to_int("), value, _INT)

    def converted(self, function: str, value: Value, types: frozenset[str]) -> Value:
        """Convert a value. A bare name only where that is tested, since it may change nothing."""
        inner: tuple[str | Value, ...] = (value,)
        if len(value.parts) == 1 and not self.has("conversions"):
            inner = ("abs(", value, ")") if value.low >= 0 else ("~~", value)
        return Value((function, *inner, ")"), types, value.low, value.high)

    def reduced(self, value: Value) -> Value:
        return self.remainder(value, self.pick(7, 64, 100))

    def remainder(self, value: Value, divisor: int) -> Value:
        types = frozenset(each for each in value.types)
        return Value(("(", value, f" % {divisor})"), types, 0, divisor - 1)

    def quotient(self, value: Value) -> Value:
        signed = not value.types & _UNSIGNED
        divisor = self.pick(1, 2, 3, 7, 8, 100) * (-1 if signed and self.chance(0.2) else 1)
        if self.chance(0.2):
            other = self.reduced(self.leaf())
            by = Value(("(", other, " + 1)"), other.types, 1, other.high + 1)
            types = self.joined(value, by, value.low, value.high)
            if types is not None:
                low, high = min(value.low, 0), max(value.high, 0)
                return Value(("(", value, " // ", by, ")"), types, low, high)
        ends = [value.low // divisor, value.high // divisor]
        if not all(_holds(kind, min(ends), max(ends)) for kind in value.types):
            return value
        return Value(
            ("(", value, f" // {divisor if divisor > 0 else f'({divisor})'})"),
            value.types,
            min(ends),
            max(ends),
        )

    def choice(self, a: Value, b: Value) -> Value:
        types = self.joined(a, b, min(a.low, b.low), max(a.high, b.high))
        if types is None:
            return a
        # Python may know the condition, and then the type is that of one
        types = types | a.types | b.types
        return Value(
            ("(", a, " if ", self.condition(1), " else ", b, ")"),
            types,
            min(a.low, b.low),
            max(a.high, b.high),
        )

    def extreme(self, a: Value, b: Value) -> Value:
        name = self.pick("min", "max")
        rule: Any = min if name == "min" else max
        low, high = rule(a.low, b.low), rule(a.high, b.high)
        types = self.joined(a, b, low, high)
        if types is None:
            return a
        return Value((f"{name}(", a, ", ", b, ")"), types, low, high)

    def unary(self, value: Value) -> Value:
        form = self.pick("-", "~", "abs")
        if form == "abs":
            low = 0 if value.low <= 0 <= value.high else min(abs(value.low), abs(value.high))
            high = max(abs(value.low), abs(value.high))
            if not all(_holds(kind, low, high) for kind in value.types):
                return value
            return Value(("abs(", value, ")"), value.types, low, high)
        if value.types & _UNSIGNED:
            value = self.signed(self.reduced(value))
        low, high = (-value.high, -value.low) if form == "-" else (-value.high - 1, -value.low - 1)
        if not all(_holds(kind, low, high) for kind in value.types):
            return value
        return Value((f"({form}", value, ")"), value.types, low, high)

    def shift(self, value: Value) -> Value:
        count = self.pick(0, 1, 2, 5)
        if self.chance(0.5):
            return Value(
                ("(", value, f" >> {count})"), value.types, int(value.low) >> count, int(value.high) >> count
            )
        if value.low < 0:
            value = self.reduced(value)
        if not all(_holds(kind, 0, int(value.high) << count) for kind in value.types):
            value = self.reduced(value)
        return Value(
            ("(", value, f" << {count})"), value.types, int(value.low) << count, int(value.high) << count
        )

    def call(self, depth: int) -> Value | None:
        """A call of a helper function."""
        if not self.scope.functions or self.calls <= 0:
            return None
        self.calls -= 1
        name, parameters, result = self.random.choice(self.scope.functions)
        parts: list[str | Value] = [f"{name}("]
        for place, parameter in enumerate(parameters):
            parts += [", " if place else "", self.coerced(self.integer(min(depth - 1, 1)), parameter)]
        return Value((*parts, ")"), result.types, result.low, result.high, result.fraction)

    def coerced(self, value: Value, target: Value) -> Value:
        """Make a value one that a name or element may hold."""
        if target.types == _FLOAT:
            return self.coerced_float(value, target)
        if target.types == _BOOL:
            return value
        if not value.types <= target.types:
            value = self._converted(value, target)
        if value.low < target.low or value.high > target.high:
            return self.remainder(
                value, int(min(target.high + 1, 30011 if value.types & {"i16", "u16"} else target.high + 1))
            )
        return value

    def _converted(self, value: Value, target: Value) -> Value:
        explicit = {
            "i16": "vc.to_int16(",
            "u16": "vc.to_uint16(",
            "u32": "vc.to_uint(",
            "i64": "vc.to_int64(",
            "u64": "vc.to_uint64(",
        }
        kind = "i32" if target.types >= _INT else next(iter(target.types))
        if not _holds(kind, value.low, value.high):
            value = self.remainder(value, 1009)
        if kind == "i32":
            return self.converted("vc.to_int(" if value.types & {"i64", "u64"} else "int(", value, _INT)
        return self.converted(explicit[kind], value, frozenset({kind}))

    # -- values: elements

    def slot(self) -> Value:
        """Index of an element of this invocation's own."""
        if self.chance(0.6):
            return Value((f"i * {_SLOTS} + {self.random.randrange(_SLOTS)}",), _NATURAL, 0, 1 << 20)
        value = self.integer(1)
        if value.types & {"i64", "u64", "i16", "u16"}:
            value = self.signed(self.reduced(value))
        return Value((f"i * {_SLOTS} + ", self.remainder(value, _SLOTS)), _NATURAL, 0, 1 << 20)

    def element(self) -> Value | None:
        """Read of an element: of a buffer that is read only, or of an own one."""
        names = [*self.read_only, *(self.owned if self.in_kernel else [])]
        names = [
            each
            for each in names
            if not self.elements[each].types & (_FLOAT | _BOOL) and self.is_scalar(each)
        ]
        return self.read(self.random.choice(names)) if names else None

    def is_scalar(self, name: str) -> bool:
        return "v" not in self.kind(name)

    def kind(self, name: str) -> str:
        return next(self.buffers[place].kind for each, place in self.parameters if each == name)

    def read(self, name: str) -> Value:
        element = self.elements[name]
        if name in self.read_only:
            size = len(self.buffers[next(place for each, place in self.parameters if each == name)].data)
            value = self.integer(1)
            if value.types & {"i64", "u64", "i16", "u16"}:
                value = self.signed(self.reduced(value))
            index = self.remainder(value, size)
        else:
            index = self.slot()
        return Value((f"{name}[", index, "]"), element.types, element.low, element.high, element.fraction)

    # -- values: floats and truth values

    def float(self, depth: int = 2) -> Value:
        known = [each for each in self.scope.known if each.types == _FLOAT]
        if depth <= 0 or self.chance(0.2):
            if known and self.chance(0.7):
                return self.random.choice(known)
            return real(self.pick(0.0, 1.0, 0.5, -2.25, 3.0, 7.75))
        a, b = self.float(depth - 1), self.float(depth - 1)
        family = self.random.randrange(9)
        if family < 4:
            return self.float_binary(self.pick("+", "-", "*"), a, b)
        if family == 4:
            whole = self.signed(self.reduced(self.integer(1)))
            return Value(("float(", whole, ")"), _FLOAT, whole.low, whole.high)
        if family == 5:
            return Value(
                ("(", a, " if ", self.condition(1), " else ", b, ")"),
                _FLOAT,
                min(a.low, b.low),
                max(a.high, b.high),
                max(a.fraction, b.fraction),
            )
        if family == 6:
            name: str = self.pick("min", "max")
            rule: Any = min if name == "min" else max
            return Value(
                (f"{name}(", a, ", ", b, ")"),
                _FLOAT,
                rule(a.low, b.low),
                rule(a.high, b.high),
                max(a.fraction, b.fraction),
            )
        if family == 7:
            form = self.pick("abs(", "(-")
            bound = max(abs(a.low), abs(a.high))
            return Value((form, a, ")"), _FLOAT, -bound, bound, a.fraction)
        names = [
            each
            for each in (*self.owned, *self.read_only)
            if self.elements[each].types == _FLOAT and self.is_scalar(each)
        ]
        return self.read(self.random.choice(names)) if names and self.in_kernel else a

    def float_binary(self, op: str, a: Value, b: Value) -> Value:
        ends = [{"+": x + y, "-": x - y, "*": x * y}[op] for x in (a.low, a.high) for y in (b.low, b.high)]
        fraction = a.fraction + b.fraction if op == "*" else max(a.fraction, b.fraction)
        bound = max(map(abs, ends))
        if bound * 2**fraction >= 2**23:
            return a
        return Value(("(", a, f" {op} ", b, ")"), _FLOAT, min(ends), max(ends), fraction)

    def coerced_float(self, value: Value, target: Value) -> Value:
        inside = target.low <= value.low and value.high <= target.high
        if inside and value.fraction <= target.fraction:
            return value
        whole = Value(("int(", value, ")"), _INT, int(value.low) - 1, int(value.high) + 1)
        small = self.remainder(whole, int(target.high))
        return Value(("float(", small, ")"), _FLOAT, 0, target.high - 1)

    def condition(self, depth: int = 2) -> Value:
        family = self.random.randrange(10)
        if depth > 0 and family < 3:
            op = self.pick("and", "or", "not")
            a = self.condition(depth - 1)
            return (
                truth("(not ", a, ")")
                if op == "not"
                else truth("(", a, f" {op} ", self.condition(depth - 1), ")")
            )
        flags = [each for each in self.scope.known if each.types == _BOOL]
        if family == 3 and flags:
            return self.random.choice(flags)
        if family == 4 and self.has("floats"):
            return truth(
                "(", self.float(1), f" {self.pick('<', '<=', '>', '>=', '==', '!=')} ", self.float(1), ")"
            )
        if family == 5:
            value = self.reduced(self.integer(1))
            return truth("(", value, " % 3 != 0)")
        a, b = self.integer(1), self.integer(1)
        ops = ["<", "<=", ">", ">=", "==", "!="]
        if (a.types | b.types) & {"i64", "u64"}:
            # Mesa 22.3 takes every int32 that became int64 for larger than a small constant
            ops = ["==", "!="]
        if self.joined(a, b, 0, 0) is None:
            a, b = self.signed(self.reduced(a)), self.signed(self.reduced(b))
        if family == 6 and depth > 0 and "==" not in ops[:1]:
            c = self.signed(self.reduced(self.integer(1)))
            a, b = self.signed(self.reduced(a)), self.signed(self.reduced(b))
            return truth("(", c, " <= ", a, f" {self.pick('<', '<=')} ", b, ")")
        return truth("(", a, f" {self.random.choice(ops)} ", b, ")")

    # -- names

    def contracts(self) -> list[Value]:
        found = [Value((), _INT, -_SMALL, _SMALL), Value((), _NATURAL, 0, _SMALL)]
        if self.has("wide"):
            found += [
                Value((), frozenset({"i64"}), -(2**40), 2**40),
                Value((), frozenset({"u64"}), 0, 2**63),
                Value((), frozenset({"u32"}), 0, 2**32 - 1),
            ]
        if self.has("narrow"):
            found += [Value((), frozenset({"i16"}), -30000, 30000), Value((), frozenset({"u16"}), 0, 60000)]
        if self.has("floats"):
            found += [Value((), _FLOAT, -_FLOAT_BOUND, _FLOAT_BOUND, 2)] * 2 + [Value((), _BOOL, 0, 1)]
        return found

    def value_for(self, target: Value, depth: int = 2) -> Value:
        if target.types == _FLOAT:
            return self.coerced(self.float(depth), target)
        if target.types == _BOOL:
            return self.condition(1)
        return self.coerced(self.integer(depth), target)

    def declared(self, contract: Value, prefix: str = "a", *, assignable: bool = True) -> Value:
        name = Value((self.fresh(prefix),), contract.types, contract.low, contract.high, contract.fraction)
        self.scope.known.append(name)
        if assignable:
            self.scope.assignable.append(name)
        return name

    @contextmanager
    def nested(self) -> Iterator[None]:
        """What a block declares ends with it."""
        scope = self.scope
        sizes = [len(each) for each in (scope.known, scope.assignable, scope.vectors, scope.functions)]
        yield
        for each, size in zip(
            (scope.known, scope.assignable, scope.vectors, scope.functions), sizes, strict=True
        ):
            del each[size:]

    # -- statements

    def block(self, depth: int, count: int | None = None) -> list[Statement]:
        with self.nested():
            return [self.statement(depth) for _ in range(count or self.random.randint(1, 3))]

    def statement(self, depth: int) -> Statement:
        choices: list[tuple[float, Callable[[int], Statement | None]]] = [
            (4, self._assign), (2, self._declare), (2, self._update), (1, self._tuple),
        ]  # fmt: skip
        if self.in_kernel:
            choices.append((4, self._store))
        if depth > 0:
            choices += [(3, self._if), (1, self._while), (1.5, self._for), (0.7, self._match)]
        if self.loops and depth < 3 and not self.uniform:
            choices.append((2, self._jump))
        may_return = self.result is not None or (self.in_kernel and not self.barriers)
        if may_return and not self.uniform:
            choices.append((0.7, self._return))
        for feature, weight, rule in (
            ("reads", 5, self._reads),
            ("vectors", 6, self._vectors),
            ("atomics", 4, self._atomic),
            ("subgroups", 4, self._subgroup),
            ("loops", 3, self._long_loop),
            ("functions", 3, self._nested_function),
        ):
            if self.has(feature) and (self.in_kernel or feature in ("functions",)):
                choices.append((weight, rule))
        if depth > 0:
            choices.append((1, self._definite))
        if self.has("loops"):
            choices += [(2, self._gathered), (1, self._endless)]
        if self.has("shared") and self.uniform and self.in_kernel:
            choices.append((6, self._exchange))
        for _ in range(20):
            (rule,) = self.random.choices([rule for _, rule in choices], [weight for weight, _ in choices])
            made = rule(depth)
            if made is not None:
                return made
        return Line([["pass"]])

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
        targets = [each for each in self.scope.assignable if each.types in (_INT, _NATURAL)]
        if not targets:
            return None
        target = self.random.choice(targets)
        op = self.pick("+", "*", "-")
        value = self.coerced(
            self.integer(1), Value((), _NATURAL if target.types == _NATURAL else _INT, 0, 1000)
        )
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
            value = self.coerced(
                value, Value((), _INT if kind == "i8" else _NATURAL, -_SMALL if kind == "i8" else 0, _SMALL)
            )
            return Value(
                ("int(" if kind == "i8" else "vc.to_uint(", value, ")"), element.types, value.low, value.high
            )
        if kind == "i32":
            return self.coerced(value, Value((), _INT, element.low, element.high))
        value = self.coerced(value, element)
        if kind in ("f32", "b8"):
            return value
        return value

    def any_value(self, name: str, depth: int = 2) -> Value:
        element = self.elements[name]
        return (
            self.float(depth)
            if element.types == _FLOAT
            else self.condition(1)
            if element.types == _BOOL
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
                            self.coerced(self.float(1), Value((), _FLOAT, -64, 64, 2)),
                        ],
                        [f"{name}[", place, f"] = float(int({name}[", place, "]) % 64)"],
                    ]
                )
            element = self.elements[name]
            value = self.coerced(self.integer(1), Value((), _INT if kind == "i32" else element.types, 0, 700))
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
            self.declared(Value((), _NATURAL, 0, 12), assignable=False)
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
            inside = [
                Clause([f"    case {numbers[0]} | {numbers[1]}:"], []),
                Clause([f"    case {numbers[2]}:"], []),
                Clause(["    case _:"], []),
            ][: self.random.randint(1, 3)]
            rows: list[Statement] = []
            for clause in inside:
                rows.append(Block([Clause([str(clause.head[0]).strip()], self.block(depth - 1))]))
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

    # -- features

    def _reads(self, depth: int) -> Statement | None:
        """A name bound to an element, which then changes."""
        name, other = self.own(), self.own()
        element = self.elements[name]
        form = self.random.randrange(10)
        if form in (0, 1, 2):
            read = self._own_read(name)
            return Line([[f"{self.declared(element, 'd')} = ", read]])
        if form == 3 and self.elements[other].fits(element):
            one, two = self.fresh("d"), self.fresh("d")
            read = self._own_read(other)
            for each in (one, two):
                value = Value((each,), element.types, element.low, element.high, element.fraction)
                self.scope.known.append(value)
                self.scope.assignable.append(value)
            return Line([[f"{one} = {two} = ", read]])
        if form == 4 and name and self.kind(name) not in ("i8", "u8"):
            a, b = self.slot(), self.slot()
            return Line([[f"{name}[", a, f"], {name}[", b, f"] = {name}[", b, f"], {name}[", a, "]"]])
        if form == 5:
            first = self._own_read(name)
            second = self._own_read(other)
            one = self.declared(element, "d")
            two = self.declared(self.elements[other], "d")
            return Line([[f"{one}, {two} = ", first, ", ", second]])
        if form == 6:
            pair, held = self.fresh("t"), None
            first, second = self._own_read(name), self.any_value(other, 1)
            place, value = self.slot(), self.stored(name, self.any_value(name, 1))
            held = self.declared(element, "d")
            kind = self.pick(("(", ")"), ("[", "]"))
            return Line(
                [
                    [f"{pair} = {kind[0]}", first, ", ", second, kind[1]],
                    [f"{name}[", place, "] = ", value],
                    [f"{held} = {pair}[0]"],
                ]
            )
        if form == 7:
            late = self.fresh("g")
            held_read = self._own_read(name)
            place, value = self.slot(), self.stored(name, self.any_value(name, 1))
            held = self.declared(element, "d")
            return Line(
                [
                    [f"{late} = lambda: ", held_read],
                    [f"{name}[", place, "] = ", value],
                    [f"{held} = {late}()"],
                ]
            )
        if form == 8 and element.types not in (_BOOL, _FLOAT) and self.kind(name) == "i32":
            # a helper that stores between two reads
            read, again = self._own_read(name), self._own_read(name)
            place, value = self.slot(), self.stored(name, self.any_value(name, 1))
            target = self.declared(Value((), _INT, -_SMALL, _SMALL))
            total = Value(
                (read, f" - poke({name}, ", place, ", ", value, ") + ", again), _INT, -4 * _SMALL, 4 * _SMALL
            )
            return Line([[f"{target} = ", Value(("(", total, f") % {_SMALL}"), _INT, 0, _SMALL)]])
        if form == 9 and element.types not in (_BOOL, _FLOAT) and self.kind(name) == "i32":
            step = self.coerced(self.integer(1), Value((), _INT, 0, 100))
            read = self._own_read(name)
            held = self.declared(Value((), element.types, element.low, element.high), "d")
            return Line([[f"{held} = ", read], [f"{held} += ", step], [f"{held} %= {int(element.high) + 1}"]])
        return None

    def _own_read(self, name: str) -> Value:
        element = self.elements[name]
        return Value(
            (f"{name}[", self.slot(), "]"), element.types, element.low, element.high, element.fraction
        )

    def _vectors(self, depth: int) -> Statement | None:
        names = [each for each in self.owned if not self.is_scalar(each)]
        name = self.random.choice(names)
        kind = self.kind(name)
        count = int(kind[-1])
        letters = "xyzw"[:count]
        known = [value for value, each in self.scope.vectors if each == kind]
        component = self.elements[name]
        form = self.random.randrange(9)
        if form <= 1 or not known:
            value = Value((self.fresh("v"),), frozenset({kind}), component.low, component.high)
            result: Parts = [f"{value} = ", Value((f"{name}[", self.slot(), "]"), frozenset({kind}))]
            if form == 1:
                made = ", ".join(str(self.component(component)) for _ in letters)
                result = [f"{value} = vc.to_{'ivec' if kind[0] == 'i' else 'vec'}{count}({made})"]
            self.scope.vectors.append((value, kind))
            return Line([result])
        vector = self.random.choice(known)
        letter = self.random.choice(letters)
        if form == 2:
            return (
                Line([[f"{vector}.{letter} = ", self.component(component)]])
                if self.uniform or self.chance(0.5)
                else None
            )
        if form == 3:
            return Line([[f"{name}[", self.slot(), f"].{letter} = ", self.component(component)]])
        if form == 4:
            other = Value((self.fresh("v"),), frozenset({kind}), component.low, component.high)
            self.scope.vectors.append((other, kind))
            return Line([[f"{other} = {vector}"]])
        if form == 5:
            return Line([[f"{name}[", self.slot(), f"] = {vector}"]])
        if form == 6:
            factor = self.random.randint(1, 5)
            other = self.random.choice(known)
            bound = int(component.high) + 1 if kind[0] == "i" else 0
            if not bound:
                return None
            return Line([[f"{name}[", self.slot(), f"] = ({vector} + {other} * {factor}) % {bound}"]])
        if form == 7:
            order = "".join(self.random.sample(letters, count))
            return Line([[f"{name}[", self.slot(), f"] = {vector}.{order}"]])
        if form == 8 and kind[0] == "i":
            changed = self.component(component)
            target = self.declared(Value((), _INT, component.low, component.high))
            return Line([[f"touch({vector}, ", changed, ")"], [f"{target} = {vector}.{letter}"]])
        return None

    def component(self, element: Value) -> Value:
        if element.types == _FLOAT:
            return self.coerced(self.float(1), element)
        return self.coerced(self.integer(1), Value((), _INT, element.low, element.high))

    def _atomic(self, depth: int) -> Statement | None:
        form = self.random.randrange(5)
        name, operation, size = self.random.choice(self.counters)
        kind = self.kind(name)
        index = self.remainder(self.signed(self.reduced(self.integer(1))), size)
        operand = self.coerced(
            self.integer(1), Value((), _INT if kind in ("i32", "i64") else _NATURAL, 0, 1000)
        )
        if form < 3:
            return Line([[f"vc.atomic_{operation}({name}[", index, "], ", operand, ")"]])
        owned = [each for each in self.owned if self.kind(each) in ("i32", "u32")]
        if not owned:
            return None
        own = self.random.choice(owned)
        element = self.elements[own]
        operand = self.coerced(operand, Value((), _NATURAL, 0, 500))
        # nobody else has this element: what was there before is known
        place, expected = self.slot(), self.coerced(self.integer(1), Value((), _INT, 0, 3))
        held = self.declared(
            Value((), frozenset({self.kind(own)}), element.low, element.high), "d", assignable=False
        )
        if form == 3:
            return Line(
                [
                    [
                        f"{held} = vc.atomic_{self.pick('min', 'max', 'exchange')}({own}[",
                        place,
                        "], ",
                        operand,
                        ")",
                    ]
                ]
            )
        return Line(
            [[f"{held} = vc.atomic_compare_exchange({own}[", place, "], ", expected, ", ", operand, ")"]]
        )

    def _subgroup(self, depth: int) -> Statement | None:
        """Something whose outcome does not depend on the size of subgroups."""
        form = self.random.randrange(6)
        value = self.coerced(self.integer(1), Value((), _INT, 0, 1000))
        whole = Value(("vc.to_int(", value, ")"), frozenset({"i32"}), 0, 1000)
        name, operation, size = self.random.choice(
            [each for each in self.counters if self.kind(each[0]) == "i32"]
        )
        part = self.fresh("s")
        if form <= 1:
            return Line(
                [
                    [f"{part} = vc.subgroup_{operation}(", whole, ")"],
                    ["if vc.subgroup_elect():"],
                    [f"    vc.atomic_{operation}({name}[{self.random.randrange(size)}], {part})"],
                ]
            )
        if form == 2:
            adds = [each for each in self.counters if each[1] == "add" and self.kind(each[0]) == "i32"]
            name, _, size = self.random.choice(adds)
            return Line(
                [
                    [f"{part} = vc.subgroup_ballot_bit_count(vc.subgroup_ballot(", self.condition(1), "))"],
                    ["if vc.subgroup_elect():"],
                    [f"    vc.atomic_add({name}[{self.random.randrange(size)}], {part})"],
                ]
            )
        if form == 3:
            target = self.declared(Value((), _INT, 0, 1000))
            other = self.fresh("s")
            return Line(
                [
                    [f"{other} = ", whole],
                    [f"{part} = vc.subgroup_exclusive_add({other})"],
                    [f"{target} = vc.subgroup_inclusive_add({other}) - {part}"],
                ]
            )
        if form == 4:
            with self.divergent():
                flag = self.fresh("s")
                return Block(
                    [Clause([f"if vc.subgroup_any({flag}) and {flag}:"], self.block(max(0, depth - 1)))],
                    before=[[f"{flag} = ", self.condition(1)]],
                )
        target = self.declared(Value((), _INT, 0, 1000))
        return Line([[f"{target} = vc.subgroup_shuffle(", whole, ", vc.subgroup_invocation_id())"]])

    def _long_loop(self, depth: int) -> Statement | None:
        targets = [each for each in self.scope.assignable if each.types in (_INT, _NATURAL)]
        if not targets or self.loops:
            return None
        target = self.random.choice(targets)
        name = self.fresh("n")
        count = self.pick(62, 63, 64, 65, 66, 100, 130)
        items = self.pick(
            f"range({count})",
            f"vc.range({count})",
            f"range(3, {count}, 2)",
            f"range({count}, 0, -1)",
            f"range({2 * count}, 3, -2)",
        )
        high = 300
        with self.nested(), self.divergent(loop=True):
            counter = Value((name,), _NATURAL, 0, high)
            self.scope.known.append(counter)
            calls, self.calls = self.calls, 0
            body: list[Statement] = [
                Line([[f"{target} = ", self.coerced(self.binary("+", target, self.integer(1)), target)]])
            ]
            if self.chance(0.5):
                body.append(self._jump(0) if self.chance(0.5) else self._assign(0))
            self.calls = calls
        clauses = [Clause([f"for {name} in {items}:"], body)]
        if self.chance(0.3):
            with self.divergent():
                clauses.append(Clause(["else:"], self.block(0, 1)))
        return Block(clauses)

    def _nested_function(self, depth: int) -> Statement | None:
        """Define a function inside, which may change names around it."""
        if len(self.scope.functions) > 4:
            return None
        name = self.fresh("inner")
        captured = [
            each for each in self.scope.assignable if each.types in (_INT, _NATURAL) and str(each)[0] != "u"
        ]
        parameter = Value((self.fresh("u"),), _INT, -_SMALL, _SMALL)
        result = Value((), _INT, -_SMALL, _SMALL)
        if self.chance(0.25):
            with self.nested():
                self.scope.known.append(parameter)
                value = self.coerced(self.integer(1), result)
            self.scope.functions.append((name, [parameter], result))
            return Line([[f"{name} = lambda {parameter}: ", value]])
        outer, self.scope = self.scope, Scope()
        before = self.result, self.uniform, self.loops, self.in_kernel, self.calls
        self.scope.known = [*outer.known, parameter]
        self.scope.functions = list(outer.functions)
        self.scope.assignable = [parameter]
        self.result, self.uniform, self.loops, self.in_kernel, self.calls = result, False, 0, False, 1
        body: list[Statement] = []
        if captured and self.chance(0.5):
            changed = self.random.choice(captured)
            body.append(Line([[f"nonlocal {changed}"]], fixed=True))
            body.append(Line([[f"{changed} = ", self.value_for(changed, 1)]]))
        extra: list[Value] = []
        head = f"def {name}({parameter}"
        if self.chance(0.4):
            default = Value((self.fresh("u"),), _INT, -_SMALL, _SMALL)
            self.scope.known.append(default)
            extra.append(default)
        body += self.block(1, 2)
        body.append(Line([["return ", self.value_for(result, 1)]], fixed=True))
        known = self.scope
        self.scope = outer
        self.result, self.uniform, self.loops, self.in_kernel, self.calls = before
        del known
        parts: Parts = [head]
        for default in extra:
            parts += [f", {default}=", self.coerced(self.integer(1), default)]
        outer.functions.append((name, [parameter], result))
        return Block([Clause([*parts, "):"], body)])

    def _exchange(self, depth: int) -> Statement | None:
        """Give values to other invocations of the workgroup."""
        if self.loops == 0 and depth > 0 and self.chance(0.25):
            name = self.fresh("n")
            count = self.random.randint(1, 3)
            loops, self.loops = self.loops, 0
            with self.nested():
                self.scope.known.append(Value((name,), _NATURAL, 0, 3))
                body = [self.statement(1), self._swap(), self.statement(1)]
            self.loops = loops
            items = self.pick(
                f"range({count})", f"vc.range({count})", f"range(1 + vc.workgroup_id().x % {count})"
            )
            return Block([Clause([f"for {name} in {items}:"], body)])
        return self._swap()

    def _swap(self) -> Statement:
        value = self.coerced(self.integer(2), Value((), _INT, -_SMALL, _SMALL))
        step = self.random.randint(1, 7)
        if self.chance(0.3):
            target = self.declared(Value((), _INT, -_SMALL, _SMALL))
            return Line([[f"{target} = exchange(tile, lane, (lane + {step}) % live, ", value, ")"]])
        if self.chance(0.3):
            condition = self.condition(1)
            target = self.declared(Value((), _INT, 0, 1000))
            return Line(
                [
                    ["tile[lane] = 0"],
                    ["vc.barrier()"],
                    ["if ", condition, ":"],
                    [f"    vc.atomic_add(tile[(lane + {step}) % live], lane % 4)"],
                    ["vc.barrier()"],
                    [f"{target} = tile[lane]"],
                    ["vc.barrier()"],
                ]
            )
        target = self.declared(Value((), _INT, -_SMALL, _SMALL))
        return Line(
            [
                ["tile[lane] = ", value],
                ["vc.barrier()"],
                [f"{target} = tile[(lane + {step}) % live]"],
                ["vc.barrier()"],
            ]
        )

    def _definite(self, depth: int) -> Statement:
        """A name that gets its value on every way through an if, unless a jump leaves that way."""
        contract = Value((), _INT, -_SMALL, _SMALL)
        name = self.fresh("h")
        clauses = []
        with self.divergent():
            heads: list[Parts] = [["if ", self.condition(1), ":"]]
            if self.chance(0.4):
                heads.append(["elif ", self.condition(1), ":"])
            for head in [*heads, ["else:"]]:
                body = self.block(depth - 1, 1) if self.chance(0.5) else []
                if self.loops and self.chance(0.3):
                    test = self.pick("1 < 2", "i == i", "True", str(self.condition(0)))
                    body.append(Block([Clause([f"if {test}:"], [Line([[self.pick("break", "continue")]])])]))
                body.append(Line([[f"{name} = ", self.value_for(contract, 1)]]))
                clauses.append(Clause(head, body))
        known = Value((name,), contract.types, contract.low, contract.high)
        self.scope.known.append(known)
        self.scope.assignable.append(known)
        return Block(clauses)

    def _gathered(self, depth: int) -> Statement:
        """Python's own iterables and comprehensions."""
        target = Value((), _INT, 0, _SMALL)
        one, two = self.coerced(self.integer(1), target), self.coerced(self.integer(1), target)
        name = self.fresh("m")
        count = self.random.randint(1, 4)
        form = self.random.randrange(5)
        if form <= 1:
            with self.nested():
                self.scope.known.append(Value((name,), _INT, 0, 4))
                calls, self.calls = self.calls, 0
                term = self.coerced(self.integer(1), target)
                self.calls = calls
            opening, closing = self.pick(("", ""), ("[", "]"))
            line: Parts = [f"sum({opening}", term, f" for {name} in range({count}){closing}) % {_SMALL}"]
            return Line([[f"{self.declared(target)} = ", *line]])
        total = self.declared(target)
        if form == 2:
            head: Parts = [f"for {name}, {name}_too in enumerate((", one, ", ", two, ", 5)):"]
        elif form == 3:
            head = [f"for {name}, {name}_too in zip(range({count}), [", one, ", ", two, ", 7]):"]
        else:
            head = [f"for {name}_too, {name} in [(1, ", one, "), (2, ", two, ")]:"]
        body: list[Statement] = [Line([[f"{total} = ({total} * 3 + {name} + {name}_too) % {_SMALL}"]])]
        if self.chance(0.3):
            with self.divergent(loop=True):
                body.append(self._jump(0))
        return Block([Clause(head, body)], before=[[f"{total} = 0"]])

    def _endless(self, depth: int) -> Statement:
        fuel = self.fresh("n")
        rounds = self.random.randint(1, 5)
        with self.divergent(loop=True):
            end = Line([[f"{fuel} += 1"], [f"if {fuel} > {rounds}:"], ["    break"]], fixed=True)
            body: list[Statement] = [end, *self.block(max(0, depth - 1)), self._jump(0)]
        return Block([Clause([self.pick("while True:", "while 1:")], body)], before=[[f"{fuel} = 0"]])

    # -- the program

    def helper(self) -> None:
        """Write a function of the module."""
        name = self.fresh("helper")
        self.scope = Scope()
        parameters = [
            Value((self.fresh("u"),), _INT, -_SMALL, _SMALL) for _ in range(self.random.randint(1, 2))
        ]
        self.scope.known, self.scope.assignable = list(parameters), list(parameters)
        result = Value((), _INT, -_SMALL, _SMALL)
        self.result, self.uniform, self.in_kernel = result, False, False
        body: list[Statement] = [self.statement(2) for _ in range(self.random.randint(1, 3))]
        body.append(Line([["return ", self.value_for(result, 1)]], fixed=True))
        head = f"def {name}({', '.join(map(str, parameters))}):"
        self.functions.append(Block([Clause([head], body)]))
        self.made.append((name, parameters, result))
        self.result, self.uniform, self.in_kernel = None, True, True

    made: list[tuple[str, list[Value], Value]]

    def sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Invocations, and invocations of a workgroup."""
        if not self.has("partial"):
            return self.pick(((16,), (8,)), ((32,), (16,)), ((32,), (32,)), ((8, 4), (8, 2)))
        local: tuple[int, ...] = self.pick((8,), (16,), (8, 2), (8, 4), (4, 2), (8, 2, 2), (4, 2, 2), (32,))
        return tuple(self.random.randint(1, 2 * n + 1) for n in local), local

    def buffer(self, name: str, kind: str, size: int, low: int, high: int, *, owned: bool) -> None:
        """Add a parameter with a buffer of its own."""
        place = len(self.buffers)
        count = int(kind[-1]) if "v" in kind else 0
        scale = 4 if kind in ("f32", "v2", "v3", "v4") else 1

        def one() -> Any:
            drawn = self.random.randint(low * scale, high * scale)
            return drawn / scale if scale > 1 else bool(drawn) if kind == "b8" else drawn

        data = [[one() for _ in range(count)] if count else one() for _ in range(size)]
        self.buffers.append(Buffer(kind, data))
        self.parameters.append((name, place))
        types = {
            "i32": frozenset({"i32"}),
            "i8": frozenset({"i32"}),
            "u8": frozenset({"u32"}),
            "f32": _FLOAT,
            "b8": _BOOL,
        }
        scalar = {"iv": "i32", "uv": "u32", "v": "f32"}.get(kind.rstrip("234"), kind)
        self.elements[name] = Value(
            (), types.get(scalar, frozenset({scalar})), low, high, 2 if scale > 1 else 0
        )
        (self.owned if owned else self.read_only).append(name)

    def memory(self, total: int) -> None:
        """Draw the buffers of the program."""
        self.buffer("p", "i32", total * _SLOTS, -_SMALL, _SMALL, owned=True)
        self.buffer("q", "i32", total * _SLOTS, -_SMALL, _SMALL, owned=True)
        self.buffer("r", "i32", 16, -_SMALL, _SMALL, owned=False)
        if self.has("narrow"):
            for name, kind in zip("st", self.random.sample(["i8", "u8", "i16", "u16"], 2), strict=True):
                low, high = RANGES[kind] if kind[1] == "8" else (-30000 if kind[0] == "i" else 0, 30000)
                self.buffer(name, kind, total * _SLOTS, low, high, owned=True)
        if self.has("wide"):
            for name, kind, low, high in self.random.sample(
                [("x", "i64", -(2**40), 2**40), ("y", "u64", 0, 2**63), ("z", "u32", 0, 2**32 - 1)], 2
            ):
                self.buffer(name, kind, total * _SLOTS, low, high, owned=True)
        if self.has("floats"):
            self.buffer("f", "f32", total * _SLOTS, -64, 64, owned=True)
            self.buffer("b", "b8", total * _SLOTS, 0, 1, owned=True)
        if self.has("vectors"):
            for name in ("v", "w"):
                self.buffer(name, self.pick("iv2", "iv3", "iv4"), total * _SLOTS, 0, _SMALL, owned=True)
        if self.has("atomics") or self.has("subgroups"):
            operations = ["add", self.pick("min", "max"), self.pick("and", "or", "xor")]
            kinds = ["i32", "i32", "i32" if not self.has("atomics") else self.pick("i32", "u32")]
            for number_of, (operation, kind) in enumerate(zip(operations, kinds, strict=True)):
                name = f"c{number_of}"
                self.buffer(name, kind, 4, 0, 1000, owned=False)
                self.read_only.remove(name)
                self.counters.append((name, operation, 4))
        if self.has("alias"):
            for name in self.random.sample(self.owned, min(2, len(self.owned))):
                other = f"{name}_too"
                place = next(place for each, place in self.parameters if each == name)
                self.parameters.append((other, place))
                self.elements[other] = self.elements[name]
                self.owned.append(other)

    def program(self) -> Program:
        self.made = []
        exec_size, local_size = self.sizes()
        total = 1
        for each in exec_size:
            total *= each
        for _ in range(self.random.randint(0, 2) + self.has("functions")):
            self.helper()
        self.memory(total)
        if self.has("reads"):
            text = [
                "def poke(buffer, place, value):",
                "    old = buffer[place]",
                "    buffer[place] = value",
                "    return old",
            ]
            self.functions.append(Line([[each] for each in text]))
        if self.has("vectors"):
            text = ["def touch(vector, value):", "    vector.x = value"]
            self.functions.append(Line([[each] for each in text]))
        if self.barriers:
            text = [
                "def exchange(tile, lane, other, value):",
                "    tile[lane] = value",
                "    vc.barrier()",
                "    found = tile[other]",
                "    vc.barrier()",
                "    return found",
            ]
            self.functions.append(Line([[each] for each in text]))
        self.scope = Scope()
        self.scope.functions = list(self.made)
        body = self.prologue(exec_size, local_size, total)
        for _ in range(self.random.randint(3, 6)):
            body.append(self.statement(2))
            if self.has("partial") and self.barriers and self.chance(0.5):
                body.append(self._exchange(1) or Line([["pass"]]))
        body += self.epilogue()
        names = ", ".join(name for name, _ in self.parameters)
        self.functions.append(Block([Clause([f"def kernel({names}):"], body)], fixed=True))
        return Program(
            self.seed, self.features, self.functions, self.buffers, self.parameters, exec_size, local_size
        )

    def prologue(
        self, exec_size: tuple[int, ...], local_size: tuple[int, ...], total: int
    ) -> list[Statement]:
        body: list[Statement] = []
        if len(exec_size) == 1:
            rows: list[Parts] = [["i = int(vc.global_invocation_id().x)"]]
            types = _INT
            if self.chance(0.2):
                rows, types = [["i = vc.global_invocation_id().x"]], frozenset({"u32"})
        else:
            flat = f"g.x + {exec_size[0]} * g.y"
            if len(exec_size) == 3:
                flat += f" + {exec_size[0] * exec_size[1]} * g.z"
            rows, types = [["g = vc.global_invocation_id()"], [f"i = int({flat})"]], _INT
        if self.barriers:
            rows += self.lanes(exec_size, local_size)
        body.append(Line(rows, fixed=True))
        self.scope.known.append(Value(("i",), types, 0, total - 1))
        if not (self.has("reads") or self.has("vectors")):
            # with code of the GPU, names held copies before they always did
            body.append(Line([["if i == 1000:"], [f"    p[i * {_SLOTS}] = 0"]], fixed=True))
        for _ in range(3):
            body.append(self._declare(0))
        return body

    def lanes(self, exec_size: tuple[int, ...], local_size: tuple[int, ...]) -> list[Parts]:
        """Name this invocation's place among those of its workgroup that are inside of the size."""
        count = 1
        for each in local_size:
            count *= each
        rows: list[Parts] = [
            [f"tile = vc.shared_buffer(vc.i32, {count}, 'tile')"],
            ["at = vc.local_invocation_id()"],
            ["group = vc.workgroup_id()"],
        ]
        lane, live = "", ""
        for axis, (size, local) in enumerate(zip(exec_size, local_size, strict=True)):
            letter = "xyz"[axis]
            rows.append([f"live_{letter} = min({local}, {size} - int(group.{letter}) * {local})"])
            stride = "".join(f"live_{each} * " for each in "xyz"[:axis])
            lane += f"{' + ' if lane else ''}{stride}int(at.{letter})"
            live += f"{' * ' if live else ''}live_{letter}"
        return [*rows, [f"lane = {lane}"], [f"live = {live}"]]

    def epilogue(self) -> list[Statement]:
        """Store what the names hold."""
        found: list[Statement] = []
        for each in self.scope.known[1:]:
            if each.types == _FLOAT:
                target = "p"
                value: Value = Value(("int(", each, " * 4)"), _INT, -256, 256)
            elif each.types == _BOOL:
                target, value = "q", Value(("(1 if ", each, " else 0)"), _INT, 0, 1)
            else:
                target, value = self.pick("p", "q"), each
            name = target
            element = self.elements[name]
            stored = self.coerced(value, Value((), _INT, element.low, element.high))
            found.append(Line([[f"{name}[i * {_SLOTS} + {self.random.randrange(_SLOTS)}] = ", stored]]))
        return found


def write(seed: int, features: tuple[str, ...]) -> Program:
    """Write the program of a seed."""
    if "edges" in features:
        return write_edge(seed, features)
    return Writer(seed, features).program()
