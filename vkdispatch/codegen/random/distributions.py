"""Numbers made of random words, by sums, differences, products and bits alone: the same on every device.

`log`, `sqrt`, `sin` and `cos` differ in their last bits from device to device, so normal numbers have their
own here: polynomials (minimax, found by Remez' exchange; Taylor's for float64) on short intervals, and
Newton's method. That only works where a product and a sum are not taken together, which `precise` sees to.
"""

import math
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.dtype import float32, float64, int32, int64, uint32, uint64
from vkdispatch.codegen.execution.control_flow import select
from vkdispatch.codegen.execution.registers import precise
from vkdispatch.codegen.functions.bits import find_msb, reinterpret

# ln(1 + f) = f - f**2 / 2 + f**3 * Q(f) for sqrt(1/2) <= 1 + f <= sqrt(2); relative errors 3.3e-8 and 5e-17
_LOG_32 = (0.3333386, -0.25001746, 0.19965398, -0.16565642, 0.14876975, -0.14350156, 0.089177705)
_LOG_64 = (
    *(0.3333333333332809, -0.24999999999994926, 0.20000000001740234, -0.16666666669051042),
    *(0.14285714088918117, -0.12499999638226135, 0.11111121790723105, -0.10000025055721472),
    *(0.09090595182064967, -0.08332414983834577, 0.07697397117609829, -0.07161751863740817),
    *(0.06626034997162127, -0.060336940044223034, 0.05941554609446263, -0.06789038200133975),
    *(0.06418025879009896, -0.029115937916794257),
)
# sin(a) = a + a**3 * S(a**2) and cos(a) = 1 - a**2 / 2 + a**4 * C(a**2) for |a| <= pi / 4
_SIN_32 = (-0.16666655, 0.008332178, -0.000195173)
_COS_32 = (0.041666646, -0.0013887368, 2.4438452e-05)
_SIN_64 = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(1, 9))
_COS_64 = tuple((-1) ** k / math.factorial(2 * k) for k in range(2, 10))


def uniform32(word: Any) -> Any:
    """Return a float32 of [0, 1) for a uint32: its upper 24 bits, as NumPy does."""
    return (word >> 8).to_dtype(float32) * 2.0**-24


def uniform64(word: Any) -> Any:
    """Return a float64 of [0, 1) for a uint64: its upper 53 bits, as NumPy does."""
    return (word >> 11).to_dtype(float64) * 2.0**-53


def scaled(value: Any, low: Any, width: Any) -> Any:
    """Return low + width * value, rounded twice."""
    return precise(low + width * value)


def normal_pair(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two independent standard normal numbers for two uint32 (float32) or two uint64 (float64).

    Box and Muller (1958): the first word gives the distance from the middle, sqrt(-2 ln u), the second the
    direction. The distance is at most 6.66 (float32) or 8.57 (float64).
    """
    double = first.var_type is uint64
    radius = _root(_twice_log_64(first) if double else _twice_log_32(first))
    cosine, sine = _direction(second)
    return precise(radius * cosine), precise(radius * sine)


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _twice_log_32(word: Any) -> Any:
    """Return -2 ln(u) of u = (word | 1) / 2**32."""
    bits = (word | 1).to_register()
    top = find_msb(bits).to_register()
    # the leading one to the top: 1 + f = mantissa / 2**32 or 2**31, whichever is nearer to 1
    mantissa = (bits << (31 - top).to_dtype(uint32)).to_register()
    above = (mantissa >= 0xB504F334).to_register()
    f = select(
        above,
        mantissa.to_dtype(int32).to_dtype(float32) * 2.0**-32,
        (mantissa - 0x80000000).to_dtype(float32) * 2.0**-31,
    ).to_register()
    halvings = (select(above, 31, 32) - top).to_dtype(float32)
    log = f - f * f * 0.5 + f * f * f * _polynomial(f, _LOG_32)
    return precise(halvings * (2 * math.log(2)) - 2.0 * log)


def _twice_log_64(word: Any) -> Any:
    """Return -2 ln(u) of u = ((word >> 11) | 1) / 2**53."""
    bits = reinterpret(uint64, ((word >> 11) | 1).to_dtype(float64)).to_register()
    mantissa = reinterpret(float64, (bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).to_register()
    above = (mantissa > math.sqrt(2)).to_register()
    f = (select(above, mantissa * 0.5, mantissa) - 1.0).to_register()
    exponent = (bits >> 52).to_dtype(int32)
    halvings = (select(above, 1023 + 52, 1023 + 53) - exponent).to_dtype(float64)
    log = f - f * f * 0.5 + f * f * f * _polynomial(f, _LOG_64)
    return precise(halvings * (2 * math.log(2)) - 2.0 * log)


def _root(x: Any) -> Any:
    """Return the square root of a positive number: x times its inverse root, by Newton's method."""
    double = x.var_type is float64
    word = reinterpret(uint64 if double else uint32, x)
    guess = reinterpret(x.var_type, (0x5FE6EB50C7B537A9 if double else 0x5F3759DF) - (word >> 1))
    half = (x * 0.5).to_register()
    for _ in range(4 if double else 3):
        guess = precise(guess)
        guess = guess * (1.5 - half * guess * guess)
    return precise(x * guess)


def _direction(word: Any) -> tuple[Any, Any]:
    """Return cosine and sine of 2 pi u, where u is the word divided by 2**32 or 2**64."""
    double = word.var_type is uint64
    bits = 64 if double else 32
    turned = (word + (1 << bits - 3)).to_register()
    quarter = (turned >> bits - 2).to_dtype(uint32).to_register()
    # what is left is -1/8 to 1/8 of a turn; 53 bits of it, so that float64 holds it
    inner = turned & (1 << bits - 2) - 1
    if double:
        angle = ((inner >> 9).to_dtype(int64) - (1 << 52)).to_dtype(float64) * (math.pi / 2 * 2.0**-53)
    else:
        angle = (inner.to_dtype(int32) - (1 << 29)).to_dtype(float32) * (math.pi / 2 * 2.0**-30)
    angle = precise(angle)
    square = precise(angle * angle)
    cosine = precise(
        1.0 - square * 0.5 + square * square * _polynomial(square, _COS_64 if double else _COS_32)
    )
    sine = precise(angle + angle * square * _polynomial(square, _SIN_64 if double else _SIN_32))
    odd = ((quarter & 1) == 1).to_register()
    across, up = select(odd, sine, cosine), select(odd, cosine, sine)
    # the cosine is negative in the second and the third quarter, the sine in the third and the fourth
    return (
        select(((quarter + 1) & 2) == 2, -across, across),
        select((quarter & 2) == 2, -up, up),
    )
