"""The sweep of the transforms' accuracy: its truth, its bookkeeping and what it says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import accuracy
from benchmarks.processes import Participant

pytest.importorskip("scipy")


@pytest.mark.parametrize("n", [2, 3, 16, 67, 105, 1021])
def test_truth_against_sums_in_long_double(n: int) -> None:
    given = accuracy.numbers(n, "complex128").astype(np.clongdouble)
    turn = 2 * np.arctan2(np.longdouble(0), np.longdouble(-1)) / n
    # products of indices mod n: the angles are small, so their sines are exact to the last place
    angles = turn * (np.outer(np.arange(n), np.arange(n)) % n).astype(np.longdouble)
    want = given @ (np.cos(angles) - 1j * np.sin(angles))
    assert accuracy.error_of(accuracy.truth(given), want) < 1e-18 * math.sqrt(n)


def test_truth_against_more_digits() -> None:
    mpmath = pytest.importorskip("mpmath")
    for n in (5, 64, 97):
        given = accuracy.numbers(n, "complex64")[:1]
        with mpmath.workdps(40):
            row = [mpmath.mpc(complex(value)) for value in given[0]]
            roots = [mpmath.expjpi(mpmath.mpf(-2) * k / n) for k in range(n)]
            want = [mpmath.fsum(x * roots[k * j % n] for j, x in enumerate(row)) for k in range(n)]
            found = accuracy.truth(given)[0]
            for got, exact in zip(found, want, strict=True):
                difference = abs(complex(got - np.clongdouble(complex(exact))))
                # what complex() loses of the exact value
                assert difference < 4e-16 * abs(complex(exact)) + 1e-18


def test_lengths() -> None:
    assert accuracy.lengths_of("8,2-4,10-20/5") == [2, 3, 4, 8, 10, 15, 20]
    every = accuracy.lengths_of("all")
    assert every[:4095] == list(range(2, 4097)) and 2**20 in every and 2**24 in every
    assert accuracy.lengths_of("beyond")[0] > 4096
    chunks = list(accuracy.chunks_of(every))
    assert [n for chunk in chunks for n in chunk] == every
    points = [sum(n * accuracy.rows_of(n) for n in chunk) for chunk in chunks]
    assert all(p <= accuracy.CHUNK or len(c) == 1 for p, c in zip(points, chunks, strict=True))


def test_bounds() -> None:
    assert accuracy.bound(2, "complex64") == 2e-7
    assert accuracy.bound(4096, "complex64") == pytest.approx(2e-7 * math.sqrt(12))
    assert accuracy.bound(16, "complex128") == pytest.approx(4e-7 / 2**29)
    entry = {"lengths": [2, 16], "errors": [1e-7, 6e-7]}
    assert accuracy.beyond_bound(entry, "complex64") == {16: pytest.approx(1.5)}
    # what is no number is beyond all bounds
    assert list(accuracy.beyond_bound({"lengths": [2], "errors": [math.nan]}, "complex64")) == [2]


class InProcess(Participant):
    """NumPy, as if it were a process: refuses 17, answers nothing at 40, and is wrong at 20."""

    def __init__(self) -> None:
        super().__init__("made up", [], {})
        self.about = {"version": "0", "cases": [], "skips": {}}

    def start(self) -> None:
        """Be there."""

    def transform(self, source: Path, to: Path, seconds: float) -> dict[str, Any]:
        with np.load(source) as arrays:
            if "40" in arrays:
                return {"error": "ended with -11"}
            found = {
                n: np.fft.fft(array) * (1.001 if n == "20" else 1) for n, array in arrays.items() if n != "17"
            }
            refused = {n: "too prime" for n in arrays if n == "17"}
        np.savez(to, **found)
        return {"refused": refused}


def test_a_sweep_keeps_errors_and_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy.processes, "participant", lambda *_: InProcess())
    monkeypatch.setattr(accuracy, "CHUNK", 60)
    lengths = [5, 16, 17, 20, 40]
    entry = accuracy.measure("made up", {}, lengths, "complex128", 2, math.inf)
    assert entry["lengths"] == [5, 16, 20] and entry["version"] == "0"
    assert all(error < 1e-15 for error in (entry["errors"][0], entry["errors"][1]))
    assert entry["errors"][2] == pytest.approx(1e-3, rel=1e-3)
    assert entry["refused"] == {"too prime": [17], "ended with -11": [40]}
    assert list(accuracy.beyond_bound(entry, "complex128")) == [20]
    assert "3 lengths" in accuracy.summary(entry, "complex128") and "at 20" in accuracy.summary(
        entry, "complex128"
    )
    # no time: nothing
    late = accuracy.measure("made up", {}, lengths, "complex128", 1, -math.inf)
    assert late["lengths"] == [] and late["refused"] == {}


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(accuracy.main, arguments)
    return result.exit_code, result.output


def test_the_command_with_a_process(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    arguments = ["--libraries", "numpy,torch", "--peer-python", f"torch={tmp_path}/none", "--json", str(path)]
    code, output = call(*arguments, "--lengths", "2-9,1021", "--processes", "2")
    assert code == 0, output
    assert "complex64 torch: not there: there is no" in output
    found = accuracy.load(path)
    for kind in ("complex64", "complex128"):
        entry = found["results"][kind]["numpy"]
        assert entry["lengths"] == [*range(2, 10), 1021]
        assert not accuracy.beyond_bound(entry, kind)
        assert max(entry["errors"]) > 0
    page = accuracy.as_page(found, "picture.svg")
    assert "* complex64, numpy: 9 lengths" in page and ".. image:: picture.svg" in page


def test_an_error_of_ours_beyond_the_bound_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"is too prime": [17, 19, 23, 29, 31, 37, 41]}
    entry = {"device": "d", "lengths": [64], "errors": [1e-5], "refused": refused, "seconds": 1.0}
    monkeypatch.setattr(accuracy, "measure", lambda *_: entry)
    path = tmp_path / "a.json"
    arguments = ["--dtype", "complex64", "--json", str(path), "--commit", "c"]
    code, output = call("--libraries", "vkdispatch", *arguments)
    assert code == 1 and "complex64 64: 20.4" in output
    assert "complex64 17, 19, 23, 29, 31 and 2 others: refused: is too prime" in output
    # the others may be as they are
    assert call("--libraries", "torch", *arguments)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--lengths", "x"], "--lengths"), (["--libraries", "nobody"], "nobody; there are: vkdispatch, torch")],
)
def test_wrong_arguments_are_named(arguments: list[str], said: str) -> None:
    code, output = call(*arguments)
    assert code == 2 and said in output


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 1}'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="no accuracy file"):
        accuracy.load(path)


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks import accuracy_plot

    entry = {"lengths": [2, 64, 1021], "errors": [1e-8, 1e-7, 2e-7]}
    found = {
        "device": "d",
        "date": "2026-11-21",
        "results": {"complex64": {"vkdispatch": entry, "torch": {}}},
    }
    accuracy_plot.draw(found, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    found["results"] = {"complex64": {"torch": {"absent": "no"}}}
    with pytest.raises(ValueError, match="no errors"):
        accuracy_plot.draw(json.loads(json.dumps(found)), tmp_path / "b.svg")
