"""Errors name the kernels that were given and not finished, and where the user's own are defined."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.native.gates import Gate
from vkdispatch.base.context import get_context
from vkdispatch.codegen.abbreviations import Buff, Const, f32


@vd.shader("data.size")
def scaled(data: Buff[f32], factor: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * factor


@vd.map
def squared(value: f32) -> f32:
    return value * value


@vd.reduce.reduce(0)
def added(a: f32, b: f32) -> f32:
    return a + b


GLSL = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { float data[]; } data;
void main() { data.data[gl_GlobalInvocationID.x] += 1; }
"""


class Solver:
    @vd.shader("data.size")
    def step(self, data: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        data[i] += 1


@pytest.fixture
def gate() -> Iterator[Gate]:
    context = get_context()
    with Gate(context._native) as gate:
        yield gate


def place_of(name: str) -> str:
    """Where this file defines a function: the line of its decorator."""
    lines = linecache.getlines(__file__)
    (line,) = [i for i, text in enumerate(lines, 1) if f"def {name}(" in text]
    return f"test_work_names.py:{line - 1}"


def names(gate: Gate, call: Callable[[], object]) -> str:
    """What a call that has been made before gives the device, beside the gate's own work."""
    call()
    gate.engine.wait_idle()
    gate.hold()
    call()
    return gate.engine.describe_work().removeprefix("queue 0: not finished: a launch of 'hold', ")


def test_shader(gate: Gate) -> None:
    data = vd.Buffer(64, f32)
    assert names(gate, lambda: scaled(data, 2)) == f"a launch of 'scaled' ({place_of('scaled')})"


def test_method(gate: Gate) -> None:
    solver, data = Solver(), vd.Buffer(64, f32)
    assert names(gate, lambda: solver.step(data)) == f"a launch of 'step' ({place_of('step')})"


def test_function_of_arrays(gate: Gate) -> None:
    data = vd.asbuffer(np.ones(64, np.float32))
    text = names(gate, lambda: vd.cumsum(data))
    assert text == "a launch of 'cumsum_scan'", "a function's own kernel has no place of the user's"


def test_map(gate: Gate) -> None:
    data = vd.asbuffer(np.ones(64, np.float32))
    assert names(gate, lambda: vd.sum(squared(data))) == f"a launch of 'squared_rows' ({place_of('squared')})"


def test_reduction(gate: Gate) -> None:
    data = vd.asbuffer(np.ones(64, np.float32))
    assert names(gate, lambda: added(data)) == f"a launch of 'added_rows' ({place_of('added')})"


def test_glsl(gate: Gate) -> None:
    data = vd.asbuffer(np.ones(64, np.float32))
    kernel = vd.glsl_kernel(GLSL, {"data": Buff[f32]}, "data.size", name="by_hand")
    assert names(gate, lambda: kernel(data)) == "a launch of 'by_hand'"


def test_graph(gate: Gate) -> None:
    data = vd.asbuffer(np.ones(64, np.float32))
    graph = vd.CommandGraph()
    for factor in (2, 3, 4):
        scaled(data, factor, graph=graph)
    for _ in range(3):
        graph.submit()  # replayed in the end
    assert names(gate, graph.submit) == f"3 launches of 'scaled' ({place_of('scaled')})"
