"""Warnings about integers whose type makes an operation pointless, or wrong: unsigned differences."""

import math
from collections.abc import Iterator

from vkdispatch.base.dtype import (
    DType,
    component_type,
    is_integer_dtype,
    is_scalar,
    is_signed_dtype,
)
from vkdispatch.codegen.trace.current import current, is_tracing
from vkdispatch.codegen.trace.kernel_warnings import warn
from vkdispatch.ir import Builtin, Expr, Op, Register
from vkdispatch.ir import expressions as ex
from vkdispatch.ir.location import within_library
from vkdispatch.ir.numbers import MIRRORED, bounds, known_outcome, wider_type

# Operations whose value is negative, or wraps around, where one of their operands does.
_PASSED_ON = frozenset((Op.COMPONENT, Op.SWIZZLE, Op.INDEX, Op.CONSTRUCT, Op.SELECT))
_LINEAR = frozenset(("+", "-", "*"))
# Expressions are looked through this far.
_MOST = 64
# Operations whose result is 0 where the first operand is.
_REACHES_ZERO = frozenset(("%", "/", "&", ">>"))
# Expressions that may hold a difference of unsigned integers.
_MAY_WRAP = frozenset((Op.BINARY, Op.UNARY, Op.REGISTER, Op.COMPONENT, Op.SWIZZLE, Op.CONSTRUCT))
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


def check_comparison(symbol: str, a: ex.Operand, b: ex.Operand) -> None:
    """Warn if a comparison of an integer with a number always comes out alike.

    `i >= 0` of an unsigned id or size says nothing wrong, and stays without a warning.
    """
    if isinstance(a, Expr) and not isinstance(b, Expr):
        value, number = a, b
    elif isinstance(b, Expr) and not isinstance(a, Expr):
        value, number, symbol = b, a, MIRRORED[symbol]
    else:
        return
    scalar = component_type(value.dtype)
    if not is_integer_dtype(scalar) or not (is_scalar(value.dtype) or symbol in ("==", "!=")):
        return
    own = int(number) if ex.is_integer_number(number) else float(number)
    outcome = known_outcome(symbol, scalar, own)
    if outcome is None or within_library():
        return
    if symbol in (">=", "<") and number == 0 and _is_position(value):
        return
    low, high = bounds(scalar)
    text = (
        f"{symbol} {number}: this is {'always' if outcome else 'never'} true, since {scalar.name} holds "
        f"integers of {low} to {high}"
    )
    if _is_unsigned(value) and _is_difference(value):
        text += f"; {_advice(value)}"
    warn(text)


def check_difference(what: str, value: ex.Operand) -> None:
    """Warn if a function of a number's sign is given a difference of unsigned integers."""
    if isinstance(value, Expr) and _is_unsigned(value) and _is_difference(value) and not within_library():
        warn(f"{what} of {value.dtype.name}: {_advice(value)}")


def check_limit(what: str, value: ex.Operand, low: ex.Operand) -> None:
    """Warn if a difference of unsigned integers is limited by zero."""
    if not isinstance(low, Expr) and low == 0 and isinstance(value, Expr):
        check_difference(f"{what} with 0", value)


def check_conversion(what: str, value: ex.Operand, kind: DType) -> None:
    """Warn if `i - 4` of an unsigned id becomes a float, as in `(i - 4) * 0.5`: see `_wraps`."""
    if not isinstance(value, Expr) or value.dtype is kind or is_integer_dtype(component_type(kind)):
        return
    if _wraps(value):
        warn(f"{what} converts {value.dtype.name} to {component_type(kind).name}: {_advice(value)}")


def check_quotient(value: ex.Operand) -> None:
    """Warn about `(i - 1) // 2` of an unsigned id."""
    if isinstance(value, Expr) and _wraps(value):
        warn(f"// of {value.dtype.name}: {_advice(value)}")


def check_remainder(value: ex.Operand, divisor: ex.Operand) -> None:
    """Warn about `(i - 1) % n` of an unsigned id, unless `n` is a power of two, which wraps around alike."""
    if ex.is_integer_number(divisor) and not divisor & (divisor - 1):
        return
    if isinstance(value, Expr) and _wraps(value):
        warn(
            f"% of {value.dtype.name}: a difference of unsigned integers wraps around to large numbers; add "
            "the divisor first, as in (i + n - 1) % n"
        )


def _wraps(value: Expr) -> bool:
    """Whether a value is a difference such as `2 * i - 4`, which wraps around where the unsigned id is 0.

    So do `-i` and `1 - i` behind the first invocations. Products and comparisons of differences may still
    mean what they say. Behind an `if` or a `return`, the id may be large enough.
    """
    if value.op not in _MAY_WRAP or not _is_unsigned(value) or within_library():
        return False
    if is_tracing() and current().is_conditional:
        return False
    if _is_negated_id(value):
        return True
    where_zero = _find_bounds(value, {}, 0)
    return where_zero is not None and any(low < 0 and high <= 0 for low, high in where_zero)


def _is_negated_id(value: Expr) -> bool:
    """Whether a value is `-i`, `0 - i` or `1 - i` of an id."""
    if value.op is Op.UNARY:
        return value.value == "-" and _is_id(value.args[0])
    if value.op is not Op.BINARY or value.value != "-":
        return False
    first, second = value.args
    return first.op is Op.LITERAL and first.value in (0, 1) and _is_id(second)


def _is_id(value: Expr) -> bool:
    while value.op in (Op.COMPONENT, Op.SWIZZLE):
        value = value.args[0]
    return value.op is Op.BUILTIN and value.value in _IDS


_Bounds = list[tuple[float, float]]


def _find_bounds(value: Expr, known: dict[int, _Bounds | None], depth: int) -> _Bounds | None:
    """Return bounds of each component where all ids are 0, if integers had any size; None if unknown."""
    if depth > _MOST or not _is_unsigned(value):
        return None
    if id(value) not in known:
        known[id(value)] = None  # a register that is made of itself
        parts = [_find_bounds(each, known, depth + 1) for each in _operands(value)]
        known[id(value)] = None if None in parts else _combine(value, [part for part in parts if part])
    return known[id(value)]


def _operands(value: Expr) -> list[Expr]:
    if value.op is Op.REGISTER:
        return _find_values(value)
    return list(value.args)


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
    if value.op is Op.CONSTRUCT:
        joined = [each for part in parts for each in part]
        return joined * count if len(joined) == 1 else joined
    if value.op is not Op.BINARY or value.value not in _LINEAR | _REACHES_ZERO:
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


def _advice(value: Expr) -> str:
    signed = wider_type(-1, component_type(value.dtype))
    assert signed is not None
    return (
        "a difference of unsigned integers is never negative, but wraps around to large numbers: convert the "
        f"operands with .to_dtype(vd.{signed.name}) before subtracting"
    )


def _is_unsigned(value: Expr) -> bool:
    return is_integer_dtype(value.dtype) and not is_signed_dtype(value.dtype)


def _is_position(value: Expr) -> bool:
    """Whether a value is made of ids and sizes alone, without subtraction; registers are looked into."""
    return all(
        ex.is_position(node) or (node.op is Op.BINARY and node.value in ("+", "*"))
        for node in _sources(value)
    )


def _is_difference(value: Expr) -> bool:
    """Whether a value is, or is made of, a difference that may have wrapped around."""
    return any(
        node.op in (Op.BINARY, Op.UNARY) and node.value == "-" and _is_unsigned(node)
        for node in _sources(value)
    )


def _sources(value: Expr) -> Iterator[Expr]:
    """Expressions that a value is, or is a sum, product, choice or copy of, through registers."""
    waiting, seen = [value], set[int]()
    while waiting and len(seen) < _MOST:
        node = waiting.pop()
        key = id(node.value) if isinstance(node.value, Register) else id(node)
        if key in seen or not is_integer_dtype(node.dtype):
            continue
        seen.add(key)
        held = _find_values(node)
        if held:
            waiting += held
        elif node.op in _PASSED_ON:
            waiting += node.args[1:] if node.op is Op.SELECT else node.args[:1]
            if node.op is Op.CONSTRUCT:
                waiting += node.args[1:]
        else:
            yield node
            if node.op is Op.BINARY and node.value in _LINEAR:
                waiting += node.args


def _find_values(node: Expr) -> list[Expr]:
    """Values that a register was given so far; none for others."""
    if not isinstance(node.value, Register) or node.value.counter or not is_tracing():
        return []
    return current().values_of(node.value)
