"""A sample of the fuzzers' mutants: none ends the process."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.spirv.reflection import reflect
from vkdispatch.base.validation import read_valid_module

from . import driving, glsl_sources, spirv_modules


def on_a_cpu() -> None:
    if not vd.get_context().device_infos[0].is_cpu():
        pytest.skip("what other drivers make of nonsense is not known")


@pytest.mark.parametrize("module", ["spirv_modules", "glsl_sources"])
def test_no_mutant_ends_the_process(module: str) -> None:
    on_a_cpu()
    verdicts, failures = driving.run(f"tests.fuzz.{module}", range(7000, 7400), 1, 120)
    assert failures == {}
    assert verdicts["taken"] > 10
    assert verdicts["refused"] > 200
    assert sum(verdicts.values()) == 400


def test_mutants_follow_from_their_seed() -> None:
    assert [spirv_modules.mutant(seed) for seed in (1, 2, 1)] == [
        spirv_modules.mutant(1),
        spirv_modules.mutant(2),
        spirv_modules.mutant(1),
    ]
    assert glsl_sources.mutant(5) == glsl_sources.mutant(5)
    assert len({spirv_modules.mutant(seed) for seed in range(100)}) > 95
    assert len({glsl_sources.mutant(seed) for seed in range(100)}) > 95


def test_crashes_and_hangs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaking.py").write_text(
        "import os, time\n"
        "from tests.fuzz.driving import work\n"
        "def attempt(seed):\n"
        "    if seed == 3: os.abort()\n"
        "    if seed == 5: time.sleep(1000)\n"
        "    return 'taken'\n"
        "work(attempt)\n"
    )
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{root}")
    verdicts, failures = driving.run("breaking", range(8), 2, 5)
    assert failures == {3: "crash: exit status -6", 5: "hang"}
    assert verdicts["taken"] == 6
    assert sys.executable


@pytest.mark.parametrize("original", spirv_modules.originals(), ids=range(len(spirv_modules.originals())))
def test_corrupted_modules_are_refused(original: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> None:
    choice = random.Random(len(original))
    refused = 0
    for _ in range(300):
        words = original.copy()
        if choice.randrange(2):
            words[choice.randrange(len(words))] = choice.choice(
                [choice.randrange(200), choice.randrange(2**32)]
            )
        else:
            words.view(np.uint8)[choice.randrange(words.nbytes)] ^= choice.randrange(1, 256)
        try:
            reflect(read_valid_module(words.tobytes()))
        except ValueError:
            refused += 1
    assert refused > 150  # names and lines may be anything
