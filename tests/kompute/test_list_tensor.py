"""Tensors made without a Manager, as in Kompute 0.5 and 0.6."""

from typing import Any

import numpy as np
import pytest

import vkdispatch.kompute as kp

from .kernels import ADD_ONE


def test_a_tensor_without_a_manager() -> None:
    tensor = kp.Tensor([[1, 2], [3, 0.1]])
    assert isinstance(tensor, kp.Tensor) and isinstance(tensor, kp.ListTensor)
    assert not tensor.is_init() and tensor.size() == len(tensor) == 4
    assert tensor.tensor_type() is kp.TensorTypes.device and tensor.data_type() is kp.DataTypes.float
    assert tensor.data().tolist() == [1, 2, 3, np.float32(0.1)] and tensor.data().dtype == np.float32
    assert kp.Tensor(data=np.arange(3), tensor_type=kp.staging).tensor_type() is kp.staging


def test_invalid_data_raises() -> None:
    for wrong in ("text", [None, "a"], object()):
        with pytest.raises(TypeError, match="data: expected numbers"):
            kp.Tensor(wrong)
    with pytest.raises(RuntimeError, match="data: a tensor needs at least one element"):
        kp.Tensor([])
    for kind in (0, None, "device"):
        with pytest.raises(TypeError, match=r"tensor_type: expected a member of kp.MemoryTypes"):
            kp.Tensor([1], kind)
    with pytest.raises(TypeError, match="data"):
        kp.Tensor()


@pytest.fixture(params=["without memory", "with memory", "of a destroyed Manager"])
def tensor(request: pytest.FixtureRequest, manager: kp.Manager) -> kp.ListTensor:
    """Return a tensor with the elements 1, 2, 3, 0.1."""
    made = kp.Tensor([1, 2, 3, 0.1])
    if request.param != "without memory":
        manager.eval_tensor_create_def([made])
    if request.param == "of a destroyed Manager":
        manager.destroy()
    return made


def test_list_operations(tensor: kp.ListTensor) -> None:
    tenth = float(np.float32(0.1))
    wanted = [1.0, 2.0, 3.0, tenth]
    assert list(tensor) == [tensor[i] for i in range(4)] == tensor.vector() == wanted
    assert all(type(value) is float for value in (*tensor, tensor[0]))
    assert tensor[-1] == tenth and tensor[np.int64(1)] == 2
    assert reversed(tensor) == wanted[::-1]
    assert 2 in tensor and 0.1 in tensor and tenth in tensor and 5 not in tensor
    tensor[0] = 7
    tensor[-2] = np.float64(8)
    tensor[1] -= 0.5
    assert tensor.data().tolist() == [7, 1.5, 8, tenth]
    for index in (4, -5, 10**30):
        with pytest.raises(IndexError, match="index"):
            tensor[index]
        with pytest.raises(IndexError, match="index"):
            tensor[index] = 1
    for other in ("0", 1.0, None, slice(2)):
        with pytest.raises(TypeError, match="index: expected an int"):
            tensor[other]  # type: ignore[index]
    for value in ("a", None, [1, 2]):
        with pytest.raises(TypeError, match="value: expected a number"):
            tensor[0] = value  # type: ignore[assignment]
    with pytest.raises(TypeError, match="value: expected numbers"):
        assert "a" in tensor


def test_numpy_is_a_copy(tensor: kp.ListTensor) -> None:
    copied = tensor.numpy()
    assert copied.dtype == np.float32 and copied.flags.owndata and copied.flags.writeable
    copied[:] = 0
    assert tensor[0] == 1


def test_set_data(tensor: kp.ListTensor) -> None:
    tensor.set_data([[4, 5], [6, 7]])
    assert list(tensor) == [4, 5, 6, 7]
    with pytest.raises(RuntimeError, match="data: expected 4 elements, got 2"):
        tensor.set_data([1, 2])
    with pytest.raises(TypeError, match="data: expected numbers"):
        tensor.set_data("text")


def test_arrays_without_device_memory_are_read_only_copies(manager: kp.Manager) -> None:
    tensor = kp.Tensor([1, 2])
    before = tensor.data()
    assert np.asarray(tensor).tolist() == [1, 2] and not before.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 3
    manager.eval_tensor_create_def([tensor])
    tensor[0] = 3
    view = tensor.data()
    view[1] = 4
    assert before.tolist() == [1, 2] and list(tensor) == [3, 4]


def test_values_outlive_the_manager_and_move_to_another() -> None:
    def computed() -> kp.ListTensor:
        manager = kp.Manager()
        tensor = kp.Tensor([1, 2])
        manager.eval_tensor_create_def([tensor])
        manager.eval_algo_str_def([tensor], ADD_ONE)
        manager.eval_tensor_sync_local_def([tensor])
        return tensor

    tensor = computed()
    view = tensor.data()
    assert not tensor.is_init() and view.tolist() == [2, 3]
    with pytest.raises(
        RuntimeError, match=r"has no device memory; allocate it with manager.eval_tensor_create"
    ):
        kp.Manager().eval_tensor_sync_local_def([tensor])
    manager = kp.Manager()
    manager.eval_tensor_create_def([tensor])
    tensor.set_data([0, 0])
    manager.eval_tensor_sync_local_def([tensor])
    assert tensor.is_init() and list(tensor) == [2, 3] and view.tolist() == [2, 3]
    tensor.destroy()
    tensor.destroy()
    assert not tensor.is_init() and list(tensor) == [2, 3]


def test_calls_that_need_device_memory_raise(manager: kp.Manager) -> None:
    tensor = kp.Tensor([1])
    sequence = manager.create_sequence().begin()
    for call in (
        lambda: manager.eval_tensor_sync_device_def([tensor]),
        lambda: manager.eval_algo_str_def([tensor], ADD_ONE),
        lambda: sequence.record_tensor_sync_local([tensor]),
        lambda: sequence.record_algo_data([tensor], ADD_ONE),
        lambda: manager.algorithm([tensor], ADD_ONE),
        lambda: tensor.buffer,
        lambda: tensor.rebuild([1]),
        tensor.map_data_from_host,
        tensor.map_data_into_host,
    ):
        with pytest.raises(RuntimeError, match=r"this kp.Tensor has no device memory"):
            call()


def test_creation_allocates_all_tensors_or_none(manager: kp.Manager) -> None:
    one, other = kp.Tensor([1]), kp.Tensor([2])
    gone = manager.tensor([1])
    gone.destroy()
    manager.eval_tensor_create_def([other])
    fresh = kp.Tensor([3])
    wrong: Any
    for wrong, error, message in (
        ([fresh, other], RuntimeError, "number 1 has device memory already"),
        ([fresh, manager.tensor([1])], RuntimeError, "number 1 has device memory already"),
        ([fresh, fresh], RuntimeError, "number 1 has device memory already, or occurs twice"),
        ([fresh, gone], RuntimeError, "number 1 was destroyed"),
        ([], RuntimeError, "expected at least one tensor"),
        ([fresh, 3], TypeError, "expected tensors"),
        (fresh, TypeError, "expected a list of tensors"),
        ([fresh, manager.image([1], 1, 1, 1)], TypeError, "expected tensors"),
    ):
        with pytest.raises(error, match=f"tensors: {message}"):
            manager.eval_tensor_create_def(wrong)
        with pytest.raises(error, match=f"tensors: {message}"):
            manager.create_sequence().begin().record_tensor_create(wrong)
        assert not fresh.is_init()
    manager.eval_tensor_create([one], "name")
    assert one.is_init()


def test_each_evaluation_of_a_creation_copies_the_first_values(manager: kp.Manager) -> None:
    tensor = kp.Tensor([1, 2])
    sequence = manager.create_sequence().begin()
    sequence.record_tensor_create([tensor])
    assert tensor.is_init()
    sequence.record_algo_data([tensor], ADD_ONE)
    sequence.record_tensor_sync_local([tensor]).end()
    for _ in range(3):
        sequence.eval()
        assert list(tensor) == [2, 3]
    sequence.rerecord()
    sequence.eval()
    assert list(tensor) == [2, 3]
    manager.destroy()
    assert not tensor.is_init()


def test_mapping(manager: kp.Manager) -> None:
    tensor = manager.build_tensor([1, 2])
    tensor.set_data([3, 4])
    tensor.map_data_into_host()
    assert list(tensor) == [1, 2]
    tensor.set_data([3, 4])
    tensor.map_data_from_host()
    manager.eval_algo_str_def([tensor], ADD_ONE)
    tensor.map_data_into_host()
    assert list(tensor) == [4, 5]


def test_staging(manager: kp.Manager) -> None:
    tensor, other = kp.Tensor([1, 2], kp.staging), kp.Tensor([0, 0])
    manager.eval_tensor_create_def([tensor, other])
    assert tensor.tensor_type() is kp.staging and tensor.is_init()
    tensor[0] = 5
    tensor.map_data_from_host()
    manager.eval_tensor_copy_def([tensor, other])
    manager.eval_tensor_sync_local_def([tensor, other])
    tensor.map_data_into_host()
    assert list(tensor) == list(other) == [5, 2]


def test_storage_is_not_copied(manager: kp.Manager) -> None:
    tensor = kp.Tensor([1, 2], kp.storage)
    device = manager.build_tensor([3, 4])
    manager.eval_tensor_create_def([tensor])
    assert tensor.is_init() and list(tensor) == [1, 2]
    tensor[0] = 5
    manager.sequence().eval(kp.OpCopy([device, tensor]))
    manager.eval_algo_str_def([tensor], ADD_ONE)
    assert list(tensor) == [5, 2]
    manager.sequence().eval(kp.OpCopy([tensor, device]))
    manager.eval_tensor_sync_local_def([device])
    assert list(device) == [4, 5]
    for call in (
        lambda: manager.eval_tensor_sync_device_def([tensor]),
        lambda: manager.eval_tensor_sync_local_def([device, tensor]),
        lambda: manager.eval_tensor_copy_def([device, tensor]),
        tensor.map_data_from_host,
        tensor.map_data_into_host,
    ):
        with pytest.raises(RuntimeError, match="tensors: a tensor of type storage"):
            call()
    tensor.rebuild([7, 8, 9])
    assert list(tensor) == [7, 8, 9]
