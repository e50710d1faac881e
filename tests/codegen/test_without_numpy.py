"""The text of a kernel needs neither NumPy nor the native module, and does not depend on them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.language.random_sources import FEATURES, write

RunPython = Callable[..., subprocess.CompletedProcess[str]]

BARE = """
import sys
sys.modules["numpy"] = sys.modules["vkdispatch_native"] = None
import vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *
@vd.shader("x.size")
def double(x: Buff[f32]):
    i = vc.global_invocation_id().x
    x[i] = x[i] * 2
"""


def _programs() -> list[dict[str, Any]]:
    """Return random kernels of each feature."""
    found = []
    for seed in range(60):
        program = write(seed, (FEATURES[seed % len(FEATURES)],))
        found.append(
            {
                "source": program.source(),
                "kinds": [program.buffers[place].kind for _, place in program.parameters],
                "exec_size": program.exec_size,
                "local_size": program.local_size,
            }
        )
    return found


def _texts(programs: list[dict[str, Any]], *options: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("texts.py")), *options],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    written: dict[str, Any] = json.loads(done.stdout)
    return written


def test_texts_do_not_depend_on_what_is_installed() -> None:
    pytest.importorskip("docutils")
    pytest.importorskip("sphinx")
    programs = _programs()
    usual, bare = _texts(programs), _texts(programs, "--bare")
    assert usual["texts"].keys() == bare["texts"].keys()
    differing = [name for name, text in usual["texts"].items() if bare["texts"][name] != text]
    assert differing == []
    # a browser has no threads to start, and what is imported there is downloaded first
    assert bare["facts"] == {"imported": [], "threads": 1}
    kernels = [text for text in bare["texts"].values() if "void main()" in text]
    assert len(kernels) > 200 and len(bare["texts"]) > 4000


@pytest.mark.parametrize(
    "use",
    [
        "double(None)",
        "double.build()",
        "double.autotune(None, exec_size=4)",
        "vd.Buffer(4, vd.float32)",
        "vd.initialize()",
        "vd.get_devices()",
        "vd.make_context()",
        "vd.get_context()",
        "vd.CommandGraph()",
        "vd.global_graph()",
        "vd.queue_wait_idle()",
        "vd.Image2D((4, 4), vd.float32)",
    ],
)
def test_calls_that_need_a_device_name_what_is_missing(run_python: RunPython, use: str) -> None:
    done = run_python(
        BARE + f"try: {use}\n"
        "except vd.BackendUnavailableError as error:\n"
        "    assert error.backend_name == 'vulkan' and isinstance(error, ImportError)\n"
        "    print(error)\n"
    )
    assert done.stderr == ""
    assert "the native module vkdispatch_native is not installed" in done.stdout
    assert "get_src()" in done.stdout and "pip install" in done.stdout


@pytest.mark.parametrize(
    "use",
    [
        "vd.base.dtype.to_numpy_dtype(vd.float32)",
        "vd.base.dtype.from_numpy_dtype('float32')",
        "double.interpret([1.0])",
        "vd.sum",
        "vd.fft.fft",
    ],
)
def test_calls_that_need_numpy_name_it(run_python: RunPython, use: str) -> None:
    done = run_python(BARE + f"try: {use}\nexcept ImportError as error: print(error)")
    assert done.stderr == ""
    assert "numpy" in done.stdout.lower()


def test_dummy_backend_needs_neither(run_python: RunPython) -> None:
    done = run_python(
        BARE + "vd.initialize(backend='dummy')\n"
        "vd.set_dummy_context_params(max_workgroup_size=(64, 1, 1))\n"
        "double.build()\n"
        "assert 'local_size_x = 64' in double.get_src().code and double.ready\n"
        "try: double(None)\n"
        "except RuntimeError as error: print('dummy backend' in str(error))\n"
    )
    assert (done.stdout.strip(), done.stderr) == ("True", "")


def test_unbuilt_sources_are_not_taken_for_the_native_module(run_python: RunPython) -> None:
    # Python takes a folder without Python files, as in a checkout, for a package that has nothing
    code = BARE.replace("import sys", "import sys, types").replace(
        'sys.modules["vkdispatch_native"] = None',
        'None\nsys.modules["vkdispatch_native"] = types.ModuleType("vkdispatch_native")',
    )
    done = run_python(code + "try: vd.get_devices()\nexcept vd.BackendUnavailableError: print('good')")
    assert (done.stdout.strip(), done.stderr) == ("good", "")


def test_broken_native_module_is_not_taken_for_missing(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "vkdispatch_native.py").write_text("import a_library_that_is_missing")
    done = run_python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import vkdispatch as vd\n"
        "try: vd.shader\nexcept ImportError as error: print(error.name)"
    )
    assert (done.stdout.strip(), done.stderr) == ("a_library_that_is_missing", "")
