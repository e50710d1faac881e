"""Clusters on one machine: a scheduler, and a worker process for each device."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from distributed import Nanny, Scheduler, Security
from distributed.deploy.spec import SpecCluster
from distributed.http.routing import RoutingApplication
from distributed.worker_memory import parse_memory_limit

from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.process import as_int
from vkdispatch.distributed.worker import VulkanPlugin, choose_devices, pin

_logger = logging.getLogger(__name__)


class _SchedulerWithoutDashboard(Scheduler):
    """A scheduler that opens no port for HTTP: Dask's takes 8787 for it even if it has no dashboard."""

    def start_http_server(self, routes: Any, *_: Any, **__: Any) -> None:
        self.http_application = RoutingApplication(routes)


class VulkanNanny(Nanny):
    """A nanny that ends its worker without waiting for tasks, whose results nobody will use."""

    async def instantiate(self) -> Any:
        """Start the worker's process, and return its status."""
        status = await super().instantiate()
        if self.process is not None:
            self.process.kill = partial(self.process.kill, executor_wait=False)
        return status


class LocalVulkanCluster(SpecCluster):
    """A scheduler and workers on this machine, one process for each GPU.

    Each worker is pinned to its device by UUID and has the resource `GPU`. Tasks end when their results are
    computed and checked. Results stay on the device up to a limit, then move to the host, then to disk. A
    worker that dies, or whose device is lost, is restarted, and Dask recomputes lost results.

    Use it in a `with` statement, or close it.

    Parameters
    ----------
    n_workers
        The number of workers. None: one for each device. A CPU driver can have several workers, a GPU one.
    devices
        The devices: indices of `vd.get_devices()`, UUIDs or parts of names. None: the one that
        VKDISPATCH_DEVICE names; else all GPUs, or, on a machine without one, its CPU driver.
    threads_per_worker
        The number of tasks that a worker runs concurrently. They share one queue of the device.
    memory_limit
        Host memory of each worker: bytes, a string such as "8 GiB", or a fraction of the memory as a float;
        "auto": an equal share of the machine's memory; 0 or None: no limit.
    device_memory_limit
        Bytes of results that stay on a device; see `VulkanPlugin`.
    resources
        Additional resources of each worker.
    local_directory
        The folder for files of workers, such as results that are spilled to disk.
    worker_options
        Additional arguments of each `distributed.Nanny` and its `Worker`.
    env
        Environment variables of the workers.
    name, asynchronous, loop, security, silence_logs
        As for `distributed.LocalCluster`.
    host, scheduler_port, dashboard_address, protocol, interface
        As for `distributed.LocalCluster`. A `dashboard_address` of None: no dashboard, and no port for one.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, or there are fewer GPUs than workers.
    UnsupportedError
        A device lacks what vkdispatch needs.
    BackendUnavailableError
        The machine has no Vulkan driver.

    Attributes
    ----------
    devices
        The `DeviceInfo` of each device that workers may use.
    """

    def __init__(  # noqa: PLR0913  public: each is an option of its own
        self,
        n_workers: int | None = None,
        devices: int | str | Sequence[int | str] | None = None,
        *,
        threads_per_worker: int = 1,
        memory_limit: Any = "auto",
        device_memory_limit: Any = "auto",
        resources: Mapping[str, float] | None = None,
        local_directory: str | None = None,
        worker_options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        host: str | None = None,
        scheduler_port: int = 0,
        dashboard_address: str | None = ":8787",
        protocol: str | None = None,
        interface: str | None = None,
        security: Any = None,
        silence_logs: Any = logging.WARNING,
        name: str | None = None,
        asynchronous: bool = False,
        loop: Any = None,
    ) -> None:
        workers = choose_devices(devices, n_workers)
        self.devices: list[DeviceInfo] = list({id(each): each for each in workers}.values())
        self._options = nanny_options(
            threads_per_worker,
            parse_host_limit(memory_limit, len(workers)),
            device_memory_limit,
            resources,
            local_directory,
            worker_options,
        )
        self._env = dict(env or {})
        security = Security.temporary() if security is True else security or Security()
        if protocol is None:
            protocol = "tls://" if security.require_encryption else "tcp://"
        if host is None and interface is None:
            host = "127.0.0.1"
        places = {"host": host, "interface": interface, "protocol": protocol, "security": security}
        self._options.update(places, silence_logs=silence_logs)
        super().__init__(
            workers={number: self._specify(info) for number, info in enumerate(workers)},
            scheduler={
                "cls": Scheduler if dashboard_address is not None else _SchedulerWithoutDashboard,
                "options": {
                    **places,
                    "port": scheduler_port,
                    "dashboard": dashboard_address is not None,
                    "dashboard_address": dashboard_address,
                },
            },
            asynchronous=asynchronous,
            loop=loop,
            security=security,
            silence_logs=silence_logs,
            name=name,
        )

    def _update_worker_status(self, op: str, msg: Any) -> None:
        # SpecCluster ends workers that stay away for a while, but the nannies here start them again
        if op == "remove" and msg not in self.scheduler_info["workers"]:
            return  # it was removed before the cluster heard of it
        super(SpecCluster, self)._update_worker_status(op, msg)

    def _specify(self, info: DeviceInfo) -> dict[str, Any]:
        """Return what `SpecCluster` starts a worker on a device from."""
        return {"cls": VulkanNanny, "options": {**self._options, "env": {**self._env, **pin(info)}}}

    def new_worker_spec(self) -> dict[Any, Any]:
        """Return a worker on the device with the fewest workers. Raises ValueError if each GPU has one."""
        pinned = [spec["options"]["env"]["VKDISPATCH_DEVICE"] for spec in self.worker_spec.values()]
        info = min(self.devices, key=lambda device: pinned.count(pin(device)["VKDISPATCH_DEVICE"]))
        if not info.is_cpu() and pin(info)["VKDISPATCH_DEVICE"] in pinned:
            raise ArgumentValueError(
                f"n: the cluster has {len(self.devices)} devices, and each GPU has a worker already"
            )
        return {self._new_worker_name(max(self.worker_spec, default=-1) + 1): self._specify(info)}


def parse_host_limit(memory_limit: Any, n_workers: int) -> int | None:
    """Return the bytes of host memory of each of some workers; None: any number.

    Raises TypeError or ValueError if `memory_limit` is not one of `LocalVulkanCluster`.
    """
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, (int, float, str, type(None))):
        raise ArgumentTypeError(
            f"memory_limit: expected bytes, a part of the memory, 'auto' or None, got {memory_limit!r}"
        )
    try:
        limit: int | None = parse_memory_limit(memory_limit, 1, n_workers, logger=_logger)
    except (ValueError, OverflowError):
        limit = -1
    if limit is not None and limit < 0:
        raise ArgumentValueError(
            f"memory_limit: expected a size such as '8 GiB', or 'auto', got {memory_limit!r}"
        )
    return limit


def nanny_options(
    threads_per_worker: int = 1,
    memory_limit: int | None = None,
    device_memory_limit: Any = "auto",
    resources: Mapping[str, float] | None = None,
    local_directory: str | None = None,
    worker_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the arguments of a `distributed.Nanny` whose worker has a Vulkan device.

    Raises
    ------
    TypeError, ValueError
        `threads_per_worker` is not a positive int, `device_memory_limit` is not one of `VulkanPlugin`, or
        `resources` are not numbers by name.
    """
    threads = as_int(threads_per_worker)
    if threads is None or threads < 1:
        raise ArgumentValueError(
            f"threads_per_worker: expected an int of 1 or more, got {threads_per_worker!r}"
        )
    if not isinstance(resources, (Mapping, type(None))):
        raise ArgumentTypeError(f"resources: expected numbers by name, as a dict, got {resources!r}")
    options = dict(worker_options or {})
    plugins = (*options.pop("plugins", ()), VulkanPlugin(device_memory_limit))
    return {
        "nthreads": threads,
        "memory_limit": memory_limit or 0,
        "resources": {"GPU": 1, **(resources or {})},
        "local_directory": local_directory,
        "plugins": plugins,
        **options,
    }
