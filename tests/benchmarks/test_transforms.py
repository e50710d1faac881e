"""The cases of transforms and reductions: what they are given, how they are checked, and their pictures."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import cases, family_plots, report, signals, timing
from benchmarks.__main__ import NO_RESULTS, main
from benchmarks.case import FAMILIES, LONGEST_TINY, YARDSTICKS
from benchmarks.libraries import numpy_peer, vulkan_transforms
from benchmarks.signals import Signal, error_of
from benchmarks.timing import SkipCase

NEW = [case for case in cases.CASES if case.family != "engine"]
# One of each kind, and lengths that are not powers of two.
SOME = [
    *("fft-64", "fft-15", "fft-17", "fft-axis0-64", "fft-axis1-64", "fft-f64-64", "fft-f16-64"),
    *("rfft-64", "fft2-8", "fft2-4096", "convolution-2048", "scaled-1024"),
    *("reduce-sum", "reduce-max", "reduce-squares", "reduce-rows-4", "reduce-rows-4096"),
]


def test_issue_rows_have_their_goals() -> None:
    goals = {row.case: (row.figure, row.goal) for row in cases.ROWS if row.goal is not None}
    assert goals["fft-64"] == goals["fft-4096"] == goals["fft-210"] == goals["fft-17"] == ("gbps", 4050)
    assert goals["fft-1155"] == ("gbps", 3950) and goals["fft-65536"] == ("gbps", 2000)
    assert goals["fft2-4096"] == ("ms", 0.72) and goals["convolution-2048"] == ("ms", 0.70)
    assert goals["reduce-sum"] == ("gbps", 4250)


def test_sizes_of_each_kind_of_machine() -> None:
    by_name = cases.BY_NAME
    assert signals.lines_of(by_name["fft-64"].sized("gpu")).shape == (2**20, 64)
    assert signals.lines_of(by_name["fft-1021"].sized("gpu")).shape == (2**26 // 1021, 1021)
    # one transform where there are fewer points than it has
    assert signals.lines_of(by_name[f"fft-{2**24}"].sized("cpu")).shape == (1, 2**24)
    assert signals.lines_of(by_name["fft-axis0-64"].sized("gpu")) == Signal((64, 2**20), (0,), 32)
    assert signals.lines_of(by_name["fft-axis1-64"].sized("gpu")) == Signal((2**12, 64, 256), (1,), 32)
    assert signals.planes_of(by_name["fft2-4096"].sized("gpu")).shape == (4, 4096, 4096)
    assert signals.planes_of(by_name["fft2-4096"].sized("cpu")).shape == (1, 512, 512)
    assert signals.planes_of(by_name["fft2-8"].sized("gpu")).shape == (2**20, 8, 8)
    assert [x.shape for x in signals.reduced_inputs(by_name["reduce-sum"].sized("tiny"))] == [(1, 2**14)]
    for case in NEW:
        assert case.sized("tiny").get("n", 0) <= LONGEST_TINY


def test_bytes_are_those_of_the_device() -> None:
    assert Signal((4, 8), (1,), 32).nbytes == 32 * 8
    assert Signal((4, 8), (1,), 64).nbytes == 32 * 16
    # the host has complex64
    half = Signal((4, 8), (1,), 16)
    assert half.nbytes == 32 * 4 and half.host().dtype == np.complex64
    assert signals.real_nbytes(np.zeros((3, 9), np.float32)) == 3 * 9 * 4 + 3 * 5 * 8


@pytest.mark.parametrize(
    "signal",
    [
        Signal((7, 12), (1,), 32),
        Signal((12, 7), (0,), 64),
        Signal((2, 5, 3), (1,), 32),
        Signal((9, 4, 4), (1, 2), 32),
    ],
    ids=str,
)
def test_transforms_are_told_from_others(signal: Signal) -> None:
    host = signal.host()
    right = np.fft.fftn(host, axes=signal.axes)
    assert signal.is_transformed(right[signal.samples()])
    assert not signal.is_transformed(np.fft.ifftn(host, axes=signal.axes)[signal.samples()])
    other = tuple(axis for axis in range(host.ndim) if axis not in signal.axes)
    assert not signal.is_transformed(np.fft.fftn(host, axes=other)[signal.samples()])
    # the samples come from all over the others
    spoilt = right.copy()
    spoilt[tuple(slice(None) if axis in signal.axes else 0 for axis in range(host.ndim))] = 0
    assert not signal.is_transformed(spoilt[signal.samples()])
    assert signal.is_back(host[signal.samples()]) and signal.is_back(-host[signal.samples()], -1)
    assert not signal.is_back(2 * host[signal.samples()])


def test_numbers_that_are_not_finite_are_wrong() -> None:
    signal = Signal((7, 12), (1,), 32)
    assert not signal.is_transformed(np.full_like(signal.host(), np.nan)[signal.samples()])
    assert error_of(np.array([1.0, 1.0]), np.array([1.0, 1.0])) == 0


@pytest.mark.parametrize("work", signals.REDUCED)
def test_reductions_are_told_from_others(work: str) -> None:
    (rows,) = signals.reduced_inputs({"reduced": 4096, "columns": 64})
    want = signals.REDUCED[work](rows)
    assert rows.shape == (64, 64) and signals.is_reduced(work, rows, want.astype(np.float32))
    assert not signals.is_reduced(work, rows, want * 1.001)
    assert not signals.is_reduced(work, rows, want[:-1])
    # a scalar where there is one row
    assert signals.is_reduced(work, rows[:1], want[0])


def test_arrays_that_are_reduced_in_turn_differ() -> None:
    found = signals.reduced_inputs({"reduced": 2**25, "columns": 16})
    assert [rows.shape for rows in found] == [(2**20, 16)] * 2
    assert not np.array_equal(found[0][:100], found[1][:100])


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("library", [numpy_peer, vulkan_transforms], ids=["numpy", "ours"])
def test_cases_run_and_are_right(library: Any, name: str) -> None:
    case = cases.BY_NAME[name]
    try:
        trial = library.CASES[case.work](case.sized("tiny"))
    except SkipCase as reason:
        pytest.skip(str(reason))
    for _ in range(2):
        values = trial.measure()
        assert set(values) == {"ms", "gbps", "gpoints"} and all(value > 0 for value in values.values())
    assert trial.right()


def test_a_wrong_transform_is_noticed() -> None:
    signal = signals.lines_of(cases.BY_NAME["fft-64"].sized("tiny"))
    trial = numpy_peer.there_and_back(signal, np.fft.ifft, np.fft.fft, cases.BY_NAME["fft-64"].sized("tiny"))
    trial.measure()
    assert not trial.right()


def test_passes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"seconds": 0.002, "calls": 20, "passes": 5}
    made: list[int] = []
    trial = timing.time_passes(
        lambda: made.append(1), lambda: None, 2, 8e9, 1e9, lambda n: n == len(made), sizes
    )
    before = len(made)
    # a second from one look at the clock to the next
    clock = itertools.count()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(clock)))
    values = trial.measure()
    assert len(made) - before == trial.repetitions + 1 + trial.repetitions // 10 and trial.right()
    seconds = 1 / (trial.repetitions * 2)
    assert values == pytest.approx({"ms": seconds * 1e3, "gbps": 8 / seconds, "gpoints": 1 / seconds})


def test_a_family_is_selected_by_its_name() -> None:
    for family in FAMILIES:
        found = [case for case in cases.select((family,)) if case.family != YARDSTICKS]
        assert [case.name for case in found] == cases.of_family(family)
    assert {case.work for case in cases.select(("fft2",))} == {"fft2"}


def made_up(*names: str) -> dict[str, Any]:
    """Return a report in which each library does each case, ours a tenth better than the one before."""
    results = {
        name: {
            "values": {figure: [1000.0 + 100 * k] for figure in ("gbps", "ms", "gkeys", "tflops")},
            "correct": True,
        }
        for k, name in enumerate(names)
    }
    entries = {case.name: {"counts": "", "figures": {}, "results": results} for case in NEW}
    return {
        "schema": 1,
        "device": "a device",
        "driver_version": 1,
        "commit": "",
        "date": "2026-11-21",
        "size": "gpu",
        "rounds": 1,
        "seconds": 60.0,
        "machine": {"cores": 2, "processor": "a processor"},
        "participants": {name: {"version": "1"} for name in names},
        "cases": entries,
    }


@pytest.mark.parametrize(
    ("family", "names"),
    [(family, ("vkdispatch", "torch")) for family in FAMILIES[1:]] + [("scans", ("torch",))],
)
def test_families_are_drawn(tmp_path: Path, family: str, names: tuple[str, ...]) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "plot.svg"
    family_plots.draw_family(made_up(*names), family, path)
    assert path.read_text().startswith("<?xml")
    with pytest.raises(ValueError, match=f"no case of {family}"):
        family_plots.draw_family({**made_up(), "cases": {}}, family, path)


def test_tables_of_a_family(tmp_path: Path) -> None:
    report.save(made_up("vkdispatch", "torch"), tmp_path / "a.json")
    result = CliRunner().invoke(main, ["table", str(tmp_path / "a.json"), "--family", "reductions"])
    assert result.exit_code == 0
    rows = result.output.splitlines()[1:]
    assert len(rows) == len(cases.of_family("reductions"))
    assert "1,100 torch" in rows[0] and "0.91x" in rows[0] and "≥ 4,250 ✗" in rows[0]


def test_docs_take_the_newest_file_that_has_a_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    whole = made_up("vkdispatch")
    brief = ("fft-16", "cumsum-", "reduce-")
    whole["cases"] = {name: entry for name, entry in whole["cases"].items() if name.startswith(brief)}
    alone = {name: entry for name, entry in whole["cases"].items() if name.startswith("reduce-")}
    report.save(whole, tmp_path / "results" / "a.json")
    report.save({**whole, "date": "2026-11-22", "cases": alone}, tmp_path / "results" / "b.json")
    result = CliRunner().invoke(main, ["docs", "-o", str(tmp_path / "docs")])
    assert result.exit_code == 0, result.output
    texts = {path.name: path.read_text() for path in (tmp_path / "docs").rglob("*.inc")}
    assert texts.pop("benchmarks-results.inc") == texts.pop("benchmarks-accuracy.inc") == NO_RESULTS
    assert {name: "2026-11-22" in text for name, text in texts.items()} == {
        f"benchmarks-{family}.inc": family == "reductions" for family in FAMILIES[1:]
    }
    assert not re.search(r"- -$", "".join(texts.values()), re.MULTILINE)  # it would be an empty list
    assert "_static/benchmarks-fft-a-device.svg" in texts["benchmarks-fft.inc"]
    assert (tmp_path / "docs" / "_static" / "benchmarks-fft-a-device.svg").exists()
