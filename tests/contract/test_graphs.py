"""Command graphs: recording, variables by name, instances, default graphs of threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.command_list import CommandList
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, v2
from vkdispatch.execution_pipeline.buffer_builder import BufferBuilder, BufferUsage


@vd.shader("a.size")
def add(a: Buff[f32], c: Const[f32]) -> None:
    a[vc.global_invocation_id().x] += c


@vd.shader("a.size")
def add_variable(a: Buff[f32], v: Var[f32]) -> None:
    a[vc.global_invocation_id().x] += v


@vd.shader("a.size")
def affine(a: Buff[f32], v: Var[v2], c: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    a[i] = a[i] * v.x + v.y + c


def zeros() -> Any:
    return vd.asbuffer(np.zeros(8, np.float32))


def test_submit_and_record_more() -> None:
    a, graph = zeros(), vd.CommandGraph()
    assert isinstance(graph, CommandList) and not graph.submit_on_record and not graph._reset_on_submit
    graph.submit()
    add(a, 1.0, graph=graph)
    graph.submit()
    graph.submit(3)
    graph.submit(2, 0)
    graph.submit_any(2)
    graph.submit(instance_count=2, queue_index=-1)
    assert a.read(0)[0] == 10
    add(a, 10.0, graph=graph)
    graph.submit()
    assert a.read(0)[0] == 21
    graph.reset()
    graph.submit()
    assert a.read(0)[0] == 21
    for queue in (-3, vd.get_context().queue_count, "0"):
        with pytest.raises(ValueError):
            graph.submit(1, queue)


@pytest.mark.parametrize(("reset", "total"), [(False, 12), (True, 11)])
def test_submit_on_record(reset: bool, total: int) -> None:
    """Without a reset the second submit replays the first recording too."""
    a, graph = zeros(), vd.CommandGraph(reset, True)
    add(a, 1.0, graph=graph)
    add(a, 10.0, graph=graph)
    assert a.read(0)[0] == total
    with pytest.raises(ValueError):
        add_variable(a, graph.bind_var("x"), graph=graph)


def test_variables() -> None:
    a, graph = zeros(), vd.CommandGraph()
    add_variable(a, graph.bind_var("x"), graph=graph)
    add_variable(a, v=graph.bind_var("x"), graph=graph)
    add_variable(a, graph.bind_var("y"), graph=graph)
    add_variable(a, 100.0, graph=graph)
    expected = 0.0
    # unset variables, which are 0 in 0.1.0, are an error
    graph.set_var("x", 5.0)
    with pytest.raises(ValueError, match="'y' has no value"):
        graph.submit()
    steps: list[tuple[dict[str, Any], int, float]] = [
        ({"x": 0, "y": 0}, 1, 100),
        ({"x": 1.0}, 1, 102),
        ({}, 1, 102),
        ({"y": 10}, 2, 224),
        ({"x": [1.0, 2.0, 3.0]}, 3, 12 + 30 + 300),
        ({"x": np.array([1, 2])}, 2, 6 + 20 + 200),
        ({"x": 5.0}, 1, 120),
    ]
    for values, instances, change in steps:
        for name, value in values.items():
            graph.set_var(name, value)
        graph.submit(instances)
        expected += change
        assert a.read(0)[0] == expected
    with pytest.raises(ValueError):
        graph.set_var("z", 1)
    graph.set_var("x", [1.0, 2.0])
    for instances in (1, 3):
        with pytest.raises(ValueError):
            graph.submit(instances)


def test_variables_of_vectors() -> None:
    a, graph = zeros(), vd.CommandGraph()
    affine(a, graph.bind_var("v"), 0.5, graph=graph)
    graph.set_var("v", (2, 3))
    graph.submit()
    assert a.read(0)[0] == 3.5
    graph.set_var("v", [[1, 2], [3, 4]])
    graph.submit(2)
    assert a.read(0)[0] == (3.5 + 2.5) * 3 + 4.5
    graph.set_var("v", (1, 2))
    for instances in (2, 3):
        with pytest.raises(ValueError):
            graph.submit(instances)
    graph.reset()
    with pytest.raises(ValueError):
        graph.set_var("v", (1, 2))


def test_global_graph() -> None:
    assert vd.global_graph() is vd.default_graph() is vd.default_graph()
    assert vd.default_graph().submit_on_record and vd.default_graph()._reset_on_submit
    graph, a = vd.CommandGraph(), zeros()
    assert vd.set_global_graph(graph) is None
    try:
        with pytest.raises(RuntimeError):
            vd.set_global_graph(vd.CommandGraph())
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.extend((vd.global_graph(), vd.default_graph())))
        thread.start()
        thread.join()
        assert seen[0] is seen[1] is not vd.default_graph()
        add(a, 1.0)
        assert a.read(0)[0] == 0
        graph.submit()
        assert a.read(0)[0] == 1
    finally:
        vd.set_global_graph(None)
    assert vd.global_graph() is vd.default_graph()


def test_threads() -> None:
    buffers, shared, graph = [zeros() for _ in range(4)], zeros(), vd.CommandGraph()

    def work(k: int) -> None:
        for _ in range(50):
            add(buffers[k], float(k))
            add(shared, 1.0, graph=graph)
        own = vd.CommandGraph()
        add_variable(buffers[k], own.bind_var("x"), graph=own)
        for i in range(20):
            own.set_var("x", [float(i)] * 2)
            own.submit(2)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    graph.submit()
    assert [b.read(0)[0] for b in buffers] == [50 * k + 380 for k in range(4)]
    assert shared.read(0)[0] == 200


def test_record_shader() -> None:
    with vc.shader_context() as context:
        data, c, v = context.declare_input_arguments([Buff[f32], Const[f32], Var[f32]])
        data[vc.global_invocation_id().x] = c + v + vc.to_float(data.shape.x)
    description = context.get_description()
    buffer, constant, variable = description.shader_arg_infos
    plan = ComputePlan(
        description.make_source(8, 1, 1), description.binding_type_list, description.pc_size, "plan"
    )
    a, graph = zeros(), vd.CommandGraph()
    bound = [vd.BufferBindInfo(a, 0, buffer.shader_shape_name, True, True)]
    limits, blocks = (8, 1, 1), (1, 1, 1)
    values = ({constant.shader_name: 1.5}, {variable.shader_name: 2.0})
    graph.record_shader(plan, description, limits, blocks, bound, [], *values)
    graph.submit()
    assert a.read(0)[0] == 11.5


def test_buffer_builder() -> None:
    element = vc.StructElement
    builder = BufferBuilder(usage=BufferUsage.PUSH_CONSTANT)
    members = [element("x", vd.float32, 1), element("v", vd.vec3, 1), element("n", vd.int32, 2)]
    assert builder.register_struct("s", members) == (0, 24)
    builder.prepare(2)
    builder.set_item(("s", "v"), [[1, 2, 3], [4, 5, 6]])
    builder.set_item(("s", "n"), [[1, 2], [3, 4]])
    rows = np.frombuffer(builder.tobytes(), np.int32).reshape(2, 6)
    assert rows[:, 4:].tolist() == [[1, 2], [3, 4]]
    builder.set_item(("s", "n"), [7, 8])
    rows = np.frombuffer(builder.tobytes(), np.int32).reshape(2, 6)
    assert rows[:, 4:].tolist() == [[7, 8], [7, 8]]
    assert rows.view(np.float32)[:, :4].tolist() == [[0, 1, 2, 3], [0, 4, 5, 6]]
    for key, value in ((("s", "v"), [1, 2]), (("s", "other"), 1), (("s", "n"), [1, 2, 3])):
        with pytest.raises(ValueError):
            builder.set_item(key, value)
