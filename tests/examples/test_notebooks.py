"""The pages of docs/learn become plain notebooks. The build of the documentation runs them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("myst_nb")
from tests.examples.docs_modules import DOCS, load_module

nbformat = pytest.importorskip("nbformat")

PAGES = sorted(page for page in (DOCS / "learn").glob("*.md") if page.stem != "index")


@pytest.fixture(scope="module")
def notebooks() -> ModuleType:
    return load_module("notebooks")


def test_the_index_shows_every_notebook_in_its_order() -> None:
    text = (DOCS / "learn" / "index.md").read_text()
    cards = re.findall(r"^:link: (\w+)$", text, re.MULTILINE)
    listed = text.partition(":hidden:")[2].partition("```")[0].split()[2:]
    assert cards == listed and sorted(cards) == [page.stem for page in PAGES]
    for page, following in pairwise(cards):
        assert f"({following}.md)" in (DOCS / "learn" / f"{page}.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_becomes_a_plain_notebook(page: Path, notebooks: ModuleType) -> None:
    made = notebooks.make_notebook(page)
    nbformat.validate(made)
    assert made.metadata.kernelspec.name == "python3"
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    prose = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert len(code) == page.read_text().count("```{code-cell}\n")
    assert not any("```" in cell.source or cell.outputs for cell in code)
    # nothing that only Sphinx understands
    assert "{" not in re.sub(r"\$\$[^$]*\$\$|\$[^$]*\$|`[^`]*`", "", prose)
    assert not re.search(r"\]\((?!https://)", prose)
    solutions = [cell for cell in code if cell.metadata.get("jupyter", {}).get("source_hidden")]
    exercises = len(re.findall(r"^\*\*\d\.\*\* ", prose, re.MULTILINE))
    assert 2 <= exercises <= 3 and len(solutions) == exercises
