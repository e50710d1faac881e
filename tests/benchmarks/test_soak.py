"""The soak: its work leaves nothing behind, and what does is found."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

import vkdispatch as vd
from benchmarks import report, soak, soak_work
from benchmarks.__main__ import main

ROUNDS = 4
COUNTS = ("descriptors", "threads", "objects")

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="there is no /proc to count in"),
    pytest.mark.skipif(os.environ.get("VKDISPATCH_INTERPRET") == "1", reason="it builds nothing"),
]


def counts_after(rounds: range) -> dict[str, int]:
    for turn in rounds:
        assert soak_work.do_round(turn) > 0
    found = soak.sample(0, 0)
    return {name: getattr(found, name) for name in COUNTS}


def test_rounds_leave_nothing_behind() -> None:
    counts_after(range(2))  # what is kept once and for all
    before = counts_after(range(2, 2 + ROUNDS))
    after = counts_after(range(2 + ROUNDS, 2 + 2 * ROUNDS))
    # What tests before this one left to the garbage collector may go meanwhile.
    assert {name: count for name, count in after.items() if count > before[name]} == {}


def test_samples_count_what_is_held() -> None:
    before = soak.sample(0, 0)
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        buffer = vd.Buffer(4, vd.float32)
        with Path(os.devnull).open():
            after = soak.sample(0, 0)
        assert after.descriptors > before.descriptors
        assert after.threads > before.threads
        assert after.objects > before.objects
        assert after.resident > 0
        del buffer
    finally:
        release.set()
        thread.join()


def made_up(figure: str, growth: float) -> list[soak.Sample]:
    """Return 20 samples, one a minute, that grow until they are warm, jump once, and grow by so much each."""
    found = []
    for minute in range(1, 21):
        figures = {"descriptors": 10, "threads": 8, "objects": 30, "resident": 200 << 20}
        first = figures[figure]
        figures[figure] = int(first + first * min(minute, 4) + growth * minute + (minute > 18) * first)
        found.append(soak.Sample(float(minute), 1000 * minute, **figures))
    return found


@pytest.mark.parametrize("bound", soak.BOUNDS, ids=[bound.figure for bound in soak.BOUNDS])
def test_growth_is_found(bound: soak.Bound) -> None:
    assert all(verdict.flat for verdict in soak.judge(made_up(bound.figure, 0)))
    assert all(verdict.flat for verdict in soak.judge(made_up(bound.figure, -bound.divisor)))
    growing = [verdict for verdict in soak.judge(made_up(bound.figure, bound.divisor)) if not verdict.flat]
    assert [verdict.bound for verdict in growing] == [bound]
    assert "GROWS" in str(growing[0])


def test_work_gives_samples() -> None:
    turns: list[int] = []

    def one_piece(turn: int) -> int:
        turns.append(turn)
        return 7

    (found,) = soak.work(1e-9, one_piece)
    assert turns == [0]
    assert found.operations == 7
    assert found.minutes > 0


@pytest.mark.parametrize("growth", [0, 1])
def test_the_command(growth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "soak.json"
    samples = made_up("objects", growth)
    monkeypatch.setattr(soak, "work", lambda minutes: iter(samples))
    done = CliRunner().invoke(main, ["soak", "--minutes", "20", "--json", str(path), "--commit", "abc"])
    assert done.exit_code == growth, done.output
    assert f"Vulkan objects: {['flat', 'GROWS'][growth]}" in done.output
    written = json.loads(path.read_text())
    assert written["flat"] is (growth == 0)
    assert len(written["samples"]) == len(samples)
    with pytest.raises(ValueError, match="no result file"):
        report.load(path)  # other commands leave it alone
    del samples[3:]
    done = CliRunner().invoke(main, ["soak", "--json", str(path)])
    assert done.exit_code == 1
    assert "too few to judge" in done.output
