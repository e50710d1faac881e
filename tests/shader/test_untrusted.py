"""Code from strangers: compiled in child processes with limits, which crash in place of this process."""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch_native as native
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.untrusted import child as untrusted_child
from vkdispatch.base.untrusted import compiler as untrusted
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32

SOURCE = """#version 450
layout(local_size_x = 8) in;
layout(constant_id = 3) const float FACTOR = 2;
layout(binding = 0) buffer A { float a[]; };
layout(push_constant) uniform P { uint n; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) a[i] *= FACTOR; }
"""
ARGUMENTS = [("a", Buff[f32]), ("n", Const[u32])]


@pytest.fixture(autouse=True)
def without_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have every test start child processes."""
    monkeypatch.setenv("VKDISPATCH_CACHE", "off")
    untrusted._checked_digests.clear()
    yield
    untrusted._checked_digests.clear()


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the command lines of the child processes that validate or compile."""
    started: list[list[str]] = []
    make = subprocess.Popen.__init__

    def note(self: subprocess.Popen[bytes], command: list[str], **options: object) -> None:
        if untrusted_child.__file__ in command:
            started.append(command)
        make(self, command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess.Popen, "__init__", note)
    return started


def bomb(doublings: int) -> str:
    """Return text that is twice as long with each macro."""
    lines = ["#version 450", "layout(binding = 0) buffer B { float b[]; };", "#define A0 b[0] += 1.0;"]
    lines += [f"#define A{i} A{i - 1} A{i - 1}" for i in range(1, doublings + 1)]
    return "\n".join([*lines, f"void main() {{ A{doublings} }}"])


@pytest.mark.parametrize("form", ["glsl", "spirv"])
def test_an_honest_kernel(form: str, children: list[list[str]]) -> None:
    if form == "glsl":
        kernel = vd.glsl_kernel(SOURCE, ARGUMENTS, "a.size", specialization={3: 5.0}, untrusted=True)
    else:
        code = native.compile_glsl(SOURCE)
        kernel = vd.spirv_kernel(code, ARGUMENTS, "a.size", specialization={3: 5.0}, untrusted=True)
    for copy in (kernel, pickle.loads(pickle.dumps(kernel))):
        data = vd.asbuffer(np.arange(20, dtype=np.float32))
        copy(data, 18)
        factors = np.where(np.arange(20) < 18, 5, 1)
        np.testing.assert_array_equal(data.read(0), np.arange(20) * factors)
    wanted = ["compile", "validate", "create"] if form == "glsl" else ["validate", "create"]
    assert [command[4] for command in children] == wanted  # the copy needs no child: the same was compiled


def test_trusted_code_starts_no_process(children: list[list[str]]) -> None:
    data = vd.asbuffer(np.ones(8, np.float32))
    vd.glsl_kernel(SOURCE, ARGUMENTS, "a.size")(data, 8)
    assert data.read(0).tolist() == [2] * 8
    assert children == []


def test_the_same_code_comes_out() -> None:
    assert untrusted.compile_untrusted(SOURCE, "kernel") == native.compile_glsl(SOURCE)


def test_what_does_not_compile() -> None:
    with pytest.raises(vd.ShaderBuildError, match=r"does not compile(.|\n)*'missing'") as error:
        vd.glsl_kernel(SOURCE.replace("FACTOR;", "missing;"), ARGUMENTS, "a.size", untrusted=True)
    assert "undeclared identifier" in str(error.value.compiler_log)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"SECONDS": 1}, "more than 1 s of processor time, the limit for untrusted code"),
        ({"MEMORY": 1 << 27}, "more than 128 MiB of memory, the limit for untrusted code"),
        ({"PATIENCE": 0.3}, "more than 0.3 s, the limit"),
    ],
)
def test_a_bomb_of_macros_is_ended(
    limits: dict[str, float], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(untrusted, name, value)
    with pytest.raises(vd.ShaderBuildError, match=text):
        vd.glsl_kernel(bomb(40), [("b", Buff[f32])], "b.size", untrusted=True)


def test_a_module_of_many_branches_is_validated_in_a_child(children: list[list[str]]) -> None:
    branches = "".join(f"if (b[{i}] > 3) b[{i}] = {i};" for i in range(300))
    source = f"#version 450\nlayout(binding = 0) buffer B {{ float b[]; }};\nvoid main() {{ {branches} }}"
    code = native.compile_glsl(source)
    vd.spirv_kernel(code, [("b", Buff[f32])], "b.size")
    assert [command[4] for command in children] == ["validate"]
    with pytest.raises(ValueError, match="invalid SPIR-V: Missing OpFunctionEnd"):
        vd.spirv_kernel(code[:-4], [("b", Buff[f32])], "b.size")


def test_text_that_is_too_long(children: list[list[str]]) -> None:
    with pytest.raises(vd.ShaderBuildError, match=r"has 1100\d+ bytes; untrusted code may have 1048576"):
        vd.glsl_kernel(SOURCE + " " * 1_100_000, ARGUMENTS, "a.size", untrusted=True)
    assert children == []


def test_code_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "LONGEST_CODE", 500)
    with pytest.raises(vd.ShaderBuildError, match="compiles to more than 500 bytes"):
        vd.glsl_kernel(SOURCE, ARGUMENTS, "a.size", untrusted=True)


def test_what_comes_out_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.frombuffer(compile_glsl(SOURCE, "test"), np.uint32)
    monkeypatch.setattr(untrusted, "compile_untrusted", lambda *_: words[:-3].tobytes())
    with pytest.raises(ValueError, match="malformed SPIR-V"):
        vd.glsl_kernel(SOURCE, ARGUMENTS, "a.size", untrusted=True)


def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Have another program be the child process."""
    program = tmp_path / "child.py"
    program.write_text(text)
    monkeypatch.setattr(untrusted_child, "__file__", str(program))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os; os.abort()", r"crashes the compiler \(SIGABRT\)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"crashes the compiler \(SIGSEGV\)"),
        ("import sys; sys.exit('strange')", "fails to compile.*\nstrange"),
        ("import sys; print('no'); sys.exit(4)", "of memory"),
    ],
)
def test_a_compiler_that_crashes(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child(tmp_path, monkeypatch, text)
    with pytest.raises(vd.ShaderBuildError, match=message):
        vd.glsl_kernel(SOURCE, ARGUMENTS, "a.size", untrusted=True)
    code = native.compile_glsl(SOURCE)
    with pytest.raises(vd.ShaderBuildError, match=message):
        vd.spirv_kernel(code, ARGUMENTS, "a.size", untrusted=True)
    with pytest.raises(vd.ShaderBuildError, match=message):
        untrusted.check_pipeline(vd.get_context(), code, [1], 4, "main", [], "kernel")


def test_a_driver_that_crashes() -> None:
    """Mesa's compiler reads the second factor of a product that has none."""
    context = vd.get_context()
    if not context.device_infos[0].is_cpu():
        pytest.skip("what other drivers make of nonsense is not known")
    words = np.frombuffer(native.compile_glsl(SOURCE), np.uint32).tolist()
    at = next(i for i in range(5, len(words)) if words[i] == 5 << 16 | 133)
    code = np.array([*words[:at], 4 << 16 | 133, *words[at + 1 : at + 4], *words[at + 5 :]], np.uint32)
    with pytest.raises(vd.ShaderBuildError, match=r"crashes the compiler \(SIGSEGV\)"):
        untrusted.check_pipeline(context, code.tobytes(), [1], 4, "main", [], "broken")


def test_the_child_sees_little_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "1234")
    child(tmp_path, monkeypatch, "import os, sys; print(list(os.environ), file=sys.stderr); sys.exit(3)")
    with pytest.raises(vd.ShaderBuildError) as error:
        vd.glsl_kernel(SOURCE, ARGUMENTS, "a.size", untrusted=True)
    assert "MESA_SHADER_CACHE_DISABLE" in str(error.value)
    assert "MY_SECRET" not in str(error.value)


def test_an_interrupt_ends_the_child(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(
        "import os, signal, subprocess, threading, time\n"
        "import vkdispatch as vd\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # background jobs begin without
        "started = []\n"
        "wait = subprocess.Popen.wait\n"
        "def note(self, *a, **k):\n"
        "    started.append(self)\n"
        "    return wait(self, *a, **k)\n"
        "subprocess.Popen.wait = note  # from when on the child is waited for\n"
        "def interrupt():\n"
        "    while not started: time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt).start()\n"
        f"try: vd.glsl_kernel({bomb(40)!r}, untrusted=True)\n"
        "except KeyboardInterrupt: print(started[0].returncode)\n"
    )
    assert (done.stdout, done.stderr) == (f"{-9}\n", "")


def test_the_cache_keeps_what_strangers_made_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, children: list[list[str]]
) -> None:
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path))
    tmp_path.chmod(0o700)
    for _ in range(2):
        untrusted.compile_untrusted(SOURCE, "kernel")
    assert len(children) == 1
    before = native.compile_count()
    compile_glsl(SOURCE, "kernel")  # not what a process of a stranger's code returned
    assert native.compile_count() == before + 1
