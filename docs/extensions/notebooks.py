"""Sphinx extension: each page of docs/learn can be downloaded as a plain Jupyter notebook."""

import re
from pathlib import Path
from typing import Any

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

_FOLDER = "learn"
# In raw HTML, as Sphinx would look for the file among the sources.
_LINK = '\n<p><a class="download" href="{name}.ipynb" download>Download this page as a notebook</a></p>\n'
_TITLE = re.compile(r"^# .*\n", re.MULTILINE)
_PAGE = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
_NOTE = re.compile(r"^```\{note\}\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)


def is_notebook(docname: str) -> bool:
    """Whether a page is a notebook."""
    return docname.startswith(f"{_FOLDER}/") and docname != f"{_FOLDER}/index"


def make_notebook(path: Path) -> Any:
    """Return the notebook of a page without outputs, in plain Markdown; cells of solutions are folded."""
    notebook = read_myst_markdown_notebook(path.read_text(), MdParserConfig(), path=path)
    notebook.metadata = nbformat.from_dict({"kernelspec": dict(notebook.metadata["kernelspec"])})
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _write_plain(cell.source)
        elif "hide-cell" in cell.metadata.get("tags", []):
            cell.metadata["jupyter"] = {"source_hidden": True}
    return notebook


def _write_plain(text: str) -> str:
    """Write as Markdown what only Sphinx understands: notes, and links to pages, of which the text stays."""
    text = _NOTE.sub(lambda note: "> **Note:** " + note[1].strip().replace("\n", "\n> ") + "\n", text)
    return _PAGE.sub(r"*\1*", text)


def _add_link(app: Any, docname: str, source: list[str]) -> None:
    if is_notebook(docname):
        link = _LINK.format(name=docname.rpartition("/")[2])
        source[0] = _TITLE.sub(lambda title: title[0] + link, source[0], count=1)


def _write_notebooks(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for docname in filter(is_notebook, app.env.found_docs):
            target = Path(app.outdir, f"{docname}.ipynb")
            nbformat.write(make_notebook(Path(app.env.doc2path(docname))), target)


def setup(app: Any) -> dict[str, bool]:
    """Register what adds the links and writes the files."""
    app.connect("source-read", _add_link)
    app.connect("build-finished", _write_notebooks)
    return {"parallel_read_safe": True}
