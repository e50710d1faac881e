"""What contexts are made of: devices, queues and extensions; handles for and of other libraries."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from vkdispatch.base.devices import DeviceInfo, by_preference
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.init import (
    device_info,
    get_devices,
    is_debug_enabled,
    is_dummy,
    is_staging_forced,
    no_driver_error,
)
from vkdispatch.base.native_module import native
from vkdispatch.base.process import as_int
from vkdispatch.base.record import record

_COMPUTE_QUEUE = 0x2
_GRAPHICS = 0x1
# Each queue has a thread and a copy of every buffer.
_MAX_QUEUES = 64
_DEVICE_VARIABLE = "VKDISPATCH_DEVICE"
_OLD_ADDRESSES = "VK_EXT_buffer_device_address"


def parse_devices(device_ids: int | Sequence[int]) -> list[int]:
    """Return device indices as a list. Raises ValueError if there is no such device."""
    items = _as_list("device_ids", device_ids)
    count = len(get_devices())
    if not items:
        raise ArgumentValueError("device_ids: at least one device is needed, got an empty list")
    indices = []
    for item in items:
        index = as_int(item)
        if index is None or not 0 <= index < count:
            raise ArgumentValueError(f"device_ids: expected indices from 0 to {count - 1}, got {item!r}")
        indices.append(index)
    if len(set(indices)) != len(indices):
        raise ArgumentValueError(f"device_ids: each device can be named only once, got {indices}")
    return indices


def _as_list(argument: str, value: object) -> list[object]:
    """Return the items of a sequence, or one integer as a list."""
    if as_int(value) is not None:
        return [value]
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentValueError(f"{argument}: expected an int or a list of ints, got {value!r}")
    return list(value)


def choose_devices(device_count: int | None, use_cpu: bool, multi_device: bool) -> list[int]:
    """Return the indices of the devices that `make_context` selects automatically; see there."""
    devices = get_devices()
    if not devices:
        raise no_driver_error("the loader found no device")
    # The variable selects among real devices. The dummy backend has one device.
    wanted = "" if is_dummy() else os.environ.get(_DEVICE_VARIABLE, "").strip()
    if wanted:
        candidates = [find_device(wanted, devices)]
    else:
        order = by_preference(devices)
        gpus = [index for index in order if not devices[index].is_cpu()]
        # If no device is usable, the first one is taken, and `refuse_unusable` says what it lacks.
        candidates = (order if use_cpu or not gpus else gpus) or [0]
    if device_count is None:
        return candidates if multi_device else candidates[:1]
    count = as_int(device_count)
    if count is None or not 1 <= count <= len(candidates):
        raise ArgumentValueError(
            f"device_count: expected 1 to {len(candidates)} (devices available"
            f"{f' with {_DEVICE_VARIABLE}={wanted}' if wanted else ''}), got {device_count!r}"
        )
    return candidates[:count]


def find_device(wanted: str, devices: Sequence[DeviceInfo], argument: str = _DEVICE_VARIABLE) -> int:
    """Return the position of the device with this index, this UUID, or this text in its name (any case).

    A whole number is always an index, never a part of a name. A UUID has 32 hexadecimal digits, which may
    be parted by dashes. Messages call the value `argument`.

    Raises
    ------
    ValueError
        No device matches.
    """
    names = "; ".join(f"{index}: {device.device_name}" for index, device in enumerate(devices))
    number = wanted.replace("-", "").lower()
    if re.fullmatch(r"[0-9a-f]{32}", number):
        matches = [i for i, device in enumerate(devices) if device.uuid and device.uuid.hex() == number]
        if not matches:
            known = "; ".join(
                f"{device.uuid.hex()}: {device.device_name}" for device in devices if device.uuid
            )
            raise ArgumentValueError(f"{argument}: no device has the UUID {wanted!r}; there are {known}")
    elif re.fullmatch(r"[+-]?[0-9]+", wanted):
        if not 0 <= int(wanted) < len(devices):
            raise ArgumentValueError(
                f"{argument}: expected an index from 0 to {len(devices) - 1} or a UUID or a part of a name, "
                f"got {wanted!r}; there are {names}"
            )
        return int(wanted)
    else:
        matches = [i for i, device in enumerate(devices) if wanted.lower() in device.device_name.lower()]
    if not matches:
        raise ArgumentValueError(f"{argument}: no device matches {wanted!r}; there are {names}")
    usable = [index for index in matches if not devices[index].missing]
    return (usable or matches)[0]


def default_device() -> int:
    """Return the index of the device that `get_context()` would select."""
    return choose_devices(None, False, False)[0]


def refuse_unusable(device_ids: Sequence[int]) -> None:
    """Raise UnsupportedError for a device that lacks what vkdispatch needs."""
    devices = get_devices()
    for index in device_ids:
        if devices[index].missing:
            raise UnsupportedError(
                f"device {index} ({devices[index].device_name}) cannot be used: it lacks "
                f"{', '.join(devices[index].missing)}; a newer driver may help, or pick another device with "
                "VKDISPATCH_DEVICE"
            )


def choose_families(
    device_ids: Sequence[int],
    queue_counts: int | Sequence[int] | None,
    queue_families: Sequence[Sequence[int]] | None,
    multi_queue: bool,
) -> list[list[int]]:
    """Return the family of each queue to make, for each device. The arguments are those of `make_context`."""
    if queue_families is not None:
        return _parse_families(device_ids, queue_families)
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
        select_queue_families(index, _parse_count(count))
        for index, count in zip(device_ids, counts, strict=True)
    ]


def _parse_count(value: object) -> int:
    count = as_int(value)
    if count is None or not 1 <= count <= _MAX_QUEUES:
        raise ArgumentValueError(f"queue_count: expected 1 to {_MAX_QUEUES} queues, got {value!r}")
    return count


def _parse_families(device_ids: Sequence[int], queue_families: Sequence[Sequence[int]]) -> list[list[int]]:
    lists = _as_list("queue_families", queue_families)
    if len(lists) != len(device_ids):
        raise ArgumentValueError(
            f"queue_families: {len(device_ids)} devices need as many lists, got {len(lists)}"
        )
    return [_parse_device_families(index, item) for index, item in zip(device_ids, lists, strict=True)]


def _parse_device_families(device_index: int, families: object) -> list[int]:
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
        if not properties[family][1] & _COMPUTE_QUEUE:
            raise ArgumentValueError(
                f"queue_families: family {family} of device {device_index} does not support compute"
            )
        checked.append(family)
    if not 1 <= len(checked) <= _MAX_QUEUES:
        raise ArgumentValueError(
            f"queue_families: device {device_index} needs 1 to {_MAX_QUEUES} families, got {len(checked)}"
        )
    return checked


def select_queue_families(device_index: int, queue_count: int | None = None) -> list[int]:
    """Return the queue families for new queues on a device, compute-only families first.

    Parameters
    ----------
    device_index
        Index into `get_devices()`.
    queue_count
        Number of queues. None: 1 if compute and graphics share a family, else 2 (NVIDIA: 3).

    Raises
    ------
    ValueError
        The index or count is out of range, or the device has no compute queue.

    Examples
    --------
    >>> len(vd.select_queue_families(0)) > 0
    True
    """
    device = get_devices()[parse_devices(device_index)[0]]
    compute, graphics = (
        _find_family(device, (6, 14), graphics=False),
        _find_family(device, (7, 15), graphics=True),
    )
    if queue_count is None:
        queue_count = 1 if compute == graphics else (3 if device.is_nvidia() else 2)
    queue_count = _parse_count(queue_count)
    if device.is_nvidia():
        return [graphics if position == 1 else compute for position in range(queue_count)]
    return [graphics if position % 2 else compute for position in range(queue_count)]


def _find_family(device: DeviceInfo, preferred: tuple[int, int], *, graphics: bool) -> int:
    """Return a family for compute: with the `preferred` flags, else with or without graphics, else any."""
    compute = {i: flags for i, (_, flags) in enumerate(device.queue_properties) if flags & _COMPUTE_QUEUE}
    if not compute:
        raise ArgumentValueError(f"device_index: {device.device_name} has no queue family for compute")
    best = [index for index, flags in compute.items() if flags in preferred]
    fitting = [index for index, flags in compute.items() if bool(flags & _GRAPHICS) is graphics]
    return (best or fitting or list(compute))[0]


def parse_extensions(extensions: object) -> list[str]:
    """Return the names of device extensions as a list. Raises TypeError if they are not names."""
    # what most programs pass
    return [] if isinstance(extensions, tuple) and not extensions else parse_names("extensions", extensions)


def parse_names(argument: str, value: object) -> list[str]:
    """Return names as a list without duplicates.

    Raises
    ------
    TypeError
        `value` is not an iterable of strings. The message calls it `argument`.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentTypeError(f"{argument}: expected names, as a list of str, got {value!r}")
    names = list(dict.fromkeys(value))
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{argument}: expected names, got {name!r}")
    return names


def check_extensions(names: Sequence[str], devices: Iterable[DeviceInfo]) -> None:
    """Raise UnsupportedError if a device lacks one of these extensions."""
    for info in devices:
        missing = [name for name in names if name not in info.extensions]
        if missing:
            raise UnsupportedError(f"extensions: {info.device_name} has no {', '.join(missing)}")


def check_enableable(names: Sequence[str], devices: Iterable[DeviceInfo]) -> None:
    """Raise UnsupportedError or ValueError if one of these extensions cannot be enabled on new devices."""
    check_extensions(names, devices)
    if _OLD_ADDRESSES in names:
        raise ArgumentValueError(
            f"extensions: {_OLD_ADDRESSES} cannot be enabled together with bufferDeviceAddress, which "
            "replaces it in Vulkan 1.2 and is enabled"
        )


# VK_API_VERSION_1_2: of the engine's own instance, and the minimum for another library's.
API_VERSION = 0x402000
_INDEX_LIMIT = 1 << 16  # smaller numbers cannot be addresses
_HANDLE_LIMIT = 1 << 64


@record
class QueueHandle:
    """A queue: its family, its index in the family (None if it was passed by handle), and its VkQueue."""

    family: int
    index: int | None
    handle: int


@record
class DeviceHandles:
    """A VkPhysicalDevice and a VkDevice as ints, the queues in use, and the enabled extensions and features.

    `queues` are those of the context, in order. `transfer_queues` run concurrent copies, and can be empty.
    """

    physical_device: int
    device: int
    queues: tuple[QueueHandle, ...]
    transfer_queues: tuple[QueueHandle, ...]
    extensions: tuple[str, ...]
    features: frozenset[str]


@record
class ContextHandles:
    """The Vulkan objects of a context as ints: the instance, and the objects of each device.

    `api_version` is the Vulkan version in use, in Vulkan's packed form. The handles are valid until the
    context is closed; if another library owns the device, they are valid until that library destroys it.
    """

    instance: int
    devices: tuple[DeviceHandles, ...]
    api_version: int = API_VERSION


def get_handles(engine: native.Engine) -> ContextHandles:
    """Return the handles of an engine."""
    instance, devices = engine.handles
    return ContextHandles(
        instance,
        tuple(
            DeviceHandles(
                physical,
                device,
                tuple(QueueHandle(*queue) for queue in queues),
                tuple(QueueHandle(*queue) for twins in transfers for queue in twins),
                entry["extensions"],
                entry["features"],
            )
            for (physical, device, queues, transfers), entry in zip(
                devices, engine.device_properties, strict=True
            )
        ),
    )


def required_device_features() -> tuple[str, ...]:
    """Return the Vulkan names of the features that a device must be created with.

    Examples
    --------
    >>> vd.required_device_features()
    ('timelineSemaphore', 'scalarBlockLayout')
    """
    return tuple(name for name, required, _ in native.known_features() if required)


def optional_device_features() -> dict[str, str | None]:
    """Return the Vulkan names of the features that are used if they are enabled.

    Each name maps to the extension that it belongs to, which must be enabled as well, or to None if the
    feature is part of Vulkan 1.2.

    Examples
    --------
    >>> vd.optional_device_features()["shaderBufferFloat32Atomics"]
    'VK_EXT_shader_atomic_float'
    """
    return {name: extension for name, required, extension in native.known_features() if not required}


def as_handle(argument: str, value: object) -> int:
    """Return a Vulkan handle as an int.

    Parameters
    ----------
    argument
        The name of the value in messages.
    value
        An int, a pointer of ctypes or cffi (such as those of the package `vulkan`), or an object with
        `__int__`.

    Raises
    ------
    TypeError
        `value` is none of these.
    ValueError
        It is null or not an address.
    """
    number = _as_int(value)
    if number is None:
        raise ArgumentTypeError(
            f"{argument}: expected a Vulkan handle (an int, or a pointer of ctypes or cffi), got "
            f"{type(value).__name__}"
        )
    if number == 0:
        raise ArgumentValueError(f"{argument}: the handle is null")
    if not 0 < number < _HANDLE_LIMIT:
        raise ArgumentValueError(f"{argument}: {number} is not a Vulkan handle")
    return number


def _as_int(value: Any) -> int | None:
    if isinstance(value, (bool, str, bytes, float)) or value is None:
        return None
    # A program that has such pointers has loaded their module.
    ctypes: Any = sys.modules.get("ctypes")
    cffi: Any = sys.modules.get("_cffi_backend")
    if ctypes is not None and isinstance(value, (ctypes.c_void_p, ctypes._Pointer)):
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    if cffi is not None and isinstance(value, cffi._CDataBase):
        try:
            return int(cffi.cast(cffi.new_primitive_type("uintptr_t"), value))
        except TypeError:
            return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def make_foreign_engine(
    instance: object,
    physical_device: object,
    device: object,
    queues: object,
    extensions: object,
    features: object,
    timeout_ns: int,
) -> native.Engine:
    """Return an engine on a device of another library. See `make_context_from_handles` for the errors."""
    objects = {"instance": instance, "physical_device": physical_device, "device": device}
    handles = {name: as_handle(name, value) for name, value in objects.items()}
    names = parse_names("extensions", extensions)
    enabled = parse_names("features", features)
    try:
        info = device_info(0, native.foreign_properties(handles["instance"], handles["physical_device"]))
        _check_enabled(info, names, enabled)
        checked_queues = _parse_queues(queues, info)
        _check_distinct(handles, checked_queues)
        return native.Engine.on_handles(
            handles["instance"],
            handles["physical_device"],
            handles["device"],
            checked_queues,
            names,
            enabled,
            is_debug_enabled(),
            is_staging_forced(),
            timeout_ns=timeout_ns,
        )
    except ArgumentValueError:
        raise
    except ValueError as error:
        raise ArgumentValueError(str(error)) from None


def _check_distinct(handles: dict[str, int], queues: Sequence[tuple[int, int, int]]) -> None:
    """Raise ValueError if one handle appears in two places."""
    owners: dict[int, str] = {}
    named = [
        *handles.items(),
        *(("queues", handle) for handle in {handle for *_, handle in queues if handle}),
    ]
    for name, handle in named:
        if handle in owners:
            raise ArgumentValueError(f"{name}: {handle} is the handle that was passed as {owners[handle]}")
        owners[handle] = name


def _check_enabled(info: DeviceInfo, extensions: Sequence[str], features: Sequence[str]) -> None:
    if info.missing:
        raise UnsupportedError(f"{info.device_name} cannot be used: it lacks {', '.join(info.missing)}")
    check_extensions(extensions, [info])
    known = {name: extension for name, _, extension in native.known_features()}
    for name in features:
        if name not in known:
            raise ArgumentValueError(
                f"features: {name!r} is not a feature that vkdispatch uses; see vd.optional_device_features()"
            )
        if name not in info.features:
            raise UnsupportedError(f"features: {info.device_name} has no {name}")
        extension = known[name]
        if extension is not None and extension not in extensions:
            raise ArgumentValueError(f"features: {name} belongs to {extension}, which is not in extensions")


def _parse_queues(queues: object, info: DeviceInfo) -> list[tuple[int, int, int]]:
    """Return family, index and handle of each queue. The handle is 0 for a queue that is given by index."""
    if isinstance(queues, (str, bytes)) or not isinstance(queues, Iterable):
        raise ArgumentTypeError(f"queues: expected a list of (family, queue), got {queues!r}")
    checked = []
    for item in queues:
        if isinstance(item, QueueHandle):
            family, queue = item.family, item.handle if item.index is None else item.index
        else:
            try:
                family, queue = item
            except (TypeError, ValueError):
                raise ArgumentTypeError(f"queues: expected pairs (family, queue), got {item!r}") from None
        checked.append(_parse_queue(family, queue, info))
    if not checked:
        raise ArgumentValueError("queues: at least one queue is needed, got none")
    return checked


def _parse_queue(family: Any, queue: Any, info: DeviceInfo) -> tuple[int, int, int]:
    families = info.queue_properties
    number = _as_int(family)
    if number is None or not 0 <= number < len(families):
        raise ArgumentValueError(
            f"queues: {info.device_name} has families 0 to {len(families) - 1}, got {family!r}"
        )
    count, flags = families[number]
    if not flags & _COMPUTE_QUEUE:
        raise ArgumentValueError(f"queues: family {number} of {info.device_name} does not support compute")
    index = _as_int(queue)
    if isinstance(queue, int) and index is not None and index < _INDEX_LIMIT:
        if not 0 <= index < count:
            raise ArgumentValueError(
                f"queues: family {number} of {info.device_name} has queues 0 to {count - 1}, got {index}"
            )
        return number, index, 0
    return number, 0, as_handle("queues", queue)
