"""Copies that are started and asked for later: their order, futures, events, and asyncio."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.native.gates import ENVIRONMENT, Gate
from vkdispatch.base import synchronization as event_module
from vkdispatch.base.synchronization import ReadFuture
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32

Run = Callable[..., subprocess.CompletedProcess[str]]
SIZE = 4099


@vd.shader("data.size")
def add(data: Buff[f32], step: Const[f32]) -> None:
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] + step


@vd.shader(exec_size=1)
def spin(data: Buff[u32], rounds: Const[u32]) -> None:
    value = data[0].to_register()
    with vc.while_block(data[1] < rounds):
        value[:] = value * 1664525 + 1013904223
        data[1] = data[1] + 1
    data[0] = value
    data[1] = 0


def keep_busy(rounds: int = 50_000) -> None:
    """Give the device something to do for a while."""
    spin(vd.asbuffer(np.zeros(2, np.uint32)), rounds)


def filled(value: float) -> Any:
    return vd.asbuffer(np.full(SIZE, value, np.float32))


def test_asynchronous_read_ignores_later_launches() -> None:
    buffer = filled(0)
    futures = []
    for _ in range(30):
        add(buffer, 1.0)
        futures.append(buffer.read_async())
    add(buffer, 100.0)
    for i, future in enumerate(futures):
        assert future.result(100) is future.result()
        assert set(future.result()) == {i + 1.0}
        assert future.done() and future.wait(0)
    assert set(buffer.read(0)) == {130.0}


@pytest.mark.parametrize("pinned", [False, True])
def test_writes_are_ordered_between_reads(pinned: bool) -> None:
    buffer = filled(0)
    events = []
    futures = []
    for value in range(20):
        data = vd.empty_pinned(SIZE) if pinned else np.empty(SIZE, np.float32)
        data[:] = value
        events.append(buffer.write_async(data))
        if not pinned:
            data[:] = -1
        add(buffer, 0.5)
        futures.append(buffer.read_async(0))
        add(buffer, 7.0)
    assert [set(future.result()) for future in futures] == [{value + 0.5} for value in range(20)]
    assert all(event.wait(100) and event.done() for event in events)


def test_asynchronous_calls_do_not_wait_for_the_device() -> None:
    buffer = filled(1)
    keep_busy(1)  # the first call compiles, and may measure how many rounds the driver allows a loop
    with Gate(vd.get_context()._native) as gate:
        gate.hold()
        keep_busy(1000)
        event = buffer.write_async(np.full(SIZE, 2, np.float32))
        future = buffer.read_async()
        assert gate.is_holding()
    assert set(future.result()) == {2.0}
    vd.queue_wait_idle()
    assert event.done()


def test_read_into_own_memory() -> None:
    buffer = filled(3)
    block = vd.empty_pinned((3, SIZE))
    block[...] = 0
    future = buffer.read_async(0, out=block[1])
    result = future.result()
    assert np.shares_memory(result, block) and result.shape == (SIZE,)
    assert (set(block[0]), set(block[1]), set(block[2])) == ({0.0}, {3.0}, {0.0})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (vd.complex64, np.array([1 + 2j, 3 - 4j], np.complex64)),
        (vd.vec3, np.arange(6, dtype=np.float32).reshape(2, 3)),
        (vd.mat2, np.arange(8, dtype=np.float32).reshape(2, 2, 2)),
        (vd.int8, np.array([-1, 5], np.int8)),
    ],
)
def test_result_equals_read(kind: Any, values: np.ndarray[Any, Any]) -> None:
    buffer = vd.Buffer((2,), kind)
    buffer.write_async(values)
    like = buffer.read(0)
    result = buffer.read_async().result()
    assert (result.dtype, result.shape) == (like.dtype, like.shape)
    assert (result == like).all() and (result.reshape(-1) == values.reshape(-1)).all()


@pytest.mark.parametrize("kind", [vd.complex32, vd.bfloat16])
def test_dtypes_that_numpy_lacks_are_widened(kind: Any) -> None:
    buffer: Any = vd.Buffer((5,), kind)
    buffer.write(
        np.arange(10, dtype=np.float16) if kind is vd.complex32 else np.arange(5.0, dtype=np.float32)
    )
    future = buffer.read_async()
    assert future.result().dtype == buffer.read(0).dtype
    assert (future.result() == buffer.read(0)).all() and future.result() is future.result()


def test_events() -> None:
    vd.queue_wait_idle()
    assert vd.record_event().done()
    with Gate(vd.get_context()._native) as gate:
        gate.hold()
        event = vd.record_event(0)
        assert not event.wait(0) and not event.wait(0.0005) and not event.done() and "pending" in repr(event)
        vd.wait_event(event)
        vd.wait_event(event, 0)
    assert event.wait() and event.wait(0) and event.done() and "done" in repr(event)
    vd.wait_event(event)
    later = vd.record_event()
    assert later.wait(100)


def test_timeouts() -> None:
    busy = vd.asbuffer(np.zeros(2, np.uint32))
    with Gate(vd.get_context()._native) as gate:
        gate.hold(busy)  # so that the copy cannot overtake it
        future = busy.read_async()
        with pytest.raises(TimeoutError, match=r"0\.001"):
            future.result(0.001)
        with pytest.raises(vd.WaitTimeoutError):
            future.result(timeout=0)
        assert "pending" in repr(future)
    assert future.result(100).tolist() == [1, 0]
    assert "done" in repr(future)


def test_dropped_futures_still_run() -> None:
    vd.queue_wait_idle()
    gc.collect()
    engine = vd.get_context()._native
    before = engine.statistics()["live_objects"]
    for value in range(30):
        buffer = filled(value)
        keep_busy(3000)
        buffer.read_async()
        future = buffer.read_async()
        buffer.write_async(vd.empty_pinned(SIZE))
        if value % 2:
            buffer.destroy()
        del buffer
        if value % 3:
            del future
        else:
            assert set(future.result()) == {float(value)}
    future = None
    gc.collect()
    # The last of them goes once nobody can be using it, a moment after the work is done.
    for _ in range(10_000):
        vd.queue_wait_idle()
        if engine.statistics()["live_objects"] <= before + 1:
            break
        time.sleep(0.01)
    # one object of the engine's own may be new since the start; 30 rounds would leave 30 of the user's
    assert engine.statistics()["live_objects"] <= before + 1


def test_asyncio() -> None:
    async def one(value: int) -> float:
        buffer = filled(value)
        await buffer.write_async(np.full(SIZE, value, np.float32))
        add(buffer, 1.0)
        future = buffer.read_async()
        add(buffer, 5.0)
        array = await future
        assert (await future) is array
        await vd.record_event()
        return float(array[SIZE - 1])

    async def main() -> None:
        assert await asyncio.gather(*map(one, range(50))) == [value + 1.0 for value in range(50)]
        with Gate(vd.get_context()._native) as gate:
            busy = gate.hold(vd.asbuffer(np.zeros(2, np.uint32)))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(_await(busy.read_async()), 0.001)
        assert await asyncio.wait_for(_await(busy.read_async()), 100) is None

    asyncio.run(main())
    asyncio.run(main())


def test_cancelled_waits_do_not_affect_others() -> None:
    async def main() -> None:
        with Gate(vd.get_context()._native) as gate:
            busy = gate.hold(vd.asbuffer(np.zeros(2, np.uint32)))
            future = busy.read_async()
            event = vd.record_event()

            async def wait() -> Any:
                return await future

            tasks = [asyncio.ensure_future(wait()) for _ in range(10)]
            await asyncio.sleep(0)
            for task in tasks[:9]:
                task.cancel()
            gate.open()
            done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in done[:9]] == [asyncio.CancelledError] * 9
        assert done[9] is future.result()
        await event

    asyncio.run(main())

    async def abandon() -> None:
        busy = vd.asbuffer(np.zeros(2, np.uint32))
        spin(busy, 60_000)
        task = asyncio.ensure_future(_await(busy.read_async()))
        await asyncio.sleep(0)
        assert not task.done() or task.exception() is None

    # the loop is gone when the copy is done
    asyncio.run(abandon())
    vd.queue_wait_idle()


async def _await(moment: Any) -> None:
    await moment


def test_callbacks() -> None:
    called: list[tuple[Any, str]] = []
    reached = threading.Event()

    def note(moment: Any) -> None:
        called.append((moment, threading.current_thread().name))
        reached.set()

    vd.queue_wait_idle()
    event = vd.record_event()
    event.add_done_callback(note)
    assert called == [(event, threading.current_thread().name)]
    called.clear()
    reached.clear()
    with Gate(vd.get_context()._native) as gate:
        future = gate.hold(vd.asbuffer(np.zeros(2, np.uint32))).read_async()
        future.add_done_callback(lambda _: 1 / 0)  # logged, and no more
        future.add_done_callback(note)
        assert called == []
    assert reached.wait(100)
    assert [(moment, name.startswith("vkdispatch")) for moment, name in called] == [(future, True)]


def test_callbacks_run_in_order_of_completion() -> None:
    order: list[str] = []
    one = threading.Semaphore(0)
    keep_busy(1000)
    quick = vd.record_event()
    with Gate(vd.get_context()._native) as gate:
        gate.hold()
        slow = vd.record_event()
        slow.add_done_callback(lambda _: (order.append("slow"), one.release()))
        quick.add_done_callback(lambda _: (order.append("quick"), one.release()))
        assert one.acquire(timeout=100)
    assert one.acquire(timeout=100)
    assert order == ["quick", "slow"]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda b: b.read_async(1000), ValueError, "index"),
        (lambda b: b.write_range(np.zeros(1, np.float32), "a"), TypeError, "start.*'a'"),
        (lambda b: vd.empty_pinned(2**62), MemoryError, "shape"),
        (lambda b: b.read_async(None), ValueError, "index"),
        (lambda b: b.read_async(out=np.zeros(SIZE, np.float32)), ValueError, "out.*empty_pinned"),
        (lambda b: b.read_async(out=vd.empty_pinned(SIZE + 1)), ValueError, "out.*shape"),
        (lambda b: b.read_async(out=vd.empty_pinned(SIZE, np.int32)), ValueError, "out.*int32"),
        (lambda b: b.read_async(out=[1]), TypeError, "out"),
        (lambda b: b.write_async(np.zeros(3, np.float32)), ValueError, "data"),
        (lambda b: b.write_async([1.0]), TypeError, "data"),
        (lambda b: b.write_async(np.zeros(SIZE, np.float32), index=1000), ValueError, "index"),
        (lambda b: b.read_async().result("soon"), TypeError, "timeout"),
        (lambda b: b.read_async().result(-1), ValueError, "timeout"),
        (lambda b: b.read_async().wait(float("nan")), ValueError, "timeout"),
        (lambda b: b.read_async().add_done_callback(None), TypeError, "callback"),
        (lambda b: vd.record_event(1000), ValueError, "queue_index"),
        (lambda b: vd.wait_event(vd.record_event(), 1000), ValueError, "queue_index"),
        (lambda b: vd.wait_event(b), TypeError, "event"),
        (lambda b: vd.wait_event(None), TypeError, "event"),
    ],
)
def test_wrong_arguments(call: Callable[[Any], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        call(filled(0))
    assert isinstance(raised.value, vd.VkDispatchError)


def test_a_destroyed_buffer() -> None:
    buffer = filled(0)
    buffer.destroy()
    for call in (buffer.read_async, lambda: buffer.write_async(np.zeros(SIZE, np.float32))):
        with pytest.raises(RuntimeError, match="destroyed"):
            call()


@pytest.mark.parametrize("twin", ["0", "1", "2"])
def test_contexts_that_end(run_python: Run, twin: str) -> None:
    done = run_python(
        """
import asyncio, threading, time, numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.base.context import destroy_context
from vkdispatch.codegen.abbreviations import *
@vd.shader("data.size")
def add(data: Buff[f32], step: Const[f32]):
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] + step
def start():
    buffer = vd.asbuffer(np.zeros(100000, np.float32))
    for _ in range(100): add(buffer, 1.0)
    return buffer.read_async()
future = start(); event = vd.record_event()
woken = threading.Event(); future.add_done_callback(lambda _: woken.set())
destroy_context()
print(future.done(), event.done(), set(future.result().tolist()), woken.wait(100))
try: vd.wait_event(event)
except RuntimeError as error: print("gone" in str(error))
# another thread waits while the context goes
future = start()
thread = threading.Thread(target=lambda: print(set(future.result().tolist()))); thread.start()
destroy_context(); thread.join()
# a loop waits while the context goes
async def main():
    future = start()
    task = asyncio.ensure_future(wait(future)); await asyncio.sleep(0)
    destroy_context()
    print(set((await task).tolist()))
async def wait(future): return await future
asyncio.run(main())
future = start(); future.add_done_callback(print)  # pending at exit
""",
        VKDISPATCH_FORCE_TRANSFER_QUEUE=twin,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[:4] == ["True True {100.0} True", "True", "{100.0}", "{100.0}"], done.stderr


def test_request_does_not_wait_for_space_in_the_queue(run_python: Run) -> None:
    # More batches than may be in flight: each copy is one of its own.
    done = run_python(
        """
import numpy as np, vkdispatch as vd
from tests.native.gates import Gate
from vkdispatch.codegen.abbreviations import *
@vd.shader(exec_size=1)
def write(data: Buff[u32]): data[0] = data[0] + 1
data = vd.asbuffer(np.zeros(1, np.uint32))
with Gate(vd.get_context()._native) as gate:
    gate.hold(data)
    for _ in range(40):
        write(data)
        future = data.read_async()
    print(future.done(), future.wait(0.0), future.wait(0.001), gate.is_holding())
print(future.result()[0])
""",
        VKDISPATCH_FORCE_TRANSFER_QUEUE="1",
        **ENVIRONMENT,
    )
    assert done.stdout.splitlines() == ["False False False True", "41"], done


@pytest.mark.parametrize("twin", ["0", "1", "2"])
def test_signals_stand_for_copies_too(run_python: Run, twin: str) -> None:
    done = run_python(
        """
import numpy as np, vkdispatch as vd
from tests.native.gates import Gate
data, other = vd.asbuffer(np.zeros(1, np.uint32)), vd.Buffer(1, vd.uint32)
with Gate(vd.get_context()._native) as gate:
    gate.hold(data)
    data.write_async(np.ones(1, np.uint32))
    event = other.write_async(np.ones(1, np.uint32))  # after the other copy, wherever copies are done
    signals = other.signals[0], vd.Signal()
    print([signal.try_wait() for signal in signals], event.done())
    print([signal.try_wait(False) for signal in signals], event.done())
for signal in signals: signal.wait()
print([signal.try_wait() for signal in signals], event.done())
""",
        VKDISPATCH_FORCE_TRANSFER_QUEUE=twin,
        **ENVIRONMENT,
    )
    expected = ["[False, False] False", "[True, True] False", "[True, True] True"]
    assert done.stdout.splitlines() == expected, done.stderr


@pytest.mark.parametrize("twin", ["0", "1", "2"])
def test_queue_of_a_call(run_python: Run, twin: str) -> None:
    done = run_python(
        """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *
vd.make_context(queue_counts=2)
@vd.shader("data.size")
def add(data: Buff[f32], step: Const[f32] = 1.0):
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] + step
@vd.shader("data.size")
def named(data: Buff[f32], queue_index: Const[f32]):
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] + queue_index
@vd.shader("data.size", check="bounds")
def checked(data: Buff[f32]):
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] + 1
data = vd.asbuffer(np.zeros(100, np.float32))
show = lambda: print(*(sorted(set(data.read(q).tolist())) for q in range(2)))
add(data, 1.0, queue_index=0); show()
add(data, step=2.0, queue_index=1); show()
add(data, queue_index=np.int64(1)); show()
add(data, 1.0, queue_index=None); show()
add(data, 1.0, exec_size=50, queue_index=0); show()
named(data, queue_index=10.0); show()
checked(data, queue_index=1); show()
before = sum(data.read(q)[99] for q in range(2))
for _ in range(4): add(data, 1.0, queue_index=-1)
print(sum(data.read(q)[99] for q in range(2)) - before)
for bad in (2, -2, 1.5, True, "0"):
    try: add(data, 1.0, queue_index=bad)
    except ValueError as error: print("queue_index" in str(error))
try: add(data, 1.0, queue_index=0, graph=vd.CommandGraph())
except ValueError as error: print("graph.submit" in str(error))
# one queue waits for the other
event = None
for i in range(20):
    data.write_async(np.full(100, i, np.float32), index=0)
    add(data, 0.5, queue_index=0)
    data.copy_between_queues(0, 1)
    future = data.read_async(1)
    vd.wait_event(vd.record_event(1), 0)
    assert set(future.result().tolist()) == {i + 0.5}
""",
        VKDISPATCH_FORCE_TRANSFER_QUEUE=twin,
    )
    assert done.returncode == 0, done.stderr
    expected = ["[1.0] [0.0]", "[1.0] [2.0]", "[1.0] [3.0]", "[2.0] [4.0]", "[2.0, 3.0] [4.0]"]
    expected += ["[12.0, 13.0] [14.0]", "[12.0, 13.0] [15.0]", "4.0", *["True"] * 6]
    assert done.stdout.splitlines() == expected


def test_failure_reaches_every_waiting_thread() -> None:
    class Engine:
        calls = 0

        def wait_until(self, points: object, timeout: float | None, alone: bool, tells: bool) -> bool:
            """Wait as an engine does: a failure is told to whoever waits."""
            assert alone  # what failed before is none of its business
            self.calls += 1
            if self.calls >= 2:
                raise vd.VulkanError("vkQueueSubmit: out of memory")
            return False

    class Broken:
        _native: Any = Engine()
        closed = False

    future = ReadFuture(Broken(), [(0, 1)], np.zeros(3, np.float32), None)  # type: ignore[arg-type]
    reached = threading.Event()
    future.add_done_callback(lambda _: reached.set())
    assert reached.wait(100)
    assert "failed" in repr(future)
    for _ in range(2):
        for ask in (future.result, future.wait, future.done):
            with pytest.raises(vd.VulkanError, match="out of memory"):
                ask()


def test_threads_get_the_same_array() -> None:
    made = []

    def slow(array: Any) -> Any:
        time.sleep(0.02)
        made.append(array + 1)
        return made[-1]

    future = ReadFuture(vd.get_context(), [], np.zeros(3, np.float32), slow)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: future.result(), range(4)))
    assert len(made) == 1 and all(result is made[0] for result in results)


def test_callbacks_without_a_free_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(event_module, "_watchers", weakref.WeakKeyDictionary())
    called = threading.Event()
    with Gate(vd.get_context()._native) as gate:
        gate.hold()
        event = vd.record_event()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="thread"):
                event.add_done_callback(lambda _: None)
        event.add_done_callback(lambda _: called.set())
    assert called.wait(100)


def test_fork_while_a_future_is_pending(run_python: Run) -> None:
    if not vd.get_devices()[0].is_cpu():
        pytest.skip("what drivers of GPUs do in a forked child that ends is theirs")
    done = run_python(
        """
import os, threading, numpy as np, vkdispatch as vd
from vkdispatch.base import synchronization as event
data = vd.asbuffer(np.zeros(10, np.float32))
held, over = threading.Event(), threading.Event()
def hold():
    with event._watchers_lock:
        held.set()
        over.wait()
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child:
    print(os.waitpid(child, 0)[1])
    over.set()
"""
    )
    assert done.stdout == "0\n", done.stderr
