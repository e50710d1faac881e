"""Graphs and threads, graphs recorded by hand with `record_shader`, and what graphs say of themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.descriptor_set import DescriptorSet
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, i32, v3

THREADS = 4


@vd.shader("data.size")
def affine(data: Buff[f32], factor: Const[f32], offset: Var[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * factor + offset


def in_threads(work: Callable[[int], None]) -> None:
    failed: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


# -- threads


def test_each_thread_records_a_graph_of_its_own() -> None:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        data = vd.asbuffer(np.full(257, float(number), np.float32))
        graph = vd.CommandGraph()
        for step in range(100):
            affine(data, 1.0, graph.bind_var(f"v{step % 3}"), graph=graph)
        for name, value in (("v0", 1), ("v1", number), ("v2", 0.5)):
            graph.set_var(name, value)
        for _ in range(5):
            graph.submit()
        results[number] = data.read(0)

    in_threads(work)
    for number, result in results.items():
        assert (result == number + 5 * (34 + 33 * number + 33 * 0.5)).all()


def test_threads_record_into_the_same_graph() -> None:
    graph = vd.CommandGraph()
    buffers = [vd.asbuffer(np.zeros(65, np.float32)) for _ in range(THREADS)]

    def work(number: int) -> None:
        for step in range(200):
            affine(buffers[number], 1.0, graph.bind_var("shared"), graph=graph)
            affine(buffers[number], 1.0, float(number), graph=graph)
            if step % 50 == 0:
                graph.prepare_submission_state(1)

    graph.bind_var("shared")
    graph.set_var("shared", 10)
    in_threads(work)
    graph.submit()
    for number, buffer in enumerate(buffers):
        assert (buffer.read(0) == 200 * (10 + number)).all()


def test_threads_record_and_submit_the_same_graph() -> None:
    graph = vd.CommandGraph()
    counters = [vd.asbuffer(np.zeros(33, np.float32)) for _ in range(THREADS)]
    submits = []

    def work(number: int) -> None:
        affine(counters[number], 1.0, 1.0, graph=graph)
        for _ in range(50):
            graph.submit()
            submits.append(number)

    in_threads(work)
    before = [counter.read(0)[0] for counter in counters]
    assert len(submits) == 50 * THREADS
    # Each was recorded before its own thread's 50 submits, and not more than all submits ran it.
    assert all(50 <= count <= 50 * THREADS for count in before)
    graph.submit()
    assert [counter.read(0)[0] for counter in counters] == [count + 1 for count in before]


def test_a_thread_resets_what_others_submit() -> None:
    graph = vd.CommandGraph()
    data = vd.asbuffer(np.zeros(9, np.float32))

    def work(number: int) -> None:
        for _ in range(100):
            if number == 0:
                graph.reset()
            affine(data, 1.0, 1.0, graph=graph)
            graph.submit()

    in_threads(work)
    assert data.read(0)[0] >= 100 * THREADS


def test_default_and_global_graphs_are_the_threads_own() -> None:
    seen: dict[int, list[Any]] = {}
    chosen = vd.CommandGraph()
    vd.set_global_graph(chosen)
    barrier = threading.Barrier(THREADS)

    def work(number: int) -> None:
        assert vd.global_graph() is vd.default_graph() is vd.default_graph()
        mine = vd.CommandGraph()
        vd.set_global_graph(mine)
        barrier.wait()
        assert vd.global_graph() is mine
        data = vd.asbuffer(np.zeros(5, np.float32))
        affine(data, 1.0, number)
        assert data.read(0)[0] == 0
        mine.submit()
        assert data.read(0)[0] == number
        vd.set_global_graph(None)
        seen[number] = [vd.default_graph(), mine]

    try:
        in_threads(work)
        assert vd.global_graph() is chosen
    finally:
        vd.set_global_graph(None)
    graphs = [id(graph) for pair in seen.values() for graph in pair]
    assert len(set(graphs)) == len(graphs) == 2 * THREADS


# -- by hand


@vd.shader("data.size")
def shaped(data: Buff[f32], other: Buff[f32], k: Const[i32], v: Const[v3], x: Var[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = other[i] * k + v.y + x + data.shape.x


def by_hand(description: Any) -> ComputePlan:
    return ComputePlan(
        description.make_source(32, 1, 1), description.binding_type_list, description.pc_size, "by hand"
    )


def test_record_shader() -> None:
    description = shaped.shader_description
    plan = by_hand(description)
    host = np.arange(100, dtype=np.float32)
    data, other = vd.asbuffer(np.zeros(100, np.float32)), vd.asbuffer(host)
    names = [info.shader_name for info in description.shader_arg_infos]
    bound = [
        vd.BufferBindInfo(data, 0, description.shader_arg_infos[0].shader_shape_name, False, True),
        vd.BufferBindInfo(other, 1, None, True, False),
    ]
    graph = vd.CommandGraph()
    graph.record_shader(
        plan,
        description,
        (90, 1, 1),
        (4, 1, 1),
        bound,
        [],
        {names[2]: 3, names[3]: (1, 2, 3)},
        {names[4]: graph.bind_var("x")},
        shader_uuid="mine",
    )
    affine(data, 2.0, 0.0, graph=graph)
    graph.set_var("x", 0.5)
    graph.submit()
    expected = np.zeros(100, np.float32)
    expected[:90] = (host[:90] * 3 + 2 + 0.5 + 100) * 2
    assert (data.read(0) == expected).all()
    assert graph.uniform_values["mine", names[2]] == 3
    (descriptors,) = graph.recorded_descriptor_sets
    assert isinstance(descriptors, DescriptorSet) and descriptors.compute_plan is plan
    graph.prepare_for_cuda_graph_capture()
    graph.prepare_for_cuda_graph_capture(2)
    data.destroy()
    assert graph.destroyed


def test_record_shader_with_a_uniform_block() -> None:
    count = 40

    def body(*args: Any) -> None:
        i = vc.global_invocation_id().x
        total = args[1]
        for value in args[2:]:
            total = total + value
        args[0][i] = total

    kernel = vd.shader(1, arg_type_annotations=[Buff[f32], *[Const[f32]] * count])(body)
    description = kernel.shader_description
    assert description.layout().uniform
    data = vd.asbuffer(np.zeros(3, np.float32))
    graph = vd.CommandGraph()
    values = {info.shader_name: float(n) for n, info in enumerate(description.shader_arg_infos[1:])}
    graph.record_shader(
        by_hand(description),
        description,
        (2, 1, 1),
        (1, 1, 1),
        [vd.BufferBindInfo(data, 1, None, True, True)],
        uniform_values=values,
    )
    graph.submit()
    assert data.read(0).tolist() == [sum(range(count)), sum(range(count)), 0]


def test_bad_recordings_by_hand() -> None:
    description = affine.shader_description
    plan = by_hand(description)
    data = vd.asbuffer(np.zeros(4, np.float32))
    bound = [vd.BufferBindInfo(data, 0, None, True, True)]
    graph, other = vd.CommandGraph(), vd.CommandGraph()
    good = {"factor": 1.0, "offset": 1.0}
    for values, text in (
        ({"factor": 1.0}, "'offset' has no value"),
        ({**good, "more": 1}, "no member is called 'more'"),
        ({**good, "offset": "x"}, "offset"),
        ({**good, "offset": other.bind_var("v")}, "another graph"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            graph.record_shader(plan, description, (4,), (1, 1, 1), bound, pc_values=values)
    for limits in ((-1, 1, 1), ("4",), 4):
        with pytest.raises(ValueError, match="exec_limits"):
            graph.record_shader(plan, description, limits, (1, 1, 1), bound, pc_values=good)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="blocks"):
        graph.record_shader(plan, description, (4,), (0, 1, 1), bound, pc_values=good)
    with pytest.raises(RuntimeError, match="nothing is bound at binding 0"):
        graph.record_shader(plan, description, (4,), (1, 1, 1), [], pc_values=good)
    graph.submit()
    assert (data.read(0) == 0).all() and graph.recorded_descriptor_sets == []


# -- what a graph says


def test_attributes() -> None:
    graph = vd.CommandGraph(reset_on_submit=True)
    assert (graph._reset_on_submit, graph.submit_on_record) == (True, False)
    assert vd.default_graph()._reset_on_submit and vd.default_graph().submit_on_record
    data = vd.asbuffer(np.zeros(4, np.float32))
    affine(data, 2.0, graph.bind_var("x"), graph=graph)
    affine(data, 4.0, graph.bind_var("x"), graph=graph)
    graph.set_var("x", 1.25)
    assert list(graph.pc_values) == ["x"] and graph.uniform_values == {}
    builder = graph.pc_builder
    assert builder.instance_bytes == graph.get_instance_size() and builder.instance_count == 1
    for position in ("0", "1"):
        place = builder.element_map["x", position].memory_slice
        assert np.frombuffer(builder.tobytes()[place], np.float32) == 1.25
    assert np.isin([2.0, 4.0], np.frombuffer(builder.tobytes(), np.float32)).all()
    assert graph.uniform_builder.instance_bytes == 0
    graph.submit()
    assert graph.pc_values == {} and graph.pc_builder.instance_bytes == 0
    with pytest.raises(RuntimeError, match="cuda"):
        DescriptorSet(by_hand(affine.shader_description)).set_inline_uniform_payload(b"")


def test_handles() -> None:
    data = vd.asbuffer(np.zeros(4, np.float32))
    description = affine.shader_description
    plan = by_hand(description)
    descriptors = DescriptorSet(plan)
    descriptors.bind_buffer(data, 0)
    graph = vd.CommandGraph()
    affine(data, 1.0, 1.0, graph=graph)
    assert set(data.children_dict) == {descriptors._handle, graph._handle}
    assert set(descriptors.parents) == {plan._handle, data._handle}
    assert vd.get_context().handles_dict[data._handle] is data
    assert len({item._handle for item in (data, plan, descriptors, graph)}) == 4
    graph.submit()
    plan.destroy()
    assert descriptors.destroyed and not data.destroyed and not graph.destroyed
    data.destroy()
    data.destroy()
    assert graph.destroyed and data.destroyed and data.parents == {}
    with pytest.raises(RuntimeError, match="destroyed"):
        graph.submit()
