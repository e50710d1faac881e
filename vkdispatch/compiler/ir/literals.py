"""Python numbers in programs: which types hold one, literals, and functions of floats with C's results."""

import math
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.ir.program import Expr, Op, Value

# ---- Python numbers and GPU types: which types hold a number, and exact comparisons with a number --------


# Numbers of this magnitude round to infinity.
_TOO_LARGE: dict[dt.DType, float] = {
    dt.float16: 65520.0,
    dt.float32: 2.0**128 - 2.0**103,
    dt.float64: math.inf,
}
_LARGEST: dict[dt.DType, float] = {
    dt.float16: 65504.0,
    dt.float32: 2.0**128 - 2.0**104,
    dt.float64: sys.float_info.max,
}
_MIN_NORMAL: dict[dt.DType, float] = {dt.float16: 2.0**-14, dt.float32: 2.0**-126}
# The bytes of a float type, and those of a signed integer of its size.
_BYTES: dict[dt.DType, tuple[struct.Struct, struct.Struct]] = {
    dt.float16: (struct.Struct("<e"), struct.Struct("<h")),
    dt.float32: (struct.Struct("<f"), struct.Struct("<i")),
    dt.float64: (struct.Struct("<d"), struct.Struct("<q")),
}
# What a comparison is with its sides swapped.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def is_long(kind: dt.DType) -> bool:
    """Whether a type is an integer of 64 bits."""
    return kind in (dt.int64, dt.uint64)


def bounds(kind: dt.DType) -> tuple[int, int]:
    """Smallest and largest number of an integer type."""
    bits = 8 * kind.item_size
    signed = dt.is_signed_dtype(kind) or kind is dt.int8
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def fits(value: float, kind: dt.DType) -> bool:
    """Whether a scalar type holds a number, which may round in a float type and is an int for an integer one.

    Infinity and NaN fit in a float type.
    """
    if dt.is_float_dtype(kind):
        try:
            return abs(float(value)) < _TOO_LARGE[kind] or not math.isfinite(value)
        except OverflowError:
            return False
    low, high = bounds(kind)
    return low <= value <= high


def rounded(value: float, kind: dt.DType) -> float:
    """Return the nearest number of a float type, ties to even: infinity beyond the largest ones."""
    if kind is dt.float64:
        return value
    form, _ = _BYTES[kind]
    try:
        return form.unpack(form.pack(value))[0]  # type: ignore[no-any-return]
    except OverflowError:
        return math.copysign(math.inf, value)


def digits(value: float, kind: dt.DType) -> str:
    """Return the shortest decimal that rounds to `value` in the float type `kind`, as Python writes it.

    `value` is a number of that type.
    """
    if kind is dt.float64 or not math.isfinite(value):
        return repr(value)
    # A decimal of `few` digits survives a normal number, so that fewer need no trial; `most` always do.
    few, most = (3, 5) if kind is dt.float16 else (6, 9)
    if abs(value) < _MIN_NORMAL[kind]:
        few = 1
    shorter = (float(f"{value:.{count}g}") for count in range(few, most))
    return repr(next((near for near in shorter if rounded(near, kind) == value), float(f"{value:.{most}g}")))


def is_finite(value: float) -> bool:
    """Whether a number is neither infinite nor NaN; ints of any size are not."""
    # math.isfinite raises for a large int
    return isinstance(value, int) or math.isfinite(value)


def wrap(value: int, kind: dt.DType) -> int:
    """Return the number of an integer type that has the lowest bits of `value`."""
    low, _ = bounds(kind)
    return (value - low) % (1 << (8 * kind.item_size)) + low


def common_type(values: Sequence[int], candidates: Sequence[dt.DType]) -> dt.DType | None:
    """First of the integer types that holds all values, or None."""
    return next((kind for kind in candidates if all(fits(value, kind) for value in values)), None)


def wider_type(value: float, kind: dt.DType) -> dt.DType | None:
    """Return a type that holds a number and, at least nearly, all values of `kind`; None if there is none."""
    candidates: tuple[dt.DType, ...] = (dt.float32, dt.float64)
    if not dt.is_float_dtype(kind):
        signed = dt.is_signed_dtype(kind) or value < 0
        candidates = (dt.int32, dt.int64) if signed else (dt.uint32, dt.uint64)
    return next((wide for wide in candidates if wide.item_size >= kind.item_size and fits(value, wide)), None)


# ---- comparisons ---------------------------------------------------------------------------------


def exact_comparison(symbol: str, kind: dt.DType, number: float) -> bool | tuple[str, float]:
    """Return the mathematically exact comparison of values of the scalar type `kind` with a number.

    It is a bool if it is the same for all values of the type, and otherwise an equivalent operator and a
    number of the type. A Python float is rounded to a float type.
    """
    if dt.is_float_dtype(kind):
        return _with_float(symbol, kind, number)
    if not is_finite(number):
        return _beyond(symbol, number)
    if number != math.floor(number):
        if symbol in ("==", "!="):
            return symbol == "!="
        number = math.ceil(number) if symbol in ("<", ">=") else math.floor(number)
    number = int(number)
    return (symbol, number) if fits(number, kind) else _beyond(symbol, number)


def _beyond(symbol: str, number: float) -> bool:
    """Return the outcome for a number that is above or below all values, or is NaN."""
    if symbol in ("==", "!="):
        return symbol == "!="
    return number > 0 if symbol in ("<", "<=") else number < 0


def _with_float(symbol: str, kind: dt.DType, number: float) -> bool | tuple[str, float]:
    if not isinstance(number, int):
        below = above = number
        if not fits(number, kind):
            below, above = _around(math.inf, kind) if number > 0 else _around(-math.inf, kind)
    else:
        below, above = _neighbours(number, kind)
    if below == above or number != number:
        return symbol, number
    if symbol in ("==", "!="):
        return symbol == "!="
    return symbol, above if symbol in ("<", ">=") else below


def _around(infinity: float, kind: dt.DType) -> tuple[float, float]:
    largest = math.copysign(_LARGEST[kind], infinity)
    return (largest, infinity) if infinity > 0 else (infinity, largest)


def _neighbours(number: int, kind: dt.DType) -> tuple[float, float]:
    """Largest number of a float type that is not above an int, and smallest that is not below."""
    if not fits(number, kind):
        return _around(math.inf if number > 0 else -math.inf, kind)
    nearest = rounded(float(number), kind)
    if not math.isfinite(nearest):
        return _around(nearest, kind)
    if int(nearest) == number:
        return nearest, nearest
    # the next number of the type is the next integer of its size; no integer lies beside 0
    form, whole = _BYTES[kind]
    outwards = (int(nearest) < number) == (nearest > 0)
    (bits,) = whole.unpack(form.pack(nearest))
    (other,) = form.unpack(whole.pack(bits + (1 if outwards else -1)))
    low, high = sorted((nearest, other))
    return low, high


def known_outcome(symbol: str, kind: dt.DType, number: float) -> bool | None:
    """Return the outcome of comparing any value of an integer type with a number; None if values differ."""
    exact = exact_comparison(symbol, kind, number)
    if isinstance(exact, bool):
        return exact
    if dt.is_float_dtype(kind):
        return None
    symbol, number = exact
    low, high = bounds(kind)
    if symbol in (">=", "<") and number == low:
        return symbol == ">="
    if symbol in ("<=", ">") and number == high:
        return symbol == "<="
    return None


# ---- Python's numbers as literals of a type, and what to say of those that it does not hold --------------


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


def literal_dtype(value: Number) -> dt.DType:
    """Type that a number has by itself.

    The first of uint32, int32, uint64, int64 that holds it, or float32.
    """
    return dtype_of_numbers(value)


def dtype_of_numbers(*values: Number) -> dt.DType:
    """Type that numbers without a GPU value beside them have together."""
    if not all(map(is_integer_number, values)):
        return dt.float32
    kind = common_type([int(value) for value in values], (dt.uint32, dt.int32, dt.uint64, dt.int64))
    if kind is None:
        listed = " and ".join(str(value) for value in values)
        raise located(ArgumentValueError, f"no 64-bit integer type can represent {listed}")
    return kind


def literal(value: Number | bool, kind: dt.DType, what: str = "") -> Expr:
    """Make a scalar literal of type `kind`; floats lose their fraction in an integer type.

    Raises ValueError for a number that does not fit; `what` says what was being done.
    """
    if kind is dt.bool_:
        return make_node(Op.LITERAL, kind, value=bool(value))
    if dt.is_float_dtype(kind):
        if not fits(value, kind):
            raise _misfit(value, kind, what)
        return make_node(Op.LITERAL, kind, value=float(value))
    if not (is_finite(value) and fits(int(value), kind)):
        raise _misfit(value, kind, what)
    return make_node(Op.LITERAL, kind, value=int(value))


def _misfit(value: Number, kind: dt.DType, what: str) -> ArgumentValueError:
    text = f"{what}: " if what else ""
    if not is_finite(value):
        return located(ArgumentValueError, f"{text}{value} cannot become {kind.name}")
    text += f"{value} does not fit in {kind.name}"
    if dt.is_integer_dtype(kind):
        text += " ({} to {})".format(*bounds(kind))
    wide = wider_type(value, kind)
    if what and wide is not None:
        text += f", the type that it meets; convert the GPU value with .to_dtype(vd.{wide.name})"
    return located(ArgumentValueError, text)


def wrap_literal(value: Number, kind: dt.DType) -> Expr:
    """Make a literal as GLSL converts a number: integers keep their lowest bits."""
    if dt.is_integer_dtype(kind) and is_finite(value):
        return make_node(Op.LITERAL, kind, value=wrap(int(value), kind))
    if dt.is_float_dtype(kind):
        return make_node(Op.LITERAL, kind, value=float(value))
    return literal(value, kind)


def converted_literal(value: Number, kind: dt.DType) -> Expr:
    """Make a scalar literal of a number that the user converts: -1 as an unsigned number has all bits set.

    Raises ValueError unless an integer type of either sign and of this width holds the number.
    """
    if dt.is_integer_dtype(kind) and is_finite(value):
        bits = 8 * kind.item_size
        if -(1 << (bits - 1)) <= int(value) < 1 << bits:
            return wrap_literal(value, kind)
    return literal(value, kind)


def make_node(op: Op, kind: dt.DType, args: tuple[Expr, ...] = (), value: Value = None) -> Expr:
    """Make an expression that the user's current line wrote."""
    return Expr(op, kind, args, value, here())


def check_stored(value: Number, scalar: dt.DType) -> None:
    """Raise ValueError unless a place of a scalar type takes a number as it is, but for rounding."""
    if dt.is_float_dtype(scalar) or scalar in (dt.bool_, dt.bfloat16):
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


def _with_c_results(
    function: Callable[[float], float], poles: Mapping[float, float] | None = None
) -> Callable[[float], float]:
    """Make a function give `poles` of some numbers, NaN outside of its domain, and infinity for overflow."""
    limits = poles or {}

    def rule(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return limits.get(x, math.nan)
        except OverflowError:
            return math.copysign(math.inf, x)

    return rule


sin = _with_c_results(math.sin)
cos = _with_c_results(math.cos)
tan = _with_c_results(math.tan)
asin = _with_c_results(math.asin)
acos = _with_c_results(math.acos)
atan = math.atan
atan2 = math.atan2
sinh = _with_c_results(math.sinh)
_cosh = _with_c_results(math.cosh)
tanh = math.tanh
asinh = math.asinh
acosh = _with_c_results(math.acosh)
atanh = _with_c_results(math.atanh, {1.0: math.inf, -1.0: -math.inf})
exp = _with_c_results(math.exp)
exp2 = _with_c_results(math.exp2)
expm1 = _with_c_results(math.expm1)
log = _with_c_results(math.log, {0.0: -math.inf})
log2 = _with_c_results(math.log2, {0.0: -math.inf})
log10 = _with_c_results(math.log10, {0.0: -math.inf})
log1p = _with_c_results(math.log1p, {-1.0: -math.inf})
sqrt = _with_c_results(math.sqrt)
cbrt = math.cbrt
hypot = math.hypot
erf = math.erf
erfc = math.erfc


def cosh(x: float) -> float:
    """Hyperbolic cosine."""
    return _cosh(abs(x))


def pow(x: float, y: float) -> float:
    """X to the power of y."""
    try:
        return math.pow(x, y)
    except (ValueError, OverflowError):
        if x < 0 and not y.is_integer():
            return math.nan
        # a power of 0, or too large for a float
        return math.copysign(math.inf, x) if abs(math.fmod(y, 2)) == 1 else math.inf


def divide(x: float, y: float) -> float:
    """Quotient of two numbers."""
    if y:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def fmod(x: float, y: float) -> float:
    """Remainder with the sign of x."""
    return math.fmod(x, y) if y and not math.isinf(x) else math.nan


def sign(x: float) -> float:
    """-1, 0 or 1; NaN of NaN."""
    return x if x != x else float((x > 0) - (x < 0))


def _to_whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


floor = _to_whole(math.floor)
ceil = _to_whole(math.ceil)
trunc = _to_whole(math.trunc)
rint = _to_whole(round)


def minimum(x: float, y: float) -> float:
    """Smaller number; NaN where one is."""
    return x if x != x or x < y else y


def maximum(x: float, y: float) -> float:
    """Larger number; NaN where one is."""
    return x if x != x or x > y else y


def clip(x: float, low: float, high: float) -> float:
    """Limit x to [low, high]; NaN where one is."""
    return minimum(maximum(x, low), high)


def _reduce_pi(x: float) -> tuple[float, int]:
    """Return pi times what is left of |x| modulo 2 beside the nearest half, and that half's number."""
    rest = math.fmod(abs(x), 2.0)
    halves = round(2.0 * rest)
    return math.pi * (rest - 0.5 * halves), halves % 4


def sinpi(x: float) -> float:
    """Sine of pi x; exact at multiples of 1/2, zero with the sign of x at whole numbers."""
    if not math.isfinite(x):
        return math.nan
    angle, halves = _reduce_pi(x)
    y = math.cos(angle) if halves % 2 else math.sin(angle)
    return math.copysign(1.0, x) * (-y if halves >= 2 and y else y)


def cospi(x: float) -> float:
    """Cosine of pi x; exact at multiples of 1/2, where its zeros are positive."""
    if not math.isfinite(x):
        return math.nan
    angle, halves = _reduce_pi(x)
    y = math.sin(angle) if halves % 2 else math.cos(angle)
    return -y if halves in (1, 2) and y else y


def gamma(x: float) -> float:
    """Gamma function; infinite at zeros, NaN at negative whole numbers."""
    if x == 0:
        return math.copysign(math.inf, x)
    if x == -math.inf:
        return math.nan
    try:
        return math.gamma(x)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def lgamma(x: float) -> float:
    """Logarithm of the gamma function's absolute value; infinite at its poles."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf
