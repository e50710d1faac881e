"""mypy --strict and pyright accept what the documentation shows, and refuse wrong calls of kernels."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.test_docs import PAGES, ROOT, python_blocks

Errors = dict[tuple[str, int], str]  # by file and line

# Packages that type checkers see little of.
_UNTYPED = ("cloudpickle", "ipywidgets", "kp", "matplotlib", "mpmath", "scipy", "skimage", "sklearn", "torch")
# Blocks of a page use a name for one thing after another.
_MYPY = f"""
[mypy]
strict = true
mypy_path = {ROOT}
follow_imports = silent
allow_redefinition = true
untyped_calls_exclude = {",".join(_UNTYPED)}
[mypy-{",".join(f"{name}.*" for name in _UNTYPED)}]
ignore_missing_imports = true
"""
_PYRIGHT = {
    "typeCheckingMode": "standard",
    "extraPaths": [str(ROOT)],
    # a wrong call in the documentation has a comment for mypy
    "enableTypeIgnoreComments": True,
    "useLibraryCodeForTypes": False,
    "reportMissingImports": False,
    "reportMissingModuleSource": False,
    # two pages show kernels that are refused for this
    "reportPossiblyUnboundVariable": False,
}


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    # 1 says that there are errors
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def _mypy(folder: Path, cache: Path) -> Errors:
    (folder / "mypy.ini").write_text(_MYPY)
    kept = f"--cache-dir={cache}"
    output = _run(folder, "mypy", "--config-file=mypy.ini", "--hide-error-context", kept, ".")
    found = re.findall(r"^(\S+):(\d+): error: (.*)$", output, re.MULTILINE)
    return {(file, int(line)): message for file, line, message in found}


def _pyright(folder: Path, _: Path) -> Errors:
    (folder / "pyrightconfig.json").write_text(json.dumps(_PYRIGHT))
    output = json.loads(_run(folder, "pyright", "--outputjson", "--pythonpath", sys.executable))
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1): each["message"]
        for each in output["generalDiagnostics"]
        if each["severity"] == "error"
    }


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Return a folder with the Python of each page in one file, the examples, the gallery, and the calls."""
    for page in PAGES:
        if "dask" in page.read_text() and page.suffix == ".rst":
            continue  # Dask is typed in parts, and differently in each version
        text = ""
        for block in python_blocks(page):
            text += block[text.count("\n") :]  # they start with empty lines, down to their own
        if text:
            (tmp_path / f"{page.stem}_page.py").write_text(text)
    for source in (*(ROOT / "examples").glob("*.py"), *Path(__file__).parent.glob("typed_*.py")):
        shutil.copy(source, tmp_path)
    for source in (ROOT / "examples" / "gallery").rglob("*.py"):
        shutil.copy(source, tmp_path / f"gallery_{source.name}")
    return tmp_path


@pytest.mark.parametrize("check", [_mypy, _pyright], ids=["mypy", "pyright"])
def test_documentation_and_calls(
    check: Callable[[Path, Path], Errors], pages: Path, pytestconfig: pytest.Config
) -> None:
    pytest.importorskip(check.__name__.strip("_"))
    # What mypy knows of the package is kept for the next run.
    errors = check(pages, pytestconfig.cache.mkdir("mypy-of-pages"))
    lines = (pages / "typed_calls.py").read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}
    refused = {line for file, line in errors if file == "typed_calls.py"}
    assert {place: why for place, why in errors.items() if place[0] != "typed_calls.py"} == {}
    assert len(marked) >= 30
    assert {number: lines[number - 1] for number in marked ^ refused} == {}
