"""Arithmetic of numbers, vectors, matrices and complex numbers; powers and elementary functions."""

from collections.abc import Sequence

from vkdispatch.base.derived_dtypes import cross_multiply_type
from vkdispatch.base.dtype import (
    DType,
    bool_,
    complex_from_float,
    component_type,
    float16,
    float32,
    float64,
    int32,
    int64,
    is_complex,
    is_float_dtype,
    is_integer_dtype,
    is_matrix,
    is_scalar,
    is_signed_dtype,
    is_vector,
    make_floating_dtype,
    to_vector,
    uint32,
    uint64,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.compiler.ir import Expr, Op
from vkdispatch.compiler.ir.construction import (
    by_component,
    call,
    cast,
    compare,
    component,
    construct,
    cross_dtypes,
    logical,
    meet,
    promote,
    select,
)
from vkdispatch.compiler.ir.literals import (
    Number,
    Operand,
    bounds,
    fits,
    is_integer_number,
    literal,
    make_node,
    wrap,
    wrap_literal,
)
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.ir.statements import INTEGER_POWER, own_name

# ---- Arithmetic of numbers, vectors, matrices and complex numbers ----------------------------------------


_BITWISE_OF_BOOL = {"&": "&&", "|": "||"}


def add(symbol: str, a: Operand, b: Operand) -> Expr:
    """Make `a + b` or `a - b`.

    `u + -1` of an unsigned value is `u - 1`.
    """
    if symbol == "+" and _is_negative(a, b):
        a, b = b, a
    if _is_negative(b, a):
        symbol, b = "-" if symbol == "+" else "+", -int(b)  # type: ignore[arg-type]
    kind, operands = meet((a, b), symbol)
    return make_node(Op.BINARY, kind, tuple(operands), symbol)


def _is_negative(number: Operand, beside: Operand) -> bool:
    """Whether a number is the negative of one that the unsigned type of a value holds."""
    return (
        is_integer_number(number)
        and number < 0
        and isinstance(beside, Expr)
        and is_integer_dtype(beside.dtype)
        and fits(-int(number), component_type(beside.dtype))
        and not is_signed_dtype(beside.dtype)
    )


def multiply(a: Operand, b: Operand) -> Expr:
    """Make `a * b`.

    By component for vectors, and the products of algebra for matrices and complex numbers.
    """
    if isinstance(a, Expr) and isinstance(b, Expr):
        if is_complex(a.dtype) and is_complex(b.dtype):
            return complex_product(a, b)
        if is_matrix(a.dtype) and is_matrix(b.dtype) and a.dtype is b.dtype:
            return make_node(Op.BINARY, a.dtype, (a, b), "*")
        if is_matrix(a.dtype) or is_matrix(b.dtype):
            return _matrix_product(a, b)
    for value, factor in ((a, b), (b, a)):
        if isinstance(value, Expr) and is_complex(value.dtype):
            return _scale_complex(value, factor, "*")
    kind, operands = meet((a, b), "*")
    return make_node(Op.BINARY, kind, tuple(operands), "*")


def _matrix_product(a: Expr, b: Expr) -> Expr:
    kind = cross_dtypes(cross_multiply_type, a.dtype, b.dtype, "*")
    operands = tuple(cast(value, float32) if is_scalar(value.dtype) else value for value in (a, b))
    return make_node(Op.BINARY, kind, operands, "*")


def matmul(a: Expr, b: Expr) -> Expr:
    """Make `a @ b` of matrices and vectors.

    Two vectors give their dot product. Raises TypeError for others.
    """
    if is_vector(a.dtype) and is_vector(b.dtype):
        return dot(a, b)
    kinds = (a.dtype, b.dtype)
    if all(is_matrix(kind) or is_vector(kind) for kind in kinds):
        return multiply(a, b)
    raise located(
        ArgumentTypeError, f"@: expected matrices or vectors, got {a.dtype.name} and {b.dtype.name}"
    )


def dot(a: Expr, b: Expr) -> Expr:
    """Dot product; of integer vectors and scalars too."""
    kind, (left, right) = meet((a, b), "dot")
    scalar = component_type(kind)
    if is_scalar(kind):
        return multiply(left, right)
    left, right = cast(left, kind), cast(right, kind)
    if is_float_dtype(kind):
        return call("dot", scalar, left, right)
    terms = [multiply(component(left, i), component(right, i)) for i in range(kind.child_count)]
    total = terms[0]
    for term in terms[1:]:
        total = add("+", total, term)
    return total


def divide(a: Operand, b: Operand) -> Expr:
    """Make `a / b`, always in floating point.

    Raises ValueError for a matrix divided by a matrix or vector.
    """
    if isinstance(b, Expr):
        if is_complex(b.dtype):
            return _divide_by_complex(a, b)
        if is_matrix(b.dtype) and isinstance(a, Expr) and not is_scalar(a.dtype):
            raise located(
                ArgumentValueError, f"/: {a.dtype.name} cannot be divided by {b.dtype.name}; use vc.inverse"
            )
    if isinstance(a, Expr) and is_complex(a.dtype):
        return _scale_complex(a, b, "/")
    kind, operands = meet((a, b), "/", floating=True)
    return make_node(Op.BINARY, kind, tuple(operands), "/")


def floor_divide(a: Operand, b: Operand) -> Expr:
    """Make `a // b` of integers.

    It truncates towards zero, but floors when `b` is a positive power of two.
    """
    check_divisor("//", b)
    kind, operands = _integers("//", a, b)
    if is_integer_number(b) and b > 0 and b & (b - 1) == 0 and is_signed_dtype(kind):
        shift = literal(int(b).bit_length() - 1, component_type(kind))
        return make_node(Op.BINARY, kind, (operands[0], shift), ">>")
    return make_node(Op.BINARY, kind, tuple(operands), "/")


def modulo(a: Operand, b: Operand) -> Expr:
    """Make `a % b` of integers."""
    check_divisor("%", b)
    kind, operands = _integers("%", a, b)
    return make_node(Op.BINARY, kind, tuple(operands), "%")


def check_divisor(symbol: str, b: Operand) -> None:
    """Raise ValueError for an integer division by a 0 that is known: devices give anything for it."""
    if is_integer_number(b) and b == 0:
        raise located(ArgumentValueError, f"{symbol}: integer division by zero")


def _integers(symbol: str, a: Operand, b: Operand) -> tuple[DType, list[Expr]]:
    a, b = _number_of(a), _number_of(b)
    for value in (a, b):
        whole = is_integer_dtype(value.dtype) if isinstance(value, Expr) else is_integer_number(value)
        if not whole:
            what = value.dtype.name if isinstance(value, Expr) else repr(value)
            hint = {"//": "; see vc.floor_divide", "%": "; see vc.mod"}.get(symbol, "")
            raise located(ArgumentTypeError, f"{symbol}: both operands must be integers, got {what}{hint}")
    return meet((a, b), symbol)


def bitwise(symbol: str, a: Operand, b: Operand) -> Expr:
    """Make `& | ^ << >>` of integers; `& | ^` of two booleans are their logical counterparts.

    Beside an integer a boolean is 0 or 1. A shift has the type of its left operand.
    """
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is bool_ and b.dtype is bool_:
        if symbol == "^":
            return make_node(Op.COMPARE, bool_, (a, b), "!=")
        if symbol in _BITWISE_OF_BOOL:
            return logical(_BITWISE_OF_BOOL[symbol], (a, b))
    for mask, beside in ((a, b), (b, a)):
        if is_integer_number(mask) and mask < 0 and isinstance(beside, Expr) and beside.dtype is bool_:
            raise located(
                ArgumentTypeError,
                f"{symbol}: a bool and {mask}, which is ~{mask == -2} in Python; use `not` of Python's bools"
                if mask in (-1, -2)
                else f"{symbol}: a bool and {mask}; convert the bool with .to_dtype(vd.int32)",
            )
    a, b = _number_of(a), _number_of(b)
    if symbol in ("<<", ">>"):
        return _shift(symbol, a, b)
    kind, operands = _integers(symbol, _mask(symbol, a, b), _mask(symbol, b, a))
    return make_node(Op.BINARY, kind, tuple(operands), symbol)


def _shift(symbol: str, a: Operand, count: Operand) -> Expr:
    if isinstance(a, Expr):
        _check_shift(symbol, count, a.dtype)
    kind, operands = _integers(symbol, a, count)
    if isinstance(a, Expr):
        scalar = component_type(a.dtype)
        kind = a.dtype if is_scalar(kind) else to_vector(scalar, kind.child_count)
        # only the count is converted: a signed value in place of an unsigned one would keep its sign
        operands = [a, literal(count, scalar) if not isinstance(count, Expr) else _count(count, scalar)]
    return make_node(Op.BINARY, kind, (cast(operands[0], kind), operands[1]), symbol)


def _count(count: Expr, scalar: DType) -> Expr:
    """Convert the count of a shift to the scalar type of what is shifted, component by component."""
    return cast(count, to_vector(scalar, count.dtype.child_count) if is_vector(count.dtype) else scalar)


def _number_of(value: Operand) -> Operand:
    """Return an operand as a number: a boolean is 0 or 1."""
    return cast(value, int32) if isinstance(value, Expr) and value.dtype is bool_ else value


def _check_shift(symbol: str, count: Operand, kind: DType) -> None:
    bits = 8 * component_type(kind).item_size
    if is_integer_number(count) and not 0 <= count < bits:
        raise located(
            ArgumentValueError, f"{symbol}: {kind.name} is shifted by 0 to {bits - 1} bits, got {count}"
        )


def _mask(symbol: str, value: Operand, beside: Operand) -> Operand:
    if is_integer_number(value) and isinstance(beside, Expr) and is_integer_dtype(beside.dtype):
        return changed_number(symbol, int(value), component_type(beside.dtype))
    return value


def changed_number(symbol: str, value: int, scalar: DType) -> int:
    """Return a number as it takes part in an operation modulo a power of two with an integer type.

    Bits of a number as wide as the type stay what they are, also in a signed type. `&` with an unsigned value
    takes any number, since the bits above are zeros there. Negative numbers are added to unsigned ones.
    """
    low, high = bounds(scalar)
    if symbol in "+-":
        return wrap(value, scalar) if low == 0 and -high <= value < 0 else value
    if low < 0:
        return wrap(value, scalar) if 0 <= value <= 2 * high + 1 else value
    return wrap(value, scalar) if symbol == "&" else value


def negate(value: Expr) -> Expr:
    """`-value`."""
    if value.dtype is bool_:
        value = cast(value, int32)
    if value.op is Op.LITERAL and isinstance(value.value, (int, float)):
        return wrap_literal(-value.value, value.dtype)
    if value.op is Op.UNARY and value.value == "-":
        return value.args[0]
    scalar = component_type(value.dtype)
    if value.op is Op.CALL and value.value == "abs" and is_integer_dtype(scalar) and is_signed_dtype(scalar):
        # NVIDIA's compiler (driver 580) compares -abs(x) with numbers wrongly
        (number,) = value.args
        return call("min", value.dtype, number, negate(number))
    return make_node(Op.UNARY, value.dtype, (value,), "-")


def invert(value: Expr) -> Expr:
    """`~value` of integers; of a truth value its opposite."""
    if value.dtype is bool_:
        return make_node(Op.UNARY, bool_, (value,), "!")
    if not is_integer_dtype(value.dtype):
        raise located(ArgumentTypeError, f"~: the operand must be an integer, got {value.dtype.name}")
    return make_node(Op.UNARY, value.dtype, (value,), "~")


def absolute(value: Expr) -> Expr:
    """`abs(value)`: keeps the type; of a complex number its magnitude."""
    kind = value.dtype
    if is_complex(kind):
        return call("length", component_type(kind), value)
    if is_matrix(kind):
        raise located(ArgumentValueError, f"abs: not defined for {kind.name}; take its columns")
    if kind is bool_ or (is_integer_dtype(kind) and not is_signed_dtype(kind)):
        return value
    if value.op is Op.LITERAL and isinstance(value.value, (int, float)):
        # glslang returns a negative literal of 64 bits as it is
        return wrap_literal(abs(value.value), kind)
    return call("abs", kind, value)


def complex_product(a: Expr, b: Expr) -> Expr:
    """Product of two complex values in their promoted type."""
    kind = promote(a.dtype, b.dtype, "*")
    a, b = cast(a, kind), cast(b, kind)
    (ar, ai), (br, bi) = _parts(a), _parts(b)
    real = add("-", multiply(ar, br), multiply(ai, bi))
    imaginary = add("+", multiply(ar, bi), multiply(ai, br))
    return make_node(Op.CONSTRUCT, kind, (real, imaginary))


def conjugate(value: Expr) -> Expr:
    """Complex conjugate."""
    real, imaginary = _parts(value)
    return make_node(Op.CONSTRUCT, value.dtype, (real, negate(imaginary)))


def _parts(value: Expr) -> tuple[Expr, Expr]:
    return component(value, 0), component(value, 1)


def _scale_complex(value: Expr, factor: Operand, symbol: str) -> Expr:
    scalar = component_type(value.dtype)
    if not isinstance(factor, Expr):
        factor = literal(factor, scalar)
    kind = promote(value.dtype, factor.dtype, symbol)
    operands = (cast(value, kind), cast(factor, component_type(kind)))
    return make_node(Op.BINARY, kind, operands, symbol)


def _divide_by_complex(a: Operand, b: Expr) -> Expr:
    scalar = component_type(b.dtype)
    if not isinstance(a, Expr):
        a = literal(a, scalar)
    kind = promote(a.dtype, b.dtype, "/")
    a, b = cast(a, kind), cast(b, kind)
    norm = call("dot", component_type(kind), b, b)
    return _scale_complex(complex_product(a, conjugate(b)), norm, "/")


def as_complex(value: Expr | Number | complex, kind: DType | None = None) -> Expr:
    """Complex value of a number or value; `kind` defaults to the complex type of its own width."""
    if kind is None:
        if isinstance(value, Expr):
            real = make_floating_dtype(component_type(value.dtype))
            kind = value.dtype if is_complex(value.dtype) else complex_from_float(real)
        else:
            kind = complex_from_float(float32)
    return construct(kind, (value,))


# ---- Powers, and calls of functions of mathematics -------------------------------------------------------


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
