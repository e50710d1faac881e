"""Small programs for the fault injector, of every kind that there is; each has its truth from NumPy.

A workload takes a `Trial` and gives it its steps. Every number that it reads is checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, SImg2, Var, f32, u32, v2, v4

from .trial import Item, Trial

Array = np.ndarray[Any, Any]

SIZE = 1000
_random = np.random.default_rng(0)
X = _random.integers(-100, 100, SIZE).astype(np.float32)
Y = _random.integers(-100, 100, SIZE).astype(np.float32)


@dataclass(frozen=True)
class Workload:
    """A program, and how its context and process have to be.

    Attributes
    ----------
    run
        Gives a trial its steps.
    environment
        Variables that are set before the context is made.
    context
        Arguments of `vd.make_context`.
    """

    run: Callable[[Trial], None]
    environment: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)


@vd.shader("y.size")
def saxpy(y: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    y[i] = a * x[i] + y[i]


@vd.shader("y.size")
def shift(y: Buff[f32], a: Var[f32]) -> None:
    i = vc.global_invocation_id().x
    y[i] = y[i] + a


@vd.shader("out.size")
def fill(out: Buff[u32], first: Const[u32]) -> None:
    i = vc.global_invocation_id().x
    out[i] = first + i


@vd.shader("out.size")
def hash_often(out: Buff[u32], rounds: Const[u32]) -> None:
    i = vc.global_invocation_id().x
    value = out[i].to_register()
    step = vc.new_uint_register(0)
    with vc.while_block(step < rounds):
        value[:] = value * 1664525 + 1013904223
        step[:] = step + 1
    out[i] = value


@vd.shader("out.size")
def sample(out: Buff[v4], image: Img2[f32], at: Buff[v2], level: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    out[i] = image.sample(at[i], level)


TABLE = np.arange(SIZE, dtype=np.float32) * 3 + 1


@vd.shader("out.size")
def look_up(out: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    out[i] = vc.constant_array(TABLE)[i]


@vd.shader("out.size", check=True)
def square_checked(out: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    out[i] = out[i] * out[i]


@vd.shader(exec_size=(8, 16, 1))
def brighten(image: SImg2[v4]) -> None:
    at = vc.global_invocation_id().xy
    image[at] = image[at] + 1.0


def read(buffer: Any) -> Array:
    """Return what the first queue has."""
    return np.asarray(buffer.read(0))


def read_async(buffer: Any) -> Any:
    return buffer.read_async()


def result(future: Any) -> Array:
    return np.asarray(future.result())


def write(buffer: Any, data: Array) -> None:
    buffer.write(data)


def eager(t: Trial) -> None:
    """Kernels as called, on data that is written and read in between."""
    x, y = t.make("x", vd.asbuffer, X), t.make("y", vd.asbuffer, Y)
    other = t.make("other", vd.asbuffer, Y)
    expected, also = Y.copy(), Y.copy()
    for step in range(3):
        for a in (1.0, 2.0):
            t.do(saxpy, y, x, a, writes=[y])
            expected = expected + np.float32(a) * X
        t.do(shift, other, 3.0, writes=[other])
        also = also + np.float32(3)
        t.check(y, read, expected)
        if step == 1:
            t.do(write, y, X, anew=[y])
            expected = X.copy()
    t.do(vd.queue_wait_idle)
    t.check(other, read, also)
    t.check(y, read, expected)
    t.check(x, read, X)


def several_readers(t: Trial) -> None:
    """Work that is only looked at in the end, in several ways: who comes second is told, too."""
    names = [f"b{i}" for i in range(5)]
    buffers = [t.make(name, vd.asbuffer, X + i) for i, name in enumerate(names)]
    for _ in range(2):
        for buffer in buffers:
            t.do(shift, buffer, 1.0, writes=[buffer])
    futures = [t.make(f"future {b.name}", read_async, b) for b in buffers]
    event = t.make("event", vd.record_event)
    t.do(lambda e: e.wait(), event)
    for i, future in enumerate(futures):
        t.check(future, result, X + i + 2)
        t.check(buffers[i], read, X + i + 2)
    sums = t.make("sum", vd.sum, buffers[0])
    t.check(sums, read, np.float32((X + 2).sum()), close=1e-5)


def submit(graph: Any, values: Any = None) -> None:
    graph.submit()


def graphs(t: Trial) -> None:
    """A graph that is replayed many times, with a variable; then it grows."""
    x, y = t.make("x", vd.asbuffer, X), t.make("y", vd.asbuffer, Y)
    graph = t.make("graph", vd.CommandGraph)
    expected = Y.copy()

    def record_saxpy(g: Any, y: Any, x: Any) -> None:
        saxpy(y, x, 1.0, graph=g)

    def record_shift(g: Any, y: Any) -> None:
        shift(y, g.bind_var("a"), graph=g)

    t.do(record_saxpy, graph, y, x, writes=[graph])
    t.do(record_shift, graph, y, writes=[graph])

    def replay(g: Any, _y: Any, a: float) -> None:
        g.set_var("a", a)
        g.submit()

    for a in map(float, range(12)):
        t.do(replay, graph, y, a, writes=[y])
        expected = expected + X + np.float32(a)
    t.check(y, read, expected)
    t.do(record_saxpy, graph, x, y, writes=[graph])
    for a in (1.0, 2.0):
        t.do(replay, graph, y, a, writes=[y, x])
    first, second = expected, X
    for a in (1.0, 2.0):
        first = first + second + np.float32(a)
        second = second + first
    t.check(x, read, second)
    t.check(y, read, first)
    for a in (1.0, 2.0, 3.0):  # under way when the graph goes
        t.do(replay, graph, y, a, writes=[y, x])


def busy(t: Trial) -> None:
    """Work that takes the device a while, some of which nobody waits for."""
    work = t.make("work", vd.asbuffer, np.ones(1 << 14, np.uint32))
    small = t.make("small", vd.asbuffer, X)
    expected = np.uint32(1)
    for rounds in (500, 700):
        t.do(hash_often, work, rounds, writes=[work])
        t.do(shift, small, 1.0, writes=[small])
        for _ in range(rounds):
            expected = np.uint32((int(expected) * 1664525 + 1013904223) & 0xFFFFFFFF)
    t.check(small, read, X + 2)
    t.check(work, read, np.full(1 << 14, expected))
    for _ in range(3):
        t.do(hash_often, work, 1000, writes=[work])


LARGE = np.arange(300_000, dtype=np.uint32)


def transfers(t: Trial) -> None:
    """Large and small copies to the device and back, some of ranges, some to memory that is pinned."""
    large = t.make("large", lambda: vd.Buffer(LARGE.size, vd.uint32))
    t.do(write, large, LARGE, anew=[large])
    small = t.make("small", vd.asbuffer, LARGE[:10])
    expected = LARGE.copy()
    t.do(lambda b: b.write_range(LARGE[100:200], 5), large, writes=[large])
    expected[5:105] = LARGE[100:200]
    pinned = t.make("pinned", vd.empty_pinned, LARGE.size, np.uint32)

    def read_pinned(b: Any) -> Any:
        b.read(0, out=pinned.value)
        return pinned.value.copy()

    if pinned.value is not None:
        t.check(large, read_pinned, expected)
    t.do(fill, large, 7, anew=[large])
    t.check(large, read, LARGE + 7)
    t.check(large, lambda b: b.read_range(1000, 1010, 0), (LARGE + 7)[1000:1010])
    t.check(small, read, LARGE[:10])
    copy = t.make("copy", lambda: vd.Buffer(LARGE.size, vd.uint32))
    t.do(write, copy, LARGE, anew=[copy])
    t.check(copy, read, LARGE)


def pinned(t: Trial) -> None:
    """Asynchronous copies from and to pinned memory, with work in between."""
    source = t.make("source", vd.empty_pinned, SIZE)
    target = t.make("target", vd.empty_pinned, SIZE)
    y = t.make("y", lambda: vd.Buffer(SIZE, vd.float32))

    def write_from(buffer: Any, block: Any, data: Array) -> Any:
        block[:] = data
        event = buffer.write_async(block)
        event.wait()
        return event

    def read_to(buffer: Any, block: Any) -> Any:
        return buffer.read_async(out=block)

    for data in (X, Y):
        t.do(write_from, y, source, data, anew=[y])
        t.do(shift, y, 1.0, writes=[y])
        future = t.make("future", read_to, y, target)
        t.do(shift, y, 5.0, writes=[y])
        t.check(future, result, data + 1)
        t.check(y, read, data + 6)


def two_queues(t: Trial) -> None:
    """Work on two queues of one context, copies between them, and an event that one waits for."""
    x, y = t.make("x", vd.asbuffer, X), t.make("y", vd.asbuffer, Y)
    on = [t.make(f"y{q}", lambda b: b, y) for q in (0, 1)]  # what each queue has of it
    expected = [Y, Y]

    def launch(buffer: Any, other: Any, a: float, queue: int) -> None:
        graph = vd.CommandGraph()
        saxpy(buffer, other, a, graph=graph)
        graph.submit(queue_index=queue)

    def read_on(queue: int) -> Callable[[Any], Array]:
        return lambda b: np.asarray(b.read(queue))

    for step in range(3):
        for q in (0, 1):
            t.do(launch, on[q], x, float(q + 1), q, writes=[on[q]])
            expected[q] = expected[q] + np.float32(q + 1) * X
        source = step % 2
        target = on[1 - source]
        t.do(lambda b, s: b.copy_between_queues(s, 1 - s), on[source], source, writes=[target])
        target.sure = target.sure and on[source].sure
        expected[1 - source] = expected[source]
    event = t.make("event", vd.record_event, 0)
    t.do(lambda e: vd.wait_event(e, 1), event, writes=[on[1]])
    t.do(launch, on[1], x, 1.0, 1, writes=[on[1]])
    expected[1] = expected[1] + X
    t.check(on[0], read_on(0), expected[0])
    t.check(on[1], read_on(1), expected[1])
    t.check(x, read_on(1), X)


TEXELS = _random.integers(0, 64, (16, 8, 4)).astype(np.float32)


def images(t: Trial) -> None:
    """Images that are written, changed by a kernel, sampled, given mip levels, and read."""
    image = t.make("image", lambda: vd.Image2D((16, 8), vd.float32, 4))
    t.do(write, image, TEXELS, anew=[image])
    t.check(image, lambda i: i.read(), TEXELS)
    t.do(brighten, image, writes=[image])
    t.check(image, lambda i: i.read(), TEXELS + 1)
    mips = t.make("mips", lambda: vd.Image2D((16, 8), vd.float32, 4, enable_mipmaps=True))
    t.do(write, mips, TEXELS, anew=[mips])
    t.do(lambda i: i.generate_mipmaps(), mips, writes=[mips])
    smaller = (TEXELS[0::2] + TEXELS[1::2]) / 2
    smaller = (smaller[:, 0::2] + smaller[:, 1::2]) / 2
    t.check(mips, lambda i: i.read(level=1), smaller, close=1e-5)
    at = t.make("at", lambda: vd.asbuffer(np.array([0, 0, 7, 15], np.float32)).view(vd.vec2))
    out = t.make("out", lambda: vd.Buffer((2,), vd.vec4))
    sampler = t.make("sampler", lambda i: i.sample(), mips)
    t.do(sample, out, sampler, at, 0.0, writes=[out])
    t.check(out, read, np.stack([TEXELS[0, 0], TEXELS[15, 7]]), close=1e-4)


SIGNAL = (_random.normal(size=(4, 64)) + 1j * _random.normal(size=(4, 64))).astype(np.complex64)


def transforms(t: Trial) -> None:
    """An FFT there and back, and a convolution's worth of another length."""
    x = t.make("x", vd.asbuffer, SIGNAL)
    t.do(vd.fft.fft, x, writes=[x])
    t.check(x, read, np.fft.fft(SIGNAL), close=1e-3)
    t.do(vd.fft.ifft, x, writes=[x])
    t.check(x, read, SIGNAL, close=1e-3)


KEYS = _random.integers(0, 1 << 30, 20_000).astype(np.uint32)


def scratch(t: Trial) -> None:
    """Functions that need memory of their own: a sum, a scan and a sort."""
    x = t.make("x", vd.asbuffer, KEYS)
    for _ in range(2):
        total = t.make("sum", vd.sum, x)
        running = t.make("cumsum", vd.cumsum, x)
        t.check(total, read, KEYS.sum(dtype=np.uint64))
        t.check(running, read, KEYS.cumsum(dtype=np.uint64))


def sorts(t: Trial) -> None:
    """A sort, whose passes use scratch memory again and again."""
    x = t.make("x", vd.asbuffer, KEYS)
    for _ in range(2):
        ordered = t.make("sort", vd.sort, x)
        t.check(ordered, read, np.sort(KEYS))


_ADD = """#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Constants { float a; };
layout(set = 0, binding = 0) buffer A { float x[]; };
void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] += a; }
"""


def kompute(t: Trial) -> None:
    """Sequences of vkdispatch.kompute, eager and asynchronous."""
    manager = t.make("manager", kp.Manager)
    tensor = t.make("tensor", lambda m: m.tensor(X), manager)
    algorithm = t.make(
        "algorithm", lambda m, a: m.algorithm([a], _ADD, (SIZE // 64 + 1, 1, 1), [], [1.0]), manager, tensor
    )
    expected = X.copy()

    def evaluate(m: Any, a: Any, algo: Any) -> None:
        m.sequence().record(kp.OpSyncDevice([a])).record(kp.OpAlgoDispatch(algo, [1.0])).record(
            kp.OpSyncLocal([a])
        ).eval()

    def evaluate_later(m: Any, a: Any, algo: Any) -> None:
        sequence = m.sequence()
        sequence.eval_async(kp.OpAlgoDispatch(algo, [2.0]))
        sequence.eval_await()
        sequence.eval(kp.OpSyncLocal([a]))

    for work, step in ((evaluate, 1), (evaluate_later, 2), (evaluate, 1)):
        t.do(work, manager, tensor, algorithm, writes=[tensor])
        expected = expected + np.float32(step)
        t.check(tensor, lambda a: a.data().copy(), expected)
    t.do(lambda m: m.destroy(), manager)


def profiling(t: Trial) -> None:
    """Work while every command is timed, by the driver's timestamps."""
    x, y = t.make("x", vd.asbuffer, X), t.make("y", vd.asbuffer, Y)
    expected = Y.copy()
    profile = t.make("profile", vd.profile)
    t.do(lambda p: p.__enter__(), profile)
    for a in (1.0, 2.0):
        t.do(saxpy, y, x, a, writes=[y])
        expected = expected + np.float32(a) * X
    t.check(y, read, expected)
    t.do(lambda p: p.__exit__(None, None, None), profile)
    if not t.errors:
        t.check(profile, lambda p: [each.name for each in p.records if each.name == "saxpy"], ["saxpy"] * 2)
    t.check(y, read, expected)


def awaited(t: Trial) -> None:
    """Copies that coroutines wait for."""
    buffers = [t.make(f"b{i}", lambda: vd.Buffer(SIZE, vd.float32)) for i in range(4)]

    async def one(item: Item, first: Array) -> None:
        if item.value is None:
            return
        buffer = item.value
        try:
            await buffer.write_async(first)
            shift(buffer, 1.0)
            found = await buffer.read_async()
            await vd.record_event()
        except vd.VkDispatchError as error:
            t._raised("coroutine", error)
            item.sure = False
            return
        t.check(item, lambda _: found, first + 1)
        t.check(item, read, first + 1)

    async def main() -> None:
        await asyncio.gather(*(one(item, X + i) for i, item in enumerate(buffers)))

    t.do(lambda: asyncio.run(main()))


def contexts(t: Trial) -> None:
    """A context of its own inside the other one, closed with work under way, and one more after it."""
    for value in (1.0, 2.0):
        context = t.make("context", lambda: vd.Context([0], [[0]]))
        if context.value is None:
            continue
        with vd.use_context(context.value):
            y = t.make("y", vd.asbuffer, Y)
            t.do(shift, y, value, writes=[y])
            t.check(y, read, Y + np.float32(value))
            for _ in range(5):
                t.do(shift, y, value, writes=[y])
            y.value = None
        t.do(lambda c: c.close(), context)
    x = t.make("x", vd.asbuffer, X)
    t.do(shift, x, 1.0, writes=[x])
    t.check(x, read, X + 1)


_STAGED = {"VKDISPATCH_FORCE_STAGING": "1"}
_TWIN = {**_STAGED, "VKDISPATCH_FORCE_TRANSFER_QUEUE": "2"}
_PLAIN = {"VKDISPATCH_NO_PUSH_DESCRIPTORS": "1"}

WORKLOADS: dict[str, Workload] = {
    "eager": Workload(eager),
    "eager-staged": Workload(eager, _STAGED),
    "eager-sets": Workload(eager, _PLAIN),
    "readers": Workload(several_readers),
    "readers-staged": Workload(several_readers, _STAGED),
    "graphs": Workload(graphs),
    "graphs-sets": Workload(graphs, {**_PLAIN, **_STAGED}),
    "busy": Workload(busy),
    "busy-staged": Workload(busy, _STAGED),
    "transfers": Workload(transfers),
    "transfers-staged": Workload(transfers, _STAGED),
    "transfers-twin": Workload(transfers, _TWIN),
    "pinned": Workload(pinned, _STAGED),
    "two-queues": Workload(two_queues, _STAGED, {"queue_counts": 2}),
    "images": Workload(images),
    "images-staged": Workload(images, _STAGED),
    "fft": Workload(transforms),
    "scratch": Workload(scratch),
    "sorts": Workload(sorts),
    "kompute": Workload(kompute, _STAGED),
    "profiling": Workload(profiling),
    "profiling-by-hand": Workload(profiling, {"VKDISPATCH_NO_CALIBRATION": "1"}),
    "async": Workload(awaited, _STAGED),
    "contexts": Workload(contexts),
}
