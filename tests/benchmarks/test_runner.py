"""Rounds, processes and clocks of the benchmarks, with libraries that are made up."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pytest

from benchmarks import processes, runner, timing
from benchmarks.cases import BY_NAME, Case
from benchmarks.processes import Participant

CASE = Case("call-buffer", "call-buffer", "nothing")


class MadeUp(Participant):
    """A library of this process, which notes its turns."""

    def __init__(self, name: str, turns: list[str], correct: bool = True, fails_at: int = -1) -> None:
        super().__init__(name, [], {})
        self.turns, self.correct, self.fails_at = turns, correct, fails_at
        self.about = {"cases": ["call-buffer"], "skips": {"saxpy": "is too lazy"}}
        self.rounds = 0

    def start(self) -> None:
        """Be there."""

    def load(self, case: str, sizes: dict[str, float], seconds: float) -> dict[str, Any]:
        return {}

    def prepare(self, case: str, sizes: dict[str, float], seconds: float) -> dict[str, Any]:
        return {"repetitions": 7}

    def round(self, seconds: float) -> dict[str, Any]:
        self.turns.append(self.name)
        self.rounds += 1
        if self.rounds == self.fails_at:
            return {"error": "broke"}
        return {"values": {"host_us": float(self.rounds)}}

    def finish(self, seconds: float) -> dict[str, Any]:
        return {"correct": self.correct}


def test_rounds_take_turns_and_so_does_who_begins() -> None:
    turns: list[str] = []
    made_up = [MadeUp(name, turns) for name in "abc"]
    found = runner.run_case(CASE, "tiny", made_up, 3, lambda _: None)
    assert "".join(turns) == "abcbcacab"
    assert found["results"]["b"] == {
        "repetitions": 7,
        "values": {"host_us": [1.0, 2.0, 3.0]},
        "correct": True,
    }
    assert found["rounds"] == 3 and found["figures"]["host_us"]["unit"] == "µs"


def test_failures_and_wrong_results_are_marked() -> None:
    turns: list[str] = []
    made_up = [
        MadeUp("right", turns),
        MadeUp("wrong", turns, correct=False),
        MadeUp("broken", turns, fails_at=2),
    ]
    said: list[str] = []
    found = {"call-buffer": runner.run_case(CASE, "tiny", made_up, 3, said.append)}
    assert "wrong WRONG, broken FAILED" in said[0]
    assert runner.failures(found, "right") == []
    assert runner.failures(found, "wrong") == ["call-buffer: wrong result"]
    assert runner.failures(found, "broken") == ["call-buffer: broke"]
    # after its failure it has no more turns
    assert turns.count("broken") == 2


def test_what_a_library_cannot_do_is_skipped_with_the_reason() -> None:
    found = runner.run_case(BY_NAME["saxpy"], "tiny", [MadeUp("lazy", [])], 2, lambda _: None)
    assert found["results"]["lazy"] == {"skipped": "is too lazy"}
    found = runner.run_case(BY_NAME["copy"], "tiny", [MadeUp("lazy", [])], 2, lambda _: None)
    assert found["results"]["lazy"] == {"skipped": "does not do this"}
    gone = processes.participant("kp", {"kp": processes.ROOT / "no-such-python"})
    found = runner.run_case(CASE, "tiny", [gone], 2, lambda _: None)
    assert "there is no" in found["results"]["kp"]["skipped"]


# It answers one request and dies at the next.
MORTAL = """
import sys
print('{"cases": ["call-buffer"], "skips": {}}', flush=True)
sys.stdin.readline()
print('{"repetitions": 1}', flush=True)
sys.stdin.readline()
print("last words", file=sys.stderr)
sys.exit(3)
"""


def test_a_process_that_dies_is_started_again() -> None:
    mortal = Participant("mortal", [sys.executable, "-c", MORTAL], dict(os.environ))
    for _ in range(2):
        found = runner.run_case(CASE, "tiny", [mortal], 2, lambda _: None)
        error = found["results"]["mortal"]["error"]
        assert "ended with 3" in error and "last words" in error
    mortal.stop()


def test_a_process_that_does_not_answer_is_given_up() -> None:
    # it waits for the end of its input
    silent = Participant(
        "silent", [sys.executable, "-c", "import sys; print('{}', flush=True); sys.stdin.read()"], {}
    )
    silent.start()
    assert silent.prepare("call-buffer", {}, 0.2) == {"error": "no answer within 0 s"}
    assert silent.process is None


# ---- clocks


def sizes(**others: float) -> dict[str, float]:
    return {"seconds": 0.002, "calls": 20, "passes": 5, "launches": 64, **others}


@pytest.mark.parametrize("time", [timing.time_calls, timing.time_each], ids=["calls", "each"])
def test_calls_are_counted(time: Any) -> None:
    made: list[int] = []
    wait = lambda: None  # noqa: E731
    arguments = (wait,) if time is timing.time_calls else ()
    trial = time(lambda: made.append(1), *arguments, lambda calls: calls == len(made), sizes())
    before = len(made)
    values = trial.measure()
    assert len(made) - before == trial.repetitions <= 20
    assert trial.right()
    assert all(value >= 0 for value in values.values())


def test_bytes_are_counted() -> None:
    made: list[int] = []
    trial = timing.time_bytes(lambda: made.append(1), lambda: None, 1e9, lambda n: n == len(made), sizes())
    assert trial.measure()["gbps"] > 0
    assert trial.right() and trial.repetitions <= 5


def test_recordings_are_counted() -> None:
    recorded: list[int] = []
    replayed: list[int] = []

    def make() -> tuple[Any, Any]:
        return lambda: recorded.append(1), lambda: replayed.append(1)

    trial = timing.time_recording(
        make, lambda: None, lambda ran: ran == len(replayed), sizes(length=10, replays=3)
    )
    assert set(trial.measure()) == {"record_us", "submit_us", "dispatch_us"}
    trial.measure()
    assert len(recorded) == 2 and len(replayed) == 2 * (3 + 2)
    assert trial.right()


def test_threads_are_counted() -> None:
    made = [0] * 16

    def work_of(number: int) -> Any:
        def work() -> None:
            made[number] += 1

        return work

    trial = timing.time_threads(work_of, lambda: None, lambda ran: ran == made, sizes())
    assert set(trial.measure()) == {f"launches_{count}" for count in (1, 2, 4, 8, 16)}
    assert trial.right()
    assert min(made) > 1


def test_pattern() -> None:
    assert timing.pattern(9).tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert timing.pattern(9).dtype == np.float32
