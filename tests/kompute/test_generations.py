"""`kp.use`: lists or arrays, and the results and waits of named sequences."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch.kompute as kp

from .kernels import ADD_ONE, PRODUCT


@pytest.fixture(autouse=True)
def newest_afterwards() -> Iterator[None]:
    yield
    kp.use()


BEFORE_0_7 = ["0.5", "0.6"]
OTHERS = ["0.7", "0.8", "0.9", "newest"]


@pytest.mark.parametrize("generation", [*BEFORE_0_7, *OTHERS, "0.5.1", "0.9.0"])
def test_data_is_a_list_or_an_array(manager: kp.Manager, generation: str) -> None:
    kp.use(generation)
    tensors = [kp.Tensor([1, 2]), manager.build_tensor([1, 2])]
    kp.use()
    for tensor in tensors:  # determined when a tensor is made
        data: Any = tensor.data()
        if generation[:3] in BEFORE_0_7:
            assert (data == [1.0, 2.0]) is True and type(data[0]) is float
        else:
            assert isinstance(data, np.ndarray) and data.tolist() == [1, 2]
        assert isinstance(tensor.numpy(), np.ndarray)
    assert isinstance(manager.tensor([1]).data(), np.ndarray)


def test_unknown_generations_raise() -> None:
    kp.use("0.6")
    for wrong in ("0.4", "1.0", "0", "", "newer"):
        with pytest.raises(RuntimeError, match=r"generation: expected one of 0\.5, 0\.6, .*newest, got"):
            kp.use(wrong)
    for other in (0.6, None, b"0.6"):
        with pytest.raises(TypeError, match="generation: expected text"):
            kp.use(other)  # type: ignore[arg-type]
    assert isinstance(kp.Tensor([1]).data(), list)


@pytest.mark.parametrize("generation", BEFORE_0_7)
def test_sequences_return_whether_they_had_an_effect(
    manager: kp.Manager, generation: str, caplog: pytest.LogCaptureFixture
) -> None:
    kp.use(generation)
    tensor = manager.build_tensor([1, 2])
    sequence: Any = manager.create_sequence("name")
    assert isinstance(sequence, kp.Sequence) and manager.get_create_sequence("name") is sequence
    assert sequence.record_algo_data([tensor], ADD_ONE) is False  # before begin
    assert sequence.end() is False
    assert sequence.begin() is True and sequence.is_rec()
    assert sequence.begin() is False
    assert sequence.record_algo_data([tensor], ADD_ONE) is True
    assert sequence.record_tensor_sync_local([tensor]) is True
    assert sequence.eval() is sequence.eval_async() is False  # while recording
    assert tensor.data() == [1, 2]
    assert sequence.end() is True and sequence.end() is False
    assert sequence.eval() is True and tensor.data() == [2, 3]
    assert sequence.eval_await() is False
    said = [record.levelname for record in caplog.records]
    assert said == ["ERROR", *["WARNING"] * 6] and all(record.name == "kp" for record in caplog.records)


def test_asynchronous_evaluation_does_not_wait(manager: kp.Manager) -> None:
    kp.use("0.6")
    tensor = manager.build_tensor([0])
    sequence: Any = manager.create_sequence()
    sequence.begin()
    for _ in range(3):
        sequence.record_algo_data([tensor], ADD_ONE)
    sequence.record_tensor_sync_local([tensor])
    sequence.end()
    assert sequence.eval_async() is True and sequence.is_running()
    assert sequence.eval() is sequence.eval_async() is sequence.begin() is False
    assert sequence.eval_await() is True and not sequence.is_running()
    assert tensor.data() == [3]
    assert sequence.eval_async() is True
    assert sequence.eval_await(10**12) is True and tensor.data() == [6]


def test_sequences_follow_the_newest_generation_by_default(manager: kp.Manager) -> None:
    tensor = manager.build_tensor([0])
    sequence = manager.create_sequence()
    assert sequence.begin().record_algo_data([tensor], ADD_ONE) is sequence
    assert sequence.eval_async() is sequence and not sequence.is_running()
    sequence.record_tensor_sync_local([tensor]).eval()  # without begin
    assert tensor.data().tolist() == [1]


def test_named_evaluations_use_sequences_of_the_generation(manager: kp.Manager) -> None:
    kp.use("0.5")
    tensor = kp.Tensor([1, 2])
    manager.eval_async_tensor_create([tensor], "name")
    sequence: Any = manager.get_create_sequence("name")
    assert sequence.is_running() and sequence.eval_await() is True
    manager.eval_async_algo_str_def([tensor], ADD_ONE)
    manager.eval_await_def()
    manager.eval_tensor_sync_local([tensor], "name")
    assert tensor.data() == [2, 3]


PROGRAM = """
import sys
import vkdispatch.kompute
vkdispatch.kompute.use("0.6")
sys.modules["kp"] = vkdispatch.kompute
from kp import *
from kp import Manager, Tensor, TensorTypes

manager = Manager(0)
left, right, out = Tensor([2, 2, 2]), Tensor([1, 2, 3]), Tensor([0, 0, 0], device)
manager.eval_tensor_create_def([left, right, out])
manager.eval_algo_data_def([left, right, out], {spirv!r})
manager.eval_await_def()
manager.eval_tensor_sync_local_def([out])
assert out.data() == [2.0, 4.0, 6.0]
print(out.data(), out.tensor_type(), staging)
"""


def test_a_whole_program(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(PROGRAM.format(spirv=kp.compile_glsl(PRODUCT)))
    assert (done.stdout, done.stderr) == ("[2.0, 4.0, 6.0] MemoryTypes.device MemoryTypes.staging\n", "")


def test_missing_queue_families_raise(manager: kp.Manager) -> None:
    kp.use("0.6")
    with pytest.raises(RuntimeError, match=r"family_queue_indices: .* has no queue family 99"):
        kp.Manager(0, [99])


def test_the_earlier_name_of_a_memory_type(manager: kp.Manager) -> None:
    assert kp.TensorTypes.staging is kp.staging is not kp.host
    assert (repr(kp.staging), int(kp.staging)) == ("<MemoryTypes.staging: 1>", 1)
    assert kp.MemoryTypes(1) is kp.host and "staging" not in kp.MemoryTypes.__members__
    assert manager.tensor([1], kp.staging).data().tolist() == [1]
