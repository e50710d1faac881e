"""Emulation of types that a device lacks by types that it has.

A 64-bit integer is a uvec2 of two words. A 16-bit integer is an int or a uint with its value, and a float16
is a float; each result is converted back to the range and precision of the type. Results are the same as with
native types: rounding a sum, product, quotient or root of halves to float and then to half rounds correctly.
"""

import re
from collections.abc import Callable

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
from vkdispatch.ir.own_functions import INTEGER_POWER
from vkdispatch.ir.variant import FEATURE_OF, FLOAT16, INT16, INT64, emulates

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
# Subgroup operations that cannot be done word by word, and those that are emulated here; `glsl.lanes` does
# the others.
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
    """Whether a form of a kernel emulates values of a type by two words."""
    return _is_long(kind) and INT64 in lacks


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


def stand_in(kind: DType, lacks: frozenset[str]) -> DType:
    """Return the scalar type that holds values of a scalar type in a form of a kernel."""
    if FEATURE_OF.get(kind) not in lacks or _is_long(kind):
        return kind
    return int32 if kind is int16 else uint32 if kind is uint16 else float32


def literal(value: float, kind: DType, write: Callable[[float, DType], str]) -> str:
    """Write a literal of an emulated type. `write` writes literals of native types."""
    if _is_long(kind):
        return f"uvec2({int(value) & 0xFFFFFFFF}u, {int(value) >> 32 & 0xFFFFFFFF}u)"
    if kind is float16:
        return write(rounded(float(value), float16), float32)
    return write(value, int32 if kind is int16 else uint32)


def back(text: str, kind: DType) -> str:
    """Convert a result back to the range and precision of its type."""
    scalar = component_type(kind)
    if scalar is float16:
        return f"half_round({text})"
    return f"bitfieldExtract({text}, 0, 16)" if scalar in (int16, uint16) else text


def write_operation(symbol: str, kind: DType, left: str, right: str) -> str:
    """Write an operation with a result of type `kind`; the operands have parentheses if they need them."""
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
        return f"{kind.glsl_type}({', '.join(texts)})" if texts else "{}"
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
        return f"(({text}) != uvec2(0u))"
    if is_float_dtype(scalar):
        return f"float_of_{_sign_prefix(given)}long({text})"
    return f"({text}).x"
