"""Devices: their list, their properties, contexts on them, and the objects of a Manager."""

import contextlib
import weakref
from _thread import allocate_lock
from collections import Counter
from typing import TYPE_CHECKING, Any

from vkdispatch.base import context as contexts
from vkdispatch.base.context import Context
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.base.init import get_devices
from vkdispatch.kompute import log
from vkdispatch.kompute.enums import KomputeError

if TYPE_CHECKING:
    from vkdispatch.kompute.sequences import Sequence


# ---- Devices: their list, their properties, and contexts on them that Managers share ---------------------


_COMPUTE = 0x2  # VkQueueFlagBits
_MAX_QUEUES = 64

# Contexts that Managers share on devices on which `vd.get_context()` is not: how many Managers use each.
_users: Counter[Context] = Counter()
_lock = allocate_lock()


def list_devices() -> list[DeviceInfo]:
    """Return all devices in Vulkan's order. Raises RuntimeError if there is no driver."""
    return sorted(get_devices(), key=lambda info: info.dev_index)


def choose_context(index: int, families: list[int], extensions: list[str]) -> tuple[Context, bool]:
    """Return a context on a device, and whether the caller must release it."""
    devices = list_devices()
    if index >= len(devices):
        raise KomputeError(f"device: expected 0 to {len(devices) - 1}, got {index}")
    info = devices[index]
    for family in families:
        if family >= len(info.queue_properties) or not info.queue_properties[family][1] & _COMPUTE:
            raise KomputeError(
                f"family_queue_indices: {info.device_name} has no queue family {family} that can compute"
            )
    if len(families) > _MAX_QUEUES:
        raise KomputeError(
            f"family_queue_indices: expected {_MAX_QUEUES} queues or less, got {len(families)}"
        )
    missing = [name for name in extensions if name not in info.extensions]
    if missing:
        log.error("desired_extensions: %s has no %s", info.device_name, ", ".join(missing))
    extensions = [name for name in extensions if name in info.extensions]
    try:
        if families or extensions:
            return contexts.new_context(info.sorted_index, families or None, extensions), True
        current = contexts.get_context_on(info.sorted_index)
        return (_share_context(info.sorted_index), True) if current is None else (current, False)
    except VkDispatchError as error:
        raise KomputeError(f"device: {error}") from error


def _share_context(device: int) -> Context:
    """Return the context that Managers on a device share, for another one of them."""
    with _lock:
        shared = (context for context in _users if context.device_ids == [device] and context.usable)
        context = next(shared, None) or contexts.new_context(device)
        _users[context] += 1
        return context


def release_context(context: Context) -> None:
    """Close a context that `choose_context` made, unless other Managers use it."""
    with _lock:
        _users[context] -= 1
        is_last = _users[context] <= 0
        if is_last:
            del _users[context]
    if is_last:
        context.close()


def describe_device(info: DeviceInfo) -> dict[str, Any]:
    """Return the properties of a device that Kompute reports."""
    return {
        "device_name": info.device_name,
        "max_work_group_count": info.max_workgroup_count,
        "max_work_group_invocations": info.max_workgroup_invocations,
        "max_work_group_size": info.max_workgroup_size,
        "timestamps_supported": bool(info.timestamp_period),
    }


# ---- The objects of a Manager ----------------------------------------------------------------------------


class Resources:
    """The objects of a Manager, separate from it so that its finalizer can free them.

    Attributes
    ----------
    objects
        Sequences, algorithms, tensors and images.
    named_sequences
        Sequences by name, as in Kompute 0.5 and 0.6.
    """

    def __init__(self, context: Context, owns_context: bool) -> None:
        self.context = context
        self.owns_context = owns_context
        self.objects: weakref.WeakSet[Any] = weakref.WeakSet()
        self.named_sequences: dict[str, Sequence] = {}

    def free(self) -> None:
        """Destroy sequences, algorithms, memory, and then the context if no other Manager uses it."""
        objects = sorted(self.objects, key=_find_rank)
        log.debug("manager destroyed: number of its objects %d", len(objects))
        self.objects = weakref.WeakSet()
        self.named_sequences = {}
        with contextlib.ExitStack() as stack:  # destroys all of them even if one raises
            if self.owns_context:
                stack.callback(release_context, self.context)
            for instance in reversed(objects):
                stack.callback(instance.destroy)


_ORDER = ("Sequence", "Algorithm", "Tensor", "Image")


def _find_rank(instance: object) -> int:
    """Return the position in the order of destruction, by class name: not every class is imported."""
    return next(_ORDER.index(kind.__name__) for kind in type(instance).__mro__ if kind.__name__ in _ORDER)
