"""The programs of the benchmark of scaling compute what NumPy computes, on chunks and on a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from benchmarks.scaling import chunks, measuring, programs


def test_chunks_compute_what_numpy_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PASSES", 3)
    monkeypatch.setattr(chunks, "STEPS", 3)
    ours = chunks.make_values("vkdispatch", (70, 40), 3333)
    host = chunks.make_values("numpy", (70, 40), 3333)
    # a part of the whole sequence
    whole = chunks.make_values("numpy", (10000,), 0)
    np.testing.assert_array_equal(host.ravel(), whole[3333:6133])
    np.testing.assert_allclose(chunks.to_host(ours), host, rtol=3e-7)  # GPUs divide with other rounding
    part = chunks.take_part(ours, slice(2, 5), slice(7))
    np.testing.assert_array_equal(part, chunks.to_host(ours)[2:5, :7])
    for function in (
        chunks.add_up,
        lambda library, x: chunks.transform(library, 0, x),
        lambda library, x: chunks.transform(library, 1, x),
        chunks.diffuse,
        lambda library, x: chunks.sum_clusters(library, host[:5], x),
    ):
        expected = function("numpy", host)
        found = chunks.to_host(function("vkdispatch", ours))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


def test_the_price_of_the_option() -> None:
    normal = np.random.default_rng(0).standard_normal(2_000_000)
    end = 100 * np.exp((0.02 - 0.045) + 0.3 * normal)
    payoff = np.maximum(end - 105, 0) * np.exp(-0.02)
    np.testing.assert_allclose(programs.price(), [payoff.mean(), (payoff**2).mean()], rtol=1e-2)
    mean, _ = chunks.simulate("vkdispatch", 100_000, 2, 7)
    assert mean == pytest.approx(programs.price()[0], abs=0.3)


def test_what_results_are_compared_with() -> None:
    rows, columns = 1100, 48
    whole = chunks.make_values("numpy", (rows, columns), 0)
    column = programs.transform_column(rows, columns, 5)
    np.testing.assert_allclose(column, np.fft.fft2(whole.astype(float))[:, 5], atol=1e-6)
    stepped = chunks.diffuse("numpy", whole)
    for begin in (0, 700, rows - 3):
        rows_there = programs.diffuse_rows(rows, columns, begin, begin + 3)
        np.testing.assert_allclose(rows_there, stepped[begin : begin + 3], rtol=1e-6)
    values, repeats = np.unique(chunks.make_values("numpy", (2500,), 0), return_counts=True)
    one = chunks.make_values("numpy", (chunks.PERIOD,), 0)
    np.testing.assert_array_equal(programs.count_repeats(2500)[np.argsort(one)], repeats)
    np.testing.assert_array_equal(np.sort(one), values)


class _Client:
    """A client whose tasks run at once, in this process."""

    def scheduler_info(self, **_: Any) -> dict[str, Any]:
        return {"workers": {"here": {}}}

    def submit(self, function: Any, *args: Any, **_: Any) -> Any:
        return function(*args)

    def map(self, function: Any, *lists: Any, **_: Any) -> list[Any]:
        return list(map(function, *lists))

    def gather(self, futures: Any) -> Any:
        return futures


@pytest.mark.parametrize("case", ["element-wise and sum", "k-means", "Monte Carlo"])
def test_wrong_results_are_seen(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(programs, "complete", lambda _: None)
    problem = programs.CASES[case](_Client(), "numpy", 1, 1, 1e-6)
    right = problem.run()
    assert problem.check(right)
    assert not problem.check(right * 1.1)


def test_efficiency_and_lines() -> None:
    rest = {"transfers": 0.04, "scheduler": 0.01, "limit": "device"}
    figures = {
        "1": {"seconds": [4.0, 4.0, 9.0], "computing": 0.9, "waiting": 0.06, "right": True, **rest},
        "2": {"seconds": [2.5, 2.5, 2.0], "computing": 0.7, "waiting": 0.26, "right": False, **rest},
        "4": {"error": "MemoryError: none"},
    }
    assert measuring.efficiency("strong", figures, "2") == 0.8
    assert measuring.efficiency("weak", figures, "2") == 1.6
    lines = [measuring.format_line("vkdispatch", "k-means", "strong", figures, each) for each in figures]
    assert lines[0] == "| vkdispatch, k-means, strong | 1 | 4 | 1.00 | 0.90 | 0.04 | 0.06 | 0.01 | device |"
    assert lines[1].startswith("| vkdispatch, k-means, strong | 2 | 2.5 (wrong) | 0.80 | 0.70 |")
    assert lines[2].startswith("| vkdispatch, k-means, strong | 4 | MemoryError: none | - |")


def test_where_the_time_goes() -> None:
    def part(action: str, start: float, stop: float) -> dict[str, Any]:
        return {"action": action, "start": start, "stop": stop}

    tasks = [
        {"worker": "a", "startstops": [part("transfer", 0, 3), part("compute", 2, 6)]},
        {"worker": "a", "startstops": [part("compute", 5, 7), part("compute", 30, 40)]},
        {"worker": "b", "startstops": [part("compute", 18, 21)]},
    ]
    shares = measuring.share_time(tasks, [(0, 10), (20, 30)], 2)
    # a: 2 s of transfers, then tasks for 5 s; b: 1 s of the second span; of 40 s
    expected = {"computing": 0.15, "transfers": 0.05, "waiting": 0.8, "balance": 1.667}
    assert shares == expected
    assert measuring.count_by_worker(tasks, 1) == [1, 2]
    busy = {"scheduler": 0.1, "messages": 0.7}
    assert measuring.find_limit({**expected, **busy}) == "balance"
    assert measuring.find_limit({**expected, **busy, "balance": 1}) == "messages"
    assert measuring.find_limit({**expected, "balance": 1, "scheduler": 0.1, "messages": 0.2}) == "latency"
    assert measuring.find_limit({**expected, "transfers": 0.5, "waiting": 0.35}) == "transfers"
    assert measuring.find_limit({**expected, "computing": 0.9}) == "device"


def test_a_tiny_run(tmp_path: Path) -> None:
    pytest.importorskip("vkdispatch.distributed.loading")
    if not vd.get_devices()[0].is_cpu():
        pytest.skip("two workers share a CPU driver; GPUs have a worker each")
    path = tmp_path / "scaling.json"
    options = ["--workers", "2", "--size", "1e-6", "--rounds", "2", "--json", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scaling", *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (report,) = json.loads(path.read_text())["reports"]
    assert set(report["cases"]) == set(programs.CASES)
    assert len(report["devices"]) == 2
    for kinds in report["cases"].values():
        for kind in ("strong", "weak"):
            # results of the round before are computed again
            assert kinds[kind]["2"]["right"]
            assert kinds[kind]["2"]["tasks"]
