"""Merging of repeated dispatches: when it happens, and that results do not change."""

from typing import Any

import numpy as np
import pytest

import vkdispatch.kompute as kp
from vkdispatch.base.spirv.repeat import MAX_REPEATS
from vkdispatch.kompute import algorithm as spirv
from vkdispatch.kompute import operations

from .kernels import ADD_ONE

HEADER = """#version 450
layout(local_size_x = 4) in;
layout(constant_id = 0) const float s = 1;
layout(push_constant) uniform Constants { float p; };
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
"""
BODIES = {
    "own element": ("a[i] = a[i] * p + s + b[i];", True),
    "a neighbour of what is read": ("a[i] = a[i] * p + s + b[i ^ 1];", True),
    "a neighbour of what is written": ("a[i] = a[i ^ 1] * p + s + b[i];", False),
    "a loop": ("for (int k = 0; k < 3; ++k) a[i] = a[i] * p + s;", False),
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge dispatches before their first run."""
    monkeypatch.setattr(operations, "_WORTH_MERGING", 1)


def commands_of(sequence: kp.Sequence) -> int:
    """Return the number of commands of an evaluation."""
    recorded: Any = sequence._commands
    return int(recorded.graph._native.length)


def run(
    manager: kp.Manager, body: str, same: bool, groups: tuple[int, int, int] = (4, 1, 1)
) -> tuple[Any, int]:
    """Return a tensor of 16 elements after 50 dispatches, and the number of commands."""
    first = manager.tensor(np.arange(16) / 16)
    second = first if same else manager.tensor(np.arange(16))
    code = HEADER + "void main() { uint i = gl_GlobalInvocationID.x; " + body + "}"
    algorithm = manager.algorithm([first, second], code, groups, [0.25], [0.75])
    manager.sequence().eval(kp.OpSyncDevice([first, second]))
    sequence = manager.sequence()
    for _ in range(50):
        sequence.record(kp.OpAlgoDispatch(algorithm))
    sequence.eval()
    manager.sequence().eval(kp.OpSyncLocal([first]))
    return first.data().copy(), commands_of(sequence)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_merging_changes_nothing(
    manager: kp.Manager, monkeypatch: pytest.MonkeyPatch, name: str, same: bool
) -> None:
    body, elementwise = BODIES[name]
    merged, few = run(manager, body, same)
    monkeypatch.setenv("VKDISPATCH_KOMPUTE_MERGE", "0")
    apart, many = run(manager, body, same)
    np.testing.assert_array_equal(merged, apart)
    assert many == 50
    # Written memory must not be bound twice.
    assert few == (1 if elementwise and not same else 50)


def test_dispatches_of_several_rows_are_not_merged(manager: kp.Manager) -> None:
    assert run(manager, "if (gl_GlobalInvocationID.y == 0) a[i] += p;", False, (4, 2, 1))[1] == 50
    assert run(manager, "if (gl_GlobalInvocationID.z == 0) a[i] += p;", False, (4, 1, 2))[1] == 50


@pytest.mark.parametrize("count", [2, MAX_REPEATS, MAX_REPEATS + 1, 2 * MAX_REPEATS + 5])
def test_long_runs_become_few_dispatches(manager: kp.Manager, count: int) -> None:
    a = manager.tensor(np.zeros(3))
    algorithm = manager.algorithm([a], ADD_ONE)
    manager.sequence().eval(kp.OpSyncDevice([a]))
    sequence = manager.sequence()
    for _ in range(count):
        sequence.record(kp.OpAlgoDispatch(algorithm))
    sequence.eval()
    sequence.eval()
    manager.sequence().eval(kp.OpSyncLocal([a]))
    assert a.data().tolist() == [2 * count] * 3
    assert commands_of(sequence) == -(-count // MAX_REPEATS)


def test_runs_end_at_other_commands(manager: kp.Manager) -> None:
    a, b = manager.tensor(np.zeros(5)), manager.tensor(np.zeros(5))
    one, other = (manager.algorithm([tensor], ADD_ONE) for tensor in (a, b))
    manager.sequence().eval(kp.OpSyncDevice([a, b]))
    sequence = manager.sequence()
    for _ in range(3):
        sequence.record(kp.OpAlgoDispatch(one))
    sequence.record(kp.OpCopy([a, b]))
    for algorithm in (other, other, one, other):
        sequence.record(kp.OpAlgoDispatch(algorithm))
    sequence.eval()
    manager.sequence().eval(kp.OpSyncLocal([a, b]))
    assert (a.data().tolist(), b.data().tolist()) == ([4] * 5, [6] * 5)
    assert commands_of(sequence) == 5


def test_timed_dispatches_are_not_merged(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(5))
    sequence = manager.sequence(total_timestamps=20)
    algorithm = manager.algorithm([a], ADD_ONE)
    for _ in range(10):
        sequence.record(kp.OpAlgoDispatch(algorithm))
    sequence.eval().eval()
    assert len(sequence.get_timestamps()) == 11
    assert commands_of(sequence) >= 10


def test_a_rejected_merge_keeps_the_dispatches(manager: kp.Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    from vkdispatch.base.errors import VulkanError

    a = manager.tensor(np.zeros(5))
    algorithm = manager.algorithm([a], ADD_ONE)
    manager.sequence().eval(kp.OpSyncDevice([a]))
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm)).record(kp.OpAlgoDispatch(algorithm))

    def refuse(*_: object, **__: object) -> None:
        raise VulkanError("no")

    monkeypatch.setattr(spirv, "ComputePlan", refuse)
    sequence.eval()
    monkeypatch.undo()
    manager.sequence().eval(kp.OpSyncLocal([a]))
    assert a.data().tolist() == [2] * 5
    assert commands_of(sequence) == 2
