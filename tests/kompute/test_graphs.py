"""Native kernels in sequences: recorded to the sequence's graph by operations, or as algorithms."""

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
from vkdispatch.codegen.abbreviations import Buff, Var, f32
from vkdispatch.kompute import operations as recording

from .kernels import ADD_ONE


@vd.shader("buf.size")
def add(buf: Buff[f32], value: Var[f32]) -> None:
    """Add a number to each element."""
    i = vc.global_invocation_id().x
    buf[i] = buf[i] + value


class Native(kp.OpBase):
    """Records a native kernel to the sequence's graph, and can fail afterwards."""

    def __init__(self, tensor: kp.Tensor, fails: bool = False) -> None:
        super().__init__()
        self.tensor = tensor
        self.fails = fails

    def record(self, commands: Any) -> None:
        """Record the kernel."""
        add(self.tensor.buffer, 100.0, graph=commands.graph)
        if self.fails:
            raise ZeroDivisionError


@pytest.fixture
def tensor(manager: kp.Manager) -> kp.Tensor:
    made = manager.tensor(np.zeros(5))
    manager.sequence().eval(kp.OpSyncDevice([made]))
    return made


def values(manager: kp.Manager, tensor: kp.Tensor) -> list[float]:
    manager.sequence().eval(kp.OpSyncLocal([tensor]))
    return list(tensor.data().tolist())


@pytest.mark.parametrize("place", [0, 1, 3])
def test_merging_keeps_commands_that_an_operation_adds_to_the_graph(
    manager: kp.Manager, tensor: kp.Tensor, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    monkeypatch.setattr(recording, "_WORTH_MERGING", 1)
    dispatch = kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE))
    operations: list[kp.OpBase] = [dispatch, dispatch, dispatch]
    operations.insert(place, Native(tensor))
    sequence = manager.sequence()
    for operation in operations:
        sequence.record(operation)
    for _ in range(3):
        sequence.eval()
    assert values(manager, tensor) == [309] * 5


def test_a_failed_operation_leaves_no_commands(manager: kp.Manager, tensor: kp.Tensor) -> None:
    dispatch = kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE))
    sequence = manager.sequence().record(Native(tensor)).record(dispatch)
    with pytest.raises(ZeroDivisionError):
        sequence.record(Native(tensor, fails=True))
    sequence.record(Native(tensor)).record(dispatch).eval().eval()
    assert values(manager, tensor) == [404] * 5


def test_bound_variables_of_an_operation(manager: kp.Manager, tensor: kp.Tensor) -> None:
    class Bound(kp.OpBase):
        def record(self, commands: Any) -> None:
            add(tensor.buffer, commands.graph.bind_var("value"), graph=commands.graph)

    sequence = manager.sequence().record(Bound())
    for value in (3, 4):
        sequence.graph.set_var("value", value)
        sequence.eval()
    sequence.eval_async(blocking=False).eval_await()
    assert values(manager, tensor) == [11] * 5


@pytest.mark.parametrize("blocking", [True, False])
def test_checks_and_prints_of_kernels(
    manager: kp.Manager, tensor: kp.Tensor, capfd: pytest.CaptureFixture[str], blocking: bool
) -> None:
    @vd.shader("buf.size", check=True)
    def checked(buf: Buff[f32], limit: Var[f32]) -> None:
        i = vc.global_invocation_id().x
        assert vc.to_dtype(vd.float32, i) < limit, "beyond"
        vc.print("invocation", i)

    def evaluate(limit: float) -> None:
        operation = kp.OpAlgoDispatch(manager.algorithm([tensor], checked, push_consts=[limit]))
        manager.sequence().record(operation).eval_async(blocking=blocking).eval_await()

    evaluate(5)
    assert sorted(capfd.readouterr().out.split("\n")[:-1]) == [f"invocation {i}" for i in range(5)]
    with pytest.raises(vd.CheckError, match="beyond"):
        evaluate(4)
