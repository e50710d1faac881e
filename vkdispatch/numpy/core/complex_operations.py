"""Element-wise operations of complex numbers by the names of NumPy's ufuncs, with C's special values.

Those are in Annex G of its standard.
"""

import math
from collections.abc import Callable
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt

# ---- Signs of real numbers in kernels, those of zeros and NaNs too ---------------------------------------


def has_sign(x: Any) -> Any:
    """Whether the sign bit is set."""
    if x.var_type is dt.float16:
        x = x.to_dtype(dt.float32)
    if x.var_type is dt.float64:
        return vc.unpack_double2x32(x)[1] >> 31 == 1
    return vc.float_bits_to_uint(x) >> 31 == 1


def copy_sign(x: Any, y: Any) -> Any:
    """Give the magnitude of x with the sign of y.

    It is put together of bits: drivers take -0.0 and 0.0 for the same number in a choice between them.
    """
    kind = x.var_type
    if kind is dt.float16:
        return copy_sign(x.to_dtype(dt.float32), y.to_dtype(dt.float32)).to_dtype(dt.float16)
    if kind is dt.float64:
        own, other = vc.unpack_double2x32(x), vc.unpack_double2x32(y)
        upper = (own[1] & 0x7FFFFFFF) | (other[1] & 0x80000000)
        return vc.pack_double2x32(vc.to_dtype(dt.uvec2, own[0], upper))
    bits = (vc.float_bits_to_uint(x) & 0x7FFFFFFF) | (vc.float_bits_to_uint(y) & 0x80000000)
    return vc.uint_bits_to_float(bits)


def round_to(function: Callable[[Any], Any], x: Any) -> Any:
    """Round; zeros keep the sign of what was rounded to them."""
    result = function(x).to_register()
    return vc.select(result == 0, copy_sign(result, x), result)


def is_false(x: Any) -> Any:
    """Whether a truth value is false."""
    return vc.select(x, False, True)


# Functions are computed from the real and the imaginary part by formulas in which nothing cancels, so that
# each part is as exact as the functions of real numbers; arguments that would overflow on the way are
# scaled.


def _number(x: Any, value: float) -> Any:
    return vc.to_dtype(x.var_type, value)


def _limit(x: Any, single: float, double: float) -> Any:
    """Return the one of two numbers that goes with the precision of x."""
    return _number(x, double if x.var_type is dt.float64 else single)


def _parts(x: Any) -> tuple[Any, Any]:
    return x.real.to_register(), x.imag.to_register()


def _swap(x: Any) -> Any:
    """Give i times the conjugate: it turns functions of hyperbolas into those of circles."""
    return vc.to_complex(x.imag, x.real)


def _product(x: Any, y: Any) -> Any:
    return vc.precise(x * y)


# ---- arithmetic and order ------------------------------------------------------------------------


def multiply(x: Any, y: Any) -> Any:
    """Product by the four products of the parts, as NumPy has it."""
    (a, b), (c, d) = _parts(x), _parts(y)
    return vc.to_complex(_product(a, c) - _product(b, d), _product(a, d) + _product(b, c))


def square(x: Any) -> Any:
    """Square, as the product of a number with itself."""
    return multiply(x, x)


def divide(x: Any, y: Any) -> Any:
    """Quotient by Smith's method (1962), as NumPy has it."""
    (a, b), (c, d) = _parts(x), _parts(y)
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


def reciprocal(x: Any) -> Any:
    """Give 1 / x by Smith's method, as NumPy has it."""
    a, b = _parts(x)
    by_real = vc.abs(a) > vc.abs(b)
    big = vc.select(by_real, a, b).to_register()
    small = vc.select(by_real, b, a).to_register()
    ratio = vc.precise(small / big)
    whole = vc.precise(big + _product(small, ratio))
    first = vc.precise(_number(a, 1) / whole)
    second = vc.precise(ratio / whole)
    return vc.to_complex(vc.select(by_real, first, second), vc.select(by_real, -second, -first))


def conjugate(x: Any) -> Any:
    """Conjugate."""
    return vc.to_complex(x.real, -x.imag)


def rint(x: Any) -> Any:
    """Round both parts to integers, halves to even."""
    return vc.to_complex(round_to(vc.round, x.real), round_to(vc.round, x.imag))


def absolute(x: Any) -> Any:
    """Magnitude."""
    return vc.hypot(x.real, x.imag)


def sign(x: Any) -> Any:
    """Give the number of magnitude 1 with the same angle; 0 of 0. Infinite parts are as NumPy has them."""
    a, b = _parts(x)
    zero, one = _number(a, 0), _number(a, 1)
    scale = _extent(vc.abs(a), vc.abs(b))[0]
    a_scaled, b_scaled = (a * scale).to_register(), (b * scale).to_register()
    length = vc.hypot(a_scaled, b_scaled).to_register()
    origin = length == 0
    safe = vc.select(origin, one, length).to_register()
    endless = (vc.isinf(a), vc.isinf(b))
    both = vc.logical_and(*endless)
    nothing = vc.select(both, _number(a, math.nan), zero)
    of_a = vc.select(vc.logical_and(endless[0], is_false(endless[1])), copy_sign(one, a), nothing)
    of_b = vc.select(vc.logical_and(endless[1], is_false(endless[0])), copy_sign(one, b), nothing)
    finite = is_false(vc.logical_or(*endless))
    real = vc.select(finite, vc.select(origin, zero, a_scaled / safe), of_a)
    return vc.to_complex(real, vc.select(finite, vc.select(origin, zero, b_scaled / safe), of_b))


def _extent(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Give a power of four by which the magnitude of x + iy neither overflows nor is subnormal.

    Beside it stand one over its square root, and minus its logarithm. x and y are not negative.
    """
    larger = vc.select(x > y, x, y).to_register()
    huge, tiny = larger > _limit(x, 2.0**120, 2.0**1000), larger < _limit(x, 2.0**-100, 2.0**-900)
    up = (64, 256)

    def choose(of_huge: float, otherwise: float, of_tiny: tuple[float, float]) -> Any:
        small = vc.select(tiny, _limit(x, *of_tiny), _number(x, otherwise))
        return vc.select(huge, _number(x, of_huge), small).to_register()

    scale = choose(2.0**-4, 1, (2.0 ** up[0], 2.0 ** up[1]))
    root = choose(2.0**2, 1, (2.0 ** -(up[0] // 2), 2.0 ** -(up[1] // 2)))
    return scale, root, choose(4 * math.log(2), 0, (-up[0] * math.log(2), -up[1] * math.log(2)))


def equal(x: Any, y: Any) -> Any:
    """Whether both parts are equal."""
    return vc.logical_and(x.real == y.real, x.imag == y.imag)


def not_equal(x: Any, y: Any) -> Any:
    """Whether the real or the imaginary parts differ."""
    return vc.logical_or(x.real != y.real, x.imag != y.imag)


def _before(x: Any, y: Any, of_imag: Any) -> Any:
    """Order by real parts, then by imaginary ones; nothing comes before NaN, nor after it."""
    ordered = is_false(vc.logical_or(vc.isnan(x.imag), vc.isnan(y.imag)))
    return vc.logical_or(vc.logical_and(x.real < y.real, ordered), vc.logical_and(x.real == y.real, of_imag))


def less(x: Any, y: Any) -> Any:
    """Order by real parts, then by imaginary ones, as NumPy has it."""
    return _before(x, y, x.imag < y.imag)


def less_equal(x: Any, y: Any) -> Any:
    """Order by real parts, then by imaginary ones, or equality."""
    return _before(x, y, x.imag <= y.imag)


def greater(x: Any, y: Any) -> Any:
    """Order by real parts, then by imaginary ones."""
    return less(y, x)


def greater_equal(x: Any, y: Any) -> Any:
    """Order by real parts, then by imaginary ones, or equality."""
    return less_equal(y, x)


def isnan(x: Any) -> Any:
    """Whether a part is NaN."""
    return vc.logical_or(vc.isnan(x.real), vc.isnan(x.imag))


def isinf(x: Any) -> Any:
    """Whether a part is infinite."""
    return vc.logical_or(vc.isinf(x.real), vc.isinf(x.imag))


def isfinite(x: Any) -> Any:
    """Whether both parts are finite."""
    return vc.logical_and(vc.isfinite(x.real), vc.isfinite(x.imag))


def maximum(x: Any, y: Any) -> Any:
    """Return the larger number; a NaN if one of them is NaN."""
    return vc.select(vc.logical_or(isnan(x), less_equal(y, x)), x, y)


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller number; a NaN if one of them is NaN."""
    return vc.select(vc.logical_or(isnan(x), less_equal(x, y)), x, y)


def fmax(x: Any, y: Any) -> Any:
    """Return the larger number that is no NaN."""
    return vc.select(isnan(y), x, vc.select(isnan(x), y, maximum(x, y)))


def fmin(x: Any, y: Any) -> Any:
    """Return the smaller number that is no NaN."""
    return vc.select(isnan(y), x, vc.select(isnan(x), y, minimum(x, y)))


# ---- exponentials --------------------------------------------------------------------------------


def _exponential(size: Any, half: Any, large: Any, a: Any, b: Any, turn: tuple[Any, Any]) -> Any:
    """Give e^a (cos b + i sin b), of which e^a may overflow: `size` is e^a, or e^(a / 2) where a is large."""
    rest = vc.select(large, half, _number(a, 1)).to_register()
    real = (size * turn[0]) * rest
    imag = (size * turn[1]) * rest
    aimless = is_false(vc.isfinite(b))
    zero = _number(a, 0)
    limit = vc.select(a > 0, a, zero)
    real = vc.select(vc.logical_and(aimless, vc.isinf(a)), limit, real)
    gone = vc.logical_and(aimless, vc.logical_and(vc.isinf(a), a < 0))
    return vc.to_complex(real, vc.select(b == 0, b, vc.select(gone, zero, imag)))


def exp(x: Any) -> Any:
    """Complex exp."""
    a, b = _parts(x)
    large = vc.abs(a) > _limit(a, 80, 700)
    size = vc.exp(vc.select(large, a * _number(a, 0.5), a)).to_register()
    return _exponential(size, size, large, a, b, (vc.cos(b), vc.sin(b)))


def exp2(x: Any) -> Any:
    """Complex exp2."""
    a = x.real.to_register()
    b = (x.imag * _number(a, math.log(2))).to_register()
    large = vc.abs(a) > _limit(a, 115, 1010)
    size = vc.exp2(vc.select(large, a * _number(a, 0.5), a)).to_register()
    return _exponential(size, size, large, a, b, (vc.cos(b), vc.sin(b)))


def expm1(x: Any) -> Any:
    """Complex expm1."""
    a, b = _parts(x)
    sine = vc.sin(b * _number(a, 0.5)).to_register()
    near = (vc.expm1(a) * vc.cos(b) - _number(a, 2) * (sine * sine)).to_register()
    whole = exp(x)
    far = a > _number(a, 40)
    real = vc.select(vc.logical_or(far, vc.logical_and(b == 0, vc.isnan(a))), whole.real, near)
    # towards minus infinity the angle does not matter; minus zero gives zero, as the standard wants it
    real = vc.select(vc.logical_and(vc.isinf(a), a < 0), _number(a, -1), real).to_register()
    return vc.to_complex(vc.select(real == 0, _number(a, 0), real), whole.imag)


def _log_size(x: Any, y: Any) -> Any:
    x, y = vc.abs(x).to_register(), vc.abs(y).to_register()
    larger = vc.select(x > y, x, y).to_register()
    smaller = vc.select(x > y, y, x).to_register()
    one = _number(x, 1)
    near = vc.logical_and(larger >= 0.5, larger <= 2)
    excess = (larger - one) * (larger + one) + smaller * smaller
    close = _number(x, 0.5) * vc.log1p(vc.select(near, excess, _number(x, 0)))
    scale, _, shift = _extent(x, y)
    distant = vc.log(vc.hypot(x * scale, y * scale)) + shift
    return vc.select(near, vc.select(vc.isnan(smaller), smaller, close), distant)


def log(x: Any) -> Any:
    """Complex log."""
    a, b = _parts(x)
    return vc.to_complex(_log_size(a, b), vc.atan2(b, a))


def _scale(x: Any, factor: float) -> Any:
    number = _number(x.real, factor)
    return vc.to_complex(x.real * number, x.imag * number)


def log2(x: Any) -> Any:
    """Complex log2."""
    return _scale(log(x), 1 / math.log(2))


def log10(x: Any) -> Any:
    """Complex log10."""
    return _scale(log(x), 1 / math.log(10))


def log1p(x: Any) -> Any:
    """Complex log1p."""
    a, b = _parts(x)
    moved = (a + _number(a, 1)).to_register()
    near = vc.logical_and(vc.abs(a) < 0.5, vc.abs(b) < 0.5)
    excess = a * (a + _number(a, 2)) + b * b
    close = _number(a, 0.5) * vc.log1p(vc.select(near, excess, _number(a, 0)))
    return vc.to_complex(vc.select(near, close, _log_size(moved, b)), vc.atan2(b, moved))


def sqrt(x: Any) -> Any:
    """Complex sqrt."""
    a, b = _parts(x)
    x_size, y_size = vc.abs(a).to_register(), vc.abs(b).to_register()
    scale, back, _ = _extent(x_size, y_size)
    large, small = _root(x_size * scale, y_size * scale)
    large, small = (large * back).to_register(), (small * back).to_register()
    positive = a >= 0
    endless = vc.isinf(b)
    real = vc.select(endless, y_size, vc.select(positive, large, small))
    imag = vc.select(endless, y_size, vc.select(positive, small, large))
    return vc.to_complex(real, copy_sign(imag, b))


def _root(x: Any, y: Any) -> tuple[Any, Any]:
    """Give the parts of sqrt(x + iy) for x and y that are not negative and do not overflow."""
    x, y = x.to_register(), y.to_register()
    root = vc.sqrt((vc.hypot(x, y) + x) * _number(x, 0.5)).to_register()
    return root, vc.select(root == 0, root, y / (root + root)).to_register()


def power(x: Any, y: Any) -> Any:
    """Power: by products for small whole exponents, else by the logarithm."""
    c, d = _parts(y)
    zero, one = _number(c, 0), _number(c, 1)
    whole = vc.logical_and(vc.logical_and(d == 0, vc.abs(c) < 100), vc.floor(c) == c)
    result = vc.new_register(x.var_type, exp(multiply(y, log(x))))
    with vc.if_block(whole):
        left = vc.new_register(dt.int32, vc.to_dtype(dt.int32, vc.abs(c)))
        base = vc.new_register(x.var_type, x)
        made = vc.new_register(x.var_type, vc.to_complex(one, zero))
        # NumPy multiplies by 1 first, but for the exponents 1 to 3, which shows in zeros and infinities
        starts = vc.new_register(dt.bool_, vc.logical_and(c > 0, left <= 3))
        with vc.while_block(left > 0):
            with vc.if_block((left & 1) == 1):
                made[:] = vc.select(starts, base, multiply(made, base))
                starts[:] = False
            base[:] = multiply(base, base)
            left[:] = left >> 1
        # drivers take 0 - x for -x, also of 0: this zero, of the counter that ended, they do not know
        unit = vc.to_complex(one, vc.to_dtype(c.var_type, left >> 31))
        result[:] = vc.select(c < 0, divide(unit, made), made)
    origin = vc.logical_and(x.real == 0, x.imag == 0)
    of_origin = vc.select(c > 0, zero, _number(c, math.nan)).to_register()
    result = vc.select(origin, vc.to_complex(of_origin, of_origin), result)
    unit = vc.logical_and(c == 0, d == 0)
    return vc.select(unit, vc.to_complex(one, zero), result)


float_power = power


# ---- hyperbolic and trigonometric functions ------------------------------------------------------


def _hyperbolas(a: Any) -> tuple[Any, Any, Any]:
    """Give sinh a, cosh a and a factor of both, which is 1 unless they are large."""
    large = vc.abs(a) > _limit(a, 80, 700)
    size = vc.exp(vc.abs(a) * _number(a, 0.5)).to_register()
    half = (size * _number(a, 0.5)).to_register()
    sinh_ = vc.select(large, copy_sign(half, a), vc.sinh(a)).to_register()
    cosh_ = vc.select(large, half, vc.cosh(a)).to_register()
    return sinh_, cosh_, vc.select(large, size, _number(a, 1)).to_register()


def sinh(x: Any) -> Any:
    """Complex sinh."""
    a, b = _parts(x)
    sinh_, cosh_, factor = _hyperbolas(a)
    kept = vc.logical_and(is_false(vc.isfinite(b)), vc.logical_or(a == 0, vc.isinf(a)))
    real = vc.select(kept, a, (sinh_ * vc.cos(b)) * factor)
    return vc.to_complex(real, vc.select(b == 0, b, (cosh_ * vc.sin(b)) * factor))


def cosh(x: Any) -> Any:
    """Complex cosh."""
    a, b = _parts(x)
    sinh_, cosh_, factor = _hyperbolas(a)
    aimless = is_false(vc.isfinite(b))
    real = vc.select(vc.logical_and(aimless, vc.isinf(a)), vc.abs(a), (cosh_ * vc.cos(b)) * factor)
    signed = vc.select(has_sign(a), -b, b)
    imag = vc.select(vc.logical_and(aimless, a == 0), a, (sinh_ * vc.sin(b)) * factor)
    return vc.to_complex(real, vc.select(b == 0, signed, imag))


def tanh(x: Any) -> Any:
    """Complex tanh: (sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b)."""
    a, b = _parts(x)
    one, zero = _number(a, 1), _number(a, 0)
    sine, cosine = vc.sin(b).to_register(), vc.cos(b).to_register()
    far = vc.abs(a) > _limit(a, 10, 20)
    safe = vc.select(far, one, a).to_register()
    sinh_ = vc.sinh(safe).to_register()
    below = (sinh_ * sinh_ + cosine * cosine).to_register()
    shrunk = vc.exp(-vc.abs(a)).to_register()
    real = vc.select(far, copy_sign(one, a), sinh_ * vc.cosh(safe) / below)
    imag = vc.select(far, (_number(a, 4) * sine * shrunk) * (cosine * shrunk), sine * cosine / below)
    aimless = is_false(vc.isfinite(b))
    real = vc.select(vc.logical_and(aimless, vc.logical_and(far, is_false(vc.isinf(a)))), b - b, real)
    real = vc.select(vc.logical_and(aimless, a == 0), a, real)
    imag = vc.select(vc.logical_and(aimless, vc.isinf(a)), zero, imag)
    return vc.to_complex(real, vc.select(b == 0, b, imag))


def sin(x: Any) -> Any:
    """Complex sin."""
    return _swap(sinh(_swap(x)))


def cos(x: Any) -> Any:
    """Complex cos."""
    return cosh(vc.to_complex(-x.imag, x.real))


def tan(x: Any) -> Any:
    """Complex tan."""
    return _swap(tanh(_swap(x)))


# ---- their inverses ------------------------------------------------------------------------------


class _Arc:
    """What arcs of x + iy are made of, by Kahan (1987), for x and y that are not negative.

    Attributes
    ----------
    x, y
        The magnitudes of the parts.
    above, below
        The parts of sqrt(1 + x + iy), and of sqrt(1 - x - iy) but for the sign: none has cancellation.
    far
        Whether 1 does not matter beside the number.
    height
        The magnitude of the imaginary part of its arc sine and arc cosine.
    """

    def __init__(self, a: Any, b: Any) -> None:
        self.x, self.y = x, y = vc.abs(a).to_register(), vc.abs(b).to_register()
        one, quarter = _number(x, 1), _number(x, 0.25)
        far = _limit(x, 2.0**20, 2.0**40)
        self.far = vc.logical_or(x > far, y > far)
        self.above = _root(one + x, y)
        beyond = x > 1
        large, small = _root(vc.abs(one - x), y)
        real, imag = vc.select(beyond, small, large), vc.select(beyond, large, small)
        self.below = real.to_register(), imag.to_register()
        near = vc.asinh(self.below[0] * self.above[1] + self.below[1] * self.above[0])
        distance = vc.log(vc.hypot(x * quarter, y * quarter)) + _number(x, math.log(8))
        self.height = vc.select(self.far, distance, near).to_register()


def arcsin(x: Any) -> Any:
    """Complex arcsin."""
    a, b = _parts(x)
    arc = _Arc(a, b)
    adjacent = arc.above[0] * arc.below[0] + arc.above[1] * arc.below[1]
    real = vc.atan2(arc.x, vc.select(arc.far, arc.y, adjacent))
    tiny = _limit(a, 2.0**-14, 2.0**-28)
    small = vc.logical_and(arc.x < tiny, arc.y < tiny)
    real = vc.select(vc.logical_or(small, a == 0), arc.x, real)
    return vc.to_complex(copy_sign(real, a), copy_sign(vc.select(small, arc.y, arc.height), b))


def arccos(x: Any) -> Any:
    """Complex arccos."""
    a, b = _parts(x)
    arc = _Arc(a, b)
    opposite = vc.select(a < 0, arc.above[0], arc.below[0]).to_register()
    adjacent = vc.select(a < 0, arc.below[0], arc.above[0]).to_register()
    near = _number(a, 2) * vc.atan2(opposite, adjacent)
    real = vc.select(arc.far, vc.atan2(arc.y, a), near)
    real = vc.select(vc.logical_and(a == 0, vc.isnan(b)), _number(a, math.pi / 2), real)
    return vc.to_complex(real, vc.select(has_sign(b), arc.height, -arc.height))


def arccosh(x: Any) -> Any:
    """Complex arccosh: i arccos, turned so that the real part is not negative."""
    turned = arccos(x)
    return vc.to_complex(vc.abs(turned.imag), copy_sign(turned.real, x.imag))


def arcsinh(x: Any) -> Any:
    """Complex arcsinh."""
    return _swap(arcsin(_swap(x)))


def arctanh(x: Any) -> Any:
    """Complex arctanh: log1p(4a / ((1 - a)^2 + b^2)) / 4, and half the angle of (1 + x) (1 - x^*)."""
    a, b = _parts(x)
    x_size, y_size = vc.abs(a).to_register(), vc.abs(b).to_register()
    zero, one, quarter, right = (_number(a, value) for value in (0, 1, 0.25, math.pi / 2))
    distance = vc.hypot(one - x_size, y_size).to_register()
    touching = distance < _limit(a, 2.0**-30, 2.0**-60)
    ratio = (x_size / distance) * (_number(a, 4) / distance)
    close = _number(a, 0.5) * (_number(a, math.log(2)) - vc.log(distance))
    real = vc.select(touching, close, quarter * vc.log1p(vc.select(touching, zero, ratio)))
    wide = (one - x_size) * (one + x_size) - y_size * y_size
    imag = _number(a, 0.5) * vc.atan2(_number(a, 2) * y_size, wide)
    limit = _limit(a, 2.0**20, 2.0**40)
    far = vc.logical_or(x_size > limit, y_size > limit)
    length = vc.hypot(x_size * quarter, y_size * quarter).to_register()
    real = vc.select(far, (x_size * quarter / length) * (quarter / length), real)
    endless = vc.logical_or(vc.isinf(a), vc.isinf(b))
    real = vc.select(vc.logical_or(endless, a == 0), zero, real)
    unknown = vc.logical_or(vc.isnan(b), vc.logical_and(vc.isnan(a), is_false(vc.isinf(b))))
    imag = vc.select(unknown, _number(a, math.nan), vc.select(far, right, imag))
    return vc.to_complex(copy_sign(real, a), copy_sign(imag, b))


def arctan(x: Any) -> Any:
    """Complex arctan."""
    return _swap(arctanh(_swap(x)))
