"""The folders of the native module are layers: includes only point down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "vkdispatch_native"
LAYERS = ["libs", "context", "objects", "stages", "queue", "", "python"]  # "" is the folder itself


def layer(path: str) -> int:
    return LAYERS.index(path.split("/")[0] if "/" in path else "")


@pytest.mark.skipif(not NATIVE.is_dir(), reason="the sources are not beside the tests")
def test_includes_only_lower_layers() -> None:
    sources = [*NATIVE.rglob("*.hpp"), *NATIVE.rglob("*.cpp")]
    assert sources
    for source in sources:
        name = source.relative_to(NATIVE).as_posix()
        for included in re.findall(r'#include "([^"]+)"', source.read_text()):
            assert layer(included) <= layer(name), f"{name} includes {included}"
