"""asin, acos, atan and atan2.

All are the angle of a point (d, n) of pairs, folded to n <= d. With c the multiple of 1/8 that is next to n /
d it is atan(c) + atan((n - c d) / (d + c n)): a table and Taylor's series; see J.-M. Muller, Elementary
Functions (2nd edition, 2006), chapters 4 and 11.
"""

from fractions import Fraction

from vkdispatch.glsl.mathematics.precision import PI, Precision, Text, polynomial


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


def _eighths(precision: Precision) -> str:
    values = (precision.pair_text(arctangent(Fraction(i, 8))) for i in range(1, 9))
    choices = (f"    y = i == {i} ? {value} : y;" for i, value in enumerate(values, 1))
    lines = ("@pair @atan_of_eighths(int i) {", "    @pair y = @pair(0.0);", *choices, "    return y;", "}")
    return "\n".join(lines)


def _atan(precision: Precision) -> list[Fraction]:
    return [Fraction((-1) ** n, 2 * n + 1) for n in range(1, 8 if precision.double else 4)]


CONSTANTS: dict[str, Text] = {
    "pi": lambda p: p.pair_text(PI),
    "half_pi": lambda p: p.pair_text(PI / 2),
    # exponents that lie so far apart that an angle is a quotient
    "apart": lambda p: str(40 if p.double else 20),
}

FUNCTIONS: dict[str, Text] = {
    "atan_series": polynomial("atan_series", _atan),
    "atan_of_eighths": _eighths,
    # the angle of (d, n) in the first quarter, where either is positive
    "angle": """
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
""",
    "atan": """
@real @atan(@real x) {
    @real a = abs(x);
    @real y = a < @tiny ? a : @angle(@pair(min(a, @lift), 0.0), @pair(1.0, 0.0)).x;
    return isnan(x) ? x : @is_negative(x) ? -y : y;
}
""",
    # sqrt(1 - x**2)
    "other_leg": """
@pair @other_leg(@real x) {
    @pair square = @product(x, x);
    @pair s = @quick_sum(1.0, -square.x);
    precise @real rest = s.y - square.y;
    return @square_root(@sum(s.x, rest));
}
""",
    "asin": """
@real @asin(@real x) {
    @real a = abs(x);
    @real y = a < @tiny ? a : @angle(@pair(a, 0.0), @other_leg(a)).x;
    return a <= 1.0 ? @is_negative(x) ? -y : y : @nan;
}
""",
    "acos": """
@real @acos(@real x) {
    @real a = abs(x);
    @pair y = @angle(@other_leg(a), @pair(a, 0.0));
    @pair beyond = @add(@pi, -y);
    return a <= 1.0 ? x < 0.0 ? beyond.x : y.x : @nan;
}
""",
    "atan2": """
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
""",
}
