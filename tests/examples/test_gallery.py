"""The gallery's examples are short, and their docstrings are pages. The documentation's build runs them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.rglob("*.py"))


def test_there_are_twenty_in_sections() -> None:
    assert len(EXAMPLES) >= 20
    sections = {example.parent for example in EXAMPLES}
    assert all(section.parent == GALLERY and (section / "README.rst").exists() for section in sections)
    order = re.search(
        r"^gallery_sections = (.*)$", (GALLERY.parents[1] / "docs" / "conf.py").read_text(), re.M
    )
    assert order is not None
    assert sorted(ast.literal_eval(order.group(1))) == sorted(section.name for section in sections)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_a_page(example: Path) -> None:
    text = example.read_text()
    assert len(text.splitlines()) < 80
    page = ast.get_docstring(ast.parse(text))
    assert page is not None
    title, line, empty, *body = page.splitlines()
    assert line == "=" * len(title)
    assert empty == ""
    assert 2 <= len(re.findall(r"[.:;?](?=\s|$)", "\n".join(body))) <= 12
    assert max(map(len, body)) <= 100


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_nothing_is_written(example: Path) -> None:
    assert not re.search(r"savefig|open\(|\.save\(|write_text|write_bytes|tofile", example.read_text())
