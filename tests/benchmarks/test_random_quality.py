"""The battery of tests for random streams: it passes ours, and finds what is wrong with others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import random_quality as quality


def test_battery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quality.json"
    streams = ["philox4x32", "kernels: keys 0, 1, ...", quality.CONTROL]
    assert quality.main(["--words", "16", "--json", str(path), "--streams", *streams]) == 0
    report = json.loads(path.read_text())
    assert [*report["streams"]] == streams
    assert [verdict["passes"] for verdict in report["streams"].values()] == [True, True, False]
    assert report["avalanche"] > 1e-6
    assert "FAILS" in capsys.readouterr().out


def test_p_values_of_a_good_generator_are_uniform() -> None:
    """NumPy's PCG64, with the seed fixed: no test finds fault, none is too content."""
    words = np.random.default_rng(5).integers(0, 1 << 32, 1 << 18, np.uint32)
    found = {name: judge(words) for name, judge in quality.TESTS.items()}
    assert min(found.values()) > 1e-3, found
    assert max(found.values()) < 1 - 1e-4, found


@pytest.mark.parametrize(
    ("flaw", "finders"),
    [
        (lambda w: w & np.uint32(~4 & 0xFFFFFFFF), {"frequency", "runs"}),
        (
            lambda w: np.repeat(w[::2], 2),
            {"serial pairs", "correlation", "collisions", "birthdays", "weights"},
        ),
        (lambda w: np.sort(w.reshape(-1, 5), axis=1).reshape(-1), {"orders of 5", "gaps", "serial pairs"}),
        (lambda w: (w & np.uint32(0xFFFF)) | (w << np.uint32(16)), {"matrix ranks", "weights"}),
        (
            lambda w: (np.arange(w.size, dtype=np.uint64) * 2654435769 & 0xFFFFFFFF).astype(np.uint32),
            {"birthdays"},
        ),
        (
            lambda w: ((w / 2.0**32) ** 1.1 * 2**32).astype(np.uint32),
            {"distribution", "byte values", "largest of 8", "gaps"},
        ),
    ],
    ids=["bit", "twice", "sorted", "halves", "Weyl", "curve"],
)
def test_flaws_are_found(flaw: object, finders: set[str]) -> None:
    words = np.random.default_rng(6).integers(0, 1 << 32, 5 * 53_000, np.uint32)
    bad = flaw(words)  # type: ignore[operator]
    assert [name for name in finders if quality.TESTS[name](bad) > quality.FAILURE] == []
