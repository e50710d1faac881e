"""Arithmetic of numbers, vectors, matrices and complex numbers."""

from vkdispatch.base.dtype import (
    DType,
    bool_,
    complex_from_float,
    component_type,
    float32,
    int32,
    is_complex,
    is_float_dtype,
    is_integer_dtype,
    is_matrix,
    is_scalar,
    is_signed_dtype,
    is_vector,
    make_floating_dtype,
    to_vector,
)
from vkdispatch.base.dtypes.promotion import cross_multiply_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.ir import Expr, Op
from vkdispatch.ir.expressions.comparisons import logical
from vkdispatch.ir.expressions.construction import (
    call,
    cast,
    component,
    construct,
    cross_dtypes,
    meet,
    promote,
)
from vkdispatch.ir.expressions.literals import (
    Number,
    Operand,
    is_integer_number,
    literal,
    make_node,
    wrap_literal,
)
from vkdispatch.ir.location import located
from vkdispatch.ir.numbers import (
    bounds,
    fits,
    wrap,
)

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
