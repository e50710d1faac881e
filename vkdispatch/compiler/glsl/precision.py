"""The two precisions of mathematical functions, and pairs of numbers whose sum has twice the digits."""

import struct
from collections.abc import Callable, Iterable
from fractions import Fraction

from vkdispatch.base.record import record
from vkdispatch.compiler.glsl.spelling import read_functions

# ---- The two precisions that the functions are written in: types, constants, and how GLSL writes them ----


PI = Fraction("3.141592653589793238462643383279502884197169399375105820974944592307816")
LN_2 = Fraction("0.6931471805599453094172321214581765680755001343602552541206800094933936")
LOG10_2 = Fraction("0.3010299956639811952137388947244930267681898814621085413104274611271082")
LOG10_E = Fraction("0.4342944819032518276511289189166050822943970058036665661144537831658646")
HALF_LOG_2_PI = Fraction("0.9189385332046727417803297364056176398613974736377834128171515404827657")


@record
class Precision:
    """One of float64 and float32.

    `prefix` starts the names of its functions; `bits` is the precision, `least` and `most` are the exponents
    of the smallest normal and of the largest number.
    """

    prefix: str
    real: str
    pair: str
    suffix: str
    format: str
    bits: int
    least: int
    most: int

    @property
    def double(self) -> bool:
        """Whether it is float64."""
        return self.bits > 24

    def rounded(self, value: Fraction | float) -> float:
        """Return the number of this precision that is nearest."""
        number: float = struct.unpack(self.format, struct.pack(self.format, float(value)))[0]
        return number

    def text(self, value: Fraction | float) -> str:
        """Write a constant, rounded to this precision."""
        number = self.rounded(value)
        digits = repr(number)
        if not self.double:
            # the fewest digits that come back as the same number
            digits = next(t for n in range(1, 10) if self.rounded(float(t := f"{number:.{n}g}")) == number)
        if not any(letter in digits for letter in ".e"):
            digits += ".0"
        return digits + self.suffix

    def pair_text(self, value: Fraction) -> str:
        """Write a constant as the sum of two numbers."""
        first, second = self.pieces(value)
        return f"{self.pair}({self.text(first)}, {self.text(second)})"

    def pieces(self, value: Fraction, *lengths: int) -> list[Fraction]:
        """Cut a constant into numbers of these many bits, and what is left into one of all bits.

        Without lengths, it is two numbers of all bits.
        """
        found: list[Fraction] = []
        for length in lengths or (self.bits,):
            scale = Fraction(2) ** (length - _exponent(value))
            found.append(Fraction(round(value * scale)) / scale)
            value -= found[-1]
        return [*found, Fraction(self.rounded(value))]


def _exponent(value: Fraction) -> int:
    """Return the least e with |value| < 2**e."""
    exponent = 0
    while abs(value) >= Fraction(2) ** exponent:
        exponent += 1
    while abs(value) < Fraction(2) ** (exponent - 1):
        exponent -= 1
    return exponent


DOUBLE = Precision("f64_", "double", "dvec2", "lf", "d", 53, -1022, 1023)
SINGLE = Precision("f32_", "float", "vec2", "f", "f", 24, -126, 127)

# A definition in GLSL: in it `@name` is another definition, a constant, or the type `@real` or `@pair`.
Text = str | Callable[[Precision], str]


def both(double: str, single: str) -> Text:
    """Make a definition of two texts."""
    return lambda precision: double if precision.double else single


def both_functions(double: str, single: str) -> dict[str, Text]:
    """Make definitions of two texts, each of which has all of the functions."""
    singles = read_functions(single)
    return {name: both(text, singles[name]) for name, text in read_functions(double).items()}


def constant(rule: Callable[[Precision], Fraction | float]) -> Text:
    """Make a constant; `rule` may depend on the precision."""
    return lambda precision: precision.text(rule(precision))


def number(double: float, single: float) -> Text:
    """Make a constant of two numbers."""
    return constant(lambda precision: double if precision.double else single)


def polynomial(
    name: str, rule: Callable[[Precision], Iterable[Fraction | float]]
) -> Callable[[Precision], str]:
    """Make a function: the polynomial with these coefficients, the constant first, by Horner's rule."""

    def text(precision: Precision) -> str:
        *others, last = (precision.text(coefficient) for coefficient in rule(precision))
        lines = [f"    precise @real y = {last};"]
        lines += [f"    y = y * x + {other};" for other in reversed(others)]
        return "\n".join((f"@real @{name}(@real x) {{", *lines, "    return y;", "}"))

    return text


# ---- Bits of numbers, and pairs of numbers whose sum has twice the digits --------------------------------
#
# Sums: Knuth, The Art of Computer Programming 2, 4.2.2, theorem B, and Dekker's for ordered operands.
# Products: T. J. Dekker, A floating-point technique for extending the available precision, Numerische
# Mathematik 18 (1971), but halves are cut off by a mask, which cannot overflow. `fma` is not used: Vulkan
# lets devices round in between. `precise` keeps compilers from contracting and reordering.


PAIR_CONSTANTS: dict[str, Text] = {
    "inf": both("packDouble2x32(uvec2(0u, 0x7FF00000u))", "uintBitsToFloat(0x7F800000u)"),
    "nan": both("packDouble2x32(uvec2(0u, 0x7FF80000u))", "uintBitsToFloat(0x7FC00000u)"),
    "largest": constant(lambda p: (2 - Fraction(2) ** (1 - p.bits)) * Fraction(2) ** p.most),
    "smallest": constant(lambda p: Fraction(2) ** p.least),
    # more than any exponent, of which each half is one
    "scale_limit": both("2040", "250"),
    # makes ordinary numbers of those below the smallest; a cube
    "lift": number(2.0**54, 2.0**27),
    "lift_exponent": both("54", "27"),
    # below it, x and the odd functions of x with slope 1 are the same
    "tiny": constant(lambda p: Fraction(1, 2 ** ((p.bits + 3) // 2))),
    # below it, x and all functions of x with slope 1 are
    "tiny_square": constant(lambda p: Fraction(1, 2 ** (p.bits + 1))),
}

PAIR_FUNCTIONS: dict[str, Text] = {
    **both_functions(
        """
int @exponent(double x) {
    return int((unpackDouble2x32(x).y >> 20) & 0x7FFu) - 1023;
}

// |x| divided by a power of two: from [1, 2)
double @significand(double x) {
    uvec2 words = unpackDouble2x32(x);
    return packDouble2x32(uvec2(words.x, (words.y & 0xFFFFFu) | 0x3FF00000u));
}

double @power_of_two(int k) {
    return packDouble2x32(uvec2(0u, uint(k + 1023) << 20));
}

double @upper_half(double x) {
    uvec2 words = unpackDouble2x32(x);
    return packDouble2x32(uvec2(words.x & 0xF8000000u, words.y));
}

bool @is_negative(double x) {
    return int(unpackDouble2x32(x).y) < 0;
}
""",
        """
int @exponent(float x) {
    return int((floatBitsToUint(x) >> 23) & 0xFFu) - 127;
}

float @significand(float x) {
    return uintBitsToFloat((floatBitsToUint(x) & 0x7FFFFFu) | 0x3F800000u);
}

float @power_of_two(int k) {
    return uintBitsToFloat(uint(k + 127) << 23);
}

float @upper_half(float x) {
    return uintBitsToFloat(floatBitsToUint(x) & 0xFFFFF000u);
}

bool @is_negative(float x) {
    return floatBitsToInt(x) < 0;
}
""",
    ),
    **read_functions("""
// x * 2**k, rounded once where |x| is near 1
@real @scale(@real x, int k) {
    int first = clamp(k, -@scale_limit, @scale_limit) >> 1;
    int second = clamp(k, -@scale_limit, @scale_limit) - first;
    precise @real y = (x * @power_of_two(first)) * @power_of_two(second);
    return y;
}

// for |a| >= |b|, or a = 0
@pair @quick_sum(@real a, @real b) {
    precise @real s = a + b;
    precise @real e = b - (s - a);
    return @pair(s, e);
}

@pair @sum(@real a, @real b) {
    precise @real s = a + b;
    precise @real t = s - a;
    precise @real e = (a - (s - t)) + (b - t);
    return @pair(s, e);
}

@pair @product(@real a, @real b) {
    @real a1 = @upper_half(a);
    @real b1 = @upper_half(b);
    precise @real a2 = a - a1;
    precise @real b2 = b - b1;
    precise @real p = a * b;
    precise @real e = a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2);
    return @pair(p, e);
}

@pair @add(@pair a, @pair b) {
    @pair s = @sum(a.x, b.x);
    precise @real e = s.y + (a.y + b.y);
    return @quick_sum(s.x, e);
}

@pair @multiply(@pair a, @pair b) {
    @pair p = @product(a.x, b.x);
    precise @real e = p.y + (a.x * b.y + a.y * b.x);
    return @quick_sum(p.x, e);
}

// a quotient of one precision, and what is left over divided again
@pair @divide(@pair a, @pair b) {
    precise @real q = a.x / b.x;
    @pair p = @product(q, b.x);
    precise @real e = (((a.x - p.x) - p.y) + (a.y - q * b.y)) / b.x;
    return @quick_sum(q, e);
}

@pair @square_root(@pair a) {
    precise @real r = sqrt(a.x);
    @pair p = @product(r, r);
    precise @real e = (((a.x - p.x) - p.y) + a.y) / (r + r);
    @pair y = @quick_sum(r, e);
    return a.x > 0.0 ? y : @pair(0.0, 0.0);
}
"""),
}
