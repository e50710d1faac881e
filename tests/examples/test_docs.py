"""The Python of README and docs runs, page by page, and the reference names everything public."""

from __future__ import annotations

import builtins
import importlib
import inspect
import linecache
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from benchmarks.mathematics import FUNCTIONS
from vkdispatch.base.dtype import dtype
from vkdispatch.base.process import VARIABLES
from vkdispatch.codegen import execution, functions

ROOT = Path(__file__).resolve().parents[2]
# made by the build, or executed by it
_ELSEWHERE = {"_made", "gallery", "jupyter_execute", "learn"}
PAGES = [ROOT / "README.md"] + [
    page
    for page in sorted((ROOT / "docs").rglob("*"))
    if page.suffix in (".rst", ".md") and page.relative_to(ROOT / "docs").parts[0] not in _ELSEWHERE
]
_MARKDOWN = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_RST = re.compile(r"^\.\. code-block:: python\n\n((?:[ ]{3}.*\n|\n)+)", re.MULTILINE)


def python_blocks(page: Path) -> Iterator[str]:
    """Yield the code blocks of a page, moved down to their line so that tracebacks are right."""
    text = page.read_text()
    for match in (_MARKDOWN if page.suffix == ".md" else _RST).finditer(text):
        yield "\n" * text.count("\n", 0, match.start(1)) + textwrap.dedent(match[1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some pages write files
    blocks = list(python_blocks(page))
    assert len(blocks) == len(re.findall(r"^(?:```python|\.\. code-block:: python)$", page.read_text(), re.M))
    variables: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(blocks):
        # kernels in plain Python read their source again
        name = f"<{page.name} block {number}>"
        linecache.cache[name] = (len(block), None, block.splitlines(keepends=True), name)
        exec(compile(block, name, "exec", dont_inherit=True), variables)


def test_pages_with_code_are_found() -> None:
    assert sum(len(list(python_blocks(page))) for page in PAGES) >= 15


@pytest.mark.parametrize(("module", "prefix"), [(vd, "vd"), (vc, "vc")], ids=["vd", "vc"])
def test_reference_names_everything_public(module: object, prefix: str) -> None:
    folder = ROOT / "docs/reference"
    pages = [
        *(folder / "api/runtime").glob("*.rst"),
        folder / "api/language.rst",
        folder / "kernels/types.rst",
    ]
    reference = "".join(page.read_text() for page in pages)
    for homes in re.findall(r"public-functions:: (.*)", reference):
        names = " ".join(vd._NAMES[home] for home in homes.split())
        reference += "".join(
            f":: vkdispatch.{name}\n" for name in names.split() if inspect.isroutine(getattr(vd, name))
        )
    # the page of the kernel language is made from the functions of these modules
    for room in (functions, execution):
        for made in pkgutil.iter_modules(room.__path__):
            members = vars(importlib.import_module(f"{room.__name__}.{made.name}"))
            reference += "".join(f":: vkdispatch.codegen.{name}\n" for name in members if name in vc.__all__)
    name_of = module.__name__  # type: ignore[attr-defined]
    missing = []
    for name in module.__all__:  # type: ignore[attr-defined]
        value = getattr(module, name)
        written = f":: {name_of}.{name}\n" in reference or f"`{name}`" in reference
        is_type = isinstance(value, type) and issubclass(value, dtype) and value is not dtype
        if is_type and prefix == "vd":
            written = f"`vd.{name}`" in reference
        if not (written or name.startswith("_") or (name == "dtype" and "`vd.dtype`" in reference)):
            missing.append(name)
    assert missing == []


def test_page_of_mathematics_has_errors_of_all_functions() -> None:
    text = (ROOT / "docs/reference/kernels/mathematics.rst").read_text()
    assert [name for name in FUNCTIONS if not re.search(rf"^`{name}` ", text, re.MULTILINE)] == []


def read_rows(page: str) -> list[list[str]]:
    """Return the cells of the list tables of a page of the reference."""
    text = (ROOT / "docs" / "reference" / f"{page}.rst").read_text()
    rows = re.findall(r"^   \* - (.*(?:\n     - .*)+)", text, re.MULTILINE)
    return [re.split(r"\n     - ", row) for row in rows]


def test_page_of_environment_variables_names_all() -> None:
    named = [row[0].strip("`") for row in read_rows("environment") if row[0].startswith("`VKDISPATCH")]
    assert sorted(named) == sorted(VARIABLES)
    assert all(len(row) == 4 and all(row) for row in read_rows("environment") if "VKDISPATCH" in row[0])


def test_page_of_errors_names_all_with_their_bases() -> None:
    rows = {row[0].removeprefix(":exc:`~vkdispatch.").strip("`"): row for row in read_rows("errors")[1:]}
    classes = [name for name in vd.__all__ if inspect.isclass(getattr(vd, name))]
    errors = [name for name in classes if issubclass(getattr(vd, name), BaseException)]
    assert sorted(rows) == sorted(errors)
    for name, (_, bases, when, advice) in rows.items():
        assert when and advice
        for base in re.findall(r"`(\w+)`", bases):
            assert issubclass(getattr(vd, name), getattr(vd, base, None) or getattr(builtins, base)), (
                name,
                base,
            )


def test_no_cell_of_a_table_is_an_empty_list() -> None:
    texts = {path: path.read_text() for end in ("*.rst", "*.inc") for path in (ROOT / "docs").rglob(end)}
    assert [
        path for path, text in texts.items() if re.search(r"^ +(?:\* )?- [-*+]$", text, re.MULTILINE)
    ] == []
