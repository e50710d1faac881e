"""Workgroup sizes by measurement: data stay, the choice is allowed, used, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, SImg2, f32
from vkdispatch.shader import launching as autotune

COUNT = 5003


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path))
    monkeypatch.setattr(autotune, "_SECONDS", 0.0)
    return tmp_path


def make_scale(local_size: Any = None, factor: int = 2) -> vd.ShaderFunction:
    @vd.shader("data.size", local_size=local_size)
    def scale(data: Buff[f32], by: Const[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = data[tid] * by * factor

    return scale


def allowed() -> list[int]:
    return autotune.list_candidates(vd.get_context())


def test_candidates_are_powers_of_two_up_to_what_the_device_takes() -> None:
    context = vd.get_context()
    sizes = allowed()
    assert sizes == [32 << step for step in range(len(sizes))]
    most = min(context.max_workgroup_size[0], context.max_workgroup_invocations)
    assert sizes[-1] <= most < 2 * sizes[-1]


def test_data_are_left_alone_and_the_choice_is_used() -> None:
    kernel = make_scale()
    values = np.arange(COUNT, dtype=np.float32)
    data = vd.asbuffer(values)
    best = kernel.autotune(data, 3.0)
    assert best in allowed()
    np.testing.assert_array_equal(data.read(0), values)
    kernel(data, 0.5)
    np.testing.assert_array_equal(data.read(0), values)
    assert kernel.bounds is not None
    assert kernel.bounds.local_size == (best, 1, 1)


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({32: 3.0, 64: 1.0, 128: 2.0, 256: 1.5}, 64),
        ({32: 3.0, 64: 1.0, 128: 2.0, 256: 1.01}, 256),
        ({32: 3.0, 64: 4.0}, 32),
    ],
)
def test_the_fastest_wins_and_ties_go_to_256(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], best: int
) -> None:
    def times(context: object, trials: dict[int, object], *_: object) -> dict[int, list[float]]:
        return {size: [9.0, seconds[size], 0.0] for size in seconds}

    monkeypatch.setattr(autotune, "_measure", times)
    kernel = make_scale()
    assert kernel.autotune(vd.Buffer(64, f32), 1.0) == best
    kernel(vd.asbuffer(np.ones(64, np.float32)), 1.0)
    assert f"local_size_x = {best}," in kernel.get_src().code


def test_remembered_in_later_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    data = vd.asbuffer(np.ones(COUNT, np.float32))
    monkeypatch.setattr(autotune, "_measure", lambda *_: {32: [2.0], 64: [1.0], 256: [3.0]})
    assert make_scale().autotune(data, 1.0) == 64

    def size_of(kernel: vd.ShaderFunction, buffer: Any) -> int:
        kernel(buffer, 0.5)
        assert kernel.bounds is not None
        return kernel.bounds.local_size[0]

    usual = min(256, allowed()[-1])
    assert size_of(make_scale("auto"), data) == 64
    # another launch size, other code, no wish for it: 256
    assert size_of(make_scale("auto"), vd.asbuffer(np.ones(4 * COUNT, np.float32))) == usual
    assert size_of(make_scale("auto", factor=4), data) == usual
    assert size_of(make_scale(), data) == usual


def test_remembered_in_later_processes(
    run_python: Callable[..., Any], cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc\n"
        "from vkdispatch.codegen.abbreviations import Buff, f32\n"
        "from vkdispatch.shader import launching as tuning\n"
        "tuning._measure = lambda *_: {32: [1.0], 256: [3.0]}\n"
        "@vd.shader('data.size', local_size='auto')\n"
        "def kernel(data: Buff[f32]):\n"
        "    data[vc.global_invocation_id().x] += 1\n"
        "data = vd.asbuffer(np.zeros(100, np.float32))\n"
        "if sys.argv[1] == 'tune':\n"
        "    kernel.autotune(data)\n"
        "kernel(data)\n"
        "assert (data.read(0) == 1).all()\n"
        "print(kernel.bounds.local_size[0])\n"
    )
    sizes = []
    for mode in ("no", "tune", "no"):
        done = run_python(None, str(program), mode)
        assert done.returncode == 0, done.stderr
        sizes.append(done.stdout.strip())
    assert sizes == ["256", "32", "32"]


def test_damaged_memory_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make_scale("auto")
    monkeypatch.setattr(autotune, "disk_cache", SimpleNamespace(load=lambda *_: b"7"))
    data = vd.asbuffer(np.ones(COUNT, np.float32))
    kernel(data, 0.5)
    assert kernel.bounds is not None
    assert kernel.bounds.local_size[0] == min(256, allowed()[-1])


def test_copies_of_images_and_aliased_buffers() -> None:
    @vd.shader("out.size")
    def both(out: Buff[f32], same: Buff[f32], image: SImg2[f32]) -> None:
        tid = vc.global_invocation_id().x
        out[tid] = same[tid] + 1
        image[0, 0] = 5.0

    data = vd.asbuffer(np.zeros(64, np.float32))
    image = vd.Image2D((3, 4), vd.float32, 1)
    image.write(np.full((3, 4), 7, np.float32))
    assert both.autotune(data, data, image) in allowed()
    assert not data.read(0).any()
    np.testing.assert_array_equal(image.read(0), np.full((3, 4), 7, np.float32))


def test_a_chosen_graph_gets_nothing() -> None:
    graph = vd.CommandGraph()
    vd.set_global_graph(graph)
    try:
        assert make_scale().autotune(vd.Buffer(64, f32), 1.0) in allowed()
        assert vd.global_graph() is graph
    finally:
        vd.set_global_graph(None)
    assert graph._native.length == 0


def test_kernels_whose_size_is_not_free_are_refused() -> None:
    @vd.shader(workgroups=1)
    def groups(data: Buff[f32]) -> None:
        data[vc.global_invocation_id().x] = 1

    @vd.shader("data.size")
    def tells(data: Buff[f32]) -> None:
        data[vc.global_invocation_id().x] = vc.local_invocation_id().x.to_dtype(vd.float32)

    @vd.shader("data.size", check="bounds")
    def checked(data: Buff[f32]) -> None:
        data[vc.global_invocation_id().x] = 1

    data = vd.Buffer(64, f32)
    for kernel, reason in (
        (groups, "launched by workgroups"),
        (tells, "depend on the size"),
        (checked, "prints or is checked"),
    ):
        with pytest.raises(vd.UsageError, match=reason):
            kernel.autotune(data)
    with pytest.raises(vd.UsageError, match="local_size"):
        make_scale(64).autotune(data, 1.0)
    raw = vd.glsl_kernel("#version 450\nlayout(local_size_x = 8) in;\nvoid main() {}", (), exec_size=1)
    with pytest.raises(vd.UsageError):
        raw.autotune()


def test_bad_arguments_are_refused_before_anything_runs() -> None:
    kernel = make_scale()
    with pytest.raises(TypeError, match="graph"):
        kernel.autotune(vd.Buffer(64, f32), 1.0, graph=vd.CommandGraph())
    with pytest.raises(ValueError, match="by"):
        kernel.autotune(vd.Buffer(64, f32))
    with pytest.raises(vd.UsageError, match="workgroups"):
        kernel.autotune(vd.Buffer(64, f32), 1.0, workgroups=2)
    with pytest.raises(vd.UsageError, match="depend on the size"):

        @vd.shader("data.size", local_size="auto")
        def tells(data: Buff[f32]) -> None:
            data[vc.workgroup_id().x] = 1

    with pytest.raises(TypeError, match="local_size"):
        vd.shader("data.size", local_size="best")
