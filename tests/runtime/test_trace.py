"""VKDISPATCH_TRACE=1..4 prints what is built and launched on standard error."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32

@vd.shader("x.size", check="bounds")
def shift(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] + 1

x = vd.asbuffer(np.ones(5000, np.float32))
shift(x)
shift(x)
print(vd.sum(x).read(0))
print(vd.sum(x).read(0))
graph = vd.CommandGraph()
shift(x, graph=graph)
"""
STAGES = ("trace", "passes", "GLSL", "SPIR-V", "pipeline")
RunPython = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("level", [0, 1, 2, 3, 4])
def test_each_level_prints_what_the_ones_before_do(run_python: RunPython, level: int) -> None:
    done = run_python(PROGRAM, VKDISPATCH_TRACE=str(level), VKDISPATCH_CACHE="off")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "15000.0\n15000.0\n"
    text = done.stderr
    stages = " ".join(rf"{name} \d+\.\d\d ms,?" for name in STAGES)
    built = re.findall(rf"^\[TRACE\] (\w+)( \(.*:\d+\))?: workgroups of \(.*\); {stages}$", text, re.M)
    names = [name for name, _ in built]
    if level == 0:
        assert text == ""
        return
    assert names[0] == "shift" and names.count("shift") == 1
    assert any(name.startswith("sum_") for name in names)
    assert text.count("void main() {") == (len(built) if level >= 2 else 0)
    assert ("[TRACE] shift (<string>:5): checks: prints, asserts" in text) == (level >= 3)
    assert ("buffer diagnostics: uint32" in text) == (level >= 3)
    assert text.count("[TRACE] launches shift (<string>:5): (5000, 1, 1) invocations") == 2 * (level >= 4)
    assert text.count("[TRACE] records shift") == (level >= 4)
    planned = re.findall(r"^\[TRACE\] sum: what it launches.*\n(?:.*\n)*?\[TRACE\] sum: ends$", text, re.M)
    assert bool(planned) == (level >= 4)  # equal calls may be repeated without another plan
    assert all("[TRACE] launches sum_" in part for part in planned)


def test_kernels_from_the_disk_have_no_other_stages(run_python: RunPython, tmp_path: Path) -> None:
    for has_run in (False, True):
        done = run_python(PROGRAM, VKDISPATCH_TRACE="1", VKDISPATCH_CACHE=str(tmp_path))
        assert done.returncode == 0, done.stderr
        (line,) = re.findall(r"^\[TRACE\] sum_\w+: (workgroups of .*)$", done.stderr, re.M)[:1]
        assert ("trace " in line) == ("GLSL " in line) == (not has_run)
        assert "pipeline " in line
    shown = run_python(PROGRAM, VKDISPATCH_TRACE="3", VKDISPATCH_CACHE=str(tmp_path)).stderr
    assert re.search(r"^\[TRACE\] sum_\w+: trace: the program as traced$", shown, re.M)


@pytest.mark.parametrize("value", ["5", "-1", "yes", "1.5"])
def test_another_value_is_an_error_that_names_the_variable(run_python: RunPython, value: str) -> None:
    done = run_python("import vkdispatch as vd; vd.shader", VKDISPATCH_TRACE=value)
    assert done.returncode != 0
    assert f"VKDISPATCH_TRACE: expected an integer from 0 to 4, got {value!r}" in done.stderr
