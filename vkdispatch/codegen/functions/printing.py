"""Printing from kernels, shown by the validation layer in debug mode."""

from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float16,
    float32,
    int16,
    int32,
    is_matrix,
    is_scalar,
    uint16,
    uint32,
)
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.codegen import expressions as ex
from vkdispatch.codegen.ir import Expr, Op, Print, RawText
from vkdispatch.codegen.location import here, located
from vkdispatch.codegen.recording import current
from vkdispatch.codegen.variables import ShaderVariable, scalar_parts

_WIDENED: dict[DType, DType] = {bool_: int32, int16: int32, uint16: uint32, float16: float32}


def printf(fmt: str, *args: Any) -> None:
    """Print scalars by a C format.

    Text arguments are GLSL, taken as they are. Raises TypeError for other things.
    """
    if not isinstance(fmt, str):
        raise located(ArgumentTypeError, f"printf: the format must be a str, got {fmt!r}")
    values: list[Expr] = []
    for arg in args:
        if isinstance(arg, str):
            values.append(_raw_text(arg))
        elif isinstance(arg, ShaderVariable):
            values.extend(_printable(arg._value()))
        elif ex.is_number(arg):
            values.append(ex.literal(arg, ex.literal_dtype(arg)))
        else:
            raise located(ArgumentTypeError, f"printf: expected GPU values, numbers or text, got {arg!r}")
    current().emit(Print(fmt, tuple(values), here()))


def _raw_text(text: str) -> Expr:
    # its type is unknown, and does not matter here
    return Expr(Op.RAW, float32, (), RawText(text), here())


def _printable(value: Expr) -> list[Expr]:
    return [ex.cast(part, _WIDENED.get(part.dtype, part.dtype)) for part in scalar_parts(value)]


def print(*args: Any, separator: str = " ") -> None:
    """Print GPU values in the format of their type, and anything else as its text."""
    pieces: list[str] = []
    values: list[Expr] = []
    for arg in args:
        if isinstance(arg, ShaderVariable):
            value = arg._value()
            pieces.append(_format(value))
            values.extend(_printable(value))
        else:
            pieces.append(str(arg).replace("%", "%%"))
    current().emit(Print(separator.join(pieces), tuple(values), here()))


def _format(value: Expr) -> str:
    kind = value.dtype
    each = component_type(kind).format_str
    if is_scalar(kind):
        return each
    if not is_matrix(kind):
        return "(" + ", ".join([each] * kind.child_count) + ")"
    row = "[" + ", ".join([each] * kind.child_count) + "]"
    return "\n".join([row] * kind.child_count)
