"""The devices, queues and extensions of a context: named by the caller, or selected automatically."""

import os
import re
from collections.abc import Iterable, Sequence

from vkdispatch.base.devices import DeviceInfo, by_preference
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.init import get_devices, is_dummy, no_driver_error
from vkdispatch.base.process import as_int

_COMPUTE = 0x2
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
        if not properties[family][1] & _COMPUTE:
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
    compute = {i: flags for i, (_, flags) in enumerate(device.queue_properties) if flags & _COMPUTE}
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
