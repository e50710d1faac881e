"""GLSL functions that compute with the stand-ins for types that a device lacks; see `emulation`."""

import re
from collections.abc import Iterable

_HELPERS = {
    "brain_bits": """
uint brain_bits(float value) {
    uint bits = floatBitsToUint(value);
    uint rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return isnan(value) ? (bits >> 16) | 0x40u : rounded;
}
""",
    # in integers: devices may round and flush conversions as they like
    "half_value": """
float half_value(uint bits) {
    uint fraction = bits & 0x3FFu, exponent = (bits >> 10) & 0x1Fu, sign = (bits & 0x8000u) << 16;
    if (exponent == 0u)
        return uintBitsToFloat(floatBitsToUint(float(fraction) * 5.9604644775390625e-8) | sign);
    exponent = exponent == 31u ? 0x7F800000u : (exponent + 112u) << 23;
    return uintBitsToFloat(sign | exponent | (fraction << 13));
}
vec2 half_value(uvec2 bits) { return vec2(half_value(bits.x), half_value(bits.y)); }
vec3 half_value(uvec3 bits) { return vec3(half_value(bits.xy), half_value(bits.z)); }
vec4 half_value(uvec4 bits) { return vec4(half_value(bits.xy), half_value(bits.zw)); }
""",
    "half_bits": """
uint half_bits(float value) {
    uint bits = floatBitsToUint(value), sign = (bits >> 16) & 0x8000u;
    bits &= 0x7FFFFFFFu;
    if (bits > 0x7F800000u)
        return sign | 0x7E00u | ((bits >> 13) & 0x3FFu);
    if (bits >= 0x477FF000u)
        return sign | 0x7C00u;
    if (bits >= 0x38800000u)
        return sign | ((bits - 0x38000000u + 0xFFFu + ((bits >> 13) & 1u)) >> 13);
    if (bits < 0x33000000u)
        return sign;
    uint fraction = (bits & 0x7FFFFFu) | 0x800000u, shift = 126u - (bits >> 23);
    uint result = fraction >> shift, rest = fraction & ((1u << shift) - 1u), middle = 1u << (shift - 1u);
    return sign | (result + uint(rest > middle || (rest == middle && (result & 1u) == 1u)));
}
uvec2 half_bits(vec2 value) { return uvec2(half_bits(value.x), half_bits(value.y)); }
uvec3 half_bits(vec3 value) { return uvec3(half_bits(value.xy), half_bits(value.z)); }
uvec4 half_bits(vec4 value) { return uvec4(half_bits(value.xy), half_bits(value.zw)); }
""",
    "half_round": """
float half_round(float value) { return half_value(half_bits(value)); }
vec2 half_round(vec2 value) { return half_value(half_bits(value)); }
vec3 half_round(vec3 value) { return half_value(half_bits(value)); }
vec4 half_round(vec4 value) { return half_value(half_bits(value)); }
""",
    "long_less": """
bool long_less(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }
""",
    "long_signed_less": """
bool long_signed_less(uvec2 a, uvec2 b) { return int(a.y) < int(b.y) || (a.y == b.y && a.x < b.x); }
""",
    "long_add": """
uvec2 long_add(uvec2 a, uvec2 b) {
    uint low = a.x + b.x;
    return uvec2(low, a.y + b.y + uint(low < a.x));
}
""",
    "long_subtract": """
uvec2 long_subtract(uvec2 a, uvec2 b) { return uvec2(a.x - b.x, a.y - b.y - uint(a.x < b.x)); }
""",
    "long_negate": """
uvec2 long_negate(uvec2 a) { return uvec2(0u - a.x, 0u - a.y - uint(a.x != 0u)); }
""",
    "long_multiply": """
uvec2 long_multiply(uvec2 a, uvec2 b) {
    uint high, low;
    umulExtended(a.x, b.x, high, low);
    return uvec2(low, high + a.x * b.y + a.y * b.x);
}
""",
    "long_left": """
uvec2 long_left(uvec2 a, uvec2 count) {
    uint n = count.x & 63u;
    if (n >= 32u)
        return uvec2(0u, a.x << (n - 32u));
    return n == 0u ? a : uvec2(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}
""",
    "long_right": """
uvec2 long_right(uvec2 a, uvec2 count) {
    uint n = count.x & 63u;
    if (n >= 32u)
        return uvec2(a.y >> (n - 32u), 0u);
    return n == 0u ? a : uvec2((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}
""",
    "long_signed_right": """
uvec2 long_signed_right(uvec2 a, uvec2 count) {
    uint n = count.x & 63u;
    if (n >= 32u)
        return uvec2(uint(int(a.y) >> (n - 32u)), uint(int(a.y) >> 31));
    return n == 0u ? a : uvec2((a.x >> n) | (a.y << (32u - n)), uint(int(a.y) >> n));
}
""",
    "long_divide": """
uvec2 long_divide(uvec2 a, uvec2 b) {
    if ((a.y | b.y) == 0u)
        return uvec2(a.x / b.x, 0u);
    uvec2 quotient = uvec2(0u), rest = uvec2(0u);
    // compilers unroll loops whose length they know
    for (int i = a.y != 0u ? 32 + findMSB(a.y) : findMSB(a.x); i >= 0; --i) {
        bool large = rest.y >= 0x80000000u;
        uint next = (i >= 32 ? a.y >> (i - 32) : a.x >> i) & 1u;
        rest = uvec2((rest.x << 1) | next, (rest.y << 1) | (rest.x >> 31));
        if (large || !long_less(rest, b)) {
            rest = long_subtract(rest, b);
            quotient |= i >= 32 ? uvec2(0u, 1u << (i - 32)) : uvec2(1u << i, 0u);
        }
    }
    return quotient;
}
""",
    "long_modulo": """
uvec2 long_modulo(uvec2 a, uvec2 b) { return long_subtract(a, long_multiply(long_divide(a, b), b)); }
""",
    "long_signed_divide": """
uvec2 long_signed_divide(uvec2 a, uvec2 b) {
    uvec2 quotient = long_divide(long_abs(a), long_abs(b));
    return int(a.y ^ b.y) < 0 ? long_negate(quotient) : quotient;
}
""",
    "long_signed_modulo": """
uvec2 long_signed_modulo(uvec2 a, uvec2 b) {
    return long_subtract(a, long_multiply(long_signed_divide(a, b), b));
}
""",
    "long_abs": """
uvec2 long_abs(uvec2 a) { return mix(a, long_negate(a), bvec2(int(a.y) < 0)); }
""",
    "long_signed_abs": """
uvec2 long_signed_abs(uvec2 a) { return long_abs(a); }
""",
    "long_signed_sign": """
uvec2 long_signed_sign(uvec2 a) {
    return int(a.y) < 0 ? uvec2(0xFFFFFFFFu) : uvec2(uint(a != uvec2(0u)), 0u);
}
""",
    "long_min": "uvec2 long_min(uvec2 a, uvec2 b) { return long_less(b, a) ? b : a; }",
    "long_max": "uvec2 long_max(uvec2 a, uvec2 b) { return long_less(a, b) ? b : a; }",
    "long_signed_min": "uvec2 long_signed_min(uvec2 a, uvec2 b) { return long_signed_less(b, a) ? b : a; }",
    "long_signed_max": "uvec2 long_signed_max(uvec2 a, uvec2 b) { return long_signed_less(a, b) ? b : a; }",
    "long_clamp": "uvec2 long_clamp(uvec2 a, uvec2 b, uvec2 c) { return long_min(long_max(a, b), c); }",
    "long_signed_clamp": """
uvec2 long_signed_clamp(uvec2 a, uvec2 b, uvec2 c) { return long_signed_min(long_signed_max(a, b), c); }
""",
    "long_integer_power": """
uvec2 long_integer_power(uvec2 base, uvec2 exponent) {
    uvec2 power = uvec2(1u, 0u);
    for (int i = exponent.y != 0u ? 32 + findMSB(exponent.y) : findMSB(exponent.x); i >= 0; --i) {
        power = long_multiply(power, power);
        if (((i >= 32 ? exponent.y >> (i - 32) : exponent.x >> i) & 1u) != 0u)
            power = long_multiply(power, base);
    }
    return power;
}
""",
    "long_signed_integer_power": """
uvec2 long_signed_integer_power(uvec2 base, uvec2 exponent) {
    if (int(exponent.y) >= 0)
        return long_integer_power(base, exponent);
    bool minus = base == uvec2(0xFFFFFFFFu);
    if (base == uvec2(1u, 0u) || (minus && (exponent.x & 1u) == 0u))
        return uvec2(1u, 0u);
    return minus ? base : uvec2(0u);
}
""",
    "long_of_int": "uvec2 long_of_int(int a) { return uvec2(uint(a), uint(a >> 31)); }",
    "long_of_float": """
uvec2 long_of_float(float a) {
    float high = floor(a * 2.3283064365386963e-10);
    return uvec2(uint(a - high * 4294967296.0), uint(high));
}
""",
    "long_signed_of_float": """
uvec2 long_signed_of_float(float a) {
    uvec2 size = long_of_float(floor(abs(a)));
    return a < 0.0 ? long_negate(size) : size;
}
""",
    # rounded in integers, as halves are; without branches, which SwiftShader compiles for minutes in loops
    "float_of_long": """
float float_of_long(uvec2 a) {
    uint last = uint(mix(findMSB(a.x), 32 + findMSB(a.y), a.y != 0u));
    uint n = 63u - last;
    uint carried = mix(a.x >> ((32u - n) & 31u), 0u, (n & 31u) == 0u);
    uvec2 near = uvec2(a.x << (n & 31u), (a.y << (n & 31u)) | carried);
    uvec2 high = mix(near, uvec2(0u, near.x), bvec2((n & 32u) != 0u));
    uint fraction = high.y >> 8, rest = high.y & 0xFFu;
    bool more = high.x != 0u || (fraction & 1u) == 1u;
    fraction += uint(rest > 0x80u || (rest == 0x80u && more));
    bool small = a.y == 0u && a.x < 0x1000000u;
    return mix(float(fraction) * uintBitsToFloat((last + 104u) << 23), float(a.x), small);
}
""",
    "float_of_signed_long": """
float float_of_signed_long(uvec2 a) {
    float size = float_of_long(long_abs(a));
    return mix(size, -size, int(a.y) < 0);
}
""",
}

for _name in ("Add", "InclusiveAdd", "ExclusiveAdd"):
    # sums of 16 bits each, of which as many as a subgroup has fit in a word
    _HELPERS[f"long_subgroup{_name}"] = f"""
uvec2 long_subgroup{_name}(uvec2 a) {{
    uvec2 low = subgroup{_name}(a & 0xFFFFu), high = subgroup{_name}(a >> 16);
    uvec2 sum = long_add(uvec2(low.x, 0u), uvec2(high.x << 16, high.x >> 16));
    return long_add(sum, uvec2(0u, low.y + (high.y << 16)));
}}
"""
for _name, _worst in (("Min", "0xFFFFFFFFu"), ("Max", "0u")):
    for _prefix, _type in (("", "uint"), ("signed_", "int")):
        _HELPERS[f"long_{_prefix}subgroup{_name}"] = f"""
uvec2 long_{_prefix}subgroup{_name}(uvec2 a) {{
    uint high = uint(subgroup{_name}({_type}(a.y)));
    return uvec2(subgroup{_name}(a.y == high ? a.x : {_worst}), high);
}}
"""


def helper_lines(lines: Iterable[str]) -> list[str]:
    """Return the definitions of the functions of this module that lines of GLSL call."""
    used: set[str] = set()
    pending = ["\n".join(lines)]
    while pending:
        text = pending.pop()
        for name in _HELPERS:
            if name not in used and f"{name}(" in text:
                used.add(name)
                pending.append(_HELPERS[name])
    ordered: list[str] = []
    for name in sorted(used):
        _place(name, used, ordered)
    return [line for name in ordered for line in (*_HELPERS[name].strip().splitlines(), "")]


def _place(name: str, used: set[str], ordered: list[str]) -> None:
    """Put a function behind those that it calls."""
    if name in ordered:
        return
    for other in sorted(used):
        if other != name and re.search(rf"\b{other}\(", _HELPERS[name]):
            _place(other, used, ordered)
    ordered.append(name)
