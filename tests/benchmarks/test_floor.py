"""The C++ program that measures raw Vulkan: it builds, runs here, and checks what it computes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import floor, runner
from benchmarks.cases import BY_NAME
from benchmarks.floor import build
from benchmarks.processes import FloorParticipant


@pytest.fixture(scope="module")
def program() -> Path:
    sources = [*floor.FOLDER.glob("*.?pp"), *floor.FOLDER.glob("shaders/*")]
    newest = max(path.stat().st_mtime for path in sources)
    if not floor.PROGRAM.exists() or floor.PROGRAM.stat().st_mtime < newest:
        if shutil.which("g++") is None or not (build.ROOT / "deps").exists():
            pytest.skip("there is nothing to build with")
        try:
            build.dependencies()
        except RuntimeError as error:  # fetch_deps.DepsError: without a network, say
            pytest.skip(f"what it is built from cannot be had: {error}")
        build.build()
    return floor.PROGRAM


def test_every_measure_is_right(program: Path) -> None:
    participant = FloorParticipant()
    try:
        names = ["call-buffer", "launch-wait", "graph-dependent-100", "graph-independent-100"]
        names += ["saxpy", "copy", "upload", "download"]
        for name in names:
            found = runner.run_case(BY_NAME[name], "tiny", [participant], 1, lambda _: None)
            outcome = found["results"]["floor"]
            assert outcome.get("correct") is True, (name, outcome)
            assert all(value > 0 for rounds in outcome["values"].values() for value in rounds)
    finally:
        participant.stop()


def test_an_unknown_measure_is_an_error_and_no_end(program: Path) -> None:
    participant = FloorParticipant()
    participant.start()
    participant.prepare("nothing", {}, 10)
    assert participant.round(10) == {"error": "there is no measure nothing"}
    participant.prepare("call-buffer", {}, 10)
    assert "values" in participant.round(10)
    participant.stop()
