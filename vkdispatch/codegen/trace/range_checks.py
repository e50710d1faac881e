"""Warnings about integers whose type makes an operation pointless, or wrong."""

import math
from collections.abc import Iterator

from vkdispatch.base import dtype as dt
from vkdispatch.codegen.trace.current import current, is_tracing
from vkdispatch.compiler.ir import Builtin, Expr, Op, Register, Storage
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.literals import MIRRORED, bounds, known_outcome, wider_type
from vkdispatch.compiler.ir.location import warn, within_library

# ---- Values of integers in the first invocation, where ids are 0 -----------------------------------------


# Expressions are looked through this far.
MAX_EXPRESSIONS = 64
LINEAR = frozenset(("+", "-", "*"))
# Operations whose result is 0 where the first operand is.
_MAY_REACH_ZERO = frozenset(("%", "/", "&", ">>"))
# Builtin values that are 0 in the first invocation.
_IDS = frozenset(
    (
        *(Builtin.GLOBAL_INVOCATION_ID, Builtin.LOCAL_INVOCATION_ID, Builtin.LOCAL_INVOCATION_INDEX),
        *(Builtin.WORKGROUP_ID, Builtin.SUBGROUP_ID, Builtin.SUBGROUP_INVOCATION_ID),
    )
)


def is_unsigned(value: Expr) -> bool:
    """Whether a value is made of unsigned integers."""
    return dt.is_integer_dtype(value.dtype) and not dt.is_signed_dtype(value.dtype)


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
    if depth > MAX_EXPRESSIONS or not is_unsigned(value):
        return None
    if id(value) not in known:
        known[id(value)] = None  # a register that is made of itself
        parts = [_find_bounds(operand, known, depth + 1) for operand in _operands(value)]
        known[id(value)] = None if None in parts else _combine(value, [part for part in parts if part])
    return known[id(value)]


def _operands(value: Expr) -> list[Expr]:
    if value.op is Op.REGISTER:
        return find_values(value)
    return list(value.args[1:] if value.op is Op.SELECT else value.args)


def _combine(value: Expr, parts: list[_Bounds]) -> _Bounds | None:
    count = getattr(value.dtype, "child_count", 0) if not dt.is_scalar(value.dtype) else 1
    if value.op is Op.BUILTIN:
        return [(0, 0) if value.value in _IDS else (1, math.inf)] * count
    if value.op is Op.ARGUMENT:
        return [(1, math.inf)] * count
    if value.op is Op.LITERAL:
        _, high = bounds(dt.component_type(value.dtype))
        assert isinstance(value.value, (int, float))
        number = int(value.value)
        return [(number, number) if number <= high // 2 else (number - high - 1, number - high - 1)] * count
    if value.op is Op.REGISTER:
        return parts[0] if len(parts) == 1 else None
    if value.op in (Op.COMPONENT, Op.SWIZZLE):
        picked = ["xyzw".index(letter) for letter in str(value.value)]
        return [parts[0][min(position, len(parts[0]) - 1)] for position in picked]
    if value.op is Op.SELECT:
        pairs = zip(*(part * count if len(part) == 1 else part for part in parts), strict=True)
        return [(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
    if value.op is Op.CONSTRUCT:
        joined = [ends for part in parts for ends in part]
        return joined * count if len(joined) == 1 else joined
    if value.op is not Op.BINARY or value.value not in LINEAR | _MAY_REACH_ZERO:
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


# ---- Warnings about comparisons that always come out alike, and about unsigned differences ---------------


# Operations whose value is negative, or wraps around, where one of their operands does.
_PASSED_ON = frozenset((Op.COMPONENT, Op.SWIZZLE, Op.INDEX, Op.CONSTRUCT, Op.SELECT))
# Expressions that may hold a difference of unsigned integers.
_MAY_WRAP = frozenset((Op.BINARY, Op.UNARY, Op.REGISTER, Op.COMPONENT, Op.SWIZZLE, Op.CONSTRUCT))
# Operations that leave an id one that may be zero.
_REACHES_ZERO = frozenset(("%", "/", "*", "&")) | {">>"}


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
    scalar = dt.component_type(value.dtype)
    if not dt.is_integer_dtype(scalar) or not (dt.is_scalar(value.dtype) or symbol in ("==", "!=")):
        return
    plain = int(number) if ex.is_integer_number(number) else float(number)
    outcome = known_outcome(symbol, scalar, plain)
    if outcome is None or within_library():
        return
    if symbol in (">=", "<") and number == 0 and _is_position(value):
        return
    low, high = bounds(scalar)
    text = (
        f"{symbol} {number}: this is {'always' if outcome else 'never'} true, since {scalar.name} holds "
        f"integers of {low} to {high}"
    )
    if is_unsigned(value) and _is_difference(value):
        text += f"; {_advice(value)}"
    warn(text)


def check_difference(what: str, value: ex.Operand) -> None:
    """Warn if a function of a number's sign is given a difference of unsigned integers."""
    if isinstance(value, Expr) and is_unsigned(value) and _is_difference(value) and not within_library():
        warn(f"{what} of {value.dtype.name}: {_advice(value)}")


def check_limit(what: str, value: ex.Operand, low: ex.Operand) -> None:
    """Warn if a difference of unsigned integers is limited by zero."""
    if not isinstance(low, Expr) and low == 0 and isinstance(value, Expr):
        check_difference(f"{what} with 0", value)


def check_conversion(what: str, value: ex.Operand, kind: dt.DType) -> None:
    """Warn if `i - 4` or `-i` of unsigned integers becomes a float, as in `(i - 4) * 0.5`: see `_wraps`."""
    if not isinstance(value, Expr) or value.dtype is kind or dt.is_integer_dtype(dt.component_type(kind)):
        return
    if _wraps(value):
        warn(f"{what} converts {value.dtype.name} to {dt.component_type(kind).name}: {_advice(value)}")


def check_quotient(value: ex.Operand) -> None:
    """Warn about `(i - 1) // 2` of an unsigned id."""
    if isinstance(value, Expr) and _wraps(value):
        warn(f"// of {value.dtype.name}: {_advice(value)}")


def check_start(value: ex.Operand) -> None:
    """Warn about `range(i - 2, i + 3)` of an unsigned id: no rounds where the start wraps around."""
    if isinstance(value, Expr) and _wraps(value):
        warn(f"range: it has no rounds where its unsigned start wraps around; {_advice(value)}")


def check_index(value: ex.Operand) -> None:
    """Warn about `x[-i]` of an unsigned integer."""
    if isinstance(value, Expr) and _is_negation(value) and not within_library():
        warn(f"index: {_advice(value)}; kernels do not count from the end: x[x.size - i] does")


def check_remainder(value: ex.Operand, divisor: ex.Operand, *, floors: bool) -> None:
    """Warn about `(i - 1) % n` of an id: it wraps around, or is what a device makes of a negative number.

    An unsigned one may be divided by a power of two, which wraps around alike, and a signed one where the
    remainder `floors`.
    """
    if not isinstance(value, Expr):
        return
    if is_unsigned(value):
        power = ex.is_integer_number(divisor) and not divisor & (divisor - 1)
        if not power and _wraps(value):
            warn(
                f"% of {value.dtype.name}: a difference of unsigned integers wraps around to large numbers; "
                "add the divisor first, as in (i + n - 1) % n"
            )
    elif not floors and _is_id_less(value) and not within_library() and not _is_conditional():
        warn(
            f"% of {value.dtype.name}: the remainder of a negative number is what the device makes of it, "
            "often a negative number; add the divisor first, as in (i + n - 1) % n, or write "
            "vc.floor_mod(i - 1, n)"
        )


def _wraps(value: Expr) -> bool:
    """Whether an unsigned value is `-i`, `1 - i` or `2 * i - 4` of an id or an element, which may wrap.

    Sums, products and comparisons may still mean what they say. Behind an `if` or a `return`, the id may be
    large enough for a difference.
    """
    if not is_unsigned(value) or within_library():
        return False
    if _has_negation(value):
        return True
    if _is_conditional() or value.op not in _MAY_WRAP:
        return False
    return _is_id_less(_without_factor(value)) or _is_less_an_id(value) or is_negative_at_zero(value)


def _is_less_an_id(value: Expr) -> bool:
    """Whether a value is `0 - i` or `1 - i` of an id."""
    if value.op is not Op.BINARY or value.value != "-":
        return False
    first, second = value.args
    return first.op is Op.LITERAL and first.value in (0, 1) and is_whole_id(second)


def _without_factor(value: Expr) -> Expr:
    """Return what a number multiplies."""
    while value.op is Op.BINARY and value.value == "*" and value.args[1].op is Op.LITERAL:
        value = value.args[0]
    return value


def _is_conditional() -> bool:
    return is_tracing() and current().is_conditional


def _is_negation(value: Expr) -> bool:
    return _is_minus(value) and is_unsigned(value)


def _has_negation(value: Expr) -> bool:
    """Whether a value is `-i`, or a product with one such factor."""
    if value.op is Op.BINARY and value.value == "*":
        first, second = map(_has_negation, value.args)
        return first != second
    return _is_negation(value)


def _is_id_less(value: Expr) -> bool:
    """Whether a value is an id, or an element, less a number, an argument or a narrow element."""
    if value.op is not Op.BINARY or value.value not in ("-", "+") or not dt.is_scalar(value.dtype):
        return False
    first, second = map(_source_of, value.args)
    if value.value == "+":
        return _is_id(first) and _starts_below_zero(second)
    if not (_is_id(first) or (is_unsigned(value) and _is_unsigned_element(first))):
        return False
    if _is_narrow(first) and _is_narrow(second):
        return True
    return second.op is Op.ARGUMENT or (
        second.op is Op.LITERAL and isinstance(second.value, int) and second.value > 0
    )


def _starts_below_zero(value: Expr) -> bool:
    """Whether a value is a negative number, or counts the rounds of a loop that starts below zero."""
    counter = value.value
    if isinstance(counter, Register) and counter.counter and is_tracing():
        start = current().start_of(counter)
        return start is not None and (_is_minus(start) or _is_below_zero(start))
    return _is_below_zero(value)


def _is_minus(value: Expr) -> bool:
    return value.op is Op.UNARY and value.value == "-"


def _is_below_zero(value: Expr) -> bool:
    return value.op is Op.LITERAL and isinstance(value.value, int) and value.value < 0


def _source_of(value: Expr) -> Expr:
    """Return what an integer was before a cast, or before a variable got it as its only value."""
    while True:
        held = find_values(value)
        if len(held) == 1:
            value = held[0]
        elif value.op is Op.CONSTRUCT and len(value.args) == 1 and dt.is_integer_dtype(value.args[0].dtype):
            (value,) = value.args
        else:
            return value


def _is_unsigned_element(value: Expr) -> bool:
    return isinstance(value.value, Storage) and value.op is Op.ELEMENT and is_unsigned(value)


def _is_narrow(value: Expr) -> bool:
    """Whether a value is an element of uint8 or uint16: the pixel of an image, not an offset."""
    return (
        value.op is Op.ELEMENT
        and isinstance(value.value, Storage)
        and value.value.dtype in (dt.uint8, dt.uint16)
    )


def _is_id(value: Expr) -> bool:
    """Whether a value is an id or a part of one, such as `i % 64`."""
    while value.op in (Op.COMPONENT, Op.SWIZZLE) or (value.op is Op.BINARY and value.value in _REACHES_ZERO):
        value = value.args[0]
    return is_whole_id(value)


def _advice(value: Expr) -> str:
    signed = wider_type(-1, dt.component_type(value.dtype))
    assert signed is not None
    if _has_negation(value):
        return (
            "the negative of an unsigned integer wraps around to a large number: convert it with "
            f".to_dtype(vd.{signed.name}) first"
        )
    return (
        "a difference of unsigned integers is never negative, but wraps around to large numbers: convert the "
        f"operands with .to_dtype(vd.{signed.name}) before subtracting"
    )


def _is_position(value: Expr) -> bool:
    """Whether a value is made of ids and sizes alone, without subtraction; registers are looked into."""
    return all(
        ex.is_position(node) or (node.op is Op.BINARY and node.value in ("+", "*"))
        for node in _sources(value)
    )


def _is_difference(value: Expr) -> bool:
    """Whether a value is, or is made of, a difference that may have wrapped around."""
    return any(
        node.op in (Op.BINARY, Op.UNARY) and node.value == "-" and is_unsigned(node)
        for node in _sources(value)
    )


def _sources(value: Expr) -> Iterator[Expr]:
    """Expressions that a value is, or is a sum, product, choice or copy of, through registers."""
    waiting, seen = [value], set[int]()
    while waiting and len(seen) < MAX_EXPRESSIONS:
        node = waiting.pop()
        key = id(node.value) if isinstance(node.value, Register) else id(node)
        if key in seen or not dt.is_integer_dtype(node.dtype):
            continue
        seen.add(key)
        held = find_values(node)
        if held:
            waiting += held
        elif node.op in _PASSED_ON:
            waiting += node.args[1:] if node.op is Op.SELECT else node.args[:1]
            if node.op is Op.CONSTRUCT:
                waiting += node.args[1:]
        else:
            yield node
            if node.op is Op.BINARY and node.value in LINEAR:
                waiting += node.args
