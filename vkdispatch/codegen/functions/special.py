"""Functions that GLSL lacks, made of those that it has.

The errors given are those of exact arithmetic in between; a device's own `exp` and `log` add theirs.
float64 goes through float32, but for `hypot`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float16,
    float32,
    float64,
    is_complex,
    is_matrix,
    is_scalar,
    is_vector,
    make_floating_dtype,
    to_vector,
)
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen import expressions as ex
from vkdispatch.codegen.functions.elementwise import all_numbers, by_component, fold, operands
from vkdispatch.codegen.ir import Expr
from vkdispatch.codegen.location import located
from vkdispatch.codegen.variables import ShaderVariable

_SMALLEST: dict[DType, float] = {float32: 1.1754943508222875e-38, float64: 2.2250738585072014e-308}
_LARGEST: dict[DType, float] = {float32: 3.4028234663852886e38, float64: 1.7976931348623157e308}


def _computed(name: str, x: Any, rule: Callable[[Expr], Expr]) -> ShaderVariable:
    """Apply a rule for float32 scalars to any real values, by component."""
    (value,) = operands(name, (x,))
    assert isinstance(value, Expr)
    if is_complex(value.dtype) or is_matrix(value.dtype):
        raise located(ArgumentValueError, f"{name}: not defined for {value.dtype.name}")
    kind = make_floating_dtype(value.dtype)
    single = to_vector(float32, kind.child_count) if is_vector(kind) else float32
    return ShaderVariable(ex.cast(by_component(ex.cast(value, single), single, rule), kind))


def _horner(x: Expr, coefficients: list[float]) -> Expr:
    """Polynomial with these coefficients, the constant first."""
    total: ex.Operand = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = ex.add("+", ex.multiply(total, x), coefficient)
    assert isinstance(total, Expr)
    return total


def _call(function: str, x: Expr) -> Expr:
    return ex.call(function, float32, x)


def log10(x: Any) -> Any:
    """Logarithm to base 10, in floating point: log2(x) * log10(2). A number gives a float."""
    operands("log10", (x,))
    if all_numbers((x,)):
        return fold(np.log10, (x,))
    return _computed("log10", x, lambda value: ex.multiply(_call("log2", value), math.log10(2)))


def log1p(x: Any) -> Any:
    """log(1 + x), also for small x, in floating point. A number gives a float.

    Near zero it is 2 artanh(x / (2 + x)) as a series, within 2 units in the last place of float32.
    """
    operands("log1p", (x,))
    return fold(np.log1p, (x,)) if all_numbers((x,)) else _computed("log1p", x, _log1p)


def _log1p(x: Expr) -> Expr:
    s = ex.divide(x, ex.add("+", x, 2.0))
    series = _horner(ex.multiply(s, s), [2.0, 2 / 3, 2 / 5, 2 / 7, 2 / 9])
    near = ex.compare("<", ex.call("abs", float32, ex.add("+", x, -0.0625)), 0.3125)
    return ex.select(near, ex.multiply(s, series), _call("log", ex.add("+", x, 1.0)))


def expm1(x: Any) -> Any:
    """exp(x) - 1, also for small x, in floating point. A number gives a float.

    For |x| below a half it is the Taylor series, within 2 units in the last place of float32.
    """
    operands("expm1", (x,))
    return fold(np.expm1, (x,)) if all_numbers((x,)) else _computed("expm1", x, _expm1)


def _expm1(x: Expr) -> Expr:
    series = _horner(x, [1 / math.factorial(n) for n in range(1, 10)])
    near = ex.compare("<", ex.call("abs", float32, x), 0.5)
    return ex.select(near, ex.multiply(x, series), ex.add("-", _call("exp", x), 1.0))


def cbrt(x: Any) -> Any:
    """Cube root, in floating point, also of negative values. A number gives a float.

    exp2(log2(|x|) / 3) and one step of Newton's method: within 2 units in the last place of float32.
    """
    operands("cbrt", (x,))
    return fold(np.cbrt, (x,)) if all_numbers((x,)) else _computed("cbrt", x, _cbrt)


def _cbrt(x: Expr) -> Expr:
    size = ex.call("abs", float32, x)
    root = _call("exp2", ex.multiply(_call("log2", size), 1 / 3))
    step = ex.divide(ex.add("-", root, ex.divide(size, ex.multiply(root, root))), 3.0)
    # of zero and of infinity there is nothing to improve
    plain = ex.logical("||", (ex.compare("==", size, 0.0), ex.call("isinf", bool_, x)))
    return ex.select(plain, x, ex.multiply(_call("sign", x), ex.add("-", root, step)))


def erf(x: Any) -> Any:
    """Error function, in floating point. A number gives a float.

    For |x| below a half its Taylor series, within 2 units in the last place of float32; else formula 7.1.26
    of Abramowitz and Stegun, Handbook of Mathematical Functions, whose absolute error is below 2e-7.
    """
    operands("erf", (x,))
    return math.erf(x) if all_numbers((x,)) else _computed("erf", x, _erf)


def _erf(x: Expr) -> Expr:
    scale = 2 / math.sqrt(math.pi)
    terms = [scale * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(8)]
    size = ex.call("abs", float32, x)
    square = ex.multiply(x, x)
    t = ex.divide(1.0, ex.add("+", ex.multiply(size, 0.3275911), 1.0))
    tail = _horner(t, [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429])
    tail = ex.multiply(ex.multiply(t, tail), _call("exp", ex.negate(square)))
    far = ex.multiply(_call("sign", x), ex.add("-", 1.0, tail))
    return ex.select(ex.compare("<", size, 0.5), ex.multiply(x, _horner(square, terms)), far)


def hypot(x: Any, y: Any) -> Any:
    """sqrt(x * x + y * y) without overflow in between, in floating point and in the promoted type.

    Within 2 units in the last place. Numbers give a float.
    """
    values = operands("hypot", (x, y))
    if all_numbers((x, y)):
        return fold(np.hypot, (x, y))
    kind, parts = ex.meet(values, "hypot")
    if is_complex(kind) or is_matrix(kind):
        raise located(ArgumentValueError, f"hypot: not defined for {kind.name}")
    kind = make_floating_dtype(kind)
    wide = kind
    if component_type(kind) is float16:
        # its squares would not fit
        wide = float32 if is_scalar(kind) else to_vector(float32, kind.child_count)
    a, b = (ex.call("abs", wide, ex.cast(part, wide)) for part in parts)
    scalar = component_type(wide)
    tiny, huge = (ex.cast(ex.literal(limit[scalar], scalar), wide) for limit in (_SMALLEST, _LARGEST))
    longer, shorter = ex.call("max", wide, a, b), ex.call("min", wide, a, b)
    ratio = ex.divide(ex.call("min", wide, shorter, huge), ex.call("max", wide, longer, tiny))
    root = ex.call("sqrt", wide, ex.add("+", ex.multiply(ratio, ratio), 1.0))
    return ShaderVariable(ex.cast(ex.multiply(longer, root), kind))


__all__ = ["cbrt", "erf", "expm1", "hypot", "log1p", "log10"]
