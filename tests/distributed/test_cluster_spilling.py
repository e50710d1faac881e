"""What workers store: on the device, on the host, on disk."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp

pytest.importorskip("distributed")

from distributed.spill import SpillBuffer

from vkdispatch.base.errors import OutOfDeviceMemoryError
from vkdispatch.distributed import VulkanPlugin, worker
from vkdispatch.distributed.spilling import DeviceStore, HostCopy
from vkdispatch.distributed.worker import parse_device_limit

_BYTES = 4000  # of `array`


def array(number: int) -> vnp.Array:
    return vnp.arange(1000).astype(np.float32) + number


def expect(value: Any, number: int) -> None:
    assert isinstance(value, vnp.Array)
    np.testing.assert_array_equal(value.numpy(), np.arange(1000, dtype=np.float32) + number)


def live_bytes() -> int:
    return vd.get_context()._native.statistics()["device_memory"]


def test_the_least_recently_used_goes_to_the_host() -> None:
    host: dict[Any, Any] = {}
    store = DeviceStore(host, 3 * _BYTES)
    for number in range(3):
        store[number] = array(number)
    assert not host
    expect(store[0], 0)
    store[3] = array(3)
    assert list(host) == [1]
    assert isinstance(host[1], HostCopy)
    assert host[1].nbytes == _BYTES
    assert (store.stored_bytes, store.spill_count, store.spilled_bytes) == (3 * _BYTES, 1, _BYTES)
    for number in range(4):  # each brings itself back, and another one goes
        expect(store[number], number)
        assert store.stored_bytes <= 3 * _BYTES
    assert sorted(store) == [0, 1, 2, 3]
    assert len(store) == 4


def test_spilling_frees_the_memory_of_the_device() -> None:
    store = DeviceStore({}, 1 << 20)
    before = live_bytes()
    for number in range(40):
        store[number] = vnp.full(1 << 16, number, np.float32)  # 256 KiB
    assert live_bytes() - before <= 5 << 18
    for number in range(40):
        assert store[number].tolist() == [number] * (1 << 16)


def test_everything_but_arrays_stays_where_it_was() -> None:
    host: dict[Any, Any] = {}
    store = DeviceStore(host, _BYTES)
    data = np.arange(10_000)
    store["host"], store["text"], store["empty"] = data, "text", []
    assert host == {"host": data, "text": "text", "empty": []}
    assert store["host"] is data


def test_collections_and_buffers_are_spilled_whole() -> None:
    host: dict[Any, Any] = {}
    store = DeviceStore(host, 0)
    buffer = vd.asbuffer(np.arange(12, dtype=np.float32))
    value = {"a": [array(1), "text"], "b": (array(2), buffer, np.arange(3)), "c": vnp.asarray(7)}
    store["x"] = value
    assert isinstance(host["x"], HostCopy)
    for _ in range(2):  # larger than the limit: each time a new copy
        found = store["x"]
        assert not store.device
        expect(found["a"][0], 1)
        assert found["a"][1] == "text"
        expect(found["b"][0], 2)
        np.testing.assert_array_equal(found["b"][1].read(0), np.arange(12))
        np.testing.assert_array_equal(found["b"][2], np.arange(3))
        assert int(found["c"]) == 7


def test_a_value_larger_than_the_limit_does_not_move_the_others() -> None:
    host: dict[Any, Any] = {}
    store = DeviceStore(host, 2 * _BYTES)
    store["small"] = array(1)
    store["large"] = vnp.arange(10_000).astype(np.float32)
    assert list(host) == ["large"]
    assert list(store.device) == ["small"]
    assert store["large"].shape == (10_000,)
    assert list(store.device) == ["small"]


def test_stored_values_are_computed() -> None:
    store = DeviceStore({}, None)
    x = array(1)
    store["x"] = x
    assert type(x._value).__name__ == "View"


def test_values_are_replaced_and_deleted() -> None:
    host: dict[Any, Any] = {}
    store = DeviceStore(host, 2 * _BYTES)
    for number in range(3):
        store[number] = array(number)
    assert 0 in host
    store[0] = array(10)
    store[2] = "text"
    expect(store[0], 10)
    assert store[2] == "text"
    del store[0], store[1], store[2]
    assert len(store) == len(host) == store.stored_bytes == 0
    with pytest.raises(KeyError):
        store[0]
    with pytest.raises(KeyError):
        del store[0]


def make_host(folder: Path, target: int) -> SpillBuffer:
    return SpillBuffer(str(folder / "spilled"), target=target)


def test_the_host_spills_to_disk(tmp_path: Path) -> None:
    host = make_host(tmp_path, 2 * _BYTES + 4000)
    store = DeviceStore(host, 2 * _BYTES)
    for number in range(10):
        store[number] = array(number)
    assert len(store.device) == 2
    assert 1 <= len(host.memory) <= 3
    assert len(host.disk) == 10 - len(store.device) - len(host.memory)
    assert store.spilled_total.memory >= len(host.disk) * _BYTES
    files = list((tmp_path / "spilled").iterdir())
    assert len(files) == len(host.disk)
    for _ in range(2):
        for number in range(10):
            expect(store[number], number)
    for number in range(10):
        del store[number]
    assert not list((tmp_path / "spilled").iterdir())


def test_eviction_under_pressure_of_the_host(tmp_path: Path) -> None:
    # what the memory monitor of a worker does
    host = make_host(tmp_path, 1 << 30)
    store = DeviceStore(host, _BYTES)
    for number in range(3):
        store[number] = array(number)
    assert len(store.fast) == 2
    assert store.evict() >= _BYTES
    assert store.evict() >= _BYTES
    assert not store.fast
    assert store.evict() == -1
    assert len(host.disk) == 2
    for number in range(3):
        expect(store[number], number)
    assert DeviceStore({}, _BYTES).evict() == -1


@pytest.mark.parametrize("limit", [None, 8 * _BYTES])
def test_memory_of_the_device_is_memory_of_the_host(tmp_path: Path, limit: int | None) -> None:
    # as on CPU drivers: what is evicted goes to disk
    host = make_host(tmp_path, 8 * _BYTES)
    store = DeviceStore(host, limit, shares_memory=True)
    for number in range(5):
        store[number] = array(number)
    assert (len(store.device) == 0) == (limit is None)
    assert len(store.fast) == 5
    for _ in range(5):
        assert store.evict() >= _BYTES
    assert store.evict() == -1
    assert len(host.disk) == 5
    assert not store.device
    for number in range(5):
        expect(store[number], number)


def test_large_values_go_to_disk_at_once(tmp_path: Path) -> None:
    host = make_host(tmp_path, _BYTES // 2)
    store = DeviceStore(host, 8 * _BYTES, shares_memory=True)
    store["x"] = array(1)
    assert store.evict() == _BYTES
    assert (len(store.device), len(host.fast), len(host.disk)) == (0, 0, 1)
    assert store.evict() == -1
    expect(store["x"], 1)


def test_results_are_spilled_while_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    # what a worker does from time to time
    plugin = VulkanPlugin(None)
    plugin.context, plugin.store = vd.get_context(), DeviceStore({}, None)
    for number in range(5):
        plugin.store[number] = array(number)
    plugin._watch()
    assert len(plugin.store.device) == 5  # there is enough
    monkeypatch.setattr(worker, "_is_short_of_memory", lambda _: len(plugin.store.device) > 2)  # type: ignore[union-attr]
    plugin._watch()
    assert sorted(plugin.store.device) == [3, 4]
    monkeypatch.setattr(worker, "_is_short_of_memory", lambda _: True)
    plugin._watch()  # and nobody helps: it ends
    assert not plugin.store.device
    for number in range(5):
        expect(plugin.store[number], number)


class Unsendable:
    def __reduce__(self) -> Any:
        raise RuntimeError("this cannot be sent")


def test_what_cannot_be_sent_stays(caplog: pytest.LogCaptureFixture) -> None:
    store = DeviceStore({}, _BYTES)
    store["bad"] = [array(1), Unsendable()]
    store["good"] = array(2)
    assert "bad" in store.device
    assert caplog.text.count("Cannot copy 'bad'") == 1
    expect(store["bad"][0], 1)
    expect(store["good"], 2)
    store["more"] = array(3)
    assert caplog.text.count("Cannot copy 'bad'") == 1


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make_host(tmp_path, 2 * _BYTES)
    store = DeviceStore(host, _BYTES)

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(host._slow_uncached.d), "__setitem__", fail)
    for number in range(6):
        store[number] = array(number)
    for number in range(6):
        expect(store[number], number)


def test_a_full_device_is_emptied_for_what_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store = DeviceStore({}, 2 * _BYTES)
    for number in range(3):
        store[number] = array(number)
    restore = HostCopy.restore
    calls = []

    def fail_once(copy: HostCopy) -> Any:
        calls.append(len(store.device))
        if store.device:
            raise OutOfDeviceMemoryError("the device is full")
        return restore(copy)

    monkeypatch.setattr(HostCopy, "restore", fail_once)
    expect(store[0], 0)
    assert calls == [2, 0]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("auto", 800),
        (None, None),
        (0, None),
        ("0", None),
        (700, 700),
        ("2 kB", 2000),
        (0.5, 1000),
        (1.0, 2000),
    ],
)
def test_limits_of_the_device(limit: object, expected: int | None) -> None:
    assert parse_device_limit(limit, 1000, 2000, False) == expected
    assert parse_device_limit(limit, 1000, 2000, True) == (None if limit == "auto" else expected)


def test_the_budget_of_the_device() -> None:
    before = vd.get_context()._native.statistics()
    assert 0 < before["memory_budget"] <= before["heap_memory"]
    buffer = vd.Buffer(64 << 20, vd.uint8)  # larger than what is reserved in advance
    after = vd.get_context()._native.statistics()
    assert after["memory_usage"] >= before["memory_usage"]
    assert after["memory_usage"] >= after["device_memory"] >= buffer.mem_size
    assert after["heap_memory"] == before["heap_memory"]


def test_it_is_a_mapping() -> None:
    assert isinstance(DeviceStore({}, None), MutableMapping)
    assert not hasattr(DeviceStore({}, None), "spilled_total")
