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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_SHOWN = 10


class Seen:
    """The GLSL of the kernels that were built and the bytes of the results that were read."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.results: list[bytes] = []

    def take(self) -> tuple[list[str], list[bytes]]:
        """Return what was seen since the last time."""
        taken = self.texts, self.results
        self.texts, self.results = [], []
        return taken


def canonicalize(text: str) -> str:
    """Return GLSL with its identifiers numbered in the order in which they appear, without comments."""
    names: dict[str, str] = {}
    text = _COMMENT.sub("", text)
    return _IDENTIFIER.sub(lambda match: names.setdefault(match[0], f"n{len(names)}"), text)


def digest(data: bytes) -> str:
    """Return a digest of bytes."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def digest_text(text: str) -> str:
    """Return a digest of GLSL, up to names and comments."""
    return digest(canonicalize(text).encode())


@contextmanager
def watch() -> Iterator[Seen]:
    """Watch what kernels are built and what is read."""
    from vkdispatch.base.buffer import Buffer
    from vkdispatch.base.compute_plan import ComputePlan

    build, read = ComputePlan.__init__, Buffer._read
    seen = Seen()

    def watched_build(self: Any, shader_source: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(shader_source, str):
            seen.texts.append(shader_source)
        build(self, shader_source, *args, **kwargs)

    def watched_read(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = read(self, *args, **kwargs)
        seen.results.append(result.tobytes())
        return result

    ComputePlan.__init__, Buffer._read = watched_build, watched_read  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        ComputePlan.__init__, Buffer._read = build, read  # type: ignore[method-assign]


_texts: dict[str, str] = {}
_results: dict[str, list[str]] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Watch one test."""
    with watch() as seen:
        yield
    texts, results = seen.take()
    for text in texts:
        _texts.setdefault(digest_text(text), text)
    _results[item.nodeid] = [digest(result) for result in results]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write what was seen, a file for each process."""
    folder = Path(os.environ["SNAPSHOT"])
    folder.mkdir(parents=True, exist_ok=True)
    seen = {
        "texts": _texts,
        "results": {test: sorted(digests) for test, digests in _results.items() if digests},
    }
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
        for each in sorted(digests)[:2]:
            print(f"--- a text that is {word}\n{texts[each]}")
    return not (gone or come or changed)


if __name__ == "__main__":
    sys.exit(not compare(Path(sys.argv[1]), Path(sys.argv[2])))
