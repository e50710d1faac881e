"""The one global context: the devices in use, their limits, their queues, and the objects made on them."""

import atexit
import itertools
import operator
import os
import weakref
from _thread import RLock, allocate_lock
from collections.abc import Iterable, Sequence

import vkdispatch_native as native
from vkdispatch.base.compiler import context_comes_up, context_ends
from vkdispatch.base.devices import DeviceInfo, by_preference
from vkdispatch.base.errors import ArgumentValueError, DeviceLostError, UnsupportedError, UsageError
from vkdispatch.base.init import debug_enabled, get_devices, initialize, is_dummy, is_vulkan, no_driver_error
from vkdispatch.base.logging import log_info, log_warning

_COMPUTE = 0x2
_GRAPHICS = 0x1
# Each queue has a thread and a copy of every buffer.
_MAX_QUEUES = 64
_numbers = itertools.count(1)
_numbers_lock = allocate_lock()  # without a GIL the count may give a number twice


class Context:
    """Devices with their queues, and the limits that hold on all of them.

    Limits are the smallest over the devices (`uniform_buffer_alignment` the largest); memory sizes are bytes.
    """

    def __init__(self, device_ids: Sequence[int], queue_families: Sequence[Sequence[int]]) -> None:
        devices = get_devices()
        self.device_ids = list(device_ids)
        self.mapped_device_ids = [devices[index].dev_index for index in device_ids]
        self.device_infos = [devices[index] for index in device_ids]
        self.queue_families = [list(families) for families in queue_families]
        self.handles_dict: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
        self.closed = False
        force_staging = os.environ.get("VKDISPATCH_FORCE_STAGING", "") == "1"
        # None on the dummy backend, which has nothing to run on.
        self._engine = (
            None
            if is_dummy()
            else native.Engine(self.mapped_device_ids, self.queue_families, debug_enabled(), force_staging)
        )
        self._handle = id(self)
        self.queue_count = sum(map(len, self.queue_families))
        self.refresh_limits_from_device_infos()

    @property
    def _native(self) -> native.Engine:
        """The engine. Raises RuntimeError on the dummy backend."""
        if self._engine is None:
            raise UsageError(
                "the dummy backend has no device: kernels can be traced and their source be read, no more"
            )
        return self._engine

    def refresh_limits_from_device_infos(self) -> None:
        """Compute the limits again from `device_infos`."""
        infos = self.device_infos
        self.subgroup_size = min(info.sub_group_size for info in infos)
        self.subgroup_enabled = all(info.subgroup_enabled for info in infos)
        self.subgroup_arithmetic = all(info.subgroup_arithmetic for info in infos)
        self.max_workgroup_size = _smallest(info.max_workgroup_size for info in infos)
        self.max_workgroup_invocations = min(info.max_workgroup_invocations for info in infos)
        self.max_workgroup_count = _smallest(info.max_workgroup_count for info in infos)
        self.uniform_buffer_alignment = max(info.uniform_buffer_alignment for info in infos)
        self.max_shared_memory = min(info.max_compute_shared_memory_size for info in infos)
        self.max_storage_buffer_range = min(info.max_storage_buffer_range for info in infos)

    @property
    def runs(self) -> bool:
        """Whether there is anything to run kernels on: false on the dummy backend."""
        return self._engine is not None

    @property
    def usable(self) -> bool:
        """Whether work can still be given to this context."""
        return not (self.closed or self.lost)

    @property
    def lost(self) -> bool:
        """Whether a device stopped working."""
        return self._engine is not None and self._engine.lost

    def is_apple(self) -> bool:
        """Whether any of the devices is one of Apple's."""
        return any(info.is_apple() for info in self.device_infos)

    def close(self) -> None:
        """Destroy every object of this context, then the devices. Idempotent."""
        if self.closed:
            return
        self.closed = True
        for handle in list(self.handles_dict.values()):
            handle.destroy()
        if self._engine is not None:
            self._engine.close()
            context_ends()


class Handle:
    """A device object. Children hold their parents alive; destroying a parent destroys its children first.

    An object that nobody holds any more has no children, and its native part frees itself: there is no need
    of a `__del__`.
    """

    context: Context
    _handle: int
    destroyed: bool = True
    parents: dict[int, "Handle"]

    def __init__(self, context: Context | None = None) -> None:
        self.context = context if context is not None else get_context()
        with _numbers_lock:
            self._handle = next(_numbers)
        self.parents = {}
        # Made on first use: most buffers never have children.
        self._children: weakref.WeakValueDictionary[int, Handle] | None = None
        self.destroyed = False
        self.context.handles_dict[self._handle] = self

    @property
    def children_dict(self) -> "weakref.WeakValueDictionary[int, Handle]":
        """The objects that cannot outlive this one, by number."""
        if self._children is None:
            self._children = weakref.WeakValueDictionary()
        return self._children

    def register_parent(self, parent: "Handle") -> None:
        """Make this object end with `parent`, and keep `parent` alive until then."""
        if parent._handle not in self.parents:
            self.parents[parent._handle] = parent
            parent.children_dict[self._handle] = self

    def clear_parents(self) -> None:
        """Undo every `register_parent`."""
        for parent in self.parents.values():
            parent.children_dict.pop(self._handle, None)
        self.parents = {}

    def destroy(self) -> None:
        """Give the device memory back as soon as the device is done with it. Never blocks. Idempotent."""
        if self.destroyed:
            return
        self.destroyed = True
        if self._children:
            for child in list(self._children.values()):
                child.destroy()
        self.clear_parents()
        self._release()

    def _release(self) -> None:
        """Destroy the native object."""

    def require_alive(self) -> None:
        """Raise UsageError, or DeviceLostError where that is why, when this object was destroyed."""
        if self.destroyed and self.context.lost:
            raise DeviceLostError(f"the device of this {type(self).__name__} was lost; make a new one")
        if self.destroyed:
            raise UsageError(f"this {type(self).__name__} was destroyed; make a new one")


def _smallest(sizes: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    x, y, z = (min(component) for component in zip(*sizes, strict=True))
    return (x, y, z)


def as_int(value: object) -> int | None:
    """Return a Python or NumPy integer as an int; None for everything else, truth values included."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None  # an array of several integers, say


_lock = RLock()
_context: Context | None = None


def make_context(
    device_ids: int | Sequence[int] | None = None,
    device_count: int | None = None,
    queue_counts: int | Sequence[int] | None = None,
    queue_families: Sequence[Sequence[int]] | None = None,
    use_cpu: bool = False,
    multi_device: bool = False,
    multi_queue: bool = False,
    compiles: bool = True,
) -> Context:
    """Make the global context, or return it, arguments ignored, when it exists.

    Parameters
    ----------
    device_ids
        Index or indices into `get_devices()`. None chooses: discrete, integrated, virtual GPU; a CPU
        driver when there is nothing else or, with `use_cpu`, after the GPUs. The environment variable
        VKDISPATCH_DEVICE (an index, or a part of the name) picks another.
    device_count
        How many devices to take when chosen automatically (default 1; all with `multi_device`).
    queue_counts
        Queues per device (default 1; with `multi_queue` what suits the device).
    queue_families
        A list of queue family indices per device.
    compiles
        Whether there will be GLSL to compile, for which the compiler gets ready on another thread. False is
        for programs that have SPIR-V.

    Raises
    ------
    ValueError
        An index, count or family is out of range, or VKDISPATCH_DEVICE matches no device.
    BackendUnavailableError
        This machine has no Vulkan driver or no device.
    UnsupportedError
        The device lacks something that vkdispatch needs.
    """
    global _context
    with _lock:
        if _context is not None and _context.usable:
            return _context
        if compiles and is_vulkan():
            context_comes_up()
        initialize()
        lost, _context = _context, None
        if lost is not None:
            log_warning("the device was lost; making a new context")
            lost.close()
        if queue_families is not None and device_ids is None:
            raise ArgumentValueError("queue_families: needs device_ids, to know whose families they are")
        chosen = (
            _explicit_devices(device_ids)
            if device_ids is not None
            else _automatic_devices(device_count, use_cpu, multi_device)
        )
        _refuse_unusable(chosen)
        families = _queue_families(chosen, queue_counts, queue_families, multi_queue)
        context = Context(chosen, families)
        _announce(context)
        _context = context
        return context


def _announce(context: Context) -> None:
    for info in context.device_infos:
        kind = " (a CPU driver: kernels run on the processor)" if info.is_cpu() else ""
        log_info(f"using device {info.sorted_index}: {info.device_name}{kind}")


def _explicit_devices(device_ids: int | Sequence[int]) -> list[int]:
    given = _as_list("device_ids", device_ids)
    count = len(get_devices())
    if not given:
        raise ArgumentValueError("device_ids: at least one device is needed, got an empty list")
    indices = []
    for item in given:
        index = as_int(item)
        if index is None or not 0 <= index < count:
            raise ArgumentValueError(f"device_ids: expected indices from 0 to {count - 1}, got {item!r}")
        indices.append(index)
    if len(set(indices)) != len(indices):
        raise ArgumentValueError(f"device_ids: each device may be named once, got {indices}")
    return indices


def _as_list(argument: str, value: object) -> list[object]:
    """Return the items of a sequence, or one integer as a list."""
    if as_int(value) is not None:
        return [value]
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentValueError(f"{argument}: expected an int or a list of ints, got {value!r}")
    return list(value)


def _automatic_devices(device_count: int | None, use_cpu: bool, multi_device: bool) -> list[int]:
    devices = get_devices()
    if not devices:
        raise no_driver_error("the loader found no device")
    wanted = os.environ.get("VKDISPATCH_DEVICE", "").strip()
    if wanted:
        return [find_device(wanted, devices)]
    order = by_preference(devices)
    if not order:
        # Every device lacks something: name the first one and what it lacks.
        return [0]
    gpus = [index for index in order if not devices[index].is_cpu()]
    candidates = order if use_cpu or not gpus else gpus
    if device_count is None:
        return candidates if multi_device else candidates[:1]
    count = as_int(device_count)
    if count is None or not 1 <= count <= len(candidates):
        raise ArgumentValueError(
            f"device_count: expected 1 to {len(candidates)} (devices available), got {device_count!r}"
        )
    return candidates[:count]


def find_device(wanted: str, devices: Sequence[DeviceInfo]) -> int:
    """Return the position of the device with this index, or with this text in its name (any case).

    Raises
    ------
    ValueError
        No device matches.
    """
    if wanted.isdigit() and int(wanted) < len(devices):
        return int(wanted)
    matches = [index for index in range(len(devices)) if wanted.lower() in devices[index].device_name.lower()]
    if not matches:
        names = "; ".join(f"{index}: {device.device_name}" for index, device in enumerate(devices))
        raise ArgumentValueError(f"VKDISPATCH_DEVICE: no device matches {wanted!r}; there are {names}")
    usable = [index for index in matches if not devices[index].missing]
    return (usable or matches)[0]


def default_device() -> int:
    """Return the index of the device that `get_context()` would choose."""
    return _automatic_devices(None, False, False)[0]


def _refuse_unusable(device_ids: Sequence[int]) -> None:
    devices = get_devices()
    for index in device_ids:
        if devices[index].missing:
            raise UnsupportedError(
                f"device {index} ({devices[index].device_name}) cannot be used: it lacks "
                f"{', '.join(devices[index].missing)}; a newer driver may help, or pick another device with "
                "VKDISPATCH_DEVICE"
            )


def _queue_families(
    device_ids: Sequence[int],
    queue_counts: int | Sequence[int] | None,
    queue_families: Sequence[Sequence[int]] | None,
    multi_queue: bool,
) -> list[list[int]]:
    if queue_families is not None:
        return _explicit_families(device_ids, queue_families)
    if queue_counts is None:
        return [select_queue_families(index, None if multi_queue else 1) for index in device_ids]
    counts = _as_list("queue_counts", queue_counts)
    if as_int(queue_counts) is not None:
        counts *= len(device_ids)
    if len(counts) != len(device_ids):
        raise ArgumentValueError(
            f"queue_counts: {len(device_ids)} devices need as many counts, got {len(counts)}"
        )
    return [
        select_queue_families(index, _checked_count(count))
        for index, count in zip(device_ids, counts, strict=True)
    ]


def _checked_count(value: object) -> int:
    count = as_int(value)
    if count is None or not 1 <= count <= _MAX_QUEUES:
        raise ArgumentValueError(f"queue_count: expected 1 to {_MAX_QUEUES} queues, got {value!r}")
    return count


def _explicit_families(device_ids: Sequence[int], queue_families: Sequence[Sequence[int]]) -> list[list[int]]:
    lists = _as_list("queue_families", queue_families)
    if len(lists) != len(device_ids):
        raise ArgumentValueError(
            f"queue_families: {len(device_ids)} devices need as many lists, got {len(lists)}"
        )
    return [_families_of(index, families) for index, families in zip(device_ids, lists, strict=True)]


def _families_of(device_index: int, families: object) -> list[int]:
    if isinstance(families, (str, bytes)) or not isinstance(families, Iterable):
        raise ArgumentValueError(
            f"queue_families: expected a list of family indices per device, got {families!r}"
        )
    properties = get_devices()[device_index].queue_properties
    checked = []
    for item in families:
        family = as_int(item)
        if family is None or not 0 <= family < len(properties):
            raise ArgumentValueError(
                f"queue_families: device {device_index} has families 0 to {len(properties) - 1}, got {item!r}"
            )
        if not properties[family][1] & _COMPUTE:
            raise ArgumentValueError(
                f"queue_families: family {family} of device {device_index} cannot compute"
            )
        checked.append(family)
    if not 1 <= len(checked) <= _MAX_QUEUES:
        raise ArgumentValueError(
            f"queue_families: device {device_index} needs 1 to {_MAX_QUEUES} families, got {len(checked)}"
        )
    return checked


def select_queue_families(device_index: int, queue_count: int | None = None) -> list[int]:
    """Return the queue family of each queue to make on a device, compute-only families first.

    Parameters
    ----------
    device_index
        Index into `get_devices()`.
    queue_count
        Number of queues; None takes 1 where compute and graphics share a family, else 2 (NVIDIA: 3).

    Raises
    ------
    ValueError
        The index or count is out of range, or the device has no compute queue.
    """
    device = get_devices()[_explicit_devices(device_index)[0]]
    compute, graphics = _compute_family(device), _graphics_family(device)
    if queue_count is None:
        queue_count = 1 if compute == graphics else (3 if device.is_nvidia() else 2)
    queue_count = _checked_count(queue_count)
    if device.is_nvidia():
        return [graphics if position == 1 else compute for position in range(queue_count)]
    return [graphics if position % 2 else compute for position in range(queue_count)]


def _compute_family(device: DeviceInfo) -> int:
    flags = [flags for _, flags in device.queue_properties]
    preferred = [index for index, value in enumerate(flags) if value in (6, 14)]
    compute_only = [index for index, value in enumerate(flags) if value & _COMPUTE and not value & _GRAPHICS]
    compute = [index for index, value in enumerate(flags) if value & _COMPUTE]
    if not compute:
        raise ArgumentValueError(f"device_index: {device.device_name} has no queue family that can compute")
    return (preferred or compute_only or compute)[0]


def _graphics_family(device: DeviceInfo) -> int:
    flags = [flags for _, flags in device.queue_properties]
    preferred = [index for index, value in enumerate(flags) if value in (7, 15)]
    both = [index for index, value in enumerate(flags) if value & _COMPUTE and value & _GRAPHICS]
    compute = [index for index, value in enumerate(flags) if value & _COMPUTE]
    return (preferred or both or compute)[0]


def get_context() -> Context:
    """Return the global context, made with the defaults of `make_context` when there is none."""
    context = _context
    if context is not None and context.usable:
        return context
    return make_context()


def get_context_handle() -> int:
    """Return a number that identifies the global context."""
    return get_context()._handle


def is_context_initialized() -> bool:
    """Whether there is a global context."""
    return _context is not None


def queue_wait_idle(queue_index: int | None = None, context: Context | None = None) -> None:
    """Wait until one queue, or with None every queue, has done all work given to it.

    Raises
    ------
    ValueError
        `queue_index` is not a queue of the context.
    """
    context = context or get_context()
    queue = -1 if queue_index is None else checked_queue(queue_index, context, "queue_index")
    if context._engine is not None:
        context._engine.wait_idle(queue)


def checked_queue(queue_index: object, context: Context, argument: str) -> int:
    """Return `queue_index` when it is a queue of the context.

    Raises
    ------
    ValueError
        It is not; `argument` is how the message calls it.
    """
    queue = as_int(queue_index)
    if queue is not None and 0 <= queue < context.queue_count:
        return queue
    raise ArgumentValueError(
        f"{argument}: expected a queue from 0 to {context.queue_count - 1} or None (all), got {queue_index!r}"
    )


def destroy_context() -> None:
    """Destroy the global context and every object made in it. The next use makes a new one."""
    global _context
    with _lock:
        context, _context = _context, None
    if context is not None:
        context.close()


def stop_threads() -> None:
    """Finish all work and stop the queue threads; the same as `destroy_context`."""
    destroy_context()


# Registered here so that objects still alive at interpreter exit go before the driver's library is unloaded.
atexit.register(destroy_context)
