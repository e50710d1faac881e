"""Element-wise operations of real numbers, integers and booleans, by the names of NumPy's ufuncs.

Each gets operands of the dtypes of NumPy's loop, as kernels compute with them, and the dtype of the result.
Of complex numbers, a function of `complex_operations` that has the name of the ufunc takes its place.
"""

import operator
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import is_complex, is_float_dtype
from vkdispatch.families.values import find_function, wrap_integer
from vkdispatch.numpy.core import complex_operations as of_complex
from vkdispatch.numpy.core.complex_operations import copy_sign, has_sign, is_false, round_to
from vkdispatch.numpy.core.expressions import Operation
from vkdispatch.numpy.core.memory import Kind, float32, kernel_type

Compute = Callable[..., Any]


def _is_bool(value: Any) -> bool:
    return value.var_type is dt.bool_


def _is_float(value: Any) -> bool:
    return is_float_dtype(value.var_type)


def _bits(kind: Kind) -> int:
    return kind.itemsize * 8


def _zero(value: Any) -> Any:
    return vc.to_dtype(value.var_type, 0)


def _one(value: Any) -> Any:
    return vc.to_dtype(value.var_type, 1)


def _wrap(compute: Compute) -> Compute:
    """Let integers of 8 and 16 bits wrap around, which kernels compute in 32 bits."""

    @wraps(compute)
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
    return vc.logical_and(x, y) if _is_bool(x) else x * y


def _divide(x: Any, y: Any, kind: Kind) -> Any:
    if x.var_type is dt.float16:  # quotients of float32 are exact enough to be rounded once
        return (x.to_dtype(dt.float32) / y.to_dtype(dt.float32)).to_dtype(dt.float16)
    return _quotient(x, y)


def _quotient(x: Any, y: Any) -> Any:
    """Divide real numbers. A device may take the inverse of a float32 above 2**126, a subnormal, for zero."""
    if x.var_type is not dt.float32:
        return x / y
    scale = vc.select(vc.abs(y) > 2.0**125, vc.to_dtype(dt.float32, 0.25), _one(y)).to_register()
    return vc.precise(x * scale) / vc.precise(y * scale)


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
    return vc.select(vc.isinf(x), vc.select(y == 0, quotient, vc.to_dtype(x.var_type, vc.nan)), quotient)


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
        rest = x - vc.to_dtype(x.var_type, _divide_towards_zero(x, safe)) * safe
        return vc.select(y == 0, _zero(x), vc.select(y == -1, _zero(x), rest))
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
    return x if kind.kind in "bu" else vc.abs(x)


def _sign(x: Any, kind: Kind) -> Any:
    if kind.kind == "u":
        return vc.select(x == 0, _zero(x), _one(x))
    if kind.kind == "i":
        return vc.select(x > 0, _one(x), vc.select(x < 0, _zero(x) - _one(x), _zero(x)))
    return vc.select(x > 0, _one(x), vc.select(x < 0, -_one(x), vc.select(x == 0, _zero(x), x)))


@_wrap
def _square(x: Any, kind: Kind) -> Any:
    return x * x


@_wrap
def _reciprocal(x: Any, kind: Kind) -> Any:
    if kind.kind == "f":
        return _one(x) / x
    rest = vc.select(x == -1, x, _zero(x)) if kind.kind == "i" else _zero(x)
    return vc.select(x == 1, _one(x), rest)


@_wrap
def _power(x: Any, y: Any, kind: Kind) -> Any:
    # arrays refuse negative exponents; in a function of `vectorize` the inverse of other integers is 0
    return x**y if kind.kind in "iu" else vc.pow(x, y)


@_wrap
def _gcd(x: Any, y: Any, kind: Kind) -> Any:
    a, b = (vc.new_register(z.var_type, vc.abs(z) if kind.kind == "i" else z) for z in (x, y))
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


def _make_comparison(function: Compute) -> Compute:
    def compare(x: Any, y: Any, kind: Kind) -> Any:
        if _is_bool(x):
            x, y = vc.to_dtype(dt.int32, x), vc.to_dtype(dt.int32, y)
        return function(x, y)

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
    return is_false(_truth(x))


def _make_bitwise(of_integers: Compute, of_booleans: Compute) -> Compute:
    def combine(x: Any, y: Any, kind: Kind) -> Any:
        return of_booleans(x, y, kind) if _is_bool(x) else of_integers(x, y)

    return combine


@_wrap
def _invert(x: Any, kind: Kind) -> Any:
    return is_false(x) if _is_bool(x) else ~x


@_wrap
def _left_shift(x: Any, y: Any, kind: Kind) -> Any:
    large = vc.logical_or(y >= _bits(kind), y < 0) if kind.kind == "i" else y >= _bits(kind)
    safe = vc.select(large, _zero(y), y).to_register()
    return vc.select(large, _zero(x), x << safe)


@_wrap
def _right_shift(x: Any, y: Any, kind: Kind) -> Any:
    large = vc.logical_or(y >= _bits(kind), y < 0) if kind.kind == "i" else y >= _bits(kind)
    safe = vc.select(large, _zero(y), y).to_register()
    beyond = vc.select(x < 0, ~_zero(x), _zero(x)) if kind.kind == "i" else _zero(x)
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
    if _is_float(x):
        return vc.select(vc.logical_or(x < y, vc.isnan(x)), x, vc.select(x == y, _smaller_zero(x, y), y))
    return vc.min(x, y)


def _fmax(x: Any, y: Any, kind: Kind) -> Any:
    if _is_float(x):
        return vc.select(vc.isnan(x), y, vc.select(vc.isnan(y), x, _maximum(x, y, kind)))
    return _maximum(x, y, kind)


def _fmin(x: Any, y: Any, kind: Kind) -> Any:
    if _is_float(x):
        return vc.select(vc.isnan(x), y, vc.select(vc.isnan(y), x, _minimum(x, y, kind)))
    return _minimum(x, y, kind)


# ---- floats --------------------------------------------------------------------------------------


def _make_test(test: Compute, of_integers: Compute) -> Compute:
    def check(x: Any, kind: Kind) -> Any:
        return test(x) if _is_float(x) else of_integers(vc.to_dtype(dt.int32, x), vc.to_dtype(dt.int32, x))

    return check


def _copysign(x: Any, y: Any, kind: Kind) -> Any:
    return copy_sign(x, y)


def _signbit(x: Any, kind: Kind) -> Any:
    return has_sign(x) if _is_float(x) else x < 0


def _make_rounding(function: Compute) -> Compute:
    def compute(x: Any, kind: Kind) -> Any:
        return round_to(function, x) if _is_float(x) else x

    return compute


def _nextafter(x: Any, y: Any, kind: Kind) -> Any:
    whole: Any = {dt.float64: dt.int64, dt.float16: dt.int16}.get(x.var_type, dt.int32)
    bits = vc.reinterpret(whole, x).to_register()
    away = (x < y) == (x > 0)
    moved = vc.select(away, bits + vc.to_dtype(whole, 1), bits - vc.to_dtype(whole, 1))
    moved = vc.reinterpret(x.var_type, moved)
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
        step = vc.to_dtype(x.var_type, 0.6931471805599453 if base == "e" else 1.0)
        total = vc.select(x == y, x + step, larger + rest)
        return vc.select(vc.logical_or(vc.isnan(x), vc.isnan(y)), x + y, total)

    return compute


def _make_function(function: Compute) -> Compute:
    """Let a function of kernels compute float16 in float32."""

    def compute(*values: Any) -> Any:
        numbers = values[:-1]
        if numbers[0].var_type is dt.float16:
            return function(*(number.to_dtype(dt.float32) for number in numbers)).to_dtype(dt.float16)
        return function(*numbers)

    return compute


def _make_scaling(factor: float) -> Compute:
    return lambda x: x * vc.to_dtype(x.var_type, factor)


def _positive(x: Any, kind: Kind) -> Any:
    return x


def _by_name(*functions: Compute) -> dict[str, Compute]:
    """Return functions by the names of their ufuncs."""
    return {function.__name__.removeprefix("_"): function for function in functions}


# Functions that kernels have too: arcsin by the name asin, and so on.
_OF_KERNELS = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin"),
    *("arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "arctan2", "hypot"),
)
_TABLE: dict[str, Compute] = {
    **_by_name(_add, _subtract, _multiply, _divide, _floor_divide, _remainder, _fmod),
    **_by_name(_negative, _positive, _absolute),
    "fabs": _absolute,
    **_by_name(_sign, _square, _reciprocal, _power),
    "float_power": _power,
    **_by_name(_gcd, _lcm),
    "equal": _make_comparison(operator.eq),
    "not_equal": _make_comparison(operator.ne),
    "less": _make_comparison(operator.lt),
    "less_equal": _make_comparison(operator.le),
    "greater": _make_comparison(operator.gt),
    "greater_equal": _make_comparison(operator.ge),
    **_by_name(_logical_and, _logical_or, _logical_xor, _logical_not),
    "bitwise_and": _make_bitwise(operator.and_, _logical_and),
    "bitwise_or": _make_bitwise(operator.or_, _logical_or),
    "bitwise_xor": _make_bitwise(operator.xor, _logical_xor),
    **_by_name(_invert, _left_shift, _right_shift, _bitwise_count, _maximum, _minimum, _fmax, _fmin),
    "isnan": _make_test(find_function("isnan"), operator.ne),
    "isinf": _make_test(find_function("isinf"), operator.ne),
    "isfinite": _make_test(find_function("isfinite"), operator.eq),
    **_by_name(_signbit, _copysign, _nextafter, _heaviside),
    "floor": _make_rounding(find_function("floor")),
    "ceil": _make_rounding(find_function("ceil")),
    "trunc": _make_rounding(find_function("trunc")),
    "rint": _make_rounding(find_function("round")),
    "logaddexp": _make_logaddexp("e"),
    "logaddexp2": _make_logaddexp("2"),
    **{name: _make_function(find_function(name.replace("arc", "a"))) for name in _OF_KERNELS},
    "degrees": _make_function(_make_scaling(180 / np.pi)),
    "radians": _make_function(_make_scaling(np.pi / 180)),
    "conjugate": _positive,
}


def _add_complex(name: str, compute: Compute) -> Compute:
    """Join an operation and the one of complex numbers, if there is one."""
    of_pairs = getattr(of_complex, name, None)
    if of_pairs is None:
        return compute

    def choose(*values: Any) -> Any:
        return of_pairs(*values[:-1]) if is_complex(values[0].var_type) else compute(*values)

    return choose


# One operation for each ufunc that arrays have; what else computes by element has a name of its own.
OPERATIONS = {name: Operation(name, _add_complex(name, compute)) for name, compute in _TABLE.items()}
COPY = Operation("copy", _positive)
WHERE = Operation("where", lambda condition, x, y, kind: vc.select(condition, x, y))
# of an array and 0, which compilers must not know
ZEROS_LIKE = Operation("zeros_like", lambda x, zero, kind: zero)
JOIN = Operation("complex", lambda x, y, kind: vc.to_complex(x, y))
