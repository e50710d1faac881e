"""Random typed expressions over all scalar and vector types: drawn, traced, and computed by plain Python.

Python computes each value of each invocation by itself, on ints and floats, and shares nothing with the
interpreter. Only operations with one right answer are drawn: integers wrap around, divisors are positive,
shifts stay below the width, and floats are multiples of a power of two small enough for every operation to be
exact.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import expressions as ex

INTEGERS: list[DType] = [dt.int16, dt.uint16, dt.int32, dt.uint32, dt.int64, dt.uint64]
FLOATS: list[DType] = [dt.float16, dt.float32, dt.float64]
# How large a whole number each type holds exactly, in bits.
_EXACT = {dt.float16: 10, dt.float32: 23, dt.float64: 50}
_Rule = Callable[..., Any]


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """An operation on other nodes.

    `value` is a variable's name, a literal's number, or what else the operation needs.
    Floats are multiples of 2**-fraction and at most `bound` in magnitude.
    """

    op: str
    kind: DType
    args: tuple[Node, ...] = ()
    value: Any = None
    bound: float = 0
    fraction: int = 0
    keep: bool = False

    def __repr__(self) -> str:
        if self.op in ("variable", "literal"):
            return str(self.value)
        extra = "" if self.value is None else f"[{self.value}]"
        return f"{self.op}{extra}<{self.kind.name}>({', '.join(map(repr, self.args))})"


# ---- what Python computes ------------------------------------------------------------------------


def wrapped(value: int, kind: DType) -> int:
    """A Python int as a number of an integer type."""
    bits = 8 * kind.item_size
    low = -(1 << (bits - 1)) if dt.is_signed_dtype(kind) else 0
    return (value - low) % (1 << bits) + low


def _unsigned(value: int, bits: int = 32) -> int:
    return value % (1 << bits)


def _truncated(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def _extract(value: int, offset: int, bits: int, kind: DType) -> int:
    field = _unsigned(value) >> offset & ((1 << bits) - 1)
    negative = dt.is_signed_dtype(kind) and bits > 0 and field >> (bits - 1)
    return field - (1 << bits) if negative else field


def _insert(base: int, value: int, offset: int, bits: int) -> int:
    mask = ((1 << bits) - 1) << offset
    return (_unsigned(base) & ~mask) | (_unsigned(value) << offset & mask)


def _find_msb(value: int) -> int:
    return (value if value >= 0 else ~value).bit_length() - 1


def _find_lsb(value: int) -> int:
    return (value & -value).bit_length() - 1


_BY_COMPONENT: dict[str, _Rule] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "//": _truncated,
    "floor//": operator.floordiv,
    "%": operator.mod,
    "neg": operator.neg,
    "~": operator.invert,
    "abs": abs,
    "min": min,
    "max": max,
    "clip": lambda x, low, high: min(max(x, low), high),
    "fma": lambda a, b, c: a * b + c,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sign": lambda x: (x > 0) - (x < 0),
    "step": lambda edge, x: int(x >= edge),
    "bitCount": lambda x: _unsigned(x).bit_count(),
    "findLSB": _find_lsb,
    "findMSB": _find_msb,
    "bitfieldReverse": lambda x: int(f"{_unsigned(x):032b}"[::-1], 2),
    "bitfieldInsert": _insert,
}
_COMPARE: dict[str, _Rule] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _as_kind(value: Any, kind: DType) -> Any:
    """A number or truth value as a number of a scalar type."""
    if kind is dt.bool_:
        return bool(value)
    if dt.is_integer_dtype(kind):
        return wrapped(math.trunc(value), kind)
    return float(value)


def _components(value: Any, count: int) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,) * count


def compute(node: Node, variables: Mapping[str, Any], known: dict[int, Any] | None = None) -> Any:
    """Value of a node for one invocation: a number, or a tuple of them."""
    known = {} if known is None else known
    if id(node) not in known:
        known[id(node)] = _computed(node, variables, known)
    return known[id(node)]


def _computed(node: Node, variables: Mapping[str, Any], known: dict[int, Any]) -> Any:
    if node.op == "variable":
        return variables[node.value]
    if node.op == "literal":
        return node.value
    if node.op == "select":
        condition, chosen, other = node.args
        picked = chosen if compute(condition, variables, known) else other
        value = compute(picked, variables, known)
        return tuple(value) if isinstance(value, tuple) else _as_kind(value, node.kind)
    args = [compute(arg, variables, known) for arg in node.args]
    scalar = dt.component_type(node.kind)
    if node.op in _COMPARE:
        kind = _meeting(node.args)
        # integers are compared as they are, whatever their types
        if dt.is_float_dtype(kind) or kind is dt.bool_:
            args = [_whole(arg, kind) for arg in args]
        return _COMPARE[node.op](*args)
    match node.op:
        case "any":
            return any(args)
        case "all":
            return all(args)
        case "not":
            return not args[0]
        case "component":
            return args[0]["xyzw".index(node.value)]
        case "index":
            return args[0][args[1]]
        case "swizzle":
            return tuple(args[0]["xyzw".index(letter)] for letter in node.value)
        case "construct":
            parts = [part for arg in args for part in (arg if isinstance(arg, tuple) else (arg,))]
            return tuple(_as_kind(part, scalar) for part in parts)
        case "cast":
            return _whole(args[0], scalar)
        case "bitfieldExtract":
            return _map(node.kind, lambda x: _extract(x, args[1], args[2], scalar), args[:1])
        case "bitfieldInsert":
            return _map(node.kind, lambda x, y: _as_kind(_insert(x, y, args[2], args[3]), scalar), args[:2])
    # operands first become the type in which they meet; what bits functions give has another type
    own = not node.op.startswith(("bit", "find"))
    rule = _BY_COMPONENT[node.op]

    def each(*values: Any) -> Any:
        return _as_kind(rule(*(_as_kind(v, scalar) if own else v for v in values)), scalar)

    return _map(node.kind, each, args)


def _map(kind: DType, rule: _Rule, args: Sequence[Any]) -> Any:
    if dt.is_scalar(kind):
        return rule(*args)
    columns = [_components(arg, kind.child_count) for arg in args]
    return tuple(rule(*values) for values in zip(*columns, strict=True))


def _whole(value: Any, scalar: DType) -> Any:
    return (
        tuple(_as_kind(part, scalar) for part in value)
        if isinstance(value, tuple)
        else _as_kind(value, scalar)
    )


def _meeting(args: Sequence[Node]) -> DType:
    kinds = [dt.component_type(arg.kind) for arg in args if arg.op != "literal"]
    kind = kinds[0]
    for other in kinds[1:]:
        kind = kind if kind is other else dt.cross_type(kind, other)
    return kind


# ---- what the language says ----------------------------------------------------------------------

_TRACED: dict[str, _Rule] = {
    **{symbol: rule for symbol, rule in _BY_COMPONENT.items() if symbol in "+-*&|^<<>>%~"},
    **_COMPARE,
    "//": operator.floordiv,
    "floor//": operator.floordiv,
    "neg": operator.neg,
    "~": operator.invert,
    "abs": vc.abs,
    "min": vc.min,
    "max": vc.max,
    "clip": vc.clip,
    "fma": vc.fma,
    "floor": vc.floor,
    "ceil": vc.ceil,
    "trunc": vc.trunc,
    "sign": vc.sign,
    "step": vc.step,
    "any": vc.any,
    "all": vc.all,
    "not": operator.invert,
    "index": operator.getitem,
}


def trace(node: Node, variables: Mapping[str, Any], known: dict[int, Any] | None = None) -> Any:
    """Make a node a GPU value, a shared node once."""
    known = {} if known is None else known
    if id(node) not in known:
        known[id(node)] = _trace(node, variables, known)
    return known[id(node)]


def _trace(node: Node, variables: Mapping[str, Any], known: dict[int, Any]) -> Any:
    if node.op == "variable":
        return variables[node.value]
    if node.op == "literal":
        return node.value
    args = [trace(arg, variables, known) for arg in node.args]
    if node.op in _TRACED:
        value = _TRACED[node.op](*args)
    elif node.op == "select":
        operands = [arg.expr if isinstance(arg, ShaderVariable) else arg for arg in args]
        value = ShaderVariable(ex.select(*operands))
    elif node.op == "component":
        value = getattr(args[0], node.value)
    elif node.op == "swizzle":
        value = args[0].swizzle(node.value)
    elif node.op in ("construct", "cast"):
        value = vc.to_dtype(node.kind, *args)
    else:
        exprs = [arg.expr if isinstance(arg, ShaderVariable) else ex.literal(arg, dt.int32) for arg in args]
        value = ShaderVariable(ex.call(node.op, node.kind, *exprs))
    assert value.var_type is node.kind, f"{node}: {value.var_type.name}"
    return value.to_register() if node.keep and node.kind is not dt.bool_ else value


# ---- drawing -------------------------------------------------------------------------------------


class Grower:
    """Draws nodes over given variables; may use a node that it drew before once more.

    `kinds` are the scalar types there are. Without `keep` no part becomes a register by itself, as must be
    where a condition is computed anew each time. For `nvidia` what its compiler gets wrong is left out (seen
    with 580.159 on an H200): negated int16, which may come out as 32768, and quotients of integer vectors by
    constants.
    """

    def __init__(
        self,
        random: Random,
        variables: Sequence[Node],
        kinds: Sequence[DType],
        *,
        keep: bool = True,
        nvidia: bool = False,
    ) -> None:
        self.random = random
        self.variables = list(variables)
        self.pool: list[Node] = []
        self.kinds = list(kinds)
        self.keep = keep
        self.nvidia = nvidia

    def node(self, kind: DType, depth: int) -> Node:
        """Draw a node of a type; never a literal."""
        if depth > 0 and self.random.random() < 0.9:
            grown = self._grow(kind, depth - 1)
            self.pool.append(grown)
            return grown
        leaves = [node for node in (*self.variables, *self.pool) if node.kind is kind]
        if leaves:
            return self.random.choice(leaves)
        return self._converted(kind)

    def _grow(self, kind: DType, depth: int) -> Node:
        if self.random.random() < 0.08:
            return self._choice(kind, depth)
        if kind is dt.bool_:
            return self._truth(depth)
        if dt.is_vector(kind) and self.random.random() < 0.35:
            return self._vector(kind, depth)
        if dt.is_scalar(kind) and self.random.random() < 0.1:
            return self._part(kind, depth)
        return self._float(kind, depth) if dt.is_float_dtype(kind) else self._integer(kind, depth)

    def _make(
        self, op: str, kind: DType, *args: Node, value: Any = None, bound: float = 0, fraction: int = 0
    ) -> Node:
        keep = self.keep and self.random.random() < 0.15
        return Node(op, kind, args, value, bound, fraction, keep)

    def literal(self, kind: DType, numbers: Sequence[float]) -> Node:
        """Draw one of some numbers."""
        number = self.random.choice(numbers)
        return Node("literal", dt.component_type(kind), value=number, bound=abs(number), fraction=2)

    def vectors(self, scalar: DType) -> list[DType]:
        """Vector types of a component type."""
        found = []
        for count in (2, 3, 4):
            try:
                found.append(dt.to_vector(scalar, count))
            except ValueError:
                return []
        return found

    # -- conversions and choices

    def _converted(self, kind: DType) -> Node:
        """A shallow node of a type that no variable has."""
        if kind is dt.bool_:
            return self._truth(0)
        if dt.is_vector(kind):
            scalar = dt.component_type(kind)
            parts = [self.node(scalar, 0) for _ in range(kind.child_count)]
            return self._construct(kind, parts)
        known = [
            node for node in self.variables if dt.is_scalar(node.kind) and dt.is_integer_dtype(node.kind)
        ]
        return self._cast(self.random.choice(known), kind)

    def _cast(self, node: Node, kind: DType) -> Node:
        """A conversion component by component that has one right answer."""
        scalar = dt.component_type(kind)
        if dt.is_float_dtype(scalar):
            if dt.is_float_dtype(node.kind):
                if self._holds(scalar, node.bound, node.fraction):
                    return self._make("cast", kind, node, bound=node.bound, fraction=node.fraction)
                return self._small(kind, node)
            if node.kind is not dt.bool_:
                node = self._masked(node, 63)
            return self._make("cast", kind, node, bound=63)
        if dt.is_float_dtype(node.kind):
            bits = 8 * scalar.item_size
            if not dt.is_signed_dtype(scalar):
                node = Node("abs", node.kind, (node,), None, node.bound, node.fraction)
            if node.bound >= 1 << (bits - 1):
                return self._make("cast", kind, self._small(node.kind, node))
        return self._make("cast", kind, node)

    def _small(self, kind: DType, node: Node) -> Node:
        """Limit a float to at most 4 and make it whole, then convert it."""
        low, high = (Node("literal", dt.component_type(node.kind), value=edge) for edge in (-4, 4))
        limited = Node("clip", node.kind, (node, low, high), None, 4, node.fraction)
        whole = Node("floor", node.kind, (limited,), None, 4, 0)
        return whole if kind is node.kind else Node("cast", kind, (whole,), None, 4, 0)

    def _any_scalar(self, depth: int) -> Node:
        return self.node(self.random.choice(self.kinds), depth)

    def _choice(self, kind: DType, depth: int) -> Node:
        chosen, other = self.node(kind, depth), self.node(kind, depth)
        bound, fraction = max(chosen.bound, other.bound), max(chosen.fraction, other.fraction)
        if kind is dt.bool_:
            return self._make("any", kind, chosen, other)
        return self._make(
            "select", kind, self.node(dt.bool_, depth), chosen, other, bound=bound, fraction=fraction
        )

    # -- vectors

    def _construct(self, kind: DType, parts: Sequence[Node]) -> Node:
        bound = max(part.bound for part in parts)
        return self._make(
            "construct", kind, *parts, bound=bound, fraction=max(part.fraction for part in parts)
        )

    def _vector(self, kind: DType, depth: int) -> Node:
        scalar = dt.component_type(kind)
        form = self.random.choice(["construct", "mixed", "swizzle", "cast"])
        if form == "swizzle":
            source = self.node(self.random.choice(self.vectors(scalar)), depth)
            letters = "".join(
                self.random.choice("xyzw"[: source.kind.child_count]) for _ in range(kind.child_count)
            )
            return self._make(
                "swizzle", kind, source, value=letters, bound=source.bound, fraction=source.fraction
            )
        if form == "cast":
            other = self.random.choice([each for each in self.kinds if self.vectors(each)])
            return self._cast(self.node(dt.to_vector(other, kind.child_count), depth), kind)
        if form == "mixed" and kind.child_count > 2:
            pair = self.node(dt.to_vector(scalar, 2), depth)
            rest = [self.node(scalar, depth) for _ in range(kind.child_count - 2)]
            parts = [pair, *rest]
            self.random.shuffle(parts)
            return self._construct(kind, parts)
        return self._construct(kind, [self.node(scalar, depth) for _ in range(kind.child_count)])

    def _part(self, kind: DType, depth: int) -> Node:
        """A component of a vector, chosen now or by the GPU."""
        vectors = self.vectors(kind)
        if not vectors:
            return self._cast(self._any_scalar(depth), kind)
        source = self.node(self.random.choice(vectors), depth)
        about = {"bound": source.bound, "fraction": source.fraction}
        if self.random.random() < 0.7 or source.kind.child_count == 3 or dt.int32 not in self.kinds:
            letter = self.random.choice("xyzw"[: source.kind.child_count])
            return self._make("component", kind, source, value=letter, **about)
        index = self._masked(
            self.node(self.random.choice([dt.int32, dt.uint32]), depth), source.kind.child_count - 1
        )
        return self._make("index", kind, source, index, **about)

    # -- integers

    def _numbers(self, kind: DType) -> list[int]:
        scalar = dt.component_type(kind)
        bits = 8 * scalar.item_size
        if dt.is_signed_dtype(scalar):
            return [0, 1, -1, 2, 3, -7, 8, 255, (1 << (bits - 1)) - 1, -(1 << (bits - 1))]
        return [0, 1, 2, 3, 7, 8, 255, 1 << (bits - 1), (1 << bits) - 1]

    def _masked(self, node: Node, mask: int) -> Node:
        literal = Node("literal", dt.component_type(node.kind), value=mask)
        return Node("&", node.kind, (node, literal))

    def _divisor(self, kind: DType, depth: int) -> Node:
        one = Node("literal", dt.component_type(kind), value=1)
        return Node("+", kind, (self._masked(self.node(kind, depth), 15), one))

    def _operands(self, kind: DType, depth: int) -> tuple[Node, ...]:
        """Two operands that meet in `kind`; at most one is a number."""
        first = self.node(kind, depth)
        form = self.random.randrange(6)
        if form == 0:
            second = self.literal(kind, self._numbers(kind))
        elif form == 1 and dt.is_vector(kind):
            second = self.node(dt.component_type(kind), depth)
        elif form == 2 and dt.is_scalar(kind):
            lower = [
                other for other in INTEGERS if other in self.kinds and dt.cross_type(kind, other) is kind
            ]
            second = self.node(self.random.choice(lower), depth)
        else:
            second = self.node(kind, depth)
        return (first, second) if self.random.random() < 0.5 else (second, first)

    def _integer(self, kind: DType, depth: int) -> Node:
        scalar = dt.component_type(kind)
        bits = 8 * scalar.item_size
        families = ["binary"] * 4 + ["unary", "limit", "shift", "divide", "modulo", "convert", "bits"]
        family = self.random.choice(families)
        if family == "unary":
            risky = self.nvidia and scalar is dt.int16
            op = "~" if risky else self.random.choice(["neg", "~", "abs"])
            return self._make(op, kind, self.node(kind, depth))
        if family == "limit":
            if self.random.random() < 0.5:
                return self._make(self.random.choice(["min", "max"]), kind, *self._operands(kind, depth))
            low, high = self.literal(kind, [0, 1, 5]), self.literal(kind, [5, 100, 0x7FFF])
            return self._make("clip", kind, self.node(kind, depth), low, high)
        if family == "shift":
            by_number = self.random.random() < 0.5
            amount = (
                self.literal(kind, [0, 1, 3, bits - 1])
                if by_number
                else self._masked(self.node(kind, depth), bits - 1)
            )
            return self._make(self.random.choice(["<<", ">>"]), kind, self.node(kind, depth), amount)
        if family == "divide":
            form = 0 if self.nvidia and dt.is_vector(kind) else self.random.randrange(3)
            if form == 0:
                return self._make("//", kind, self.node(kind, depth), self._divisor(kind, depth))
            if form == 1:
                return self._make("//", kind, self.node(kind, depth), self.literal(kind, [3, 7, 1000]))
            return self._make("floor//", kind, self.node(kind, depth), self.literal(kind, [2, 8, 1024]))
        if family == "modulo":
            positive = self._masked(self.node(kind, depth), (1 << (bits - 1)) - 1)
            return self._make("%", kind, positive, self._divisor(kind, depth))
        if family == "convert":
            return self._cast(self._of_any_kind(kind, depth), kind)
        if family == "bits" and bits == 32:
            return self._bits(kind, depth)
        op = self.random.choice(["+", "-", "*", "&", "|", "^"])
        return self._make(op, kind, *self._operands(kind, depth))

    def _of_any_kind(self, kind: DType, depth: int) -> Node:
        """A node of another component type and as many components."""
        if dt.is_vector(kind):
            others = [each for each in self.kinds if self.vectors(each)]
            return self.node(dt.to_vector(self.random.choice(others), kind.child_count), depth)
        return self.node(self.random.choice([*self.kinds, dt.bool_]), depth)

    def _bits(self, kind: DType, depth: int) -> Node:
        offset = self.random.randrange(32)
        place = [Node("literal", dt.int32, value=offset), Node("literal", dt.int32, value=0)]
        place[1] = Node("literal", dt.int32, value=self.random.randrange(33 - offset))
        name = self.random.choice(
            ["bitCount", "findLSB", "findMSB", "bitfieldReverse", "bitfieldExtract", "bitfieldInsert"]
        )
        if name == "bitfieldExtract":
            return self._make(name, kind, self.node(kind, depth), *place)
        if name == "bitfieldInsert":
            return self._make(name, kind, self.node(kind, depth), self.node(kind, depth), *place)
        if name == "bitfieldReverse" or dt.is_signed_dtype(kind):
            return self._make(name, kind, self.node(kind, depth))
        # counts and positions are signed
        signed = dt.int32 if dt.is_scalar(kind) else dt.to_vector(dt.int32, kind.child_count)
        return self._make("cast", kind, Node(name, signed, (self.node(kind, depth),)))

    # -- floats

    def _holds(self, kind: DType, bound: float, fraction: int) -> bool:
        return bound * 2**fraction < 2 ** _EXACT[dt.component_type(kind)]

    def _float(self, kind: DType, depth: int) -> Node:
        family = self.random.choice(["sum"] * 3 + ["product"] * 3 + ["unary", "limit", "convert", "fma"])
        if family == "convert":
            return self._cast(self._of_any_kind(kind, depth), kind)
        a = self.node(kind, depth)
        if family == "unary":
            op = self.random.choice(["neg", "abs", "floor", "ceil", "trunc", "sign"])
            whole = op in ("floor", "ceil", "trunc", "sign")
            return self._make(op, kind, a, bound=a.bound + 1, fraction=0 if whole else a.fraction)
        b = self.literal(kind, [0, 1, 2, -3, 0.5, -1.25, 7.75])
        if self.random.random() < 0.5:
            b = self.node(dt.component_type(kind) if self.random.random() < 0.3 else kind, depth)
        if self.random.random() < 0.5:
            a, b = b, a
        if family == "limit":
            op = self.random.choice(["min", "max", "step"])
            bound, fraction = max(a.bound, b.bound, 1), max(a.fraction, b.fraction)
            return self._make(op, kind, a, b, bound=bound, fraction=fraction)
        return self._exact(family, kind, a, b)

    def _exact(self, family: str, kind: DType, a: Node, b: Node) -> Node:
        """A sum or product if floats hold it exactly, else something smaller."""
        product, product_fraction = a.bound * b.bound, a.fraction + b.fraction
        total, total_fraction = a.bound + b.bound, max(a.fraction, b.fraction)
        if family == "fma" and self._holds(kind, product + a.bound, product_fraction + a.fraction):
            return self._make(
                "fma", kind, a, b, a, bound=product + a.bound, fraction=max(product_fraction, a.fraction)
            )
        if family == "product" and self._holds(kind, product, product_fraction):
            return self._make("*", kind, a, b, bound=product, fraction=product_fraction)
        if self._holds(kind, total, total_fraction):
            op = self.random.choice(["+", "-"])
            return self._make(op, kind, a, b, bound=total, fraction=total_fraction)
        return self._make("max", kind, a, b, bound=max(a.bound, b.bound), fraction=total_fraction)

    # -- booleans

    def _truth(self, depth: int) -> Node:
        if depth > 0 and self.random.random() < 0.3:
            op = self.random.choice(["any", "all", "not"])
            count = 1 if op == "not" else 3
            return self._make(op, dt.bool_, *(self.node(dt.bool_, depth) for _ in range(count)))
        chosen = self.random.choice(self.kinds)
        if self.random.random() < 0.2 and self.vectors(chosen):
            kind = self.random.choice(self.vectors(chosen))
            op = self.random.choice(["==", "!="])
            return self._make(op, dt.bool_, self.node(kind, depth), self.node(kind, depth))
        op = self.random.choice(list(_COMPARE))
        if dt.is_float_dtype(chosen):
            return self._make(op, dt.bool_, self.node(chosen, depth), self.literal(chosen, [0, 1, -2.5]))
        if chosen is dt.int64:
            # Mesa 22.3 takes every int32 that became int64 for larger than a small constant
            op = self.random.choice(["==", "!="])
        return self._make(op, dt.bool_, *self._operands(chosen, depth))
