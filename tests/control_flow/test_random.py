"""Random programs in plain Python: the device against Python itself.

VKDISPATCH_PROGRAMS sets how many, VKDISPATCH_FIRST_PROGRAM with which to begin.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from .programs import program
from .running import on_gpu

FIRST = int(os.environ.get("VKDISPATCH_FIRST_PROGRAM", "0"))
PROGRAMS = int(os.environ.get("VKDISPATCH_PROGRAMS", "24"))
COUNT = 64


def load(seed: int, folder: Path) -> Any:
    """Write a program to a file, from where its source is read again, and import it."""
    path = folder / f"program_{seed}.py"
    path.write_text(program(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
def test_random_program(seed: int, tmp_path: Path) -> None:
    module = load(seed, tmp_path)
    expected = [module.main(i) for i in range(COUNT)]
    assert on_gpu(module.main, COUNT).tolist() == expected, f"seed {seed}:\n{program(seed)}"
