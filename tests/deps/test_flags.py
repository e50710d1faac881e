"""Hardening flags are asked of the compiler: one that knows no flag of a group gets another, or none."""

from __future__ import annotations

import sys
from pathlib import Path

import hardening
import pytest

ALL = [flag for group in hardening.GROUPS for flag in group[0]]


def compiler(folder: Path, unknown: set[str]) -> tuple[str, ...]:
    """Return a command that takes all flags but these."""
    program = folder / "compiler.py"
    program.write_text(f"import sys\nsys.exit(bool({unknown!r} & set(sys.argv)))\n")
    return (sys.executable, str(program))


@pytest.mark.parametrize(
    ("unknown", "lost", "instead"),
    [
        (set[str](), set[str](), set[str]()),
        ({"-fcf-protection"}, {"-fcf-protection"}, {"-mbranch-protection=standard"}),
        ({"-D_FORTIFY_SOURCE=3"}, {"-D_FORTIFY_SOURCE=3"}, {"-D_FORTIFY_SOURCE=2"}),
        ({"-fno-plt", "-fstack-clash-protection"}, {"-fno-plt", "-fstack-clash-protection"}, set[str]()),
        ({"-fcf-protection", "-mbranch-protection=standard"}, {"-fcf-protection"}, set[str]()),
    ],
    ids=["none", "another", "older", "nothing", "neither"],
)
def test_flags(tmp_path: Path, unknown: set[str], lost: set[str], instead: set[str]) -> None:
    found = hardening.compile_flags(compiler(tmp_path, unknown))
    assert set(found) == set(ALL) - lost | instead
    if instead == {"-D_FORTIFY_SOURCE=2"}:
        assert found.index("-U_FORTIFY_SOURCE") < found.index("-D_FORTIFY_SOURCE=2")


def test_a_compiler_that_does_not_work_gets_no_flags(tmp_path: Path) -> None:
    assert hardening.compile_flags(compiler(tmp_path, {"-Werror"})) == []
