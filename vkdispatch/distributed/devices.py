"""Which workers a machine runs: the device of each, and limits of its memory."""

import math
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.contexts.selection import choose_devices as select_devices
from vkdispatch.base.contexts.selection import find_device, refuse_unusable
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.init import get_devices, is_dummy
from vkdispatch.base.process import as_int

# The part of the memory that a process may use of which the results take no more.
_AUTOMATIC = 0.8


def choose_devices(devices: object = None, n_workers: int | None = None) -> list[DeviceInfo]:
    """Return the device of each worker.

    Parameters
    ----------
    devices
        Indices of `vd.get_devices()`, UUIDs or parts of names; or one of these. None: the one that
        VKDISPATCH_DEVICE names; else all GPUs, or, on a machine without one, its CPU driver.
    n_workers
        How many workers. None: one for each device. Workers may share a CPU driver, but not a GPU.

    Raises
    ------
    TypeError, ValueError
        There is no such device, a GPU is named twice or gets several workers, or `n_workers` is not a
        positive int.
    UnsupportedError
        A device lacks what vkdispatch needs.
    """
    if is_dummy():
        raise UnsupportedError("devices: the dummy backend has no device for workers")
    known = get_devices()
    if devices is None:
        chosen = select_devices(None, False, True)
        if known[chosen[0]].is_cpu():
            del chosen[1:]
    else:
        chosen = [_find(device, known) for device in _as_list(devices)]
        if not chosen:
            raise ArgumentValueError("devices: at least one device is needed, got an empty sequence")
    refuse_unusable(chosen)
    infos = [known[index] for index in chosen]
    count = len(infos) if n_workers is None else as_int(n_workers)
    if count is None:
        raise ArgumentTypeError(f"n_workers: expected an int or None, got {n_workers!r}")
    if count < 1:
        raise ArgumentValueError(f"n_workers: at least one worker is needed, got {n_workers!r}")
    workers = [infos[number % len(infos)] for number in range(count)]
    _require_own_gpus(workers, n_workers)
    return workers


def _require_own_gpus(infos: Sequence[DeviceInfo], n_workers: int | None) -> None:
    gpus = [info for info in infos if not info.is_cpu()]
    repeated = next((info for info in gpus if gpus.count(info) > 1), None)
    if repeated is None:
        return
    if n_workers is None:
        raise ArgumentValueError(
            f"devices: {repeated.device_name} is named twice; each worker needs a separate GPU"
        )
    raise ArgumentValueError(
        f"n_workers: {n_workers} workers need as many GPUs, but some would share {repeated.device_name}; "
        f"pass at most {len({id(info) for info in infos})}"
    )


def _as_list(devices: object) -> list[object]:
    if isinstance(devices, str) or as_int(devices) is not None:
        return [devices]
    if isinstance(devices, Sequence):
        return list(devices)
    raise ArgumentTypeError(
        f"devices: expected indices, UUIDs or names of devices, as a list, got {devices!r}"
    )


def _find(device: object, known: Sequence[DeviceInfo]) -> int:
    index = as_int(device)
    if index is None and not isinstance(device, str):
        raise ArgumentTypeError(f"devices: expected an index, a UUID or a name, got {device!r}")
    return find_device(str(device if index is None else index), known, "devices")


def pin(device: DeviceInfo) -> dict[str, str]:
    """Return the environment of a process that uses this device."""
    wanted = device.uuid.hex() if device.uuid is not None else str(device.sorted_index)
    return {"VKDISPATCH_DEVICE": wanted}


def parse_device_limit(limit: object, budget: int, total: int, shares_memory: bool) -> int | None:
    """Return how many bytes of results a worker keeps on its device; None: any number.

    Parameters
    ----------
    limit
        Bytes, as an int or as text such as "8 GiB"; a float up to 1: that part of `total`; 0 or None: no
        limit; "auto": 80 % of `budget`, and no limit where the device's memory is the host's.
    budget, total
        Bytes that the process may use of the device's memory, and all of it.
    shares_memory
        Whether the device's memory is the host's.

    Raises
    ------
    TypeError, ValueError
        `limit` is none of these.
    """
    if limit == "auto":
        return None if shares_memory else int(budget * _AUTOMATIC)
    size = check_device_limit(limit)
    if not size:
        return None
    return int(size * total) if isinstance(size, float) and size <= 1 else int(size)


def check_device_limit(limit: Any) -> int | float:
    """Return a limit of `parse_device_limit` as a number, 0 for "auto". Raises TypeError or ValueError."""
    if limit is None or limit == "auto":
        return 0
    if isinstance(limit, bool) or not isinstance(limit, (int, float, str)):
        raise ArgumentTypeError(
            f"device_memory_limit: expected bytes, a part of the memory, 'auto' or None, got {limit!r}"
        )
    if isinstance(limit, str):
        from dask.utils import parse_bytes

        try:
            limit = int(parse_bytes(limit))
        except ValueError:
            raise ArgumentValueError(
                f"device_memory_limit: expected a size such as '8 GiB', or 'auto', got {limit!r}"
            ) from None
    if not 0 <= limit < math.inf:
        raise ArgumentValueError(f"device_memory_limit: expected 0 or more bytes, got {limit!r}")
    size: int | float = limit
    return size
