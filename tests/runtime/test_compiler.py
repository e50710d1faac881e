"""What is compiled once and then taken from the disk cache, also in another process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.base.compilation import compiler, disk_cache
from vkdispatch.base.compute_plan import ComputePlan

RunPython = Callable[..., subprocess.CompletedProcess[str]]

SOURCE = """#version 450
#extension GL_GOOGLE_cpp_style_line_directive : require
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Data { float data[]; };
#line 7 "mine.py"
void main() { data[gl_GlobalInvocationID.x] += 1.0; }
"""

PROGRAM = """
import sys
import numpy as np
import vkdispatch as vd, vkdispatch.codegen as vc
import vkdispatch_native as native

@vd.shader("data.size")
def double(data: vc.Buff[vc.f32], by: vc.Const[vc.f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] * by

raw = vd.glsl_kernel('''#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Data { float data[]; };
void main() { data[gl_GlobalInvocationID.x] += 1.0; }
''', [('data', vc.Buff[vc.f32])], exec_size=8)
data = vd.asbuffer(np.arange(8, dtype=np.float32))
double(data, 3.0)
raw(data)
assert data.read(0).tolist() == [3.0 * i + 1 for i in range(8)]
print(native.compile_count())
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _compiles(source: str) -> tuple[bytes, int]:
    before = native.compile_count()
    code = compiler.compile_glsl(source, "kernel")
    return code, native.compile_count() - before


def test_second_build_uses_the_cache() -> None:
    code, compiles = _compiles(SOURCE)
    assert compiles == 1
    assert _compiles(SOURCE) == (code, 0)
    # where a line stands does not matter, what it says does
    assert _compiles(SOURCE.replace('7 "mine.py"', '99 "theirs.py"')) == (code, 0)
    assert native.compile_glsl(SOURCE.replace('7 "mine.py"', '99 "theirs.py"')) == code
    other, compiles = _compiles(SOURCE.replace("1.0", "2.0"))
    assert (other != code, compiles) == (True, 1)


def test_source_that_uses_its_line_number() -> None:
    source = SOURCE.replace("1.0", "float(__LINE__)")
    code, _ = _compiles(source)
    other, compiles = _compiles(source.replace("#line 7", "#line 8"))
    assert (other != code, compiles) == (True, 1)


def test_sources_that_do_not_compile_are_not_cached() -> None:
    for _ in range(2):
        with pytest.raises(vd.ShaderBuildError, match="mine"):
            compiler.compile_glsl(SOURCE.replace("+= 1.0", "+= missing"), "kernel")
    assert disk_cache.entries() == {}


@pytest.mark.parametrize("change", [b"", b"\0" * 64, b"junk"])
def test_damaged_cache_entries_are_recompiled(change: bytes, folder: Path) -> None:
    code, _ = _compiles(SOURCE)
    (path,) = (folder / "spirv").glob("*.vkd")
    path.write_bytes(path.read_bytes()[: -len(change) - 9] + change)
    assert _compiles(SOURCE) == (code, 1)
    assert _compiles(SOURCE) == (code, 0)


def test_other_compiler_version_recompiles(monkeypatch: pytest.MonkeyPatch) -> None:
    _compiles(SOURCE)
    monkeypatch.setattr(compiler, "_identity", "glslang 99")
    assert _compiles(SOURCE)[1] == 1


def test_a_second_process_compiles_nothing(run_python: RunPython, folder: Path) -> None:
    for expected in ("2\n", "0\n"):
        done = run_python(PROGRAM)
        assert (done.stdout, done.stderr) == (expected, "")
    done = run_python(PROGRAM, VKDISPATCH_CACHE="off")
    assert done.stdout == "2\n"
    assert set(disk_cache.entries()) >= {"spirv", "program"}


def test_processes_at_once_on_an_empty_cache() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in running:
        output, errors = process.communicate(timeout=300)
        assert (process.returncode, errors, output in ("0\n", "1\n", "2\n")) == (0, "", True)


# ---- what drivers make of it

KEYS = {"binding_types": [1], "push_constant_size": 16, "entry_point": "main", "specialization": ()}


def test_cache_keys_cover_every_input_of_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = vd.get_devices()[:1]

    def key(spirv: bytes = b"code", **changes: object) -> str:
        (text,) = compiler.pipeline_keys(devices, spirv, **{**KEYS, **changes})  # type: ignore[arg-type]
        return text

    keys = {
        key(),
        key(b"other"),
        key(binding_types=[1, 1]),
        key(push_constant_size=4),
        key(entry_point="other"),
        key(specialization=[(1, b"\0\0\0\1")]),
    }
    assert len(keys) == 6
    monkeypatch.setattr(devices[0], "driver_version", devices[0].driver_version + 1)
    assert key() not in keys
    monkeypatch.setenv("VKDISPATCH_CACHE", "off")
    assert compiler.pipeline_keys(devices, b"code", **KEYS) == []  # type: ignore[arg-type]


def test_pipelines_are_loaded_from_the_cache() -> None:
    keys = ["a", "b"]
    assert compiler.load_pipelines(keys) == [b"", b""]
    compiler.store_pipelines(keys, [b"of a", b""])
    assert compiler.load_pipelines(keys) == [b"of a", b""]
    compiler.store_pipelines(keys, [b"", b"of b"])
    assert compiler.load_pipelines(keys) == [b"of a", b"of b"]


@pytest.mark.parametrize("given", [b"", b"junk", bytes(32), bytes(4096), b"\x20\0\0\0\1\0\0\0" + bytes(4096)])
def test_a_driver_does_not_get_pipelines_of_another(given: bytes) -> None:
    engine = vd.get_context()._native
    code = native.compile_glsl(SOURCE)
    plan = native.Plan(engine, code, [1], 0, "add", "main", (), [given])
    (data,) = plan.new_cache_data()
    if data:
        assert len(data) > 32
        again = native.Plan(engine, code, [1], 0, "add", "main", (), [data])
        assert again.new_cache_data() == [b""]  # it knows it already
    assert native.Plan(engine, code, [1], 0, "add").new_cache_data() == []


def test_cached_plan_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[list[bytes]] = []
    load = compiler.load_pipelines

    def note(keys: list[str]) -> list[bytes]:
        kept.append(load(keys))
        return kept[-1]

    monkeypatch.setattr("vkdispatch.base.compute_plan.load_pipelines", note)
    for _ in range(2):
        kernel = vd.glsl_kernel(SOURCE, [("data", vc.Buff[vc.f32])], exec_size=8)
        data = vd.asbuffer(np.arange(8, dtype=np.float32))
        kernel(data)
        np.testing.assert_array_equal(data.read(0), np.arange(8) + 1)
    assert [len(data) for data in kept] == [1, 1]
    assert bool(kept[1][0]) == ("pipeline" in disk_cache.entries())
    assert isinstance(kernel.plan, ComputePlan)


# ---- the compiler gets ready beside the context

PREPARING = """
import os, sys, threading, time
import vkdispatch_native as native
native.prepare_compiler()
native.prepare_compiler()
{then}
"""


@pytest.mark.parametrize(
    "then",
    [
        "",
        "os._exit(0)",
        "sys.exit(0)",
        "native.compile_glsl('#version 450\\nvoid main() {}')",
        (
            "pid = os.fork()\n"
            "if pid: assert os.waitpid(pid, 0)[1] == 0\n"
            "else: native.compile_glsl('#version 450\\nvoid main() {}'); os._exit(0)"
        ),
        (
            "source = '#version 460\\nvoid main() {}'\n"
            "for _ in range(4): threading.Thread(target=native.compile_glsl, args=(source,)).start()"
        ),
        "threading.Thread(target=native.prepare_compiler).start()",
    ],
    ids=["end", "hard end", "exit", "compile", "fork", "threads", "twice"],
)
def test_preparing_the_compiler_is_safe(then: str, run_python: RunPython) -> None:
    done = run_python(PREPARING.format(then=then))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_compiler_is_prepared_for_new_programs_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[int] = []
    monkeypatch.setattr(native, "prepare_compiler", lambda: calls.append(1))
    main = tmp_path / "main.py"
    main.write_text("")
    monkeypatch.setattr("__main__.__file__", str(main), raising=False)
    monkeypatch.setattr(compiler, "_program_is_stored", False)
    monkeypatch.setattr(compiler, "_expects_kernels", False)
    compiler.prepare_while_loading()
    assert calls == []  # a look at the devices
    compiler.prepare_for_context()
    assert calls == [1]
    calls.clear()
    monkeypatch.setattr(compiler, "_expects_kernels", True)
    compiler.prepare_while_loading()
    assert calls == [1]
    compiler.compile_glsl(SOURCE, "kernel")
    compiler.prepare_while_loading()
    assert calls == [1]  # it has run before
    os.utime(main, (1, 1))
    compiler.prepare_while_loading()
    assert calls == [1, 1]  # it was changed
    monkeypatch.setenv("VKDISPATCH_CACHE", "off")
    compiler.prepare_while_loading()
    assert calls == [1, 1, 1]


def test_a_context_that_compiles_nothing_does_not_start_the_compiler(run_python: RunPython) -> None:
    done = run_python(
        "import vkdispatch_native as native, vkdispatch as vd\n"
        "calls = []\n"
        "native.prepare_compiler = lambda: calls.append(1)\n"
        "context = vd.make_context(compiles=False)\n"
        "print(calls, vd.make_context() is context)\n"
        "vd.base.context.destroy_context(); vd.get_context(); print(calls)",
        VKDISPATCH_CACHE="off",
    )
    assert (done.stdout, done.stderr) == ("[] True\n[1]\n", "")


def test_threads_compile_at_once() -> None:
    codes: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: codes.append(compiler.compile_glsl(SOURCE, "kernel")))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [native.compile_glsl(SOURCE)] * 6
