"""Workers with a Vulkan device: a plugin for `distributed.Worker`, and the preload module of `dask worker`.

`dask worker SCHEDULER --preload vkdispatch.distributed.worker` makes any worker one of them.
"""

import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
import dask
from distributed.diagnostics.plugin import WorkerPlugin
from tornado.ioloop import PeriodicCallback

from vkdispatch.base.context import Context, get_context, make_context
from vkdispatch.base.contexts.current import find_current_context
from vkdispatch.base.contexts.selection import choose_devices as select_devices
from vkdispatch.base.contexts.selection import find_device, refuse_unusable
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DeviceLostError,
    DeviceTimeoutError,
    OutOfDeviceMemoryError,
    UnsupportedError,
)
from vkdispatch.base.init import get_devices, is_dummy
from vkdispatch.base.process import RunningTask, as_int
from vkdispatch.distributed.results import finish_result
from vkdispatch.distributed.serialization import has_memory_of_host
from vkdispatch.distributed.spilling import DeviceStore

# ---- Which workers a machine runs: the device of each, and limits of its memory --------------------------


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


# ---- Workers ---------------------------------------------------------------------------------------------


_logger = logging.getLogger(__name__)
# Milliseconds between looks at the device: whether it is lost, and how much of its memory is in use.
_INTERVAL = 500
# Looks at a lost device after which a task that runs is not waited for.
_MAX_LOOKS = 60
# Results are spilled while the process uses more of its memory budget than this.
_MAX_USED = 0.9
# Seconds for which a worker with a lost device goes on to send what it has to say.
_PATIENCE = 10
# Seconds that a worker's process has for closing in order.
_GRACE = 2
# What a task waits for while its worker is closed: the scheduler gives it to another one.
_CLOSING = 60


class VulkanPlugin(WorkerPlugin):
    """A worker plugin that runs the worker on a Vulkan device.

    It creates the context, completes each task with a computed and checked result, keeps results on the
    device up to a limit, then on the host, then on disk, and adds metrics of the device. If the device is
    lost, it closes the worker, so that its nanny starts another one.

    Parameters
    ----------
    device_memory_limit
        Bytes of results that stay on the device: an int, or a string such as "8 GiB"; a float up to 1 is a
        fraction of the device's memory; 0 or None: no limit; "auto": 80 % of the memory that the process can
        use. If device memory is host memory, "auto" sets no limit, and the worker's `memory_limit` applies.

    Raises
    ------
    TypeError, ValueError
        `device_memory_limit` is invalid.

    Attributes
    ----------
    store
        The `DeviceStore` that holds the worker's results; None before the worker starts.
    """

    name = "vkdispatch"

    def __init__(self, device_memory_limit: Any = "auto") -> None:
        check_device_limit(device_memory_limit)
        self.device_memory_limit = device_memory_limit
        self.worker: Any = None
        self.store: DeviceStore | None = None
        self.context: Context | None = None
        self._lock = threading.Lock()
        self._is_closing = False
        self._looks = 0  # at a lost device
        self._fails_first = False  # whether a task is to fail before the worker is closed
        self._rate = _Rate()

    def __reduce__(self) -> tuple[Any, ...]:
        # what `setup` has made belongs to one worker
        return type(self), (self.device_memory_limit,)

    def setup(self, worker: Any) -> None:
        """Prepare a worker. `distributed` calls this when the worker starts."""
        self.worker = worker
        self.context = context = make_context()
        # each end of a connection can refuse: compression is slower than most networks
        dask.config.set({"distributed.comm.compression": False})
        shares_memory = has_memory_of_host(context)
        now = context._native.statistics()
        limit = parse_device_limit(
            self.device_memory_limit, now["memory_budget"], now["heap_memory"], shares_memory
        )
        self.store = DeviceStore(worker.data, limit, shares_memory)
        worker.memory_manager.data = worker.state.data = self.store
        info = context.device_infos[0]
        worker.startup_information["device"] = lambda _: {
            "name": info.device_name,
            "uuid": info.uuid.hex() if info.uuid else None,
            "memory": now["heap_memory"],
            "memory_limit": limit,
        }
        for name, measure in self._list_metrics().items():
            worker.metrics[name] = partial(_measure, measure)
        watch = PeriodicCallback(self._watch, _INTERVAL)
        worker.periodic_callbacks["vkdispatch"] = watch
        if worker.status.name == "running":
            watch.start()
        _logger.info("Device: %s", info.device_name)

    def teardown(self, worker: Any) -> None:
        """Undo `setup`. `distributed` calls this when the worker is closed."""
        watch = worker.periodic_callbacks.pop("vkdispatch", None)
        if watch is not None:
            watch.stop()
        for name in self._list_metrics():
            worker.metrics.pop(name, None)
        if worker.nanny and worker.status.name == "closing":
            # the process would end after what the device still computes, which nobody needs any more
            end = threading.Timer(_GRACE, os._exit, (0,))
            end.daemon = True
            end.start()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Make a task that is about to run end with a computed and checked result."""
        if finish == "executing":
            state = self.worker.state.tasks.get(key)
            if state is not None and state.run_spec is not None and type(state.run_spec) is not _Task:
                state.run_spec = _Task(state.run_spec, self)
        elif finish == "error" and self._fails_first:
            self._fails_first = False
            self.worker.loop.add_callback(self._close)

    # -- memory and faults

    def free_memory(self) -> None:
        """Copy all results from the device to the host. Called by a task, whose thread waits."""
        done = threading.Event()

        def spill() -> None:
            try:
                if self.store is not None:
                    self.store.spill_all()
            finally:
                done.set()

        self.worker.loop.add_callback(spill)
        done.wait(_CLOSING)

    def close_worker(self, error: DeviceLostError) -> bool:
        """Close the worker because its device is lost; return whether the calling task should fail.

        Its nanny starts another one. A task that took too long fails. The scheduler moves other running tasks
        to another worker.
        """
        with self._lock:
            is_first, self._is_closing = not self._is_closing, True
        if not is_first:
            return False
        worker = self.worker
        _logger.error("The worker is closed, as its device is lost: %s", error)
        worker.log_event(
            "vkdispatch", {"action": "device-lost", "worker": worker.address, "error": str(error)}
        )
        self._fails_first = isinstance(error, DeviceTimeoutError)
        if not self._fails_first:
            worker.loop.add_callback(self._close)
        return self._fails_first

    async def _close(self) -> None:
        worker = self.worker
        if not worker.nanny:
            await worker.close(nanny=False, executor_wait=False, reason="device-lost")
            return
        # The driver may not let go of what it was doing, so the process does not end in order.
        for _ in range(_PATIENCE):
            await asyncio.sleep(1)  # for what is still to be sent
            if not worker.batched_stream.buffer:
                break
        os._exit(1)

    def require_open(self) -> None:
        """Wait for the end if the worker is being closed; the scheduler moves the task to another worker.

        Raises DeviceLostError if it does not end, as in the process of a client.
        """
        if self._is_closing:
            for _ in range(10 * _CLOSING):
                if self.worker.status.name == "closed":
                    break
                time.sleep(0.1)
            raise DeviceLostError("the device of this worker was lost; run the task again")

    def _watch(self) -> None:
        context = self.context
        if context is None or self.store is None:
            return
        if context.lost:
            self._looks += 1
            # a running task notices it itself, unless it stands still
            if self.worker.state.executing_count == 0 or self._looks > _MAX_LOOKS:
                try:
                    context.require_usable()
                except DeviceLostError as error:
                    if self.close_worker(error):
                        self._fails_first = False
                        self.worker.loop.add_callback(self._close)
            return
        store = self.store
        while context.usable and store.device and _is_short_of_memory(context) and store.spill() >= 0:
            pass

    # -- metrics

    def _list_metrics(self) -> dict[str, Any]:
        return {
            "device": lambda: get_context().device_infos[0].device_name,
            "device_memory": lambda: get_context()._native.statistics()["memory_usage"],
            "device_memory_budget": lambda: get_context()._native.statistics()["memory_budget"],
            "device_memory_stored": lambda: 0 if self.store is None else self.store.stored_bytes,
            "device_memory_spilled": lambda: 0 if self.store is None else self.store.spilled_bytes,
            "kernels_per_second": lambda: self._rate.measure(get_context()._native.statistics()["commands"]),
        }


def _measure(measure: Any, _: Any) -> Any:
    """Return a metric of a device that is there; `distributed` leaves out what raises."""
    context = find_current_context()
    return measure() if context is not None and context.usable else None


def _is_short_of_memory(context: Context) -> bool:
    now = context._native.statistics()
    return now["memory_usage"] - now["idle_memory"] > _MAX_USED * now["memory_budget"]


class _Rate:
    """How fast a counter grows, between one look and the next."""

    def __init__(self) -> None:
        self._count, self._time = 0, time.monotonic()

    def measure(self, count: int) -> float:
        now = time.monotonic()
        passed, before = now - self._time, self._count
        self._count, self._time = count, now
        return round(max(0, count - before) / passed, 1) if passed > 0 else 0.0


class _Task:
    """A task of a worker that ends with its result computed and checked; else it is as it was."""

    __slots__ = ("plugin", "task")

    def __init__(self, task: Any, plugin: VulkanPlugin) -> None:
        self.task = task
        self.plugin = plugin

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if getattr(self.task, "is_coro", False):
            return self._run_async(args, kwargs)
        try:
            return self._run(args, kwargs)
        except OutOfDeviceMemoryError:
            self.plugin.free_memory()
        return self._run(args, kwargs)

    def _run(self, args: Any, kwargs: Any) -> Any:
        self.plugin.require_open()
        try:
            with RunningTask():
                return finish_result(self.task(*args, **kwargs))
        except DeviceLostError as error:
            if not self.plugin.close_worker(error):
                self.plugin.require_open()
            raise

    async def _run_async(self, args: Any, kwargs: Any) -> Any:
        try:
            return finish_result(await self.task(*args, **kwargs))
        except DeviceLostError as error:
            if not self.plugin.close_worker(error):
                await asyncio.sleep(_CLOSING)  # as require_open
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def __repr__(self) -> str:
        return repr(self.task)


@click.command()
@click.option("--device", help="Index, UUID or part of the name of the device (default: VKDISPATCH_DEVICE).")
@click.option(
    "--device-memory-limit", default="auto", help="Bytes of results that stay on the device, such as 8GiB."
)
async def dask_setup(worker: Any, device: str | None, device_memory_limit: str) -> None:
    """Give a worker of `dask worker --preload vkdispatch.distributed.worker` a Vulkan device."""
    if device is not None:
        os.environ["VKDISPATCH_DEVICE"] = device
    try:
        plugin = VulkanPlugin(device_memory_limit)
        await worker.plugin_add(plugin=plugin, catch_errors=False)
    except Exception as error:
        # `distributed` goes on without a module that cannot be set up
        _logger.critical("The worker has no Vulkan device: %s", error)
        raise SystemExit(1) from error
