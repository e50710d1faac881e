"""`Tensor.rebuild`: other data of other sizes in an existing tensor."""

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
from vkdispatch.codegen.abbreviations import Buff, f32

from .kernels import ADD_ONE


@vd.shader("a.size")
def add_one(a: Buff[f32]) -> None:  # type: ignore[valid-type]
    a[vc.global_invocation_id().x] += 1.0  # type: ignore[index]


@pytest.mark.parametrize("kind", [kp.device, kp.host, kp.deviceAndHost], ids=str)
@pytest.mark.parametrize("code", [ADD_ONE, add_one], ids=["GLSL", "traced"])
def test_algorithms_use_the_new_memory(manager: kp.Manager, kind: kp.MemoryTypes, code: Any) -> None:
    tensor = manager.tensor([1, 2], kind)
    algorithm = manager.algorithm([tensor], code)
    operations = [kp.OpSyncDevice([tensor]), kp.OpAlgoDispatch(algorithm), kp.OpSyncLocal([tensor])]
    sequence = manager.sequence()
    for operation in operations:
        sequence.record(operation)
    sequence.eval()
    view = tensor.data()
    for values in ([10, 20, 30, 40], [5]):
        tensor.rebuild(values)
        assert tensor.data().tolist() == values and tensor.size() == len(values)
        with pytest.raises(RuntimeError, match="destroyed"):
            sequence.eval()
        sequence.rerecord()
        sequence.eval()
        assert tensor.data().tolist() == [value + 1 for value in values]
    assert view.tolist() == [2, 3] and view.base is tensor


def test_constants_and_workgroups_are_kept(manager: kp.Manager) -> None:
    code = ADD_ONE.replace(
        "{ float a[]; };", "{ float a[]; };\nlayout(push_constant) uniform P { float p; };"
    )
    tensor = manager.tensor([0, 0, 0])
    fixed = manager.algorithm([tensor], code.replace("1.0", "p"), (2, 1, 1), [], [3.0])
    fixed.set_push_consts([4.0])
    tensor.rebuild([0, 0, 0, 0])
    sequence = manager.sequence().record(kp.OpSyncDevice([tensor])).record(kp.OpAlgoDispatch(fixed))
    sequence.record(kp.OpSyncLocal([tensor])).eval()
    assert tensor.data().tolist() == [4, 4, 0, 0]


def test_the_dtype_is_kept_and_the_memory_type_can_change(manager: kp.Manager) -> None:
    tensor = manager.tensor_t(np.array([1, 2], np.int32))
    tensor.rebuild([3.0, 4.0, 5.0], kp.host)
    assert tensor.data().dtype == np.int32 and tensor.data().tolist() == [3, 4, 5]
    assert tensor.memory_type() is kp.host and tensor.data_type() is kp.int


def test_a_failed_rebuild_changes_nothing(manager: kp.Manager) -> None:
    tensor = manager.tensor([1, 2])
    for data, kind, error, message in (
        ([], None, RuntimeError, "data: a tensor needs at least one element"),
        ("text", None, TypeError, "data: expected numbers"),
        ([1], 1, TypeError, "memory_type: expected a member"),
    ):
        with pytest.raises(error, match=message):
            tensor.rebuild(data, kind)  # type: ignore[arg-type]
    assert tensor.data().tolist() == [1, 2]
    buffer = vd.Buffer(2, vd.float32, context=manager.context)
    with pytest.raises(RuntimeError, match=r"rebuild: this kp.Tensor uses the memory of a vd.Buffer"):
        manager.tensor(buffer).rebuild([1])
    tensor.destroy()
    with pytest.raises(RuntimeError, match="was destroyed"):
        tensor.rebuild([1])
