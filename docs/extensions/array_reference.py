"""The reference of `vkdispatch.numpy`, made from the code: every public function, by topic.

`.. array-functions::` puts them on a page. Names that mean the same function share one entry.
"""

import importlib.util
import inspect
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import vkdispatch.numpy as vnp

# Titles of modules; others are titled by their names.
TITLES = {
    "elementwise": "Element-wise functions",
    "creation": "Creating arrays",
    "manipulation": "Changing shapes, joining, splitting",
    "indexing": "Indexing",
    "index_arrays": "Arrays of indices",
    "reductions": "Reductions and running sums",
    "searching": "Sorting and searching",
    "gathering": "Picking elements",
    "differences": "Differences and repetition",
    "nan_statistics": "Statistics that ignore NaN",
    "counting": "Counting and histograms",
    "calculus": "Interpolation, derivatives, convolution",
    "orders": "Partitions and orders of several keys",
    "choices": "Choosing among arrays",
    "selections": "Parts, blocks, bits",
    "grids": "Grids and sequences in brackets",
    "editing": "Inserting and removing elements",
    "writing": "Writing elements",
    "attributes": "Shapes and attributes",
    "contraction": "Einstein summation",
    "refusals": "What arrays do not have",
    "inspection": "Data types and inspection",
    "exchange": "Exchange with other libraries",
    "files": "Files",
    "printing": "Text",
    "devices": "Devices",
    "arguments": "Arguments of kernels",
    "lazy": "Lazy evaluation",
    "vectorizing": "Functions of your own",
    "linalg": "Linear algebra: vnp.linalg",
    "fft": "Fourier transforms: vnp.fft",
    "random": "Random numbers: vnp.random",
    "special": "Special functions: vnp.special",
}


def public_names(module: Any) -> list[str]:
    """Return the names that a module gives to its namespace."""
    listed = getattr(module, "__all__", None)
    return listed or [
        name
        for name, value in vars(module).items()
        if not name.startswith(("_", "parse_")) and getattr(value, "__module__", None) == module.__name__
    ]


def sections() -> Iterator[tuple[str, str, list[tuple[str, list[str], Any]]]]:
    """Yield title, module and entries of each topic; an entry has its name, its other names and its value."""
    seen: set[int] = set()
    submodules = [(each, f"{vnp.__name__}.{each}") for each in vnp._SUBMODULES]
    submodules = [each for each in submodules if importlib.util.find_spec(each[1])]
    for name, where in [*((name, vnp.__name__) for name in vnp._MODULES), *submodules]:
        module = importlib.import_module(f"{vnp.__name__}.{name}")
        space = vnp if where == vnp.__name__ else module
        found: dict[int, list[str]] = {}
        for each in public_names(module):
            if getattr(space, each, None) is getattr(module, each):
                found.setdefault(id(getattr(module, each)), []).append(each)
        entries = []
        for key, names in found.items():
            value = getattr(module, names[0])
            own = getattr(value, "__name__", "")
            first = own if own in names else names[0]
            if key not in seen or space is not vnp:
                entries.append((first, [each for each in names if each != first], value))
            seen.add(key)
        if entries:
            topic = name.rpartition(".")[2]
            title = TITLES.get(topic, topic.replace("_", " ").capitalize())
            yield title, where, sorted(entries, key=lambda entry: entry[0].lower())


class ArrayFunctions(SphinxDirective):
    """`.. array-functions::`: a section for each topic."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        # the page changes with the code, not with its own text
        self.env.note_reread()
        found: list[nodes.Node] = []
        for title, where, entries in sections():
            section = nodes.section(ids=[nodes.make_id(title)])
            section += nodes.title(title, title)
            lines = []
            for name, others, value in entries:
                kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
                lines += [f".. auto{kind}:: {where}.{name}"]
                lines += ["   :no-value:"] * (kind == "data")
                if kind == "class" and issubclass(value, (tuple, BaseException)):
                    lines += ["   :no-members:"]
                same = [f"`{each}`" for each in sorted(others)]
                if name in vnp._OF_LINALG:
                    same.append(f"`vnp.{name}`")
                if same:
                    lines += ["", f"   Also {', '.join(same)}."]
                lines += [""]
            self.state.nested_parse(StringList(lines, source=__file__), 0, section)
            found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("array-functions", ArrayFunctions)
    return {"parallel_read_safe": True}
