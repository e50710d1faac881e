"""Mathematical functions that GLSL lacks, or has in lower precision only."""

import functools
import re
from fractions import Fraction
from math import factorial

from vkdispatch.compiler.glsl import exponentials, trigonometry
from vkdispatch.compiler.glsl import precision as pr
from vkdispatch.compiler.glsl.spelling import read_functions

# ---- erf, erfc, gamma and lgamma -------------------------------------------------------------------------
#
# erfc(x) is exp(-x**2) / (1 + 2x) times a polynomial of (x - K) / (x + K): M. M. Shepherd and J. G.
# Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2) erfc(x) in 0 <= x < infinity, Mathematics of
# Computation 36 (1981). The logarithm of gamma is Stirling's series for large x (Abramowitz and Stegun,
# Handbook of Mathematical Functions, 6.1.40), and z times a polynomial for x = 2 + z, to which smaller and
# larger x are brought by factors (6.1.15); negative x are reflected (6.1.17). Coefficients without a
# formula come from Chebyshev interpolation with mpmath.


# Relative errors 5.4e-18 for K = 3.75 and 0.5 <= x <= 28, 3e-9 for K = 2.5 and 0.5 <= x <= 11.
_ERFC_64 = (
    *(1.2375126308378275, -0.14024059858554702, 0.0035854154854658496, 0.08227673849015059),
    *(-0.1088039301418558, 0.09230432116022246, -0.05869339858656682, 0.028362277420937457),
    *(-0.009746579602513314, 0.0017556258398018613, 0.0002937140375272005, -0.0002901540353336165),
    *(5.164717365417525e-05, 2.2384180644872092e-05, -1.1437767278950732e-05, -9.7368428239226e-07),
    *(1.7380461262457937e-06, -5.658053403353585e-08, -2.405381553661818e-07, 2.2156361551057863e-08),
    *(2.4650884795239513e-08, -2.819125663086401e-09),
)
_ERFC_32 = (
    *(1.2648382186889648, -0.12235675752162933, -0.09902434051036835, 0.15762992203235626),
    *(-0.10297104716300964, 0.03275834023952484, 0.0009602762875147164, -0.004355911631137133),
    *(0.00040866329800337553, 0.0005405563279055059),
)
# log(gamma(2 + z)) / z for |z| <= 1/2; errors 5e-18 and 1.1e-9
_LGAMMA_64 = (
    *(0.42278433509846713, 0.3224670334241132, -0.06735230105319563, 0.02058080842778338),
    *(-0.007385551028935545, 0.002890510330865901, -0.0011927539009983087, 0.0005096695196526673),
    *(-0.00022315497746292723, 9.945761692157133e-05, -4.4923727564247656e-05, 2.050601970174762e-05),
    *(-9.45628851510172e-06, 4.3828545383846665e-06, -1.9743106888421067e-06, 9.242852225162277e-07),
    *(-5.811277768921246e-07, 2.7475390051909663e-07),
)
_LGAMMA_32 = (
    *(0.42278433509846713, 0.3224670180454995, -0.06735229409087408, 0.0205816254365885),
    *(-0.007385920884783578, 0.00287886868374075, -0.0011874848136699278, 0.0005702512502829781),
    -0.00025056202146086636,
)
# Bernoulli's numbers B(2), B(4), ...
_BERNOULLI = (
    *(Fraction(1, 6), Fraction(-1, 30), Fraction(1, 42), Fraction(-1, 30), Fraction(5, 66)),
    *(Fraction(-691, 2730), Fraction(7, 6), Fraction(-3617, 510), Fraction(43867, 798)),
)


def _erf(precision: pr.Precision) -> list[float]:
    scale = 1.1283791670955126  # 2 / sqrt(pi)
    terms = [scale * (-1) ** n / (factorial(n) * (2 * n + 1)) for n in range(13 if precision.double else 7)]
    return [0.1283791670955126, *terms[1:]]


def _stirling(precision: pr.Precision) -> list[Fraction]:
    count = 9 if precision.double else 4
    return [b / (2 * n * (2 * n - 1)) for n, b in enumerate(_BERNOULLI[:count], 1)]


SPECIAL_CONSTANTS: dict[str, pr.Text] = {
    "erfc_middle": pr.number(3.75, 2.5),
    "erfc_limit": pr.number(28.0, 11.0),
    "stirling_limit": pr.number(12.0, 7.0),
    "gamma_limit": pr.number(220.0, 60.0),
    "stirling_constant": lambda p: p.pair_text(pr.HALF_LOG_2_PI - Fraction(1, 2)),
    "whole_limit": pr.number(2.0**52, 2.0**23),
    "one_by_pi": lambda p: p.pair_text(1 / pr.PI),
}

SPECIAL_FUNCTIONS: dict[str, pr.Text] = {
    # erf(x) / x - 1, of x**2
    "erf_series": pr.polynomial("erf_series", _erf),
    "erfc_series": pr.polynomial("erfc_series", lambda p: _ERFC_64 if p.double else _ERFC_32),
    "lgamma_series": pr.polynomial("lgamma_series", lambda p: _LGAMMA_64 if p.double else _LGAMMA_32),
    "stirling_series": pr.polynomial("stirling_series", _stirling),
    **read_functions("""
// llvmpipe of Mesa 22.3 rounds halves of doubles towards zero, and keeps the fractions of large ones
@real @trunc(@real x) {
    return x < 0.0 ? ceil(x) : floor(x);
}

@real @round(@real x) {
    precise @real size = abs(x) + @whole_limit;
    precise @real whole = size - @whole_limit;
    return abs(x) < @whole_limit ? (x < 0.0 ? -whole : whole) : x;
}

@real @round_even(@real x) {
    return @round(x);
}

// for x >= 1/2
@real @erfc_far(@real x) {
    @real a = min(x, @erfc_limit);
    precise @real t = (a - @erfc_middle) / (a + @erfc_middle);
    int k;
    @pair e = @exp_parts(-@product(a, a), k);
    precise @real g = @erfc_series(t) / (1.0 + 2.0 * a);
    precise @real y = g + g * e.x;
    return @scale(y, k);
}

@real @erf_near(@real x) {
    // by 2**24, for devices that take subnormal numbers for zero
    precise @real s = 16777216.0 * x;
    precise @real y = (s + s * @erf_series(x * x)) * 5.9604644775390625e-08;
    return y;
}

@real @erf(@real x) {
    @real a = abs(x);
    precise @real y;
    if (a < 0.5) {
        y = @erf_near(a);
    } else {
        y = 1.0 - @erfc_far(a);
    }
    return isnan(x) ? x : @is_negative(x) ? -y : y;
}

@real @erfc(@real x) {
    @real a = abs(x);
    precise @real y;
    if (a < 0.5) {
        y = 1.0 - @erf_near(x);
    } else {
        y = @erfc_far(a);
        y = x < 0.0 ? 2.0 - y : y;
    }
    return isnan(x) ? x : y;
}

// log(gamma(x)) for large x: (x - 1/2) (log(x) - 1) + log(2 pi) / 2 - 1/2 and a series
@pair @stirling(@real x) {
    precise @real inverse = 1.0 / x;
    precise @real rest = inverse * @stirling_series(inverse * inverse);
    @pair l = @add(@log_of_pair(x, 0.0), @pair(-1.0, 0.0));
    @pair s = @add(@multiply(l, @sum(x, -0.5)), @stirling_constant);
    return @add(s, @pair(rest, 0.0));
}

// log(gamma(x)) = what is returned + log(n / d), for x > -1/2
@pair @gamma_parts(@real x, out @pair n, out @pair d) {
    n = d = @pair(1.0, 0.0);
    @pair l;
    if (x >= @stirling_limit) {
        l = @stirling(x);
    } else {
        precise @real z = x;
        for (int i = 0; i < 12 && z >= 2.5; i++) {
            z -= 1.0;
            n = @multiply(n, @pair(z, 0.0));
        }
        if (z < 1.5) {
            d = @pair(z, 0.0);
        }
        if (z < 0.5) {
            d = @multiply(d, @sum(1.0, x));
        }
        z -= z < 0.5 ? 0.0 : z < 1.5 ? 1.0 : 2.0;
        l = @product(z, @lgamma_series(z));
    }
    return l;
}

// the same for any x but poles
@pair @gamma_parts_reflected(@real x, out @pair n, out @pair d) {
    bool reflect = x < -0.5;
    @pair l = @gamma_parts(reflect ? -x : x, n, d);
    if (reflect) {
        precise @real whole = @round(x);
        precise @real f = abs(x - whole);
        @pair s;
        if (f < 0.25) {
            s = @sin_of_pair(@multiply(@whole_pi, @pair(f, 0.0)));
        } else {
            f = 0.5 - f;
            s = @cos_of_pair(@multiply(@whole_pi, @pair(f, 0.0)));
        }
        s = @multiply(@multiply(s, @pair(-x, 0.0)), @one_by_pi);
        @pair swapped = n;
        n = d;
        d = @multiply(swapped, s);
        l = -l;
    }
    return l;
}

@real @gamma(@real x) {
    precise @real limited = clamp(x, -@gamma_limit, @gamma_limit);
    limited = x < -@gamma_limit ? limited + 0.25 : limited;
    @pair n;
    @pair d;
    int k;
    @pair e = @exp_parts(@gamma_parts_reflected(limited, n, d), k);
    @pair q = @divide(n, d);
    precise @real y = q.x + (q.x * e.x + q.y);
    y = @scale(y, k);
    precise @real half_x = 0.5 * floor(x);
    y = x < -0.5 && floor(half_x) != half_x ? -y : y;
    precise @real inverse = 1.0 / x;
    y = x == 0.0 ? (@is_negative(x) ? -@inf : @inf) : abs(x) < @tiny_square ? inverse : y;
    return isnan(x) ? x : x < 0.0 && floor(x) == x ? @nan : y;
}

@real @lgamma(@real x) {
    bool tiny = abs(x) < @tiny_square;
    @pair n;
    @pair d;
    @pair l = @gamma_parts_reflected(tiny ? 1.0 : x, n, d);
    @pair q = @divide(n, d);
    q = tiny ? @pair(abs(x), 0.0) : q.x < 0.0 ? -q : q;
    @pair log_q = @log_of_pair(q.x, q.y);
    @real y = tiny ? -log_q.x : @add(l, log_q).x;
    y = y <= @largest ? y : @inf;
    bool pole = x <= 0.0 && floor(x) == x;
    return isnan(x) ? x : pole || abs(x) > @largest ? @inf : y;
}
"""),
}


# ---- The mathematical functions, and their definitions with all functions that they call -----------------


_CONSTANTS: dict[str, pr.Text] = {
    **pr.PAIR_CONSTANTS,
    **exponentials.EXPONENTIAL_CONSTANTS,
    **exponentials.LOGARITHM_CONSTANTS,
    **trigonometry.TRIGONOMETRIC_CONSTANTS,
    **trigonometry.ARC_CONSTANTS,
    **exponentials.ROOT_CONSTANTS,
    **SPECIAL_CONSTANTS,
}
_FUNCTIONS: dict[str, pr.Text] = {
    **pr.PAIR_FUNCTIONS,
    **exponentials.EXPONENTIAL_FUNCTIONS,
    **exponentials.LOGARITHM_FUNCTIONS,
    **trigonometry.TRIGONOMETRIC_FUNCTIONS,
    **trigonometry.ARC_FUNCTIONS,
    **exponentials.ROOT_FUNCTIONS,
    **SPECIAL_FUNCTIONS,
}
_NAME = re.compile(r"@(\w+)")


@functools.cache
def definitions(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines that define these functions, such as f64_sin, each after what it calls."""
    found: dict[str, str] = {}
    for name in names:
        precision = pr.DOUBLE if name.startswith(pr.DOUBLE.prefix) else pr.SINGLE
        _define(name.removeprefix(precision.prefix), precision, found)
    return tuple(line for text in found.values() for line in (*text.splitlines(), ""))


def _define(name: str, precision: pr.Precision, found: dict[str, str]) -> None:
    """Add a function behind those that it calls."""
    if precision.prefix + name in found:
        return
    text = _expand(_FUNCTIONS[name], precision).strip()

    def replace_name(match: re.Match[str]) -> str:
        word = match[1]
        if word in ("real", "pair"):
            return precision.real if word == "real" else precision.pair
        if word in _CONSTANTS:
            return _expand(_CONSTANTS[word], precision)
        if word != name:
            _define(word, precision, found)
        return precision.prefix + word

    # this defines the functions that it calls
    text = _NAME.sub(replace_name, text)
    found[precision.prefix + name] = text


def _expand(text: pr.Text, precision: pr.Precision) -> str:
    return text if isinstance(text, str) else text(precision)
