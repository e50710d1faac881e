"""Launches that go to the coarse form of a kernel, and copies, which live on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, i32, u8, u32
from vkdispatch.compiler.forms import Variant
from vkdispatch.shader import building
from vkdispatch.shader.building import Coarsening, choose_variant
from vkdispatch.shader.traced import generation
from vkdispatch.shader.traced.generation import choose_coarsening

SIZES = [1, 2, 255, 256, 257, 1023, 1024, 1025, 2047, 5000, 40961]


@pytest.fixture(autouse=True)
def _always_coarse(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(building, "_FORCED", frozenset({"coarse"}))
    yield


def built(kernel: Any) -> set[int]:
    return {variant.coarse for _, variant in kernel._built}


def saxpy() -> Any:
    @vd.shader("y.size")
    def saxpy(y: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
        i = vc.global_invocation_id().x
        y[i] = a * x[i] + y[i]

    return saxpy


@pytest.mark.parametrize("size", SIZES)
def test_every_element_once(size: int) -> None:
    kernel = saxpy()
    x, y = (np.random.default_rng(size).random(size, np.float32) for _ in range(2))
    bx, by = vd.asbuffer(x), vd.asbuffer(y)
    for _ in range(3):
        kernel(by, bx, 0.5)
    np.testing.assert_allclose(by.read(0), y + 1.5 * x, rtol=1e-6)
    assert built(kernel) == {4}


@pytest.mark.parametrize("size", [1, 1000, 4099])
def test_nothing_beyond_the_bound(size: int) -> None:
    @vd.shader()
    def mark(data: Buff[u8]) -> None:
        data[vc.global_invocation_id().x] = 1

    data = vd.asbuffer(np.zeros(size + 5000, np.uint8))
    mark(data, exec_size=size)
    marks = data.read(0)
    assert marks[:size].all()
    assert not marks[size:].any()


@pytest.mark.parametrize("shape", [(5, 3, 2), (300, 7), (1025, 2, 3)])
@pytest.mark.parametrize("local_size", [None, (8, 4, 2), 3])
def test_several_axes(shape: tuple[int, ...], local_size: Any) -> None:
    x, y, z = (*shape, 1)[:3]

    @vd.shader(shape, local_size=local_size)
    def number(data: Buff[u32], other: Buff[u32]) -> None:
        gid = vc.global_invocation_id()
        i = gid.x + gid.y * x + gid.z * x * y
        data[i] = data[i] + gid.x + 10000 * gid.y + 1000000 * gid.z
        other[i] = gid.swizzle("xyz").x

    data, other = (vd.asbuffer(np.zeros(x * y * z, np.uint32)) for _ in range(2))
    number(data, other)
    number(data, other)
    k, j, i = np.indices((z, y, x))
    np.testing.assert_array_equal(data.read(0), 2 * (i + 10000 * j + 1000000 * k).reshape(-1))
    np.testing.assert_array_equal(other.read(0), i.reshape(-1))


def test_guards_and_branches() -> None:
    @vd.shader("y.size")
    def steps(y: Buff[f32], x: Buff[f32], n: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        if i >= n:
            return
        t = x[i] * 2
        if t > 3:
            t = t + 1
        elif t > 1:
            t = t - 1
        y[i] += t

    x = np.random.default_rng(0).random(3000, np.float32) * 2
    y = np.ones(3000, np.float32)
    for n in (0, 1, 700, 1024, 2999, 3000):
        buffer = vd.asbuffer(y)
        steps(buffer, vd.asbuffer(x), n)
        t = x * 2
        expected = y + np.where(t > 3, t + 1, np.where(t > 1, t - 1, t)) * (np.arange(3000) < n)
        np.testing.assert_allclose(buffer.read(0), expected, rtol=1e-6)
    assert built(steps) == {4}


def test_a_guard_that_reads_memory() -> None:
    @vd.shader("y.size")
    def masked(y: Buff[f32], mask: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        if mask[i] == 0:
            return
        y[i] = 7

    mask = (np.random.default_rng(1).random(5003) < 0.5).astype(np.int32)
    mask[1024:2048] = 1
    y = vd.asbuffer(np.zeros(5003, np.float32))
    masked(y, vd.asbuffer(mask))
    np.testing.assert_array_equal(y.read(0), 7.0 * mask)


def test_histogram() -> None:
    @vd.shader("x.size")
    def histogram(bins: Buff[u32], x: Buff[u32]) -> None:
        vc.atomic_add(bins[x[vc.global_invocation_id().x] % 16], 1)

    x = np.random.default_rng(2).integers(0, 1000, 10007).astype(np.uint32)
    bins = vd.asbuffer(np.zeros(16, np.uint32))
    histogram(bins, vd.asbuffer(x))
    np.testing.assert_array_equal(bins.read(0), np.bincount(x % 16, minlength=16))
    assert built(histogram) == {4}


def test_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vd.get_context(), "max_workgroup_count", (5, 5, 5))
    kernel = vd.shader("y.size", local_size=16)(_axpy)
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    buffer = vd.asbuffer(y)
    kernel(buffer, vd.asbuffer(x), 2.0)
    np.testing.assert_array_equal(buffer.read(0), 1 + 2 * x)
    assert [variant for _, variant in kernel._built] == [Variant(folded=True, coarse=4)]


def _axpy(y: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    y[i] = a * x[i] + y[i]


def test_graphs_and_variables() -> None:
    @vd.shader("y.size")
    def add(y: Buff[f32], step: Var[f32]) -> None:
        i = vc.global_invocation_id().x
        y[i] = y[i] + step

    y = vd.asbuffer(np.zeros(3001, np.float32))
    graph = vd.CommandGraph()
    for _ in range(3):
        add(y, graph.bind_var("step"), graph=graph)
        add(y, 0.25, graph=graph)
    graph.set_var("step", [1.0, 2.0])
    graph.submit(2)
    assert (y.read(0) == 3 * (1 + 2) + 6 * 0.25).all()
    assert built(add) == {4}


def test_workgroups_count_plain_groups() -> None:
    @vd.shader()
    def mark(data: Buff[f32]) -> None:
        data[vc.global_invocation_id().x] = 1

    data = vd.asbuffer(np.zeros(100_000, np.float32))
    mark(data, workgroups=3)
    local_x = mark._kernel.choose_group(True, vd.get_context(), mark._kernel.latest())[0]
    assert int(data.read(0).sum()) == 3 * local_x
    assert built(mark) == {1}


def test_both_forms_serve_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset())
    monkeypatch.setattr(generation, "_MANY", 4096)
    for info in vd.get_context().device_infos:
        monkeypatch.setattr(type(info), "is_cpu", lambda self: False)
    kernel = saxpy()
    calls: list[tuple[int, set[int]]] = []
    for size in (10, 4095, 4096, 10, 100_000, 4096):
        y = vd.asbuffer(np.ones(size, np.float32))
        kernel(y, y, 1.0)
        assert (y.read(0) == 2).all()
        calls.append((size, built(kernel)))
    assert calls[1][1] == {1}
    assert calls[2][1] == {1, 4}
    assert len(kernel._kernel.fast()._kernels) == 2


@pytest.mark.parametrize("processor", [False, True])
def test_processors_get_blocks(processor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset())
    context = vd.get_context()
    monkeypatch.setattr(type(context), "is_cpu", lambda self: processor)
    if processor and not all(info.float_64_support for info in context.device_infos):
        pytest.skip("blocks are words of 64 bits")
    found = choose_coarsening(saxpy().shader_description.kernel, context)
    blocks = Coarsening(8, generation._MANY_IN_BLOCKS, blocks=True)
    assert found == (blocks if processor else Coarsening(4, generation._MANY))


def test_which_launches_are_coarse() -> None:
    assert not native.is_coarse((1 << 20, 1, 1), 1024, 0)
    assert native.is_coarse((1, 1, 1), 1024, 1)
    assert native.is_coarse((1 << 20, 1, 1), 1024, 1 << 20)
    assert not native.is_coarse(((1 << 20) - 1, 1, 1), 1024, 1 << 20)
    # too many invocations would have no element
    assert not native.is_coarse((100, 1 << 20, 1), 1024, 1 << 20)
    assert native.is_coarse((4096, 4096, 1), 1024, 1 << 20)
    # whole blocks only
    assert native.is_coarse((1 << 20, 3, 1), 1024, 1, step=8)
    assert not native.is_coarse(((1 << 20) + 4, 3, 1), 1024, 1, step=8)
    # ids of surplus invocations would wrap around
    assert not native.is_coarse((0xFFFFFFFF, 1, 1), 1024, 1 << 20)
    with pytest.raises(ValueError, match="width"):
        native.is_coarse((1, 1, 1), 0, 1)
    with pytest.raises(ValueError, match="step"):
        native.is_coarse((1, 1, 1), 1, 1, step=0)


def test_the_choice_names_both_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    context = vd.get_context()
    monkeypatch.setattr(context, "max_workgroup_count", (64, 64, 64))
    coarse = Coarsening(4, 1)
    assert choose_variant("k", (64 * 256, 1, 1), False, (64, 1, 1), coarse, context) == Variant(coarse=4)
    assert choose_variant("k", (64 * 257, 1, 1), False, (64, 1, 1), coarse, context) == Variant(
        True, coarse=4
    )
    assert choose_variant("k", (64, 1, 1), True, (64, 1, 1), coarse, context) == Variant()


# -- blocks


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    if not all(info.float_64_support for info in vd.get_context().device_infos):
        pytest.skip("blocks are words of 64 bits")
    monkeypatch.setattr(building, "_FORCED", frozenset({"blocks"}))


def _step(y: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    y[i] = a * x[i] + y[i]
    x[i] += y[i]
    if x[i] > 0:
        y[i] += x[i]
    x[i] = 2 * y[i] - x[i]


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("size", [8, 2040, 2048, 2056, 5000, 5001])
def test_blocks_do_every_element_once(size: int) -> None:
    kernel = vd.shader("y.size")(_step)
    x, y = (np.random.default_rng(size).random(size, np.float32) - 0.5 for _ in range(2))
    bx, by = vd.asbuffer(x), vd.asbuffer(y)
    kernel(by, bx, 0.5)
    y = np.float32(0.5) * x + y
    x = x + y
    y = y + np.where(x > 0, x, np.float32(0))
    np.testing.assert_allclose(by.read(0), y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(bx.read(0), 2 * y - x, rtol=1e-5, atol=1e-6)
    assert built(kernel) == {8 if size % 8 == 0 else 1}


@pytest.mark.usefixtures("in_blocks")
def test_blocks_of_one_buffer_for_two_parameters() -> None:
    kernel = vd.shader("y.size")(_step)
    x = np.random.default_rng(7).random(4096, np.float32) - 0.5
    both = vd.asbuffer(x)
    kernel(both, both, 0.5)
    first = np.float32(3) * x
    second = np.where(first > 0, 2 * first, first)
    np.testing.assert_allclose(both.read(0), second, rtol=1e-6)
    assert built(kernel) == {8}


@pytest.mark.usefixtures("in_blocks")
def test_blocks_leave_what_lies_beyond_the_launch() -> None:
    @vd.shader()
    def mark(data: Buff[i32]) -> None:
        data[vc.global_invocation_id().x] = 1

    data = vd.asbuffer(np.zeros(10_000, np.int32))
    mark(data, exec_size=(4104, 2))
    assert data.read(0).nonzero()[0].tolist() == list(range(4104))
    assert built(mark) == {8}


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(
    "host", [np.float32, np.int32, np.uint32, np.float64, np.int64, np.uint64, np.complex64]
)
def test_blocks_keep_every_bit(host: Any) -> None:
    kind = vd.asbuffer(np.zeros(1, host)).var_type
    if kind in (vd.int64, vd.uint64) and not vd.get_context().device_infos[0].int_64_support:
        pytest.skip("no 64-bit integers")

    @vd.shader(lambda args: args.param1.size, arg_type_annotations=[Buff[kind], Buff[kind]])
    def copy(y: Any, x: Any) -> None:
        i = vc.global_invocation_id().x
        y[i] = x[i]

    words = np.random.default_rng(5).integers(0, 1 << 32, 4096 * np.dtype(host).itemsize // 4, np.uint32)
    words[:8] = [0x7F800001, 0xFFC00000, 0x00000001, 0x80000000, 0x7FFFFFFF, 0x7FF00000, 1, 0xFFF00001]
    x = vd.asbuffer(words.view(host))
    y = vd.Buffer(x.shape, kind)
    copy(y, x)
    np.testing.assert_array_equal(y.read(0).view(np.uint32), words)
    assert built(copy) == {8}


# -- copies


@pytest.mark.parametrize(
    "host", [np.float32, np.float64, np.complex64, np.uint8, np.bool_, np.int16, np.float16, np.int64]
)
@pytest.mark.parametrize("shape", [(1,), (1031,), (3, 5, 7)])
def test_copyto(host: Any, shape: tuple[int, ...]) -> None:
    values = (np.random.default_rng(3).random(shape) * 100).astype(host)
    source, target = vd.asbuffer(values), vd.asbuffer(np.zeros(shape, host))
    vd.copyto(target, source)
    np.testing.assert_array_equal(target.read(0), values)


def test_copyto_keeps_every_bit() -> None:
    words = np.array([0x7F800001, 0xFFC00000, 0x00000001, 0x80000000, 0x7FFFFFFF], np.uint32)
    source = vd.Buffer(words.size, vd.float32)
    source.write(words.tobytes())
    target = vd.Buffer(words.size, vd.float32)
    vd.copyto(target, source)
    np.testing.assert_array_equal(target.read(0).view(np.uint32), words)


def test_copyto_vectors_arrays_and_graphs() -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    source, target = vd.Buffer(4, vd.vec3), vd.Buffer(4, vd.vec3)
    vd.copyto(source, values)
    graph = vd.CommandGraph()
    vd.copyto(target, source, graph=graph)
    vd.copyto(source, np.zeros_like(values))
    graph.submit()
    out = np.empty_like(values)
    vd.copyto(out, target)
    assert not out.any()


def test_copies_by_driver_and_by_kernel_take_turns() -> None:
    """A processor's driver copies unless a graph wants a kernel; the order is that of the calls."""
    first, second = vd.asbuffer(np.zeros(1009, np.float32)), vd.Buffer(1009, vd.float32)
    graph = vd.CommandGraph()
    vd.copyto(first, second, graph=graph)
    with vd.profile() as p:
        for number in range(1, 6):
            vd.copyto(first, np.full(1009, number, np.float32))
            vd.copyto(second, first)
            vd.copyto(first, np.zeros(1009, np.float32))
            graph.submit()
            np.testing.assert_array_equal(first.read(0), number)
    drivers = [record for record in p.records if record.kind == "copy buffer"]
    if vd.get_context().device_infos[0].is_cpu():
        assert len(drivers) == 5
        assert {(record.bytes_read, record.bytes_written) for record in drivers} == {(4036, 4036)}
    second.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        vd.copyto(first, second)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda b, a: vd.copyto(b, vd.Buffer(5, vd.float32)), ValueError, "shape"),
        (lambda b, a: vd.copyto(b, vd.Buffer(4, vd.int32)), ValueError, "int32"),
        (lambda b, a: vd.copyto(b, [1, 2]), TypeError, "src: expected a vd.Buffer or an array, got list"),
        (lambda b, a: vd.copyto(a, a), TypeError, "at least one"),
        (lambda b, a: vd.copyto(b, a, graph=vd.CommandGraph()), ValueError, "graph"),
        (lambda b, a: vd.copyto(b, np.zeros(3, np.float32)), ValueError, r"expected shape \(4,\)"),
        (lambda b, a: vd.copyto(b, np.zeros(4, np.int32)), ValueError, "got shape .* of int32"),
    ],
)
def test_wrong_copies(call: Callable[..., None], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(vd.Buffer(4, vd.float32), np.zeros(4, np.float32))
