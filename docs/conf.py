"""Sphinx configuration. `make docs` builds the site with warnings as errors."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import vkdispatch
from vkdispatch.base.process import is_internal

project = "vkdispatch"
author = "The vkdispatch authors"
copyright = "2026, The vkdispatch authors"
version = release = vkdispatch.__version__

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent / "extensions"))
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "myst_nb",
    "array_reference",
    "formulas",
    "links",
    "merged_parameters",
    "notebooks",
    "playground",
    "reference",
    "signatures",
    "worked",
]
html_theme = "furo"
# furo's own dark style underlines names of modules, as if they were links
pygments_dark_style = "a11y-dark"
html_static_path = ["_static"]
html_css_files = ["notebooks.css", "site.css"]
html_math_renderer = "mathml"
exclude_patterns = ["gallery/**.ipynb", "gallery/**.py", "gallery/**.zip", "sg_execution_times.rst"]
html_title = f"vkdispatch {release}"
html_show_sphinx = False
html_search_scorer = str(Path(__file__).parent / "search_scorer.js")

# Links into other projects need their inventories, and so a network.
if os.environ.get("VKDISPATCH_DOCS_ONLINE"):
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
    }

# Notebooks in docs/learn are executed by each build; an error in one is an error of the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
# hidden cells are solutions of exercises
nb_code_prompt_show = "Show the solution"
nb_code_prompt_hide = "Hide the solution"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]

# Each file of examples/gallery is run, and its figures are drawn. The sections are in this order.
gallery_sections = ["physics", "graphics", "imaging", "signal", "learning", "finance", "interactive"]
sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/gallery/",
    "ignore_pattern": r"__init__\.py",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1000,
    "write_computation_times": False,
    "subsection_order": [f"../examples/gallery/{name}" for name in gallery_sections],
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
}

copybutton_exclude = ".linenos, .gp, .go"

napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
autodoc_default_options = {"members": True}
default_role = "literal"


def _as_rst(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape what our docstrings mean as plain text: |x|, and a plural s behind backquotes."""
    end = lines.index("Examples") if "Examples" in lines else len(lines)
    text = [re.sub(r"(`[^`]+`)(?=\w)", r"\1\\ ", line).replace("|", "\\|") for line in lines[:end]]
    lines[:] = [*text, *lines[end:]]


def _skip(app: Any, what: str, name: str, member: object, skip: bool, options: Any) -> bool | None:
    """Leave out what is marked as internal."""
    return True if is_internal(member) else None


def setup(app: Any) -> None:
    app.add_css_file("gallery.css")
    app.connect("autodoc-skip-member", _skip)
    # Before napoleon, which adds markup of its own.
    app.connect("autodoc-process-docstring", _as_rst, priority=400)
