"""Bits of numbers, and pairs of numbers whose sum has twice the digits.

Sums: Knuth, The Art of Computer Programming 2, 4.2.2, theorem B, and Dekker's for ordered operands. Products:
T. J. Dekker, A floating-point technique for extending the available precision, Numerische Mathematik 18
(1971), but halves are cut off by a mask, which cannot overflow. `fma` is not used: Vulkan lets devices round
in between. `precise` keeps compilers from contracting and reordering.
"""

from fractions import Fraction

from vkdispatch.glsl.mathematics.precision import Text, both, constant, number

CONSTANTS: dict[str, Text] = {
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

FUNCTIONS: dict[str, Text] = {
    "exponent": both(
        """
int @exponent(double x) {
    return int((unpackDouble2x32(x).y >> 20) & 0x7FFu) - 1023;
}
""",
        """
int @exponent(float x) {
    return int((floatBitsToUint(x) >> 23) & 0xFFu) - 127;
}
""",
    ),
    # |x| divided by a power of two: from [1, 2)
    "significand": both(
        """
double @significand(double x) {
    uvec2 words = unpackDouble2x32(x);
    return packDouble2x32(uvec2(words.x, (words.y & 0xFFFFFu) | 0x3FF00000u));
}
""",
        """
float @significand(float x) {
    return uintBitsToFloat((floatBitsToUint(x) & 0x7FFFFFu) | 0x3F800000u);
}
""",
    ),
    "power_of_two": both(
        """
double @power_of_two(int k) {
    return packDouble2x32(uvec2(0u, uint(k + 1023) << 20));
}
""",
        """
float @power_of_two(int k) {
    return uintBitsToFloat(uint(k + 127) << 23);
}
""",
    ),
    "upper_half": both(
        """
double @upper_half(double x) {
    uvec2 words = unpackDouble2x32(x);
    return packDouble2x32(uvec2(words.x & 0xF8000000u, words.y));
}
""",
        """
float @upper_half(float x) {
    return uintBitsToFloat(floatBitsToUint(x) & 0xFFFFF000u);
}
""",
    ),
    "is_negative": both(
        """
bool @is_negative(double x) {
    return int(unpackDouble2x32(x).y) < 0;
}
""",
        """
bool @is_negative(float x) {
    return floatBitsToInt(x) < 0;
}
""",
    ),
    # x * 2**k, rounded once where |x| is near 1
    "scale": """
@real @scale(@real x, int k) {
    int first = clamp(k, -@scale_limit, @scale_limit) >> 1;
    int second = clamp(k, -@scale_limit, @scale_limit) - first;
    precise @real y = (x * @power_of_two(first)) * @power_of_two(second);
    return y;
}
""",
    # for |a| >= |b|, or a = 0
    "quick_sum": """
@pair @quick_sum(@real a, @real b) {
    precise @real s = a + b;
    precise @real e = b - (s - a);
    return @pair(s, e);
}
""",
    "sum": """
@pair @sum(@real a, @real b) {
    precise @real s = a + b;
    precise @real t = s - a;
    precise @real e = (a - (s - t)) + (b - t);
    return @pair(s, e);
}
""",
    "product": """
@pair @product(@real a, @real b) {
    @real a1 = @upper_half(a);
    @real b1 = @upper_half(b);
    precise @real a2 = a - a1;
    precise @real b2 = b - b1;
    precise @real p = a * b;
    precise @real e = a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2);
    return @pair(p, e);
}
""",
    "add": """
@pair @add(@pair a, @pair b) {
    @pair s = @sum(a.x, b.x);
    precise @real e = s.y + (a.y + b.y);
    return @quick_sum(s.x, e);
}
""",
    "multiply": """
@pair @multiply(@pair a, @pair b) {
    @pair p = @product(a.x, b.x);
    precise @real e = p.y + (a.x * b.y + a.y * b.x);
    return @quick_sum(p.x, e);
}
""",
    # a quotient of one precision, and what is left over divided again
    "divide": """
@pair @divide(@pair a, @pair b) {
    precise @real q = a.x / b.x;
    @pair p = @product(q, b.x);
    precise @real e = (((a.x - p.x) - p.y) + (a.y - q * b.y)) / b.x;
    return @quick_sum(q, e);
}
""",
    "square_root": """
@pair @square_root(@pair a) {
    precise @real r = sqrt(a.x);
    @pair p = @product(r, r);
    precise @real e = (((a.x - p.x) - p.y) + a.y) / (r + r);
    @pair y = @quick_sum(r, e);
    return a.x > 0.0 ? y : @pair(0.0, 0.0);
}
""",
}
