"""The reference of functions on arrays, made from the code.

`.. array-functions:: creation` puts the sections of a group of `array_groups` on a page: functions of
`vkdispatch.numpy`. Names that mean the same function share one entry. `.. public-functions:: reduce.norms`
puts the functions there that `vkdispatch` has of a module, in the order of `vkdispatch/__init__.py`.
"""

import functools
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from array_groups import GROUPS
from docutils import nodes
from sections import parse_sections
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import vkdispatch as vd
import vkdispatch.numpy as vnp


@dataclass(frozen=True)
class Entry:
    """A public name, other names of the same value, and the module that a user takes it from."""

    module: str
    name: str
    others: tuple[str, ...]
    value: Any


def public_names(module: Any) -> list[str]:
    """Return the names that a module gives to its namespace."""
    listed = getattr(module, "__all__", None)
    return listed or [
        name
        for name, value in vars(module).items()
        if not name.startswith(("_", "parse_")) and getattr(value, "__module__", None) == module.__name__
    ]


def entries() -> Iterator[Entry]:
    """Yield everything public, each value once in a namespace."""
    seen: set[int] = set()
    spaces = [(vnp, names.split()) for home, names in vnp._NAMES.items() if home != "linalg"]
    for name in ("lib.stride_tricks" if each == "lib" else each for each in vnp._SUBMODULES):
        module = importlib.import_module(f"{vnp.__name__}.{name}")
        spaces.append((module, public_names(module)))
    for space, listed in spaces:
        where = space.__name__
        found: dict[int, list[str]] = {}
        for each in listed:
            found.setdefault(id(getattr(space, each)), []).append(each)
        for key, names in found.items():
            value = getattr(space, names[0])
            own = getattr(value, "__name__", "")
            first = own if own in names else names[0]
            if key not in seen or space is not vnp:
                yield Entry(where, first, tuple(sorted(each for each in names if each != first)), value)
            seen.add(key)


@functools.cache
def entries_by_name() -> dict[str, Entry]:
    """Return entries by their names under `vkdispatch.numpy`, as the groups have them."""
    return {f"{each.module}.{each.name}".removeprefix(f"{vnp.__name__}."): each for each in entries()}


def write_entry(entry: Entry) -> list[str]:
    """Return the lines of reStructuredText for an entry."""
    value = entry.value
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    lines = [f".. auto{kind}:: {entry.module}.{entry.name}"]
    lines += ["   :no-value:"] * (kind == "data")
    if kind == "class" and issubclass(value, (tuple, BaseException)):
        lines += ["   :no-members:"]
    same = [f"`{each}`" for each in entry.others]
    if entry.module == f"{vnp.__name__}.linalg" and vnp._PUBLIC.get(entry.name) == "linalg":
        same.append(f"`vnp.{entry.name}`")
    if same:
        lines += ["", f"   Also {', '.join(same)}."]
    return [*lines, ""]


class ArrayFunctions(SphinxDirective):
    """`.. array-functions:: GROUP`: the sections of a group."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections = (
            (title, [line for name in names.split() for line in write_entry(entries_by_name()[name])])
            for title, names in GROUPS[self.arguments[0]].items()
        )
        return parse_sections(self, sections, __file__)


class PublicFunctions(SphinxDirective):
    """`.. public-functions:: MODULE ...`: the functions that `vkdispatch` has of modules."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return their entries."""
        self.env.note_reread()
        names = [name for module in self.arguments[0].split() for name in vd._NAMES[module].split()]
        functions = [name for name in names if inspect.isroutine(getattr(vd, name))]
        return self.parse_text_to_nodes(
            "".join(f".. autofunction:: vkdispatch.{name}\n\n" for name in functions)
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("array-functions", ArrayFunctions)
    app.add_directive("public-functions", PublicFunctions)
    return {"parallel_read_safe": True}
