"""Sphinx extension: signatures with types, under the names that users write.

Annotations name classes where they are defined, such as `vkdispatch.base.buffer.Buffer`. Here they get the
names that are public, so that they are short and link to their entries. `Any` says nothing: functions on
arrays take what is like an array, and their parameters have NumPy's names, so that the name tells the type.
"""

import enum
import importlib
import re
from typing import Any

import numpy as np
from parameter_types import types_of
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.typing import stringify_annotation

_MODULES = ("vkdispatch.numpy", "vkdispatch", "vkdispatch.codegen", "vkdispatch.fft", "vkdispatch.reduce")
_QUALIFIED = re.compile(r"~((?:\w+\.)+\w+)")
_BARE = re.compile(r"(?<=[ \[(])[A-Z]\w+(?=[,)\] ])")
_MADE = re.compile(r"<factory>|<class '[\w.]+\._Default'>")
_ANY = r"~typing\.Any"
# unions that have a name in the code, and would hide the rest of a signature
_UNIONS = {
    "type[~vkdispatch.base.dtype.dtype] | type | ~numpy.dtype | str": "DTypeLike",
    "~vkdispatch.codegen.variables.ShaderVariable | ~vkdispatch.base.dtype.dtype | float": "Value",
    "~vkdispatch.codegen.variables.ShaderVariable | ~vkdispatch.base.dtype.dtype | bool | bool": "Value",
    "~vkdispatch.codegen.variables.ShaderVariable | ~vkdispatch.base.dtype.dtype | bool": "Value",
}
_BARE_PARAMETER = re.compile(r"(?:(?<=\()|(?<=, ))(\w+)(=|(?=[,)]))")
_PARAMETER = re.compile(rf"(\*{{0,2}}\w+): {_ANY}( = None(?=[,)]))?")


def name_types(text: str, function: str) -> str:
    """Return the signature of a function with types in place of Any, where names of parameters tell them."""
    types = types_of(function)
    ufunc = vars(np).get(function.rpartition(".")[2])
    if isinstance(ufunc, np.ufunc) and function.startswith("vkdispatch.numpy."):
        count = ufunc.nin
        operands = ["x"] if count == 1 else [f"x{number + 1}" for number in range(count)]
        named = ", ".join(f"{operand}: ArrayLike" for operand in operands)
        text = text.replace("*operands: ~typing.Any, ", f"{named}, /, ").replace("/, *, ", "/, ")

    def name_type(match: re.Match[str]) -> str:
        kind = types.get(match[1])
        if not kind:
            return match[0]
        return f"{match[1]}: {kind}" + (f" | None{match[2]}" if match[2] else "")

    return _PARAMETER.sub(name_type, text)


def name_fields(text: str, record: type) -> str:
    """Return the signature of a record with the types of its fields."""
    fields: dict[str, Any] = {}
    for base in reversed(record.__mro__):
        fields |= vars(base).get("__annotations__", {})

    def name_type(match: re.Match[str]) -> str:
        if match[1] not in fields:
            return match[0]
        kind = fields[match[1]]
        shown = kind if isinstance(kind, str) else stringify_annotation(kind, "smart")
        return f"{match[1]}: {shown}" + (" = " if match[2] else "")

    return _BARE_PARAMETER.sub(name_type, text)


def shorten(text: str, names: dict[str, str]) -> str:
    """Return a signature, or what it returns, as the reference shows it."""
    text = re.sub(rf"(?<=\w)\[{_ANY}(?:, (?:{_ANY}|\.\.\.))*\]", "", text)
    # the parser of signatures does not know how Python writes what a record makes
    text = _MADE.sub("...", text)
    text = re.sub(r"~[\w.]+\._Block\b", "~contextlib.AbstractContextManager", text)
    for union, name in _UNIONS.items():
        text = text.replace(union, name)
    text = text.replace("~typing.SupportsIndex", "int")
    text = re.sub(rf": {_ANY} = ", "=", text)
    text = re.sub(rf": {_ANY}(?=[,)])", "", text)
    text = _QUALIFIED.sub(lambda match: "~" + names.get(match[1], match[1]), text)
    # annotations of modules that are imported for type checkers alone
    return _BARE.sub(lambda match: f"~{names[match[0]]}" if match[0] in names else match[0], text)


def public_names() -> dict[str, str]:
    """Return the public name of each class by the name of its definition, and by its own."""
    found: dict[str, str] = {}
    for module_name in _MODULES:
        module = importlib.import_module(module_name)
        for name in [*getattr(module, "__all__", ()), "Array"]:
            value = getattr(module, name, None)
            if isinstance(value, type) and value.__module__.startswith("vkdispatch"):
                found.setdefault(f"{value.__module__}.{value.__qualname__}", f"{module_name}.{name}")
                found.setdefault(name, f"{module_name}.{name}")
    return found


def _drop_overloads() -> None:
    """Show one signature a function: overloads tell type checkers of shapes and dtypes."""
    analyze = ModuleAnalyzer.analyze

    def analyze_without(self: ModuleAnalyzer) -> None:
        analyze(self)
        self.overloads = {}

    ModuleAnalyzer.analyze = analyze_without  # type: ignore[method-assign]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what shortens signatures."""
    names = public_names()

    def process(
        app: Sphinx,
        what: str,
        name: str,
        thing: Any,
        options: Any,
        signature: str | None,
        returns: str | None,
    ) -> tuple[str | None, str | None]:
        if isinstance(thing, type) and issubclass(thing, enum.Enum):
            return "", None  # nobody calls it
        if signature:
            signature = name_types(signature, name)
        if signature and what == "class":
            signature = name_fields(signature, thing)
        return (
            signature and shorten(signature, names),
            None if returns in (None, "~typing.Any") else shorten(returns, names),
        )

    app.connect("autodoc-process-signature", process)
    _drop_overloads()
    return {"parallel_read_safe": True}
