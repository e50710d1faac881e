"""Clusters of workers on this machine, each on a device of its own."""

import gc
import logging
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.scaling.chunks import module_of
from benchmarks.scaling.programs import import_dask

# Where a device is chosen, if the cluster does not do it.
VISIBLE = {"cupy": "CUDA_VISIBLE_DEVICES", "numpy": "OMP_NUM_THREADS"}
PATIENCE = 20  # seconds for what is to be released


@contextmanager
def open_cluster(library: str, workers: int) -> Iterator[Any]:
    """Yield a client of a cluster of workers on this machine, each on a device of its own.

    Memory of the host has no limit: chunks are on the devices, and copies of them move through the host.
    """
    _, distributed = import_dask()
    # chunks stay where they were made
    import_module("dask").config.set({"distributed.scheduler.work-stealing": False})
    if library == "vkdispatch":
        local: Any = import_module("vkdispatch.distributed").LocalVulkanCluster
        made = local(n_workers=workers, memory_limit=None, dashboard_address=None)
    else:
        made = distributed.SpecCluster(
            {index: specify_worker(library, index) for index in range(workers)},
            {
                "cls": distributed.Scheduler,
                "options": {"dashboard": False, "dashboard_address": ":0", "host": "127.0.0.1"},
            },
            silence_logs=logging.WARNING,
        )
    with made, distributed.Client(made) as client:
        client.wait_for_workers(workers)
        client.get_task_stream()  # the scheduler records tasks from the first request on
        yield client


def specify_worker(library: str, index: int) -> dict[str, Any]:
    """Return what `SpecCluster` starts a worker from that sees one device alone."""
    _, distributed = import_dask()
    number = index % count_devices(library) if library == "cupy" else 1
    env = {VISIBLE[library]: str(number)}
    options = {"nthreads": 1, "env": env, "dashboard": False, "host": "127.0.0.1", "memory_limit": 0}
    options["silence_logs"] = logging.WARNING
    return {"cls": distributed.Nanny, "options": options}


def count_devices(library: str) -> int:
    """Return how many devices a library has here; workers beyond that share them."""
    if library == "vkdispatch":
        import vkdispatch as vd

        return len(vd.get_devices())
    return int(module_of("cupy").cuda.runtime.getDeviceCount()) if library == "cupy" else 1


def describe_device(library: str) -> dict[str, Any]:
    """Return the name, driver, UUID and memory of a worker's device."""
    if library == "vkdispatch":
        import vkdispatch as vd

        context = vd.get_context()
        info = context.device_infos[0]
        return {
            "device": info.device_name,
            "driver": str(info.driver_version),
            "uuid": info.uuid.hex() if info.uuid else None,
            "memory": context._native.statistics()["memory_budget"],
        }
    if library == "cupy":
        runtime = module_of("cupy").cuda.runtime
        properties = runtime.getDeviceProperties(0)
        return {
            "device": properties["name"].decode(),
            "driver": str(runtime.driverGetVersion()),
            "uuid": bytes(properties["uuid"])[:16].hex() if "uuid" in properties else None,
            "memory": properties["totalGlobalMem"],
        }
    return {"device": platform.processor() or platform.machine(), "driver": "NumPy", "uuid": None}


def list_devices(client: Any, library: str) -> list[dict[str, Any]]:
    """Return the device of each worker.

    Raises RuntimeError if workers share one although the library has enough.
    """
    found: list[dict[str, Any]] = list(client.run(partial(describe_device, library)).values())
    uuids = [each["uuid"] for each in found if each["uuid"]]
    if len(set(uuids)) < len(uuids) <= count_devices(library):
        raise RuntimeError(f"workers share a device: {uuids}")
    return found


def release_all(client: Any, library: str) -> None:
    """Free the memory of the devices. Workers that still hold results are restarted."""
    gc.collect()
    try:
        wait_for_release(client, 0)
    except RuntimeError:
        client.restart(timeout=PATIENCE)
    client.run(free_pools, library)


def free_pools(library: str) -> None:
    """Give unused memory of a device back, so that each program starts with all of it."""
    if library == "cupy":
        module_of("cupy").get_default_memory_pool().free_all_blocks()


def count_tasks(client: Any) -> int:
    """Return how many tasks the scheduler holds: those that run, and results that somebody refers to."""
    found: int = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    return found


def wait_for_release(client: Any, count: int) -> None:
    """Wait until the scheduler holds no more tasks than this: results that are still there are not computed.

    Raises RuntimeError if it holds more after some time.
    """
    end = time.monotonic() + PATIENCE
    while (held := count_tasks(client)) > count:
        if time.monotonic() > end:
            raise RuntimeError(f"the scheduler holds {held} tasks, expected {count}")
        time.sleep(0.005)


def read_clocks(client: Any) -> dict[str, float]:
    """Return the processor time of the event loops: the scheduler's, and the mean of the workers."""
    read: Callable[[], float] = time.thread_time
    workers = client.run(read)
    return {
        "scheduler": float(client.run_on_scheduler(read)),
        "messages": sum(workers.values()) / len(workers),
    }
