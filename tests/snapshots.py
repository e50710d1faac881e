"""Keep the GLSL of every kernel and the bits of every result of a test run, and compare two such runs.

A change of the package's structure should change neither. Run the same tests before and after it:

    SNAPSHOT=/tmp/before python -m pytest -p tests.snapshots tests/scans
    SNAPSHOT=/tmp/after python -m pytest -p tests.snapshots tests/scans
    python -m tests.snapshots /tmp/before /tmp/after

Texts are compared up to the names of variables, results test by test.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_SHOWN = 10

_texts: dict[str, str] = {}
_results: defaultdict[str, list[str]] = defaultdict(list)


def _canonical(text: str) -> str:
    """Return GLSL with its identifiers numbered in the order in which they appear."""
    names: dict[str, str] = {}
    text = _COMMENT.sub("", text)
    return _IDENTIFIER.sub(lambda match: names.setdefault(match[0], f"n{len(names)}"), text)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def pytest_configure(config: pytest.Config) -> None:
    """Watch what kernels are built and what is read."""
    from vkdispatch.base.buffer import Buffer
    from vkdispatch.base.compute_plan import ComputePlan

    build, read = ComputePlan.__init__, Buffer._read

    def watched_build(self: Any, shader_source: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(shader_source, str):
            _texts.setdefault(_digest(_canonical(shader_source).encode()), shader_source)
        build(self, shader_source, *args, **kwargs)

    def watched_read(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = read(self, *args, **kwargs)
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        _results[test].append(_digest(result.tobytes()))
        return result

    ComputePlan.__init__ = watched_build  # type: ignore[method-assign]
    Buffer._read = watched_read  # type: ignore[method-assign]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write what was seen, a file for each process."""
    folder = Path(os.environ["SNAPSHOT"])
    folder.mkdir(parents=True, exist_ok=True)
    seen = {"texts": _texts, "results": {test: sorted(digests) for test, digests in _results.items()}}
    (folder / f"{os.getpid()}.json").write_text(json.dumps(seen))


def load(folder: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the texts by digest, and the digests of results by test, of a run."""
    texts: dict[str, str] = {}
    results: dict[str, list[str]] = {}
    for file in folder.glob("*.json"):
        seen = json.loads(file.read_text())
        texts.update(seen["texts"])
        results.update(seen["results"])
    return texts, results


def compare(before: Path, after: Path) -> bool:
    """Print how two runs differ, and return whether they are the same."""
    (old_texts, old_results), (new_texts, new_results) = load(before), load(after)
    gone, come = old_texts.keys() - new_texts.keys(), new_texts.keys() - old_texts.keys()
    shared = old_results.keys() & new_results.keys()
    changed = sorted(test for test in shared if old_results[test] != new_results[test])
    print(f"{len(old_texts)} and {len(new_texts)} texts: {len(gone)} gone, {len(come)} new")
    print(
        f"{len(old_results)} and {len(new_results)} tests with results: "
        f"{len(shared)} in both, {len(changed)} of them changed"
    )
    for test in changed[:_SHOWN]:
        print("  changed:", test)
    for word, digests, texts in (("gone", gone, old_texts), ("new", come, new_texts)):
        for digest in sorted(digests)[:2]:
            print(f"--- a text that is {word}\n{texts[digest]}")
    return not (gone or come or changed)


if __name__ == "__main__":
    sys.exit(not compare(Path(sys.argv[1]), Path(sys.argv[2])))
