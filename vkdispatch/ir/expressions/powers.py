"""Powers, and calls of functions of mathematics."""

from collections.abc import Sequence

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float16,
    float32,
    float64,
    int32,
    int64,
    is_complex,
    is_integer_dtype,
    is_matrix,
    is_signed_dtype,
    is_vector,
    to_vector,
    uint32,
    uint64,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.ir import Expr
from vkdispatch.ir.expressions.arithmetic import absolute, bitwise, divide, multiply
from vkdispatch.ir.expressions.comparisons import compare, select
from vkdispatch.ir.expressions.construction import by_component, call, cast, meet
from vkdispatch.ir.expressions.literals import Operand, is_integer_number, literal
from vkdispatch.ir.location import located
from vkdispatch.ir.own_functions import INTEGER_POWER, own_name

# Functions to and from the bits of a float, and the type of these.
BITS_OF: dict[DType, tuple[str, str, DType]] = {
    float32: ("floatBitsToUint", "uintBitsToFloat", uint32),
    float64: ("doubleBitsToUint64", "uint64BitsToDouble", uint64),
}
# Whole exponents up to here multiply.
_FACTORS = 64


def power(base: Operand, exponent: Operand, *, precise: bool = False) -> Expr:
    """Make `base ** exponent`: of two integers an integer, as in Python.

    A negative exponent that is known gives a float. Of one that is not, the power is rounded towards zero.
    """
    known = is_integer_number(exponent)
    if _is_whole(base) and _is_whole(exponent) and not (known and exponent <= 0):  # type: ignore[operator]
        return _integer_power(base, exponent)
    return float_power(base, exponent, precise=precise)


def _is_whole(value: Operand) -> bool:
    if isinstance(value, Expr):
        return value.dtype is bool_ or is_integer_dtype(value.dtype)
    return is_integer_number(value)


def _integer_power(base: Operand, exponent: Operand) -> Expr:
    if isinstance(exponent, Expr) and not isinstance(base, Expr) and base < 0:
        scalar = component_type(exponent.dtype)
        if scalar is not bool_ and not is_signed_dtype(scalar):
            exponent = cast(exponent, _like(int64 if scalar is uint64 else int32, exponent.dtype))
    kind, operands = meet((base, exponent), "**")
    scalar = component_type(kind)
    wide = scalar if scalar.item_size >= 4 else int32 if is_signed_dtype(scalar) else uint32

    def rule(x: Expr, n: Expr) -> Expr:
        return cast(call(INTEGER_POWER, wide, cast(x, wide), cast(n, wide)), scalar)

    return operands[0] if exponent == 1 else by_component(rule, kind, *operands)


def float_power(base: Operand, exponent: Operand, *, precise: bool = False) -> Expr:
    """Make `base ** exponent` in floating point.

    Exponents that are whole have powers of negative numbers too: known ones up to 64 multiply, the others go
    to our own function. Exponents of 1/2 are square roots. See `elementary` for `precise`.
    """
    whole = not isinstance(exponent, Expr) and exponent == exponent // 1
    algebraic = isinstance(base, Expr) and (is_complex(base.dtype) or is_matrix(base.dtype))
    if isinstance(base, Expr) and not isinstance(exponent, Expr) and whole:
        count = int(exponent)
        if algebraic and 1 <= abs(count) <= 16:
            return _whole_power(base, count)
        if not algebraic and 1 <= abs(count) <= _FACTORS:
            kind, (factor, _) = meet((base, exponent), "**", floating=True)
            if component_type(kind) is float16 and abs(count) > 2:
                # halves overflow before their powers do
                factor = cast(factor, _like(float32, kind))
            return cast(_whole_power(factor, count), kind)
    for value in (base, exponent):
        if isinstance(value, Expr) and (is_complex(value.dtype) or is_matrix(value.dtype)):
            raise located(
                ArgumentTypeError,
                f"**: {value.dtype.name} has only powers of 1 to 16 and -1 to -16 as Python numbers",
            )
    if isinstance(exponent, Expr):
        if exponent.dtype is bool_ or is_integer_dtype(exponent.dtype):
            return _power_of_integer_exponent(base, exponent)
        if not isinstance(base, Expr) and base < 0:
            raise located(
                ArgumentValueError,
                f"**: a negative number, {base}, needs an integer as its exponent, got {exponent.dtype.name}",
            )
    kind, operands = meet((base, exponent), "**", floating=True)
    if not isinstance(exponent, Expr):
        if exponent == 0:
            return cast(literal(1, component_type(kind)), kind)
        if abs(exponent) == 0.5:
            root = call("sqrt", kind, operands[0])
            return root if exponent > 0 else divide(1, root)
    return elementary("pow", kind, operands, glsl="pow", precise=precise or whole)


def _power_of_integer_exponent(base: Operand, exponent: Expr) -> Expr:
    """Make the power of an exponent whose last bit says which sign powers of negative numbers have."""
    kind, (factor, _) = meet((base, exponent), "**", floating=True)
    scalar = component_type(kind)
    wide: DType = float64 if scalar is float64 else float32
    number = cast(exponent, int32) if exponent.dtype is bool_ else exponent

    def rule(x: Expr, n: Expr) -> Expr:
        size = call(own_name("pow", wide), wide, absolute(cast(x, wide)), cast(n, wide))
        odd = compare("!=", bitwise("&", n, 1), 0)
        return cast(select(odd, copy_sign(size, cast(x, wide)), size), scalar)

    return by_component(rule, kind, factor, number)


def _whole_power(base: Expr, exponent: int) -> Expr:
    if is_matrix(base.dtype) and exponent < 0:
        raise located(ArgumentTypeError, f"**: use vc.inverse for negative powers of {base.dtype.name}")
    square = base
    result: Expr | None = None
    left = abs(exponent)
    while left:
        if left & 1:
            result = square if result is None else multiply(result, square)
        left >>= 1
        if left:
            square = multiply(square, square)
    assert result is not None
    return result if exponent > 0 else divide(1, result)


def copy_sign(size: Expr, sign: Expr) -> Expr:
    """Make a float32 or float64 with the sign of another, by their bits."""
    to_bits, from_bits, word = BITS_OF[size.dtype]
    top = 1 << (8 * word.item_size - 1)
    kept = bitwise("&", call(to_bits, word, size), top - 1)
    return call(from_bits, size.dtype, bitwise("|", kept, bitwise("&", call(to_bits, word, sign), top)))


def elementary(
    function: str, kind: DType, args: Sequence[Expr], *, glsl: str | None = None, precise: bool = False
) -> Expr:
    """Call a function of mathematics: GLSL's, which has no double version and may be loose, or our own.

    Ours is taken for float64, if `precise`, and where GLSL has none (`glsl` is None). float16 goes through
    float32 there.
    """
    scalar = component_type(kind)
    if glsl is not None and scalar is not float64 and not precise:
        return call(glsl, kind, *(cast(arg, kind) for arg in args))
    wide = _like(float64 if scalar is float64 else float32, kind)
    args = [cast(cast(arg, kind), wide) for arg in args]
    return cast(call(own_name(function, wide), wide, *args), kind)


def _like(scalar: DType, kind: DType) -> DType:
    return to_vector(scalar, kind.child_count) if is_vector(kind) else scalar
