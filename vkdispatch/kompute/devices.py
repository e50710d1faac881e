"""Devices: their list, their properties, and a context on one of them."""

from typing import Any

from vkdispatch.base import context as contexts
from vkdispatch.base.context import Context
from vkdispatch.base.devices.information import DeviceInfo
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.base.init import get_devices
from vkdispatch.kompute import log
from vkdispatch.kompute.errors import KomputeError

_COMPUTE = 0x2  # VkQueueFlagBits
_MOST_QUEUES = 64


def list_devices() -> list[DeviceInfo]:
    """Return all devices in Vulkan's order. Raises RuntimeError if there is no driver."""
    return sorted(get_devices(), key=lambda info: info.dev_index)


def choose_context(index: int, families: list[int], extensions: list[str]) -> tuple[Context, bool]:
    """Return a context on a device, and whether it was made for the caller, who must close it."""
    devices = list_devices()
    if index >= len(devices):
        raise KomputeError(f"device: expected 0 to {len(devices) - 1}, got {index}")
    info = devices[index]
    for family in families:
        if family >= len(info.queue_properties) or not info.queue_properties[family][1] & _COMPUTE:
            raise KomputeError(
                f"family_queue_indices: {info.device_name} has no queue family {family} that can compute"
            )
    if len(families) > _MOST_QUEUES:
        raise KomputeError(
            f"family_queue_indices: expected {_MOST_QUEUES} queues or less, got {len(families)}"
        )
    missing = [name for name in extensions if name not in info.extensions]
    if missing:
        log.error("desired_extensions: %s has no %s", info.device_name, ", ".join(missing))
    extensions = [name for name in extensions if name in info.extensions]
    try:
        if not families and not extensions:
            shared = contexts.get_context_on(info.sorted_index)
            if shared is not None:
                return shared, False
        return contexts.new_context(info.sorted_index, families or None, extensions), True
    except VkDispatchError as error:
        raise KomputeError(f"device: {error}") from error


def describe_device(info: DeviceInfo) -> dict[str, Any]:
    """Return the properties of a device that Kompute reports."""
    return {
        "device_name": info.device_name,
        "max_work_group_count": info.max_workgroup_count,
        "max_work_group_invocations": info.max_workgroup_invocations,
        "max_work_group_size": info.max_workgroup_size,
        "timestamps_supported": bool(info.timestamp_period),
    }
