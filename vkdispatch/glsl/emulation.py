"""Types that a device does not compute with, as GLSL of the types that it has.

Integers of 64 bits are two words each, a uvec2. Those of 16 bits are an int or a uint that holds the value,
and float16 is a float; each result is brought back to a value of the type. So results are those of the types:
a sum, product, quotient or root of halves that is rounded to a float and then to a half is rounded once.
"""

import re
from collections.abc import Callable, Iterable

from vkdispatch.analyses.contents import contents, usage
from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    is_array,
    is_cooperative,
    is_float_dtype,
    is_scalar,
    uint16,
    uint32,
    uint64,
)
from vkdispatch.ir import Expr, Kernel, Op
from vkdispatch.ir.numbers import rounded
from vkdispatch.ir.variant import FEATURE_OF, FLOAT16, INT16, INT64, emulates

_TYPES = {
    INT64: (("u?int64_t", "uvec2"),),
    INT16: (("uint16_t", "uint"), ("int16_t", "int"), (r"u16vec(\d)", r"uvec\1"), (r"i16vec(\d)", r"ivec\1")),
    FLOAT16: (("float16_t", "float"), (r"f16vec(\d)", r"vec\1")),
}
# Operators whose result of values of 16 bits needs no more bits.
_CLOSED = frozenset(("&", "|", "^", ">>", "%"))
_LONG_OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "<<": "left"}
_SIGNED_OPERATORS = {"/": "divide", "%": "modulo", ">>": "right"}
_LONG_CALLS = frozenset(("min", "max", "abs", "sign", "clamp"))
_SAME_WORDS = frozenset(("packUint2x32", "unpackUint2x32", "packInt2x32", "unpackInt2x32"))
# Subgroup operations of which each word of a number is not right by itself, and those that have a form here;
# `glsl.lanes` has one for the others.
_WHOLE = ("Add", "Mul", "Min", "Max")
_LONG_SUMS = frozenset(("subgroupAdd", "subgroupInclusiveAdd", "subgroupExclusiveAdd"))
_LONG_EXTREMES = frozenset(("subgroupMin", "subgroupMax"))
_BITS_OF_HALVES = {"float16BitsToUint16": "half_bits", "uint16BitsToFloat16": "half_value"}

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


def can_emulate(kernel: Kernel, lacks: frozenset[str]) -> bool:
    """Whether all that a kernel does with the types that are lacking can be written without them."""
    for expr in contents(kernel).expressions:
        kinds = [expr.dtype, *(arg.dtype for arg in expr.args)]
        if not any(emulates(kind, lacks) for kind in kinds):
            continue
        if expr.op is Op.RAW or any(map(is_cooperative, kinds)) or expr.op is Op.ATOMIC:
            return False
        if INT64 in lacks and any(map(_is_long, kinds)) and not _has_long_form(expr, kinds):
            return False
    return not any(is_cooperative(kind) and emulates(kind, lacks) for kind in usage(kernel).dtypes)


def _has_long_form(expr: Expr, kinds: list[DType]) -> bool:
    if expr.op is Op.CALL:
        return expr.value in _LONG_CALLS or expr.value in _SAME_WORDS or expr.value == "wrapped"
    return float64 not in kinds or expr.op is not Op.CONSTRUCT


def _is_long(kind: DType) -> bool:
    return kind in (int64, uint64)


def is_emulated_long(kind: DType, lacks: frozenset[str]) -> bool:
    """Whether values of a type are two words each in a form of a kernel."""
    return _is_long(kind) and INT64 in lacks


def has_long_operation(function: str) -> bool:
    """Whether a subgroup operation of numbers in two words is a few of the device's own."""
    quick = function in _LONG_SUMS or function in _LONG_EXTREMES
    return quick or not any(word in function for word in _WHOLE)


def plain_types(line: str, lacks: frozenset[str]) -> str:
    """Write the types of a line of GLSL as those that stand for them."""
    for feature, types in _TYPES.items():
        if feature in lacks:
            for pattern, plain in types:
                line = re.sub(rf"\b{pattern}\b", plain, line)
    return line


def stand_in(kind: DType, lacks: frozenset[str]) -> DType:
    """Return the scalar type in which a form of a kernel holds values of another one."""
    if FEATURE_OF.get(kind) not in lacks or _is_long(kind):
        return kind
    return int32 if kind is int16 else uint32 if kind is uint16 else float32


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


def literal(value: float, kind: DType, write: Callable[[float, DType], str]) -> str:
    """Write a literal of an emulated type. `write` writes literals of native types."""
    if _is_long(kind):
        return f"uvec2({int(value) & 0xFFFFFFFF}u, {int(value) >> 32 & 0xFFFFFFFF}u)"
    if kind is float16:
        return write(rounded(float(value), float16), float32)
    return write(value, int32 if kind is int16 else uint32)


def back(text: str, kind: DType) -> str:
    """Bring a result back to a value of its type."""
    scalar = component_type(kind)
    if scalar is float16:
        return f"half_round({text})"
    return f"bitfieldExtract({text}, 0, 16)" if scalar in (int16, uint16) else text


def write_operation(symbol: str, kind: DType, left: str, right: str) -> str:
    """Write the result, of type `kind`, of an operator; the operands are written as operands are."""
    if not _is_long(kind):
        text = f"{left} {symbol} {right}"
        return f"({text})" if symbol in _CLOSED and not is_float_dtype(kind) else back(text, kind)
    if symbol in _LONG_OPERATORS:
        return f"long_{_LONG_OPERATORS[symbol]}({left}, {right})"
    if symbol in _SIGNED_OPERATORS:
        return f"long_{_sign_prefix(kind)}{_SIGNED_OPERATORS[symbol]}({left}, {right})"
    return f"({left} {symbol} {right})"


def _sign_prefix(kind: DType) -> str:
    return "signed_" if kind is int64 else ""


def write_comparison(symbol: str, kind: DType, left: str, right: str) -> str:
    """Write a comparison of integers of 64 bits."""
    if symbol in ("==", "!="):
        return f"({left} {symbol} {right})"
    first, second = (right, left) if symbol in (">", "<=") else (left, right)
    text = f"long_{_sign_prefix(kind)}less({first}, {second})"
    return f"!{text}" if symbol in ("<=", ">=") else text


def write_call(expr: Expr, texts: list[str], lacks: frozenset[str]) -> str:
    """Write the call of a function, one of a subgroup or one of GLSL's, with the texts of its arguments."""
    name, kind = str(expr.value), expr.dtype
    if name in _BITS_OF_HALVES and FLOAT16 in lacks:
        return f"{_BITS_OF_HALVES[name]}({texts[0]})"
    if name in _SAME_WORDS and INT64 in lacks:
        return texts[0]
    if expr.op is Op.CALL and _is_long(kind) and name in _LONG_CALLS:
        name = f"long_{_sign_prefix(kind)}{name}"
    elif expr.op is Op.SUBGROUP and _is_long(kind) and name in _LONG_SUMS:
        name = f"long_{name}"
    elif expr.op is Op.SUBGROUP and _is_long(kind) and name in _LONG_EXTREMES:
        name = f"long_{_sign_prefix(kind)}{name}"
    text = f"{name}({', '.join(texts)})"
    return back(text, kind) if emulates(kind, lacks) else text


def write_construction(expr: Expr, texts: list[str], lacks: frozenset[str]) -> str:
    """Write the construction of a value of the texts of its components, or of what is converted."""
    kind, scalar = expr.dtype, component_type(expr.dtype)
    if is_array(kind):
        return "{}"
    if emulates(kind, lacks) and _is_long(kind):
        return _as_long(kind, expr.args[0].dtype, texts[0])
    parts = [
        _of_long(scalar, arg.dtype, text) if _is_long(arg.dtype) and INT64 in lacks else text
        for arg, text in zip(expr.args, texts, strict=True)
    ]
    if is_scalar(kind) and len(parts) == 1 and expr.args[0].dtype is kind:
        return parts[0]
    text = f"{kind.glsl_type}({', '.join(parts)})"
    alike = all(component_type(arg.dtype) is scalar for arg in expr.args)
    return text if alike or not emulates(kind, lacks) else back(text, kind)


def _as_long(kind: DType, given: DType, text: str) -> str:
    if _is_long(given):
        return text
    if is_float_dtype(given):
        return f"long_{_sign_prefix(kind)}of_float(float({text}))"
    if given in (int16, int32):
        return f"long_of_int(int({text}))"
    return f"uvec2(uint({text}), 0u)"


def _of_long(scalar: DType, given: DType, text: str) -> str:
    if scalar is bool_:
        return f"({text} != uvec2(0u))"
    if is_float_dtype(scalar):
        return f"float_of_{_sign_prefix(given)}long({text})"
    return f"({text}).x"
