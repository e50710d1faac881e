"""Python's numbers as literals of a type, and what to say of those that it does not hold."""

from typing import TypeGuard

from vkdispatch.base.dtype import (
    DType,
    bfloat16,
    bool_,
    float32,
    int32,
    int64,
    is_float_dtype,
    is_integer_dtype,
    uint32,
    uint64,
)
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.ir import Expr, Op, Value
from vkdispatch.ir.location import here, located
from vkdispatch.ir.numbers import (
    bounds,
    common_type,
    fits,
    is_finite,
    wider_type,
    wrap,
)

Number = int | float
Operand = Expr | Number


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
    return dtype_of_numbers(value)


def dtype_of_numbers(*values: Number) -> DType:
    """Type that numbers without a GPU value beside them have together."""
    if not all(map(is_integer_number, values)):
        return float32
    kind = common_type([int(value) for value in values], (uint32, int32, uint64, int64))
    if kind is None:
        listed = " and ".join(str(value) for value in values)
        raise located(ArgumentValueError, f"no 64-bit integer type can represent {listed}")
    return kind


def literal(value: Number | bool, kind: DType, what: str = "") -> Expr:
    """Make a scalar literal of type `kind`; floats lose their fraction in an integer type.

    Raises ValueError for a number that does not fit; `what` says what was being done.
    """
    if kind is bool_:
        return make_node(Op.LITERAL, kind, value=bool(value))
    if is_float_dtype(kind):
        if not fits(value, kind):
            raise _misfit(value, kind, what)
        return make_node(Op.LITERAL, kind, value=float(value))
    if not (is_finite(value) and fits(int(value), kind)):
        raise _misfit(value, kind, what)
    return make_node(Op.LITERAL, kind, value=int(value))


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


def wrap_literal(value: Number, kind: DType) -> Expr:
    """Make a literal as GLSL converts a number: integers keep their lowest bits."""
    if is_integer_dtype(kind) and is_finite(value):
        return make_node(Op.LITERAL, kind, value=wrap(int(value), kind))
    if is_float_dtype(kind):
        return make_node(Op.LITERAL, kind, value=float(value))
    return literal(value, kind)


def converted_literal(value: Number, kind: DType) -> Expr:
    """Make a scalar literal of a number that the user converts: -1 as an unsigned number has all bits set.

    Raises ValueError unless an integer type of either sign and of this width holds the number.
    """
    if is_integer_dtype(kind) and is_finite(value):
        bits = 8 * kind.item_size
        if -(1 << (bits - 1)) <= int(value) < 1 << bits:
            return wrap_literal(value, kind)
    return literal(value, kind)


def make_node(op: Op, kind: DType, args: tuple[Expr, ...] = (), value: Value = None) -> Expr:
    """Make an expression that the user's current line wrote."""
    return Expr(op, kind, args, value, here())


def check_stored(value: Number, scalar: DType) -> None:
    """Raise ValueError unless a place of a scalar type takes a number as it is, but for rounding."""
    if is_float_dtype(scalar) or scalar in (bool_, bfloat16):
        return
    if not is_integer_number(value):
        raise located(
            ArgumentValueError,
            f"cannot store the float {value!r} in {scalar.name}; pass an int or convert the value",
        )
    if not fits(int(value), scalar):
        low, high = bounds(scalar)
        text = f"cannot store {value} in {scalar.name}: it does not fit ({low} to {high})"
        if low - high - 1 <= value <= 2 * high + 1:
            text += f"; {wrap(int(value), scalar)} has the same bits"
        raise located(ArgumentValueError, text)
