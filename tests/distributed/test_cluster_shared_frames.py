"""Frames in memory that the processes of one machine share."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp

pytest.importorskip("distributed")

from distributed import Client
from distributed.protocol.core import dumps, loads
from distributed.protocol.serialize import to_serialize

from tests.distributed.exchanges import exchange
from vkdispatch.distributed import LocalVulkanCluster
from vkdispatch.distributed import frames as shared

if not hasattr(os, "memfd_create"):
    pytest.skip("the system has no anonymous files", allow_module_level=True)

SIZE = 1 << 18  # elements
NOISE = np.random.default_rng(0).integers(0, 1 << 30, SIZE, np.int32)  # which no compression shortens


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> shared._Files:
    """Give each test files of its own."""
    made = shared._Files()
    monkeypatch.setattr(shared, "_files", made)
    return made


def context_of(**changes: Any) -> dict[str, Any]:
    mark = shared._own_mark(os.getpid())
    assert mark is not None
    return {"sender": {shared.KEY: mark}, "recipient": {shared.KEY: {**mark, **changes}}}


def send(value: Any, context: dict[str, Any] | None = None) -> list[bytes]:
    message = dumps({"x": to_serialize(value)}, context=context_of() if context is None else context)
    return [bytes(frame) for frame in message]


def size_of(frames: list[bytes]) -> int:
    return sum(map(len, frames))


def test_messages_carry_headers_alone(files: shared._Files) -> None:
    data = np.random.default_rng(0).standard_normal((512, SIZE // 512), dtype=np.float32)
    x = vnp.asarray(data)
    for value, expected in ((x, data), (x.T, data.T), (x * 2, data * 2)):
        sent = send(value)
        assert size_of(sent) < 10_000
        found = loads(sent)["x"]
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.numpy(), expected)
    # one file has served all
    assert len(files._all) == 1
    buffer = vd.asbuffer(data)
    sent = send([buffer, x])
    assert size_of(sent) < 10_000
    first, second = loads(sent)["x"]
    np.testing.assert_array_equal(first.read(0), data)
    np.testing.assert_array_equal(second.numpy(), data)
    assert all(each.number == 0 for each in files._all)


def test_what_is_received_outlives_its_frames(files: shared._Files) -> None:
    first = loads(send(vnp.zeros(SIZE, np.int32)))["x"]
    second = loads(send(vnp.ones(SIZE, np.int32)))["x"]
    assert len(files._all) == 1
    assert int(first.sum()) == 0
    assert int(second.sum()) == SIZE


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"sender": {}, "recipient": {}},
        {"sender": context_of()["sender"], "recipient": {}},
        {"sender": {}, "recipient": context_of()["recipient"]},
        context_of(secret="00" * 16),
        context_of(pid=1 << 22),
        context_of(file=1 << 20),
    ],
)
def test_other_recipients_get_frames(context: dict[str, Any], files: shared._Files) -> None:
    sent = send(vnp.asarray(NOISE), context)
    assert size_of(sent) > SIZE * 4
    assert not files._all
    np.testing.assert_array_equal(loads(sent)["x"].numpy(), NOISE)


def test_small_values_and_short_memory(files: shared._Files, monkeypatch: pytest.MonkeyPatch) -> None:
    small = vnp.ones(100, np.int32)
    sent = send(small)
    assert not files._all
    assert int(loads(sent)["x"].sum()) == 100
    monkeypatch.setattr(shared, "_MAX_SHARED", SIZE * 6)
    x = vnp.asarray(NOISE)
    waiting, later = send(x), send(x)
    assert size_of(waiting) < 10_000 < SIZE * 4 < size_of(later)
    for each in (later, waiting):
        np.testing.assert_array_equal(loads(each)["x"].numpy(), NOISE)

    def fail(*_: Any) -> None:
        raise OSError("no memory")

    files._all.clear()
    monkeypatch.setattr(os, "posix_fallocate", fail)
    assert size_of(send(x)) > SIZE * 4


def test_files_are_closed(files: shared._Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_MAX_IDLE", SIZE * 8)
    descriptors = Path("/proc/self/fd")
    gc.collect()
    before = sum(1 for _ in descriptors.iterdir())
    for factor in range(1, 20):
        loads(send(vnp.ones(SIZE * factor, np.uint8 if factor % 2 else np.int32)))
    assert sum(each.size for each in files._all[:-1]) <= SIZE * 8
    gc.collect()
    # Python's map of a file has a descriptor of its own
    assert sum(1 for _ in descriptors.iterdir()) == before + 2 * len(files._all)


def test_lost_messages(files: shared._Files, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = send(vnp.ones(SIZE, np.int32))
    monkeypatch.setattr(shared, "_LOST", -1.0)
    # the file is used again although nobody has received its message
    later = send(vnp.zeros(SIZE, np.int32))
    assert len(files._all) == 1
    with pytest.raises(ConnectionError, match="shared memory are gone"):
        loads(sent)
    assert int(loads(later)["x"].sum()) == 0
    with pytest.raises(ConnectionError, match="shared memory are gone"):
        loads(later)  # twice
    sent = send(vnp.ones(SIZE, np.int32))
    for each in files._all:
        each.close()
    with pytest.raises(ConnectionError, match="shared memory are gone"):
        loads(sent)


_SENDER = """
import sys, numpy as np
sys.path.insert(0, "tests/distributed")
import vkdispatch.numpy as vnp
from distributed.protocol.core import dumps
from distributed.protocol.serialize import to_serialize
mark = eval(sys.argv[1])
from vkdispatch.distributed import frames as shared
own = shared._own_mark(shared.os.getpid())
context = {"sender": {shared.KEY: own}, "recipient": {shared.KEY: mark}}
frames = dumps({"x": to_serialize(vnp.arange(300000, dtype=np.int32))}, context=context)
print([bytes(each) for each in frames], flush=True)
sys.stdin.read()
"""


def test_the_sender_may_end() -> None:
    mark = repr(shared._own_mark(os.getpid()))
    with subprocess.Popen(
        [sys.executable, "-c", _SENDER, mark], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sender:
        assert sender.stdout is not None
        frames = eval(sender.stdout.readline())
        assert size_of(frames) < 10_000
        np.testing.assert_array_equal(loads(frames)["x"].numpy(), np.arange(300000))
        sender.kill()
        sender.wait()
    with pytest.raises(ConnectionError, match=r"1200000 bytes .* are gone"):
        loads(frames)


# ---- workers


@pytest.fixture(scope="module")
def client(cpu_driver: int) -> Iterator[Client]:
    with (
        LocalVulkanCluster(2, devices=cpu_driver, memory_limit=None, dashboard_address=None) as cluster,
        Client(cluster) as made,
    ):
        yield made


def _describe() -> tuple[int, bool]:
    """Return how many frames this process has lent, and whether it has received any in a thread."""
    from vkdispatch.distributed import frames

    names = [each.name for each in threading.enumerate()]
    return frames._files._count, any(name.startswith("vkdispatch-frames") for name in names)


def test_workers_share_memory(client: Client) -> None:
    exchange(client)
    assert all(count >= 3 and received for count, received in client.run(_describe).values())
