"""`CommandGraph.optimize`: what becomes one dispatch, what must not, and that nothing else changes."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.dtype import bfloat16
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Img1,
    Var,
    c64,
    f16,
    f32,
    f64,
    i8,
    i32,
    m2,
    u8,
    u32,
    v2,
    v3,
    v4,
)
from vkdispatch.shader import building
from vkdispatch.shader.launchable import LaunchableKernel

Array = np.ndarray[Any, Any]
Record = Callable[[vd.CommandGraph, list[Any]], object]
random = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _usual_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    # kernels that reach buffers by address stay as they were recorded
    monkeypatch.setattr(building, "_FORCED", frozenset())


def gid() -> Any:
    return vc.global_invocation_id().x


@vd.shader("y.size")
def saxpy(x: Buff[f32], y: Buff[f32], a: Const[f32]) -> None:
    y[gid()] = a * x[gid()] + y[gid()]


@vd.shader("out.size")
def add(a: Buff[f32], b: Buff[f32], out: Buff[f32]) -> None:
    out[gid()] = a[gid()] + b[gid()]


@vd.shader("out.size")
def mul(a: Buff[f32], b: Buff[f32], out: Buff[f32]) -> None:
    out[gid()] = a[gid()] * b[gid()]


@vd.shader("out.size")
def scale(a: Buff[f32], out: Buff[f32], factor: Var[f32]) -> None:
    out[gid()] = a[gid()] * factor


@vd.shader("out.size")
def smooth(a: Buff[f32], out: Buff[f32]) -> None:
    i = vc.to_int(gid())
    last = a.shape.x - 1
    out[i] = a[vc.max(i - 1, 0)] + a[vc.min(i + 1, last)]


@vd.shader("data.size")
def step(data: Buff[i32]) -> None:
    data[gid()] = data[gid()] * 3 + 1


def floats(*shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def length(graph: vd.CommandGraph) -> int:
    return graph._native.length


def source(graph: vd.CommandGraph, position: int = 0) -> str:
    """GLSL of a dispatch that is left."""
    kernel: Any = graph._recorded.dispatches()[position][0]
    return str(kernel.description.body)


def buffer_of(array: Array | vd.Buffer[Any]) -> vd.Buffer[Any]:
    if not isinstance(array, vd.Buffer):
        return vd.asbuffer(array)
    copy: vd.Buffer[Any] = vd.Buffer(array.shape, array.var_type)
    copy.write(array.read(0))
    return copy


def check(
    record: Record,
    arrays: Sequence[Array | vd.Buffer[Any]],
    saved: int | None = None,
    temporaries: Sequence[int] = (),
    prepare: Callable[[vd.CommandGraph], None] = lambda graph: None,
) -> vd.CommandGraph:
    """Run a recording as it is and optimized, twice each, and compare all that may be read."""
    plain, short = vd.CommandGraph(), vd.CommandGraph()
    both = [[buffer_of(array) for array in arrays] for _ in range(2)]
    for graph, buffers in zip((plain, short), both, strict=True):
        record(graph, buffers)
    count = length(plain)
    found = short.optimize([both[1][number] for number in temporaries])
    assert length(short) == count - found
    if saved is not None:
        assert found == saved
    for graph in (plain, short):
        prepare(graph)
        graph.submit()
        graph.submit(2)
    for number, (expected, got) in enumerate(zip(*both, strict=True)):
        if number not in temporaries:
            assert np.asarray(expected.read(0)).tobytes() == np.asarray(got.read(0)).tobytes(), number
    return short


# -- what becomes one


def test_ten_dependent_kernels_become_one() -> None:
    @vd.shader("b.size")
    def carry(a: Buff[i32], b: Buff[i32]) -> None:
        b[gid()] = a[gid()] * 3 + b[gid()]

    arrays = [np.arange(1001, dtype=np.int32) + k for k in range(11)]
    data = [vd.asbuffer(array) for array in arrays]
    graph = vd.CommandGraph()
    for a, b in itertools.pairwise(data):
        carry(a, b, graph=graph)
    assert graph.optimize() == 9
    assert length(graph) == 1
    graph.submit()
    for position, array in enumerate(arrays[1:], 1):
        array[:] = arrays[position - 1] * 3 + array
        assert (data[position].read(0) == array).all()


def test_ten_saxpys_move_the_memory_once() -> None:
    x, y = floats(777), floats(777)

    def record(graph: vd.CommandGraph, buffers: list[Any]) -> None:
        for k in range(10):
            saxpy(*buffers, 0.1 * k, graph=graph)

    text = source(check(record, [x, y], saved=9))
    assert text.count("buf0.data[") == 1
    assert text.count("buf1.data[") == 2
    assert text.count("buf1.data[gid_x] = ") == 1
    buffer, graph = vd.asbuffer(y), vd.CommandGraph()
    record(graph, [vd.asbuffer(x), buffer])
    graph.optimize()
    graph.submit()
    assert np.allclose(buffer.read(0), y + sum(0.1 * k for k in range(10)) * x, rtol=1e-4, atol=1e-5)


def test_several_outputs_and_inputs() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        add(b[0], b[1], b[2], graph=graph)
        mul(b[2], b[0], b[3], graph=graph)
        add(b[3], b[2], b[4], graph=graph)
        mul(b[4], b[4], b[1], graph=graph)

    text = source(check(record, [floats(100) for _ in range(5)], saved=3))
    assert text.count("].data[") == 0
    assert text.count(".data[gid_x] = ") == 4
    assert text.count(".data[") == 6


def test_kernels_that_share_nothing() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        scale(b[0], b[1], 2.0, graph=graph)
        scale(b[2], b[3], 3.0, graph=graph)

    check(record, [floats(33) for _ in range(4)], saved=1)


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 1009])
def test_sizes(size: int) -> None:
    check(lambda g, b: [saxpy(*b, 2.0, graph=g) for _ in range(3)], [floats(size), floats(size)], 2)


def test_a_smaller_exec_size_than_the_buffers() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        for _ in range(3):
            step(b[0], graph=graph, exec_size=70)

    check(record, [np.arange(100, dtype=np.int32)], 2)


def test_an_exec_size_beyond_the_buffers_keeps_nothing_in_registers() -> None:
    # nothing is read there but where the kernel itself would
    @vd.shader()
    def into(a: Buff[i32], b: Buff[i32]) -> None:
        value = vc.select(gid() < a.shape.w, a[gid()], 0)
        if gid() < b.shape.w:
            b[gid()] = value + b[gid()]

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        into(b[0], b[1], graph=graph, exec_size=128)
        into(b[1], b[2], graph=graph, exec_size=128)

    arrays = [np.arange(100, dtype=np.int32) for _ in range(3)]
    text = source(check(record, arrays, 1))
    assert text.count("? buf") == 2


def test_guards_that_always_hold_are_left_out() -> None:
    @vd.shader("b.size")
    def into(a: Buff[i32], b: Buff[i32], n: Const[u32]) -> None:
        if gid() >= n:
            return
        if gid() < b.shape.x:
            b[gid()] = a[gid()] + 1

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        into(b[0], b[1], 100, graph=graph)
        into(b[1], b[2], 100, graph=graph)

    def partly(graph: vd.CommandGraph, b: list[Any]) -> None:
        into(b[0], b[1], 100, graph=graph)
        into(b[1], b[2], 50, graph=graph)
        into(b[2], b[0], 70, graph=graph)

    arrays = [np.arange(100, dtype=np.int32) + k for k in range(3)]
    text = source(check(record, arrays, 1))
    assert text.count("if (") == 1
    assert text.count(".data[") == 3
    check(partly, arrays, 2)


def test_two_axes() -> None:
    @vd.shader(lambda args: args.out.shape[::-1])
    def double(a: Buff[f32], out: Buff[f32]) -> None:
        at = vc.global_invocation_id()
        out[at.y, at.x] = a[at.y, at.x] * 2

    @vd.shader(lambda args: args.out.shape[::-1])
    def turned(a: Buff[f32], out: Buff[f32]) -> None:
        at = vc.global_invocation_id()
        out[at.y, at.x] = a[at.x, at.y]

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        double(b[0], b[1], graph=graph)
        double(b[1], b[2], graph=graph)

    def turning(graph: vd.CommandGraph, b: list[Any]) -> None:
        double(b[0], b[1], graph=graph)
        turned(b[1], b[2], graph=graph)

    text = source(check(record, [floats(13, 7) for _ in range(3)], 1))
    assert text.count("data[") == 3
    check(turning, [floats(9, 9) for _ in range(3)], 0)


def test_flat_indices_of_two_axes_and_back() -> None:
    @vd.shader("out.size")
    def far(a: Buff[f32], out: Buff[f32], width: Const[u32]) -> None:
        row, column = gid() // width, gid() % width
        out[row * width + column] = a[row * width + column] + 1

    @vd.shader("out.size")
    def by_shape(a: Buff[f32], out: Buff[f32]) -> None:
        at = vc.ravel_index(gid(), out.shape)
        out[at] = a[at] * 3

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        far(b[0], b[1], 5, graph=graph)
        by_shape(b[1], b[2], graph=graph)
        scale(b[2], b[0], 2.0, graph=graph)

    check(record, [floats(3, 5, 7) for _ in range(3)], 2)


def test_every_second_element() -> None:
    @vd.shader(lambda args: args.a.size // 2)
    def even(a: Buff[i32], out: Buff[i32]) -> None:
        out[gid() * 2] = a[gid() * 2] + 5

    @vd.shader(lambda args: args.a.size // 2)
    def odd(a: Buff[i32], out: Buff[i32]) -> None:
        out[gid() * 2 + 1] = a[gid() * 2 + 1] + 6

    arrays = [np.arange(60, dtype=np.int32) + k for k in range(2)]
    check(lambda g, b: (even(b[0], b[1], graph=g), even(b[1], b[0], graph=g)), arrays, 1)
    # two sets of elements of one buffer are not told apart
    check(lambda g, b: (even(b[0], b[1], graph=g), odd(b[1], b[0], graph=g)), arrays, 0)


# -- what must not


def test_a_read_beside_ones_own_element_is_a_barrier() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        scale(b[0], b[1], 2.0, graph=graph)
        smooth(b[1], b[2], graph=graph)
        scale(b[2], b[3], 2.0, graph=graph)

    arrays = [floats(1000) for _ in range(4)]
    # what is smoothed may be scaled in the same kernel: only its own element is read
    check(record, arrays, 1)
    check(lambda g, b: [smooth(b[k % 2], b[1 - k % 2], graph=g) for k in range(4)], arrays, 0)


def test_a_buffer_overwritten_that_was_read_beside() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        smooth(b[0], b[1], graph=graph)
        scale(b[2], b[0], 2.0, graph=graph)

    check(record, [floats(1000) for _ in range(3)], 0)


def test_shifted_and_shared_elements() -> None:
    @vd.shader(lambda args: args.a.size - 1)
    def shifted(a: Buff[i32], out: Buff[i32]) -> None:
        out[gid() + 1] = a[gid()]

    @vd.shader("a.size")
    def first(a: Buff[i32], out: Buff[i32]) -> None:
        out[gid() // 2 * 2] = a[gid()] * 0 + 7

    arrays = [np.arange(600, dtype=np.int32) + k for k in range(2)]
    check(lambda g, b: (shifted(b[0], b[1], graph=g), shifted(b[1], b[0], graph=g)), arrays, 0)
    check(lambda g, b: (first(b[0], b[1], graph=g), first(b[1], b[0], graph=g)), arrays, 0)


def test_other_extents_stay_apart() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        step(b[0], graph=graph)
        step(b[0], graph=graph, exec_size=99)
        step(b[0], graph=graph, exec_size=99)
        step(b[0], graph=graph, exec_size=(98, 1))

    check(record, [np.arange(100, dtype=np.int32)], 1)


def test_several_invocations_of_one_element() -> None:
    # along y all write the same element: no matter in one kernel, but not over two
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        for k in range(2):
            scale(b[k], b[k + 1], 2.0, graph=graph, exec_size=(50, 2))

    check(record, [floats(50) for _ in range(3)], 0)


def test_kernels_that_are_not_element_wise() -> None:
    @vd.shader("data.size")
    def counted(data: Buff[i32], total: Buff[u32]) -> None:
        vc.atomic_add(total[0], vc.to_uint(1))
        data[gid()] = data[gid()] + 1

    @vd.shader("data.size", local_size=32)
    def grouped(data: Buff[i32]) -> None:
        data[gid()] = data[gid()] + vc.to_int(vc.local_invocation_id().x)

    @vd.shader("data.size", local_size=32)
    def met(data: Buff[i32]) -> None:
        shared = vc.shared_buffer(i32, 32)
        shared[vc.local_invocation_id().x] = data[gid()]
        vc.barrier()
        data[gid()] = shared[31 - vc.local_invocation_id().x]

    @vd.shader("data.size")
    def summed(data: Buff[i32]) -> None:
        data[gid()] = vc.subgroup_add(data[gid()])

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        for kernel in (counted, grouped, met, summed):
            arguments = b if kernel is counted else b[:1]
            step(b[0], graph=graph)
            kernel(*arguments, graph=graph)

    check(record, [np.arange(64, dtype=np.int32), np.zeros(1, np.uint32)], 0)


def test_prints_and_checks_stay(capsys: pytest.CaptureFixture[str]) -> None:
    @vd.shader("data.size")
    def told(data: Buff[i32]) -> None:
        vc.print("here", data[gid()])

    @vd.shader("data.size", check=True)
    def looked(data: Buff[i32]) -> None:
        data[gid()] = data[gid()] + 1

    data, graph = vd.asbuffer(np.zeros(2, np.int32)), vd.CommandGraph()
    step(data, graph=graph)
    step(data, graph=graph)
    told(data, graph=graph)
    looked(data, graph=graph)
    told(data, graph=graph)
    step(data, graph=graph)
    assert graph.optimize() == 1
    graph.submit()
    assert sorted(capsys.readouterr().out.split()) == sorted(["here", "4", "here", "5"] * 2)
    assert (data.read(0) == 16).all()


def test_dispatches_made_by_hand_stay_where_they_are() -> None:
    description = step.shader_description
    plan = ComputePlan(
        description.make_source(64, 1, 1), description.binding_type_list, description.pc_size, "s"
    )

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        step(b[0], graph=graph)
        step(b[0], graph=graph)
        bound = [vd.BufferBindInfo(b[0], 0, None, True, True)]
        graph.record_shader(plan, description, (100, 1, 1), (2, 1, 1), bound)
        step(b[0], graph=graph)
        step(b[0], graph=graph)

    check(record, [np.arange(100, dtype=np.int32)], 2)


def test_images() -> None:
    texels = np.arange(16, dtype=np.float32)

    @vd.shader("out.size")
    def look(image: Img1[f32], out: Buff[f32]) -> None:
        out[gid()] = out[gid()] + image.sample(vc.to_float(gid())).x

    image = vd.Image1D(16, vd.float32)
    image.write(texels)
    sampler = image.sample()
    out, graph = vd.asbuffer(np.zeros(16, np.float32)), vd.CommandGraph()
    look(sampler, out, graph=graph)
    scale(out, out, 2.0, graph=graph)
    look(sampler, out, graph=graph)
    assert graph.optimize() == 2
    graph.submit()
    assert np.allclose(out.read(0), texels * 3)


# -- values


def test_variables_keep_their_names() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        for name in ("p", "q", "p"):
            scale(b[0], b[0], graph.bind_var(name), graph=graph)
        smooth(b[0], b[1], graph=graph)
        scale(b[1], b[1], graph.bind_var("q"), graph=graph)

    def prepare(graph: vd.CommandGraph) -> None:
        graph.set_var("p", 3)
        graph.set_var("q", 0.5)

    graph = check(record, [np.ones(40, np.float32), np.ones(40, np.float32)], 3, prepare=prepare)
    assert graph.pc_builder.element_map.keys() == {("p", "0"), ("p", "1"), ("q", "0"), ("q", "1")}

    data, short = vd.asbuffer(np.ones(4, np.float32)), vd.CommandGraph()
    scale(data, data, short.bind_var("p"), graph=short)
    scale(data, data, 10.0, graph=short)
    short.set_var("p", [1, 2, 3])
    assert short.optimize() == 1
    short.submit(3)
    assert (data.read(0) == 6000).all()


def test_a_bound_index_is_not_known() -> None:
    @vd.shader(lambda args: args.out.size - 1)
    def at(out: Buff[i32], start: Var[u32]) -> None:
        out[gid() + start] = out[gid() + start] * 2 + 1

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        at(b[0], graph.bind_var("s"), graph=graph)
        at(b[0], graph.bind_var("t"), graph=graph)

    def prepare(graph: vd.CommandGraph) -> None:
        graph.set_var("s", 1)
        graph.set_var("t", 0)

    check(record, [np.arange(100, dtype=np.int32)], 0, prepare=prepare)

    def known(graph: vd.CommandGraph, b: list[Any]) -> None:
        at(b[0], 1, graph=graph)
        at(b[0], 1, graph=graph)
        at(b[0], 0, graph=graph)

    check(known, [np.arange(100, dtype=np.int32)], 1)


def test_dataclasses_vectors_and_many_arguments() -> None:
    @dataclasses.dataclass
    class Line:
        slope: f32
        shift: v3

    @vd.shader("out.size")
    def along(a: Buff[v3], out: Buff[v3], line: Line, more: Const[v4]) -> None:
        value = a[gid()] * line.slope + line.shift
        out[gid()] = value
        out[gid()].y = value.z + more.w

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        for k in range(8):
            line = Line(0.5 + k, (1, 2, k))  # type: ignore[arg-type]
            along(b[k % 2], b[1 - k % 2], line, (1, 2, 3, k), graph=graph)

    def vectors() -> vd.Buffer[Any]:
        buffer: vd.Buffer[Any] = vd.Buffer(50, v3)
        buffer.write(floats(50, 3))
        return buffer

    check(record, [vectors(), vectors()], 7)


def test_complex_numbers_and_matrices() -> None:
    @vd.shader("out.size")
    def turn(a: Buff[c64], out: Buff[c64], factor: Const[c64]) -> None:
        out[gid()] = a[gid()] * factor
        out[gid()].real = out[gid()].real + 1

    @vd.shader("out.size")
    def twice(a: Buff[m2], out: Buff[m2]) -> None:
        out[gid()] = a[gid()] * 2.0

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        turn(b[0], b[1], 1j, graph=graph)
        turn(b[1], b[0], 0.5 + 2j, graph=graph)
        twice(b[2], b[3], graph=graph)
        twice(b[3], b[2], graph=graph)

    numbers = (floats(60) + 1j * floats(60)).astype(np.complex64)
    matrices: vd.Buffer[Any] = vd.Buffer(60, m2)
    matrices.write(floats(60, 2, 2))
    check(record, [numbers, numbers, matrices, matrices], 3)


def test_types_that_memory_rounds() -> None:
    info = vd.get_context().device_infos[0]

    @vd.shader("b.size")
    def through(a: Buff[i32], b: Buff[i32], small: Buff[i8], tiny: Buff[u8], brain: Buff[bfloat16]) -> None:
        i = gid()
        small[i] = a[i] * 77
        tiny[i] = vc.to_uint(a[i] * 55)
        brain[i] = vc.to_float(a[i]) / 3.0
        b[i] = small[i] + vc.to_int(tiny[i]) + vc.to_int(brain[i] * 1000.0)

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        through(b[0], b[1], *b[2:], graph=graph)
        through(b[1], b[0], *b[2:], graph=graph)

    arrays: list[Any] = [np.arange(90, dtype=np.int32) for _ in range(2)]
    arrays += [np.zeros(90, np.int8), np.zeros(90, np.uint8), vd.Buffer(90, bfloat16)]
    check(record, arrays, 1)
    if not (info.float_16_support and info.storage_buffer_16_bit_access):
        return

    @vd.shader("out.size")
    def halved(a: Buff[f32], half: Buff[f16], out: Buff[f32]) -> None:
        half[gid()] = a[gid()].to_dtype(f16)
        out[gid()] = half[gid()].to_dtype(f32) * 3

    check(
        lambda g, b: (halved(*b, graph=g), halved(b[2], b[1], b[0], graph=g)),
        [floats(90), np.zeros(90, np.float16), floats(90)],
        1,
    )


def test_doubles_and_other_integers() -> None:
    if not vd.get_context().device_infos[0].float_64_support:
        pytest.skip("the device has no float64")

    @vd.shader("out.size")
    def product(a: Buff[f64], b: Buff[f64], out: Buff[f64]) -> None:
        out[gid()] = a[gid()] * b[gid()]

    @vd.shader("out.size")
    def total(a: Buff[f64], b: Buff[f64], out: Buff[f64]) -> None:
        out[gid()] = a[gid()] + b[gid()]

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        product(b[0], b[1], b[2], graph=graph)
        total(b[2], b[0], b[1], graph=graph)

    graph = check(record, [random.standard_normal(100) for _ in range(3)], 1)
    assert "packDouble2x32" in source(graph)


def test_a_product_is_rounded_before_another_kernel_adds_to_it() -> None:
    # a * b + c in one operation would keep what the store of a * b rounds away
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        mul(b[0], b[1], b[2], graph=graph)
        add(b[2], b[3], b[4], graph=graph)

    a, b = floats(4000), floats(4000)
    arrays = [a, b, a, -(a * b), a]
    text = source(check(record, arrays, 1))
    assert "uintBitsToFloat(floatBitsToUint(" in text
    buffers, graph = [vd.asbuffer(array) for array in arrays], vd.CommandGraph()
    record(graph, buffers)
    assert graph.optimize() == 1
    graph.submit()
    assert not buffers[4].read(0).any()


def test_sums_are_not_taken_together_over_kernels() -> None:
    # what lies in memory is rounded: (a + b) - a is not b, and an infinity less itself is no zero
    @vd.shader("out.size")
    def sub(a: Buff[f32], b: Buff[f32], out: Buff[f32]) -> None:
        out[gid()] = a[gid()] - b[gid()]

    @vd.shader("out.size")
    def none(a: Buff[f32], out: Buff[f32]) -> None:
        out[gid()] = a[gid()] * 0.0

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        add(b[0], b[1], b[2], graph=graph)
        sub(b[2], b[0], b[3], graph=graph)
        scale(b[0], b[4], 1.0, graph=graph)
        sub(b[4], b[0], b[5], graph=graph)
        none(b[0], b[6], graph=graph)
        mul(b[6], b[1], b[7], graph=graph)

    a, b = floats(500), floats(500) * np.float32(1e-4)
    a[:3] = np.inf, -np.inf, np.nan
    buffers = [vd.asbuffer(array) for array in (a, b, *[a] * 6)]
    graph = vd.CommandGraph()
    record(graph, buffers)
    assert graph.optimize() == 5
    graph.submit()
    with np.errstate(invalid="ignore"):
        assert (buffers[3].read(0)[3:] == ((a + b) - a)[3:]).all()
        assert np.array_equal(buffers[5].read(0), a - a, equal_nan=True)


def test_a_kernel_that_reads_back_what_it_stores() -> None:
    @vd.shader("out.size")
    def twice(a: Buff[f32], out: Buff[f32], factor: Const[f32]) -> None:
        out[gid()] = a[gid()] * factor
        out[gid()] = out[gid()] + a[gid()]

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        for k in range(3):
            twice(b[k], b[k + 1], 0.3, graph=graph)

    check(record, [floats(3000) for _ in range(4)], 2)


def test_one_buffer_twice_in_a_call() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        add(b[0], b[0], b[0], graph=graph)
        saxpy(b[0], b[0], 0.5, graph=graph)
        mul(b[0], b[1], b[0], graph=graph)

    text = source(check(record, [floats(70), floats(70)], 2))
    assert text.count(".data[") == 3


def test_one_buffer_as_two_types() -> None:
    @vd.shader("out.size")
    def bits(a: Buff[u32], out: Buff[u32]) -> None:
        out[gid()] = a[gid()] ^ 1

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        scale(b[0], b[1], 2.0, graph=graph)
        bits(b[1].view(vd.uint32), b[2], graph=graph)

    def reading(graph: vd.CommandGraph, b: list[Any]) -> None:
        scale(b[0], b[1], 2.0, graph=graph)
        bits(b[0].view(vd.uint32), b[2], graph=graph)

    buffers = [floats(70), floats(70), np.zeros(70, np.uint32)]
    check(record, buffers, 0)
    check(reading, buffers, 1)


# -- control flow


@vd.shader("out.size")
def branching(a: Buff[i32], out: Buff[i32]) -> None:
    i = gid()
    if a[i] % 3 == 0:
        out[i] = a[i] + 100
    elif a[i] % 3 == 1:
        out[i] = out[i] - a[i]
        a[i] = 5


@vd.shader("out.size")
def looping(a: Buff[i32], out: Buff[i32], n: Const[i32]) -> None:
    i = gid()
    for k in vc.range(n):
        out[i] = out[i] + a[i] * k
        if out[i] > 5000:
            break
    out[i] = out[i] % 1000


@vd.shader("out.size")
def leaving(a: Buff[i32], out: Buff[i32]) -> None:
    i = gid()
    if a[i] > 50:
        out[i] = 1
        return
    out[i] = a[i] * 2
    if a[i] < 10:
        return
    a[i] = out[i] + 1


@vd.shader("out.size")
def leaving_a_loop(a: Buff[i32], out: Buff[i32]) -> None:
    i = gid()
    out[i] = a[i] + 1
    for k in vc.range(10):
        if a[i] == k:
            out[i] = 7
            return
    a[i] = 3


@vd.shader("out.size")
def switching(a: Buff[i32], out: Buff[i32]) -> None:
    i = gid()
    match a[i] % 4:
        case 0:
            out[i] = 1
        case 1 | 2:
            out[i] = out[i] + 2
            a[i] = out[i]
    out[i] = out[i] * 2


@vd.shader("out.size")
def choosing(a: Buff[i32], out: Buff[i32]) -> None:
    i = gid()
    out[i] = vc.select(a[i] > 30, out[i], a[i] - 3) if True else 0
    while out[i] > 100:
        out[i] = out[i] // 2


FLOWS = [branching, looping, leaving, switching, choosing, step]


@pytest.mark.parametrize("kernel", [*FLOWS, leaving_a_loop], ids=lambda kernel: kernel.name)
def test_control_flow(kernel: Any) -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        step(b[0], graph=graph)
        if kernel is step:
            step(b[1], graph=graph)
        else:
            kernel(*b, *((5,) if kernel is looping else ()), graph=graph)
        step(b[1], graph=graph)
        branching(b[1], b[0], graph=graph)

    arrays = [np.arange(-20, 70, dtype=np.int32), np.arange(90, dtype=np.int32)[::-1].copy()]
    # nothing can follow a return within a loop
    check(record, arrays, 2 if kernel is leaving_a_loop else 3)


# -- temporaries


def test_temporaries_are_not_written() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        add(b[0], b[1], b[2], graph=graph)
        mul(b[2], b[1], b[3], graph=graph)
        saxpy(b[3], b[0], 2.0, graph=graph)

    arrays = [floats(300) for _ in range(4)]
    graph = check(record, arrays, 2, temporaries=(2, 3))
    kernel: Any = graph._recorded.dispatches()[0][0]
    assert len(kernel.description.kernel.resources) == 2
    assert source(graph).count(".data[") == 3


def test_a_temporary_that_another_dispatch_reads_is_written() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        scale(b[0], b[1], 2.0, graph=graph)
        scale(b[1], b[2], 2.0, graph=graph)
        smooth(b[1], b[3], graph=graph)

    check(record, [floats(300) for _ in range(4)], 1, temporaries=(1,))


def test_a_temporary_that_is_read_before_it_is_written_is_kept() -> None:
    # the next submit reads what this one wrote
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        saxpy(b[0], b[1], 2.0, graph=graph)
        add(b[1], b[0], b[2], graph=graph)

    check(record, [floats(300) for _ in range(3)], 1, temporaries=(1,))


def test_a_temporary_written_in_some_invocations() -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        step(b[0], graph=graph)
        branching(b[0], b[1], graph=graph)
        branching(b[1], b[2], graph=graph)

    check(record, [np.arange(90, dtype=np.int32) for _ in range(3)], 2, temporaries=(1,))


def test_a_temporary_whose_shape_is_used() -> None:
    @vd.shader("out.size")
    def sized(a: Buff[f32], out: Buff[f32]) -> None:
        out[gid()] = a[gid()] + vc.to_float(a.shape.x)

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        sized(b[0], b[1], graph=graph)
        sized(b[1], b[2], graph=graph)

    check(record, [floats(30) for _ in range(3)], 1, temporaries=(1,))


def test_a_temporary_as_two_types() -> None:
    @vd.shader("x.size")
    def spread(x: Buff[f32], t: Buff[f32]) -> None:
        t[2 * gid()] = x[gid()]
        t[2 * gid() + 1] = x[gid()] * 2

    @vd.shader("out.size")
    def gather(seen: Buff[v2], out: Buff[f32]) -> None:
        out[gid()] = seen[gid()].x + seen[gid()].y

    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        spread(b[0], b[1], graph=graph)
        gather(b[1].view(vd.vec2), b[2], graph=graph)
        scale(b[2], b[2], 2.0, graph=graph)

    check(record, [floats(30), floats(60), floats(30)], 1, temporaries=(1,))


def test_wrong_temporaries() -> None:
    graph, buffer = vd.CommandGraph(), vd.asbuffer(floats(3))
    for wrong in (buffer, 5, [3], [buffer, None]):
        with pytest.raises(TypeError, match="temporaries"):
            graph.optimize(wrong)  # type: ignore[arg-type]
    gone = vd.asbuffer(floats(3))
    gone.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        graph.optimize([gone])
    assert graph.optimize([buffer]) == 0
    graph.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        graph.optimize()


# -- the graph around it


def test_recording_goes_on_and_is_optimized_again() -> None:
    data, graph = vd.asbuffer(np.zeros(50, np.int32)), vd.CommandGraph()
    for _ in range(3):
        step(data, graph=graph)
    assert graph.optimize() == 2
    assert graph.optimize() == 0
    for _ in range(2):
        step(data, graph=graph)
    graph.submit()
    assert (data.read(0) == 121).all()
    assert graph.optimize() == 2
    assert length(graph) == 1
    graph.submit()
    expected = 121
    for _ in range(5):
        expected = expected * 3 + 1
    assert (data.read(0) == expected).all()
    graph.reset()
    assert graph.optimize() == 0
    step(data, graph=graph)
    step(data, graph=graph)
    assert graph.optimize() == 1


def test_graphs_that_submit_as_they_record() -> None:
    data, graph = vd.asbuffer(np.zeros(50, np.int32)), vd.CommandGraph(submit_on_record=True)
    step(data, graph=graph)
    step(data, graph=graph)
    assert graph.optimize() == 0
    # the second submit ran the first call again
    assert (data.read(0) == 13).all()


def test_the_same_chain_is_compiled_once() -> None:
    plans = []
    for size in (40, 50):
        data, graph = vd.asbuffer(np.zeros(size, np.int32)), vd.CommandGraph()
        for _ in range(4):
            step(data, graph=graph)
        graph.optimize()
        plans.append(graph._recorded.dispatches()[0][0])
    assert plans[0] is plans[1]


def test_long_chains_are_cut() -> None:
    data, graph = vd.asbuffer(np.zeros(50, np.int32)), vd.CommandGraph()
    for _ in range(2000):
        step(data, graph=graph)
    saved = graph.optimize()
    assert 1 < length(graph) == 2000 - saved < 50
    graph.submit()
    expected = 0
    for _ in range(2000):
        expected = (expected * 3 + 1) % (1 << 32)
    assert (data.read(0).view(np.uint32) == expected).all()


def test_a_refused_kernel_leaves_the_recording_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    data, graph = vd.asbuffer(np.zeros(50, np.float32)), vd.CommandGraph()

    @vd.shader("data.size")
    def grow(data: Buff[f32], by: Var[f32]) -> None:
        data[gid()] = data[gid()] * 2 + by

    grow(data, graph.bind_var("by"), graph=graph)
    grow(data, 1.0, graph=graph)
    smooth(data, vd.asbuffer(np.zeros(50, np.float32)), graph=graph)
    grow(data, 3.0, graph=graph)
    grow(data, 4.0, graph=graph)
    calls = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise vd.ShaderBuildError("no", shader_source=None)
        return compile_(*args, **kwargs)

    compile_ = LaunchableKernel.check_and_call
    monkeypatch.setattr(LaunchableKernel, "check_and_call", refuse)
    with pytest.raises(vd.ShaderBuildError):
        graph.optimize()
    monkeypatch.undo()
    assert length(graph) == 5
    graph.set_var("by", 5)
    graph.submit()
    assert (data.read(0) == ((5 * 2 + 1) * 2 + 3) * 2 + 4).all()
    assert graph.optimize() == 2
    graph.submit()


def test_names() -> None:
    data = [vd.asbuffer(floats(10)) for _ in range(3)]
    graph = vd.CommandGraph()
    add(*data, graph=graph)
    mul(*data, graph=graph)
    mul(*data, graph=graph)
    graph.optimize()
    kernel: Any = graph._recorded.dispatches()[0][0]
    assert kernel.description.name == "add+mul*2"


def test_threads_share_a_graph() -> None:
    data, graph = vd.asbuffer(np.zeros(50, np.int32)), vd.CommandGraph()

    def work() -> None:
        for _ in range(6):
            step(data, graph=graph)
            graph.optimize()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    graph.submit()
    expected = 0
    for _ in range(24):
        expected = (expected * 3 + 1) % (1 << 32)
    assert (data.read(0).view(np.uint32) == expected).all()
    graph.optimize()
    assert length(graph) <= 2


# -- random chains


@vd.shader("out.size")
def gathered(a: Buff[i32], b: Buff[i32], out: Buff[i32]) -> None:
    i = vc.to_int(gid())
    out[i] = out[i] + a[(vc.abs(b[i]) + 1) % a.shape.w]


@vd.shader("out.size")
def joined(a: Buff[i32], b: Buff[i32], out: Buff[i32]) -> None:
    out[gid()] = a[gid()] - 2 * b[gid()] + out[gid()]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from([*FLOWS, gathered, joined]), st.permutations(range(4)), st.integers(0, 5)),
        min_size=2,
        max_size=9,
    ),
    st.sampled_from([1, 31, 300]),
    st.sets(st.integers(0, 3)),
)
def test_random_chains(calls: list[Any], size: int, temporaries: set[int]) -> None:
    def record(graph: vd.CommandGraph, b: list[Any]) -> None:
        for kernel, order, number in calls:
            names = [info.name for info in kernel.shader_description.shader_arg_infos]
            buffers = [b[position] for position in order[: len(names) - ("n" in names)]]
            if kernel is joined and number == 0:
                buffers[1] = buffers[2]
            if kernel is gathered and number < 3:
                kernel = joined
            kernel(*buffers, *((number,) if "n" in names else ()), graph=graph)

    arrays = [np.arange(size, dtype=np.int32) * (k + 1) % 61 for k in range(4)]
    check(record, arrays, temporaries=sorted(temporaries))
