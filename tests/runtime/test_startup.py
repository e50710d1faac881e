"""What an import brings along: each of these modules would show in the time that it takes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

RunPython = Callable[..., subprocess.CompletedProcess[str]]

HEAVY = ("dataclasses", "difflib", "hashlib", "numpy.typing", "pathlib", "platformdirs", "sysconfig", "uuid")
SELDOM = (
    "vkdispatch.interpreter",
    "vkdispatch.shader.raw",
    "vkdispatch.shader.map",
    "vkdispatch.cli",
    "click",
)

IMPORT = f"""
import sys
import numpy
before = set(sys.modules)
compiled = []
import re
re._compiler.compile, compile = lambda *args: compiled.append(args[0]) or compile(*args), re._compiler.compile
import vkdispatch, vkdispatch.codegen
new = set(sys.modules) - before
print(sorted(new & set({HEAVY + SELDOM!r})), compiled)
"""


def test_an_import_brings_nothing_heavy_along(run_python: RunPython) -> None:
    done = run_python(IMPORT)
    assert (done.stdout, done.stderr) == ("[] []\n", "")


def test_what_is_imported_late_is_there(run_python: RunPython) -> None:
    done = run_python("import vkdispatch as vd; print(all(hasattr(vd, name) for name in vd.__all__))")
    assert (done.stdout, done.stderr) == ("True\n", "")
