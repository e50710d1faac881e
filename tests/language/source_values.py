"""Random values of kernels as Python source: expressions whose ranges are known."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from .source_model import RANGES
from .source_tree import Buffer, Statement, Value

RANK = ["u16", "i16", "u32", "i32", "u64", "i64"]
INT = frozenset({"py", "i32"})
NATURAL = frozenset({"py", "i32", "u32"})
FLOAT = frozenset({"f32"})
BOOL = frozenset({"b8"})
UNSIGNED = frozenset({"u16", "u32", "u64"})
# nothing else may stand for the index of an invocation's own element
INDEX = frozenset({"index"})
SMALL = 1008
SLOTS = 4
FLOAT_BOUND = 64.0


def number(value: int) -> Value:
    return Value((str(value) if value >= 0 else f"({value})",), frozenset({"py"}), value, value)


def real(value: float) -> Value:
    places = next(n for n in range(30) if value * 2**n == int(value * 2**n))
    return Value((repr(value) if value >= 0 else f"({value!r})",), FLOAT, value, value, places)


def truth(*parts: str | Value) -> Value:
    return Value(parts, BOOL, 0, 1)


def meet(a: str, b: str) -> str:
    if "py" in (a, b):
        return b if a == "py" else a
    return max(a, b, key=RANK.index)


def holds(kind: str, low: float, high: float) -> bool:
    least, most = RANGES["i32" if kind == "py" else kind]
    return least <= low and high <= most


class Scope:
    """What a function knows: names to read, names to assign, the function that it is."""

    def __init__(self) -> None:
        self.known: list[Value] = []
        self.assignable: list[Value] = []
        self.vectors: list[tuple[Value, str]] = []
        self.functions: list[tuple[str, list[Value], Value]] = []


class Values:
    """Draws the values of one program. It knows the names and memory that may be read."""

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
        return [each for each in self.scope.known if not each.types & (FLOAT | BOOL)]

    def integer(self, depth: int = 2) -> Value:
        """Draw an integer value."""
        if depth <= 0 or self.chance(0.15):
            return self.leaf()
        a = self.integer(depth - 1)
        if self.has("arithmetic") and self.chance(0.4):
            return self.arithmetic(a, self.integer(depth - 1))
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
            kind = meet(one, other)
            fits = holds(kind, a.low, a.high) and holds(kind, b.low, b.high) and holds(kind, low, high)
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
        if value.types <= INT:
            return value
        wide = value.types & {"i64", "u64"}
        return self.converted("vc.to_int(" if wide else self.pick("int(", "vc.to_int("), value, INT)

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
        signed = not value.types & UNSIGNED
        divisor = self.pick(1, 2, 3, 7, 8, 100) * (-1 if signed and self.chance(0.2) else 1)
        if self.chance(0.2):
            other = self.reduced(self.leaf())
            by = Value(("(", other, " + 1)"), other.types, 1, other.high + 1)
            types = self.joined(value, by, value.low, value.high)
            if types is not None:
                low, high = min(value.low, 0), max(value.high, 0)
                return Value(("(", value, " // ", by, ")"), types, low, high)
        ends = [value.low // divisor, value.high // divisor]
        if not all(holds(kind, min(ends), max(ends)) for kind in value.types):
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
            if not all(holds(kind, low, high) for kind in value.types):
                return value
            return Value(("abs(", value, ")"), value.types, low, high)
        if value.types & UNSIGNED:
            value = self.signed(self.reduced(value))
        low, high = (-value.high, -value.low) if form == "-" else (-value.high - 1, -value.low - 1)
        if not all(holds(kind, low, high) for kind in value.types):
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
        if not all(holds(kind, 0, int(value.high) << count) for kind in value.types):
            value = self.reduced(value)
        return Value(
            ("(", value, f" << {count})"), value.types, int(value.low) << count, int(value.high) << count
        )

    # -- values: shifts of mixed types, powers, conversions there and back

    def arithmetic(self, a: Value, b: Value) -> Value:
        form = self.random.randrange(6)
        if form < 2:
            return self.mixed_shift(a, b)
        if form < 4:
            return self.power(a, b)
        if form == 4:
            # through a float that holds it
            small = self.remainder(self.signed(self.reduced(a)), 1009)
            there, back = self.pick("float(", "vc.to_float("), self.pick("int(", "vc.to_int(")
            return Value((f"{back}{there}", small, "))"), INT, small.low, small.high)
        # through integers of other widths
        small = self.remainder(a, 100)
        names = [("int16", "i16"), ("uint16", "u16"), ("int64", "i64"), ("uint64", "u64"), ("uint", "u32")]
        for name, kind in self.random.sample(names, self.random.randint(1, 3)):
            small = Value((f"vc.to_{name}(", small, ")"), frozenset({kind}), small.low, small.high)
        return small

    def mixed_shift(self, a: Value, b: Value) -> Value:
        """Shift by a count of any type: the result has the type of what is shifted."""
        if "py" in a.types:
            # a number on the left takes the type of the count
            b = self.signed(self.reduced(b))
        most = self.pick(1, 4, 9)
        count = self.remainder(b, most + 1)
        if self.chance(0.6):
            low, high = min(a.low, int(a.low) >> most), max(a.high, int(a.high) >> most)
            return Value(("(", a, " >> ", count, ")"), a.types, low, high)
        if a.low < 0 or not all(holds(kind, 0, int(a.high) << most) for kind in a.types):
            a = self.remainder(a, 7)
        return Value(("(", a, " << ", count, ")"), a.types, 0, int(a.high) << most)

    def power(self, a: Value, b: Value) -> Value:
        base = self.remainder(a, self.pick(3, 5, 10))
        if not a.types & UNSIGNED and self.chance(0.5):
            base = Value(("(", base, " - 4)"), base.types, base.low - 4, base.high - 4)
        if self.chance(0.3):
            n = self.pick(1, 2, 3)
            exponent = number(n)
        else:
            n = 3
            exponent = self.remainder(b, n + 1)
        bound = max(abs(base.low), abs(base.high), 1) ** n
        types = self.joined(base, exponent, -bound if base.low < 0 else 0, bound)
        if self.chance(0.25):
            base, exponent = self.signed(base), self.signed(exponent)
            # of floats, exactly
            text = self.pick("int(float(", "int(1.0 * ")
            close = ")" if "float" in text else ""
            return Value((text, base, f"{close} ** ", exponent, ")"), INT, -bound, bound)
        if types is None:
            return base
        return Value(("(", base, " ** ", exponent, ")"), types, -bound if base.low < 0 else 0, bound)

    def float_arithmetic(self, a: Value, b: Value) -> Value:
        """Draw exact remainders, signs and powers of floats."""
        form = self.random.randrange(4)
        if form == 0:
            name = self.pick("vc.fmod", "vc.floor_mod", "math.fmod")
            return Value((f"{name}(", a, ", 2.5)"), FLOAT, -2.5, 2.5, max(a.fraction, 1))
        if form == 1:
            bound = max(abs(a.low), abs(a.high))
            name = self.pick("vc.copysign", "math.copysign")
            return Value((f"{name}(", a, ", ", b, ")"), FLOAT, -bound, bound, a.fraction)
        n = self.remainder(self.signed(self.reduced(self.integer(1))), 4)
        if form == 2:
            sign = self.pick("", "-")
            base: float = self.pick(2.0, 0.5, -2.0)
            bound = 8.0
            return Value((f"(({base}) ** ({sign}", n, "))"), FLOAT, -bound, bound, 3)
        exponent = self.pick("2", "2.0", "1.0")
        bound = max(abs(a.low), abs(a.high), 1) ** 2
        if bound * 4**a.fraction >= 2**23:
            return a
        return Value(("(", a, f" ** {exponent})"), FLOAT, -bound, bound, 2 * a.fraction)

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
        if target.types == FLOAT:
            return self.coerced_float(value, target)
        if target.types == BOOL:
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
        kind = "i32" if target.types >= INT else next(iter(target.types))
        if not holds(kind, value.low, value.high):
            value = self.remainder(value, 1009)
        if kind == "i32":
            return self.converted("vc.to_int(" if value.types & {"i64", "u64"} else "int(", value, INT)
        return self.converted(explicit[kind], value, frozenset({kind}))

    # -- values: elements

    def slot(self) -> Value:
        """Index of an element of this invocation's own."""
        if self.chance(0.6):
            return Value((f"i * {SLOTS} + {self.random.randrange(SLOTS)}",), INDEX, 0, 1 << 20)
        value = self.integer(1)
        if value.types & {"i64", "u64", "i16", "u16"}:
            value = self.signed(self.reduced(value))
        return Value((f"i * {SLOTS} + ", self.remainder(value, SLOTS)), INDEX, 0, 1 << 20)

    def element(self) -> Value | None:
        """Read of an element: of a buffer that is read only, or of an own one."""
        names = [*self.read_only, *(self.owned if self.in_kernel else [])]
        names = [
            each for each in names if not self.elements[each].types & (FLOAT | BOOL) and self.is_scalar(each)
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

    # -- values: floats and booleans

    def float(self, depth: int = 2) -> Value:
        known = [each for each in self.scope.known if each.types == FLOAT]
        if depth <= 0 or self.chance(0.2):
            if known and self.chance(0.7):
                return self.random.choice(known)
            return real(self.pick(0.0, 1.0, 0.5, -2.25, 3.0, 7.75))
        a, b = self.float(depth - 1), self.float(depth - 1)
        if self.has("arithmetic") and self.chance(0.4):
            return self.float_arithmetic(a, b)
        family = self.random.randrange(9)
        if family < 4:
            return self.float_binary(self.pick("+", "-", "*"), a, b)
        if family == 4:
            whole = self.signed(self.reduced(self.integer(1)))
            return Value(("float(", whole, ")"), FLOAT, whole.low, whole.high)
        if family == 5:
            return Value(
                ("(", a, " if ", self.condition(1), " else ", b, ")"),
                FLOAT,
                min(a.low, b.low),
                max(a.high, b.high),
                max(a.fraction, b.fraction),
            )
        if family == 6:
            name: str = self.pick("min", "max")
            rule: Any = min if name == "min" else max
            return Value(
                (f"{name}(", a, ", ", b, ")"),
                FLOAT,
                rule(a.low, b.low),
                rule(a.high, b.high),
                max(a.fraction, b.fraction),
            )
        if family == 7:
            form = self.pick("abs(", "(-")
            bound = max(abs(a.low), abs(a.high))
            return Value((form, a, ")"), FLOAT, -bound, bound, a.fraction)
        names = [
            each
            for each in (*self.owned, *self.read_only)
            if self.elements[each].types == FLOAT and self.is_scalar(each)
        ]
        return self.read(self.random.choice(names)) if names and self.in_kernel else a

    def float_binary(self, op: str, a: Value, b: Value) -> Value:
        ends = [{"+": x + y, "-": x - y, "*": x * y}[op] for x in (a.low, a.high) for y in (b.low, b.high)]
        fraction = a.fraction + b.fraction if op == "*" else max(a.fraction, b.fraction)
        bound = max(map(abs, ends))
        if bound * 2**fraction >= 2**23:
            return a
        return Value(("(", a, f" {op} ", b, ")"), FLOAT, min(ends), max(ends), fraction)

    def coerced_float(self, value: Value, target: Value) -> Value:
        inside = target.low <= value.low and value.high <= target.high
        if inside and value.fraction <= target.fraction:
            return value
        whole = Value(("int(", value, ")"), INT, int(value.low) - 1, int(value.high) + 1)
        small = self.remainder(whole, int(target.high))
        return Value(("float(", small, ")"), FLOAT, 0, target.high - 1)

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
        flags = [each for each in self.scope.known if each.types == BOOL]
        if family == 3 and flags:
            return self.random.choice(flags)
        if family == 4 and (self.has("floats") or self.has("arithmetic")):
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
        found = [Value((), INT, -SMALL, SMALL), Value((), NATURAL, 0, SMALL)]
        if self.has("wide") or self.has("arithmetic"):
            found += [
                Value((), frozenset({"i64"}), -(2**40), 2**40),
                Value((), frozenset({"u64"}), 0, 2**63),
                Value((), frozenset({"u32"}), 0, 2**32 - 1),
            ]
        if self.has("narrow"):
            found += [Value((), frozenset({"i16"}), -30000, 30000), Value((), frozenset({"u16"}), 0, 60000)]
        if self.has("floats") or self.has("arithmetic"):
            found += [Value((), FLOAT, -FLOAT_BOUND, FLOAT_BOUND, 2)] * 2 + [Value((), BOOL, 0, 1)]
        return found

    def value_for(self, target: Value, depth: int = 2) -> Value:
        if target.types == FLOAT:
            return self.coerced(self.float(depth), target)
        if target.types == BOOL:
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
        lists: list[list[Any]] = [scope.known, scope.assignable, scope.vectors, scope.functions]
        sizes = list(map(len, lists))
        yield
        for each, size in zip(lists, sizes, strict=True):
            del each[size:]
