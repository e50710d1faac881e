"""log, log2, log10, log1p, pow and the inverse hyperbolic functions.

x = 2**k m with sqrt(1/2) <= m <= sqrt(2), and log(m) = 2 artanh(s) for s = (m - 1) / (m + 1), as in W. J.
Cody and W. Waite, Software Manual for the Elementary Functions (1980), chapters 5 and 7; s and the first
terms of the series are pairs, so that `pow` has the digits that its exponent multiplies.
"""

from fractions import Fraction

from vkdispatch.glsl.mathematics.precision import (
    LN_2,
    LOG10_2,
    LOG10_E,
    Precision,
    Text,
    constant,
    number,
    polynomial,
)


def _artanh(precision: Precision) -> list[Fraction]:
    return [Fraction(2, 2 * n + 1) for n in range(2, 14 if precision.double else 7)]


CONSTANTS: dict[str, Text] = {
    "two_thirds": lambda p: p.pair_text(Fraction(2, 3)),
    "log2_e": lambda p: p.pair_text(1 / LN_2),
    "log10_e": lambda p: p.pair_text(LOG10_E),
    "log10_2_short": constant(lambda p: p.pieces(LOG10_2, p.bits - (13 if p.double else 10))[0]),
    "log10_2_rest": constant(lambda p: p.pieces(LOG10_2, p.bits - (13 if p.double else 10))[1]),
    # x**2 + 1 and x**2 are the same beyond
    "large": number(2.0**28, 2.0**13),
    # larger exponents give 0, 1 or infinity all the same
    "pow_limit": number(2.0**64, 2.0**33),
}

FUNCTIONS: dict[str, Text] = {
    "artanh_series": polynomial("artanh_series", _artanh),
    # x + y = 2**k * m: k and log(m), for positive x and |y| of half a unit in the last place of x at most
    "log_parts": """
@pair @log_parts(@real x, @real y, out int k) {
    bool small = x < @smallest;
    precise @real lifted = small ? x * @lift : x;
    k = @exponent(lifted);
    @real m = @significand(lifted);
    precise @real rest = y * @power_of_two(-k);
    if (m > 1.4142135) {
        m *= 0.5;
        rest *= 0.5;
        k += 1;
    }
    k -= small ? @lift_exponent : 0;
    precise @real whole = m - 1.0;
    @pair f = @quick_sum(whole, rest);
    @pair d = @quick_sum(2.0, f.x);
    precise @real rest_of_d = d.y + f.y;
    @pair s = @divide(f, @pair(d.x, rest_of_d));
    @pair z = @multiply(s, s);
    precise @real tail = @two_thirds.y + z.x * @artanh_series(z.x);
    @pair t = @multiply(@multiply(s, z), @quick_sum(@two_thirds.x, tail));
    precise @real doubled = s.x + s.x;
    @pair l = @quick_sum(doubled, t.x);
    precise @real e = l.y + (s.y + s.y + t.y);
    return @quick_sum(l.x, e);
}
""",
    "log_of_pair": """
@pair @log_of_pair(@real x, @real y) {
    int k;
    @pair l = @log_parts(x, y, k);
    precise @real n = @real(k);
    precise @real first = n * @ln_2_short;
    @pair s = @quick_sum(first, l.x);
    precise @real rest = s.y + (n * @ln_2_rest + l.y);
    return @quick_sum(s.x, rest);
}
""",
    # a logarithm where x is positive and finite
    "log_result": """
@real @log_result(@real x, @real y) {
    return x > 0.0 ? (x <= @largest ? y : x) : x == 0.0 ? -@inf : isnan(x) ? x : @nan;
}
""",
    "log": """
@real @log(@real x) {
    return @log_result(x, @log_of_pair(x, 0.0).x);
}
""",
    "log2": """
@real @log2(@real x) {
    int k;
    @pair l = @multiply(@log_parts(x, 0.0, k), @log2_e);
    @pair s = @quick_sum(@real(k), l.x);
    precise @real y = s.x + (s.y + l.y);
    return @log_result(x, y);
}
""",
    "log10": """
@real @log10(@real x) {
    int k;
    @pair l = @multiply(@log_parts(x, 0.0, k), @log10_e);
    precise @real n = @real(k);
    precise @real first = n * @log10_2_short;
    @pair s = @quick_sum(first, l.x);
    precise @real y = s.x + (s.y + (n * @log10_2_rest + l.y));
    return @log_result(x, y);
}
""",
    "log1p": """
@real @log1p(@real x) {
    @pair s = @sum(1.0, x);
    @real y = @log_of_pair(s.x, s.y).x;
    return abs(x) < @tiny_square ? x : @log_result(s.x, y);
}
""",
    "pow": """
@real @pow(@real x, @real y) {
    @real a = abs(x);
    @pair t = @multiply(@log_of_pair(a, 0.0), @pair(clamp(y, -@pow_limit, @pow_limit), 0.0));
    if (abs(t.x) > @exp_limit) {
        t = @pair(t.x > 0.0 ? @exp_limit : -@exp_limit, 0.0);
    }
    precise @real r = @exp_of_pair(t);
    if (a == 0.0 || a > @largest) {
        r = (a == 0.0) == (y < 0.0) ? @inf : 0.0;
    }
    precise @real half_y = 0.5 * y;
    if (@is_negative(x)) {
        if (floor(y) != y && abs(y) <= @largest && a > 0.0 && a <= @largest) {
            r = @nan;
        } else if (floor(y) == y && abs(y) <= @largest && floor(half_y) != half_y) {
            r = -r;
        }
    }
    r = isnan(x) || isnan(y) ? @nan : r;
    return y == 0.0 || x == 1.0 ? 1.0 : r;
}
""",
    # log(x + sqrt(x**2 + 1))
    "asinh": """
@real @asinh(@real x) {
    @real a = abs(x);
    bool large = a > @large;
    @real b = large ? 1.0 : a;
    @pair square = @product(b, b);
    @pair s = @add(@pair(b, 0.0), @square_root(@add(@pair(1.0, 0.0), square)));
    s = large ? @pair(a, 0.0) : s;
    @pair l = @log_of_pair(s.x, s.y);
    l = large ? @add(l, @ln_2) : l;
    @real y = a < @tiny || !(a <= @largest) ? a : l.x;
    return isnan(x) ? x : @is_negative(x) ? -y : y;
}
""",
    # log(x + sqrt(x**2 - 1))
    "acosh": """
@real @acosh(@real x) {
    bool large = x > @large;
    @real b = large ? 1.0 : x;
    @pair square = @product(b, b);
    @pair s = @add(@pair(b, 0.0), @square_root(@add(@pair(-1.0, 0.0), square)));
    s = large ? @pair(x, 0.0) : s;
    @pair l = @log_of_pair(s.x, s.y);
    l = large ? @add(l, @ln_2) : l;
    return x >= 1.0 ? (x <= @largest ? l.x : x) : isnan(x) ? x : @nan;
}
""",
    # log((1 + x) / (1 - x)) / 2
    "atanh": """
@real @atanh(@real x) {
    @real a = abs(x);
    @pair s = @divide(@quick_sum(1.0, a), @quick_sum(1.0, -a));
    @pair l = @log_of_pair(s.x, s.y);
    precise @real y = 0.5 * l.x;
    y = a < @tiny ? a : a < 1.0 ? y : a == 1.0 ? @inf : @nan;
    return isnan(x) ? x : @is_negative(x) ? -y : y;
}
""",
}
