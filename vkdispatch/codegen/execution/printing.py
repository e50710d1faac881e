"""Printing from kernels: it appears on `sys.stdout` before the call that ran the kernel returns."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, float32, int32, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import split_text, take_placeholders
from vkdispatch.codegen.trace.operators import split_components
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op, Print, RawText, ShaderFlags
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.passes import diagnostics

__all__ = ["print", "printf"]

_RAW_TYPES: dict[str, DType] = {**dict.fromkeys("di", int32), **dict.fromkeys("uoxX", uint32)}


@cache
def _repr_of_value() -> "re.Pattern[str]":
    """How the repr of a GPU value begins."""
    kinds = (kind for kind in vars(dtype).values() if isinstance(kind, type))
    names = [name for kind in kinds if isinstance(name := getattr(kind, "name", None), str)]
    return re.compile(f"<(?:{'|'.join(names)}) ")


def print(*args: Any, sep: str = " ", end: str = "\n", separator: str | None = None) -> None:
    """Print GPU values as Python's `print` would show them, once for every invocation that gets here.

    A float32 is shown with its own digits (0.1), a vector as a tuple, a complex number as Python's, a matrix
    as a tuple of `m[0]`, `m[1]`...; anything else as its text, known when the kernel is traced. F-strings
    work, with Python's format specifications: `vc.print(f"{i}: {x:.3f}")`; one for a vector counts for each
    component.

    The call, or the submit of the graph, that runs a printing kernel waits for it and then writes to
    `sys.stdout`: sorted by launch, then by invocation, then in the order of the program.

    Parameters
    ----------
    *args
        GPU values, or anything else that has a text.
    sep, end
        Between the texts, and behind the last one.
    separator
        Older name of `sep`.

    Raises
    ------
    TypeError
        `sep` or `end` is no text.
    ValueError
        A format specification does not suit its value.
    """
    between = sep if separator is None else separator
    for name, text in (("sep", between), ("end", end)):
        if not isinstance(text, str):
            raise located(ArgumentTypeError, f"print: {name} must be a str, got {text!r}")
    pieces: list[str] = []
    values: list[Expr] = []
    for arg in args:
        if isinstance(arg, ShaderVariable):
            pieces.append("{}")
            values.append(arg._value())
        else:
            pieces.append(_make_format(str(arg), values))
    _emit(_escape(between).join(pieces) + _make_format(end, values), diagnostics.BRACES, values)


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _make_format(text: str, values: list[Expr]) -> str:
    """Make a format of a text that may hold values by way of an f-string."""
    parts: list[str] = []
    for piece in take_placeholders(current().placeholders, text):
        if isinstance(piece, str):
            if _repr_of_value().search(piece):
                raise located(
                    ArgumentValueError,
                    "print: {x=} and {x!r} in an f-string give the repr of a GPU value, not its value; "
                    'write f"x={x}"',
                )
            parts.append(_escape(piece))
        else:
            parts.append(f"{{:{piece.spec}}}" if piece.spec else "{}")
            values.append(piece.value)
    return "".join(parts)


def printf(format: str, *args: Any) -> None:
    """Print values by a format, once for every invocation that gets here; see `print` for when and where.

    Parameters
    ----------
    format
        A format of Python's `%` operator. C's length modifiers and `%u` are understood, and `%v3f` for the
        components of a vector with commas between. A text without any `%` conversion is a format of
        `str.format`: `"{} {:.3f}"`. A newline is added unless it ends in one.
    *args
        GPU values, numbers, or texts. As many as the format has conversions; or the components of vectors,
        complex numbers and matrices are counted each by itself. `%s`, `%r`, `%c` and `{}` print a text. For
        conversions of numbers, such as `%d` and `%f`, a text is GLSL to be evaluated.

    Raises
    ------
    TypeError
        The format is no text, or an argument is none of these.
    ValueError
        Format and arguments do not go together.
    """
    if not isinstance(format, str):
        raise located(ArgumentTypeError, f"printf: the format must be a str, got {format!r}")
    for arg in args:
        if not isinstance(arg, (str, ShaderVariable)) and not ex.is_number(arg):
            raise located(ArgumentTypeError, f"printf: expected GPU values, numbers or text, got {arg!r}")
    if any(not isinstance(piece, str) for piece in split_text(current().placeholders, format)):
        if args:
            raise located(ArgumentValueError, "printf: an f-string with GPU values accepts no further values")
        held: list[Expr] = []
        _emit(_end_line(_make_format(format, held)), diagnostics.BRACES, held)
        return
    try:
        text, style, conversions = diagnostics.parse_format(format)
    except diagnostics.FormatError as error:
        raise located(ArgumentValueError, f"printf: {error}") from None
    try:
        if style == diagnostics.BRACES:
            for arg in args:
                _check_text(arg)
            diagnostics.check_fields(text, len(args))
            text, given = diagnostics.put_texts(text, style, args)
            values = [_parse_value(arg, float32) for arg in given]
        else:
            text, values = diagnostics.put_texts(text, style, _pair_values(text, args, conversions))
    except diagnostics.FormatError as error:
        raise located(ArgumentValueError, f"printf: {error}") from None
    _emit(_end_line(text), style, values, "printf")


def _end_line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _pair_values(text: str, args: Sequence[Any], conversions: Sequence[str]) -> list[Expr | str]:
    """One value or text for each conversion: the arguments, or their components where these come out even."""
    if len(args) == len(conversions):
        return [_pair(arg, letter) for arg, letter in zip(args, conversions, strict=True)]
    parts: list[Any] = []
    for arg in args:
        parts += split_components(arg._value()) if isinstance(arg, ShaderVariable) else [arg]
    if len(parts) != len(conversions):
        components = f" ({len(parts)} components)" if len(parts) != len(args) else ""
        raise located(
            ArgumentValueError,
            f"printf: {text!r} has {len(conversions)} conversions, got {len(args)} values{components}",
        )
    return [
        part if isinstance(part, Expr) else _pair(part, letter)
        for part, letter in zip(parts, conversions, strict=True)
    ]


def _pair(arg: Any, letter: str) -> Expr | str:
    if isinstance(arg, str) and letter in "src":
        _check_text(arg)
        return arg
    return _parse_value(arg, _RAW_TYPES.get(letter, float32))


def _check_text(arg: Any) -> None:
    """Refuse a text that an f-string made of a GPU value, among the values of a format."""
    held = split_text(current().placeholders, arg) if isinstance(arg, str) else ()
    if any(not isinstance(piece, str) for piece in held):
        raise located(
            ArgumentTypeError,
            "printf: a text among the values contains a GPU value by way of an f-string; pass the value "
            'itself, or make the f-string the format: vc.printf(f"...")',
        )


def _parse_value(arg: Any, raw_type: DType) -> Expr:
    if isinstance(arg, ShaderVariable):
        return arg._value()
    if isinstance(arg, str):
        # GLSL whose type only the compiler knows: the conversion tells what is wanted
        raw = Expr(Op.RAW, raw_type, (), RawText(arg), here())
        return Expr(Op.CONSTRUCT, raw_type, (raw,), None, here())
    return ex.literal(arg, ex.literal_dtype(arg))


def _emit(text: str, style: str, values: list[Expr], what: str = "print") -> None:
    try:
        diagnostics.check_format(text, style, [value.dtype for value in values])
    except diagnostics.FormatError as error:
        raise located(ArgumentValueError, f"{what}: {error}") from None
    recorder = current()
    if not recorder.flags & ShaderFlags.NO_PRINTF:
        recorder.emit(Print(text, tuple(values), here(), style))
