"""The programs of the benchmark of scaling compute what NumPy computes, on chunks and on a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import scaling


def test_chunks_compute_what_numpy_computes() -> None:
    ours = scaling.make_values("vkdispatch", (70, 40), 3333)
    host = scaling.make_values("numpy", (70, 40), 3333)
    # a part of the whole sequence
    whole = scaling.make_values("numpy", (10000,), 0)
    np.testing.assert_array_equal(host.ravel(), whole[3333:6133])
    np.testing.assert_array_equal(scaling.to_host(ours), host)
    assert scaling.add_up("vkdispatch", ours) == pytest.approx(scaling.add_up("numpy", host), rel=1e-5)
    for function in (
        lambda library, x: scaling.transform(library, 0, x),
        lambda library, x: scaling.transform(library, 1, x),
        scaling.diffuse,
        lambda library, x: scaling.sum_clusters(library, host[:5], x),
    ):
        expected = function("numpy", host)
        found = scaling.to_host(function("vkdispatch", ours))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


def test_the_price_of_the_option() -> None:
    normal = np.random.default_rng(0).standard_normal(2_000_000)
    end = 100 * np.exp((0.02 - 0.045) + 0.3 * normal)
    payoff = np.maximum(end - 105, 0) * np.exp(-0.02)
    np.testing.assert_allclose(scaling.price(), [payoff.mean(), (payoff**2).mean()], rtol=1e-2)
    mean, _ = scaling.simulate("vkdispatch", 200_000, 7)
    assert mean == pytest.approx(scaling.price()[0], abs=0.3)


def test_efficiency_and_table() -> None:
    figures = {
        "1": {"seconds": [4.0, 4.0, 9.0], "compute": 0.9, "transfer": 0.0, "right": True},
        "2": {"seconds": [2.5, 2.5, 2.0], "compute": 0.7, "transfer": 0.2, "right": False},
    }
    assert scaling.efficiency("strong", figures, "2") == 0.8
    assert scaling.efficiency("weak", figures, "2") == 1.6
    report = {"library": "vkdispatch", "cases": {"k-means": {"strong": figures}}}
    lines = scaling.table([report]).splitlines()
    assert lines[2] == "| vkdispatch, k-means, strong | 1 | 4 | 1.00 | 0.90 | 0.00 |"
    assert lines[3] == "| vkdispatch, k-means, strong | 2 | 2.5 (wrong) | 0.80 | 0.70 | 0.20 |"


def test_wrong_results_are_seen() -> None:
    problem = scaling.Problem(lambda: None, lambda: np.arange(4.0), 4)
    assert scaling.is_right("stencil", problem, np.arange(4.0))
    assert scaling.is_right("stencil", problem, np.arange(4.0) + 1e-3) is False
    assert scaling.is_right("stencil", problem._replace(size=1 << 30), np.zeros(4)) is None
    option = scaling.Problem(lambda: None, scaling.price, 10**6)
    assert scaling.is_right("Monte Carlo", option, scaling.price()) is True
    assert scaling.is_right("Monte Carlo", option, scaling.price() * 1.02) is False


def test_a_tiny_run(tmp_path: Path) -> None:
    pytest.importorskip("vkdispatch.distributed.loading")
    path = tmp_path / "scaling.json"
    options = ["--workers", "2", "--size", "1e-6", "--rounds", "1", "--json", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scaling", *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(path.read_text())["reports"]
    assert set(report["cases"]) == set(scaling.CASES)
    assert len(report["devices"]) == 2
    for kinds in report["cases"].values():
        for kind in ("strong", "weak"):
            assert kinds[kind]["2"]["right"]
