"""exp, exp2, expm1 and the hyperbolic functions.

x = k ln 2 + r with |r| <= ln(2) / 2, by W. J. Cody and W. Waite, Software Manual for the Elementary Functions
(1980), chapter 6: ln 2 is cut in two so that k times its first part is exact. exp(r) - 1 is Taylor's series,
as a pair.
"""

from fractions import Fraction
from math import factorial

from vkdispatch.glsl.mathematics.precision import LN_2, Precision, Text, constant, number, polynomial


def _exp(precision: Precision) -> list[Fraction]:
    return [Fraction(1, factorial(n)) for n in range(2, 15 if precision.double else 9)]


CONSTANTS: dict[str, Text] = {
    "ln_2": lambda p: p.pair_text(LN_2),
    "one_by_ln_2": constant(lambda p: 1 / LN_2),
    # a multiple of these takes all bits of an exponent
    "ln_2_short": constant(lambda p: p.pieces(LN_2, p.bits - (13 if p.double else 10))[0]),
    "ln_2_rest": constant(lambda p: p.pieces(LN_2, p.bits - (13 if p.double else 10))[1]),
    # exp is zero or infinite beyond
    "exp_limit": number(760.0, 110.0),
    "exp2_limit": number(1100.0, 160.0),
    # here exp(x) swamps exp(-x)
    "far": number(39.0, 18.0),
}

FUNCTIONS: dict[str, Text] = {
    # (exp(r) - 1 - r) / r**2
    "exp_series": polynomial("exp_series", _exp),
    # exp(x) = 2**k * (1 + what is returned)
    "exp_parts": """
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
""",
    "exp_of_pair": """
@real @exp_of_pair(@pair x) {
    int k;
    @pair e = @exp_parts(x, k);
    @pair s = @quick_sum(1.0, e.x);
    precise @real y = s.x + (s.y + e.y);
    return @scale(y, k);
}
""",
    "exp": """
@real @exp(@real x) {
    @real y = @exp_of_pair(@pair(clamp(x, -@exp_limit, @exp_limit), 0.0));
    return isnan(x) ? x : y;
}
""",
    "exp2": """
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
""",
    # exp(x) - 1 for x <= far
    "expm1_of_pair": """
@pair @expm1_of_pair(@pair x) {
    int k;
    @pair e = @exp_parts(x, k);
    @real p = @power_of_two(k);
    precise @real whole = p - 1.0;
    @pair s = @sum(whole, p * e.x);
    precise @real rest = s.y + p * e.y;
    return @quick_sum(s.x, rest);
}
""",
    "expm1": """
@real @expm1(@real x) {
    @real y = x;
    if (x > @far) {
        y = @exp(x);
    } else if (abs(x) > @tiny_square) {
        y = @expm1_of_pair(@pair(max(x, -@far - @far), 0.0)).x;
    }
    return y;
}
""",
    "sinh": """
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
""",
    "cosh": """
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
""",
    # of E = exp(2x) - 1 it is E / (E + 2)
    "tanh": """
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
""",
}
