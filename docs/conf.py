"""Sphinx configuration. `make docs` builds the site with warnings as errors."""

import re
import sys
from pathlib import Path
from typing import Any

import vkdispatch
from vkdispatch.base.process.listing import is_internal

project = "vkdispatch"
author = "The vkdispatch authors"
copyright = "2026, The vkdispatch authors"
version = release = vkdispatch.__version__

# array_reference.py, reference.py and worked.py lie beside this file
sys.path.insert(0, str(Path(__file__).parent))
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "array_reference", "reference", "worked"]
html_theme = "furo"
html_title = f"vkdispatch {release}"
html_show_sphinx = False

napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": True}
default_role = "literal"


def _as_rst(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape what our docstrings mean as plain text: |x|, and a plural s behind backquotes."""
    lines[:] = [re.sub(r"(`[^`]+`)(?=\w)", r"\1\\ ", line).replace("|", "\\|") for line in lines]


def _skip(app: Any, what: str, name: str, member: object, skip: bool, options: Any) -> bool | None:
    """Leave out what is marked as internal."""
    return True if is_internal(member) else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", _skip)
    # Before napoleon, which adds markup of its own.
    app.connect("autodoc-process-docstring", _as_rst, priority=400)
