"""Exponentials, hyperbolic functions, logarithms, powers and roots."""

from fractions import Fraction
from math import factorial

from vkdispatch.compiler.glsl import precision as pr
from vkdispatch.compiler.glsl.spelling import read_functions

# ---- exp, exp2, expm1 and the hyperbolic functions -------------------------------------------------------
#
# x = k ln 2 + r with |r| <= ln(2) / 2, by W. J. Cody and W. Waite, Software Manual for the Elementary
# Functions (1980), chapter 6: ln 2 is cut in two so that k times its first part is exact. exp(r) - 1 is
# Taylor's series, as a pair.


def _exp(precision: pr.Precision) -> list[Fraction]:
    return [Fraction(1, factorial(n)) for n in range(2, 15 if precision.double else 9)]


EXPONENTIAL_CONSTANTS: dict[str, pr.Text] = {
    "ln_2": lambda p: p.pair_text(pr.LN_2),
    "one_by_ln_2": pr.constant(lambda p: 1 / pr.LN_2),
    # a multiple of these takes all bits of an exponent
    "ln_2_short": pr.constant(lambda p: p.pieces(pr.LN_2, p.bits - (13 if p.double else 10))[0]),
    "ln_2_rest": pr.constant(lambda p: p.pieces(pr.LN_2, p.bits - (13 if p.double else 10))[1]),
    # exp is zero or infinite beyond
    "exp_limit": pr.number(760.0, 110.0),
    "exp2_limit": pr.number(1100.0, 160.0),
    # here exp(x) swamps exp(-x)
    "far": pr.number(39.0, 18.0),
}

EXPONENTIAL_FUNCTIONS: dict[str, pr.Text] = {
    # (exp(r) - 1 - r) / r**2
    "exp_series": pr.polynomial("exp_series", _exp),
    **read_functions("""
// exp(x) = 2**k * (1 + what is returned)
@pair @exp_parts(@pair x, out int k) {
    precise @real n = roundEven(x.x * @one_by_ln_2);
    k = int(n);
    precise @real r = x.x - n * @ln_2_short;
    precise @real rest = n * @ln_2_rest;
    @pair s = @sum(r, -rest);
    s = @quick_sum(s.x, s.y + x.y);
    precise @real e = s.x * s.x * @exp_series(s.x) + (s.y + s.y * s.x);
    return @quick_sum(s.x, e);
}

@real @exp_of_pair(@pair x) {
    int k;
    @pair e = @exp_parts(x, k);
    @pair s = @quick_sum(1.0, e.x);
    precise @real y = s.x + (s.y + e.y);
    return @scale(y, k);
}

@real @exp(@real x) {
    @real y = @exp_of_pair(@pair(clamp(x, -@exp_limit, @exp_limit), 0.0));
    return isnan(x) ? x : y;
}

@real @exp2(@real x) {
    @real limited = clamp(x, -@exp2_limit, @exp2_limit);
    precise @real n = roundEven(limited);
    precise @real r = limited - n;
    int k;
    @pair e = @exp_parts(@multiply(@ln_2, @pair(r, 0.0)), k);
    @pair s = @quick_sum(1.0, e.x);
    precise @real y = s.x + (s.y + e.y);
    y = @scale(y, k + int(n));
    return isnan(x) ? x : y;
}

// exp(x) - 1 for x <= far
@pair @expm1_of_pair(@pair x) {
    int k;
    @pair e = @exp_parts(x, k);
    @real p = @power_of_two(k);
    precise @real whole = p - 1.0;
    @pair s = @sum(whole, p * e.x);
    precise @real rest = s.y + p * e.y;
    return @quick_sum(s.x, rest);
}

@real @expm1(@real x) {
    @real y = x;
    if (x > @far) {
        y = @exp(x);
    } else if (abs(x) > @tiny_square) {
        y = @expm1_of_pair(@pair(max(x, -@far - @far), 0.0)).x;
    }
    return y;
}

@real @sinh(@real x) {
    @real a = abs(x);
    precise @real y = a;
    if (a > @far) {
        y = @exp_of_pair(@add(@pair(min(a, @exp_limit), 0.0), -@ln_2));
    } else if (a > @tiny) {
        @pair e = @expm1_of_pair(@pair(a, 0.0));
        e = @add(e, @divide(e, @add(@pair(1.0, 0.0), e)));
        y = 0.5 * e.x;
    }
    return isnan(x) ? x : @is_negative(x) ? -y : y;
}

@real @cosh(@real x) {
    @real a = abs(x);
    precise @real y;
    if (a > @far) {
        y = @exp_of_pair(@add(@pair(min(a, @exp_limit), 0.0), -@ln_2));
    } else {
        @pair e = @add(@pair(1.0, 0.0), @expm1_of_pair(@pair(a, 0.0)));
        e = @add(e, @divide(@pair(1.0, 0.0), e));
        y = 0.5 * e.x;
    }
    return isnan(x) ? x : y;
}

// of E = exp(2x) - 1 it is E / (E + 2)
@real @tanh(@real x) {
    @real a = abs(x);
    precise @real y = a;
    if (a > @tiny) {
        @real doubled = min(a + a, @far + @far);
        @pair e = @expm1_of_pair(@pair(doubled, 0.0));
        y = @divide(e, @add(@pair(2.0, 0.0), e)).x;
    }
    return isnan(x) ? x : @is_negative(x) ? -y : y;
}
"""),
}


# ---- log, log2, log10, log1p, pow and the inverse hyperbolic functions -----------------------------------
#
# x = 2**k m with sqrt(1/2) <= m <= sqrt(2), and log(m) = 2 artanh(s) for s = (m - 1) / (m + 1), as in W. J.
# Cody and W. Waite, Software Manual for the Elementary Functions (1980), chapters 5 and 7; s and the first
# terms of the series are pairs, so that `pow` has the digits that its exponent multiplies.


def _artanh(precision: pr.Precision) -> list[Fraction]:
    return [Fraction(2, 2 * n + 1) for n in range(2, 14 if precision.double else 7)]


LOGARITHM_CONSTANTS: dict[str, pr.Text] = {
    "two_thirds": lambda p: p.pair_text(Fraction(2, 3)),
    "log2_e": lambda p: p.pair_text(1 / pr.LN_2),
    "log10_e": lambda p: p.pair_text(pr.LOG10_E),
    "log10_2_short": pr.constant(lambda p: p.pieces(pr.LOG10_2, p.bits - (13 if p.double else 10))[0]),
    "log10_2_rest": pr.constant(lambda p: p.pieces(pr.LOG10_2, p.bits - (13 if p.double else 10))[1]),
    # x**2 + 1 and x**2 are the same beyond
    "large": pr.number(2.0**28, 2.0**13),
    # larger exponents give 0, 1 or infinity all the same
    "pow_limit": pr.number(2.0**64, 2.0**33),
}

LOGARITHM_FUNCTIONS: dict[str, pr.Text] = {
    "artanh_series": pr.polynomial("artanh_series", _artanh),
    **read_functions("""
// x + y = 2**k * m: k and log(m), for positive x and |y| of half a unit in the last place of x at most
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

@pair @log_of_pair(@real x, @real y) {
    int k;
    @pair l = @log_parts(x, y, k);
    precise @real n = @real(k);
    precise @real first = n * @ln_2_short;
    @pair s = @quick_sum(first, l.x);
    precise @real rest = s.y + (n * @ln_2_rest + l.y);
    return @quick_sum(s.x, rest);
}

// a logarithm where x is positive and finite
@real @log_result(@real x, @real y) {
    return x > 0.0 ? (x <= @largest ? y : x) : x == 0.0 ? -@inf : isnan(x) ? x : @nan;
}

@real @log(@real x) {
    return @log_result(x, @log_of_pair(x, 0.0).x);
}

@real @log2(@real x) {
    int k;
    @pair l = @multiply(@log_parts(x, 0.0, k), @log2_e);
    @pair s = @quick_sum(@real(k), l.x);
    precise @real y = s.x + (s.y + l.y);
    return @log_result(x, y);
}

@real @log10(@real x) {
    int k;
    @pair l = @multiply(@log_parts(x, 0.0, k), @log10_e);
    precise @real n = @real(k);
    precise @real first = n * @log10_2_short;
    @pair s = @quick_sum(first, l.x);
    precise @real y = s.x + (s.y + (n * @log10_2_rest + l.y));
    return @log_result(x, y);
}

@real @log1p(@real x) {
    @pair s = @sum(1.0, x);
    @real y = @log_of_pair(s.x, s.y).x;
    return abs(x) < @tiny_square ? x : @log_result(s.x, y);
}

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

// log(x + sqrt(x**2 + 1))
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

// log(x + sqrt(x**2 - 1))
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

// log((1 + x) / (1 - x)) / 2
@real @atanh(@real x) {
    @real a = abs(x);
    @pair s = @divide(@quick_sum(1.0, a), @quick_sum(1.0, -a));
    @pair l = @log_of_pair(s.x, s.y);
    precise @real y = 0.5 * l.x;
    y = a < @tiny ? a : a < 1.0 ? y : a == 1.0 ? @inf : @nan;
    return isnan(x) ? x : @is_negative(x) ? -y : y;
}
"""),
}


# ---- cbrt and hypot --------------------------------------------------------------------------------------
#
# A cube root starts from a polynomial and takes a step of Halley's method and one of Newton's, whose
# residual is exact; a hypotenuse is the square root of a pair.


# Chebyshev interpolation of the cube root on [1, 2], with an error of 1.7e-6
_CBRT = (0.47514694, 0.83174314, -0.46029773, 0.1966548, -0.048318321, 0.005072953)

ROOT_CONSTANTS: dict[str, pr.Text] = {
    "much": pr.number(2.0**500, 2.0**60),
    "little": pr.number(2.0**-400, 2.0**-40),
    "shrink": pr.number(2.0**-600, 2.0**-80),
    "grow": pr.number(2.0**600, 2.0**80),
}

ROOT_FUNCTIONS: dict[str, pr.Text] = {
    "cbrt_start": pr.polynomial("cbrt_start", lambda _: _CBRT),
    **read_functions("""
@real @cbrt(@real x) {
    @real a = abs(x);
    precise @real lifted = a < @smallest ? a * @lift : a;
    int k = @exponent(lifted) + 3072;
    int third = k / 3;
    int left = k - 3 * third;
    @real m = @significand(lifted);
    @real t = @cbrt_start(m) * (left == 0 ? 1.0 : left == 1 ? 1.25992105 : 1.58740105);
    m *= left == 0 ? 1.0 : left == 1 ? 2.0 : 4.0;
    @real cube = t * t * t;
    t *= (cube + m + m) / (cube + cube + m);
    @pair square = @product(t, t);
    @pair power = @product(square.x, t);
    precise @real e = (((m - power.x) - power.y) - square.y * t) / (3.0 * square.x);
    precise @real y = t + e;
    y = @scale(y, third - 1024 - (a < @smallest ? @lift_exponent / 3 : 0));
    return a > 0.0 && a <= @largest ? (@is_negative(x) ? -y : y) : x;
}

@real @hypot(@real x, @real y) {
    precise @real longer = max(abs(x), abs(y));
    precise @real shorter = min(abs(x), abs(y));
    @real up = longer > @much ? @shrink : longer < @little ? @grow : 1.0;
    @real back = longer > @much ? @grow : longer < @little ? @shrink : 1.0;
    precise @real a = longer * up;
    precise @real b = shorter * up;
    precise @real r = @square_root(@add(@product(a, a), @product(b, b))).x * back;
    bool infinite = abs(x) > @largest || abs(y) > @largest;
    return infinite ? @inf : isnan(x) || isnan(y) ? @nan : r;
}
"""),
}
