"""Sphinx extension: parameters that a docstring describes together stay one item.

NumPy's style allows `x, axis, dtype`, of which napoleon makes three items with the same text.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_FIELD = re.compile(r":param (\S+):(.*)")


def merge(lines: list[str]) -> list[str]:
    """Return the lines of a docstring, with fields that follow each other and have the same text as one."""
    found: list[tuple[list[str], list[str]]] = []  # names of a field, and its text; no names for other lines
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field:
            found.append(([field[1]], [field[2]]))
        elif found and found[-1][0] and line.startswith(" "):
            found[-1][1].append(line)
        else:
            found.append(([], [line]))
    merged: list[tuple[list[str], list[str]]] = []
    for names, text in found:
        if names and merged and merged[-1][0] and _trim(merged[-1][1]) == _trim(text):
            merged[-1][0].extend(names)
        else:
            merged.append((list(names), text))
    result = []
    for names, text in merged:
        # a field has one name: the commas get their blanks when the page is made
        result += [f":param {','.join(names)}:{text[0]}", *text[1:]] if names else text
    return result


def _trim(text: list[str]) -> list[str]:
    return [line.strip() for line in text if line.strip()]


def _process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = merge(lines)


def _separate(app: Sphinx, doctree: nodes.document) -> None:
    for node in list(doctree.findall(addnodes.literal_strong)):
        if "," in node.astext():
            node[:] = [nodes.Text(node.astext().replace(",", ", "))]


def setup(app: Sphinx) -> dict[str, bool]:
    """Process docstrings after napoleon."""
    app.connect("autodoc-process-docstring", _process, priority=700)
    app.connect("doctree-read", _separate)
    return {"parallel_read_safe": True}
