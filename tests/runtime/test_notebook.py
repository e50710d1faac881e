"""In IPython, errors show the user's cells alone, and call them as IPython does."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("IPython")
RunPython = Callable[..., subprocess.CompletedProcess[str]]

BEGIN = """
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *
x = vd.Buffer((10, 10), vd.float32)
"""
CELLS = {
    "types": """
@vd.shader("data.size")
def wrong(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] & 3
""",
    "call": """
@vd.shader("data.size")
def scale(data: Buff[f32], factor: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * factor
scale(x, "two")
""",
    "index": """
@vd.shader("data.size")
def scatter(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[data[i]] = 1
""",
    "function": "vd.sum(x, axis=5)",
    "method": "x.read_range(5, 2000)",
    "map": """
@vd.map
def masked(value: f32) -> f32:
    return value & 1
vd.sum(masked(x))
""",
    "user": """
@vd.shader("data.size")
def own(data: Buff[f32]) -> None:
    data[0] = {}["key"]
""",
    "name": """
@vd.shader("data.size")
def misspelt(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    if data[i] > 0:
        data[i] = vc.sinn(data[i])
""",
    "late": """
import vkdispatch.numpy as vnp
missing = vnp.zeros(3)[vnp.asarray([5])]
print(missing)
""",
}
# As the first cell of a notebook is: Python compiles each statement by itself, without the imports above it.
CELL_WITH_ITS_IMPORTS = """
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *

def halve(n: i32) -> i32:
    return vc.abs(n // 2) if n % 2 == 0 else 3 * n + 1

positive = lambda n: vc.abs(n) if n < 0 else n

@vd.shader("out.size")
def collatz(out: Buff[i32]) -> None:
    n = positive(vc.global_invocation_id().x.to_dtype(i32) + 1)
    steps = 0
    while n != 1:
        n = halve(n)
        steps += 1
    out[vc.global_invocation_id().x] = steps

out = vd.Buffer(7, vd.int32)
collatz(out)
print(*out.read(0))
"""
SHELL = """
import io, json, re, sys
from contextlib import redirect_stdout, redirect_stderr
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
cells = json.loads(sys.argv[1])
written = {}
for name, cell in cells.items():
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        done = shell.run_cell(cell, store_history=True)
    error = done.error_in_exec
    frames, trace = 0, error.__traceback__ if error is not None else None
    while trace is not None:
        frames, trace = frames + ("vkdispatch" in trace.tb_frame.f_code.co_filename), trace.tb_next
    text = re.sub(r"\\x1b\\[[0-9;]*m", "", output.getvalue())
    written[name] = [text.strip().splitlines(), frames]
print(json.dumps(written))
"""


def run_cells(
    run_python: RunPython, cells: dict[str, str] | None = None, **environment: str
) -> dict[str, tuple[list[str], int]]:
    """Return the lines of each cell's output, and how many frames of the package debuggers see."""
    done = run_python(SHELL, json.dumps(cells or {"begin": BEGIN, **CELLS}), **environment)
    assert done.returncode == 0, done.stderr
    written: dict[str, tuple[list[str], int]] = json.loads(done.stdout)
    return written


def test_errors_show_the_cells(run_python: RunPython, tmp_path: Path) -> None:
    written = run_cells(run_python, IPYTHONDIR=str(tmp_path))
    assert written.pop("begin") == [[], 0]
    most = {
        "types": 17,
        "call": 8,
        "index": 17,
        "function": 6,
        "method": 6,
        "map": 16,
        "user": 18,
        "name": 26,
        "late": 8,
    }
    for number, (name, (lines, frames)) in enumerate(written.items(), 2):
        text = "\n".join(lines)
        assert len(lines) <= most[name], text
        assert f"Cell In[{number}], line" in text and "File " not in text, text
        assert "ipython-input" not in text and "ipykernel" not in text
        assert frames >= 1  # debuggers see them
    assert "got float32 (Cell In[2], line 4)" in "\n".join(written["types"][0])
    assert "scale (Cell In[3], line 1): argument 'factor'" in "\n".join(written["call"][0])
    assert "Cell In[4], line 4, in scatter(data)" in written["index"][0]
    assert written["name"][0][-1].startswith(
        "AttributeError: module 'vkdispatch.codegen' has no attribute 'sinn'"
    )


def test_all_frames_are_shown_on_request(run_python: RunPython, tmp_path: Path) -> None:
    written = run_cells(run_python, VKDISPATCH_TRACEBACK="full", IPYTHONDIR=str(tmp_path))
    lines, _ = written["call"]
    assert len(lines) > 30 and any("shader_function.py" in line for line in lines)


def test_control_flow_in_the_cell_of_the_imports(run_python: RunPython, tmp_path: Path) -> None:
    written = run_cells(run_python, {"cell": CELL_WITH_ITS_IMPORTS}, IPYTHONDIR=str(tmp_path))
    assert written == {"cell": [["0 1 7 2 5 8 16"], 0]}
