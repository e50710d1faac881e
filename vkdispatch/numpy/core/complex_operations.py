"""Element-wise operations of complex numbers, with the special values of C's Annex G where NumPy has them."""

from typing import Any

import vkdispatch.codegen as vc


def _number(x: Any, value: float) -> Any:
    return vc.to_dtype(x.var_type, value)


def _product(x: Any, y: Any) -> Any:
    return vc.precise(x * y)


def multiply(x: Any, y: Any) -> Any:
    """Product by the four products of the parts, as NumPy has it."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return vc.to_complex(_product(a, c) - _product(b, d), _product(a, d) + _product(b, c))


def divide(x: Any, y: Any) -> Any:
    """Quotient by Smith's method (1962), as NumPy has it."""
    a, b = x.real.to_register(), x.imag.to_register()
    c, d = y.real.to_register(), y.imag.to_register()
    by_real = vc.abs(c) >= vc.abs(d)
    zero = vc.logical_and(c == 0, d == 0)
    big = vc.select(by_real, c, d).to_register()
    small = vc.select(by_real, d, c).to_register()
    ratio = vc.precise(small / big)
    scale = vc.precise(_number(big, 1) / vc.precise(big + _product(small, ratio)))
    first = vc.select(by_real, a + _product(b, ratio), _product(a, ratio) + b)
    second = vc.select(by_real, b - _product(a, ratio), _product(b, ratio) - a)
    whole = vc.abs(c)
    real = vc.select(zero, a / whole, first * scale)
    imag = vc.select(zero, b / whole, second * scale)
    return vc.to_complex(real, imag)


def absolute(x: Any) -> Any:
    """Magnitude."""
    return vc.hypot(x.real, x.imag)


def sign(x: Any) -> Any:
    """Give the number of magnitude 1 with the same angle; 0 of 0."""
    length = absolute(x).to_register()
    scale = vc.select(length == 0, _number(length, 1), length).to_register()
    return vc.to_complex(x.real / scale, x.imag / scale)


def equal(x: Any, y: Any) -> Any:
    """Whether both parts are equal."""
    return vc.logical_and(x.real == y.real, x.imag == y.imag)


def not_equal(x: Any, y: Any) -> Any:
    """Whether a part differs."""
    return vc.logical_or(x.real != y.real, x.imag != y.imag)


def less(x: Any, y: Any) -> Any:
    """Order by real parts, then by imaginary ones, as NumPy has it."""
    return vc.logical_or(x.real < y.real, vc.logical_and(x.real == y.real, x.imag < y.imag))


def less_equal(x: Any, y: Any) -> Any:
    """Order by real parts, then by imaginary ones, or equality."""
    return vc.logical_or(x.real < y.real, vc.logical_and(x.real == y.real, x.imag <= y.imag))


def is_nan(x: Any) -> Any:
    """Whether a part is NaN."""
    return vc.logical_or(vc.isnan(x.real), vc.isnan(x.imag))


def maximum(x: Any, y: Any) -> Any:
    """Give the larger one; NaN if one is."""
    return vc.select(vc.logical_or(is_nan(x), less_equal(y, x)), x, y)


def minimum(x: Any, y: Any) -> Any:
    """Give the smaller one; NaN if one is."""
    return vc.select(vc.logical_or(is_nan(x), less_equal(x, y)), x, y)


def fmax(x: Any, y: Any) -> Any:
    """Give the larger one that is no NaN."""
    return vc.select(is_nan(y), x, vc.select(is_nan(x), y, maximum(x, y)))


def fmin(x: Any, y: Any) -> Any:
    """Give the smaller one that is no NaN."""
    return vc.select(is_nan(y), x, vc.select(is_nan(x), y, minimum(x, y)))


def exp(x: Any) -> Any:
    """Complex exp."""
    size = vc.exp(x.real).to_register()
    return vc.to_complex(
        vc.select(size == 0, _number(size, 0), size * vc.cos(x.imag)),
        vc.select(x.imag == 0, x.imag, vc.select(size == 0, _number(size, 0), size * vc.sin(x.imag))),
    )


def exp2(x: Any) -> Any:
    """Complex exp2."""
    scale = _number(x.real, 0.6931471805599453)
    return exp(vc.to_complex(x.real * scale, x.imag * scale))


def expm1(x: Any) -> Any:
    """Complex expm1."""
    half = vc.sin(x.imag * _number(x.real, 0.5)).to_register()
    rest = (_number(x.real, -2) * half * half).to_register()
    real = vc.expm1(x.real) * vc.cos(x.imag) + rest
    return vc.to_complex(real, vc.exp(x.real) * vc.sin(x.imag))


def log(x: Any) -> Any:
    """Complex log."""
    return vc.to_complex(vc.log(absolute(x)), vc.atan2(x.imag, x.real))


def _scale(x: Any, factor: float) -> Any:
    number = _number(x.real, factor)
    return vc.to_complex(x.real * number, x.imag * number)


def log2(x: Any) -> Any:
    """Complex log2."""
    return _scale(log(x), 1.4426950408889634)


def log10(x: Any) -> Any:
    """Complex log10."""
    return _scale(log(x), 0.4342944819032518)


def log1p(x: Any) -> Any:
    """Complex log1p."""
    moved = (x.real + _number(x.real, 1)).to_register()
    return vc.to_complex(vc.log(vc.hypot(moved, x.imag)), vc.atan2(x.imag, moved))


def sqrt(x: Any) -> Any:
    """Complex sqrt."""
    size = absolute(x).to_register()
    half = _number(size, 0.5)
    root = vc.sqrt((size + vc.abs(x.real)) * half).to_register()
    other = (vc.abs(x.imag) / (root + root)).to_register()
    zero = size == 0
    large = vc.select(zero, _number(size, 0), root)
    small = vc.select(zero, _number(size, 0), other)
    positive = x.real >= 0
    real = vc.select(positive, large, small)
    imag = vc.select(positive, small, large).to_register()
    return vc.to_complex(real, vc.select(_negative(x.imag), -imag, imag))


def _negative(x: Any) -> Any:
    return vc.logical_or(x < 0, vc.logical_and(x == 0, _number(x, 1) / x < 0))


def power(x: Any, y: Any) -> Any:
    """Power by the logarithm."""
    result = exp(multiply(y, log(x)))
    zero = vc.logical_and(x.real == 0, x.imag == 0)
    one = vc.logical_and(y.real == 0, y.imag == 0)
    nothing = vc.to_complex(_number(x.real, 0), _number(x.real, 0))
    unit = vc.to_complex(_number(x.real, 1), _number(x.real, 0))
    return vc.select(one, unit, vc.select(zero, nothing, result))


def _times_i(x: Any) -> Any:
    return vc.to_complex(-x.imag, x.real)


def _times_minus_i(x: Any) -> Any:
    return vc.to_complex(x.imag, -x.real)


def sinh(x: Any) -> Any:
    """Complex sinh."""
    return vc.to_complex(vc.sinh(x.real) * vc.cos(x.imag), vc.cosh(x.real) * vc.sin(x.imag))


def cosh(x: Any) -> Any:
    """Complex cosh."""
    return vc.to_complex(vc.cosh(x.real) * vc.cos(x.imag), vc.sinh(x.real) * vc.sin(x.imag))


def tanh(x: Any) -> Any:
    """Complex tanh."""
    return divide(sinh(x), cosh(x))


def sin(x: Any) -> Any:
    """Complex sin."""
    return _times_minus_i(sinh(_times_i(x)))


def cos(x: Any) -> Any:
    """Complex cos."""
    return cosh(_times_i(x))


def tan(x: Any) -> Any:
    """Complex tan."""
    return _times_minus_i(tanh(_times_i(x)))


def arcsinh(x: Any) -> Any:
    """Complex arcsinh."""
    one = _number(x.real, 1)
    first = sqrt(vc.to_complex(one + x.imag, -x.real))
    second = sqrt(vc.to_complex(one - x.imag, x.real))
    real = vc.asinh(first.real * second.imag - second.real * first.imag)
    return vc.to_complex(real, vc.atan2(x.imag, first.real * second.real - first.imag * second.imag))


def arccosh(x: Any) -> Any:
    """Complex arccosh."""
    one = _number(x.real, 1)
    low = sqrt(vc.to_complex(x.real - one, x.imag))
    high = sqrt(vc.to_complex(x.real + one, x.imag))
    real = vc.asinh(low.real * high.real + low.imag * high.imag)
    return vc.to_complex(real, _number(x.real, 2) * vc.atan2(low.imag, high.real))


def arctanh(x: Any) -> Any:
    """Complex arctanh."""
    one, half = _number(x.real, 1), _number(x.real, 0.5)
    high = log(vc.to_complex(one + x.real, x.imag))
    low = log(vc.to_complex(one - x.real, -x.imag))
    return vc.to_complex((high.real - low.real) * half, (high.imag - low.imag) * half)


def arcsin(x: Any) -> Any:
    """Complex arcsin."""
    return _times_minus_i(arcsinh(_times_i(x)))


def arccos(x: Any) -> Any:
    """Complex arccos."""
    one = _number(x.real, 1)
    below = sqrt(vc.to_complex(one - x.real, -x.imag))
    above = sqrt(vc.to_complex(one + x.real, x.imag))
    real = _number(x.real, 2) * vc.atan2(below.real, above.real)
    return vc.to_complex(real, vc.asinh(above.real * below.imag - above.imag * below.real))


def arctan(x: Any) -> Any:
    """Complex arctan."""
    return _times_minus_i(arctanh(_times_i(x)))
