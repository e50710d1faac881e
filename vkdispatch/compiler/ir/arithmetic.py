"""Arithmetic of numbers, vectors, matrices and complex numbers; powers and elementary functions."""

from collections.abc import Sequence

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import cross_multiply_type, vector_like
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.compiler.ir import construction, literals
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.ir.program import INTEGER_POWER, Expr, Op, own_name

# ---- Arithmetic of numbers, vectors, matrices and complex numbers ----------------------------------------


_BITWISE_OF_BOOL = {"&": "&&", "|": "||"}


def add(symbol: str, a: literals.Operand, b: literals.Operand) -> Expr:
    """Make `a + b` or `a - b`.

    `u + -1` of an unsigned value is `u - 1`.
    """
    if symbol == "+" and _is_negative(a, b):
        a, b = b, a
    if _is_negative(b, a):
        symbol, b = "-" if symbol == "+" else "+", -int(b)  # type: ignore[arg-type]
    kind, operands = construction.meet((a, b), symbol)
    return literals.make_node(Op.BINARY, kind, tuple(operands), symbol)


def _is_negative(number: literals.Operand, beside: literals.Operand) -> bool:
    """Whether a number is the negative of one that the unsigned type of a value holds."""
    return (
        literals.is_integer_number(number)
        and number < 0
        and isinstance(beside, Expr)
        and dt.is_integer_dtype(beside.dtype)
        and literals.fits(-int(number), dt.component_type(beside.dtype))
        and not dt.is_signed_dtype(beside.dtype)
    )


def multiply(a: literals.Operand, b: literals.Operand) -> Expr:
    """Make `a * b`.

    By component for vectors, and the products of algebra for matrices and complex numbers.
    """
    if isinstance(a, Expr) and isinstance(b, Expr):
        if dt.is_complex(a.dtype) and dt.is_complex(b.dtype):
            return complex_product(a, b)
        if dt.is_matrix(a.dtype) and dt.is_matrix(b.dtype) and a.dtype is b.dtype:
            return literals.make_node(Op.BINARY, a.dtype, (a, b), "*")
        if dt.is_matrix(a.dtype) or dt.is_matrix(b.dtype):
            return _matrix_product(a, b)
    for value, factor in ((a, b), (b, a)):
        if isinstance(value, Expr) and dt.is_complex(value.dtype):
            return _scale_complex(value, factor, "*")
    kind, operands = construction.meet((a, b), "*")
    return literals.make_node(Op.BINARY, kind, tuple(operands), "*")


def _matrix_product(a: Expr, b: Expr) -> Expr:
    kind = construction.cross_dtypes(cross_multiply_type, a.dtype, b.dtype, "*")
    operands = tuple(
        construction.cast(value, dt.float32) if dt.is_scalar(value.dtype) else value for value in (a, b)
    )
    return literals.make_node(Op.BINARY, kind, operands, "*")


def matmul(a: Expr, b: Expr) -> Expr:
    """Make `a @ b` of matrices and vectors.

    Two vectors give their dot product. Raises TypeError for others.
    """
    if dt.is_vector(a.dtype) and dt.is_vector(b.dtype):
        return dot(a, b)
    kinds = (a.dtype, b.dtype)
    if all(dt.is_matrix(kind) or dt.is_vector(kind) for kind in kinds):
        return multiply(a, b)
    raise located(
        ArgumentTypeError, f"@: expected matrices or vectors, got {a.dtype.name} and {b.dtype.name}"
    )


def dot(a: Expr, b: Expr) -> Expr:
    """Dot product; of integer vectors and scalars too."""
    kind, (left, right) = construction.meet((a, b), "dot")
    scalar = dt.component_type(kind)
    if dt.is_scalar(kind):
        return multiply(left, right)
    left, right = construction.cast(left, kind), construction.cast(right, kind)
    if dt.is_float_dtype(kind):
        return construction.call("dot", scalar, left, right)
    terms = [
        multiply(construction.component(left, i), construction.component(right, i))
        for i in range(kind.child_count)
    ]
    total = terms[0]
    for term in terms[1:]:
        total = add("+", total, term)
    return total


def divide(a: literals.Operand, b: literals.Operand) -> Expr:
    """Make `a / b`, always in floating point.

    Raises ValueError for a matrix divided by a matrix or vector.
    """
    if isinstance(b, Expr):
        if dt.is_complex(b.dtype):
            return _divide_by_complex(a, b)
        if dt.is_matrix(b.dtype) and isinstance(a, Expr) and not dt.is_scalar(a.dtype):
            raise located(
                ArgumentValueError, f"/: {a.dtype.name} cannot be divided by {b.dtype.name}; use vc.inverse"
            )
    if isinstance(a, Expr) and dt.is_complex(a.dtype):
        return _scale_complex(a, b, "/")
    kind, operands = construction.meet((a, b), "/", floating=True)
    return literals.make_node(Op.BINARY, kind, tuple(operands), "/")


def floor_divide(a: literals.Operand, b: literals.Operand) -> Expr:
    """Make `a // b` of integers.

    It truncates towards zero, but floors when `b` is a positive power of two.
    """
    check_divisor("//", b)
    kind, operands = _integers("//", a, b)
    if literals.is_integer_number(b) and b > 0 and b & (b - 1) == 0 and dt.is_signed_dtype(kind):
        shift = literals.literal(int(b).bit_length() - 1, dt.component_type(kind))
        return literals.make_node(Op.BINARY, kind, (operands[0], shift), ">>")
    return literals.make_node(Op.BINARY, kind, tuple(operands), "/")


def modulo(a: literals.Operand, b: literals.Operand) -> Expr:
    """Make `a % b` of integers."""
    check_divisor("%", b)
    kind, operands = _integers("%", a, b)
    return literals.make_node(Op.BINARY, kind, tuple(operands), "%")


def check_divisor(symbol: str, b: literals.Operand) -> None:
    """Raise ValueError for an integer division by a 0 that is known: devices give anything for it."""
    if literals.is_integer_number(b) and b == 0:
        raise located(ArgumentValueError, f"{symbol}: integer division by zero")


def _integers(symbol: str, a: literals.Operand, b: literals.Operand) -> tuple[dt.DType, list[Expr]]:
    a, b = _number_of(a), _number_of(b)
    for value in (a, b):
        whole = (
            dt.is_integer_dtype(value.dtype) if isinstance(value, Expr) else literals.is_integer_number(value)
        )
        if not whole:
            what = value.dtype.name if isinstance(value, Expr) else repr(value)
            hint = {"//": "; see vc.floor_divide", "%": "; see vc.mod"}.get(symbol, "")
            raise located(ArgumentTypeError, f"{symbol}: both operands must be integers, got {what}{hint}")
    return construction.meet((a, b), symbol)


def bitwise(symbol: str, a: literals.Operand, b: literals.Operand) -> Expr:
    """Make `& | ^ << >>` of integers; `& | ^` of two booleans are their logical counterparts.

    Beside an integer a boolean is 0 or 1. A shift has the type of its left operand.
    """
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is dt.bool_ and b.dtype is dt.bool_:
        if symbol == "^":
            return literals.make_node(Op.COMPARE, dt.bool_, (a, b), "!=")
        if symbol in _BITWISE_OF_BOOL:
            return construction.logical(_BITWISE_OF_BOOL[symbol], (a, b))
    for mask, beside in ((a, b), (b, a)):
        if (
            literals.is_integer_number(mask)
            and mask < 0
            and isinstance(beside, Expr)
            and beside.dtype is dt.bool_
        ):
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
    return literals.make_node(Op.BINARY, kind, tuple(operands), symbol)


def _shift(symbol: str, a: literals.Operand, count: literals.Operand) -> Expr:
    if isinstance(a, Expr):
        _check_shift(symbol, count, a.dtype)
    kind, operands = _integers(symbol, a, count)
    if isinstance(a, Expr):
        scalar = dt.component_type(a.dtype)
        kind = a.dtype if dt.is_scalar(kind) else dt.to_vector(scalar, kind.child_count)
        # only the count is converted: a signed value in place of an unsigned one would keep its sign
        operands = [
            a,
            literals.literal(count, scalar) if not isinstance(count, Expr) else _count(count, scalar),
        ]
    return literals.make_node(Op.BINARY, kind, (construction.cast(operands[0], kind), operands[1]), symbol)


def _count(count: Expr, scalar: dt.DType) -> Expr:
    """Convert the count of a shift to the scalar type of what is shifted, component by component."""
    return construction.cast(
        count, dt.to_vector(scalar, count.dtype.child_count) if dt.is_vector(count.dtype) else scalar
    )


def _number_of(value: literals.Operand) -> literals.Operand:
    """Return an operand as a number: a boolean is 0 or 1."""
    return (
        construction.cast(value, dt.int32) if isinstance(value, Expr) and value.dtype is dt.bool_ else value
    )


def _check_shift(symbol: str, count: literals.Operand, kind: dt.DType) -> None:
    bits = 8 * dt.component_type(kind).item_size
    if literals.is_integer_number(count) and not 0 <= count < bits:
        raise located(
            ArgumentValueError, f"{symbol}: {kind.name} is shifted by 0 to {bits - 1} bits, got {count}"
        )


def _mask(symbol: str, value: literals.Operand, beside: literals.Operand) -> literals.Operand:
    if literals.is_integer_number(value) and isinstance(beside, Expr) and dt.is_integer_dtype(beside.dtype):
        return changed_number(symbol, int(value), dt.component_type(beside.dtype))
    return value


def changed_number(symbol: str, value: int, scalar: dt.DType) -> int:
    """Return a number as it takes part in an operation modulo a power of two with an integer type.

    Bits of a number as wide as the type stay what they are, also in a signed type. `&` with an unsigned value
    takes any number, since the bits above are zeros there. Negative numbers are added to unsigned ones.
    """
    low, high = literals.bounds(scalar)
    if symbol in "+-":
        return literals.wrap(value, scalar) if low == 0 and -high <= value < 0 else value
    if low < 0:
        return literals.wrap(value, scalar) if 0 <= value <= 2 * high + 1 else value
    return literals.wrap(value, scalar) if symbol == "&" else value


def negate(value: Expr) -> Expr:
    """`-value`."""
    if value.dtype is dt.bool_:
        value = construction.cast(value, dt.int32)
    if value.op is Op.LITERAL and isinstance(value.value, (int, float)):
        return literals.wrap_literal(-value.value, value.dtype)
    if value.op is Op.UNARY and value.value == "-":
        return value.args[0]
    scalar = dt.component_type(value.dtype)
    if (
        value.op is Op.CALL
        and value.value == "abs"
        and dt.is_integer_dtype(scalar)
        and dt.is_signed_dtype(scalar)
    ):
        # NVIDIA's compiler (driver 580) compares -abs(x) with numbers wrongly
        (number,) = value.args
        return construction.call("min", value.dtype, number, negate(number))
    return literals.make_node(Op.UNARY, value.dtype, (value,), "-")


def invert(value: Expr) -> Expr:
    """`~value` of integers; of a truth value its opposite."""
    if value.dtype is dt.bool_:
        return literals.make_node(Op.UNARY, dt.bool_, (value,), "!")
    if not dt.is_integer_dtype(value.dtype):
        raise located(ArgumentTypeError, f"~: the operand must be an integer, got {value.dtype.name}")
    return literals.make_node(Op.UNARY, value.dtype, (value,), "~")


def absolute(value: Expr) -> Expr:
    """`abs(value)`: keeps the type; of a complex number its magnitude."""
    kind = value.dtype
    if dt.is_complex(kind):
        return construction.call("length", dt.component_type(kind), value)
    if dt.is_matrix(kind):
        raise located(ArgumentValueError, f"abs: not defined for {kind.name}; take its columns")
    if kind is dt.bool_ or (dt.is_integer_dtype(kind) and not dt.is_signed_dtype(kind)):
        return value
    if value.op is Op.LITERAL and isinstance(value.value, (int, float)):
        # glslang returns a negative literal of 64 bits as it is
        return literals.wrap_literal(abs(value.value), kind)
    return construction.call("abs", kind, value)


def complex_product(a: Expr, b: Expr) -> Expr:
    """Product of two complex values in their promoted type."""
    kind = construction.promote(a.dtype, b.dtype, "*")
    a, b = construction.cast(a, kind), construction.cast(b, kind)
    (ar, ai), (br, bi) = _parts(a), _parts(b)
    real = add("-", multiply(ar, br), multiply(ai, bi))
    imaginary = add("+", multiply(ar, bi), multiply(ai, br))
    return literals.make_node(Op.CONSTRUCT, kind, (real, imaginary))


def conjugate(value: Expr) -> Expr:
    """Complex conjugate."""
    real, imaginary = _parts(value)
    return literals.make_node(Op.CONSTRUCT, value.dtype, (real, negate(imaginary)))


def _parts(value: Expr) -> tuple[Expr, Expr]:
    return construction.component(value, 0), construction.component(value, 1)


def _scale_complex(value: Expr, factor: literals.Operand, symbol: str) -> Expr:
    scalar = dt.component_type(value.dtype)
    if not isinstance(factor, Expr):
        factor = literals.literal(factor, scalar)
    kind = construction.promote(value.dtype, factor.dtype, symbol)
    operands = (construction.cast(value, kind), construction.cast(factor, dt.component_type(kind)))
    return literals.make_node(Op.BINARY, kind, operands, symbol)


def _divide_by_complex(a: literals.Operand, b: Expr) -> Expr:
    scalar = dt.component_type(b.dtype)
    if not isinstance(a, Expr):
        a = literals.literal(a, scalar)
    kind = construction.promote(a.dtype, b.dtype, "/")
    a, b = construction.cast(a, kind), construction.cast(b, kind)
    norm = construction.call("dot", dt.component_type(kind), b, b)
    return _scale_complex(complex_product(a, conjugate(b)), norm, "/")


def as_complex(value: Expr | literals.Number | complex, kind: dt.DType | None = None) -> Expr:
    """Complex value of a number or value; `kind` defaults to the complex type of its own width."""
    if kind is None:
        if isinstance(value, Expr):
            real = dt.make_floating_dtype(dt.component_type(value.dtype))
            kind = value.dtype if dt.is_complex(value.dtype) else dt.complex_from_float(real)
        else:
            kind = dt.complex_from_float(dt.float32)
    return construction.construct(kind, (value,))


# ---- Powers, and calls of functions of mathematics -------------------------------------------------------


# Functions to and from the bits of a float, and the type of these.
BITS_OF: dict[dt.DType, tuple[str, str, dt.DType]] = {
    dt.float32: ("floatBitsToUint", "uintBitsToFloat", dt.uint32),
    dt.float64: ("doubleBitsToUint64", "uint64BitsToDouble", dt.uint64),
}
# Whole exponents up to here multiply.
_FACTORS = 64


def power(base: literals.Operand, exponent: literals.Operand, *, precise: bool = False) -> Expr:
    """Make `base ** exponent`: of two integers an integer, as in Python.

    A negative exponent that is known gives a float. Of one that is not, the power is rounded towards zero.
    """
    known = literals.is_integer_number(exponent)
    if _is_whole(base) and _is_whole(exponent) and not (known and exponent <= 0):  # type: ignore[operator]
        return _integer_power(base, exponent)
    return float_power(base, exponent, precise=precise)


def _is_whole(value: literals.Operand) -> bool:
    if isinstance(value, Expr):
        return value.dtype is dt.bool_ or dt.is_integer_dtype(value.dtype)
    return literals.is_integer_number(value)


def _integer_power(base: literals.Operand, exponent: literals.Operand) -> Expr:
    if isinstance(exponent, Expr) and not isinstance(base, Expr) and base < 0:
        scalar = dt.component_type(exponent.dtype)
        if scalar is not dt.bool_ and not dt.is_signed_dtype(scalar):
            exponent = construction.cast(
                exponent, vector_like(dt.int64 if scalar is dt.uint64 else dt.int32, exponent.dtype)
            )
    kind, operands = construction.meet((base, exponent), "**")
    scalar = dt.component_type(kind)
    wide = scalar if scalar.item_size >= 4 else dt.int32 if dt.is_signed_dtype(scalar) else dt.uint32

    def rule(x: Expr, n: Expr) -> Expr:
        return construction.cast(
            construction.call(INTEGER_POWER, wide, construction.cast(x, wide), construction.cast(n, wide)),
            scalar,
        )

    return operands[0] if exponent == 1 else construction.by_component(rule, kind, *operands)


def float_power(base: literals.Operand, exponent: literals.Operand, *, precise: bool = False) -> Expr:
    """Make `base ** exponent` in floating point.

    Exponents that are whole have powers of negative numbers too: known ones up to 64 multiply, the others go
    to our own function. Exponents of 1/2 are square roots. See `elementary` for `precise`.
    """
    whole = not isinstance(exponent, Expr) and exponent == exponent // 1
    algebraic = isinstance(base, Expr) and (dt.is_complex(base.dtype) or dt.is_matrix(base.dtype))
    if isinstance(base, Expr) and not isinstance(exponent, Expr) and whole:
        count = int(exponent)
        if algebraic and 1 <= abs(count) <= 16:
            return _whole_power(base, count)
        if not algebraic and 1 <= abs(count) <= _FACTORS:
            kind, (factor, _) = construction.meet((base, exponent), "**", floating=True)
            if dt.component_type(kind) is dt.float16 and abs(count) > 2:
                # halves overflow before their powers do
                factor = construction.cast(factor, vector_like(dt.float32, kind))
            return construction.cast(_whole_power(factor, count), kind)
    for value in (base, exponent):
        if isinstance(value, Expr) and (dt.is_complex(value.dtype) or dt.is_matrix(value.dtype)):
            raise located(
                ArgumentTypeError,
                f"**: {value.dtype.name} has only powers of 1 to 16 and -1 to -16 as Python numbers",
            )
    if isinstance(exponent, Expr):
        if exponent.dtype is dt.bool_ or dt.is_integer_dtype(exponent.dtype):
            return _power_of_integer_exponent(base, exponent)
        if not isinstance(base, Expr) and base < 0:
            raise located(
                ArgumentValueError,
                f"**: a negative number, {base}, needs an integer as its exponent, got {exponent.dtype.name}",
            )
    kind, operands = construction.meet((base, exponent), "**", floating=True)
    if not isinstance(exponent, Expr):
        if exponent == 0:
            return construction.cast(literals.literal(1, dt.component_type(kind)), kind)
        if abs(exponent) == 0.5:
            root = construction.call("sqrt", kind, operands[0])
            return root if exponent > 0 else divide(1, root)
    return elementary("pow", kind, operands, glsl="pow", precise=precise or whole)


def _power_of_integer_exponent(base: literals.Operand, exponent: Expr) -> Expr:
    """Make the power of an exponent whose last bit says which sign powers of negative numbers have."""
    kind, (factor, _) = construction.meet((base, exponent), "**", floating=True)
    scalar = dt.component_type(kind)
    wide: dt.DType = dt.float64 if scalar is dt.float64 else dt.float32
    number = construction.cast(exponent, dt.int32) if exponent.dtype is dt.bool_ else exponent

    def rule(x: Expr, n: Expr) -> Expr:
        size = construction.call(
            own_name("pow", wide), wide, absolute(construction.cast(x, wide)), construction.cast(n, wide)
        )
        odd = construction.compare("!=", bitwise("&", n, 1), 0)
        return construction.cast(
            construction.select(odd, copy_sign(size, construction.cast(x, wide)), size), scalar
        )

    return construction.by_component(rule, kind, factor, number)


def _whole_power(base: Expr, exponent: int) -> Expr:
    if dt.is_matrix(base.dtype) and exponent < 0:
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
    kept = bitwise("&", construction.call(to_bits, word, size), top - 1)
    return construction.call(
        from_bits, size.dtype, bitwise("|", kept, bitwise("&", construction.call(to_bits, word, sign), top))
    )


def elementary(
    function: str, kind: dt.DType, args: Sequence[Expr], *, glsl: str | None = None, precise: bool = False
) -> Expr:
    """Call a function of mathematics: GLSL's, which has no double version and may be loose, or our own.

    Ours is taken for float64, if `precise`, and where GLSL has none (`glsl` is None). float16 goes through
    float32 there.
    """
    scalar = dt.component_type(kind)
    if glsl is not None and scalar is not dt.float64 and not precise:
        return construction.call(glsl, kind, *(construction.cast(arg, kind) for arg in args))
    wide = vector_like(dt.float64 if scalar is dt.float64 else dt.float32, kind)
    args = [construction.cast(construction.cast(arg, kind), wide) for arg in args]
    return construction.cast(construction.call(own_name(function, wide), wide, *args), kind)
