"""The command line of the benchmarks, with sizes at which no time means anything."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import cases, report, table
from benchmarks.__main__ import main

RunPython = Callable[..., "CompletedProcess[str]"]


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.output


def made_up(values: dict[str, dict[str, list[float]]], correct: bool = True) -> dict[str, Any]:
    """Return a report of vkdispatch alone: values by case and figure."""
    entries = {
        case: {
            "counts": "",
            "figures": {figure: {} for figure in figures},
            "results": {"vkdispatch": {"values": figures, "correct": correct, "repetitions": 1}},
        }
        for case, figures in values.items()
    }
    return {
        "schema": 1,
        "device": "a device",
        "driver_version": 1,
        "date": "2026-11-21",
        "size": "gpu",
        "participants": {"vkdispatch": {}, "torch": {}},
        "cases": entries,
    }


def written(folder: Path, name: str, found: dict[str, Any]) -> str:
    report.save(found, folder / name)
    return str(folder / name)


def test_a_small_run(tmp_path: Path, run_python: RunPython) -> None:
    path = tmp_path / "result.json"
    arguments = ["call-buffer", "graph-dependent-100", "download-into", "saxpy", "--peers", "none"]
    done = run_python(None, "-m", "benchmarks", *arguments, "--size", "tiny", "--json", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "eager call, host time: 1 buffer" in done.stdout
    assert str(path) in done.stdout
    found = report.load(path)
    assert list(found["cases"]) == ["call-buffer", "graph-dependent-100", "download-into", "saxpy"]
    assert found["size"] == "tiny" and found["rounds"] == cases.ROUNDS["tiny"]
    for key in ("device", "driver_version", "machine", "participants", "commit", "seconds", "date"):
        assert found[key] is not None
    assert set(found["participants"]) == {"vkdispatch"}
    for name, entry in found["cases"].items():
        outcome = entry["results"]["vkdispatch"]
        assert outcome["correct"] is True, (name, outcome)
        assert entry["counts"] and entry["sizes"]["seconds"] == cases.SIZES["tiny"]["seconds"]
        for figure, rounds in outcome["values"].items():
            assert len(rounds) == found["rounds"] and all(value > 0 for value in rounds)
            assert entry["figures"][figure]["counts"] == cases.FIGURES[figure][2]


def test_list_names_every_case() -> None:
    code, output = call("--list")
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()] == list(cases.BY_NAME)
    code, output = call("graph-", "saxpy", "--list")
    assert [line.split()[0] for line in output.splitlines()][-2:] == ["graph-independent-100000", "saxpy"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing-of-that-kind"], "there is no case 'nothing-of-that-kind'; there are: call-buffer"),
        (["--peers", "nobody"], "nobody; there are: vkdispatch-0.1.0, kp"),
        (["--peer-python", "nobody=/usr/bin/python3"], "nobody; there are: vkdispatch"),
        (["--rounds", "0"], "--rounds"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], said: str) -> None:
    code, output = call(*arguments)
    assert code == 2
    assert said in output


def test_each_row_is_a_case_and_each_case_has_a_row() -> None:
    assert {row.case for row in cases.ROWS} == set(cases.BY_NAME)
    assert {row.figure for row in cases.ROWS} <= set(cases.FIGURES)


def test_each_case_is_done_by_us() -> None:
    from benchmarks.libraries import ours

    assert set(ours.CASES) == set(cases.WORKS)


BEFORE = {
    "call-buffer": {"host_us": [1.0, 1.1, 1.05]},
    "saxpy": {"gbps": [4000.0, 4100.0, 4050.0]},
    "launch-wait": {"wall_us": [10.0, 12.0, 11.0]},
}


def changed(**factors: float) -> dict[str, Any]:
    """Return the report of BEFORE with each case's values multiplied."""
    values = copy.deepcopy(BEFORE)
    for case, factor in factors.items():
        for figures in (values[case.replace("_", "-")],):
            for figure in figures:
                figures[figure] = [value * factor for value in figures[figure]]
    return made_up(values)


@pytest.mark.parametrize(
    ("after", "code", "said"),
    [
        (changed(), 0, "nothing changed by more than 5% beyond noise, in 3 figures"),
        (changed(call_buffer=1.5), 1, "1.50x slower"),
        (changed(call_buffer=0.5), 0, "2.00x faster"),
        # more bytes a second are better
        (changed(saxpy=2.0), 0, "2.00x faster"),
        (changed(saxpy=0.5), 1, "2.00x slower"),
        # within the range of the first file's rounds
        (changed(launch_wait=1.15), 0, "nothing changed"),
        # beyond noise, but not beyond the threshold
        (changed(saxpy=0.92), 0, "1.09x slower"),
        (made_up(BEFORE, correct=False), 1, "no right result any more: call-buffer, launch-wait, saxpy"),
    ],
)
def test_compare(tmp_path: Path, after: dict[str, Any], code: int, said: str) -> None:
    files = [written(tmp_path, "a.json", made_up(BEFORE)), written(tmp_path, "b.json", after)]
    found, output = call("compare", *files)
    assert said in output
    assert found == code


def test_compare_says_what_cannot_be_compared(tmp_path: Path) -> None:
    other = {**made_up(BEFORE), "device": "another device"}
    files = [written(tmp_path, "a.json", made_up(BEFORE)), written(tmp_path, "b.json", other)]
    assert "note: device: a device and another device" in call("compare", *files)[1]


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 0}', "no json"])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    code, output = call("table", str(path))
    assert code == 1
    assert "is no result file" in output


def test_table_finds_the_best_peer(tmp_path: Path) -> None:
    found = made_up({"saxpy": {"gbps": [4300.0]}, "call-buffer": {"host_us": [3.0]}})
    for case, slow, fast in (
        ("saxpy", {"gbps": [900.0]}, {"gbps": [4338.0]}),
        ("call-buffer", {}, {"host_us": [6.5]}),
    ):
        results = found["cases"][case]["results"]
        results["torch"] = {"values": fast, "correct": True, "repetitions": 1}
        results["kp"] = {"values": slow, "correct": True, "repetitions": 1}
        # what is wrong is not compared with
        results["cupy"] = {"values": {"gbps": [9e9], "host_us": [0.1]}, "correct": False, "repetitions": 1}
    found["participants"] = {name: {} for name in ("vkdispatch", "torch", "kp", "cupy")}
    rows = {line.row.label: table.cells(line) for line in table.lines(found)}
    assert rows["y = a x + y, one element"][2:7] == ("4,300", "0%", "≥ 4,250 ✓", "4,338 torch", "0.99x")
    assert rows["eager call, host time: 1 buffer"][2:7] == ("3.00", "0%", "≤ 2.00 ✗", "6.50 torch", "2.17x")
    code, output = call("table", "--rst", written(tmp_path, "a.json", found))
    assert code == 0
    assert output.startswith(".. list-table::")


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    values = {**BEFORE, "graph-dependent-100": {"dispatch_us": [2.0], "record_us": [3.0]}}
    output = tmp_path / "folder" / "plot.svg"
    code, said = call("plot", written(tmp_path, "a.json", made_up(values)), "-o", str(output))
    assert code == 0, said
    assert output.read_text().startswith("<?xml")
    code, said = call("plot", written(tmp_path, "b.json", made_up({})), "-o", str(output))
    assert code == 1
    assert "nothing" in said or "no case" in said


def test_results_that_are_kept_can_be_read() -> None:
    for path in report.latest(cases.BY_NAME):
        found = json.loads(path.read_text())
        assert table.as_text(found)
