"""Formats of prints, and the Python values of what the device printed."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_count,
    component_type,
    float16,
    float32,
    float64,
    int64,
    is_complex,
    is_float_dtype,
    is_matrix,
    is_scalar,
    is_signed_dtype,
    uint64,
)
from vkdispatch.base.host_numpy import np
from vkdispatch.ir.numbers import digits, rounded

PERCENT, BRACES = "%", "{}"

# A conversion of C's printf, with Vulkan's %v3f for vectors; Python knows no length modifiers but h, l and L.
_CONVERSION = (
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d*)?(?:v(?P<copies>[234]))?"
    r"(?:hh|ll|[hlLqjzt])?(?P<type>[diouxXeEfFgGcrs%])"
)


class _Single(float):
    """A float16 or float32, shown with the fewest digits that identify it."""

    __slots__ = ("_text",)

    def __new__(cls, value: float, kind: DType) -> "_Single":
        """Round to the narrow type, and keep its digits."""
        made = super().__new__(cls, rounded(float(value), kind))
        made._text = digits(float(made), kind)
        return made

    _text: str

    def __repr__(self) -> str:
        return self._text

    def __format__(self, spec: str) -> str:
        return self._text if not spec else super().__format__(spec)


class _Complex(complex):
    """A complex number, shown with the digits of its parts' type."""

    _text: str

    @classmethod
    def of(cls, real: float, imag: float) -> "_Complex":
        """Make one of its parts."""
        made = cls(float(real), float(imag))
        shown = [text[:-2] if text.endswith(".0") else text for text in (str(real), str(imag))]
        sign = "" if shown[1].startswith("-") else "+"
        # as Python does: 2j, but (-0+2j)
        made._text = f"{shown[1]}j" if shown[0] == "0" else f"({shown[0]}{sign}{shown[1]}j)"
        return made

    def __repr__(self) -> str:
        return self._text

    def __format__(self, spec: str) -> str:
        return self._text if not spec else super().__format__(spec)


class _Parts(tuple[Any, ...]):
    """Components of a vector or columns of a matrix; a format applies to each of them."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self))})"

    def __format__(self, spec: str) -> str:
        return f"({', '.join(format(part, spec) for part in self)})"


def host_value(kind: DType, components: Any) -> Any:
    """Convert the scalar components (list or array) of a value of type `kind` to the value that is formatted.

    Scalars become bool, int or float, complex values complex, vectors tuples, matrices tuples of what the
    kernel calls `m[0]`, `m[1]`...
    """
    if is_matrix(kind):
        assert kind.child_type is not None
        size = component_count(kind.child_type)
        columns = (components[start : start + size] for start in range(0, len(components), size))
        return _Parts(host_value(kind.child_type, column) for column in columns)
    scalars = [_host_scalar(component_type(kind), each) for each in components]
    if is_complex(kind):
        return _Complex.of(*scalars)
    return scalars[0] if is_scalar(kind) else _Parts(scalars)


def _host_scalar(kind: DType, value: Any) -> bool | int | float:
    if kind is bool_:
        return bool(value)
    if kind is float16 or kind is float32:
        return _Single(value, kind)
    return float(value) if is_float_dtype(kind) else int(value)


# ---- words ---------------------------------------------------------------------------------------


def word_count(kind: DType) -> int:
    """32-bit words that a printed value of this type takes."""
    return component_count(kind) * (2 if component_type(kind).item_size == 8 else 1)


def value_of_words(kind: DType, words: "np.ndarray[Any, Any]") -> Any:
    """Convert the words that the device wrote for a value to the value that is formatted.

    A component takes a word, low and high word if it has 64 bits; what has 16 bits comes widened.
    """
    scalar = component_type(kind)
    if scalar is float64:
        return host_value(kind, words.view(np.float64))
    if scalar in (int64, uint64):
        return host_value(kind, words.view(np.int64 if scalar is int64 else np.uint64))
    if is_float_dtype(scalar):
        return host_value(kind, words.view(np.float32))
    return host_value(kind, words.view(np.int32) if is_signed_dtype(scalar) else words)


# ---- formats -------------------------------------------------------------------------------------


class FormatError(ValueError):
    """A format does not match its values."""


def parse_format(text: str) -> tuple[str, str, list[str]]:
    """Parse a format of printf: returns it as a Python format, its style, and its conversions.

    A text with % conversions has the style "%". Any other has the style "{}" of `str.format`, with no list of
    conversions. Raises FormatError for a % that starts no conversion.
    """
    found = list(re.finditer(_CONVERSION, text))
    if not found:
        if "%" in text and "{" not in text:
            raise FormatError(f"{text!r} has a % that starts no conversion; write %% for the sign")
        return text, BRACES, []
    rest = re.sub(_CONVERSION, "", text)
    if "%" in rest:
        raise FormatError(f"{text!r} has a % that starts no conversion; write %% for the sign")
    conversions = [each["type"] for each in found for _ in range(int(each["copies"] or 1))]
    return (
        re.sub(_CONVERSION, _python_conversion, text),
        PERCENT,
        [each for each in conversions if each != "%"],
    )


def _python_conversion(found: "re.Match[str]") -> str:
    letter = {"u": "d", "i": "d"}.get(found["type"], found["type"])
    if letter == "%":
        return "%%"
    one = f"%{found['flags']}{found['width']}{found['precision'] or ''}{letter}"
    return ", ".join([one] * int(found["copies"] or 1))


def put_texts(text: str, style: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Put the texts among the values of a format into it; returns the format and values that remain.

    Raises FormatError for a text that does not suit its conversion.
    """
    rest = [value for value in values if not isinstance(value, str)]
    if len(rest) == len(values):
        return text, rest
    try:
        put = _put_by_percent if style == PERCENT else _put_by_braces
        return put(text, values), rest
    except (TypeError, ValueError, LookupError) as error:
        raise FormatError(f"{text!r} does not format {tuple(values)!r}: {error}") from None


def _put_by_percent(text: str, values: Sequence[Any]) -> str:
    remaining = iter(values)

    def put(found: "re.Match[str]") -> str:
        if found["type"] == "%":
            return found[0]
        value = next(remaining)
        return (found[0] % value).replace("%", "%%") if isinstance(value, str) else found[0]

    return re.sub(_CONVERSION, put, text)


def check_fields(text: str, count: int) -> None:
    """Raise FormatError if a format of `str.format` leaves out some of its values, which Python allows."""
    fields = list(_fields(text))
    if "{" in "".join(spec for *_, spec, _ in fields):
        return  # a field in a field
    left = set(range(count)) - {position for _, position, *_ in fields}
    if left:
        raise FormatError(f"{text!r} has no conversion for value {min(left) + 1} of {count}")


def _fields(text: str) -> Iterator[tuple[str, int | None, str, str, str | None]]:
    """Split a format of `str.format`: plain text, and the field behind it.

    A field has the position of its value, what it takes of that, its specification and its conversion.
    """
    from string import Formatter  # compiles a regular expression when it is imported

    unnumbered = 0
    try:
        for literal, field, spec, conversion in Formatter().parse(text):
            number = re.match(r"\d*", field or "")[0]  # type: ignore[index]
            position = None if field is None else int(number) if number else unnumbered
            unnumbered += field is not None and not number
            yield literal, position, (field or "")[len(number) :], spec or "", conversion
    except ValueError as error:
        raise FormatError(f"{text!r} is no format: {error}") from None


def _put_by_braces(text: str, values: Sequence[Any]) -> str:
    parts: list[str] = []
    for literal, position, inner, spec, conversion in _fields(text):
        parts.append(_escaped(literal))
        if position is None:
            continue
        value = values[position]
        ending = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        if isinstance(value, str):
            parts.append(_escaped(f"{{0{inner}{ending}}}".format(value)))
        else:
            before = sum(isinstance(each, str) for each in values[:position])
            parts.append(f"{{{position - before}{inner}{ending}}}")
    return "".join(parts)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def check_format(text: str, style: str, kinds: Sequence[DType]) -> None:
    """Raise FormatError if a format cannot format values of these types."""
    try:
        _format(text, style, [host_value(kind, [1] * component_count(kind)) for kind in kinds])
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        types = ", ".join(kind.name for kind in kinds) or "nothing"
        raise FormatError(f"{text!r} does not format {types}: {error}") from None


def message_text(text: str, style: str, values: Sequence[Any]) -> str:
    """Format values as Python does; if that fails, show the format, the values and the error instead."""
    try:
        return _format(text, style, values)
    except (TypeError, ValueError, OverflowError, LookupError) as error:
        return f"{text!r} cannot show {tuple(values)!r}: {error}\n"


def _format(text: str, style: str, values: Sequence[Any]) -> str:
    return text % tuple(values) if style == PERCENT else text.format(*values)
