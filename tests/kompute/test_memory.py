"""Tensors: types of memory and elements, host views, copies, and buffers."""

import gc
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
from vkdispatch.codegen.abbreviations import Buff, f32

from .kernels import ADD_ONE

DTYPES = {
    "float32": kp.DataTypes.float,
    "float64": kp.DataTypes.double,
    "int32": kp.DataTypes.int,
    "uint32": kp.DataTypes.uint,
    "bool": kp.DataTypes.bool,
    "int16": kp.DataTypes.short,
    "uint16": kp.DataTypes.ushort,
    "int8": kp.DataTypes.char,
    "uint8": kp.DataTypes.uchar,
}
SIZES = (1, 2, 3, 101, 65537)
IN_PLACE = (kp.MemoryTypes.host, kp.MemoryTypes.deviceAndHost)
VISIBLE = (kp.MemoryTypes.device, *IN_PLACE)
Array = np.ndarray[Any, Any]


def random(dtype: str, size: int) -> Array:
    made = np.random.default_rng(size).integers(0, 255, size * np.dtype(dtype).itemsize, np.uint8)
    return made.astype(bool)[:size] if dtype == "bool" else np.nan_to_num(made.view(dtype))


def read(manager: kp.Manager, tensor: kp.Tensor) -> Array:
    """Return the values on the device."""
    dtype = next(name for name, kind in DTYPES.items() if kind is tensor.data_type())
    copy = manager.tensor_t(np.zeros(len(tensor), dtype))
    manager.sequence().eval(kp.OpCopy([tensor, copy]))  # also copies the host view
    manager.sequence().eval(kp.OpSyncLocal([copy]))
    return copy.data().copy()


# -- data


@pytest.mark.parametrize(
    "data",
    [
        [1, 2, 3],
        (True, False),
        range(5),
        7,
        2.5,
        np.array(3),
        [[1, 2], [3, 4]],
        np.arange(6)[::2],
        np.asfortranarray([[1, 2, 3], [4, 5, 6]]),
        np.arange(5, dtype=">f8"),
        np.array([2**63, 1], np.uint64),
        memoryview(b"abc"),
        np.array(["1", "2"]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_data_that_numpy_converts_to_floats(manager: kp.Manager, data: Any) -> None:
    tensor = manager.tensor(data)
    wanted = np.asarray(data).astype(np.float32).ravel()
    assert tensor.data().dtype == np.float32 and tensor.data_type() is kp.DataTypes.float
    np.testing.assert_array_equal(tensor.data(), wanted)


def test_none_and_complex_numbers_as_data(manager: kp.Manager) -> None:
    assert np.isnan(manager.tensor(None).data()).tolist() == [True]
    with pytest.warns(np.exceptions.ComplexWarning):
        assert manager.tensor(np.array([1 + 2j])).data().tolist() == [1]


@pytest.mark.parametrize("data", ["abc", ["a"], [[1], [1, 2]], {1: 2}, object(), b"abc", [10**400]])
def test_data_that_is_not_numeric_raises(manager: kp.Manager, data: Any) -> None:
    with pytest.raises(TypeError, match="data: expected numbers"):
        manager.tensor(data)


@pytest.mark.parametrize("data", [[], np.zeros((0, 3), np.float32), np.zeros(0, np.float32)])
def test_empty_data_raises(manager: kp.Manager, data: Any) -> None:
    for make in (manager.tensor, lambda given: manager.tensor_t(np.asarray(given, np.float32))):
        with pytest.raises(RuntimeError, match="data: a tensor needs at least one element"):
            make(data)


@pytest.mark.parametrize(
    "dtype", ["int64", "uint64", "float16", "complex64", ">f4", ">i4", "U1", "i4,f4", "O", "M8[s]"]
)
def test_unsupported_dtypes_raise(manager: kp.Manager, dtype: str) -> None:
    with pytest.raises(RuntimeError, match=r"data: expected an array of bool, int32, .* got "):
        manager.tensor_t(np.zeros(3, dtype))


@pytest.mark.parametrize("data", [[1.0], (1,), 3, None, memoryview(b"abcd"), np.float32(3)])
def test_typed_tensors_require_arrays(manager: kp.Manager, data: Any) -> None:
    with pytest.raises(TypeError, match="data: expected a NumPy array"):
        manager.tensor_t(data)


def test_strides(manager: kp.Manager) -> None:
    for data in (
        np.arange(10, dtype=np.int32)[::3],
        np.arange(6, dtype=np.float64).reshape(2, 3).T,
        np.array(4, np.uint32),
        np.broadcast_to(np.float32(2), (2, 2)),
    ):
        assert manager.tensor_t(data).data().tolist() == data.ravel().tolist()


@pytest.mark.parametrize("kind", [0, 1, None, "host", kp.DataTypes.float, kp.MemoryTypes])
def test_memory_types_must_be_members(manager: kp.Manager, kind: Any) -> None:
    for make in (manager.tensor, manager.tensor_t):
        with pytest.raises(TypeError, match=r"memory_type: expected a member of kp\.MemoryTypes"):
            make(np.zeros(1, np.float32), kind)


def test_both_spellings_of_the_memory_type(manager: kp.Manager) -> None:
    data = np.zeros(1, np.float32)
    for make in (manager.tensor, manager.tensor_t):
        assert make(data).memory_type() is kp.MemoryTypes.device
        assert make(data=data, memory_type=kp.MemoryTypes.host).memory_type() is kp.MemoryTypes.host
        assert make(data, tensor_type=kp.MemoryTypes.storage).tensor_type() is kp.MemoryTypes.storage


# -- copies


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", VISIBLE)
def test_views(manager: kp.Manager, kind: kp.MemoryTypes, dtype: str) -> None:
    for size in SIZES:
        data = random(dtype, size)
        tensor = manager.tensor_t(data, kind)
        assert (tensor.size(), len(tensor), tensor.is_init()) == (size, size, True)
        assert (tensor.memory_type(), tensor.data_type()) == (kind, DTYPES[dtype])
        view = tensor.data()
        assert view.dtype == data.dtype and view.shape == (size,)
        assert view.flags.writeable and not view.flags.owndata and view.base is tensor
        np.testing.assert_array_equal(view, data)
        data[:] = 0
        assert tensor.data() is not view and np.shares_memory(tensor.data(), view)


@pytest.mark.parametrize("dtype", DTYPES)
def test_device_memory_changes_only_with_a_sync(manager: kp.Manager, dtype: str) -> None:
    for size in SIZES:
        data = random(dtype, size)
        tensor = manager.tensor_t(data)
        manager.sequence().eval(kp.OpSyncDevice([tensor]))
        tensor.data()[:] = data[::-1]
        np.testing.assert_array_equal(read(manager, tensor), data)
        np.testing.assert_array_equal(tensor.data(), data[::-1])
        manager.sequence().eval(kp.OpSyncLocal([tensor]))
        np.testing.assert_array_equal(tensor.data(), data)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", IN_PLACE)
def test_host_memory_needs_no_sync(manager: kp.Manager, kind: kp.MemoryTypes, dtype: str) -> None:
    for size in SIZES:
        data = random(dtype, size)
        tensor = manager.tensor_t(data, kind)
        np.testing.assert_array_equal(read(manager, tensor), data)
        tensor.data()[:] = data[::-1]
        np.testing.assert_array_equal(read(manager, tensor), data[::-1])
        sequence = manager.sequence().record(kp.OpSyncDevice([tensor])).record(kp.OpSyncLocal([tensor]))
        sequence.eval()
        np.testing.assert_array_equal(tensor.data(), data[::-1])


@pytest.mark.parametrize("kind", IN_PLACE)
def test_results_are_visible_without_a_sync(manager: kp.Manager, kind: kp.MemoryTypes) -> None:
    tensor = manager.tensor(np.arange(101), kind)
    view = tensor.data()
    sequence = manager.sequence().record(kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE)))
    for turn in range(1, 4):
        sequence.eval()
        assert view.tolist() == list(range(turn, 101 + turn))
    view[:] = 0
    sequence.eval()
    assert view.tolist() == [1] * 101


@pytest.mark.parametrize("dtype", DTYPES)
def test_storage_takes_and_gives_copies(manager: kp.Manager, dtype: str) -> None:
    for size in SIZES:
        data = random(dtype, size)
        source = manager.tensor_t(data, kp.MemoryTypes.host)
        stored = manager.tensor_t(np.zeros_like(data), kp.MemoryTypes.storage)
        assert len(stored) == size and stored.data_type() is DTYPES[dtype]
        manager.sequence().record(kp.OpCopy([source, stored])).eval()
        np.testing.assert_array_equal(read(manager, stored), data)


def test_storage_has_no_host_view(manager: kp.Manager) -> None:
    stored = manager.tensor([1, 2], kp.MemoryTypes.storage)
    for refused in (stored.data, stored.vector, lambda: stored.set_data([1, 2])):
        with pytest.raises(RuntimeError, match=r"a kp\.Tensor of type storage has no host view"):
            refused()
    # neither of them has an effect or raises
    manager.sequence().record(kp.OpSyncDevice([stored])).record(kp.OpSyncLocal([stored])).eval()


def test_a_large_tensor(manager: kp.Manager) -> None:
    data = np.arange(5_000_011, dtype=np.float32)
    tensor = manager.tensor(data)
    sequence = manager.sequence().record(kp.OpSyncDevice([tensor]))
    sequence.record(kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE, (60000, 1, 1))))
    sequence.record(kp.OpSyncLocal([tensor])).eval()
    data[:60000] += 1
    np.testing.assert_array_equal(tensor.data(), data)


# -- lifetimes


@pytest.mark.parametrize("kind", kp.MemoryTypes)
def test_destroyed(manager: kp.Manager, kind: kp.MemoryTypes) -> None:
    tensor = manager.tensor([1, 2, 3], kind)
    view = tensor.data() if kind is not kp.MemoryTypes.storage else None
    tensor.destroy()
    tensor.destroy()
    assert (tensor.is_init(), tensor.size(), len(tensor), bool(tensor)) == (False, 0, 0, False)
    assert tensor.memory_type() is kind and tensor.data_type() is kp.DataTypes.float
    assert view is None or view.tolist() == [1, 2, 3]
    calls: list[Any] = [
        tensor.data,
        tensor.vector,
        lambda: tensor.set_data([1, 2, 3]),
        lambda: tensor.buffer,
        lambda: np.asarray(tensor),
        lambda: manager.sequence().record(kp.OpSyncDevice([tensor])),
        lambda: manager.sequence().record(kp.OpCopy([tensor, tensor])),
        lambda: manager.algorithm([tensor], ADD_ONE),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match=r"kp\.Tensor was destroyed"):
            call()


def test_a_view_outlives_its_manager() -> None:
    manager = kp.Manager(0, [0])
    views = [manager.tensor(np.arange(100), kind).data() for kind in VISIBLE]
    manager.destroy()
    del manager
    gc.collect()
    for view in views:
        assert view.tolist() == list(range(100))
        view += 1
        assert view[99] == 100


def test_set_data_and_vector(manager: kp.Manager) -> None:
    tensor = manager.tensor_t(np.zeros(3, np.int32))
    tensor.set_data([4, 5, 6])
    assert tensor.vector() == [4, 5, 6] and tensor.data().tolist() == [4, 5, 6]
    with pytest.raises(RuntimeError, match="data: expected 3 elements, got 2"):
        tensor.set_data([1, 2])
    for wrong in (["a", "b", "c"], [[1], [2, 3]], [1, 2, "x"]):
        with pytest.raises(TypeError, match="data: expected numbers"):
            tensor.set_data(wrong)
    assert tensor.vector() == [4, 5, 6]


@pytest.mark.parametrize("kind", VISIBLE)
def test_empty_tensors_have_zeros_in_the_host_view(manager: kp.Manager, kind: kp.MemoryTypes) -> None:
    for dtype in DTYPES:
        manager.tensor_t(random(dtype, 1000), kind).destroy()  # memory that may be reused
        made = manager.empty_tensor(1000, dtype, kind)
        assert made.data().dtype == dtype and not made.data().any()


def test_empty_tensors_of_invalid_sizes_raise(manager: kp.Manager) -> None:
    for size in (-1, 2.5, "3", None):
        with pytest.raises(TypeError, match="size"):
            manager.empty_tensor(size)  # type: ignore[arg-type]
    for size, dtype in ((0, "float32"), (2**45, "float32"), (2**70, "bool"), (3, "int64"), (3, ">f4")):
        with pytest.raises(RuntimeError):
            manager.empty_tensor(size, dtype)
    with pytest.raises(TypeError, match="dtype"):
        manager.empty_tensor(3, "nothing")


# -- buffers


@vd.shader("data.size")
def double(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * 2


@pytest.mark.parametrize("kind", kp.MemoryTypes)
def test_a_buffer_on_a_tensor(manager: kp.Manager, kind: kp.MemoryTypes) -> None:
    data = np.arange(101, dtype=np.float32)
    tensor = manager.tensor(data, kind)
    buffer = tensor.buffer
    assert tensor.buffer is buffer and buffer.shape == (101,) and buffer.var_type is vd.float32
    add = manager.sequence().record(kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE)))
    buffer.write(data)
    double(buffer)
    add.eval()
    double(buffer)
    np.testing.assert_array_equal(buffer.read(0), (data * 2 + 1) * 2)
    manager.sequence().eval(kp.OpSyncLocal([tensor]))
    if kind is not kp.MemoryTypes.storage:
        np.testing.assert_array_equal(tensor.data(), (data * 2 + 1) * 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_have_the_dtype_of_their_tensor(manager: kp.Manager, dtype: str) -> None:
    data = random(dtype, 37)
    for kind in IN_PLACE:
        np.testing.assert_array_equal(manager.tensor_t(data, kind).buffer.read(0), data)
    tensor = manager.tensor_t(data)
    manager.sequence().eval(kp.OpSyncDevice([tensor]))
    np.testing.assert_array_equal(tensor.buffer.read(0), data)


def test_host_writes_reach_the_buffer_with_a_sync(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(5))
    manager.sequence().eval(kp.OpSyncDevice([tensor]))
    tensor.data()[:] = 7
    assert tensor.buffer.read(0).tolist() == [0] * 5
    manager.sequence().eval(kp.OpSyncDevice([tensor]))
    assert tensor.buffer.read(0).tolist() == [7] * 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_on_a_buffer(manager: kp.Manager, dtype: str) -> None:
    data = random(dtype, 24)
    buffer = vd.asbuffer(data.reshape(4, 6))
    tensor = manager.tensor_t(buffer)
    assert tensor.buffer is buffer and len(tensor) == 24 and tensor.data_type() is DTYPES[dtype]
    np.testing.assert_array_equal(tensor.data(), data)
    tensor.data()[:] = data[::-1]
    np.testing.assert_array_equal(buffer.read(0).ravel(), data)
    manager.sequence().eval(kp.OpSyncDevice([tensor]))
    np.testing.assert_array_equal(buffer.read(0).ravel(), data[::-1])


def test_kernels_of_both_kinds_on_a_buffer(manager: kp.Manager) -> None:
    buffer = vd.asbuffer(np.arange(1000, dtype=np.float32))
    tensor = manager.tensor(buffer)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE)))
    wanted = np.arange(1000)
    for _ in range(3):
        sequence.eval_async(blocking=False)
        double(buffer)
        sequence.eval_await()
        wanted = (wanted + 1) * 2
    manager.sequence().eval(kp.OpSyncLocal([tensor]))
    np.testing.assert_array_equal(tensor.data(), wanted)
    np.testing.assert_array_equal(buffer.read(0), wanted)


def test_unsuitable_buffers_raise(manager: kp.Manager) -> None:
    other = kp.Manager(0, [0])
    foreign = other.tensor([1]).buffer
    with pytest.raises(RuntimeError, match="data: the buffer belongs to another context"):
        manager.tensor(foreign)
    with pytest.raises(RuntimeError, match="data: expected a buffer of float32, got one of int32"):
        manager.tensor(vd.asbuffer(np.zeros(3, np.int32)))
    for dtype in (np.int64, np.complex64, np.float16):
        with pytest.raises(RuntimeError, match="data: expected a buffer of bool, int32"):
            manager.tensor_t(vd.asbuffer(np.zeros(3, dtype)))
    with pytest.raises(RuntimeError, match=r"memory_type: a tensor on a vd\.Buffer"):
        manager.tensor(vd.asbuffer(np.zeros(3, np.float32)), kp.MemoryTypes.host)
    gone = vd.asbuffer(np.zeros(3, np.float32))
    gone.destroy()
    with pytest.raises(RuntimeError):
        manager.tensor(gone)


def test_destroying_a_tensor_keeps_its_buffer(manager: kp.Manager) -> None:
    buffer = vd.asbuffer(np.arange(3, dtype=np.float32))
    tensor = manager.tensor(buffer)
    manager.destroy()
    assert not tensor.is_init()
    assert buffer.read(0).tolist() == [0, 1, 2]
    other = kp.Manager()
    tensor = other.tensor(buffer)
    sequence = other.sequence().record(kp.OpSyncDevice([tensor]))
    buffer.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        sequence.eval()
    with pytest.raises(RuntimeError, match="destroyed"):
        other.sequence().record(kp.OpSyncDevice([tensor]))
    tensor.destroy()
