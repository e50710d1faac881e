"""Element-wise operations of real numbers, integers and booleans, by the names of NumPy's ufuncs.

Each gets operands of the dtypes of NumPy's loop, as kernels compute with them, and the dtype of the result.
`complex_operations` has those of complex numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import is_complex, is_float_dtype
from vkdispatch.families.values import wrap_integer
from vkdispatch.numpy.core import complex_operations as of_complex
from vkdispatch.numpy.core.complex_operations import copy_sign, has_sign
from vkdispatch.numpy.core.expressions import Operation
from vkdispatch.numpy.core.memory import Kind, float32, kernel_type

Compute = Callable[..., Any]


def _is_bool(value: Any) -> bool:
    return value.var_type is dt.bool_


def _is_float(value: Any) -> bool:
    return is_float_dtype(value.var_type)


def _is_signed(kind: Kind) -> bool:
    return kind.kind == "i"


def _bits(kind: Kind) -> int:
    return kind.itemsize * 8


def _zero(value: Any) -> Any:
    return vc.to_dtype(value.var_type, 0)


def _one(value: Any) -> Any:
    return vc.to_dtype(value.var_type, 1)


def _wrap(compute: Compute) -> Compute:
    """Let integers of 8 and 16 bits wrap around, which kernels compute in 32 bits."""

    def wrap(*values: Any) -> Any:
        return wrap_integer(compute(*values), kernel_type(values[-1]))

    return wrap


# ---- arithmetic ----------------------------------------------------------------------------------


@_wrap
def _add(x: Any, y: Any, kind: Kind) -> Any:
    return vc.logical_or(x, y) if _is_bool(x) else x + y


@_wrap
def _subtract(x: Any, y: Any, kind: Kind) -> Any:
    return x - y


@_wrap
def _multiply(x: Any, y: Any, kind: Kind) -> Any:
    if _is_bool(x):
        return vc.logical_and(x, y)
    return of_complex.multiply(x, y) if is_complex(x.var_type) else x * y


def _divide(x: Any, y: Any, kind: Kind) -> Any:
    if x.var_type is dt.float16:  # quotients of float32 are exact enough to be rounded once
        return (x.to_dtype(dt.float32) / y.to_dtype(dt.float32)).to_dtype(dt.float16)
    return of_complex.divide(x, y) if is_complex(x.var_type) else _quotient(x, y)


def _quotient(x: Any, y: Any) -> Any:
    """Divide real numbers. A device may take the inverse of a float32 above 2**126, a subnormal, for zero."""
    if x.var_type is not dt.float32:
        return x / y
    scale = vc.select(vc.abs(y) > 2.0**125, vc.to_dtype(dt.float32, 0.25), _one(y)).to_register()
    return vc.precise(x * scale) / vc.precise(y * scale)


def _variable(x: Any) -> Any:
    """Return a register of its own that starts as a value."""
    return vc.new_register(x.var_type, x)


def _not(x: Any) -> Any:
    return vc.select(x, False, True)


def _safe_divisor(y: Any) -> Any:
    return vc.select(y == 0, _one(y), y).to_register()


@_wrap
def _floor_divide(x: Any, y: Any, kind: Kind) -> Any:
    if kind.kind == "u":
        return vc.select(y == 0, _zero(x), x // _safe_divisor(y))
    if kind.kind == "i":
        # -1 is a divisor of its own: the least integer has no positive counterpart
        safe = vc.select(vc.logical_or(y == 0, y == -1), _one(y), y).to_register()
        quotient = vc.floor_divide(x, safe).to_register()
        return vc.select(y == 0, _zero(x), vc.select(y == -1, _zero(x) - x, quotient))
    if x.var_type is dt.float16:
        wide = _floor_divide(x.to_dtype(dt.float32), y.to_dtype(dt.float32), float32)
        return wide.to_dtype(dt.float16)
    rest = vc.fmod(x, y).to_register()
    borrowed = vc.logical_and(rest != 0, (rest < 0) != (y < 0))
    whole = vc.precise(_quotient(x - rest, y))
    quotient = vc.select(borrowed, whole - _one(x), whole).to_register()
    floored = vc.floor(quotient).to_register()
    rounded = vc.select(quotient - floored > 0.5, floored + _one(x), floored).to_register()
    signed = vc.select(quotient == 0, copy_sign(_zero(x), x / y), rounded)
    same = vc.logical_or((x < 0) == (y < 0), x == 0)
    of_infinity = vc.select(same, copy_sign(_zero(x), x / y), -_one(x))
    finite = vc.select(vc.logical_and(vc.isinf(y), vc.isfinite(x)), of_infinity, signed)
    return vc.select(vc.logical_or(y == 0, vc.isinf(x)), _divide_by_zero(x, y), finite)


def _divide_by_zero(x: Any, y: Any) -> Any:
    quotient = (x / y).to_register()
    return vc.select(vc.isinf(x), vc.select(y == 0, quotient, _nan(x)), quotient)


def _nan(x: Any) -> Any:
    return vc.to_dtype(x.var_type, vc.nan)


@_wrap
def _remainder(x: Any, y: Any, kind: Kind) -> Any:
    if kind.kind in "iu":
        safe = vc.select(vc.logical_or(y == 0, y == -1), _one(y), y) if kind.kind == "i" else _safe_divisor(y)
        safe = safe.to_register()
        rest = vc.floor_mod(x, safe) if kind.kind == "i" else x % safe
        trivial = vc.logical_or(y == 0, y == -1) if kind.kind == "i" else y == 0
        return vc.select(trivial, _zero(x), rest)
    return vc.floor_mod(x, y)


@_wrap
def _fmod(x: Any, y: Any, kind: Kind) -> Any:
    if kind.kind in "iu":
        safe = _safe_divisor(y)
        if kind.kind == "u":
            return vc.select(y == 0, _zero(x), x % safe)
        quotient = vc.select(
            y == -1, _zero(x), x - vc.to_dtype(x.var_type, _divide_towards_zero(x, safe)) * safe
        )
        return vc.select(y == 0, _zero(x), quotient)
    return vc.fmod(x, y)


def _divide_towards_zero(x: Any, y: Any) -> Any:
    quotient = vc.floor_divide(x, y).to_register()
    inexact = vc.logical_and(quotient < 0, quotient * y != x)
    return vc.select(inexact, quotient + _one(x), quotient).to_register()


@_wrap
def _negative(x: Any, kind: Kind) -> Any:
    return -x if kind.kind != "u" else _zero(x) - x


@_wrap
def _absolute(x: Any, kind: Kind) -> Any:
    if is_complex(x.var_type):
        return of_complex.absolute(x)
    return x if kind.kind in "bu" else vc.abs(x)


def _sign(x: Any, kind: Kind) -> Any:
    if is_complex(x.var_type):
        return of_complex.sign(x)
    if kind.kind == "u":
        return vc.select(x == 0, _zero(x), _one(x))
    if kind.kind == "i":
        return vc.select(x > 0, _one(x), vc.select(x < 0, _zero(x) - _one(x), _zero(x)))
    return vc.select(x > 0, _one(x), vc.select(x < 0, -_one(x), vc.select(x == 0, _zero(x), x)))


@_wrap
def _square(x: Any, kind: Kind) -> Any:
    return of_complex.multiply(x, x) if is_complex(x.var_type) else x * x


@_wrap
def _reciprocal(x: Any, kind: Kind) -> Any:
    if is_complex(x.var_type):
        return of_complex.reciprocal(x)
    if kind.kind in "iu":
        return (
            vc.select(x == 1, _one(x), vc.select(x == -1, x, _zero(x)))
            if kind.kind == "i"
            else vc.select(x == 1, _one(x), _zero(x))
        )
    return _one(x) / x


@_wrap
def _power(x: Any, y: Any, kind: Kind) -> Any:
    if is_complex(x.var_type):
        return of_complex.power(x, y)
    if kind.kind not in "iu":
        return vc.pow(x, y)
    # arrays refuse negative exponents; in a function of `vectorize` the inverse of other integers is 0
    return x**y


@_wrap
def _gcd(x: Any, y: Any, kind: Kind) -> Any:
    a = _variable(vc.abs(x) if kind.kind == "i" else x)
    b = _variable(vc.abs(y) if kind.kind == "i" else y)
    with vc.while_block(b != 0):
        rest = (vc.floor_mod(a, b) if kind.kind == "i" else a % b).to_register()
        a[:] = b
        b[:] = rest
    return vc.abs(a) if kind.kind == "i" else a


@_wrap
def _lcm(x: Any, y: Any, kind: Kind) -> Any:
    divisor = _gcd(x, y, kind).to_register()
    safe = _safe_divisor(divisor)
    product = vc.floor_divide(vc.abs(x), safe) * vc.abs(y) if kind.kind == "i" else x // safe * y
    return vc.select(divisor == 0, _zero(x), product)


# ---- comparisons, logic, bits --------------------------------------------------------------------


def _make_comparison(real: Compute, of_pair: Compute | None) -> Compute:
    def compare(x: Any, y: Any, kind: Kind) -> Any:
        if is_complex(x.var_type):
            assert of_pair is not None
            return of_pair(x, y)
        if _is_bool(x):
            x, y = vc.to_dtype(dt.int32, x), vc.to_dtype(dt.int32, y)
        return real(x, y)

    return compare


def _truth(x: Any) -> Any:
    if _is_bool(x):
        return x
    if is_complex(x.var_type):
        return vc.logical_or(x.real != 0, x.imag != 0)
    return x != 0


def _logical_and(x: Any, y: Any, kind: Kind) -> Any:
    return vc.logical_and(_truth(x), _truth(y))


def _logical_or(x: Any, y: Any, kind: Kind) -> Any:
    return vc.logical_or(_truth(x), _truth(y))


def _logical_xor(x: Any, y: Any, kind: Kind) -> Any:
    return vc.to_dtype(dt.int32, _truth(x)) != vc.to_dtype(dt.int32, _truth(y))


def _logical_not(x: Any, kind: Kind) -> Any:
    return _not(_truth(x))


def _make_bitwise(of_integers: Compute, of_booleans: Compute) -> Compute:
    def combine(x: Any, y: Any, kind: Kind) -> Any:
        return of_booleans(x, y, kind) if _is_bool(x) else of_integers(x, y)

    return combine


@_wrap
def _invert(x: Any, kind: Kind) -> Any:
    return _not(x) if _is_bool(x) else ~x


@_wrap
def _left_shift(x: Any, y: Any, kind: Kind) -> Any:
    large = vc.logical_or(y >= _bits(kind), y < 0) if _is_signed(kind) else y >= _bits(kind)
    safe = vc.select(large, _zero(y), y).to_register()
    return vc.select(large, _zero(x), x << safe)


@_wrap
def _right_shift(x: Any, y: Any, kind: Kind) -> Any:
    large = vc.logical_or(y >= _bits(kind), y < 0) if _is_signed(kind) else y >= _bits(kind)
    safe = vc.select(large, _zero(y), y).to_register()
    beyond = vc.select(x < 0, ~_zero(x), _zero(x)) if _is_signed(kind) else _zero(x)
    return vc.select(large, beyond, x >> safe)


def _bitwise_count(x: Any, kind: Kind) -> Any:
    if _is_bool(x):
        return vc.to_dtype(dt.uint32, x)
    if x.var_type is dt.int16:
        x = x.to_dtype(dt.int32)
    signed = x.var_type in (dt.int32, dt.int64)
    magnitude = vc.abs(x) if signed else x
    if magnitude.var_type in (dt.int64, dt.uint64):
        wide = vc.to_dtype(dt.uint64, magnitude).to_register()
        low = vc.bit_count(vc.to_dtype(dt.uint32, wide & 0xFFFFFFFF))
        return vc.to_dtype(dt.uint32, low + vc.bit_count(vc.to_dtype(dt.uint32, wide >> 32)))
    return vc.to_dtype(dt.uint32, vc.bit_count(vc.to_dtype(dt.uint32, magnitude)))


# ---- limits --------------------------------------------------------------------------------------


def _maximum(x: Any, y: Any, kind: Kind) -> Any:
    if _is_bool(x):
        return vc.logical_or(x, y)
    if is_complex(x.var_type):
        return of_complex.maximum(x, y)
    if _is_float(x):
        return vc.select(vc.logical_or(x > y, vc.isnan(x)), x, vc.select(x == y, _larger_zero(x, y), y))
    return vc.max(x, y)


def _larger_zero(x: Any, y: Any) -> Any:
    return vc.select(has_sign(x), y, x)


def _smaller_zero(x: Any, y: Any) -> Any:
    return vc.select(has_sign(x), x, y)


def _minimum(x: Any, y: Any, kind: Kind) -> Any:
    if _is_bool(x):
        return vc.logical_and(x, y)
    if is_complex(x.var_type):
        return of_complex.minimum(x, y)
    if _is_float(x):
        return vc.select(vc.logical_or(x < y, vc.isnan(x)), x, vc.select(x == y, _smaller_zero(x, y), y))
    return vc.min(x, y)


def _fmax(x: Any, y: Any, kind: Kind) -> Any:
    if is_complex(x.var_type):
        return of_complex.fmax(x, y)
    if _is_float(x):
        return vc.select(vc.isnan(x), y, vc.select(vc.isnan(y), x, _maximum(x, y, kind)))
    return _maximum(x, y, kind)


def _fmin(x: Any, y: Any, kind: Kind) -> Any:
    if is_complex(x.var_type):
        return of_complex.fmin(x, y)
    if _is_float(x):
        return vc.select(vc.isnan(x), y, vc.select(vc.isnan(y), x, _minimum(x, y, kind)))
    return _minimum(x, y, kind)


# ---- floats --------------------------------------------------------------------------------------


def _make_test(test: Compute, together: Compute, otherwise: bool) -> Compute:
    def check(x: Any, kind: Kind) -> Any:
        if is_complex(x.var_type):
            return together(test(x.real), test(x.imag))
        if _is_float(x):
            return test(x)
        return (
            vc.to_dtype(dt.int32, x) == vc.to_dtype(dt.int32, x)
            if otherwise
            else vc.to_dtype(dt.int32, x) != vc.to_dtype(dt.int32, x)
        )

    return check


def _copysign(x: Any, y: Any, kind: Kind) -> Any:
    return copy_sign(x, y)


def _signbit(x: Any, kind: Kind) -> Any:
    return has_sign(x) if _is_float(x) else x < 0


def _make_rounding(function: Compute) -> Compute:
    def compute(x: Any, kind: Kind) -> Any:
        if is_complex(x.var_type):
            return vc.to_complex(_keep_sign(function, x.real), _keep_sign(function, x.imag))
        return _keep_sign(function, x) if _is_float(x) else x

    return compute


def _keep_sign(function: Compute, x: Any) -> Any:
    """Round; zeros keep the sign of what was rounded to them."""
    result = function(x).to_register()
    return vc.select(result == 0, copy_sign(result, x), result)


def _nextafter(x: Any, y: Any, kind: Kind) -> Any:
    whole: Any = {dt.float64: dt.int64, dt.float16: dt.int16}.get(x.var_type, dt.int32)
    bits = vc.reinterpret(whole, x).to_register()
    away = (x < y) == (x > 0)
    moved = vc.reinterpret(
        x.var_type, vc.select(away, bits + vc.to_dtype(whole, 1), bits - vc.to_dtype(whole, 1))
    )
    tiny = vc.reinterpret(x.var_type, vc.to_dtype(whole, 1))
    from_zero = copy_sign(tiny, y)
    stepped = vc.select(x == 0, from_zero, moved).to_register()
    result = vc.select(x == y, y, stepped).to_register()
    return vc.select(vc.logical_or(vc.isnan(x), vc.isnan(y)), x + y, result)


def _heaviside(x: Any, y: Any, kind: Kind) -> Any:
    step = vc.select(x < 0, _zero(x), vc.select(x == 0, y, _one(x))).to_register()
    return vc.select(vc.isnan(x), x, step)


def _make_logaddexp(base: str) -> Compute:
    def compute(x: Any, y: Any, kind: Kind) -> Any:
        if x.var_type is dt.float16:
            wide = compute(x.to_dtype(dt.float32), y.to_dtype(dt.float32), kind)
            return wide.to_dtype(dt.float16)
        larger = vc.select(x > y, x, y).to_register()
        apart = (-vc.abs(x - y)).to_register()
        if base == "e":
            rest = vc.log1p(vc.exp(apart))
        else:
            rest = vc.log1p(vc.exp2(apart)) * vc.to_dtype(x.var_type, 1.4426950408889634)
        total = vc.select(
            x == y, x + vc.to_dtype(x.var_type, 0.6931471805599453 if base == "e" else 1.0), larger + rest
        )
        return vc.select(vc.logical_or(vc.isnan(x), vc.isnan(y)), x + y, total)

    return compute


def _make_function(real: Compute, of_pair: Compute | None = None) -> Compute:
    """Join a function of real numbers and the one of complex numbers."""

    def compute(*values: Any) -> Any:
        numbers = values[:-1]
        if is_complex(numbers[0].var_type):
            assert of_pair is not None
            return of_pair(*numbers)
        if numbers[0].var_type is dt.float16:
            return real(*(each.to_dtype(dt.float32) for each in numbers)).to_dtype(dt.float16)
        return real(*numbers)

    return compute


def _make_scaling(factor: float) -> Compute:
    return lambda x: x * vc.to_dtype(x.var_type, factor)


def _copy(x: Any, kind: Kind) -> Any:
    return x


def _where(condition: Any, x: Any, y: Any, kind: Kind) -> Any:
    return vc.select(condition, x, y)


def _zeros_like(x: Any, zero: Any, kind: Kind) -> Any:
    return zero


def _join(x: Any, y: Any, kind: Kind) -> Any:
    return vc.to_complex(x, y)


def _conjugate(x: Any, kind: Kind) -> Any:
    return vc.to_complex(x.real, -x.imag) if is_complex(x.var_type) else x


_TABLE: dict[str, Compute] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _fmod,
    "negative": _negative,
    "positive": _copy,
    "absolute": _absolute,
    "fabs": _absolute,
    "sign": _sign,
    "square": _square,
    "reciprocal": _reciprocal,
    "power": _power,
    "float_power": _power,
    "gcd": _gcd,
    "lcm": _lcm,
    "equal": _make_comparison(lambda x, y: x == y, of_complex.equal),
    "not_equal": _make_comparison(lambda x, y: x != y, of_complex.not_equal),
    "less": _make_comparison(lambda x, y: x < y, of_complex.less),
    "less_equal": _make_comparison(lambda x, y: x <= y, of_complex.less_equal),
    "greater": _make_comparison(lambda x, y: x > y, lambda x, y: of_complex.less(y, x)),
    "greater_equal": _make_comparison(lambda x, y: x >= y, lambda x, y: of_complex.less_equal(y, x)),
    "logical_and": _logical_and,
    "logical_or": _logical_or,
    "logical_xor": _logical_xor,
    "logical_not": _logical_not,
    "bitwise_and": _make_bitwise(lambda x, y: x & y, _logical_and),
    "bitwise_or": _make_bitwise(lambda x, y: x | y, _logical_or),
    "bitwise_xor": _make_bitwise(lambda x, y: x ^ y, _logical_xor),
    "invert": _invert,
    "left_shift": _left_shift,
    "right_shift": _right_shift,
    "bitwise_count": _bitwise_count,
    "maximum": _maximum,
    "minimum": _minimum,
    "fmax": _fmax,
    "fmin": _fmin,
    "isnan": _make_test(vc.isnan, vc.logical_or, False),
    "isinf": _make_test(vc.isinf, vc.logical_or, False),
    "isfinite": _make_test(vc.isfinite, vc.logical_and, True),
    "signbit": _signbit,
    "copysign": _copysign,
    "nextafter": _nextafter,
    "heaviside": _heaviside,
    "floor": _make_rounding(vc.floor),
    "ceil": _make_rounding(vc.ceil),
    "trunc": _make_rounding(vc.trunc),
    "rint": _make_rounding(vc.round),
    "logaddexp": _make_logaddexp("e"),
    "logaddexp2": _make_logaddexp("2"),
    "sqrt": _make_function(vc.sqrt, of_complex.sqrt),
    "cbrt": _make_function(vc.cbrt),
    "exp": _make_function(vc.exp, of_complex.exp),
    "exp2": _make_function(vc.exp2, of_complex.exp2),
    "expm1": _make_function(vc.expm1, of_complex.expm1),
    "log": _make_function(vc.log, of_complex.log),
    "log2": _make_function(vc.log2, of_complex.log2),
    "log10": _make_function(vc.log10, of_complex.log10),
    "log1p": _make_function(vc.log1p, of_complex.log1p),
    "sin": _make_function(vc.sin, of_complex.sin),
    "cos": _make_function(vc.cos, of_complex.cos),
    "tan": _make_function(vc.tan, of_complex.tan),
    "arcsin": _make_function(vc.asin, of_complex.arcsin),
    "arccos": _make_function(vc.acos, of_complex.arccos),
    "arctan": _make_function(vc.atan, of_complex.arctan),
    "sinh": _make_function(vc.sinh, of_complex.sinh),
    "cosh": _make_function(vc.cosh, of_complex.cosh),
    "tanh": _make_function(vc.tanh, of_complex.tanh),
    "arcsinh": _make_function(vc.asinh, of_complex.arcsinh),
    "arccosh": _make_function(vc.acosh, of_complex.arccosh),
    "arctanh": _make_function(vc.atanh, of_complex.arctanh),
    "arctan2": _make_function(vc.atan2),
    "hypot": _make_function(vc.hypot),
    "degrees": _make_function(_make_scaling(180 / np.pi)),
    "radians": _make_function(_make_scaling(np.pi / 180)),
    "conjugate": _conjugate,
}

# One operation for each ufunc that arrays have; what else computes by element has a name of its own.
OPERATIONS = {name: Operation(name, compute) for name, compute in _TABLE.items()}
COPY = Operation("copy", _copy)
WHERE = Operation("where", _where)
ZEROS_LIKE = Operation("zeros_like", _zeros_like)  # of an array and 0, which compilers must not know
JOIN = Operation("complex", _join)
