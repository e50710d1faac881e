"""Types and subgroup operations that a device lacks, in those that it has."""

import functools
import math
import re
from collections.abc import Callable, Iterable

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import replace
from vkdispatch.compiler.analyses.contents import Usage, contents, find_operations, usage
from vkdispatch.compiler.forms import FEATURE_OF, FLOAT16, INT16, INT64, emulates
from vkdispatch.compiler.glsl.spelling import read_functions
from vkdispatch.compiler.ir import Expr, Kernel, Op, ShaderFlags
from vkdispatch.compiler.ir.literals import bounds, is_long, rounded

# ---- Which GLSL extensions a kernel's types, subgroup functions and atomics need -------------------------
from vkdispatch.compiler.ir.program import INTEGER_POWER

# ---- Which GLSL extensions a kernel's types, subgroup functions and atomics need -------------------------


_EXTENSIONS_OF_TYPES: tuple[tuple[tuple[dt.DType, ...], str], ...] = (
    ((dt.float16,), "GL_EXT_shader_explicit_arithmetic_types_float16"),
    ((dt.int16, dt.uint16), "GL_EXT_shader_explicit_arithmetic_types_int16"),
    ((dt.int8, dt.uint8), "GL_EXT_shader_explicit_arithmetic_types_int8"),
    ((dt.int64, dt.uint64), "GL_ARB_gpu_shader_int64"),
    ((dt.float64,), "GL_ARB_gpu_shader_fp64"),
)
_STORED: tuple[tuple[tuple[dt.DType, ...], str], ...] = (
    ((dt.bfloat16,), "GL_EXT_shader_16bit_storage"),
    ((dt.bool_, dt.int8, dt.uint8), "GL_EXT_shader_8bit_storage"),
)
# Types that subgroup functions exchange only with an extension; each goes with the group's own.
EXTENDED_TYPES: tuple[tuple[tuple[dt.DType, ...], str], ...] = (
    ((dt.float16,), "GL_EXT_shader_subgroup_extended_types_float16"),
    ((dt.int16, dt.uint16), "GL_EXT_shader_subgroup_extended_types_int16"),
    ((dt.int64, dt.uint64), "GL_EXT_shader_subgroup_extended_types_int64"),
)
_PREFIXES: dict[str, tuple[str, ...]] = {
    "clustered": ("Clustered",),
    "quad": ("Quad",),
    "shuffle_relative": ("ShuffleUp", "ShuffleDown"),
    "shuffle": ("Shuffle",),
    "ballot": ("Broadcast", "Ballot", "InverseBallot", "Mask"),
    "vote": ("All", "Any"),
    "basic": ("Elect", "Builtin", "Barrier", "MemoryBarrier"),
}


# The compiler does not know the type: `vkdispatch.base.compilation.compiler` renames it afterwards.
BFLOAT16 = "#define bfloat16_t float16_t  // bfloat16 in the compiled code"


def subgroup_class(function: str) -> str:
    """Class of operations that a GLSL subgroup function belongs to, as the extensions are called."""
    name = function.removeprefix("subgroup")
    return next((group for group, prefixes in _PREFIXES.items() if name.startswith(prefixes)), "arithmetic")


def atomic_extension(function: str, kind: dt.DType) -> str | None:
    """Extension that an atomic needs, or None for those that GLSL always has."""
    if kind in (dt.int64, dt.uint64):
        return "GL_EXT_shader_atomic_int64"
    if not dt.is_float_dtype(kind):
        return None
    first = kind in (dt.float32, dt.float64) and function in ("atomicAdd", "atomicExchange")
    return "GL_EXT_shader_atomic_float" if first else "GL_EXT_shader_atomic_float2"


def has_bfloat16_matrices(used: Usage) -> bool:
    """Whether a kernel has cooperative matrices of bfloat16, which GLSL calls float16_t."""
    return any(dt.is_cooperative(kind) and dt.component_type(kind) is dt.bfloat16 for kind in used.dtypes)


def extensions(used: Usage, flags: ShaderFlags) -> list[str]:
    """Names of the extensions that a kernel needs, in the order in which they are written."""
    names = ["GL_EXT_scalar_block_layout"]
    if used.subgroup_functions and not flags & ShaderFlags.NO_SUBGROUP_OPS:
        groups = {subgroup_class(function) for function in used.subgroup_functions}
        names += [f"GL_KHR_shader_subgroup_{group}" for group in ("basic", *sorted(groups - {"basic"}))]
        names += [name for kinds, name in EXTENDED_TYPES if used.subgroup_dtypes.intersection(kinds)]
    scalars = {dt.component_type(kind) for kind in used.dtypes}
    if used.hints:
        names.append("GL_EXT_control_flow_attributes")
    if used.addresses:
        names.append("GL_EXT_buffer_reference")
        scalars.add(dt.uint64)
    if any(map(dt.is_array, used.dtypes)):
        names.append("GL_EXT_null_initializer")
    matrices = [kind for kind in used.dtypes if dt.is_cooperative(kind)]
    if matrices:
        names += ["GL_KHR_cooperative_matrix", "GL_KHR_memory_scope_semantics"]
    if has_bfloat16_matrices(used):
        scalars.add(dt.float16)
    if used.windows or any(kind.scope == "workgroup" for kind in matrices):  # type: ignore[attr-defined]
        names.append("GL_NV_cooperative_matrix2")
    names += [name for kinds, name in _EXTENSIONS_OF_TYPES if scalars.intersection(kinds)]
    names += [name for kinds, name in _STORED if used.stored.intersection(kinds)]
    atomic = {atomic_extension(function, kind) for function, kind, _ in used.atomics}
    if any(function.startswith(("atomicLoad", "atomicStore")) for function, _, _ in used.atomics):
        atomic.add("GL_KHR_memory_scope_semantics")
    return names + sorted(name for name in atomic if name)


# ---- GLSL functions that compute with the stand-ins for types that a device lacks -------------------------


_HELPERS = """
uint brain_bits(float value) {
    uint bits = floatBitsToUint(value);
    uint rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return isnan(value) ? (bits >> 16) | 0x40u : rounded;
}

// in integers: devices may round and flush conversions as they like
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

float half_round(float value) { return half_value(half_bits(value)); }
vec2 half_round(vec2 value) { return half_value(half_bits(value)); }
vec3 half_round(vec3 value) { return half_value(half_bits(value)); }
vec4 half_round(vec4 value) { return half_value(half_bits(value)); }

bool long_less(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }

bool long_signed_less(uvec2 a, uvec2 b) { return int(a.y) < int(b.y) || (a.y == b.y && a.x < b.x); }

uvec2 long_add(uvec2 a, uvec2 b) {
    uint low = a.x + b.x;
    return uvec2(low, a.y + b.y + uint(low < a.x));
}

uvec2 long_subtract(uvec2 a, uvec2 b) { return uvec2(a.x - b.x, a.y - b.y - uint(a.x < b.x)); }

uvec2 long_negate(uvec2 a) { return uvec2(0u - a.x, 0u - a.y - uint(a.x != 0u)); }

uvec2 long_multiply(uvec2 a, uvec2 b) {
    uint high, low;
    umulExtended(a.x, b.x, high, low);
    return uvec2(low, high + a.x * b.y + a.y * b.x);
}

uvec2 long_left(uvec2 a, uvec2 count) {
    uint n = count.x & 63u;
    if (n >= 32u)
        return uvec2(0u, a.x << (n - 32u));
    return n == 0u ? a : uvec2(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}

uvec2 long_right(uvec2 a, uvec2 count) {
    uint n = count.x & 63u;
    if (n >= 32u)
        return uvec2(a.y >> (n - 32u), 0u);
    return n == 0u ? a : uvec2((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}

uvec2 long_signed_right(uvec2 a, uvec2 count) {
    uint n = count.x & 63u;
    if (n >= 32u)
        return uvec2(uint(int(a.y) >> (n - 32u)), uint(int(a.y) >> 31));
    return n == 0u ? a : uvec2((a.x >> n) | (a.y << (32u - n)), uint(int(a.y) >> n));
}

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

uvec2 long_modulo(uvec2 a, uvec2 b) { return long_subtract(a, long_multiply(long_divide(a, b), b)); }

uvec2 long_signed_divide(uvec2 a, uvec2 b) {
    uvec2 quotient = long_divide(long_abs(a), long_abs(b));
    return int(a.y ^ b.y) < 0 ? long_negate(quotient) : quotient;
}

uvec2 long_signed_modulo(uvec2 a, uvec2 b) {
    return long_subtract(a, long_multiply(long_signed_divide(a, b), b));
}

uvec2 long_abs(uvec2 a) { return mix(a, long_negate(a), bvec2(int(a.y) < 0)); }

uvec2 long_signed_abs(uvec2 a) { return long_abs(a); }

uvec2 long_signed_sign(uvec2 a) {
    return int(a.y) < 0 ? uvec2(0xFFFFFFFFu) : uvec2(uint(a != uvec2(0u)), 0u);
}

uvec2 long_min(uvec2 a, uvec2 b) { return long_less(b, a) ? b : a; }

uvec2 long_max(uvec2 a, uvec2 b) { return long_less(a, b) ? b : a; }

uvec2 long_signed_min(uvec2 a, uvec2 b) { return long_signed_less(b, a) ? b : a; }

uvec2 long_signed_max(uvec2 a, uvec2 b) { return long_signed_less(a, b) ? b : a; }

uvec2 long_clamp(uvec2 a, uvec2 b, uvec2 c) { return long_min(long_max(a, b), c); }

uvec2 long_signed_clamp(uvec2 a, uvec2 b, uvec2 c) { return long_signed_min(long_signed_max(a, b), c); }

uvec2 long_integer_power(uvec2 base, uvec2 exponent) {
    uvec2 power = uvec2(1u, 0u);
    for (int i = exponent.y != 0u ? 32 + findMSB(exponent.y) : findMSB(exponent.x); i >= 0; --i) {
        power = long_multiply(power, power);
        if (((i >= 32 ? exponent.y >> (i - 32) : exponent.x >> i) & 1u) != 0u)
            power = long_multiply(power, base);
    }
    return power;
}

uvec2 long_signed_integer_power(uvec2 base, uvec2 exponent) {
    if (int(exponent.y) >= 0)
        return long_integer_power(base, exponent);
    bool minus = base == uvec2(0xFFFFFFFFu);
    if (base == uvec2(1u, 0u) || (minus && (exponent.x & 1u) == 0u))
        return uvec2(1u, 0u);
    return minus ? base : uvec2(0u);
}

uvec2 long_of_int(int a) { return uvec2(uint(a), uint(a >> 31)); }

uvec2 long_of_float(float a) {
    float high = floor(a * 2.3283064365386963e-10);
    return uvec2(uint(a - high * 4294967296.0), uint(high));
}

uvec2 long_signed_of_float(float a) {
    uvec2 size = long_of_float(floor(abs(a)));
    return a < 0.0 ? long_negate(size) : size;
}

// rounded in integers, as halves are; without branches, which SwiftShader compiles for minutes in loops
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

float float_of_signed_long(uvec2 a) {
    float size = float_of_long(long_abs(a));
    return mix(size, -size, int(a.y) < 0);
}
"""
# Sums of 16 bits each, of which as many as a subgroup has fit in a word.
_SUBGROUP_SUM = """
uvec2 long_subgroup@(uvec2 a) {
    uvec2 low = subgroup@(a & 0xFFFFu), high = subgroup@(a >> 16);
    uvec2 sum = long_add(uvec2(low.x, 0u), uvec2(high.x << 16, high.x >> 16));
    return long_add(sum, uvec2(0u, low.y + (high.y << 16)));
}
"""
_SUBGROUP_EXTREME = """
uvec2 long_{prefix}subgroup{name}(uvec2 a) {{
    uint high = uint(subgroup{name}({type}(a.y)));
    return uvec2(subgroup{name}(a.y == high ? a.x : {worst}), high);
}}
"""


@functools.cache
def _helpers() -> dict[str, str]:
    texts = [
        _HELPERS,
        *(_SUBGROUP_SUM.replace("@", name) for name in ("Add", "InclusiveAdd", "ExclusiveAdd")),
    ]
    for name, worst in (("Min", "0xFFFFFFFFu"), ("Max", "0u")):
        texts.append(_SUBGROUP_EXTREME.format(prefix="", type="uint", name=name, worst=worst))
        texts.append(_SUBGROUP_EXTREME.format(prefix="signed_", type="int", name=name, worst=worst))
    return read_functions("".join(texts))


def helper_lines(lines: Iterable[str]) -> list[str]:
    """Return the definitions of the functions of this module that lines of GLSL call."""
    helpers = _helpers()
    used: set[str] = set()
    pending = ["\n".join(lines)]
    while pending:
        text = pending.pop()
        for name, definition in helpers.items():
            if name not in used and f"{name}(" in text:
                used.add(name)
                pending.append(definition)
    ordered: dict[str, str] = {}
    for name in sorted(used):
        _place(name, sorted(used), ordered)
    return [line for definition in ordered.values() for line in (*definition.splitlines(), "")]


def _place(name: str, used: list[str], ordered: dict[str, str]) -> None:
    """Put a function behind those that it calls."""
    if name in ordered:
        return
    definition = _helpers()[name]
    for other in used:
        if other != name and re.search(rf"\b{other}\(", definition):
            _place(other, used, ordered)
    ordered[name] = definition


# ---- Emulation of types that a device lacks by types that it has -----------------------------------------
#
# A 64-bit integer is a uvec2 of two words. A 16-bit integer is an int or a uint with its value, and a
# float16 is a float; each result is converted back to the range and precision of the type. Results are the
# same as with native types: rounding a sum, product, quotient or root of halves to float and then to half
# rounds correctly.


_TYPES = {
    INT64: (("u?int64_t", "uvec2"),),
    INT16: (("uint16_t", "uint"), ("int16_t", "int"), (r"u16vec(\d)", r"uvec\1"), (r"i16vec(\d)", r"ivec\1")),
    FLOAT16: (("float16_t", "float"), (r"f16vec(\d)", r"vec\1")),
}
# Operators whose result for 16-bit operands has 16 bits.
_CLOSED = frozenset(("&", "|", "^", ">>", "%"))
_LONG_OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "<<": "left"}
_SIGNED_OPERATORS = {"/": "divide", "%": "modulo", ">>": "right"}
_LONG_CALLS = frozenset(("min", "max", "abs", "sign", "clamp", INTEGER_POWER))
_SAME_WORDS = frozenset(("packUint2x32", "unpackUint2x32", "packInt2x32", "unpackInt2x32"))
# Subgroup operations that cannot be done word by word, and those that are emulated here;
# `compiler.glsl.emulation` does the others.
_WHOLE = ("Add", "Mul", "Min", "Max")
_LONG_SUMS = frozenset(("subgroupAdd", "subgroupInclusiveAdd", "subgroupExclusiveAdd"))
_LONG_EXTREMES = frozenset(("subgroupMin", "subgroupMax"))
_BITS_OF_HALVES = {"float16BitsToUint16": "half_bits", "uint16BitsToFloat16": "half_value"}


def can_emulate(kernel: Kernel, lacks: frozenset[str]) -> bool:
    """Whether all operations of a kernel on types that the device lacks can be emulated."""
    if not any(emulates(kind, lacks) for kind in usage(kernel).dtypes):
        return True  # as most kernels
    for expr in contents(kernel).expressions:
        kinds = [expr.dtype, *(arg.dtype for arg in expr.args)]
        if not any(emulates(kind, lacks) for kind in kinds):
            continue
        if expr.op is Op.RAW or any(map(dt.is_cooperative, kinds)) or expr.op is Op.ATOMIC:
            return False
        if INT64 in lacks and any(map(is_long, kinds)) and not _has_long_form(expr, kinds):
            return False
    return not any(dt.is_cooperative(kind) and emulates(kind, lacks) for kind in usage(kernel).dtypes)


def _has_long_form(expr: Expr, kinds: list[dt.DType]) -> bool:
    if expr.op is Op.CALL:
        return expr.value in _LONG_CALLS or expr.value in _SAME_WORDS or expr.value == "wrapped"
    return dt.float64 not in kinds or expr.op is not Op.CONSTRUCT


def is_emulated_long(kind: dt.DType, lacks: frozenset[str]) -> bool:
    """Whether a form of a kernel emulates values of a type by two words."""
    return is_long(kind) and INT64 in lacks


def has_long_operation(function: str) -> bool:
    """Whether a subgroup operation on emulated 64-bit integers consists of a few native operations."""
    quick = function in _LONG_SUMS or function in _LONG_EXTREMES
    return quick or not any(word in function for word in _WHOLE)


def plain_types(line: str, lacks: frozenset[str]) -> str:
    """Replace the types in a line of GLSL by the types that emulate them."""
    for feature, types in _TYPES.items():
        if feature in lacks:
            for pattern, plain in types:
                line = re.sub(rf"\b{pattern}\b", plain, line)
    return line


def stand_in(kind: dt.DType, lacks: frozenset[str]) -> dt.DType:
    """Return the scalar type that holds values of a scalar type in a form of a kernel."""
    if FEATURE_OF.get(kind) not in lacks or is_long(kind):
        return kind
    return dt.int32 if kind is dt.int16 else dt.uint32 if kind is dt.uint16 else dt.float32


def emulated_literal(value: float, kind: dt.DType, write: Callable[[float, dt.DType], str]) -> str:
    """Write a literal of an emulated type. `write` writes literals of native types."""
    if is_long(kind):
        return f"uvec2({int(value) & 0xFFFFFFFF}u, {int(value) >> 32 & 0xFFFFFFFF}u)"
    if kind is dt.float16:
        return write(rounded(float(value), dt.float16), dt.float32)
    return write(value, dt.int32 if kind is dt.int16 else dt.uint32)


def back(text: str, kind: dt.DType) -> str:
    """Convert a result back to the range and precision of its type."""
    scalar = dt.component_type(kind)
    if scalar is dt.float16:
        return f"half_round({text})"
    return f"bitfieldExtract({text}, 0, 16)" if scalar in (dt.int16, dt.uint16) else text


def write_operation(symbol: str, kind: dt.DType, left: str, right: str) -> str:
    """Write an operation with a result of type `kind`; the operands have parentheses if they need them."""
    if not is_long(kind):
        text = f"{left} {symbol} {right}"
        return f"({text})" if symbol in _CLOSED and not dt.is_float_dtype(kind) else back(text, kind)
    if symbol in _LONG_OPERATORS:
        return f"long_{_LONG_OPERATORS[symbol]}({left}, {right})"
    if symbol in _SIGNED_OPERATORS:
        return f"long_{_sign_prefix(kind)}{_SIGNED_OPERATORS[symbol]}({left}, {right})"
    return f"({left} {symbol} {right})"


def _sign_prefix(kind: dt.DType) -> str:
    return "signed_" if kind is dt.int64 else ""


def write_comparison(symbol: str, kind: dt.DType, left: str, right: str) -> str:
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
    functions = _LONG_CALLS if expr.op is Op.CALL else _LONG_EXTREMES
    if is_long(kind) and name in functions:
        name = f"long_{_sign_prefix(kind)}{name}"
    elif expr.op is Op.SUBGROUP and is_long(kind) and name in _LONG_SUMS:
        name = f"long_{name}"
    text = f"{name}({', '.join(texts)})"
    return back(text, kind) if emulates(kind, lacks) else text


def write_construction(expr: Expr, texts: list[str], lacks: frozenset[str]) -> str:
    """Write the construction of a value of the texts of its components, or of what is converted."""
    kind, scalar = expr.dtype, dt.component_type(expr.dtype)
    if dt.is_array(kind):
        return f"{kind.glsl_type}({', '.join(texts)})" if texts else "{}"
    if emulates(kind, lacks) and is_long(kind):
        return _as_long(kind, expr.args[0].dtype, texts[0])
    parts = [
        _of_long(scalar, arg.dtype, text) if is_long(arg.dtype) and INT64 in lacks else text
        for arg, text in zip(expr.args, texts, strict=True)
    ]
    if dt.is_scalar(kind) and len(parts) == 1 and expr.args[0].dtype is kind:
        return parts[0]
    text = f"{kind.glsl_type}({', '.join(parts)})"
    alike = all(dt.component_type(arg.dtype) is scalar for arg in expr.args)
    return text if alike or not emulates(kind, lacks) else back(text, kind)


def _as_long(kind: dt.DType, given: dt.DType, text: str) -> str:
    if is_long(given):
        return text
    if dt.is_float_dtype(given):
        return f"long_{_sign_prefix(kind)}of_float(float({text}))"
    if given in (dt.int16, dt.int32):
        return f"long_of_int(int({text}))"
    return f"uvec2(uint({text}), 0u)"


def _of_long(scalar: dt.DType, given: dt.DType, text: str) -> str:
    if scalar is dt.bool_:
        return f"(({text}) != uvec2(0u))"
    if dt.is_float_dtype(scalar):
        return f"float_of_{_sign_prefix(given)}long({text})"
    return f"({text}).x"


# ---- Emulation of subgroup operations that a device lacks, by ballots and shuffles -----------------------
#
# A reduction loops over the invocations of the subgroup. All invocations run the same number of rounds, and
# skip the values of inactive invocations.


# Classes of operations that can be written with those of the classes "ballot" and "shuffle".
REPLACED = frozenset(("arithmetic", "clustered", "quad", "shuffle_relative", "vote"))
_MADE_OF = frozenset(("subgroupBallot", "subgroupShuffle"))
_SHUFFLES = {
    "subgroupQuadBroadcast": "(gl_SubgroupInvocationID & ~3u) + {}",
    "subgroupQuadSwapHorizontal": "gl_SubgroupInvocationID ^ 1u",
    "subgroupQuadSwapVertical": "gl_SubgroupInvocationID ^ 2u",
    "subgroupQuadSwapDiagonal": "gl_SubgroupInvocationID ^ 3u",
    "subgroupShuffleUp": "gl_SubgroupInvocationID - {}",
    "subgroupShuffleDown": "gl_SubgroupInvocationID + {}",
}
_VOTES = {
    "subgroupAll": "(subgroupBallot(!({0})) == uvec4(0u))",
    "subgroupAny": "(subgroupBallot({0}) != uvec4(0u))",
    "subgroupAllEqual": "(subgroupBallot({0} != subgroupBroadcastFirst({0})) == uvec4(0u))",
}
_RULES = {
    "Add": "result + other",
    "Mul": "result * other",
    "Min": "min(result, other)",
    "Max": "max(result, other)",
    "And": "result & other",
    "Or": "result | other",
    "Xor": "result ^ other",
}
_TRUTH_RULES = {"And": "result && other", "Or": "result || other", "Xor": "result != other"}
_LONG_RULES = {
    "Add": "long_add(result, other)",
    "Mul": "long_multiply(result, other)",
    "Min": "long_{}min(result, other)",
    "Max": "long_{}max(result, other)",
}


def goes_by_lanes(expr: Expr, lacks: frozenset[str]) -> bool:
    """Whether a subgroup operation is emulated in a form of a kernel that does without features."""
    function = str(expr.value)
    return subgroup_class(function) in lacks or (
        is_emulated_long(expr.dtype, lacks) and not has_long_operation(function)
    )


def usage_by_lanes(used: Usage, kernel: Kernel, lacks: frozenset[str]) -> Usage:
    """Return what a form of a kernel uses, with the subgroup operations that it calls instead of others."""
    operations = find_operations(kernel, Op.SUBGROUP)
    replaced = [expr for expr in operations if goes_by_lanes(expr, lacks)]
    if not replaced:
        return used
    others = {str(expr.value) for expr in operations if not goes_by_lanes(expr, lacks)}
    gone = {str(expr.value) for expr in replaced} - others
    return replace(used, subgroup_functions=(used.subgroup_functions - gone) | _MADE_OF)


def write_by_lanes(expr: Expr, texts: list[str], lacks: frozenset[str]) -> str:
    """Write a subgroup operation, with the texts of its arguments."""
    function = str(expr.value)
    if function in _VOTES:
        return _VOTES[function].format(f"({texts[0]})")
    if function in _SHUFFLES:
        return (
            f"subgroupShuffle({texts[0]}, {_SHUFFLES[function].format(*(f'({text})' for text in texts[1:]))})"
        )
    text = f"{_name_of_lanes(expr)}({', '.join(texts)})"
    return back(text, expr.dtype) if emulates(expr.dtype, lacks) else text


def lane_functions(
    kernel: Kernel, lacks: frozenset[str], literal: Callable[[float, dt.DType], str]
) -> list[str]:
    """Return the definitions of the functions that a kernel's subgroup operations call.

    `literal` writes literals of native types.
    """
    found = {
        _name_of_lanes(expr): expr
        for expr in find_operations(kernel, Op.SUBGROUP)
        if goes_by_lanes(expr, lacks) and str(expr.value) not in _SHUFFLES | _VOTES
    }
    lines: list[str] = []
    for name in sorted(found):
        kind = found[name].dtype
        over, operation = _parts(found[name])
        scalar = dt.component_type(kind)
        neutral = _neutral(operation, scalar)
        emulated = emulates(kind, lacks)
        text = emulated_literal(neutral, scalar, literal) if emulated else literal(neutral, scalar)
        lines += _function(
            name, kind.glsl_type, over, f"{kind.glsl_type}({text})", _rule(operation, kind, lacks)
        )
    return lines


def _name_of_lanes(expr: Expr) -> str:
    return f"lanes_{str(expr.value).removeprefix('subgroup')}_{expr.dtype.name}"


def _parts(expr: Expr) -> tuple[str, str]:
    """Return what a reduction is over, such as "Inclusive", and its operation."""
    match = re.fullmatch(r"subgroup(|Inclusive|Exclusive|Clustered)([A-Z][a-z]+)", str(expr.value))
    assert match is not None
    return match[1], match[2]


def _neutral(operation: str, kind: dt.DType) -> float:
    """Return the neutral element of an operation."""
    if operation not in ("Min", "Max"):
        return {"Mul": 1, "And": 1 if kind is dt.bool_ else -1}.get(operation, 0)
    if dt.is_float_dtype(kind):
        return math.inf if operation == "Min" else -math.inf
    low, high = bounds(kind)
    return high if operation == "Min" else low


def _rule(operation: str, kind: dt.DType, lacks: frozenset[str]) -> str:
    """Return GLSL that combines a result with another value."""
    if kind is dt.bool_:
        return _TRUTH_RULES[operation]
    if is_emulated_long(kind, lacks) and operation in _LONG_RULES:
        return _LONG_RULES[operation].format(_sign_prefix(kind))
    return _RULES[operation]


def _function(name: str, kind: str, over: str, neutral: str, rule: str) -> list[str]:
    count, lane, condition = "gl_SubgroupSize", "k", ""
    if over == "Clustered":
        count, lane = "size", "(gl_SubgroupInvocationID & ~(size - 1u)) + k"
    elif over:
        condition = f" && k {'<' if over == 'Exclusive' else '<='} gl_SubgroupInvocationID"
    return [
        f"{kind} {name}({kind} value{', uint size' if over == 'Clustered' else ''}) {{",
        "    uvec4 here = subgroupBallot(true);",
        f"    {kind} result = {neutral};",
        "    bool begun = false;",
        f"    for (uint k = 0u; k < {count}; ++k) {{",
        f"        {kind} other = subgroupShuffle(value, {lane});",
        f"        if (subgroupBallotBitExtract(here, {lane}){condition}) {{",
        f"            result = begun ? {rule} : other;",
        "            begun = true;",
        "        }",
        "    }",
        "    return result;",
        "}",
        "",
    ]
