"""Contexts end when their last user is gone, whatever ran in them; a closed one is referred to by nobody."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
import vkdispatch_native as native
from vkdispatch import vkfft
from vkdispatch.codegen.abreviations import Buff, Const, f32
from vkdispatch.orders import Accel, Order
from vkdispatch.shader import launching as autotune

RunPython = Callable[..., subprocess.CompletedProcess[str]]
NUMBERS = np.random.default_rng(0).random(70_000, np.float32)
SPECTRUM = NUMBERS[:4096].astype(np.complex64)


@vd.shader("b.size")
def add(b: Buff[f32], amount: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    b[i] = b[i] + amount


@vd.shader("b.size")
def look_up(b: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    b[i] = vc.constant_array(NUMBERS[:16])[i % 16]


@vd.shader("b.size")
def show(b: Buff[f32]) -> None:
    vc.print(b[0])


@vd.shader("b.size", check=True)
def checked(b: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    b[i] = b[i] + 1


@vd.shader("b.size")
def tuned(b: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    b[i] = b[i] * 2


raw = vd.glsl_kernel(
    """#version 450
    layout(local_size_x = 64) in;
    layout(binding = 0) buffer B { float b[]; };
    void main() { if (gl_GlobalInvocationID.x < b.length()) b[gl_GlobalInvocationID.x] += 1.0; }""",
    [("b", Buff[f32])],
    exec_size="b.size",
)


class Scaler:
    """A class with a kernel that names its instance in the launch size."""

    def __init__(self) -> None:
        self.count = 64

    @vd.shader("self.count")
    def scale(self, b: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        b[i] = b[i] * self.count


@vd.map
def squared(b: Buff[f32]) -> f32:
    value = b[vd.mapped_index()]
    return value * value


@vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
def sum_of_squares(b: Buff[f32]) -> f32:
    value = b[vd.mapped_index()]
    return value * value


scaler = Scaler()
plan = vkfft.VkFFTPlan((64, 64))


def kernels() -> None:
    b = vd.asbuffer(NUMBERS)
    for _ in range(2):
        add(b, 1.0)
        raw(b)
        scaler.scale(b)
    np.testing.assert_array_equal(b.read(0)[64:], NUMBERS[64:] + 1 + 1 + 1 + 1)
    look_up(b)
    np.testing.assert_array_equal(b.read(0), NUMBERS[np.arange(b.size) % 16])


def observed_kernels() -> None:
    b = vd.asbuffer(NUMBERS[:2])
    show(b)
    checked(b)
    np.testing.assert_array_equal(b.read(0), NUMBERS[:2] + 1)


def measured_kernels() -> None:
    b = vd.asbuffer(NUMBERS)
    tuned.autotune(b)
    tuned(b)
    with vd.profile():
        tuned(b)


def recordings() -> None:
    b, graph = vd.asbuffer(NUMBERS), vd.CommandGraph()
    add(b, 2.0, graph=graph)
    add(b, 3.0, graph=graph)
    assert graph.optimize() == 1
    graph.submit()
    vd.set_global_graph(graph)
    try:
        checked(b)
        vd.sum(b)
    finally:
        vd.set_global_graph(None)
    graph.submit()
    vd.global_graph()


def reductions() -> None:
    b = vd.asbuffer(NUMBERS)
    vd.sum(b)
    vd.std(b)
    vd.argmax(b)
    vd.sum(squared(b))
    sum_of_squares(vd.asbuffer(NUMBERS[:10]))
    assert sum_of_squares(b).read(0)[0] == pytest.approx((NUMBERS.astype(float) ** 2).sum(), rel=1e-4)


def scans_and_sorts() -> None:
    b = vd.asbuffer(NUMBERS)
    vd.cumsum(b)
    vd.cummax(vd.asbuffer(NUMBERS.reshape(700, 100)), axis=0)
    np.testing.assert_array_equal(vd.sort(b).read(0), np.sort(NUMBERS))
    vd.argsort(b)


def selections() -> None:
    b = vd.asbuffer(NUMBERS)
    vd.topk(b, 5)
    vd.unique(b)
    vd.histogram(b)
    vd.bincount(vd.asbuffer(np.arange(100, dtype=np.int32)))


def rearrangements() -> None:
    b = vd.asbuffer(NUMBERS.reshape(700, 100))
    vd.transpose(b)
    vd.take(b, vd.asbuffer(np.arange(5, dtype=np.int32)))
    vd.roll(b, 3)
    vd.where(vd.asbuffer(NUMBERS > 0.5), vd.asbuffer(NUMBERS), 0.0)


def products() -> None:
    a, b = NUMBERS[:40_000].reshape(10, 4000), NUMBERS[:40_000].reshape(4000, 10)
    np.testing.assert_allclose(vd.matmul(vd.asbuffer(a), vd.asbuffer(b)).read(0), a @ b, rtol=1e-4)


def draws() -> None:
    generator = vd.random.Generator(1)
    generator.random(1000)
    generator.normal(size=1001)
    generator.permutation(100)


def transforms() -> None:
    b = vd.asbuffer(SPECTRUM)
    for _ in range(2):
        vd.fft.fft(b)
        vd.fft.ifft(b)
    np.testing.assert_allclose(b.read(0), SPECTRUM, atol=1e-4)
    vd.fft.fft(vd.asbuffer(np.ones(1 << 17, np.complex64)))  # in several passes, with scratch memory
    vd.fft.rfft(vd.asrfftbuffer(NUMBERS[:64]))
    plane = vd.asbuffer(SPECTRUM.reshape(64, 64))
    vd.fft.convolve2D(plane, vd.asbuffer(SPECTRUM.reshape(64, 64)))


def transforms_of_vkfft() -> None:
    b = vd.asbuffer(SPECTRUM.reshape(64, 64))
    vkfft.fft(b)
    plan.record_forward(None, b)


def transfers() -> None:
    b = vd.asbuffer(NUMBERS)
    pinned = vd.empty_pinned(NUMBERS.shape, np.float32)
    pinned[:] = 1
    b.write_async(pinned).wait()
    np.testing.assert_array_equal(b.read_async().result(), 1)
    vd.record_event().wait()
    image = vd.Image2D((16, 16), f32)
    image.write(np.zeros((16, 16), np.float32))
    image.read(0)


def kompute_sequences() -> None:
    manager = kp.Manager()
    a, b = manager.tensor([1.0, 2.0]), manager.tensor([0.0, 0.0])
    out = manager.tensor([0.0, 0.0])
    operations = [kp.OpSyncDevice([a]), kp.OpCopy([a, b]), kp.OpMult([a, b, out], manager.algorithm([], b""))]
    sequence = manager.sequence()
    for operation in operations:
        sequence.record(operation)
    sequence.record(kp.OpSyncLocal([out])).eval()
    assert out.data().tolist() == [1.0, 4.0]


ORDER = Order("""
set_argnames("x", "y")
[vkdispatch]
i = vc.global_invocation_id().x
if i < x.size:
    y[i] = x[i] * 2
[glsl]
uint i = gl_GlobalInvocationID.x;
if (i < 64u) y(i) = x(i) * 2;
""")


def orders() -> None:
    for kind in ("vkdispatch", "glsl"):
        y = np.zeros(64, np.float32)
        with Accel(NUMBERS[:64], ORDER, y, kind=kind) as accel:
            accel.run(64)
        np.testing.assert_array_equal(y, NUMBERS[:64] * 2)


USES = (
    kernels,
    observed_kernels,
    measured_kernels,
    recordings,
    reductions,
    scans_and_sorts,
    selections,
    rearrangements,
    products,
    draws,
    transforms,
    transforms_of_vkfft,
    transfers,
    kompute_sequences,
    orders,
)


def work_in_a_context(use: Callable[[], None], *, close: bool = False) -> Callable[[], list[Any]]:
    """Use a new context, and return what tells whether it, or what keeps its device, is still there."""
    context = vd.Context([0], [[0]])
    weak = (weakref.ref(context), weakref.ref(context._engine))
    with vd.use_context(context):
        use()
    if close:
        context.close()
    return lambda: [item for each in weak if (item := each()) is not None]


@pytest.fixture(autouse=True)
def _few_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotune, "_SECONDS", 0.0)


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_dropped_context_ends(use: Callable[[], None]) -> None:
    for _ in range(2):  # what is remembered of the first must not hold the second either
        left = work_in_a_context(use)
        gc.collect()
        assert left() == []


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_closed_context_needs_no_collector(use: Callable[[], None]) -> None:
    use()  # in the global context: modules that are imported late leave garbage
    gc.collect()
    gc.disable()
    try:
        assert work_in_a_context(use, close=True)() == []
    finally:
        gc.enable()


def test_kernels_go_on_in_other_contexts() -> None:
    for _ in range(3):
        work_in_a_context(kernels)
        gc.collect()
        kernels()
        transforms()
        reductions()


@pytest.mark.parametrize("kept", ["buffer", "graph", "event", "future", "generator"])
def test_objects_of_users_keep_their_context_alive(kept: str) -> None:
    context = vd.Context([0], [[0]])
    weak = weakref.ref(context)
    with vd.use_context(context):
        b, graph = vd.asbuffer(NUMBERS), vd.CommandGraph()
        add(b, 1.0)
        add(b, 1.0, graph=graph)
        things: dict[str, Any] = {"buffer": b, "graph": graph, "event": vd.record_event()}
        things |= {"future": b.read_async(), "generator": (row for row in [b])}
    held = things[kept]
    del context, b, graph, things
    gc.collect()
    alive = weak()
    assert alive is not None and alive.usable
    if kept == "graph":
        held.submit()
    elif kept == "buffer":
        add(held, 1.0)
        np.testing.assert_array_equal(held.read(0), NUMBERS + 1 + 1)
    elif kept == "future":
        np.testing.assert_array_equal(held.result(), NUMBERS + 1)
    elif kept == "event":
        held.wait()
    del held, alive
    gc.collect()
    assert weak() is None


def test_a_kernel_forgets_plans_of_a_dropped_context() -> None:
    @vd.shader("b.size")
    def local(b: Buff[f32]) -> None:
        b[vc.global_invocation_id().x] = 1.0

    context = vd.Context([0], [[0]])
    local(vd.Buffer(8, f32, context=context))
    assert local.ready and local.plan is not None and local.plan.context is context
    del context
    gc.collect()
    assert not local.ready and local.plan is None and local.source is None
    b = vd.Buffer(8, f32)
    local(b)
    assert local.ready and (b.read(0) == 1).all()


def test_a_dropped_kernel_leaves_nothing_in_its_context() -> None:
    def run() -> weakref.ref[Any]:
        @vd.shader("b.size")
        def local(b: Buff[f32]) -> None:
            b[vc.global_invocation_id().x] = vc.constant_array(NUMBERS[:8])[0]

        local(vd.Buffer(8, f32))
        return weakref.ref(local.plan)

    gc.collect()
    before = len(vd.get_context()._states)
    plan = run()
    gc.collect()
    assert plan() is None and len(vd.get_context()._states) <= before


def test_method_kernels_are_built_once_for_a_context() -> None:
    b = vd.asbuffer(NUMBERS[:64])
    scaler.scale(b)
    plan = scaler.scale.plan
    scaler.scale(b)
    assert plan is not None and scaler.scale.plan is plan


def test_a_context_may_end_in_any_thread_with_work_in_flight() -> None:
    done: list[weakref.ref[Any]] = []

    def launch_much() -> None:
        b = vd.asbuffer(np.zeros(1 << 18, np.float32))
        for _ in range(50):
            add(b, 1.0)
        vd.sum(b)

    def work() -> None:
        done.append(work_in_a_context(launch_much))
        gc.collect()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    launch_much()
    for thread in threads:
        thread.join()
    gc.collect()
    assert len(done) == 4 and not any(left() for left in done)


def test_scratch_memory_is_freed_with_its_thread() -> None:
    context = vd.Context([0], [[0]])
    buffers: list[Any] = []

    def work() -> None:
        with vd.use_context(context):
            transforms()
            buffers.extend(map(weakref.ref, (vd.global_graph(), *context.handles_dict.values())))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    with vd.use_context(context):
        assert buffers[0]() is None and not any(isinstance(each(), vd.CommandGraph) for each in buffers)
    context.close()


def test_awaited_reads_hold_no_context() -> None:
    async def read() -> None:
        b = vd.asbuffer(NUMBERS)
        add(b, 1.0)
        np.testing.assert_array_equal(await b.read_async(), NUMBERS + 1)

    left = work_in_a_context(lambda: asyncio.run(read()))
    for thread in threading.enumerate():
        if thread.name == "vkdispatch events":
            thread.join()  # it looks at what it watched until it sleeps
    gc.collect()
    assert left() == []


_MANY = """
import ctypes, gc, os, sys
sys.path.insert(0, sys.argv[1])
import test_context_lifetime as uses

# malloc keeps some freed memory; how much varies by 100 MB between runs.
trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)

def resident():
    trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def round():
    for use in (uses.kernels, uses.reductions, uses.scans_and_sorts, uses.transforms, uses.draws):
        uses.work_in_a_context(use)
        gc.collect()

for _ in range(3):
    round()
threads, memory = len(os.listdir("/proc/self/task")), resident()
for _ in range(5):
    round()
assert len(os.listdir("/proc/self/task")) <= threads, (threads, os.listdir("/proc/self/task"))
# 25 contexts of 5 MB each would be 125 MB
after = resident()
assert after - memory < 50 << 20, (memory, after)
print("done")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_thread_and_memory_counts_do_not_grow(run_python: RunPython) -> None:
    result = run_python(_MANY, str(Path(__file__).parent), timeout=600)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "done"


_AT_THE_END = """
import sys
sys.path.insert(0, sys.argv[1])
import test_context_lifetime as uses
import vkdispatch as vd

kept = []
def use():
    uses.kernels()
    kept.append(vd.asbuffer(uses.NUMBERS))
    uses.add(kept[-1], 1.0)
for _ in range(3):
    uses.work_in_a_context(use)
    uses.work_in_a_context(uses.transforms)
kept.append(kept)  # a circle that the interpreter takes apart at its very end
print("done")
"""


def test_contexts_may_be_open_at_the_exit(run_python: RunPython) -> None:
    result = run_python(_AT_THE_END, str(Path(__file__).parent))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "done"


RACES = """
import random, sys, threading
import numpy as np
import vkdispatch as vd, vkdispatch.codegen as vc, vkdispatch.numpy as vnp
from vkdispatch.base.context import destroy_context
from tests.runtime.test_context_lifetime import scale, scale_checked
sys.setswitchinterval(1e-5)
ones, chances = np.ones(64, np.float32), random.Random(0)
def record(it):
    graph = vd.CommandGraph()
    scale(it.buffer, 1.0, graph=graph)
    vd.cumsum(it.buffer, graph=graph)
    graph.submit()
def view(it):
    it.buffer.view(vd.uint32).read(0)
    it.view.read(0)
def transform(it):
    data = vd.asbuffer(ones.astype(np.complex64))
    vd.fft.fft(data)
    vd.vkfft.fft(data)
def pinned(it):
    block = vd.empty_pinned(64, np.float32)
    it.buffer.read_async().result()
    it.buffer.write_async(block).wait()
uses = [
    record, view, transform, pinned,
    lambda it: it.buffer.read(0), lambda it: it.buffer.write(ones), lambda it: it.image.read(),
    lambda it: scale(it.buffer, 1.0), lambda it: scale(it.buffer, alpha=1.0),
    lambda it: scale_checked(it.buffer, 1.0), lambda it: repr((it.buffer, it.graph, it.buffer.context)),
    lambda it: vd.sum(it.buffer).read(0), lambda it: vd.sort(it.buffer).read(0), lambda it: it.graph.submit(),
    lambda it: (vnp.asarray(it.buffer) + 1).numpy(),
    lambda it: vd.queue_wait_idle(), lambda it: vd.record_event(0).wait(), lambda it: np.asarray(it.buffer),
    lambda it: vd.random.Generator(1).permutation(50).read(0), lambda it: it.buffer.__copy__().read(0),
    lambda it: vd.share(it.buffer), lambda it: vd.Buffer(64, vd.float32).destroy(),
]
class It:
    def __init__(self):
        self.buffer, self.graph = vd.asbuffer(ones), vd.CommandGraph()
        self.view, self.image = self.buffer.view(vd.int32), vd.Image2D((8, 8), vd.float32, 1)
        scale(self.buffer, 1.0, graph=self.graph)
foreign = []
def use_often(use, it, stop):
    while not stop.is_set():
        try: use(it)
        except vd.VkDispatchError as error:
            if any(words in str(error) for words in ("belongs to another context", "driver rejected")):
                foreign.append(error)
            return
        except BaseException as error:
            foreign.append(error)
            return
for round in range(ROUNDS):
    it, stop = It(), threading.Event()
    threads = []
    for use in chances.sample(uses, 4):
        threads.append(threading.Thread(target=use_often, args=(use, it, stop), daemon=True))
        threads[-1].start()
    threading.Event().wait(chances.random() * 0.01)
    end = chances.choice([destroy_context, vd.get_context().close, it.buffer.destroy, it.view.destroy])
    try: end()
    except vd.VkDispatchError: pass
    it.graph.destroy()
    it.image.destroy()
    stop.set()
    for thread in threads: thread.join()
print(foreign or "good")
"""


@vd.shader("data.size")
def scale(data: Buff[f32], alpha: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * alpha


@vd.shader("data.size", check=True)
def scale_checked(data: Buff[f32], alpha: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * alpha


def test_what_ends_while_threads_use_it_raises_errors_of_ours(run_python: RunPython) -> None:
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    done = run_python(RACES.replace("ROUNDS", "10"), PYTHONPATH=paths, timeout=600)
    assert (done.stdout, done.returncode) == ("good\n", 0), done.stdout + done.stderr


def test_objects_that_were_destroyed_below_raise_errors_of_ours() -> None:
    """As for a thread that has looked at the object before another one destroyed it."""
    with vd.use_context(vd.Context([0], [[0]])) as context:
        buffer, graph = vd.asbuffer(np.ones(4, np.float32)), vd.CommandGraph()
        scale(buffer, 1.0, graph=graph)
        memory, commands, (plan, *_) = buffer._native, graph._native, graph.parents.values()
        graph.destroy()
        buffer.destroy()
        plan.destroy()
        for use, what in (
            (lambda: memory.read_into(0, bytearray(16)), "the buffer was destroyed"),
            (lambda: memory.write(0, bytes(16)), "the buffer was destroyed"),
            (lambda: commands.submit(0, b"", 1), "the command list was destroyed"),
            (lambda: plan._native.id, "the compute plan was destroyed"),
        ):
            with pytest.raises(vd.UsageError, match=what):
                use()
        context.close()
        for use in (lambda: context._native.wait_idle(), lambda: native.Buffer(context._native, 4)):
            with pytest.raises(vd.UsageError, match="the context was closed"):
                use()
