"""cbrt and hypot.

A cube root starts from a polynomial and takes a step of Halley's method and one of Newton's, whose residual
is exact; a hypotenuse is the square root of a pair.
"""

from vkdispatch.glsl.mathematics.precision import Text, number, polynomial

# Chebyshev interpolation of the cube root on [1, 2], with an error of 1.7e-6
_CBRT = (0.47514694, 0.83174314, -0.46029773, 0.1966548, -0.048318321, 0.005072953)

CONSTANTS: dict[str, Text] = {
    "much": number(2.0**500, 2.0**60),
    "little": number(2.0**-400, 2.0**-40),
    "shrink": number(2.0**-600, 2.0**-80),
    "grow": number(2.0**600, 2.0**80),
}

FUNCTIONS: dict[str, Text] = {
    "cbrt_start": polynomial("cbrt_start", lambda _: _CBRT),
    "cbrt": """
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
""",
    "hypot": """
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
""",
}
