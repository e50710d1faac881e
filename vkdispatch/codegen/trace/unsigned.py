"""Where differences of unsigned ids are negative: what they are in the first invocation, where ids are 0."""

import math

from vkdispatch.base.dtype import component_type, is_integer_dtype, is_scalar, is_signed_dtype
from vkdispatch.codegen.trace.current import current, is_tracing
from vkdispatch.compiler.ir import Builtin, Expr, Op, Register
from vkdispatch.compiler.ir.literals import bounds

# Expressions are looked through this far.
MOST = 64
LINEAR = frozenset(("+", "-", "*"))
# Operations whose result is 0 where the first operand is.
_REACHES_ZERO = frozenset(("%", "/", "&", ">>"))
# Builtin values that are 0 in the first invocation.
_IDS = frozenset(
    (
        Builtin.GLOBAL_INVOCATION_ID,
        Builtin.LOCAL_INVOCATION_ID,
        Builtin.LOCAL_INVOCATION_INDEX,
        Builtin.WORKGROUP_ID,
        Builtin.SUBGROUP_ID,
        Builtin.SUBGROUP_INVOCATION_ID,
    )
)


def is_unsigned(value: Expr) -> bool:
    """Whether a value is made of unsigned integers."""
    return is_integer_dtype(value.dtype) and not is_signed_dtype(value.dtype)


def is_whole_id(value: Expr) -> bool:
    """Whether a value is an id, or a component of one."""
    while value.op in (Op.COMPONENT, Op.SWIZZLE):
        value = value.args[0]
    return value.op is Op.BUILTIN and value.value in _IDS


def find_values(node: Expr) -> list[Expr]:
    """Return the values that a register was given so far; none for others."""
    if not isinstance(node.value, Register) or node.value.counter or not is_tracing():
        return []
    return current().values_of(node.value)


def is_negative_at_zero(value: Expr) -> bool:
    """Whether a value such as `2 * i - 4` would be negative where the id is 0, if integers had any size.

    A value that may be positive there, such as `n - 1 - i`, is not.
    """
    where_zero = _find_bounds(value, {}, 0)
    return where_zero is not None and any(low < 0 and high <= 0 for low, high in where_zero)


_Bounds = list[tuple[float, float]]


def _find_bounds(value: Expr, known: dict[int, _Bounds | None], depth: int) -> _Bounds | None:
    """Return bounds of each component where all ids are 0, if integers had any size; None if unknown."""
    if depth > MOST or not is_unsigned(value):
        return None
    if id(value) not in known:
        known[id(value)] = None  # a register that is made of itself
        parts = [_find_bounds(each, known, depth + 1) for each in _operands(value)]
        known[id(value)] = None if None in parts else _combine(value, [part for part in parts if part])
    return known[id(value)]


def _operands(value: Expr) -> list[Expr]:
    if value.op is Op.REGISTER:
        return find_values(value)
    return list(value.args[1:] if value.op is Op.SELECT else value.args)


def _combine(value: Expr, parts: list[_Bounds]) -> _Bounds | None:
    count = getattr(value.dtype, "child_count", 0) if not is_scalar(value.dtype) else 1
    if value.op is Op.BUILTIN:
        return [(0, 0) if value.value in _IDS else (1, math.inf)] * count
    if value.op is Op.ARGUMENT:
        return [(1, math.inf)] * count
    if value.op is Op.LITERAL:
        _, high = bounds(component_type(value.dtype))
        assert isinstance(value.value, (int, float))
        number = int(value.value)
        return [(number, number) if number <= high // 2 else (number - high - 1, number - high - 1)] * count
    if value.op is Op.REGISTER:
        return parts[0] if len(parts) == 1 else None
    if value.op in (Op.COMPONENT, Op.SWIZZLE):
        picked = ["xyzw".index(letter) for letter in str(value.value)]
        return [parts[0][min(each, len(parts[0]) - 1)] for each in picked]
    if value.op is Op.SELECT:
        pairs = zip(*(part * count if len(part) == 1 else part for part in parts), strict=True)
        return [(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
    if value.op is Op.CONSTRUCT:
        joined = [each for part in parts for each in part]
        return joined * count if len(joined) == 1 else joined
    if value.op is not Op.BINARY or value.value not in LINEAR | _REACHES_ZERO:
        return None
    first, second = (part * count if len(part) == 1 else part for part in parts)
    return [_calculate(str(value.value), a, b) for a, b in zip(first, second, strict=True)]


def _calculate(symbol: str, a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    if symbol == "+":
        return a[0] + b[0], a[1] + b[1]
    if symbol == "-":
        return a[0] - b[1], a[1] - b[0]
    if symbol == "*":
        products = [x * y if x and y else 0 for x in a for y in b]
        return min(products), max(products)
    # quotients, remainders and parts of what is not negative
    return (0, a[1]) if a[0] >= 0 else (-math.inf, math.inf)
