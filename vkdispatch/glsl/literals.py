"""Scalar literals as GLSL text."""

import math

from vkdispatch.base.dtype import (
    DType,
    bool_,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    uint16,
    uint32,
    uint64,
)
from vkdispatch.ir.numbers import digits, rounded

_SUFFIXES: dict[DType, str] = {
    uint16: "us",
    int16: "s",
    uint32: "u",
    int32: "",
    uint64: "ul",
    int64: "l",
    float16: "hf",
    float32: "f",
    float64: "lf",
}
_LOWEST: dict[DType, str] = {
    int16: "int16_t(0x8000us)",
    int32: "int(0x80000000u)",
    int64: "int64_t(0x8000000000000000ul)",
}
_LARGEST_FLOAT: dict[DType, float] = {float16: 65519.99, float32: 3.4028235677973366e38, float64: math.inf}
# Texts of up to this many characters cannot be shortened by writing float32 digits.
_SHORT = 7


def literal_text(value: int | float | bool, kind: DType) -> str:
    """Write a scalar literal of type `kind`."""
    if kind is bool_:
        return "true" if value else "false"
    if kind in _LARGEST_FLOAT:
        return _float_text(float(value), kind)
    if kind in _LOWEST and value == -(1 << (8 * kind.item_size - 1)):
        # the number without its sign does not fit the type
        return _LOWEST[kind]
    return f"{value}{_SUFFIXES[kind]}"


def _float_text(value: float, kind: DType) -> str:
    if not math.isfinite(value) or abs(value) > _LARGEST_FLOAT[kind]:
        bits = "0x7FC00000u" if math.isnan(value) else "0x7F800000u" if value > 0 else "0xFF800000u"
        text = f"uintBitsToFloat({bits})"
        return text if kind is float32 else f"{kind.glsl_type}({text})"
    text = repr(value)
    if kind is float32 and len(text) > _SHORT and rounded(value, float32) == value:
        # a value that came from float32 is written with float32's shorter digits
        text = min(text, digits(value, float32), key=len)
    if not any(letter in text for letter in ".e"):
        text += ".0"
    return text + _SUFFIXES[kind]
