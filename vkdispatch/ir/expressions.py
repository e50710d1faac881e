"""Typed construction of expressions: which operands go together, in which type they meet, what comes out.

Every rule about types lives here, in `numbers` or in `base.dtype`. Operands are expressions or Python/NumPy
numbers. A number takes the type of the values that it meets, so that `x * 2` keeps the type of `x`; only a
float beside integers is a float32. One that the type does not hold is an error.
"""

from collections.abc import Sequence
from typing import Any, TypeGuard

from vkdispatch.base.dtype import (
    DType,
    bfloat16,
    bool_,
    complex_from_float,
    component_count,
    component_type,
    cross_multiply_type,
    cross_type,
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
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError, VkDispatchError
from vkdispatch.base.host_numpy import np
from vkdispatch.ir import Argument, Expr, Op, Register, Value
from vkdispatch.ir.attributes import COMPONENTS
from vkdispatch.ir.location import here, located
from vkdispatch.ir.numbers import (
    MIRRORED,
    bounds,
    common_type,
    exact_comparison,
    fits,
    is_finite,
    wider_type,
    wrap,
)
from vkdispatch.ir.own_functions import own_name

Number = int | float
Operand = Expr | Number

_BITWISE_OF_BOOL = {"&": "&&", "|": "||"}


# ---- numbers -------------------------------------------------------------------------------------


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is a Python or NumPy real number; booleans are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, (bool, np.bool_)
    )


def is_integer_number(value: object) -> TypeGuard[int]:
    """Whether a value is a Python or NumPy integer; booleans are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def literal_dtype(value: Number) -> DType:
    """Type that a number has by itself.

    The first of uint32, int32, uint64, int64 that holds it, or float32.
    """
    return _own_type(value)


def _own_type(*values: Number) -> DType:
    """Type that numbers without a GPU value beside them have together."""
    if not all(map(is_integer_number, values)):
        return float32
    kind = common_type([int(value) for value in values], (uint32, int32, uint64, int64))
    if kind is None:
        listed = " and ".join(str(value) for value in values)
        raise located(ArgumentValueError, f"no integer type of 64 bits holds {listed}")
    return kind


def literal(value: Number | bool, kind: DType, what: str = "") -> Expr:
    """Make a scalar literal of type `kind`; floats lose their fraction in an integer type.

    Raises ValueError for a number that does not fit; `what` says what was being done.
    """
    if kind is bool_:
        return _make(Op.LITERAL, kind, value=bool(value))
    if is_float_dtype(kind):
        if not fits(value, kind):
            raise _misfit(value, kind, what)
        return _make(Op.LITERAL, kind, value=float(value))
    if not (is_finite(value) and fits(int(value), kind)):
        raise _misfit(value, kind, what)
    return _make(Op.LITERAL, kind, value=int(value))


def _misfit(value: Number, kind: DType, what: str) -> ArgumentValueError:
    text = f"{what}: " if what else ""
    if not is_finite(value):
        return located(ArgumentValueError, f"{text}{value} cannot become {kind.name}")
    text += f"{value} does not fit in {kind.name}"
    if is_integer_dtype(kind):
        text += " ({} to {})".format(*bounds(kind))
    wide = wider_type(value, kind)
    if what and wide is not None:
        text += f", the type that it meets; convert the GPU value with .to_dtype(vd.{wide.name})"
    return located(ArgumentValueError, text)


def _converted(value: Number, kind: DType) -> Expr:
    """Make a literal as GLSL converts a number: integers keep their lowest bits."""
    if is_integer_dtype(kind) and is_finite(value):
        return _make(Op.LITERAL, kind, value=wrap(int(value), kind))
    if is_float_dtype(kind):
        return _make(Op.LITERAL, kind, value=float(value))
    return literal(value, kind)


def converted_literal(value: Number, kind: DType) -> Expr:
    """Make a scalar literal of a number that the user converts: -1 as an unsigned number has all bits set.

    Raises ValueError unless an integer type of either sign and of this width holds the number.
    """
    if is_integer_dtype(kind) and is_finite(value):
        bits = 8 * kind.item_size
        if -(1 << (bits - 1)) <= int(value) < 1 << bits:
            return _converted(value, kind)
    return literal(value, kind)


# ---- building blocks -----------------------------------------------------------------------------


def _make(op: Op, kind: DType, args: tuple[Expr, ...] = (), value: Value = None) -> Expr:
    return Expr(op, kind, args, value, here())


def call(function: str, kind: DType, *args: Expr) -> Expr:
    """Call a GLSL function without effects."""
    return _make(Op.CALL, kind, args, function)


def subgroup(function: str, kind: DType, *args: Expr) -> Expr:
    """Call a GLSL subgroup function, whose value depends on which invocations call it."""
    return _make(Op.SUBGROUP, kind, args, function)


def promote(a: DType, b: DType, what: str) -> DType:
    """Type in which two types meet, with an error that says what was being done and where."""
    return _crossed(cross_type, a, b, what)


def _crossed(rule: Any, a: DType, b: DType, what: str) -> DType:
    if is_bool_like(a) and is_bool_like(b):
        return int32
    try:
        kind: DType = rule(a, b)
    except VkDispatchError as error:
        raise located(ArgumentValueError, f"{what}: {error}") from None
    return kind


def is_bool_like(kind: DType) -> bool:
    """Whether a type is the type of booleans."""
    return kind is bool_


# Types that meet in themselves.
_USUAL = frozenset((float32, float64, int32, uint32))
_FLOATS = frozenset((float32, float64))


def meet(values: Sequence[Operand], what: str, *, floating: bool = False) -> tuple[DType, list[Expr]]:
    """Bring operands to one scalar type: returns the promoted type, and all operands with its component type.

    Scalars stay scalars beside vectors and matrices. At least one operand is an expression. `floating` makes
    floats of integers, without a stop at the integer type in which they would meet. Raises ValueError for
    types that do not meet, and for a number that the type does not hold.
    """
    known = [value.dtype for value in values if isinstance(value, Expr)]
    usual = _FLOATS if floating else _USUAL
    if known[0] in usual and len(known) == len(values) and known.count(known[0]) == len(known):
        return known[0], list(values)  # type: ignore[arg-type]
    if known[0] in _FLOATS and len(known) == 1:
        # numbers take the type of a float
        return known[0], [v if isinstance(v, Expr) else literal(v, known[0], what) for v in values]
    kind = int32 if known[0] is bool_ else known[0]
    for other in known[1:]:
        kind = promote(kind, other, what)
    if is_integer_dtype(kind) and not all(
        isinstance(value, Expr) or is_integer_number(value) for value in values
    ):
        kind = promote(kind, float32, what)
    if floating and is_integer_dtype(kind):
        kind = make_floating_dtype(kind)
        # booleans are numbers first
        values = [cast(v, int32) if isinstance(v, Expr) and v.dtype is bool_ else v for v in values]
    return kind, [_fit(value, kind, what) for value in values]


def _fit(value: Operand, kind: DType, what: str = "") -> Expr:
    scalar = component_type(kind)
    if not isinstance(value, Expr):
        value = literal(value, scalar, what)
    if is_scalar(value.dtype) and not is_complex(kind):
        return cast(value, scalar)
    return cast(value, kind)


def cast(value: Expr, kind: DType) -> Expr:
    """Convert a value: between scalars, component by component, or a scalar to every component.

    A real number becomes the real part of a complex one. Raises ValueError for other pairs.
    """
    source = value.dtype
    if source is kind:
        return value
    if is_scalar(source):
        return _cast_scalar(value, kind)
    alike = (is_complex(source) and is_complex(kind)) or (is_vector(source) and is_vector(kind))
    if alike and source.child_count == kind.child_count:
        return Expr(Op.CONSTRUCT, kind, (value,), None, value.loc)
    raise located(ArgumentValueError, f"{source.name} does not convert to {kind.name}")


def _cast_scalar(value: Expr, kind: DType) -> Expr:
    if is_scalar(kind):
        if value.op is Op.LITERAL and isinstance(value.value, (int, float)):
            return _converted(value.value, kind)
        return Expr(Op.CONSTRUCT, kind, (value,), None, value.loc)
    part = cast(value, component_type(kind))
    if is_complex(kind):
        return Expr(Op.CONSTRUCT, kind, (part, literal(0, part.dtype)), None, value.loc)
    copies = component_count(kind) if is_matrix(kind) else 1
    return Expr(Op.CONSTRUCT, kind, (part,) * copies, None, value.loc)


def condition(value: Expr) -> Expr:
    """Truth value of a scalar: numbers hold unless zero."""
    if not is_scalar(value.dtype):
        raise located(
            ArgumentTypeError,
            f"a condition must be a scalar, got {value.dtype.name}; join components with vc.all",
        )
    return value if value.dtype is bool_ else cast(value, bool_)


# ---- components ----------------------------------------------------------------------------------


def component(value: Expr, index: int) -> Expr:
    """Component of a vector or complex value."""
    kind = value.dtype
    if not (is_vector(kind) or is_complex(kind)) or not 0 <= index < kind.child_count:
        raise located(ComponentError, f"{kind.name} has no component {index}")
    if value.op is Op.CONSTRUCT and len(value.args) == kind.child_count:
        part = value.args[index]
        if part.dtype is component_type(kind):
            return part
    return _make(Op.COMPONENT, component_type(kind), (value,), COMPONENTS[index])


def swizzle(value: Expr, letters: str) -> Expr:
    """Rearrange components by letters of "xyzw"; a scalar has only x. Raises ValueError for others."""
    kind = value.dtype
    size = kind.child_count if is_vector(kind) else 1
    if not (is_vector(kind) or is_scalar(kind)):
        raise located(ArgumentValueError, f"swizzle: {kind.name} is neither a vector nor a scalar")
    if not 1 <= len(letters) <= 4 or any(letter not in COMPONENTS[:size] for letter in letters):
        raise located(
            ArgumentValueError,
            f'swizzle: expected 1 to 4 letters of "{COMPONENTS[:size]}" for {kind.name}, got {letters!r}',
        )
    if is_scalar(kind):
        return value if len(letters) == 1 else cast(value, to_vector(kind, len(letters)))
    if len(letters) == 1:
        return component(value, COMPONENTS.index(letters))
    return _make(Op.SWIZZLE, to_vector(component_type(kind), len(letters)), (value,), letters)


def index(value: Expr, position: Expr) -> Expr:
    """Index a vector, complex number or matrix by an integer expression."""
    kind = value.dtype
    assert kind.child_type is not None
    return _make(Op.INDEX, kind.child_type, (value, index_value(position)))


def index_value(position: Expr) -> Expr:
    """Give an integer the type that GLSL wants for an index: int or uint."""
    if position.op is Op.LITERAL:
        assert isinstance(position.value, int)
        return literal(position.value, int32 if fits(position.value, int32) else uint32)
    if position.dtype.item_size == 4:
        return position
    narrow = position.dtype.item_size < 4 and is_signed_dtype(position.dtype)
    return cast(position, int32 if narrow else uint32)


# ---- constructors --------------------------------------------------------------------------------


def construct(kind: DType, args: Sequence[Expr | Number | complex]) -> Expr:
    """Build a value of type `kind` from nothing (zero), one value, or all its components in order.

    Vectors take scalars and vectors that together have the right count of components, or one scalar for all;
    a scalar given to a matrix goes to its diagonal; complex types take a complex value or a real and an
    imaginary part. Raises ValueError for other shapes.
    """
    if not args:
        return _zero(kind)
    if is_complex(kind):
        return _construct_complex(kind, args)
    scalar = component_type(kind)
    parts: list[Expr] = []
    for arg in args:
        if isinstance(arg, complex):
            raise located(ArgumentTypeError, f"{kind.name}: a complex number cannot become {kind.name}")
        parts.append(arg if isinstance(arg, Expr) else converted_literal(arg, scalar))
    if len(parts) == 1:
        return _construct_from_one(kind, parts[0])
    if is_scalar(kind) or sum(component_count(part.dtype) for part in parts) != component_count(kind):
        given = ", ".join(part.dtype.name for part in parts)
        raise located(
            ArgumentValueError, f"{kind.name} has {component_count(kind)} components, got ({given})"
        )
    return _make(Op.CONSTRUCT, kind, tuple(parts))


def _zero(kind: DType) -> Expr:
    scalar = component_type(kind)
    if is_complex(kind):
        return _make(Op.CONSTRUCT, kind, (literal(0, scalar), literal(0, scalar)))
    zero = literal(0, scalar)
    return zero if is_scalar(kind) else _make(Op.CONSTRUCT, kind, (zero,))


def _construct_from_one(kind: DType, part: Expr) -> Expr:
    if part.dtype is kind:
        return part
    if is_scalar(part.dtype):
        if is_matrix(kind):
            return _make(Op.CONSTRUCT, kind, (cast(part, component_type(kind)),))
        return cast(part, kind)
    shrinks = component_count(part.dtype) >= component_count(kind)
    if is_matrix(kind) == is_matrix(part.dtype) and (shrinks or is_matrix(kind)):
        return _make(Op.CONSTRUCT, kind, (part,))
    raise located(ArgumentValueError, f"{part.dtype.name} cannot become {kind.name}")


def _construct_complex(kind: DType, args: Sequence[Expr | Number | complex]) -> Expr:
    if len(args) > 2:
        raise located(
            ArgumentValueError, f"{kind.name} takes a real and an imaginary part, got {len(args)} values"
        )
    scalar = component_type(kind)
    if len(args) == 1:
        (only,) = args
        if isinstance(only, complex):
            return _make(Op.CONSTRUCT, kind, (literal(only.real, scalar), literal(only.imag, scalar)))
        if isinstance(only, Expr) and is_complex(only.dtype):
            return cast(only, kind)
    parts: list[Expr] = []
    for arg in (*args, 0)[:2]:
        if isinstance(arg, complex) or (isinstance(arg, Expr) and not is_scalar(arg.dtype)):
            name = arg.dtype.name if isinstance(arg, Expr) else repr(arg)
            raise located(ArgumentTypeError, f"{kind.name}: the parts must be real scalars, got {name}")
        parts.append(cast(arg, scalar) if isinstance(arg, Expr) else literal(arg, scalar))
    return _make(Op.CONSTRUCT, kind, tuple(parts))


# ---- arithmetic ----------------------------------------------------------------------------------


def add(symbol: str, a: Operand, b: Operand) -> Expr:
    """Make `a + b` or `a - b`.

    `u + -1` of an unsigned value is `u - 1`.
    """
    if symbol == "+" and _is_negative(a, b):
        a, b = b, a
    if _is_negative(b, a):
        symbol, b = "-" if symbol == "+" else "+", -int(b)  # type: ignore[arg-type]
    kind, operands = meet((a, b), symbol)
    return _make(Op.BINARY, kind, tuple(operands), symbol)


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
            return _make(Op.BINARY, a.dtype, (a, b), "*")
        if is_matrix(a.dtype) or is_matrix(b.dtype):
            return _matrix_product(a, b)
    for value, factor in ((a, b), (b, a)):
        if isinstance(value, Expr) and is_complex(value.dtype):
            return _scale_complex(value, factor, "*")
    kind, operands = meet((a, b), "*")
    return _make(Op.BINARY, kind, tuple(operands), "*")


def _matrix_product(a: Expr, b: Expr) -> Expr:
    kind = _crossed(cross_multiply_type, a.dtype, b.dtype, "*")
    operands = tuple(cast(value, float32) if is_scalar(value.dtype) else value for value in (a, b))
    return _make(Op.BINARY, kind, operands, "*")


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
    return _make(Op.BINARY, kind, tuple(operands), "/")


def floor_divide(a: Operand, b: Operand) -> Expr:
    """Make `a // b` of integers.

    It truncates towards zero, but floors when `b` is a positive power of two.
    """
    check_divisor("//", b)
    kind, operands = _integers("//", a, b)
    if is_integer_number(b) and b > 0 and b & (b - 1) == 0 and is_signed_dtype(kind):
        shift = literal(int(b).bit_length() - 1, component_type(kind))
        return _make(Op.BINARY, kind, (operands[0], shift), ">>")
    return _make(Op.BINARY, kind, tuple(operands), "/")


def modulo(a: Operand, b: Operand) -> Expr:
    """Make `a % b` of integers."""
    check_divisor("%", b)
    kind, operands = _integers("%", a, b)
    return _make(Op.BINARY, kind, tuple(operands), "%")


def check_divisor(symbol: str, b: Operand) -> None:
    """Raise ValueError for an integer division by a 0 that is known: devices give anything for it."""
    if is_integer_number(b) and b == 0:
        raise located(ArgumentValueError, f"{symbol}: integer division by zero")


def _integers(symbol: str, a: Operand, b: Operand) -> tuple[DType, list[Expr]]:
    for value in (a, b):
        whole = is_integer_dtype(value.dtype) if isinstance(value, Expr) else is_integer_number(value)
        if not whole:
            what = value.dtype.name if isinstance(value, Expr) else repr(value)
            hint = {"//": "; see vc.floor_divide", "%": "; see vc.mod"}.get(symbol, "")
            raise located(ArgumentTypeError, f"{symbol}: both operands must be integers, got {what}{hint}")
    return meet((a, b), symbol)


def bitwise(symbol: str, a: Operand, b: Operand) -> Expr:
    """Make `& | ^ << >>` of integers; `& | ^` of booleans are their logical counterparts."""
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is bool_ and b.dtype is bool_:
        if symbol == "^":
            return _make(Op.COMPARE, bool_, (a, b), "!=")
        if symbol in _BITWISE_OF_BOOL:
            return logical(_BITWISE_OF_BOOL[symbol], (a, b))
    if symbol in ("<<", ">>"):
        if isinstance(a, Expr):
            _check_shift(symbol, b, a.dtype)
        kind, operands = _integers(symbol, a, b)
        # GLSL types a shift by its left side
        operands[0] = cast(operands[0], kind)
    else:
        kind, operands = _integers(symbol, _mask(symbol, a, b), _mask(symbol, b, a))
    return _make(Op.BINARY, kind, tuple(operands), symbol)


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
        return _converted(-value.value, value.dtype)
    if value.op is Op.UNARY and value.value == "-":
        return value.args[0]
    scalar = component_type(value.dtype)
    if value.op is Op.CALL and value.value == "abs" and is_integer_dtype(scalar) and is_signed_dtype(scalar):
        # NVIDIA's compiler (driver 580) compares -abs(x) with numbers wrongly
        (number,) = value.args
        return call("min", value.dtype, number, negate(number))
    return _make(Op.UNARY, value.dtype, (value,), "-")


def invert(value: Expr) -> Expr:
    """`~value` of integers; of a truth value its opposite."""
    if value.dtype is bool_:
        return _make(Op.UNARY, bool_, (value,), "!")
    if not is_integer_dtype(value.dtype):
        raise located(ArgumentTypeError, f"~: the operand must be an integer, got {value.dtype.name}")
    return _make(Op.UNARY, value.dtype, (value,), "~")


def absolute(value: Expr) -> Expr:
    """`abs(value)`: keeps the type; of a complex number its magnitude."""
    kind = value.dtype
    if is_complex(kind):
        return call("length", component_type(kind), value)
    if is_matrix(kind):
        raise located(ArgumentValueError, f"abs: not defined for {kind.name}; take its columns")
    if kind is bool_:
        return cast(value, int32)
    if is_integer_dtype(kind) and not is_signed_dtype(kind):
        return value
    return call("abs", kind, value)


def power(base: Operand, exponent: Operand, *, precise: bool = False) -> Expr:
    """Make `base ** exponent` in floating point.

    Small whole exponents multiply, so a negative base is fine there. See `elementary` for `precise`.
    """
    if isinstance(base, Expr) and is_integer_number(exponent) and 1 <= abs(exponent) <= 16:
        return _whole_power(base, int(exponent))
    for value in (base, exponent):
        if isinstance(value, Expr) and (is_complex(value.dtype) or is_matrix(value.dtype)):
            raise located(
                ArgumentTypeError,
                f"**: {value.dtype.name} has only powers of 1 to 16 and -1 to -16 as Python ints",
            )
    kind, operands = meet((base, exponent), "**", floating=True)
    return elementary("pow", kind, operands, glsl="pow", precise=precise)


def _whole_power(base: Expr, exponent: int) -> Expr:
    if is_matrix(base.dtype) and exponent < 0:
        raise located(ArgumentTypeError, f"**: use vc.inverse for negative powers of {base.dtype.name}")
    square = cast(base, make_floating_dtype(base.dtype))
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
    wide: DType = float64 if scalar is float64 else float32
    if is_vector(kind):
        wide = to_vector(wide, kind.child_count)
    args = [cast(cast(arg, kind), wide) for arg in args]
    return cast(call(own_name(function, wide), wide, *args), kind)


# ---- complex numbers -----------------------------------------------------------------------------


def complex_product(a: Expr, b: Expr) -> Expr:
    """Product of two complex values in their promoted type."""
    kind = promote(a.dtype, b.dtype, "*")
    a, b = cast(a, kind), cast(b, kind)
    (ar, ai), (br, bi) = _parts(a), _parts(b)
    real = add("-", multiply(ar, br), multiply(ai, bi))
    imaginary = add("+", multiply(ar, bi), multiply(ai, br))
    return _make(Op.CONSTRUCT, kind, (real, imaginary))


def conjugate(value: Expr) -> Expr:
    """Complex conjugate."""
    real, imaginary = _parts(value)
    return _make(Op.CONSTRUCT, value.dtype, (real, negate(imaginary)))


def _parts(value: Expr) -> tuple[Expr, Expr]:
    return component(value, 0), component(value, 1)


def _scale_complex(value: Expr, factor: Operand, symbol: str) -> Expr:
    scalar = component_type(value.dtype)
    if not isinstance(factor, Expr):
        factor = literal(factor, scalar)
    kind = promote(value.dtype, factor.dtype, symbol)
    operands = (cast(value, kind), cast(factor, component_type(kind)))
    return _make(Op.BINARY, kind, operands, symbol)


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


# ---- comparison and logic ------------------------------------------------------------------------


def compare(symbol: str, a: Operand, b: Operand) -> Expr:
    """Compare scalars; `==` and `!=` also compare whole vectors, complex numbers and matrices."""
    both_bool = all(isinstance(value, Expr) and value.dtype is bool_ for value in (a, b))
    if both_bool and symbol in ("==", "!=") and isinstance(a, Expr) and isinstance(b, Expr):
        return _make(Op.COMPARE, bool_, (a, b), symbol)
    exact = _exact(symbol, a, b)
    if isinstance(exact, Expr):
        return exact
    symbol, a, b = exact
    if isinstance(a, Expr) and isinstance(b, Expr) and _mixes_signs(a, b):
        return _compare_signs(symbol, a, b)
    kind, operands = meet((a, b), symbol)
    if not is_scalar(kind):
        if symbol not in ("==", "!="):
            raise _unordered(symbol, kind)
        operands = [cast(value, kind) for value in operands]
    return _make(Op.COMPARE, bool_, tuple(operands), symbol)


def _mixes_signs(a: Expr, b: Expr) -> bool:
    """Whether the promoted type of two integers does not hold all values of both.

    Ids and sizes count as small enough for the signed type of their width.
    """
    signed, unsigned = (a, b) if is_signed_dtype(a.dtype) else (b, a)
    alike = (is_scalar(a.dtype) and is_scalar(b.dtype)) or (is_vector(a.dtype) and is_vector(b.dtype))
    if not alike or not is_signed_dtype(signed.dtype) or is_signed_dtype(unsigned.dtype):
        return False
    if not is_integer_dtype(unsigned.dtype):
        return False
    sizes = [component_type(value.dtype).item_size for value in (signed, unsigned)]
    return sizes[0] < sizes[1] or (sizes[0] == sizes[1] and not is_position(unsigned))


def is_position(value: Expr) -> bool:
    """Whether a value is an id or a size, or a sum or product of few of them: not negative, and not large."""
    waiting, seen = [value], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if len(seen) > _FEW or not (node.op in _KEEPS_POSITIONS or _is_small(node)):
            return False
        if node.op is Op.BINARY and node.value not in _GROWS_LITTLE:
            return False
        waiting += node.args
    return True


# Operations that make positions of positions; of large expressions nobody looks whether they do.
_GROWS_LITTLE = frozenset("+*/%&") | {">>"}
_KEEPS_POSITIONS = frozenset((Op.BINARY, Op.COMPONENT, Op.SWIZZLE, Op.INDEX, Op.CONSTRUCT))
_FEW = 32


def _is_small(leaf: Expr) -> bool:
    if leaf.op is Op.LITERAL:
        # a larger factor makes a hash
        return isinstance(leaf.value, int) and 0 <= leaf.value <= 1 << 20
    if isinstance(leaf.value, Register):
        return leaf.value.counter
    return leaf.op in (Op.BUILTIN, Op.LENGTH) or (isinstance(leaf.value, Argument) and leaf.value.shape)


def _compare_signs(symbol: str, a: Expr, b: Expr) -> Expr:
    """Compare a signed and an unsigned integer as mathematics does."""
    if is_vector(a.dtype):
        if a.dtype.child_count != b.dtype.child_count or symbol not in ("==", "!="):
            kind, _ = meet((a, b), symbol)
            raise _unordered(symbol, kind)
        pairs = [(component(a, i), component(b, i)) for i in range(a.dtype.child_count)]
        parts = [compare(symbol, first, second) for first, second in pairs]
        return logical("&&" if symbol == "==" else "||", parts)
    signed, kind = (a, b.dtype) if is_signed_dtype(a.dtype) else (b, a.dtype)
    same = _make(Op.COMPARE, bool_, (cast(a, kind), cast(b, kind)), symbol)
    if is_position(signed):
        return same
    if (symbol if signed is a else MIRRORED[symbol]) in ("<", "<=", "!="):
        return logical("||", (compare("<", signed, 0), same))
    return logical("&&", (compare(">=", signed, 0), same))


def _unordered(symbol: str, kind: DType) -> ArgumentTypeError:
    return located(
        ArgumentTypeError, f"{symbol}: {kind.name} has no order; compare components and join them with vc.all"
    )


def _exact(symbol: str, a: Operand, b: Operand) -> Expr | tuple[str, Operand, Operand]:
    """Return a comparison with a number of the other side's type, or its outcome: see `exact_comparison`."""
    if isinstance(a, Expr) and not isinstance(b, Expr):
        value, number = a, b
    elif isinstance(b, Expr) and not isinstance(a, Expr):
        value, number = b, a
    else:
        return symbol, a, b
    if not (is_scalar(value.dtype) or symbol in ("==", "!=")):
        return symbol, a, b
    kind = int32 if value.dtype is bool_ else component_type(value.dtype)
    own = int(number) if is_integer_number(number) else float(number)
    found = exact_comparison(symbol if value is a else MIRRORED[symbol], kind, own)
    if isinstance(found, bool):
        return literal(found, bool_)
    return (found[0], value, found[1]) if value is a else (MIRRORED[found[0]], found[1], value)


def logical(symbol: str, conditions: Sequence[Expr]) -> Expr:
    """Join conditions by `&&` or `||`; a single one stays as it is."""
    if len(conditions) == 1:
        return condition(conditions[0])
    return _make(Op.LOGICAL, bool_, tuple(condition(value) for value in conditions), symbol)


def select(condition_: Expr, a: Operand, b: Operand) -> Expr:
    """Make `a if condition else b`, of which only the chosen one is evaluated; in their promoted type.

    Raises ValueError where the two do not meet.
    """
    truth = condition(condition_)
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        a = literal(a, _own_type(a, b))
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is b.dtype:
        return _make(Op.SELECT, a.dtype, (truth, a, b))
    kind, values = meet((a, b), "select")
    chosen, other = (cast(value, kind) for value in values)
    return _make(Op.SELECT, kind, (truth, chosen, other))


# ---- values to store -----------------------------------------------------------------------------


def storable(value: Expr | Number | complex, kind: DType) -> Expr:
    """Value as it may be stored in a place of type `kind`.

    Numbers become literals, for every component of a vector or matrix; booleans become numbers; other
    values must have exactly that type. Raises ValueError otherwise.
    """
    if isinstance(value, Expr):
        if value.dtype is bool_ and is_scalar(kind):
            return cast(value, kind)
        if value.dtype is not kind:
            raise located(
                ArgumentValueError,
                f"cannot store {value.dtype.name} in {kind.name}; convert it with .to_dtype(vd.{kind.name})",
            )
        return value
    if isinstance(value, complex):
        if not is_complex(kind):
            raise located(ArgumentTypeError, f"cannot store the complex number {value!r} in {kind.name}")
        return construct(kind, (value,))
    scalar = component_type(kind)
    check_stored(value, scalar)
    return cast(literal(value, scalar), kind)


def check_stored(value: Number, scalar: DType) -> None:
    """Raise ValueError unless a place of a scalar type takes a number as it is, but for rounding."""
    if is_float_dtype(scalar) or scalar in (bool_, bfloat16):
        return
    if not is_integer_number(value):
        raise located(
            ArgumentValueError,
            f"cannot store the float {value!r} in {scalar.name}; give an int or convert the value",
        )
    if not fits(int(value), scalar):
        low, high = bounds(scalar)
        text = f"cannot store {value} in {scalar.name}: it does not fit ({low} to {high})"
        if low - high - 1 <= value <= 2 * high + 1:
            text += f"; {wrap(int(value), scalar)} has the same bits"
        raise located(ArgumentValueError, text)
