"""Arguments of clusters, and the devices of their workers, without starting any."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

pytest.importorskip("distributed")

from vkdispatch.distributed import LocalVulkanCluster, VulkanPlugin


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_workers": 0}, ValueError, "n_workers: at least one worker"),
        ({"n_workers": "two"}, TypeError, "n_workers: expected an int or None, got 'two'"),
        ({"devices": []}, ValueError, "devices: at least one device"),
        ({"devices": ["no such device"]}, ValueError, "devices: no device matches 'no such device'"),
        ({"devices": [99]}, ValueError, "devices: expected an index from 0 to"),
        ({"devices": "0" * 31 + "1"}, ValueError, "devices: no device has the UUID"),
        ({"devices": [1.5]}, TypeError, "devices: expected an index, a UUID or a name, got 1.5"),
        ({"devices": 1.5}, TypeError, "devices: expected indices, UUIDs or names"),
        ({"threads_per_worker": 0}, ValueError, "threads_per_worker: expected an int of 1 or more"),
        ({"memory_limit": "much"}, ValueError, "memory_limit: expected a size such as '8 GiB'"),
        ({"memory_limit": []}, TypeError, "memory_limit: expected bytes"),
        ({"device_memory_limit": "much"}, ValueError, "device_memory_limit: expected a size"),
        ({"device_memory_limit": -1}, ValueError, "device_memory_limit: expected 0 or more"),
        ({"device_memory_limit": True}, TypeError, "device_memory_limit: expected bytes"),
        ({"resources": 3}, TypeError, "resources: expected numbers by name"),
        ({"nworkers": 2}, TypeError, "nworkers"),
    ],
    ids=str,
)
def test_wrong_arguments_start_nothing(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        LocalVulkanCluster(**arguments)


class Gpus:
    """Devices that a test says there are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *types: int) -> None:
        from vkdispatch.base.contexts import selection
        from vkdispatch.base.devices import dummy_device
        from vkdispatch.distributed import worker

        self.infos = []
        for number, kind in enumerate(types):
            info = dummy_device()
            info.device_type, info.device_name = kind, f"device {number}"
            info.sorted_index = info.dev_index = number
            info.uuid = bytes([number]) * 16
            self.infos.append(info)
        monkeypatch.delenv("VKDISPATCH_DEVICE", raising=False)
        for module in (selection, worker):
            monkeypatch.setattr(module, "get_devices", lambda: self.infos)
        self.choose = worker.choose_devices

    def __call__(self, *arguments: Any) -> list[int]:
        return [self.infos.index(each) for each in self.choose(*arguments)]


def test_a_process_for_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = Gpus(monkeypatch, 4, 2, 2, 1)
    assert choose() == [1, 2, 3]
    assert choose(None, 2) == [1, 2]
    assert choose([3, "device 1", "02" * 16]) == [3, 1, 2]
    assert choose("02020202-0202-0202-0202-020202020202") == [2]
    assert choose([0, 1], 2) == [0, 1]
    assert choose(0, 3) == [0, 0, 0]
    with pytest.raises(ValueError, match=r"n_workers: 4 workers need as many GPUs.*at most 3"):
        choose(None, 4)
    with pytest.raises(ValueError, match="devices: device 1 is named twice"):
        choose([1, 1])
    monkeypatch.setenv("VKDISPATCH_DEVICE", "02" * 16)
    assert choose() == [2]


def test_without_gpus_workers_share_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = Gpus(monkeypatch, 4, 4)
    assert choose() == [0]
    assert choose(None, 3) == [0, 0, 0]
    assert choose([0, 1], 4) == [0, 1, 0, 1]


def test_plugins_travel_without_what_belongs_to_a_worker() -> None:
    plugin = VulkanPlugin("2 GiB")
    plugin.store = object()  # type: ignore[assignment]
    copy = pickle.loads(pickle.dumps(plugin))
    assert (copy.device_memory_limit, copy.store, copy.name) == ("2 GiB", None, "vkdispatch")
