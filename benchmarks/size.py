"""The size of the package, folder by folder, and the budget that it has to keep to.

Lines of code are lines without blank lines, comments and docstrings, as `tokenize` and `ast` see them. The
budget is the table `tool.size` of pyproject.toml: for a folder of `vkdispatch/`, the files and lines of code
that it may have. What the table leaves out has no limit. `python -m benchmarks.size` prints the report, and
ends with an error if a folder is larger.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = _ROOT / "vkdispatch"
# Tokens that no line of code consists of.
_LAYOUT = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    )
)
# The name of what lies in no folder, and of all folders.
_OUTSIDE, _ALL = ".", "vkdispatch"


@dataclass
class Size:
    """How large some files are.

    Attributes
    ----------
    files, code
        Files, and their lines of code.
    imports
        Lines of code that import statements have.
    longest, where
        Lines of code of the longest function, and its place.
    """

    files: int = 0
    code: int = 0
    imports: int = 0
    longest: int = 0
    where: str = ""

    def add(self, other: "Size") -> None:
        """Count the files of another one too."""
        self.files += other.files
        self.code += other.code
        self.imports += other.imports
        if other.longest > self.longest:
            self.longest, self.where = other.longest, other.where

    @property
    def import_share(self) -> float:
        """Share of lines that import statements have."""
        return self.imports / max(self.code, 1)


def measure_text(text: str, name: str) -> Size:
    """Return the size of a file."""
    tree = ast.parse(text)
    prose = _lines_of(node for node in ast.walk(tree) if _is_prose(node))
    code = set(_lines_with_tokens(text)) - prose
    size = Size(1, len(code))
    size.imports = len(_lines_of(_find(tree, (ast.Import, ast.ImportFrom))) & code)
    for function in _find(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        length = len(_lines_of((function,)) & code)
        if length > size.longest:
            size.longest, size.where = length, f"{name}:{function.lineno}"
    return size


def measure_package(root: Path = _PACKAGE) -> dict[str, Size]:
    """Return the sizes of the folders of a package by name, and of all of it."""
    sizes: dict[str, Size] = {_ALL: Size()}
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        size = measure_text(path.read_text(encoding="utf-8"), str(place))
        folder = place.parts[0] if len(place.parts) > 1 else _OUTSIDE
        sizes.setdefault(folder, Size()).add(size)
        sizes[_ALL].add(size)
    return sizes


def find_excess(sizes: dict[str, Size], budget: dict[str, Any]) -> list[str]:
    """Return what is larger than its budget, a line each."""
    excess: list[str] = []
    for folder, limits in budget.items():
        size = sizes.get(folder, Size())
        values = {"files": size.files, "code": size.code, "imports": round(100 * size.import_share, 1)}
        for what, limit in limits.items():
            if values[what] > limit:
                excess.append(f"{folder}: {what} {values[what]:,}, the budget is {limit:,}")
    return excess


def format_report(sizes: dict[str, Size]) -> str:
    """Return a table, the largest folder first."""
    rows = [f"{'folder':20s} {'files':>6s} {'code':>7s} {'imports':>8s}  longest function"]
    for folder, size in sorted(sizes.items(), key=lambda item: -item[1].code):
        place = f"{size.longest:3d} {size.where}" if size.longest else ""
        rows.append(f"{folder:20s} {size.files:6d} {size.code:7,d} {size.import_share:8.1%}  {place}")
    return "\n".join(rows)


def _lines_with_tokens(text: str) -> Iterator[int]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            yield from range(token.start[0], token.end[0] + 1)


def _is_prose(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _find(tree: ast.AST, kinds: tuple[type[ast.stmt], ...]) -> Iterator[Any]:
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def _lines_of(nodes: Iterable[Any]) -> set[int]:
    return {line for node in nodes for line in range(node.lineno, node.end_lineno + 1)}


def main() -> int:
    """Print the report; return 1 if a folder is larger than its budget."""
    sizes = measure_package()
    print(format_report(sizes))
    with (_ROOT / "pyproject.toml").open("rb") as file:
        excess = find_excess(sizes, tomllib.load(file)["tool"].get("size", {}))
    for line in excess:
        print(line, file=sys.stderr)
    return int(bool(excess))


if __name__ == "__main__":
    sys.exit(main())
