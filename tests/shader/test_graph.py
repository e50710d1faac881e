"""Command graphs: recording, replay, bound variables, instances, per-thread graphs; the list beneath."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.command_list import CommandList
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.descriptor_set import DescriptorSet
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, f64, i32, u32, v3
from vkdispatch.execution_pipeline.buffer_builder import BufferBuilder, BufferUsage


def zeros(size: Any, host: Any = np.float32) -> vd.Buffer[Any]:
    return vd.asbuffer(np.zeros(size, host))


@vd.shader("data.size")
def add(data: Buff[f32], x: Var[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + x


@vd.shader("data.size")
def scale(data: Buff[f32], x: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * x


@vd.shader("data.size")
def shift(data: Buff[f32], x: Var[v3], y: Var[f64] = 0.0) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + x.x + x.y * 10 + x.z * 100 + y.to_dtype(vd.float32)


def test_record_and_replay() -> None:
    data, graph = zeros(100), vd.CommandGraph()
    add(data, 1.0, graph=graph)
    scale(data, 2.0, graph=graph)
    assert not data.read(0).any()
    for _ in range(3):
        graph.submit()
    assert (data.read(0) == 14).all()
    graph.submit_any(2)
    assert (data.read(0) == 62).all()
    graph.submit(queue_index=0)
    graph.submit(1, -1)
    assert (data.read(0) == 254).all()


def test_recording_goes_on_after_a_submit() -> None:
    data, graph = zeros(10), vd.CommandGraph()
    add(data, 1.0, graph=graph)
    graph.submit()
    add(data, 10.0, graph=graph)
    graph.submit()
    assert (data.read(0) == 12).all()
    graph.reset()
    graph.submit()
    assert (data.read(0) == 12).all()
    add(data, 100.0, graph=graph)
    graph.submit()
    assert (data.read(0) == 112).all()


def test_reset_on_submit() -> None:
    data, graph = zeros(10), vd.CommandGraph(reset_on_submit=True)
    add(data, 1.0, graph=graph)
    graph.submit()
    graph.submit()
    assert (data.read(0) == 1).all()


def test_submit_on_record() -> None:
    data, graph = zeros(10), vd.CommandGraph(submit_on_record=True)
    add(data, 1.0, graph=graph)
    assert (data.read(0) == 1).all()
    add(data, 10.0, graph=graph)
    assert (data.read(0) == 12).all()


def test_the_recording_keeps_its_buffers_alive() -> None:
    data, graph = zeros(10), vd.CommandGraph()
    for value in range(5):
        temporary = vd.asbuffer(np.full(10, value, np.float32))
        _accumulate(data, temporary, graph=graph)
        del temporary
    graph.submit(2)
    assert (data.read(0) == 20).all()


@vd.shader("out.size")
def _accumulate(out: Buff[f32], a: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    out[i] = out[i] + a[i]


def test_destroying_a_buffer_ends_its_graphs() -> None:
    data, other, graph = zeros(10), zeros(10), vd.CommandGraph()
    add(data, 1.0, graph=graph)
    add(other, 1.0, graph=graph)
    graph.submit()
    data.destroy()
    assert graph.destroyed
    with pytest.raises(RuntimeError, match="destroyed"):
        graph.submit()
    with pytest.raises(RuntimeError, match="destroyed"):
        add(other, 1.0, graph=graph)
    assert (other.read(0) == 1).all()
    fresh = vd.CommandGraph()
    temporary = zeros(10)
    add(temporary, 1.0, graph=fresh)
    fresh.reset()
    temporary.destroy()
    assert not fresh.destroyed
    fresh.destroy()
    fresh.destroy()


# -- bound variables


def test_bound_variables() -> None:
    data, graph = zeros(10), vd.CommandGraph()
    add(data, graph.bind_var("x"), graph=graph)
    add(data, x=graph.bind_var("y"), graph=graph)
    scale(data, 2.0, graph=graph)
    graph.set_var("x", 3)
    for submit in (graph.submit, graph.submit_any, lambda: graph.prepare_submission_state(1)):
        with pytest.raises(ValueError, match=r"'y' has no value; call graph.set_var"):
            submit()
    assert not data.read(0).any()
    graph.set_var("y", 0)
    graph.bind_var("never used")
    graph.submit()
    assert (data.read(0) == 6).all()
    graph.set_var("y", np.float32(1))
    graph.submit()
    assert (data.read(0) == 20).all()


def test_a_variable_bound_to_different_types() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    add(data, graph.bind_var("x"), graph=graph)
    shift(data, (0, 0, 0), graph.bind_var("x"), graph=graph)
    graph.set_var("x", 2)
    graph.submit()
    assert (data.read(0) == 4).all()


def test_vector_variables() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    shift(data, graph.bind_var("v"), graph.bind_var("w"), graph=graph)
    graph.set_var("v", (1, 2, 3))
    graph.set_var("w", 0.5)
    graph.submit()
    assert (data.read(0) == 321.5).all()


def test_one_value_per_instance() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    add(data, graph.bind_var("x"), graph=graph)
    scale(data, 2.0, graph=graph)
    graph.set_var("x", [1, 2, 3])
    graph.submit(3)
    assert (data.read(0) == ((1 * 2 + 2) * 2 + 3) * 2).all()
    graph.set_var("x", 1)
    graph.submit(2)
    assert (data.read(0) == (22 + 1) * 4 + 2).all()


def test_one_vector_per_instance() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    shift(data, graph.bind_var("v"), graph=graph)
    graph.set_var("v", [[1, 0, 0], [0, 2, 0]])
    graph.submit(2)
    assert (data.read(0) == 21).all()
    value = (1, 2, 3)
    graph.set_var("v", value)
    with pytest.raises(ValueError, match=r"variable 'v'.*\(2, 3\).*pass \[value\] \* 2 to use it for all 2"):
        graph.submit(2)
    graph.submit(1)
    assert (data.read(0) == 342).all()
    graph.set_var("v", [value] * 2)
    graph.submit(2)
    assert (data.read(0) == 342 + 2 * 321).all()


def test_instances_without_variables() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    add(data, 1.0, graph=graph)
    graph.submit(50)
    assert (data.read(0) == 50).all()


def test_values_are_copied() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    add(data, graph.bind_var("x"), graph=graph)
    values = np.array([1, 2], np.float32)
    graph.set_var("x", values)
    values[:] = 100
    graph.submit(2)
    assert (data.read(0) == 3).all()


def test_many_arguments_and_variables() -> None:
    def store(out: Any, *values: Any) -> None:
        for index, value in enumerate(values):
            out[index] = out[index] + value

    kinds = [Buff[f32]] + [Const[f32]] * 40 + [Var[f32]] * 3
    kernel = vd.shader(1, arg_type_annotations=kinds)(store)
    out, graph = zeros(43), vd.CommandGraph()
    variables = [graph.bind_var(str(index)) for index in range(3)]
    for _ in range(2):
        kernel(out, *range(40), *variables, graph=graph)
    for index in range(3):
        graph.set_var(str(index), [index, index + 1])
    graph.submit(2)
    np.testing.assert_array_equal(
        out.read(0), [4.0 * i for i in range(40)] + [2 * (2 * i + 1) for i in range(3)]
    )


def test_bad_variables() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    bound = graph.bind_var("x")
    for call, text in (
        (lambda: scale(data, bound, graph=graph), "Var"),
        (lambda: add(data, bound), "graph="),
        (lambda: add(data, bound, graph=vd.default_graph()), "record"),
        (lambda: add(data, bound, graph=vd.CommandGraph(submit_on_record=True)), "record"),
        (lambda: add(data, bound, graph=vd.CommandGraph()), "another graph"),
        (lambda: add(data, len, graph=graph), "'x'"),
        (lambda: add(bound, 1.0, graph=graph), "'data'"),
        (lambda: graph.set_var("y", 1), "'y'.*'x'"),
    ):
        with pytest.raises(ValueError, match=text):
            call()  # type: ignore[no-untyped-call]
    for value in (None, "1", len, [1, [2]], object()):
        with pytest.raises((TypeError, ValueError), match="variable 'x'"):
            graph.set_var("x", value)
    with pytest.raises(TypeError, match="name"):
        graph.bind_var(3)  # type: ignore[arg-type]
    add(data, bound, graph=graph)
    graph.set_var("x", [1, 2])
    for count in (1, 3):
        with pytest.raises(ValueError, match="variable 'x'"):
            graph.submit(count)
        with pytest.raises(ValueError, match="variable 'x'"):
            graph.prepare_submission_state(count)
    graph.set_var("x", 2j)
    with pytest.raises(TypeError, match="variable 'x'"):
        graph.submit()
    graph.set_var("x", 5)
    graph.prepare_submission_state(1)
    graph.submit()
    assert (data.read(0) == 5).all()


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True])
def test_bad_instance_counts(count: Any) -> None:
    graph = vd.CommandGraph()
    add(zeros(3), 1.0, graph=graph)
    with pytest.raises(ValueError, match="instance_count"):
        graph.submit(count)


@pytest.mark.parametrize("queue", [-3, 99, 1.5, "0", None])
def test_bad_queues(queue: Any) -> None:
    graph = vd.CommandGraph()
    add(zeros(3), 1.0, graph=graph)
    with pytest.raises(ValueError, match="queue_index"):
        graph.submit(1, queue)


def test_a_bad_call_leaves_the_graph_as_it_was() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    add(data, 1.0, graph=graph)
    for bad in ((data, "x"), (data, (1, 2)), (None, 1.0), (data,), (data, 1.0, 2.0)):
        with pytest.raises((TypeError, ValueError)):
            add(*bad, graph=graph)
    graph.submit()
    assert (data.read(0) == 1).all()


# -- the graphs of a thread


def test_global_graph() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    assert vd.global_graph() is vd.default_graph()
    assert vd.set_global_graph(graph) is None
    try:
        assert vd.global_graph() is graph
        add(data, 1.0)
        assert not data.read(0).any()
        with pytest.raises(RuntimeError, match="already"):
            vd.set_global_graph(graph)
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(vd.global_graph()))
        thread.start()
        thread.join()
        assert others[0] is not graph
    finally:
        vd.set_global_graph(None)
    add(data, 10.0)
    assert (data.read(0) == 10).all()
    graph.submit()
    assert (data.read(0) == 11).all()
    with pytest.raises(TypeError, match="graph"):
        vd.set_global_graph(3)  # type: ignore[arg-type]


def test_the_default_graph_given_by_hand() -> None:
    data = zeros(4)
    for _ in range(3):
        add(data, 1.0, graph=vd.default_graph())
    assert (data.read(0) == 3).all()


def test_two_threads_replay_their_graphs() -> None:
    shared = zeros(64)

    def work() -> None:
        graph = vd.CommandGraph()
        for _ in range(10):
            add(shared, 1.0, graph=graph)
        for _ in range(20):
            graph.submit()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (shared.read(0) == 800).all()


# -- long graphs


def test_a_thousand_dependent_dispatches_replayed() -> None:
    data, graph = zeros(64, np.uint32), vd.CommandGraph()

    # x = x * 5 + k: any dispatch missed, doubled or out of order changes the result.
    @vd.shader("data.size")
    def step(data: Buff[u32], k: Const[u32]) -> None:
        i = vc.global_invocation_id().x
        data[i] = data[i] * 5 + k

    for k in range(1000):
        step(data, k, graph=graph)
    for _ in range(100):
        graph.submit()
    expected = 0
    for _ in range(100):
        for k in range(1000):
            expected = (expected * 5 + k) % 2**32
    assert (data.read(0) == expected).all()


def test_recording_is_linear() -> None:
    data, graph = zeros(4), vd.CommandGraph()
    for value in range(5000):
        add(data, float(value % 7), graph=graph)
    # kernel and buffer, and where kernels are checked what they report to
    assert len(graph.parents) <= 3
    graph.submit()
    assert (data.read(0) == sum(value % 7 for value in range(5000))).all()


def test_independent_and_dependent_mix() -> None:
    buffers = [vd.asbuffer(np.full(50, index, np.float32)) for index in range(6)]
    graph = vd.CommandGraph()
    generator = np.random.default_rng(5)
    expected = [np.full(50, index, np.float32) for index in range(6)]
    for _ in range(300):
        target, source = generator.integers(0, 6, 2)
        _halve_and_add(buffers[target], buffers[source], graph=graph)
        expected[target] = (expected[target] * np.float32(0.5) + expected[source]).astype(np.float32)
    graph.submit()
    for buffer, values in zip(buffers, expected, strict=True):
        np.testing.assert_allclose(buffer.read(0), values, rtol=1e-5)


@vd.shader("out.size")
def _halve_and_add(out: Buff[f32], a: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    out[i] = out[i] * 0.5 + a[i]


# -- plans, descriptor sets and lists by hand

ADD = """#version 450
#extension GL_ARB_separate_shader_objects : enable
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; } push;
layout(set = 0, binding = 0) buffer Out { float target[]; };
layout(set = 0, binding = 1) buffer In { float source[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.count) return;
    target[i] = target[i] + source[i];
}
"""


def bound(plan: ComputePlan, target: vd.Buffer[Any], source: vd.Buffer[Any]) -> DescriptorSet:
    result = DescriptorSet(plan)
    result.bind_buffer(target, 0)
    result.bind_buffer(source, 1, write_access=False)
    return result


def counts(*values: int) -> bytes:
    return np.array(values, np.uint32).tobytes()


def test_command_lists() -> None:
    plan = ComputePlan(ADD, [1, 1], 4, "add")
    data, ones = zeros(100), vd.asbuffer(np.ones(100, np.float32))
    commands = CommandList()
    commands.submit(instance_count=1)
    for _ in range(300):
        commands.reset()
        commands.record_compute_plan(plan, bound(plan, data, ones), [2, 1, 1])
        commands.submit(data=counts(100))
        commands.reset()
    assert (data.read(0) == 300).all()
    commands.record_compute_plan(plan, bound(plan, data, ones), (2, 1, 1))
    commands.record_compute_plan(plan, bound(plan, data, ones), (1, 1, 1))
    assert commands.get_instance_size() == 8
    commands.submit(counts(100, 50, 10, 0), instance_count=2)
    commands.submit(counts(1, 1), 0)
    expected = (
        300
        + (np.arange(100) < 100)
        + (np.arange(100) < 50)
        + (np.arange(100) < 10)
        + 2.0 * (np.arange(100) < 1)
    )
    np.testing.assert_array_equal(data.read(0), expected)


def test_low_level_errors() -> None:
    plan = ComputePlan(ADD, [1, 1], 4, "add")
    data, ones = zeros(100), zeros(100)
    commands = CommandList()
    descriptors = DescriptorSet(plan)
    with pytest.raises(RuntimeError, match="binding 0"):
        commands.record_compute_plan(plan, descriptors, (1, 1, 1))
    descriptors = bound(plan, data, ones)
    for blocks in ((1, 1), (0, 1, 1), (1.5, 1, 1), 3, (2**31, 2**31, 2**31)):
        with pytest.raises(ValueError, match="blocks"):
            commands.record_compute_plan(plan, descriptors, blocks)  # type: ignore[arg-type]
    commands.record_compute_plan(plan, descriptors, (1, 1, 1))
    for arguments, error, text in (
        ({}, ValueError, "needed"),
        ({"data": bytes(3)}, ValueError, "bytes"),
        ({"data": bytes(8), "instance_count": 1}, ValueError, "bytes"),
        ({"data": bytes(4), "queue_index": 99}, ValueError, "queue_index"),
        ({"data": bytes(4), "cuda_stream": 1}, RuntimeError, "cuda"),
        ({"instance_count": 0}, ValueError, "instance_count"),
    ):
        with pytest.raises(error, match=text):
            commands.submit(**arguments)  # type: ignore[arg-type]
    for bind, error in (
        (lambda: descriptors.bind_buffer(data, 2), ValueError),
        (lambda: descriptors.bind_buffer(data, -1), ValueError),
        (lambda: descriptors.bind_buffer(data, 0, offset=400), ValueError),
        (lambda: descriptors.bind_buffer(data, 0, offset=0, range=401), ValueError),
        (lambda: descriptors.bind_buffer(data, 0, uniform=True), ValueError),
        (lambda: descriptors.bind_buffer(np.zeros(3), 0), TypeError),
        (lambda: DescriptorSet(3), TypeError),
        (lambda: commands.record_compute_plan(3, descriptors, (1, 1, 1)), TypeError),
        (lambda: commands.record_compute_plan(plan, 3, (1, 1, 1)), TypeError),
        (lambda: ComputePlan(ADD, [1, 7], 4, "x"), ValueError),
        (lambda: ComputePlan(ADD, [1, 1], -4, "x"), ValueError),
        (lambda: ComputePlan(3, [1, 1], 4, "x"), TypeError),
    ):
        with pytest.raises(error):
            bind()  # type: ignore[no-untyped-call]
    plan.destroy()
    assert commands.destroyed and descriptors.destroyed
    for use in (
        lambda: commands.submit(bytes(4)),
        lambda: CommandList().record_compute_plan(plan, descriptors, (1, 1, 1)),
        lambda: DescriptorSet(plan),
    ):
        with pytest.raises(RuntimeError, match="destroyed"):
            use()


def test_offsets_and_ranges() -> None:
    plan = ComputePlan(ADD, [1, 1], 4, "add")
    step = max(vd.get_context().device_infos[0].uniform_buffer_alignment, 256) // 4
    data, ones = zeros(4 * step), vd.asbuffer(np.ones(step, np.float32))
    descriptors = DescriptorSet(plan)
    descriptors.bind_buffer(data, 0, offset=4 * step, range=4 * step)
    descriptors.bind_buffer(ones, 1)
    commands = CommandList()
    commands.record_compute_plan(plan, descriptors, (-(-step // 64), 1, 1))
    commands.submit(counts(step))
    np.testing.assert_array_equal(data.read(0), np.repeat([0, 1, 0, 0], step))


# -- the builder of packed rows


def test_buffer_builder() -> None:
    elements = [
        vc.StructElement("a", vd.float32, 1),
        vc.StructElement("b", vd.vec3, 1),
        vc.StructElement("c", vd.int32, 2),
    ]
    builder = BufferBuilder(struct_alignment=16)
    assert builder.register_struct("s", elements) == (0, 32)
    assert builder.register_struct("t", elements[:1]) == (32, 16)
    assert builder.instance_bytes == 48
    with pytest.raises(RuntimeError, match="prepare"):
        builder.set_item(("s", "a"), 1)
    builder.prepare(2)
    builder.set_item(("s", "a"), [1, 2])
    builder[("s", "b")] = [[1, 2, 3], [4, 5, 6]]
    builder["t", "a"] = 9
    rows = np.frombuffer(builder.tobytes(), np.float32).reshape(2, 12)
    np.testing.assert_array_equal(rows[:, :4], [[1, 1, 2, 3], [2, 4, 5, 6]])
    np.testing.assert_array_equal(rows[:, 8], [9, 9])
    assert builder.toints() == np.frombuffer(builder.tobytes(), np.uint32).tolist()
    with pytest.raises(ValueError, match="'z'"):
        builder.set_item(("s", "z"), 1)
    with pytest.raises(ValueError, match=r"s\.b"):
        builder.set_item(("s", "b"), [1, 2])
    builder.reset()
    assert builder.instance_bytes == 0 and not builder.element_map
    with pytest.raises(ValueError, match="usage"):
        BufferBuilder()
    assert BufferBuilder(usage=BufferUsage.PUSH_CONSTANT).struct_alignment == 0
    assert BufferBuilder(usage=BufferUsage.UNIFORM_BUFFER).struct_alignment > 0


def test_int_variables() -> None:
    @vd.shader("data.size")
    def add_int(data: Buff[i32], x: Var[i32]) -> None:
        i = vc.global_invocation_id().x
        data[i] = data[i] + x

    data, graph = zeros(3, np.int32), vd.CommandGraph()
    add_int(data, graph.bind_var("x"), graph=graph)
    graph.set_var("x", -(2**31))
    graph.submit()
    assert (data.read(0) == -(2**31)).all()
    graph.set_var("x", 2**31)
    with pytest.raises(ValueError, match="fit"):
        graph.submit()


def test_calls_in_a_with_block_are_recorded() -> None:
    data = zeros(4)
    with vd.CommandGraph() as graph:
        add(data, 1.0)
        scale(data, 3.0)
        with pytest.raises(RuntimeError, match="set already"), graph:
            pass
    assert not data.read(0).any()
    graph.submit(2)
    assert data.read(0).tolist() == [12] * 4
    with pytest.raises(KeyError), graph:
        raise KeyError
    add(data, 1.0)  # not recorded
    assert data.read(0).tolist() == [13] * 4
