"""Typed construction of expressions: which operands go together, in which type they meet, what comes out.

Every rule about types lives here or in `base.dtype`. Operands are expressions or Python/NumPy numbers; a
number takes the type of the value it meets when it fits, so that `x * 2` keeps the type of `x`.
"""

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from vkdispatch.base.dtype import (
    DType,
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
from vkdispatch.codegen.attributes import COMPONENTS
from vkdispatch.codegen.helpers import own_name
from vkdispatch.codegen.ir import Expr, Op, Value
from vkdispatch.codegen.location import here, located

Number = int | float
Operand = Expr | Number

_BITWISE_OF_BOOL = {"&": "&&", "|": "||"}


# ---- numbers -------------------------------------------------------------------------------------


# Whether an order holds where the right side is the larger one.
_ORDERS = {"<": True, "<=": True, ">": False, ">=": False}


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is a Python or NumPy real number; truth values are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, (bool, np.bool_)
    )


def is_integer_number(value: object) -> TypeGuard[int]:
    """Whether a value is a Python or NumPy integer; truth values are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def literal_dtype(value: Number) -> DType:
    """Type that a number has by itself.

    The smallest of uint32, int32, uint64, int64 that holds it, or float32.
    """
    if not is_integer_number(value):
        return float32
    for kind in (uint32, int32, uint64, int64):
        if _fits(int(value), kind):
            return kind
    raise located(ArgumentValueError, f"the integer {value} does not fit in 64 bits")


def _bounds(kind: DType) -> tuple[int, int]:
    bits = 8 * kind.item_size
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed_dtype(kind) else (0, (1 << bits) - 1)


def _fits(value: int, kind: DType) -> bool:
    low, high = _bounds(kind)
    return low <= value <= high


def _wrap(value: int, kind: DType) -> int:
    low, _ = _bounds(kind)
    return (value - low) % (1 << (8 * kind.item_size)) + low


def literal(value: Number | bool, kind: DType) -> Expr:
    """Make a scalar literal of type `kind`.

    Integers wrap around, and floats lose their fraction in an integer type.
    """
    if kind is bool_:
        return _make(Op.LITERAL, kind, value=bool(value))
    if is_float_dtype(kind):
        return _make(Op.LITERAL, kind, value=float(value))
    if not math.isfinite(value):
        raise located(ArgumentValueError, f"{value} cannot become {kind.name}")
    return _make(Op.LITERAL, kind, value=_wrap(int(value), kind))


def _adopted(value: Number, other: DType) -> DType:
    """Type that a number takes beside a value of type `other`."""
    scalar = component_type(other)
    if is_float_dtype(scalar):
        return scalar
    if is_integer_number(value) and scalar is not bool_ and _fits(int(value), scalar):
        return scalar
    return literal_dtype(value)


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
    """Whether a type is the type of truth values."""
    return kind is bool_


# Types that meet in themselves.
_USUAL = frozenset((float32, float64, int32, uint32))
_FLOATS = frozenset((float32, float64))


def meet(values: Sequence[Operand], what: str) -> tuple[DType, list[Expr]]:
    """Bring operands to one scalar type: returns the promoted type, and all operands with its component type.

    Scalars stay scalars beside vectors and matrices. At least one operand is an expression.
    """
    known = [value.dtype for value in values if isinstance(value, Expr)]
    if known[0] in _USUAL and len(known) == len(values) and known.count(known[0]) == len(known):
        return known[0], list(values)  # type: ignore[arg-type]
    if known[0] in _FLOATS and len(known) == 1:
        # numbers take the type of a float
        return known[0], [v if isinstance(v, Expr) else literal(v, known[0]) for v in values]
    kind = int32 if known[0] is bool_ else known[0]
    for other in known[1:]:
        kind = promote(kind, other, what)
    settled = kind
    for value in values:
        if not isinstance(value, Expr):
            kind = promote(kind, _adopted(value, settled), what)
    return kind, [_fit(value, kind) for value in values]


def _fit(value: Operand, kind: DType) -> Expr:
    scalar = component_type(kind)
    if not isinstance(value, Expr):
        value = literal(value, scalar)
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
            return literal(value.value, kind)
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
        return literal(position.value, int32 if _fits(position.value, int32) else uint32)
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
        parts.append(arg if isinstance(arg, Expr) else literal(arg, scalar))
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
    """Make `a + b` or `a - b`."""
    kind, operands = meet((a, b), symbol)
    return _make(Op.BINARY, kind, tuple(operands), symbol)


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
    kind, operands = meet((a, b), "/")
    kind = make_floating_dtype(kind)
    return _make(Op.BINARY, kind, tuple(_fit(value, kind) for value in operands), "/")


def floor_divide(a: Operand, b: Operand) -> Expr:
    """Make `a // b` of integers.

    It truncates towards zero, but floors when `b` is a positive power of two.
    """
    kind, operands = _integers("//", a, b)
    if is_integer_number(b) and b > 0 and b & (b - 1) == 0 and is_signed_dtype(kind):
        shift = literal(int(b).bit_length() - 1, component_type(kind))
        return _make(Op.BINARY, kind, (operands[0], shift), ">>")
    return _make(Op.BINARY, kind, tuple(operands), "/")


def modulo(a: Operand, b: Operand) -> Expr:
    """Make `a % b` of integers."""
    kind, operands = _integers("%", a, b)
    return _make(Op.BINARY, kind, tuple(operands), "%")


def _integers(symbol: str, a: Operand, b: Operand) -> tuple[DType, list[Expr]]:
    for value in (a, b):
        whole = is_integer_dtype(value.dtype) if isinstance(value, Expr) else is_integer_number(value)
        if not whole:
            what = value.dtype.name if isinstance(value, Expr) else repr(value)
            hint = {"//": "; see vc.floor_divide", "%": "; see vc.mod"}.get(symbol, "")
            raise located(ArgumentTypeError, f"{symbol}: both operands must be integers, got {what}{hint}")
    return meet((a, b), symbol)


def bitwise(symbol: str, a: Operand, b: Operand) -> Expr:
    """Make `& | ^ << >>` of integers; `& | ^` of truth values are their logical counterparts."""
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is bool_ and b.dtype is bool_:
        if symbol == "^":
            return _make(Op.COMPARE, bool_, (a, b), "!=")
        if symbol in _BITWISE_OF_BOOL:
            return logical(_BITWISE_OF_BOOL[symbol], (a, b))
    kind, operands = _integers(symbol, a, b)
    if symbol in ("<<", ">>"):
        # GLSL types a shift by its left side
        operands[0] = cast(operands[0], kind)
    return _make(Op.BINARY, kind, tuple(operands), symbol)


def negate(value: Expr) -> Expr:
    """`-value`."""
    if value.dtype is bool_:
        value = cast(value, int32)
    if value.op is Op.LITERAL and isinstance(value.value, (int, float)):
        return literal(-value.value, value.dtype)
    if value.op is Op.UNARY and value.value == "-":
        return value.args[0]
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
    kind, operands = meet((base, exponent), "**")
    kind = make_floating_dtype(kind)
    return elementary("pow", kind, [_fit(value, kind) for value in operands], glsl="pow", precise=precise)


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
    known = _known_order(symbol, a, b)
    if known is not None:
        return literal(known, bool_)
    kind, operands = meet((a, b), symbol)
    if not is_scalar(kind):
        if symbol not in ("==", "!="):
            raise located(
                ArgumentTypeError,
                f"{symbol}: {kind.name} has no order; compare components and join them with vc.all",
            )
        operands = [cast(value, kind) for value in operands]
    return _make(Op.COMPARE, bool_, tuple(operands), symbol)


def _known_order(symbol: str, a: Operand, b: Operand) -> bool | None:
    """Return what a comparison with a number beyond the other side's integer type always gives, else None.

    The number's own type would wrap around one of the two.
    """
    if isinstance(a, Expr) and is_integer_number(b) and symbol in _ORDERS:
        kind, number, order = a.dtype, int(b), _ORDERS[symbol]
    elif isinstance(b, Expr) and is_integer_number(a) and symbol in _ORDERS:
        kind, number, order = b.dtype, int(a), not _ORDERS[symbol]
    else:
        return None
    if kind is bool_ or not is_scalar(kind) or not is_integer_dtype(kind) or _fits(number, kind):
        return None
    return order is (number > 0)


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
        kind = promote(literal_dtype(a), literal_dtype(b), "select")
        a = literal(a, kind)
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is b.dtype:
        return _make(Op.SELECT, a.dtype, (truth, a, b))
    kind, values = meet((a, b), "select")
    chosen, other = (cast(value, kind) for value in values)
    return _make(Op.SELECT, kind, (truth, chosen, other))


# ---- values to store -----------------------------------------------------------------------------


def storable(value: Expr | Number | complex, kind: DType) -> Expr:
    """Value as it may be stored in a place of type `kind`.

    Numbers become literals, for every component of a vector or matrix; truth values become numbers; other
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
    scalar = component_type(kind)
    if isinstance(value, complex):
        if not is_complex(kind):
            raise located(ArgumentTypeError, f"cannot store the complex number {value!r} in {kind.name}")
        return construct(kind, (value,))
    if is_integer_dtype(scalar):
        _check_integer(value, scalar)
    return cast(literal(value, scalar), kind)


def _check_integer(value: Number, scalar: DType) -> None:
    if not is_integer_number(value):
        raise located(
            ArgumentValueError,
            f"cannot store the float {value!r} in {scalar.name}; give an int or convert the value",
        )
    check_fits(value, scalar)


def check_fits(value: int, scalar: DType) -> None:
    """Raise ValueError unless an integer type of either sign and of this width holds a number."""
    bits = 8 * scalar.item_size
    # -1 for all bits set is common, so either signedness of the width will do
    if not -(1 << (bits - 1)) <= int(value) < (1 << bits):
        raise located(ArgumentValueError, f"{value} does not fit in {scalar.name}")
