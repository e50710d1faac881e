"""Trigonometric functions for angles of any size, and their inverses."""

from collections.abc import Callable
from fractions import Fraction
from math import factorial

from vkdispatch.compiler.glsl import precision as pr
from vkdispatch.compiler.glsl.spelling import read_functions

# ---- sin, cos and tan, for angles of any size; sinpi and cospi -------------------------------------------
#
# Angles of up to a few turns are reduced as W. J. Cody and W. Waite do, Software Manual for the Elementary
# Functions (1980), chapter 8, with pi / 2 in four parts; larger ones as M. Payne and R. Hanek do, Radian
# reduction for trigonometric functions, SIGNUM Newsletter 18 (1983): the significand times those bits of 2
# / pi that matter, in integers. What is left is a pair, for Taylor's series. For sinpi and cospi the
# argument modulo 2 is exact.


# bits of 2 / pi: those behind the point, 32 to a word
_TWO_BY_PI = (
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1c"
    "b129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f"
    "6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
)


def _bits(precision: pr.Precision) -> str:
    """Write the function that finds the bits of 2 / pi from one of them on.

    All of them are moved to the front by powers of two: arrays of constants are slow to compile.
    """
    # zeros in front, so that no angle starts before them
    digits = ("0" * 16 + _TWO_BY_PI).ljust(8 * 44, "0")
    words = [f"0x{digits[i : i + 8]}u" for i in range(0, 8 * (44 if precision.double else 12), 8)]
    vectors = [f"uvec4({', '.join(words[i : i + 4])})" for i in range(0, len(words), 4)]
    lines = [f"    uvec4 w{i} = {vector};" for i, vector in enumerate(vectors)]
    # vectors to skip, and how many in front still matter then
    for step, count in ((8, 10), (4, 6), (2, 4), (1, 3)):
        lines += [
            f"    w{i} = (skipped & {128 * step}) != 0 ? w{i + step} : w{i};"
            for i in range(min(count, len(vectors) - step))
        ]
    return "\n".join(
        (
            f"void @two_by_pi_bits(int skipped, out uint bits[{_count(precision)}]) {{",
            *lines,
            "    uvec4 v1 = (skipped & 64) != 0 ? uvec4(w1.zw, w2.xy) : w1;",
            "    w0 = (skipped & 64) != 0 ? uvec4(w0.zw, w1.xy) : w0;",
            "    w0 = (skipped & 32) != 0 ? uvec4(w0.yzw, v1.x) : w0;",
            "    w1 = (skipped & 32) != 0 ? v1.yzww : v1;",
            "    int shift = skipped & 31;",
            "    w2 = (w0 << shift) | ((uvec4(w0.yzw, w1.x) >> 1) >> (31 - shift));",
            "    bits[0] = w2.x;",
            "    bits[1] = w2.y;",
            "    bits[2] = w2.z;",
            *(_MORE_BITS if precision.double else ()),
            "}",
        )
    )


_MORE_BITS = (
    "    bits[3] = w2.w;",
    "    w2 = (w1 << shift) | ((w1.yzww >> 1) >> (31 - shift));",
    "    bits[4] = w2.x;",
    "    bits[5] = w2.y;",
)


def _count(precision: pr.Precision) -> int:
    """Return how many words of a turn are computed, whose upper ones may be zero."""
    return 6 if precision.double else 3


def _part(place: int) -> Callable[[pr.Precision], Fraction]:
    # the first three times a count of quarter turns are exact
    return lambda p: p.pieces(pr.PI / 2, *((33, 33, 33) if p.double else (15, 15, 15)))[place]


def _bit(place: int) -> pr.Text:
    return pr.constant(lambda _: Fraction(1, 2**place))


TRIGONOMETRIC_CONSTANTS: dict[str, pr.Text] = {
    **{f"bit_{place}": _bit(place) for place in (16, 32, 48, 64, 88, 96, 128, 160)},
    "two_by_pi": pr.constant(lambda p: 2 / pr.PI),
    "half_pi_1": pr.constant(_part(0)),
    "half_pi_2": pr.constant(_part(1)),
    "half_pi_3": pr.constant(_part(2)),
    "half_pi_4": pr.constant(_part(3)),
    "two_pi": lambda p: p.pair_text(2 * pr.PI),
    "whole_pi": lambda p: p.pair_text(pr.PI),
    # 2**20 or 2**8 quarter turns
    "many_turns": pr.number(1.6e6, 400.0),
}

TRIGONOMETRIC_FUNCTIONS: dict[str, pr.Text] = {
    **pr.both_functions(
        """
// the fraction of the significand times bits of 2 / pi, in words, the upper first: in turns. An angle of
// significand * 2**e skips e - 2 bits of 2 / pi, which only add whole turns.
void @turn(double x, out uint turn[6]) {
    uvec2 m = unpackDouble2x32(x);
    m.y = (m.y & 0xFFFFFu) | 0x100000u;
    uint bits[6];
    @two_by_pi_bits(clamp(@exponent(x) - 52 - 2 + 64, 0, 1056), bits);
    uint carry = 0u;
    uint above, high, low;
    for (int i = 5; i >= 0; i--) {
        umulExtended(m.x, bits[i], high, low);
        turn[i] = uaddCarry(low, carry, above);
        carry = high + above;
    }
    carry = 0u;
    for (int i = 5; i >= 1; i--) {
        umulExtended(m.y, bits[i], high, low);
        low = uaddCarry(low, carry, above);
        carry = high + above;
        turn[i - 1] = uaddCarry(turn[i - 1], low, above);
        carry += above;
    }
}

// a fraction of a turn, below 1/8
dvec2 @fraction(uint turn[6]) {
    precise double t0 = double(turn[0]) * @bit_32;
    precise double t1 = double(turn[1]) * @bit_64;
    precise double t2 = double(turn[2]) * @bit_96;
    precise double t3 = double(turn[3]) * @bit_128 + double(turn[4]) * @bit_160;
    return @add(@sum(t0, t1), @sum(t2, t3));
}
""",
        """
void @turn(float x, out uint turn[3]) {
    uint m = (floatBitsToUint(x) & 0x7FFFFFu) | 0x800000u;
    uint bits[3];
    @two_by_pi_bits(clamp(@exponent(x) - 23 - 2 + 64, 0, 192), bits);
    uint carry = 0u;
    uint above, high, low;
    for (int i = 2; i >= 0; i--) {
        umulExtended(m, bits[i], high, low);
        turn[i] = uaddCarry(low, carry, above);
        carry = high + above;
    }
}

vec2 @fraction(uint turn[3]) {
    precise float t0 = float(turn[0] >> 16) * @bit_16;
    precise float t1 = float(turn[0] & 0xFFFFu) * @bit_32;
    precise float t2 = float(turn[1] >> 16) * @bit_48;
    precise float t3 = float(turn[1] & 0xFFFFu) * @bit_64;
    vec2 b = @sum(t2, t3);
    precise float low = b.y + float(turn[2] >> 8) * @bit_88;
    return @add(@sum(t0, t1), vec2(b.x, low));
}
""",
    ),
    # (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4, of r**2
    "sin_series": pr.polynomial(
        "sin_series",
        lambda p: [Fraction((-1) ** n, factorial(2 * n + 1)) for n in range(1, 9 if p.double else 5)],
    ),
    "cos_series": pr.polynomial(
        "cos_series",
        lambda p: [Fraction((-1) ** n, factorial(2 * n)) for n in range(2, 10 if p.double else 6)],
    ),
    "two_by_pi_bits": _bits,
    # an angle of any size: less than an eighth of a turn, and quarters of a turn
    "reduce_large": lambda p: (
        f"""
@pair @reduce_large(@real x, out int quarters) {{
    uint turn[{_count(p)}];
    @turn(x, turn);
    quarters = int((turn[0] + 0x20000000u) >> 30);
    turn[0] -= uint(quarters) << 30;
    bool below = int(turn[0]) < 0;
    for (int i = 0; i < {_count(p)}; i++) {{
        turn[i] = below ? ~turn[i] : turn[i];
    }}
    @pair r = @multiply(@fraction(turn), @two_pi);
    return below ? -r : r;
}}
"""
    ),
    **read_functions("""
// of a pair of at most pi / 4
@pair @sin_of_pair(@pair r) {
    precise @real z = r.x * r.x;
    precise @real y = r.x * z * @sin_series(z) + (r.y - 0.5 * z * r.y);
    return @quick_sum(r.x, y);
}

@pair @cos_of_pair(@pair r) {
    @pair z = @product(r.x, r.x);
    precise @real half_z = 0.5 * z.x;
    @pair s = @quick_sum(1.0, -half_z);
    precise @real y = s.y + (z.x * z.x * @cos_series(z.x) - 0.5 * z.y - r.x * r.y);
    return @quick_sum(s.x, y);
}

@pair @reduce(@real x, out int quarters) {
    @pair r;
    if (x < @many_turns) {
        precise @real n = roundEven(x * @two_by_pi);
        quarters = int(n) & 3;
        precise @real first = x - n * @half_pi_1;
        precise @real second = n * @half_pi_2;
        precise @real third = n * @half_pi_3;
        @pair a = @sum(first, -second);
        @pair b = @sum(a.x, -third);
        precise @real rest = (a.y + b.y) - n * @half_pi_4;
        r = @quick_sum(b.x, rest);
    } else {
        r = @reduce_large(x, quarters);
    }
    return r;
}

@real @sin(@real x) {
    int quarters;
    @pair r = @reduce(abs(x), quarters);
    @real y;
    if ((quarters & 1) == 0) {
        y = @sin_of_pair(r).x;
    } else {
        y = @cos_of_pair(r).x;
    }
    y = ((quarters & 2) != 0) != @is_negative(x) ? -y : y;
    return abs(x) < @tiny ? x : abs(x) <= @largest ? y : @nan;
}

@real @cos(@real x) {
    int quarters;
    @pair r = @reduce(abs(x), quarters);
    @real y;
    if ((quarters & 1) == 0) {
        y = @cos_of_pair(r).x;
    } else {
        y = @sin_of_pair(r).x;
    }
    y = ((quarters + 1) & 2) != 0 ? -y : y;
    return abs(x) <= @largest ? y : @nan;
}

@real @tan(@real x) {
    int quarters;
    @pair r = @reduce(abs(x), quarters);
    @pair s = @sin_of_pair(r);
    @pair c = @cos_of_pair(r);
    @real y;
    if ((quarters & 1) == 0) {
        y = @divide(s, c).x;
    } else {
        y = @divide(-c, s).x;
    }
    y = @is_negative(x) ? -y : y;
    return abs(x) < @tiny ? x : abs(x) <= @largest ? y : @nan;
}

// |x| modulo 2: the nearest half, and pi times what is left, which is at most 1/4
@pair @reduce_pi(@real x, out int quarters) {
    @real a = abs(x);
    precise @real t = a - 2.0 * floor(0.5 * a);
    precise @real n = roundEven(t + t);
    quarters = int(n) & 3;
    precise @real r = t - 0.5 * n;
    return @multiply(@whole_pi, @pair(r, 0.0));
}

@real @sinpi(@real x) {
    int quarters;
    @pair r = @reduce_pi(x, quarters);
    precise @real y;
    if (abs(x) < @tiny_square) {
        // lifted, for devices that take subnormal numbers for zero
        precise @real lifted = @lift * abs(x);
        y = @multiply(@whole_pi, @pair(lifted, 0.0)).x / @lift;
    } else if ((quarters & 1) == 0) {
        y = @sin_of_pair(r).x;
    } else {
        y = @cos_of_pair(r).x;
    }
    // of whole numbers it is zero with the sign of x, as C says
    y = ((quarters & 2) != 0 && y != 0.0) != @is_negative(x) ? -y : y;
    return abs(x) <= @largest ? y : @nan;
}

@real @cospi(@real x) {
    int quarters;
    @pair r = @reduce_pi(x, quarters);
    @real y;
    if ((quarters & 1) == 0) {
        y = @cos_of_pair(r).x;
    } else {
        y = @sin_of_pair(r).x;
    }
    y = ((quarters + 1) & 2) != 0 && y != 0.0 ? -y : y;
    return abs(x) <= @largest ? y : @nan;
}
"""),
}


# ---- asin, acos, atan and atan2 --------------------------------------------------------------------------
#
# All are the angle of a point (d, n) of pairs, folded to n <= d. With c the multiple of 1/8 that is next to
# n / d it is atan(c) + atan((n - c d) / (d + c n)): a table and Taylor's series; see J.-M. Muller,
# Elementary Functions (2nd edition, 2006), chapters 4 and 11.


def arctangent(x: Fraction) -> Fraction:
    """Return the arc tangent of 0 to 1 with an error below 2**-150."""
    if x > Fraction(1, 2):
        # atan(x) = atan(1/2) + atan((x - 1/2) / (1 + x/2))
        return arctangent(Fraction(1, 2)) + arctangent((x - Fraction(1, 2)) / (1 + x / 2))
    # in units of 2**-200
    power = round(x * 2**200)
    total = 0
    for n in range(80):
        total += (-1) ** n * power // (2 * n + 1)
        power = power * x.numerator**2 // x.denominator**2
    return Fraction(total, 2**200)


def _eighths(precision: pr.Precision) -> str:
    values = (precision.pair_text(arctangent(Fraction(i, 8))) for i in range(1, 9))
    choices = (f"    y = i == {i} ? {value} : y;" for i, value in enumerate(values, 1))
    lines = ("@pair @atan_of_eighths(int i) {", "    @pair y = @pair(0.0);", *choices, "    return y;", "}")
    return "\n".join(lines)


def _atan(precision: pr.Precision) -> list[Fraction]:
    return [Fraction((-1) ** n, 2 * n + 1) for n in range(1, 8 if precision.double else 4)]


ARC_CONSTANTS: dict[str, pr.Text] = {
    "pi": lambda p: p.pair_text(pr.PI),
    "half_pi": lambda p: p.pair_text(pr.PI / 2),
    # exponents that lie so far apart that an angle is a quotient
    "apart": lambda p: str(40 if p.double else 20),
}

ARC_FUNCTIONS: dict[str, pr.Text] = {
    "atan_series": pr.polynomial("atan_series", _atan),
    "atan_of_eighths": _eighths,
    **read_functions("""
// the angle of (d, n) in the first quarter, where either is positive
@pair @angle(@pair n, @pair d) {
    bool steep = n.x > d.x;
    @pair a = steep ? d : n;
    @pair b = steep ? n : d;
    int i = int(roundEven(a.x / b.x * 8.0));
    @pair c = @pair(@real(i) * 0.125, 0.0);
    @pair t = @divide(@add(a, -@multiply(c, b)), @add(b, @multiply(c, a)));
    precise @real z = t.x * t.x;
    precise @real e = t.y + t.x * z * @atan_series(z);
    @pair r = @add(@atan_of_eighths(i), @quick_sum(t.x, e));
    @pair other = @add(@half_pi, -r);
    return steep ? other : r;
}

@real @atan(@real x) {
    @real a = abs(x);
    @real y = a < @tiny ? a : @angle(@pair(min(a, @lift), 0.0), @pair(1.0, 0.0)).x;
    return isnan(x) ? x : @is_negative(x) ? -y : y;
}

// sqrt(1 - x**2)
@pair @other_leg(@real x) {
    @pair square = @product(x, x);
    @pair s = @quick_sum(1.0, -square.x);
    precise @real rest = s.y - square.y;
    return @square_root(@sum(s.x, rest));
}

@real @asin(@real x) {
    @real a = abs(x);
    @real y = a < @tiny ? a : @angle(@pair(a, 0.0), @other_leg(a)).x;
    return a <= 1.0 ? @is_negative(x) ? -y : y : @nan;
}

@real @acos(@real x) {
    @real a = abs(x);
    @pair y = @angle(@other_leg(a), @pair(a, 0.0));
    @pair beyond = @add(@pi, -y);
    return a <= 1.0 ? x < 0.0 ? beyond.x : y.x : @nan;
}

@real @atan2(@real y, @real x) {
    @real n = abs(y);
    @real d = abs(x);
    // of infinities only which one is infinite counts
    bool infinite = n > @largest || d > @largest;
    n = infinite ? (n > @largest ? 1.0 : 0.0) : n;
    d = infinite ? (d > @largest ? 1.0 : 0.0) : d;
    precise @real up = max(n, d) < @smallest ? @lift : 1.0;
    precise @real n1 = n * up;
    precise @real d1 = d * up;
    d1 = n1 == 0.0 && d1 == 0.0 ? 1.0 : d1;
    int apart = @exponent(d1) - @exponent(n1);
    precise @real r;
    if (apart > @apart && !@is_negative(x)) {
        // both near 1 for the quotient, which may be tiny
        precise @real lifted = n < @smallest ? n * @lift : n;
        int k = @exponent(lifted) - (n < @smallest ? @lift_exponent : 0);
        @pair q = @divide(@pair(@significand(lifted), 0.0), @pair(@significand(d), 0.0));
        r = n == 0.0 ? n : @scale(q.x, k - @exponent(d));
    } else {
        int k = -max(@exponent(n1), @exponent(d1));
        @pair angle = @angle(@pair(@scale(n1, k), 0.0), @pair(@scale(d1, k), 0.0));
        @pair beyond = @add(@pi, -angle);
        r = @is_negative(x) ? beyond.x : angle.x;
    }
    return isnan(x) || isnan(y) ? @nan : @is_negative(y) ? -r : r;
}
"""),
}
