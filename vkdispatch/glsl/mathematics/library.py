"""The mathematical functions, and their definitions with all functions that they call."""

import functools
import re

from vkdispatch.glsl.mathematics import (
    arcs,
    exponentials,
    logarithms,
    pairs,
    roots,
    special,
    trigonometry,
)
from vkdispatch.glsl.mathematics.precision import DOUBLE, SINGLE, Precision, Text

_MODULES = (pairs, exponentials, logarithms, trigonometry, arcs, roots, special)
_CONSTANTS: dict[str, Text] = {name: text for module in _MODULES for name, text in module.CONSTANTS.items()}
_FUNCTIONS: dict[str, Text] = {name: text for module in _MODULES for name, text in module.FUNCTIONS.items()}
_NAME = re.compile(r"@(\w+)")


@functools.cache
def definitions(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines that define these functions, such as f64_sin, each after what it calls."""
    found: dict[str, str] = {}
    for name in names:
        precision = DOUBLE if name.startswith(DOUBLE.prefix) else SINGLE
        _define(name.removeprefix(precision.prefix), precision, found)
    return tuple(line for text in found.values() for line in (*text.splitlines(), ""))


def _define(name: str, precision: Precision, found: dict[str, str]) -> None:
    """Add a function behind those that it calls."""
    if precision.prefix + name in found:
        return
    text = _expand(_FUNCTIONS[name], precision).strip()

    def replace_name(match: re.Match[str]) -> str:
        word = match[1]
        if word in ("real", "pair"):
            return precision.real if word == "real" else precision.pair
        if word in _CONSTANTS:
            return _expand(_CONSTANTS[word], precision)
        if word != name:
            _define(word, precision, found)
        return precision.prefix + word

    # this defines the functions that it calls
    text = _NAME.sub(replace_name, text)
    found[precision.prefix + name] = text


def _expand(text: Text, precision: Precision) -> str:
    return text if isinstance(text, str) else text(precision)
