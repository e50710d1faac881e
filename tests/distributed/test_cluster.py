"""A cluster of two workers on this machine: results, errors, memory, faults.

Processes take long to start on a busy machine. Nothing here judges by the clock, and every wait ends.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp

pytest.importorskip("distributed")
pytest.importorskip("cloudpickle")

import dask
import dask.array as da
from distributed import Client, get_worker

from vkdispatch.distributed import LocalVulkanCluster

_PATIENCE = 100  # seconds, for anything: long before pytest's own limit
_LIMIT = 1 << 20  # bytes of results on a device
_QUARTER = 1 << 18


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, cpu_driver: int) -> Iterator[Client]:
    with (
        LocalVulkanCluster(
            n_workers=2,
            devices=[cpu_driver],
            dashboard_address=None,
            device_memory_limit=_LIMIT,
            memory_limit="2 GiB",
            resources={"TEST": 2},
            local_directory=str(tmp_path_factory.mktemp("workers")),
            silence_logs=50,
        ) as cluster,
        Client(cluster, timeout=_PATIENCE) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _two_workers(client: Client) -> None:
    client.wait_for_workers(2, timeout=_PATIENCE)


def travels(thing: Any) -> Any:
    """Have a function or class sent by its code, so that workers need not find the tests."""
    thing.__module__ = "__main__"
    return thing


def result(future: Any) -> Any:
    return future.result(timeout=_PATIENCE)


@travels
def make(number: float, size: int = 1000) -> vnp.Array:
    return vnp.arange(size).astype(np.float32) + np.float32(number)


@travels
def truth(number: float, size: int = 1000) -> np.ndarray[Any, Any]:
    return np.arange(size, dtype=np.float32) + np.float32(number)


@travels
def double(x: vnp.Array) -> vnp.Array:
    return x * 2


@travels
def add(x: vnp.Array, y: vnp.Array) -> vnp.Array:
    return x + y


@travels
def describe(dask_worker: Any) -> dict[str, Any]:
    context = vd.get_context()
    return {
        "pid": os.getpid(),
        "pinned": os.environ["VKDISPATCH_DEVICE"],
        "uuid": context.device_infos[0].uuid.hex(),
        "resources": dict(dask_worker.state.total_resources),
        "store": type(dask_worker.data).__name__,
        "limit": dask_worker.data.limit,
        "memory_limit": dask_worker.memory_manager.memory_limit,
        "threads": dask_worker.state.nthreads,
        "compression": dask.config.get("distributed.comm.compression"),
    }


def test_each_worker_is_a_process_with_its_device(client: Client) -> None:
    found = list(client.run(describe).values())
    assert len({each["pid"] for each in found} | {os.getpid()}) == 3
    for each in found:
        assert each["uuid"] == each["pinned"]
        assert each["resources"] == {"GPU": 1, "TEST": 2}
        assert (each["store"], each["limit"]) == ("DeviceStore", _LIMIT)
        assert (each["memory_limit"], each["threads"], each["compression"]) == (2 << 30, 1, False)


def test_results_go_from_worker_to_worker_and_to_the_client(client: Client) -> None:
    first = client.submit(make, 1, workers=[0], pure=False)
    second = client.submit(double, first, workers=[1], pure=False)
    third = client.submit(add, first, second, pure=False, resources={"GPU": 1})
    found = result(third)
    assert type(found) is vnp.Array
    np.testing.assert_array_equal(found.numpy(), truth(1) * 3)


@travels
def read_twice(buffer: vd.Buffer[Any], data: vnp.Array) -> tuple[Any, Any]:
    return buffer.read(0) * 2, data


def test_scattered_buffers_and_arrays(client: Client) -> None:
    data = np.random.default_rng(1).uniform(size=(30, 4)).astype(np.float32)
    buffer, array = client.scatter([vd.asbuffer(data), vnp.asarray(data).T * 3], timeout=_PATIENCE)
    found, view = result(client.submit(read_twice, buffer, array, pure=False))
    np.testing.assert_array_equal(found, data * 2)
    np.testing.assert_array_equal(view.numpy(), data.T * 3)


@travels
def make_pending() -> dict[str, Any]:
    return {"x": [make(1) * 2, (make(2) - 1,)], "y": 3}


@travels
def kinds_of(value: Any) -> list[str]:
    return [type(each._value).__name__ for each in (value["x"][0], value["x"][1][0])]


def test_stored_results_are_computed(client: Client) -> None:
    future = client.submit(make_pending, workers=[0], pure=False)
    assert result(client.submit(kinds_of, future, workers=[0], pure=False)) == ["View", "View"]


@travels
async def make_later(number: int) -> vnp.Array:
    return make(number) * 2


def test_coroutines_end_with_their_result_as_well(client: Client) -> None:
    future = client.submit(make_later, 4, pure=False)
    np.testing.assert_array_equal(result(future).numpy(), truth(4) * 2)


@travels
def take(x: vnp.Array, index: int) -> vnp.Array:
    return vnp.take(x, vnp.asarray(np.array([index], np.int32)))


def test_an_error_of_the_device_is_that_of_its_task(client: Client) -> None:
    source = client.submit(make, 0, pure=False)
    futures = [client.submit(take, source, index, pure=False) for index in (3, 5000, 7)]
    # cloudpickle 3.1.3 and later keep lines, but no names of files
    line = take.__code__.co_firstlineno + 2
    place = rf"in take\(\) at (test_cluster.py|<dynamic-code>):{line}"
    with pytest.raises(IndexError, match=rf"5000 at \[0\] is out of bounds.*{place}"):
        result(futures[1])
    assert [result(futures[place]).tolist() for place in (0, 2)] == [[3.0], [7.0]]
    dependent = client.submit(double, futures[1], pure=False)
    with pytest.raises(IndexError, match="5000"):
        result(dependent)
    # nobody else gets it later
    for worker in (0, 1):
        again = client.submit(double, source, workers=[worker], pure=False)
        np.testing.assert_array_equal(result(again).numpy(), truth(0) * 2)


@travels
def refuse(x: vnp.Array) -> vnp.Array:
    return x @ vnp.asarray(np.ones((7, 7), np.float32))


def test_errors_of_arguments_come_back_as_they_are(client: Client) -> None:
    source = client.submit(make, 0, pure=False)
    with pytest.raises(vd.VkDispatchError) as raised:
        result(client.submit(refuse, source, pure=False))
    with pytest.raises(vd.VkDispatchError) as expected:
        refuse(make(0))
    assert type(raised.value) is type(expected.value)
    assert str(raised.value) == str(expected.value)


@travels
def describe_store(dask_worker: Any) -> tuple[int, int]:
    return dask_worker.data.stored_bytes, dask_worker.data.spill_count


def test_results_beyond_the_limit_are_spilled_and_come_back(client: Client) -> None:
    size = _QUARTER // 4
    futures = client.map(make, range(24), size=size, pure=False)
    total = client.submit(lambda parts: sum(part.sum().item() for part in parts), futures, pure=False)
    expected = sum(float(truth(number, size).sum(dtype=np.float64)) for number in range(24))
    assert result(total) == pytest.approx(expected, rel=1e-5)
    for number in (0, 23, 7):
        np.testing.assert_array_equal(result(futures[number]).numpy(), truth(number, size))
    found = client.run(describe_store).values()
    assert all(stored <= _LIMIT for stored, _ in found)
    assert sum(count for _, count in found) >= 24 - 2 * _LIMIT // _QUARTER


@travels
def measure(dask_scheduler: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(dict(worker.metrics), dict(worker.extra)) for worker in dask_scheduler.workers.values()]


@travels
async def heartbeat(dask_worker: Any) -> None:
    await dask_worker.heartbeat()


def test_the_scheduler_knows_device_and_memory(client: Client) -> None:
    futures = client.map(make, range(4), pure=False, size=_QUARTER // 4)
    for future in futures:
        result(future)
    client.run(heartbeat)
    name = next(info.device_name for info in vd.get_devices() if info.is_cpu() and not info.missing)
    found = client.run_on_scheduler(measure)
    assert len(found) == 2
    for metrics, extra in found:
        assert metrics["device"] == name
        assert 0 <= metrics["device_memory_stored"] <= metrics["device_memory_budget"]
        assert metrics["kernels_per_second"] >= 0
        assert extra["device"]["name"] == name
        assert extra["device"]["memory_limit"] == _LIMIT
    assert sum(metrics["device_memory_stored"] for metrics, _ in found) >= _QUARTER
    assert sum(metrics["device_memory"] for metrics, _ in found) >= 4 * _QUARTER


@travels
def need_memory(x: vnp.Array) -> int:
    # as if its allocations failed while other results are on the device
    store = get_worker().data
    if store.device:
        raise vd.OutOfDeviceMemoryError("the device is full")
    return int(x.size)


def test_a_task_that_lacks_memory_runs_again_without_other_results(client: Client) -> None:
    futures = [client.submit(make, number, workers=[1], pure=False) for number in range(3)]
    assert result(client.submit(need_memory, futures[0], workers=[1], pure=False)) == 1000
    for number, future in enumerate(futures):
        np.testing.assert_array_equal(result(future).numpy(), truth(number))


@travels
def lack_memory() -> None:
    raise vd.OutOfDeviceMemoryError("the device is full")


def test_a_task_that_still_lacks_memory_fails(client: Client) -> None:
    with pytest.raises(MemoryError, match="the device is full"):
        result(client.submit(lack_memory, pure=False))


# ---- rechunking between workers


@travels
def require_array(x: Any) -> Any:
    if type(x) is not vnp.Array:
        raise TypeError(f"a chunk is of {type(x)}")
    return x


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.parametrize(
    ("shape", "old", "new", "dtype"),
    [
        ((40, 30, 20), (10, 30, 5), (40, 7, 20), np.complex64),
        ((60, 50), (13, 50), (60, 17), np.bool_),
        ((600, 500), (100, 500), (600, 150), np.float32),  # pieces that are not sent together
    ],
)
def test_rechunking_between_workers(
    client: Client,
    on_disk: bool,
    shape: tuple[int, ...],
    old: tuple[int, ...],
    new: tuple[int, ...],
    dtype: Any,
) -> None:
    data = (np.random.default_rng(3).random(shape) * 3).astype(dtype)
    x = da.from_array(data, chunks=old).map_blocks(vnp.asarray)
    with dask.config.set({"distributed.p2p.storage.disk": on_disk}):
        y = x.rechunk(new, method="p2p")
        assert type(y._meta) is vnp.Array
        assert y.chunks == da.from_array(data, chunks=new).chunks
        assert any("p2p" in name for name in y.dask.layers)
        found = y.map_blocks(require_array, meta=y._meta).compute()
    np.testing.assert_array_equal(found.numpy(), data)


@pytest.mark.parametrize(
    ("parts", "kind", "config", "expected"),
    [
        (16, vnp.asarray, {}, "tasks"),
        (16, np.asarray, {}, "p2p"),
        (16, vnp.asarray, {"array.rechunk.method": "p2p"}, "p2p"),
        (300, vnp.asarray, {}, "p2p"),  # more pieces than their bytes are worth
    ],
)
def test_the_method_of_rechunking(
    client: Client, parts: int, kind: Any, config: dict[str, Any], expected: str
) -> None:
    size = 38400
    x = da.zeros((size, size), np.uint8, chunks=(size // parts, size)).map_blocks(kind)
    assert type(x._meta) is type(kind(np.zeros(1)))
    for rechunk in (x.rechunk, functools.partial(da.rechunk, x)):
        with dask.config.set(config):
            y = rechunk((size, size // parts))
        assert y.numblocks == (1, parts)
        assert any("p2p" in name for name in y.dask.layers) is (expected == "p2p")


def test_chunks_of_numpy_are_rechunked_as_before(client: Client) -> None:
    data = np.arange(600).reshape(30, 20)
    found = da.from_array(data, chunks=(7, 20)).rechunk((30, 6), method="p2p").compute()
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, data)


def test_a_cluster_without_a_dashboard_has_no_port_for_one(client: Client) -> None:
    assert client.scheduler_info()["services"] == {}
    assert client.dashboard_link == client.cluster.dashboard_link == ""


# ---- faults


@travels
def claim(path: str) -> bool:
    """Whether this is the first process that asks."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@travels
def die_once(x: vnp.Array, path: str) -> vnp.Array:
    if claim(path):
        os._exit(9)
    return x * 2


def test_a_worker_that_dies_loses_nothing(client: Client, tmp_path: Path) -> None:
    before = {each["pid"] for each in client.run(describe).values()}
    parts = [client.submit(make, number, pure=False) for number in range(16)]
    for part in parts:
        result(part)  # each worker holds some
    doubled = [client.submit(die_once, part, str(tmp_path / "dead"), pure=False) for part in parts]
    while len(doubled) > 1:
        doubled = [
            client.submit(add, *pair, pure=False) for pair in zip(doubled[::2], doubled[1::2], strict=True)
        ]
    expected = 2 * sum(truth(number) for number in range(16))
    np.testing.assert_array_equal(result(doubled[0]).numpy(), expected)
    assert (tmp_path / "dead").exists()
    client.wait_for_workers(2, timeout=_PATIENCE)
    after = {each["pid"] for each in client.run(describe).values()}
    assert len(after) == 2
    assert len(after - before) == 1


@travels
def lose_once(x: vnp.Array, path: str, abandoned: bool) -> vnp.Array:
    class Stopped:
        """An engine whose device was lost or, with `abandoned`, whose work took too long."""

        lost = True

        def __init__(self, engine: Any) -> None:
            self.engine, self.abandoned = engine, abandoned

        def __getattr__(self, name: str) -> Any:
            return getattr(self.engine, name)

    if claim(path):
        context: Any = vd.get_context()
        context._engine, context.timeout = Stopped(context._engine), 3.0
        context.require_usable()
    return x * 2


@pytest.mark.parametrize("abandoned", [False, True])
def test_a_lost_device_restarts_its_worker(client: Client, tmp_path: Path, abandoned: bool) -> None:
    before = {each["pid"] for each in client.run(describe).values()}
    parts = [client.submit(make, number, pure=False) for number in range(6)]
    for part in parts:
        result(part)
    futures = [
        client.submit(lose_once, part, str(tmp_path / "lost"), abandoned, pure=False) for part in parts
    ]
    failed = 0
    for number, future in enumerate(futures):
        try:
            np.testing.assert_array_equal(result(future).numpy(), truth(number) * 2)
        except vd.DeviceTimeoutError as error:
            assert "3 seconds" in str(error)
            failed += 1
    # a task that takes too long would do so again; anything else runs again
    assert failed == abandoned
    for _ in range(600):
        after = {each["pid"] for each in run_everywhere(client)}
        if len(after) == 2 and after != before:
            break
        time.sleep(0.1)
    assert len(after - before) == 1
    topics = [event for _, event in client.get_events("vkdispatch")]
    assert any(
        (event["action"] == "device-lost" and "lost" in event["error"]) or abandoned for event in topics
    )


def run_everywhere(client: Client) -> list[dict[str, Any]]:
    """Describe the workers; those that end meanwhile are left out."""
    client.wait_for_workers(2, timeout=_PATIENCE)
    found = client.run(describe, on_error="return").values()
    return [each for each in found if isinstance(each, dict)]


def test_the_results_that_were_left_are_right(client: Client) -> None:
    # after all these deaths
    futures = client.map(make, range(8), pure=False)
    for number, future in enumerate(futures):
        np.testing.assert_array_equal(result(future).numpy(), truth(number))
    assert result(client.submit(lambda: len(vd.get_devices()), pure=False)) >= 1


def test_a_cluster_on_a_processor_grows_and_shrinks(client: Client) -> None:
    cluster = client.cluster
    cluster.scale(3)
    client.wait_for_workers(3, timeout=_PATIENCE)
    assert len({each["uuid"] for each in client.run(describe).values()}) == 1
    cluster.scale(2)
    assert len(cluster.worker_spec) == 2


CLOSE = """
import sys, time
import vkdispatch.numpy as vnp
from distributed import Client, Event
from vkdispatch.distributed import LocalVulkanCluster

def sleep(started):
    Event("sleep").set()
    time.sleep(1000)

def compute(started):
    x = vnp.ones((3000, 3000), vnp.float32) / 3000
    Event("compute").set()
    for _ in range(200):
        x = x @ x
    return x

if __name__ == "__main__":
    cluster = LocalVulkanCluster(2, int(sys.argv[1]), dashboard_address=None)
    with cluster, Client(cluster) as client:
        tasks = [client.submit(each, None) for each in (sleep, compute)]
        for name in ("sleep", "compute"):
            Event(name).wait(100)
    print("closed")
"""


def test_clusters_are_closed_while_tasks_run(client: Client, tmp_path: Path) -> None:
    device = client.cluster.devices[0].sorted_index
    file = tmp_path / "close.py"
    file.write_text(CLOSE)
    done = subprocess.run(
        [sys.executable, str(file), str(device)],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(Path(vd.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        },
        check=True,
    )
    assert done.stdout == "closed\n"
    assert "still alive" not in done.stderr  # nothing had to be killed
