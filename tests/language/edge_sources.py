"""Kernels of one operation of a value and numbers at the edges of types, which may not fit."""

from __future__ import annotations

from random import Random

from .source_model import RANGES
from .source_tree import Block, Buffer, Clause, Edge, Line, Program

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_OPERATORS = ("+", "-", "*", "&", "|", "^")
_FORMS = (
    "arithmetic", "arithmetic", "comparison", "comparison", "division", "two", "three", "clip", "choice",
    "store",
)  # fmt: skip
_CONVERSIONS = {
    "i16": "to_int16", "u16": "to_uint16", "i32": "to_int", "u32": "to_uint",
    "i64": "to_int64", "u64": "to_uint64",
}  # fmt: skip
_KINDS = ("i16", "u16", "i32", "u32", "i64", "u64", "i8", "u8", "i32", "u32")


def _elements(kind: str) -> list[int]:
    low, high = RANGES[kind]
    near = [low, low + 1, low + 2, high, high - 1, high - 2, high // 2, high // 2 + 1, high // 2 + 2]
    return [each for each in [*near, 0, 1, 2, 3, 100, 12345, -1, -2, -100] if low <= each <= high]


def _number(random: Random) -> int:
    power: int = 1 << random.choice([7, 8, 15, 16, 24, 31, 32, 63, 64])
    return random.choice([power, -power, 0]) + random.choice([-2, -1, 0, 1, 2])


def write_edge(seed: int, features: tuple[str, ...]) -> Program:
    """Write the program of a seed.

    Arithmetic wraps around in the value's type; comparisons and extremes are exact. What has a number that
    does not fit in the type may be refused; products, quotients and stores must be.
    """
    random = Random(f"edge {seed}")
    kind = random.choice(_KINDS)
    # these two are widened when they are read
    computed = {"i8": "i32", "u8": "u32"}.get(kind, kind)
    low, high = RANGES[computed]
    one, two = sorted((_number(random), _number(random)))
    if random.random() < 0.6:
        one, two = (min(max(each, low), high) for each in (one, two))
    form, value, exact, used = _operation(random, random.choice(["x[i]", "v"]), one, two)
    out = "b8" if form == "comparison" else computed
    if out != "b8" and form != "store" and random.random() < 0.5:
        # then another type does not show as one that cannot be stored
        value = f"vc.{_CONVERSIONS[computed]}({value})"
    data = _elements(kind)
    rows = ["i = vc.global_invocation_id().x", "v = x[i]", f"out[i] = {value}"]
    body = Clause(["def kernel(out, x):"], [Line([[row]], fixed=True) for row in rows])
    buffers = [Buffer(out, [False if out == "b8" else 0] * len(data)), Buffer(kind, data)]
    edge = Edge("exact" if exact else "wraps", all(low <= each <= high for each in used), form)
    parameters = [("out", 0), ("x", 1)]
    kernel = Block([body], fixed=True)
    return Program(seed, features, [kernel], buffers, parameters, (len(data),), (8,), edge)


def _operation(random: Random, x: str, one: int, two: int) -> tuple[str, str, bool, list[int]]:
    """Form, text, whether the result is that of mathematics, and the numbers in it."""
    form = random.choice(_FORMS)
    first, second = f"({one})", f"({two})"
    if form in ("arithmetic", "comparison"):
        op = random.choice(_COMPARISONS if form == "comparison" else _OPERATORS)
        sides = [x, first] if random.random() < 0.5 else [first, x]
        kept = form == "comparison" or op == "*"
        return form if kept else "sum or mask", f" {op} ".join(sides), form == "comparison", [one]
    if form == "division":
        # the least number divided by -1 is undefined on the device
        divisor = 3 if one in (0, -1) else one
        return form, f"{x} {random.choice(['//', '%'])} ({divisor})", False, [divisor]
    if form == "two":
        values = random.sample([x, first], 2)
        return form, f"{random.choice(['min', 'max', 'vc.min', 'vc.max'])}({', '.join(values)})", True, [one]
    if form == "three":
        values = random.sample([x, first, second], 3)
        return form, f"{random.choice(['min', 'max'])}({', '.join(values)})", True, [one, two]
    if form == "clip":
        return form, f"vc.clip({x}, {first}, {second})", True, [one, two]
    if form == "choice":
        chosen = [f"{x} if i % 2 == 0 else {first}", f"vc.select(i % 2 == 0, {x}, {first})"]
        return form, random.choice(chosen), False, [one]
    return form, first, False, [one]
