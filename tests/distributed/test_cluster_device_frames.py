"""Arrays in device memory that processes share, which is a file here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp
from vkdispatch.base.errors import SharingError

pytest.importorskip("distributed")

import dask
from distributed import Client
from distributed.protocol.core import dumps, loads
from distributed.protocol.serialize import serialize, to_serialize

from tests.distributed import device_memory
from tests.distributed.exchanges import exchange
from vkdispatch.distributed import LocalVulkanCluster, frames
from vkdispatch.distributed.frames import SharedFramesLostError

if not hasattr(os, "memfd_create"):
    pytest.skip("the system has no anonymous files", allow_module_level=True)

SIZE = 1 << 16  # elements of four bytes
LIMIT = 20 * SIZE


@pytest.fixture
def lender(monkeypatch: pytest.MonkeyPatch) -> Iterator[frames._Lender]:
    """Let this process share memory with itself."""
    monkeypatch.setattr(frames, "_files", frames._Files())
    device_memory.install(monkeypatch.setattr)
    kept = vd.get_context().kept
    names = "shared device memory", "device memory of other processes"
    before = [kept.pop(name, None) for name in names]
    made = kept[names[0]] = frames._Lender()
    with dask.config.set({"vkdispatch.shared-device-memory": LIMIT}):
        yield made
    device_memory.remove()
    for name, value in zip(names, before, strict=True):
        kept.pop(name, None)
        if value is not None:
            kept[name] = value


def context_of(**changes: Any) -> dict[str, Any]:
    mark = frames._own_mark(os.getpid())
    assert mark is not None
    marks = {"sender": mark, "recipient": {**mark, "cuda": True, **changes}}
    return {name: {frames.KEY: each} for name, each in marks.items()}


def send(value: Any, **changes: Any) -> list[bytes]:
    message = dumps({"x": to_serialize(value)}, context=context_of(**changes))
    return [bytes(frame) for frame in message]


def was_on_device(sent: list[bytes]) -> bool:
    return b"handle" in b"".join(sent)


def number(value: float) -> Any:
    return vnp.full(SIZE, value, np.float32)


@pytest.mark.parametrize("kind", ["uint8", "float32", "complex128"])
def test_arrays_arrive(lender: frames._Lender, kind: str) -> None:
    data = np.random.default_rng(0).standard_normal((509, 1031)).astype(kind)
    x = vnp.asarray(data)
    before = device_memory.count()
    for value, expected in ((x, data), (x.T, data.T), (x[3:, 1:], data[3:, 1:]), (x[200:], data[200:])):
        with dask.config.set({"vkdispatch.shared-device-memory": "10 MB"}):
            sent = send(value)
        assert was_on_device(sent) and sum(map(len, sent)) < 10_000
        found = loads(sent)["x"]
        assert found.dtype == kind
        np.testing.assert_array_equal(found.numpy(), expected)
    after = device_memory.count()
    assert after == (before[0] + 4, before[1] + 4)
    assert not was_on_device(send(x, cuda=False))
    assert not was_on_device(send(x[:4, :4]))


@pytest.mark.parametrize("kind", [vd.uint8, vd.float32, vd.vec4, vd.complex64])
def test_buffers_arrive(lender: frames._Lender, kind: Any) -> None:
    buffer = vd.Buffer((70, 1001), kind)
    data = np.random.default_rng(0).integers(0, 100, buffer.mem_size).astype(np.uint8)
    vd.Buffer.of_memory(buffer.context, buffer._native, (buffer.mem_size,), vd.uint8).write(data)
    with dask.config.set({"vkdispatch.shared-device-memory": "10 MB"}):
        sent = send({"x": buffer} if buffer.mem_size > 1 << 18 else [buffer, number(1)])
    assert was_on_device(sent)
    found = loads(sent)["x"]
    found = found["x"] if isinstance(found, dict) else found[0]
    assert type(found) is vd.Buffer and found.var_type is kind
    np.testing.assert_array_equal(found.read(0), buffer.read(0))


def test_a_real_buffer_arrives(lender: frames._Lender) -> None:
    data = np.random.default_rng(0).standard_normal((100, 999)).astype(np.float32)
    sent = send(vd.asrfftbuffer(data))
    assert was_on_device(sent)
    np.testing.assert_array_equal(loads(sent)["x"].read_real(0), data)


def test_errors_of_the_device_are_raised_by_the_sender(lender: frames._Lender) -> None:
    x = vnp.take(vnp.arange(10), vnp.asarray(np.arange(SIZE)))
    with pytest.raises(TypeError) as raised:
        serialize(x, on_error="raise", context=context_of())
    assert isinstance(raised.value.__cause__, IndexError)
    assert not lender._parts


def test_parts_are_used_again(lender: frames._Lender) -> None:
    waiting = {each: send(number(each)) for each in range(5)}
    assert all(map(was_on_device, waiting.values()))
    full = send(number(5))  # all is lent
    assert not was_on_device(full)
    for each in (1, 3):
        np.testing.assert_array_equal(loads(waiting.pop(each))["x"].numpy(), each)
    large = send(vnp.full(2 * SIZE, 7.0, np.float32))
    assert not was_on_device(large)  # two gaps of half that size
    waiting[6], waiting[7] = send(number(6)), send(number(7))
    assert was_on_device(waiting[6]) and was_on_device(waiting[7])
    assert not was_on_device(send(number(8)))
    for each, sent in waiting.items():
        np.testing.assert_array_equal(loads(sent)["x"].numpy(), each)
    assert was_on_device(send(vnp.full(5 * SIZE, 7.0, np.float32)))


@pytest.mark.parametrize("limit", [0, False, "0 MiB", 100])
def test_the_option_disables_it(lender: frames._Lender, limit: Any) -> None:
    with dask.config.set({"vkdispatch.shared-device-memory": limit}):
        sent = send(number(3))
    assert not was_on_device(sent)
    np.testing.assert_array_equal(loads(sent)["x"].numpy(), 3)


def test_lost_messages(lender: frames._Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [send(number(each)) for each in range(5)]
    monkeypatch.setattr(frames, "_LOST", -1.0)
    later = send(number(9))
    monkeypatch.undo()
    assert was_on_device(later)
    for sent in lost:  # even those whose memory nobody has used since
        with pytest.raises(ConnectionError, match="shared memory are gone"):
            loads(sent)


def test_a_recipient_that_cannot_map_memory(lender: frames._Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MappedMemories", device_memory.Refusing)
    first, second = send(number(1)), send(number(2))
    with pytest.raises(SharedFramesLostError, match="PEER_ACCESS_UNSUPPORTED"):
        loads(first)
    later = send(number(3))
    assert not was_on_device(later)
    np.testing.assert_array_equal(loads(later)["x"].numpy(), 3)
    with pytest.raises(SharedFramesLostError, match="PEER_ACCESS_UNSUPPORTED"):
        loads(second)


def test_failures_to_share_memory(lender: frames._Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise SharingError("CUDA: CUDA_ERROR_OUT_OF_MEMORY")

    with monkeypatch.context() as patch:
        patch.setattr(device_memory.Memory, "fill", fail)
        assert not was_on_device(send(number(1)))
    assert was_on_device(send(vnp.full(5 * SIZE, 7.0, np.float32)))  # its part was taken back
    monkeypatch.setitem(vd.get_context().kept, "shared device memory", frames._Lender())
    monkeypatch.setattr(frames, "SharedDeviceMemory", fail)
    sent = send(number(1))
    assert not was_on_device(sent)
    np.testing.assert_array_equal(loads(sent)["x"].numpy(), 1)


@pytest.mark.parametrize("refusing", [False, True])
def test_workers_share_device_memory(refusing: bool, cpu_driver: int) -> None:
    with (
        LocalVulkanCluster(2, devices=cpu_driver, memory_limit=None, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(device_memory.install, refusing=refusing)
        try:
            exchange(client)
            for filled, read in client.run(device_memory.count).values():
                assert filled and read
                assert filled < 3 if refusing else filled >= 3
        finally:
            client.run(device_memory.remove)


def test_gpus_copy_to_each_other() -> None:
    pytest.importorskip("cuda.bindings.driver")
    gpus = [info for info in vd.get_devices() if info.vendor_id == 0x10DE]
    if len(gpus) < 2:
        pytest.skip("this machine has no two GPUs that CUDA knows")

    def count_maps() -> int:
        import vkdispatch as vd

        mapped: Any = vd.get_context().kept.get("device memory of other processes")
        return 0 if mapped is None else len(mapped._addresses)

    devices = [info.sorted_index for info in gpus[:2]]
    with (
        LocalVulkanCluster(devices=devices, memory_limit=None, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        exchange(client)
        assert list(client.run(count_maps).values()) == [1, 1]
