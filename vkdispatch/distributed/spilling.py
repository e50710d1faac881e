"""What a worker stores: on the device up to a limit, then on the host, then on disk."""

import logging
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from copy import deepcopy
from threading import RLock
from typing import Any

from distributed.protocol.serialize import dask_deserialize, dask_serialize, deserialize, serialize

from vkdispatch.base.errors import OutOfDeviceMemoryError
from vkdispatch.distributed.results import count_bytes, evaluate_result

_logger = logging.getLogger(__name__)


class HostCopy:
    """A value with arrays and buffers, in host memory.

    Attributes
    ----------
    header, frames
        The value as `distributed` sends it.
    nbytes
        Bytes of the frames.
    """

    __slots__ = ("__weakref__", "frames", "header", "nbytes")

    def __init__(self, header: dict[str, Any], frames: list[Any]) -> None:
        self.header = header
        self.frames = frames
        self.nbytes = sum(memoryview(frame).nbytes for frame in frames)

    @classmethod
    def of(cls, value: object) -> "HostCopy":
        """Return a copy of a value. Raises TypeError if something in it cannot be sent."""
        # pinned memory is for what is soon gone
        return cls(*serialize(value, on_error="raise", context={"pinned": False}))

    def restore(self) -> Any:
        """Return the value, on the device of the current context."""
        return deserialize(deepcopy(self.header), self.frames)  # which takes headers apart

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes


@dask_serialize.register(HostCopy)
def _serialize_copy(copy: HostCopy) -> tuple[dict[str, Any], list[Any]]:
    return {"header": copy.header}, copy.frames


@dask_deserialize.register(HostCopy)
def _deserialize_copy(header: dict[str, Any], frames: list[Any]) -> HostCopy:
    return HostCopy(header["header"], list(frames))


class DeviceStore(MutableMapping[Any, Any]):
    """The results that a worker stores, by key: the `data` of a `distributed.Worker`.

    What has arrays or buffers stays on the device as long as all of it together has at most `limit` bytes.
    What was used least recently is copied to the host and dropped from the device; reading it brings it back.
    The host has limits of its own: `distributed` spills what exceeds them to disk.

    Attributes
    ----------
    device
        What is on the device.
    host
        Everything else: the mapping that the worker would have without this one.
    limit
        Bytes, or None: no limit.
    shares_memory
        Whether the device's memory is the host's. Values then lie in `host`, which spills them to disk,
        unless there is a `limit`.
    spill_count, spilled_bytes
        How many values were copied from the device to the host, and how many bytes they had.
    """

    def __init__(
        self, host: MutableMapping[Any, Any], limit: int | None, shares_memory: bool = False
    ) -> None:
        self.host = host
        self.limit = limit
        self.shares_memory = shares_memory
        self.device: OrderedDict[Any, Any] = OrderedDict()  # the one used last is the last one
        self.spill_count = 0
        self.spilled_bytes = 0
        self._sizes: dict[Any, int] = {}
        self._stored = 0
        self._stuck: set[Any] = set()  # keys of values that cannot be copied
        self._lock = RLock()

    @property
    def stored_bytes(self) -> int:
        """Bytes of what is on the device."""
        return self._stored

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a value, which is computed if it is not yet. Raises as `vkdispatch.numpy` if it cannot be."""
        value = evaluate_result(value)
        size = count_bytes(value)
        with self._lock:
            if key in self:
                del self[key]
            if not size or (self.shares_memory and self.limit is None):
                self.host[key] = value
            else:
                self._keep(key, value, size)

    def _keep(self, key: Any, value: Any, size: int) -> None:
        self.device[key] = value
        self._sizes[key] = size
        self._stored += size
        if self.limit is None:
            return
        if size > self.limit:
            self._move_to_host(key)
        while self._stored > self.limit and self.spill() >= 0:
            pass

    def __getitem__(self, key: Any) -> Any:
        with self._lock:
            if key in self.device:
                self.device.move_to_end(key)
                return self.device[key]
            value = self.host[key]
            if not isinstance(value, HostCopy):
                return value
            try:
                restored = value.restore()
            except OutOfDeviceMemoryError:
                self.spill_all()
                restored = value.restore()
            size = count_bytes(restored)
            if self.limit is None or size <= self.limit:
                del self.host[key]
                self._keep(key, restored, size)
            return restored

    def __delitem__(self, key: Any) -> None:
        with self._lock:
            if key in self.device:
                self._drop(key)
            else:
                del self.host[key]

    def _drop(self, key: Any) -> None:
        del self.device[key]
        self._stored -= self._sizes.pop(key)
        self._stuck.discard(key)

    def __contains__(self, key: object) -> bool:
        return key in self.device or key in self.host

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            return iter([*self.device, *self.host])

    def __len__(self) -> int:
        return len(self.device) + len(self.host)

    # -- from the device to the host

    def spill(self) -> int:
        """Copy what was used least recently from the device to the host, and drop it from the device.

        Returns its bytes, or -1 if there is nothing that can be copied. Never raises.
        """
        with self._lock:
            for key in list(self.device):
                size = self._sizes[key]
                if key not in self._stuck and self._move_to_host(key):
                    return size
        return -1

    def spill_all(self) -> None:
        """Copy everything that can be copied from the device to the host."""
        while self.spill() >= 0:
            pass

    def _move_to_host(self, key: Any) -> bool:
        try:
            self.host[key] = HostCopy.of(self.device[key])
        except Exception:
            self._stuck.add(key)
            _logger.exception("Cannot copy %r from the device to the host; it stays on the device", key)
            return False
        size = self._sizes[key]
        self._drop(key)
        self.spill_count += 1
        self.spilled_bytes += size
        return True

    # -- what `distributed` asks of a mapping that spills

    @property
    def fast(self) -> Any:
        """What can be evicted from the memory of the host."""
        evictable = getattr(self.host, "fast", {})
        return evictable or (self.device if self.shares_memory else evictable)

    def evict(self) -> int:
        """Move a value from host memory to disk and return its bytes, or -1 if there is none to move."""
        host: Any = self.host
        if not hasattr(host, "evict"):
            return -1
        moved = self.spill() if self.shares_memory and not host.fast else -1
        return int(host.evict()) if host.fast else moved  # a large value has gone to disk at once

    def __getattr__(self, name: str) -> Any:
        # what `distributed` measures, if the host has it
        if name in ("disk", "slow", "spilled_total", "cumulative_metrics"):
            return getattr(self.host, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
