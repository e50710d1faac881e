"""Sphinx extension: signatures with types, under the names that users write.

Annotations name classes where they are defined, such as `vkdispatch.base.buffer.Buffer`. Here they get the
names that are public, so that they are short and link to their entries. `Any` says nothing and is left out.
"""

import importlib
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

_MODULES = ("vkdispatch", "vkdispatch.codegen", "vkdispatch.fft", "vkdispatch.reduce", "vkdispatch.numpy")
_QUALIFIED = re.compile(r"~((?:\w+\.)+\w+)")
_BARE = re.compile(r"(?<=[ \[(])[A-Z]\w+(?=[,)\] ])")
_ANY = r"~typing\.Any"
# unions that have a name in the code, and would hide the rest of a signature
_UNIONS = {
    "type[~vkdispatch.base.dtype.dtype] | type | ~numpy.dtype | str": "DTypeLike",
    "~vkdispatch.codegen.variables.ShaderVariable | ~vkdispatch.base.dtype.dtype | float": "Value",
}


def shorten(text: str, names: dict[str, str]) -> str:
    """Return a signature, or what it returns, as the reference shows it."""
    text = re.sub(rf"(?<=\w)\[{_ANY}(?:, (?:{_ANY}|\.\.\.))*\]", "", text)
    # the parser of signatures does not know Python's word for what a dataclass makes
    text = text.replace("<factory>", "...")
    for union, name in _UNIONS.items():
        text = text.replace(union, name)
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
        return (
            signature and shorten(signature, names),
            None if returns in (None, "~typing.Any") else shorten(returns, names),
        )

    app.connect("autodoc-process-signature", process)
    _drop_overloads()
    return {"parallel_read_safe": True}
