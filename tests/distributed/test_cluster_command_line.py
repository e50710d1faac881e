"""Workers that are started from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import vkdispatch as vd
import vkdispatch.numpy as vnp
from vkdispatch.cli import main

pytest.importorskip("distributed")
pytest.importorskip("cloudpickle")

from distributed import Client, LocalCluster

_PATIENCE = 100  # seconds, for anything
_VKDISPATCH = ["-c", "from vkdispatch.cli import main; main()"]
_DASK_WORKER = ["-m", "distributed.cli.dask_worker"]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster, timeout=_PATIENCE) as client,
    ):
        yield client


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process that is surely gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "VKDISPATCH_DEVICE": "0"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def double(count: int) -> Any:
    return vnp.arange(count).astype(np.float32) * 2


def describe(dask_worker: Any) -> tuple[Any, ...]:
    return (
        dask_worker.name,
        dask_worker.data.limit,
        dict(dask_worker.state.total_resources),
        dask_worker.memory_manager.memory_limit,
        vd.get_context().device_infos[0].uuid.hex(),
    )


double.__module__ = describe.__module__ = "__main__"  # sent by their code: workers need not find this module


@pytest.mark.parametrize(
    ("command", "options", "resources"),
    [
        (_VKDISPATCH, ["worker", "--resources", "FAST=2", "--device", "0"], {"GPU": 1, "FAST": 2}),
        (_DASK_WORKER, ["--preload", "vkdispatch.distributed.worker", "--device", "0"], {}),
    ],
    ids=["vkdispatch worker", "dask worker --preload"],
)
def test_a_worker_joins_a_scheduler(
    client: Client, command: list[str], options: list[str], resources: dict[str, float]
) -> None:
    address = client.cluster.scheduler_address
    arguments = [*command]
    if command is _VKDISPATCH:
        arguments += [*options[:1], address, *options[1:]]
    else:
        arguments += [address, "--nthreads", "1", *options]
    arguments += ["--name", "mine", "--memory-limit", "1GiB", "--device-memory-limit", "2MB"]
    with running(*arguments) as process:
        client.wait_for_workers(1, timeout=_PATIENCE)
        (found,) = client.run(describe).values()
        uuid = vd.get_devices()[0].uuid
        assert uuid is not None
        assert found == ("mine", 2_000_000, resources, 1 << 30, uuid.hex())
        result = client.submit(double, 1000, pure=False).result(timeout=_PATIENCE)
        np.testing.assert_array_equal(result.numpy(), np.arange(1000, dtype=np.float32) * 2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=_PATIENCE)
        assert process.returncode == 0, output


def test_a_preloaded_module_without_a_device_ends_the_worker(client: Client) -> None:
    address = client.cluster.scheduler_address
    options = ["--no-nanny", "--preload", "vkdispatch.distributed.worker", "--device", "nonsense"]
    with running(*_DASK_WORKER, address, "--nthreads", "1", *options) as process:
        output, _ = process.communicate(timeout=_PATIENCE)
        assert process.returncode == 1, output
        assert "The worker has no Vulkan device: VKDISPATCH_DEVICE: no device matches 'nonsense'" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass the address of the scheduler, or --scheduler-file"),
        (["tcp://127.0.0.1:1", "--device", "nonsense"], "devices: no device matches 'nonsense'"),
        (["tcp://127.0.0.1:1", "--nworkers", "0"], "n_workers: at least one worker"),
        (["tcp://127.0.0.1:1", "--nthreads", "0"], "threads_per_worker: expected an int of 1 or more"),
        (["tcp://127.0.0.1:1", "--memory-limit", "much"], "memory_limit: expected a size"),
        (["tcp://127.0.0.1:1", "--device-memory-limit", "much"], "device_memory_limit: expected a size"),
        (["tcp://127.0.0.1:1", "--resources", "FAST"], "expected entries such as FAST=1, got 'FAST'"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: list[str], message: str) -> None:
    found = CliRunner().invoke(main, ["worker", *arguments])
    assert found.exit_code != 0
    assert message in found.output
    assert "Traceback" not in found.output


def test_commands_can_be_added() -> None:
    assert isinstance(main, click.Group)
    found = CliRunner().invoke(main, ["--help"])
    assert found.exit_code == 0
    assert "worker" in found.output
