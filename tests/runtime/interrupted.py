"""Programs that Ctrl-C reaches while they wait for a device that does not go on; tests run this script."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
import vkdispatch_native as native
from tests.native.gates import disable_forced_switches
from tests.runtime.holds import Hold
from vkdispatch.base import synchronization as events
from vkdispatch.base.context import destroy_context
from vkdispatch.codegen.abbreviations import Buff, Var, f32, u32

# After so long a wait that no interrupt ends is let go, and the test fails.
SAFETY_SECONDS = 60
# Of a scenario; of one that takes seconds there is one.
ROUNDS = 2
AHEAD = 65_536

Array = np.ndarray[Any, Any]
# To be called right before what waits: from there on the interrupt may come.
Begin = Callable[[], None]
Wait = Callable[[Begin], object]
Steps = Iterator[Wait | None]


@vd.shader("b.size")
def add_one(b: Buff[u32]) -> None:
    i = vc.global_invocation_id().x
    b[i] = b[i] + 1


@vd.shader("b.size")
def add(b: Buff[u32], amount: Var[u32]) -> None:
    i = vc.global_invocation_id().x
    b[i] = b[i] + amount


def zeros(count: int = 1000) -> Any:
    return vd.asbuffer(np.zeros(count, np.uint32))


def expect(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(found, wanted)


def wait_until_asleep(thread: int) -> None:
    """Wait until a thread sleeps in the system, where that can be seen, for a while at most.

    A signal that comes right before a sleep ends no sleep in Python itself, such as that of asyncio's loop.
    """
    pause = threading.Event()
    with contextlib.suppress(OSError):
        for _ in range(2000):
            if Path(f"/proc/self/task/{thread}/stat").read_text().rpartition(")")[2].split()[0] == "S":
                return
            pause.wait(0.001)


def interrupt(wait: Wait, hold: Hold) -> None:
    """Press Ctrl-C as soon as `wait` lets other threads run. It must end while the hold still stands."""
    begun, ended = threading.Event(), threading.Event()

    def press() -> None:
        begun.wait()
        wait_until_asleep(main)
        if ended.is_set():
            return
        os.kill(os.getpid(), signal.SIGINT)
        if not ended.wait(SAFETY_SECONDS):
            hold.open()

    main = threading.get_native_id()
    thread = threading.Thread(target=press)
    thread.start()
    came = False
    try:
        # The other thread runs where the wait gives Python's lock up, and not before.
        with disable_forced_switches():
            wait(begun.set)
            ended.set()  # in vain
    except KeyboardInterrupt:
        came = not hold.is_open()
    finally:
        ended.set()
        begun.set()
        thread.join()
    assert came, "it did not wait, or Ctrl-C did not end that"


def just(wait: Callable[[], object]) -> Wait:
    """Return what waits from its beginning on."""

    def begin_and_wait(begin: Begin) -> None:
        begin()
        wait()

    return begin_and_wait


# ---- waits: what stands before the first yield is done before the hold, what stands after the last behind it


def queue_wait_idle() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    yield just(vd.queue_wait_idle)
    expect(data.read(0), 1)


def event_wait() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    event = vd.record_event()
    yield just(event.wait)
    event.wait()
    assert event.done()
    expect(data.read(0), 1)


def event_wait_with_a_timeout() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    event = vd.record_event()
    yield just(lambda: event.wait(1e6))
    assert event.wait(1e6)
    expect(data.read(0), 1)


def event_awaited() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    future = data.read_async()

    def wait(begin: Begin) -> None:
        async def work() -> None:
            begin()
            await future

        asyncio.run(work())

    yield wait
    expect(future.result(), 1)


def signal_wait() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    done = data.signals[0]
    yield just(done.wait)
    done.wait()
    expect(data.read(0), 1)


def future_result() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    future = data.read_async()
    add_one(data)
    yield just(future.result)
    expect(future.result(), 1)
    expect(data.read(0), 2)


def buffer_read() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    yield just(lambda: data.read(0))
    expect(data.read(0), 1)


def buffer_read_of_a_part() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    yield just(lambda: data.read_range(10, 20, 0))
    expect(data.read_range(10, 20, 0), 1)


def large_read() -> Steps:
    data = vd.Buffer(16 << 20, u32)
    data.write(np.arange(16 << 20, dtype=np.uint32))
    yield None
    add_one(data)
    yield just(lambda: data.read(0))
    expect(data.read(0), np.arange(1, (16 << 20) + 1, dtype=np.uint32))


def mapped_write() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    # elsewhere a write takes its place in the queue, and need not wait
    yield just(lambda: data.write(np.full(1000, 7, np.uint32))) if data._native.host_mapped else None
    data.write(np.full(1000, 7, np.uint32))
    expect(data.read(0), 7)


def large_write() -> Steps:
    """Of 256 MiB: staged, it waits for room."""
    data = vd.Buffer(64 << 20, u32)
    values = np.arange(64 << 20, dtype=np.uint32)
    yield None
    add_one(data)
    yield just(lambda: data.write(values))
    data.write(values)
    add_one(data)
    expect(data.read(0), values + 1)


def pinned_write() -> Steps:
    data = vd.Buffer(1 << 20, u32)
    pinned = vd.empty_pinned((1 << 20,), np.uint32)
    pinned[:] = 3
    yield None
    add_one(data)

    def wait() -> None:
        for _ in range(AHEAD + 1000):
            data.write(pinned)

    yield just(wait)
    data.write(pinned)
    expect(data.read(0), 3)


def pinned_read() -> Steps:
    data = zeros()
    pinned = vd.empty_pinned((1000,), np.uint32)
    yield None
    add_one(data)
    yield just(lambda: data.read(0, out=pinned))
    data.read(0, out=pinned)
    expect(pinned, 1)


def image_read() -> Steps:
    image = vd.Image2D((64, 64), f32)
    values = np.random.default_rng(1).random((64, 64), np.float32)
    yield None
    image.write(values)
    yield just(lambda: image.read(0))
    expect(image.read(0).reshape(64, 64), values)


def image_writes() -> Steps:
    """Staged, they wait for room after some."""
    image = vd.Image2D((2048, 2048), f32)
    values = np.random.default_rng(1).random((2048, 2048), np.float32)
    yield None

    def wait() -> None:
        for _ in range(100):
            image.write(values)

    yield just(wait)
    image.write(values)
    expect(image.read(0).reshape(2048, 2048), values)


class FarAhead:
    """A wait: more launches than there is room for. `count` is how many have returned."""

    def __init__(self) -> None:
        self.data = zeros()
        add_one(self.data)
        self.count = 0

    def __call__(self, begin: Begin) -> None:
        for number in range(AHEAD + 10_000):
            if number == AHEAD - 10:
                begin()
            add_one(self.data)
            self.count += 1


def eager_launches_far_ahead() -> Steps:
    far_ahead = FarAhead()
    yield None
    yield far_ahead
    data, count = far_ahead.data, far_ahead.count
    assert count >= AHEAD - 10, count
    found = data.read(0)
    # the call that was interrupted took place, or it did not
    assert found[0] in (1 + count, 2 + count), (found[0], count)
    expect(found, found[0])


def eager_launches_of_two_threads() -> Steps:
    mine, others = zeros(), zeros()
    add_one(mine)
    yield None
    count = 0

    is_far = threading.Event()

    def launch() -> None:
        for number in range(AHEAD + 5000):
            if number == AHEAD - 1000:
                is_far.set()
            add_one(others)

    thread = threading.Thread(target=launch)

    def wait(begin: Begin) -> None:
        nonlocal count
        thread.start()
        is_far.wait()
        begin()
        for _ in range(10_000):
            add_one(mine)
            count += 1

    yield wait
    thread.join()  # whom nobody interrupted
    found = mine.read(0)
    assert found[0] in (1 + count, 2 + count), (found[0], count)
    expect(found, found[0])
    expect(others.read(0), AHEAD + 5000)


def graph_submits_far_ahead() -> Steps:
    data, graph = zeros(), vd.CommandGraph()
    for _ in range(10):
        add(data, graph.bind_var("amount"), graph=graph)
    yield None
    total = 0
    amounts: list[int] = []

    def wait(begin: Begin) -> None:
        nonlocal total, amounts
        for number in range(AHEAD // 1000 + 10):
            if number == AHEAD // 1000 - 1:
                begin()
            # others each time: the same again would be replayed, and take no room
            amounts = [number % 7 + place % 2 + 1 for place in range(100)]
            graph.set_var("amount", amounts)
            graph.submit(100)
            total += 10 * sum(amounts)
            amounts = []

    yield wait
    found = data.read(0)
    # the submit that was interrupted took place, or its first instances did, or none
    assert found[0] - total in [10 * amount for amount in accumulate(amounts, initial=0)], (found[0], total)
    expect(found, found[0])
    graph.set_var("amount", 1)
    graph.submit()
    expect(data.read(0), found + 10)


def graph_run() -> Steps:
    data, graph = zeros(), vd.CommandGraph()
    add_one(data, graph=graph)
    yield None
    yield just(lambda: graph.run(0))
    vd.queue_wait_idle()
    expect(data.read(0), 1)
    graph.run(0)
    expect(data.read(0), 2)


def kompute_eval() -> Steps:
    manager = kp.Manager(context=vd.get_context())
    tensor = manager.tensor([1, 2, 3])
    sequence = manager.sequence()
    sequence.record(kp.OpSyncDevice([tensor])).record(kp.OpSyncLocal([tensor]))
    yield None
    yield just(sequence.eval)
    vd.queue_wait_idle()
    tensor.data()[:] = [4, 5, 6]
    sequence.eval()
    expect(tensor.data(), [4, 5, 6])
    manager.destroy()


def kompute_eval_await() -> Steps:
    manager = kp.Manager(context=vd.get_context())
    tensor = manager.tensor([1, 2, 3])
    sequence = manager.sequence()
    yield None
    sequence.eval_async(kp.OpSyncDevice([tensor]))
    yield just(sequence.eval_await)
    assert sequence.is_running()
    sequence.eval_await()
    assert not sequence.is_running()
    manager.destroy()


def kompute_destroy() -> Steps:
    manager = kp.Manager(context=vd.get_context())
    sequence, tensor = manager.sequence(), manager.tensor([1, 2, 3])
    yield None
    sequence.eval_async(kp.OpSyncDevice([tensor]))
    yield just(manager.destroy)
    assert not sequence.is_init() and not tensor.is_init()


def end_of_a_profile() -> Steps:
    data, profile = zeros(), vd.profile()
    profile.__enter__()
    yield None
    add_one(data)
    yield just(lambda: profile.__exit__(None, None, None))
    with vd.profile() as again:
        add_one(data)
    assert len(again.records) == 1
    expect(data.read(0), 2)


def size_of_a_result() -> Steps:
    """A function waits for how many there are."""
    values = np.arange(1000, dtype=np.int32) % 7
    data = vd.asbuffer(values)
    vd.unique(data)
    yield None
    yield just(lambda: vd.unique(data))
    expect(vd.unique(data).read(0), np.arange(7))


_ORDER = """
set_argnames("x", "y")
[glsl]
uint i = gl_GlobalInvocationID.x;
if (i < 64u) y(i) = x(i) * 2;
"""


def _order(end: Callable[[Any], object]) -> Steps:
    from vkdispatch.orders import Accel, Order

    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    accel = Accel(x, Order(_ORDER), y, kind="glsl")
    accel.run(64)
    accel.stop()
    y[:] = 0
    yield None
    accel.run(64)
    yield just(lambda: end(accel))
    accel.stop()
    expect(y, 2 * x)


order_wait = partial(_order, lambda accel: accel.wait(1 if 1 in accel._runs._runs else 0))
order_stop = partial(_order, lambda accel: accel.stop())


# ---- with several queues


def other_queue_read() -> Steps:
    """Queues of one device may be one for Vulkan."""
    data = zeros()
    yield None
    add_one(data, queue_index=0)
    data.copy_between_queues(0, 1)
    yield just(lambda: data.read(1))
    expect(data.read(), [[1] * 1000] * 2)


def copy_between_queues() -> Steps:
    """Between devices, too, the copy waits for the queue that is held, and the call does not."""
    data = zeros(1 << 20)
    yield None
    add_one(data, queue_index=0)
    data.copy_between_queues(0, 1)
    yield just(lambda: data.read(1))
    expect(data.read(), np.ones((2, 1 << 20)))


def shared_memory() -> Steps:
    """What one queue writes, another one reads."""
    manager = kp.Manager(context=vd.get_context())
    tensor = manager.tensor([1, 2, 3])
    yield None
    manager.sequence(0).eval_async(kp.OpSyncDevice([tensor]))
    second = manager.sequence(1)
    yield just(lambda: second.eval(kp.OpSyncLocal([tensor])))
    vd.queue_wait_idle()
    second.eval()
    expect(tensor.data(), [1, 2, 3])
    manager.destroy()


def all_queues_idle() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    yield just(vd.queue_wait_idle)
    expect(data.read(), np.ones((2, 1000)))


def event_of_all_queues() -> Steps:
    data = zeros()
    yield None
    add_one(data)
    event = vd.record_event()
    yield just(event.wait)
    event.wait()
    expect(data.read(), np.ones((2, 1000)))


def all_queues_far_ahead() -> Steps:
    far_ahead = FarAhead()
    yield None
    yield far_ahead
    data, count = far_ahead.data, far_ahead.count
    for found in data.read():
        assert found[0] in (1 + count, 2 + count), (found[0], count)
        expect(found, found[0])


SEVERAL_QUEUES: tuple[Callable[[], Steps], ...] = (
    other_queue_read,
    copy_between_queues,
    shared_memory,
    all_queues_idle,
    event_of_all_queues,
    all_queues_far_ahead,
)
ONE_QUEUE: tuple[Callable[[], Steps], ...] = (
    queue_wait_idle,
    event_wait,
    event_wait_with_a_timeout,
    event_awaited,
    signal_wait,
    future_result,
    buffer_read,
    buffer_read_of_a_part,
    large_read,
    mapped_write,
    pinned_write,
    pinned_read,
    image_read,
    image_writes,
    eager_launches_far_ahead,
    eager_launches_of_two_threads,
    graph_submits_far_ahead,
    graph_run,
    kompute_eval,
    kompute_eval_await,
    kompute_destroy,
    end_of_a_profile,
    size_of_a_result,
    order_wait,
    order_stop,
)
STAGED: tuple[Callable[[], Steps], ...] = (
    future_result,
    buffer_read,
    buffer_read_of_a_part,
    large_read,
    large_write,
    pinned_write,
    pinned_read,
    image_read,
    image_writes,
    kompute_eval,
    size_of_a_result,
)
# Those that fill a queue.
SLOW = (
    eager_launches_far_ahead,
    eager_launches_of_two_threads,
    graph_submits_far_ahead,
    all_queues_far_ahead,
)
NAMES = {step: name for name, step in list(globals().items()) if step in ONE_QUEUE + STAGED + SEVERAL_QUEUES}
SEVERAL_DEVICES: tuple[Callable[[], Steps], ...] = (
    copy_between_queues,
    all_queues_idle,
    event_of_all_queues,
    all_queues_far_ahead,
)
GROUPS = {
    "one_queue": ONE_QUEUE,
    "staged": STAGED,
    "several_queues": SEVERAL_QUEUES,
    "several_devices": SEVERAL_DEVICES,
}


def perform(scenario: Callable[[], Steps]) -> None:
    """Go through a scenario once."""
    steps = scenario()
    assert next(steps) is None
    context = vd.get_context()
    hold = Hold(context)
    with hold:
        wait = next(steps)
        if wait is not None:
            interrupt(wait, hold)
    vd.queue_wait_idle()
    assert next(steps, "the end") == "the end"
    data = zeros()
    add_one(data)
    expect(data.read(), np.ones((context.queue_count, 1000)))
    hold.destroy()


def end_callbacks() -> None:
    """Wait for the threads that call callbacks of events. They release an event after its callbacks."""
    watchers = list(events._watchers.values())
    events._watchers.clear()
    for watcher in watchers:
        watcher.stop()
        if watcher._thread is not None:
            watcher._thread.join()


def objects() -> dict[str, int]:
    """Return how many there are of what might leak."""
    vd.queue_wait_idle()
    end_callbacks()
    gc.collect()
    counts = vd.get_context()._native.statistics()
    kept = ("live_objects", "waiting_frees", "pinned_blocks")
    # Our own stay for some seconds.
    threads = [thread for thread in threading.enumerate() if not thread.name.startswith("vkdispatch")]
    return {name: counts[name] for name in kept} | {"threads": len(threads)}


def check(scenario: Callable[[], Steps]) -> str:
    """Go through a scenario several times, and say what is wrong, or ok."""
    found = []
    try:
        if scenario in SLOW:
            for kernel in (add_one, partial(add, amount=1)):
                kernel(zeros())
            found.append(objects())
        for _ in range(1 if scenario in SLOW else ROUNDS):
            perform(scenario)
            found.append(objects())
    except BaseException as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return "ok" if found[-1] == found[-2] else f"it leaks: {found}"


def waits(*names: str) -> None:
    """Go through the scenarios of a group, or those with these names."""
    if names[0] == "several_queues":
        vd.make_context(queue_counts=2)
    elif names[0] == "several_devices":
        vd.make_context(multi_device=True, use_cpu=True)
    chosen = GROUPS.get(names[0]) or [step for step, name in NAMES.items() if name in names]
    for scenario in chosen:
        print(f"{NAMES[scenario]}: ", end="", flush=True)
        print(check(scenario), flush=True)
    # Where a queue stands still for 10 seconds the validation layer takes that for a fault of its own.
    messages = [
        text
        for severity, text in native.take_messages()
        if severity >= 0x100 and "VkSemaphore-state-timeout" not in text
    ]
    print(f"messages: {messages}")


# ---- ends


def works() -> None:
    data = zeros()
    for _ in range(3):
        add_one(data)
    expect(data.read(), np.full((vd.get_context().queue_count, 1000), 3))


def _hold_with_work(context: vd.Context) -> tuple[Hold, Any]:
    works()
    data = zeros()
    hold = Hold(context)
    add_one(data)
    future = data.read_async()
    image = vd.Image2D((64, 64), f32)
    image.write(np.zeros((64, 64), np.float32))
    return hold, (data, future, image, vd.record_event())


def close(how: str) -> None:
    """Interrupt a close; the device goes on after that (`opened`), or never."""
    context = vd.make_context(queue_counts=2) if how == "two_queues" else vd.get_context()
    hold, things = _hold_with_work(context)
    interrupt(just(destroy_context if how == "destroyed" else context.close), hold)
    assert context.closed and not context.usable
    data, future, _, event = things
    for use in (lambda: data.read(0), future.result, event.wait, context.make_current):
        try:
            use()
        except vd.VkDispatchError:
            continue
        raise AssertionError(f"{use} did not raise")
    context.close()
    assert vd.get_context() is not context
    works()
    if how == "opened":
        hold.open()
        for _ in range(20):
            works()
    if how == "dropped":
        del context, hold, things, data, future, event, use
        gc.collect()
        works()
    print("good", flush=True)


def drop() -> None:
    """Drop the last reference to a context with work."""
    context = vd.Context([0], [[0]])
    with vd.use_context(context):
        hold, things = _hold_with_work(context)
    del things

    def forget() -> None:
        nonlocal context
        del context
        gc.collect()

    interrupt(just(forget), hold)
    works()
    print("good", flush=True)


def _press_when(is_time: Callable[[], bool]) -> None:
    """Press Ctrl-C once it is time, on a thread that goes on until the interpreter has ended."""
    pause, main = threading.Event(), threading.get_native_id()

    def press() -> None:
        while not is_time():
            pause.wait(0.001)
        wait_until_asleep(main)
        print("pressed", flush=True)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()


def _is_ending() -> bool:
    """Whether the main thread is in the module at the end of the interpreter: it has no frame of Python."""
    return threading.main_thread().ident not in sys._current_frames()


_last: Any = None


def end(how: str) -> None:
    """Let the program end while the device does not go on, and interrupt that."""
    global _last
    own = how == "own"
    context = vd.Context([0], [[0]]) if own else vd.get_context()
    with vd.use_context(context):
        hold, things = _hold_with_work(context)
    _last = (context, hold, things)
    if how == "after_a_close":
        interrupt(just(context.close), hold)
    elif how in ("after_a_wait", "after_a_message"):
        try:
            interrupt(just(vd.queue_wait_idle), hold)
        finally:
            _press_when(_is_ending if how == "after_a_wait" else _hear("press Ctrl-C to leave now"))
    elif own:
        _press_often()
    else:
        _press_when(_is_ending)
    print("good", flush=True)
    if how == "after_a_wait":
        raise KeyboardInterrupt


def _hear(words: str) -> Callable[[], bool]:
    """Return what tells whether words were written to `sys.stderr`."""
    heard, write = threading.Event(), sys.stderr.write

    def listen(text: str) -> int:
        if words in text:
            heard.set()
        return write(text)

    sys.stderr.write = listen  # type: ignore[method-assign]
    return heard.is_set


def _press_often() -> None:
    """Press Ctrl-C at the end of the interpreter, over and over: it does not show where the module waits."""
    import atexit

    ending = threading.Event()
    atexit.register(ending.set)

    def press() -> None:
        ending.wait()
        while True:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.3)

    threading.Thread(target=press, daemon=True).start()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without
    globals()[sys.argv[1]](*sys.argv[2:])
