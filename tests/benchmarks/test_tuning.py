"""`python -m benchmarks tune`, and that results are right with every candidate of every number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import vkdispatch as vd
from benchmarks.__main__ import main
from benchmarks.tuning import calls, search
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.families import tuning
from vkdispatch.families.tuning import H200_AND_LLVMPIPE, Number, Table
from vkdispatch.rearrange.moves import TakeTuning
from vkdispatch.sorting.launching import Tuning

RunPython = Callable[..., "CompletedProcess[str]"]
NUMBERS = [number for table in calls.TABLES for number in table.numbers.values()]

# Each candidate is used by the first call that it decides. Then the call is made with the first candidates of
# all numbers of the family together, and with the last ones.
CANDIDATES = """
import contextlib, sys
from benchmarks.tuning import calls

family, is_cpu = sys.argv[1], sys.argv[2] == "cpu"
numbers = [each for each in calls.list_numbers(is_cpu) if each[0].family.split(".")[0] == family]
if family == "scans" and not is_cpu:
    numbers[0][0].lookback = 1
decided = {number.key for _, number in numbers}
seen, count = set(), 0
for call in calls.list_calls():
    mine = [each for each in numbers if each[1].key in call.numbers - seen]
    if not mine:
        continue
    seen |= call.numbers
    trial = call.make(1 << 13)
    want, usual = trial.expected(), trial.results()
    assert calls.is_close(usual, want, call.tolerance), call.name
    for table, number in mine:
        for value in number.candidates:
            with table.change(**{number.name: value}):
                got = trial.results()
            assert calls.is_close(got, want, call.tolerance), (call.name, number.key, value)
            if not number.changes_rounding:
                assert calls.is_close(got, usual, 0), ("changes bits", call.name, number.key, value)
            count += 1
    for end in (0, -1):
        with contextlib.ExitStack() as changes:
            for table in {table for table, _ in numbers}:
                values = {n.name: n.candidates[end] for own, n in numbers if own is table}
                changes.enter_context(table.change(**values))
            assert calls.is_close(trial.results(), want, call.tolerance), (call.name, "together", end)
assert seen >= decided, decided - seen
print(count)
"""


@pytest.mark.parametrize("plans", ["cpu", "gpu"])
@pytest.mark.parametrize(
    "family", ["reduce", "scans", "sorting", "selection", "matrices", "rearrange", "random", "fft"]
)
def test_results_are_right_with_every_candidate(family: str, plans: str, run_python: RunPython) -> None:
    # without threads, workgroups run in order, so those that look back need not wait
    done = run_python(CANDIDATES, family, plans, VKDISPATCH_PLAN=plans, LP_NUM_THREADS="0", timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 3


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.key)
def test_numbers_are_described(number: Number[Any]) -> None:
    assert number.found_on
    if number.candidates:
        assert number.default in number.candidates
        assert len(set(map(repr, number.candidates))) == len(number.candidates)
        assert any(number.key in call.numbers for call in calls.list_calls())


def test_keys_are_unique() -> None:
    keys = [number.key for number in NUMBERS]
    assert len(set(keys)) == len(keys)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    kept = vd.get_context().kept
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path))
    kept.pop(tuning._STATE_KEY, None)
    yield tmp_path
    kept.pop(tuning._STATE_KEY, None)


def tune(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["tune", *arguments])
    return result.output if result.exit_code == 0 else f"exit code {result.exit_code}: {result.output}"


def test_a_quick_run_keeps_what_won(cache: Path) -> None:
    found = tune("--quick", "--only", "rearrange.take,rearrange.staging")
    lines = [line.split() for line in found.splitlines()[1:]]
    assert [line[0] for line in lines][-2:] == ["rearrange.take.ahead", "rearrange.take.few"]
    won = {line[0]: line[3] for line in lines if "->" in line}
    shown = [line.split() for line in tune("--show").splitlines()[1:] if "->" in line]
    assert {line[0]: line[3] for line in shown} == won


def test_what_is_kept_is_shown_and_forgotten(cache: Path) -> None:
    tuning.keep(vd.get_context(), {Tuning.run_least: 2048, Tuning.run_group: 4})
    assert "512  -> 2048" in tune("--show", "--only", "sorting")
    assert "nothing is kept" in tune("--show", "--only", "rearrange")
    assert "sorting.run_least" in tune("--forget", "--only", "sorting.run_least")
    assert "sorting.run_least" not in tune("--show")
    assert "sorting.run_group" in tune("--forget")
    assert "nothing is kept" in tune("--show")
    assert "nothing was kept" in tune("--forget")


def test_a_default_that_wins_again_is_no_longer_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "measure", lambda _, __, values, *___: {value: [1.0] for value in values})
    tuning.keep(vd.get_context(), {TakeTuning.few: 1 << 16})
    assert "stays" in tune("--quick", "--only", "rearrange.take.few")
    assert "nothing is kept" in tune("--show")


def test_wrong_options(cache: Path, monkeypatch: pytest.MonkeyPatch, run_python: RunPython) -> None:
    assert tune("--only", "sortin").startswith("exit code 1: Error: --only sortin: ")
    assert "exclude each other" in tune("--show", "--forget")
    done = run_python(None, "-m", "benchmarks", "tune", "--device", "no such device", "--show")
    assert done.returncode == 1
    assert "no such device" in done.stderr
    monkeypatch.setenv("VKDISPATCH_CACHE", "off")
    assert "VKDISPATCH_CACHE" in tune("--quick")


def test_numbers_that_change_last_bits_are_left_out_unless_allowed() -> None:
    usual = [number for _, number in search.select_numbers([], False)]
    everything = [number for _, number in search.select_numbers([], True)]
    assert not any(number.changes_rounding for number in usual)
    assert [number for number in everything if not number.changes_rounding] == usual
    assert any(number.changes_rounding for number in everything)


# ---- the choice, with times that are made up


def test_a_value_wins_beyond_the_noise() -> None:
    default, value = 1, 2
    slow, fast = [1.0, 1.1, 1.2], [0.8, 0.85, 0.9]

    def wins(*calls: tuple[list[float], list[float]]) -> bool:
        return search.wins([{default: a, value: b} for a, b in calls], default, value)

    assert wins((slow, fast))
    assert wins((slow, fast), (slow, slow))
    assert not wins((fast, slow))
    # by less than 3 %, by the noise, and at the cost of another call
    assert not wins(([1.0, 1.0, 1.0], [0.98, 0.98, 0.98]))
    assert not wins(([1.0, 1.1, 1.2], [0.5, 0.9, 1.05]))
    assert not wins((slow, [0.1, 0.1, 0.1]), (fast, slow))


class Made(Table, family="made", found_on=H200_AND_LLVMPIPE):
    number = Number(1, (1, 2, 3, 4, 5))
    rounding = Number(1, (1, 2), changes_rounding=True)


def made_up(table: Made, name: str) -> calls.Trial:
    """Return a call whose results are wrong with 3, and of other bits with 2 and 5; it refuses 4."""

    def results() -> list[Any]:
        value = getattr(table, name)
        if value == 4:
            raise ArgumentValueError("no room")
        return [np.float32([1, 2, 3 if value == 3 else 2.000001 if value in (2, 5) else 2])]

    return calls.Trial(lambda: None, results, results)


def test_wrong_results_win_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(_: Any, __: Any, values: Any, *___: Any) -> search.Times:
        return {value: [1.0 / value] * 3 for value in values}

    monkeypatch.setattr(search, "measure", measure)
    table, effort = Made(), search.Effort(1, 3, 0.0)
    call = calls.Call("made-up call", frozenset(), lambda n: made_up(table, "number"), 1e-5)
    found = search.judge(table, Made.number, [(call, call.make(1))], effort)
    assert found.wrong == {3: "made-up call"}
    assert set(found.refused) == {2, 4, 5}
    assert "last bits" in found.refused[2]
    assert found.refused[4] == "no room"
    assert found.best == 1
    assert "GIVES A WRONG RESULT" in search.describe(found)
    # where other bits are allowed, the value wins
    found = search.judge(table, Made.rounding, [(call, made_up(table, "rounding"))], effort)
    assert found.best == 2
    assert "1  -> 2 (+100.0%)" in search.describe(found)
