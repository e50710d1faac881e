"""The examples write to the current folder, or where `--output` says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WRITERS = sorted(path for path in EXAMPLES.glob("*.py") if "OUTPUT" in path.read_text())


def test_all_writers_are_known() -> None:
    assert len(WRITERS) >= 7
    others = [path for path in EXAMPLES.glob("*.py") if path not in WRITERS]
    assert not [path for path in others if "savefig" in path.read_text() or ".save(" in path.read_text()]


@pytest.mark.parametrize("path", WRITERS, ids=lambda path: path.stem)
def test_the_default_is_the_current_folder(path: Path) -> None:
    assert '\nOUTPUT = Path("' in path.read_text()
    assert '"--output", type=Path, default=OUTPUT' in path.read_text()


@pytest.mark.parametrize("options", [[], ["--output", "pictures/coins.png"]], ids=["default", "output"])
def test_a_program_writes_where_it_says(options: list[str], tmp_path: Path) -> None:
    paths = os.pathsep.join([str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, EXAMPLES / "template_matching.py", *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths, "MPLBACKEND": "agg"},
        check=True,
        capture_output=True,
    )
    expected = options[1] if options else "template_matching.png"
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png")] == [expected]
