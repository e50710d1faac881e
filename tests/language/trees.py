"""Random typed expressions: drawn once, then traced into a kernel and computed by NumPy.

Only operations with one right answer are drawn: integers wrap around, divisors are positive, and floats are
small multiples of powers of two, so that all their sums and products are exact.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import f32, i32, u32

from .running import Array, host

BOOL = dt.bool_
_EXACT_BITS = 23


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """An operation on other nodes. `name` is a variable's name, `number` a literal's value.

    Floats are multiples of 2**-fraction below `bound` in magnitude.
    """

    op: str
    kind: DType
    args: tuple[Node, ...] = ()
    name: str = ""
    number: float = 0
    bound: float = 0
    fraction: int = 0
    keep: bool = False

    def __repr__(self) -> str:
        if self.op == "variable":
            return self.name
        if self.op == "literal":
            return repr(self.number)
        return f"{self.op}<{self.kind.name}>({', '.join(map(repr, self.args))})"


@dataclass(frozen=True, slots=True)
class Operation:
    """How the language and how NumPy say one thing."""

    trace: Callable[..., Any]
    compute: Callable[..., Any]


def _truncate(a: Array, b: Array) -> Array:
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    return np.sign(wide_a) * np.sign(wide_b) * (np.abs(wide_a) // np.abs(wide_b))


_BINARY = {symbol: getattr(operator, name) for symbol, name in {
    "+": "add", "-": "sub", "*": "mul", "&": "and_", "|": "or_", "^": "xor", "<<": "lshift", ">>": "rshift",
    "%": "mod", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}.items()}  # fmt: skip
OPERATIONS: dict[str, Operation] = {
    **{symbol: Operation(rule, rule) for symbol, rule in _BINARY.items()},
    "//": Operation(operator.floordiv, _truncate),
    "floor//": Operation(operator.floordiv, lambda a, b: a // b),
    "/": Operation(operator.truediv, operator.truediv),
    "neg": Operation(operator.neg, operator.neg),
    "~": Operation(operator.invert, operator.invert),
    "abs": Operation(abs, np.abs),
    "vc.abs": Operation(vc.abs, np.abs),
    "min": Operation(vc.min, np.minimum),
    "max": Operation(vc.max, np.maximum),
    "clip": Operation(vc.clip, lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "fma": Operation(vc.fma, lambda a, b, c: a * b + c),
    "floor": Operation(vc.floor, np.floor),
    "ceil": Operation(vc.ceil, np.ceil),
    "trunc": Operation(vc.trunc, np.trunc),
    "sign": Operation(vc.sign, np.sign),
    "step": Operation(vc.step, lambda edge, x: x >= edge),
    "i32": Operation(lambda x: x.to_dtype(i32), lambda x: x),
    "u32": Operation(lambda x: x.to_dtype(u32), lambda x: x),
    "f32": Operation(lambda x: x.to_dtype(f32), lambda x: x),
    "any": Operation(vc.any, lambda *values: np.logical_or.reduce(np.broadcast_arrays(*values))),
    "all": Operation(vc.all, lambda *values: np.logical_and.reduce(np.broadcast_arrays(*values))),
    "not": Operation(operator.invert, np.logical_not),
}


def _as_host(values: Any, kind: DType) -> Array:
    array = np.asarray(values)
    if kind is BOOL:
        return array.astype(bool)
    if dt.is_integer_dtype(kind) and array.dtype.kind in "iu":
        # through 64 bits, so that a change of sign keeps the bits
        return array.astype(np.int64).astype(host(kind))
    return array.astype(host(kind))


def trace(node: Node, variables: Mapping[str, Any], known: dict[int, Any] | None = None) -> Any:
    """Make a node a GPU value, a shared node once."""
    known = {} if known is None else known
    if id(node) not in known:
        if node.op == "variable":
            value = variables[node.name]
        elif node.op == "literal":
            value = node.number
        else:
            value = OPERATIONS[node.op].trace(*(trace(arg, variables, known) for arg in node.args))
            assert value.var_type is node.kind, f"{node}: {value.var_type.name}"
            value = value.to_register() if node.keep else value
        known[id(node)] = value
    return known[id(node)]


def compute(node: Node, variables: Mapping[str, Array], known: dict[int, Array] | None = None) -> Array:
    """Compute a node with NumPy, on columns of values."""
    known = {} if known is None else known
    if id(node) not in known:
        if node.op == "variable":
            value = variables[node.name]
        elif node.op == "literal":
            value = _as_host(node.number, node.kind)
        else:
            values = [compute(arg, variables, known) for arg in node.args]
            if dt.is_integer_dtype(node.kind) and all(arg.kind in (i32, u32) for arg in node.args):
                values = [_as_host(each, node.kind) for each in values]
            value = _as_host(OPERATIONS[node.op].compute(*values), node.kind)
        known[id(node)] = value
    return known[id(node)]


class Grower:
    """Draws nodes over given variables; may use a node that it drew before once more."""

    def __init__(self, draw: Callable[[Any], Any], variables: Sequence[Node]) -> None:
        self.draw = draw
        self.variables = list(variables)
        self.pool: list[Node] = []

    def node(self, kind: DType, depth: int) -> Node:
        """Draw a node of a type; never a literal."""
        if depth > 0 and self.draw(st.integers(0, 9)) < 9:
            grown = {i32: self._integer, u32: self._integer, f32: self._float, BOOL: self._truth}[kind](
                kind, depth
            )
            self.pool.append(grown)
            return grown
        leaves = [node for node in (*self.variables, *self.pool) if node.kind is kind]
        if leaves:
            return self.draw(st.sampled_from(leaves))
        return self._truth(kind, 1) if kind is BOOL else self._converted(kind)

    def _converted(self, kind: DType) -> Node:
        """A node of a type that no variable has."""
        return Node(kind.name.replace("uint", "u").replace("int", "i"), kind, (self._any_integer(0),))

    def _make(self, op: str, kind: DType, *args: Node, bound: float = 0, fraction: int = 0) -> Node:
        keep = self.draw(st.integers(0, 5)) == 0
        return Node(op, kind, args, bound=bound, fraction=fraction, keep=keep)

    def literal(self, kind: DType, numbers: Sequence[float]) -> Node:
        number = self.draw(st.sampled_from(numbers))
        return Node("literal", kind, number=number, bound=abs(number), fraction=2)

    def _any_integer(self, depth: int) -> Node:
        kinds = [kind for kind in (i32, u32) if any(node.kind is kind for node in self.variables)]
        return self.node(self.draw(st.sampled_from(kinds)), depth)

    # -- integers

    def _numbers(self, kind: DType) -> list[int]:
        if kind is u32:
            return [0, 1, 2, 3, 7, 8, 255, 65536, 0x80000000, 0xFFFFFFFF]
        return [0, 1, -1, 2, 3, -7, 8, 255, -65536, 0x7FFFFFFF, -0x80000000]

    def _operands(self, kind: DType, depth: int) -> tuple[Node, Node]:
        """Two operands that meet in `kind`; at most one is a number."""
        first = self.node(kind, depth)
        form = self.draw(st.integers(0, 4))
        if form == 0:
            return first, self.literal(kind, self._numbers(kind))
        if form == 1:
            return self.literal(kind, self._numbers(kind)), first
        # unsigned beside signed is signed
        second = self.node(self.draw(st.sampled_from([i32, u32])) if kind is i32 else u32, depth)
        return (first, second) if form < 4 else (second, first)

    def _masked(self, node: Node, mask: int) -> Node:
        return Node("&", node.kind, (node, Node("literal", node.kind, number=mask)))

    def _divisor(self, kind: DType, depth: int) -> Node:
        return Node("+", kind, (self._masked(self.node(kind, depth), 15), Node("literal", kind, number=1)))

    def _integer(self, kind: DType, depth: int) -> Node:
        depth -= 1
        families = ["binary"] * 4 + ["unary", "limit", "shift", "divide", "modulo", "convert", "truth"]
        family = self.draw(st.sampled_from(families))
        if family == "binary":
            op = self.draw(st.sampled_from(["+", "-", "*", "&", "|", "^"]))
            return self._make(op, kind, *self._operands(kind, depth))
        if family == "unary":
            return self._make(
                self.draw(st.sampled_from(["neg", "~", "abs", "vc.abs"])), kind, self.node(kind, depth)
            )
        if family == "limit":
            if self.draw(st.booleans()):
                return self._make(
                    self.draw(st.sampled_from(["min", "max"])), kind, *self._operands(kind, depth)
                )
            low, high = self.literal(kind, [0, 1, 5]), self.literal(kind, [5, 100, 0x7FFFFFFF])
            return self._make("clip", kind, self.node(kind, depth), low, high)
        if family == "shift":
            by_number = self.draw(st.booleans())
            amount = (
                self.literal(kind, [0, 1, 3, 31]) if by_number else self._masked(self.node(kind, depth), 31)
            )
            return self._make(self.draw(st.sampled_from(["<<", ">>"])), kind, self.node(kind, depth), amount)
        if family == "divide":
            return self._quotient(kind, depth)
        if family == "modulo":
            return self._make(
                "%", kind, self._masked(self.node(kind, depth), 0x7FFFFFFF), self._divisor(kind, depth)
            )
        if family == "convert":
            return self._conversion(kind, depth)
        return self._make(kind.name.replace("uint", "u").replace("int", "i"), kind, self.node(BOOL, depth))

    def _quotient(self, kind: DType, depth: int) -> Node:
        form = self.draw(st.sampled_from(["variable", "number", "power of two"]))
        if form == "variable":
            return self._make("//", kind, self.node(kind, depth), self._divisor(kind, depth))
        if form == "number":
            return self._make("//", kind, self.node(kind, depth), self.literal(kind, [3, 7, 1000]))
        return self._make("floor//", kind, self.node(kind, depth), self.literal(kind, [2, 8, 1024]))

    def _conversion(self, kind: DType, depth: int) -> Node:
        name = "i32" if kind is i32 else "u32"
        if not any(node.kind is f32 for node in self.variables) or self.draw(st.booleans()):
            return self._make(name, kind, self.node(u32 if kind is i32 else i32, depth))
        real = self.node(f32, depth)
        return self._make(name, kind, real if kind is i32 else Node("abs", f32, (real,), bound=real.bound))

    # -- floats

    def _float(self, kind: DType, depth: int) -> Node:
        depth -= 1
        family = self.draw(
            st.sampled_from(["sum"] * 3 + ["product"] * 3 + ["unary", "limit", "integer", "truth", "fma"])
        )
        if family in ("integer", "truth"):
            if family == "truth":
                return self._make("f32", f32, self.node(BOOL, depth), bound=1)
            return self._make("f32", f32, self._masked(self._any_integer(depth), 255), bound=255)
        a = self.node(f32, depth)
        numbers = [0, 1, 2, -3, 0.5, -1.25, 7.75]
        b = self.literal(f32, numbers) if self.draw(st.booleans()) else self.node(f32, depth)
        if self.draw(st.booleans()):
            a, b = b, a
        if a.op == b.op == "literal":
            a = self.node(f32, 0)
        if family == "unary":
            op = self.draw(st.sampled_from(["neg", "abs", "vc.abs", "floor", "ceil", "trunc", "sign"]))
            inner = self.node(f32, depth)
            whole = op in ("floor", "ceil", "trunc", "sign")
            return self._make(op, f32, inner, bound=inner.bound + 1, fraction=0 if whole else inner.fraction)
        if family == "limit":
            op = self.draw(st.sampled_from(["min", "max", "step"]))
            return self._make(
                op, f32, a, b, bound=max(a.bound, b.bound, 1), fraction=max(a.fraction, b.fraction)
            )
        return self._exact(family, a, b)

    def _exact(self, family: str, a: Node, b: Node) -> Node:
        """A sum or product if floats hold it exactly, else something smaller."""
        product, product_fraction = a.bound * b.bound, a.fraction + b.fraction
        total, total_fraction = a.bound + b.bound, max(a.fraction, b.fraction)
        if family == "fma" and self._holds(product + a.bound, product_fraction):
            return self._make("fma", f32, a, b, a, bound=product + a.bound, fraction=product_fraction)
        if family == "product" and self._holds(product, product_fraction):
            return self._make("*", f32, a, b, bound=product, fraction=product_fraction)
        if self._holds(total, total_fraction):
            op = self.draw(st.sampled_from(["+", "-"]))
            return self._make(op, f32, a, b, bound=total, fraction=total_fraction)
        return self._make("max", f32, a, b, bound=max(a.bound, b.bound), fraction=total_fraction)

    def _holds(self, bound: float, fraction: int) -> bool:
        return bound * 2**fraction < 2**_EXACT_BITS

    # -- booleans

    def _truth(self, kind: DType, depth: int) -> Node:
        depth -= 1
        if depth > 0 and self.draw(st.integers(0, 3)) == 0:
            op = self.draw(st.sampled_from(["any", "all", "not", "&", "|", "^"]))
            count = {"not": 1, "any": 3, "all": 3}.get(op, 2)
            return self._make(op, BOOL, *(self.node(BOOL, depth) for _ in range(count)))
        op = self.draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
        kinds = [kind for kind in (i32, u32, f32) if any(node.kind is kind for node in self.variables)]
        chosen = self.draw(st.sampled_from(kinds))
        if chosen is f32:
            return self._make(op, BOOL, self.node(f32, depth), self.literal(f32, [0, 1, -2.5]))
        return self._make(op, BOOL, *self._operands(chosen, depth))
