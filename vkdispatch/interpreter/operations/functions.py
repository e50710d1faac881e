"""GLSL functions without side effects on NumPy rows, in the precision of their operands."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.interpreter.operations import bits, mathematics
from vkdispatch.interpreter.values import Array, align, convert, host_dtype
from vkdispatch.ir.location import Loc, located

Rule = Callable[..., Array]


def call_function(name: str, kind: DType, args: Sequence[Array], loc: Loc | None) -> Array:
    """Call a GLSL function whose result has type `kind`. Raises UnsupportedError for unknown functions."""
    rule = _RULES.get(name)
    if rule is None:
        raise located(UnsupportedError, f"interpret: the GLSL function {name} is not known here", loc)
    return convert(rule(*args), host_dtype(kind))


# ---- component by component ----------------------------------------------------------------------


def _align_operands(rule: Rule) -> Rule:
    return lambda *args: rule(*align(*args))


def _keep_first_type(rule: Rule) -> Rule:
    """Convert the result to the type of the first operand, which constants may widen."""

    def apply(*args: Array) -> Array:
        args = align(*args)
        return rule(*args).astype(args[0].dtype, copy=False)

    return apply


def _min(a: Array, b: Array) -> Array:
    return np.where(b < a, b, a)


def _max(a: Array, b: Array) -> Array:
    return np.where(a < b, b, a)


def _clamp(value: Array, low: Array, high: Array) -> Array:
    return _min(_max(value, low), high)


def _mix(a: Array, b: Array, at: Array) -> Array:
    if at.dtype.kind == "b":
        return np.where(at, b, a)
    result: Array = a * (1 - at) + b * at
    return result


def _smoothstep(low: Array, high: Array, value: Array) -> Array:
    t = np.clip((value - low) / (high - low), 0, 1)
    result: Array = t * t * (3 - 2 * t)
    return result


def _fma(a: Array, b: Array, c: Array) -> Array:
    wide = np.float32 if a.dtype == np.float16 else np.float64
    return (a.astype(wide) * b + c).astype(a.dtype)


def _umul_high(a: Array, b: Array) -> Array:
    a, b = align(a, b)
    return (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32)


def _integer_power(base: Array, exponent: Array) -> Array:
    square, left = align(base, exponent)
    unit = np.where(square == 1, 1, np.where((square + 1 == 0) & (square < 1), 1 - 2 * (left & 1), 0))
    negative, power = left < 0, np.ones_like(square)
    while np.any(left > 0):
        power = np.where(left & 1, power * square, power)
        square, left = square * square, left >> 1
    return np.where(negative, unit.astype(power.dtype), power)


def _remainder_of_bits(kind: np.dtype[Any]) -> Rule:
    return lambda a, b: np.fmod(*(x.view(kind) for x in align(a, b))).view(a.dtype)


def _atan(y: Array, x: Array | None = None) -> Array:
    return np.arctan(y) if x is None else np.arctan2(*align(y, x))


# ---- geometry ------------------------------------------------------------------------------------


def _dot(a: Array, b: Array) -> Array:
    product = a * b
    return product if product.ndim == 1 else product.sum(axis=1, dtype=product.dtype)


def _length(value: Array) -> Array:
    return np.abs(value) if value.ndim == 1 else np.sqrt(_dot(value, value))


def _cross(a: Array, b: Array) -> Array:
    result: Array = np.roll(a, -1, 1) * np.roll(b, 1, 1) - np.roll(a, 1, 1) * np.roll(b, -1, 1)
    return result


def _add_axes(value: Array, beside: Array) -> Array:
    return value.reshape(value.shape + (1,) * (beside.ndim - value.ndim))


def _normalize(value: Array) -> Array:
    return value / _add_axes(_length(value), value)


def _faceforward(value: Array, incident: Array, reference: Array) -> Array:
    return np.where(_add_axes(_dot(reference, incident), value) < 0, value, -value)


def _reflect(incident: Array, normal: Array) -> Array:
    result: Array = incident - 2 * _add_axes(_dot(normal, incident), normal) * normal
    return result


def _refract(incident: Array, normal: Array, ratio: Array) -> Array:
    along = _dot(normal, incident)
    under = 1 - ratio * ratio * (1 - along * along)
    bent = _add_axes(ratio, incident) * incident - _add_axes(ratio * along + np.sqrt(under), normal) * normal
    return np.where(_add_axes(under, incident) < 0, 0, bent)


def _inverse(matrix: Array) -> Array:
    # the inverse of the transpose is the transposed inverse, so columns stay columns
    with np.errstate(all="ignore"):
        singular = np.linalg.det(matrix.astype(np.float64)) == 0
        safe = np.where(singular[:, None, None], np.eye(matrix.shape[1]), matrix)
        inverse = np.linalg.inv(safe.astype(np.float64))
        return np.where(singular[:, None, None], np.nan, inverse).astype(matrix.dtype)


def _determinant(matrix: Array) -> Array:
    result: Array = np.linalg.det(matrix.astype(np.float64)).astype(matrix.dtype)
    return result


def _ldexp(value: Array, exponent: Array) -> Array:
    value, exponent = align(value, exponent)
    return np.ldexp(value, exponent.astype(np.int32))


_ROUNDED: dict[str, Rule] = {
    "radians": lambda x: x * (np.pi / 180),
    "degrees": lambda x: x * (180 / np.pi),
    "inversesqrt": lambda x: 1 / np.sqrt(x),
    "fract": lambda x: x - np.floor(x),
    "mod": lambda x, y: x - y * np.floor(x / y),
    "mix": _mix,
    "smoothstep": _smoothstep,
    "step": lambda edge, x: np.where(x < edge, 0, 1),
    "sign": lambda x: np.sign(x),
    "pow": np.power,
}
_PLAIN: dict[str, Rule] = {
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "roundEven": np.rint,
    "min": _min,
    "max": _max,
    "clamp": _clamp,
    "fma": _fma,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "not": np.logical_not,
}
_RULES: dict[str, Rule] = {
    **bits.RULES,
    **mathematics.RULES,
    "umul_high": _umul_high,
    "wrapped": lambda value: value,
    "integer_power": _integer_power,
    "float_remainder": _remainder_of_bits(np.dtype(np.float32)),
    "double_remainder": _remainder_of_bits(np.dtype(np.float64)),
    **{name: _keep_first_type(rule) for name, rule in _ROUNDED.items()},
    **{name: _align_operands(rule) for name, rule in _PLAIN.items()},
    "atan": _atan,
    "ldexp": _ldexp,
    "length": _length,
    "distance": lambda a, b: _length(a - b),
    "dot": _dot,
    "cross": _cross,
    "normalize": _normalize,
    "faceforward": _faceforward,
    "reflect": _reflect,
    "refract": _refract,
    "matrixCompMult": np.multiply,
    "outerProduct": lambda column, row: row[:, :, None] * column[:, None, :],
    "transpose": lambda matrix: matrix.swapaxes(1, 2),
    "determinant": _determinant,
    "inverse": _inverse,
}
