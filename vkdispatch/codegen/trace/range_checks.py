"""Warnings about integers whose type makes an operation pointless, or wrong: unsigned differences."""

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
from vkdispatch.ir import Expr, Op, Register
from vkdispatch.ir import expressions as ex
from vkdispatch.ir.location import within_library
from vkdispatch.ir.numbers import MIRRORED, bounds, known_outcome, wider_type

# Operations whose value is negative, or wraps around, where one of their operands does.
_PASSED_ON = frozenset((Op.COMPONENT, Op.SWIZZLE, Op.INDEX, Op.CONSTRUCT, Op.SELECT))
_LINEAR = frozenset(("+", "-", "*"))
# Expressions are looked through this far.
_MOST = 64
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
    """Whether a value is `i - 4` of an unsigned id, which wraps around in the first invocations.

    Sums, products and comparisons may still mean what they say. Behind an `if` or a `return`, the id may be
    large enough.
    """
    if value.op is not Op.BINARY or value.value != "-" or not _is_unsigned(value) or within_library():
        return False
    first, second = value.args
    if not _is_id(first) or not (second.op is Op.ARGUMENT or (second.op is Op.LITERAL and second.value != 0)):
        return False
    return not (is_tracing() and current().is_conditional)


def _is_id(value: Expr) -> bool:
    """Whether a value is an id or a part of one, such as `i % 64`."""
    while value.op in (Op.COMPONENT, Op.SWIZZLE) or (value.op is Op.BINARY and value.value in _REACHES_ZERO):
        value = value.args[0]
    return value.op is Op.BUILTIN


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
