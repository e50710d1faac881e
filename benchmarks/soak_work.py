"""What a soak does: small pieces of what programs do, each of which checks its results."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, SImg2, Var, f32, u32

SIZE = 1000
KEYS = (np.arange(3 * SIZE) * 7919 % (3 * SIZE)).astype(np.int32)  # each number once
SIGNAL = np.exp(np.arange(SIZE) * 1j).astype(np.complex64)
# Large enough that all blocks of staging memory are there within some rounds.
TEXELS = np.arange(128 * 192, dtype=np.float32).reshape(128, 192)
NEW_KERNELS = 32  # texts of kernels, one after the other: what is cached of them is bounded
THREADS = 4


@vd.shader("data.size")
def add(data: Buff[u32], value: Const[u32]) -> None:
    """Add a number to each element."""
    i = vc.global_invocation_id().x
    data[i] = data[i] + value


@vd.shader("data.size")
def add_later(data: Buff[u32], value: Var[u32]) -> None:
    """Add a number that a graph is told with each submit."""
    i = vc.global_invocation_id().x
    data[i] = data[i] + value


@vd.shader("(target.shape[1], target.shape[0])")
def shift(source: Img2[f32], target: SImg2[f32]) -> None:
    """Copy an image, one texel to the left."""
    here = vc.global_invocation_id()
    target[here.x, here.y] = source.sample((vc.to_float(here.x) + 1, vc.to_float(here.y))).x


class WrongResultError(AssertionError):
    """A result was not what it should be."""


def expect(got: npt.NDArray[Any], want: npt.ArrayLike, tolerance: float = 0.0) -> None:
    """Raise WrongResultError where an array is not what it should be."""
    if not np.allclose(got, want, rtol=0, atol=tolerance):
        raise WrongResultError(f"expected {np.asarray(want)}, got {got}")


def zeros(context: vd.Context | None = None) -> vd.Buffer[Any]:
    """Return a buffer of zeros."""
    return vd.asbuffer(np.zeros(SIZE, np.uint32), context=context)


def call_kernels(turn: int) -> int:
    """Call a kernel many times."""
    data = zeros()
    for _ in range(100):
        add(data, turn % 7)
    expect(data.read(0), 100 * (turn % 7))
    return 101


def make_kernels(turn: int) -> int:
    """Trace, build, call and drop a kernel."""
    number = turn % NEW_KERNELS

    @vd.shader("data.size")
    def put(data: Buff[u32]) -> None:
        data[vc.global_invocation_id().x] = number

    data = zeros()
    put(data)
    expect(data.read(0), number)
    return 2


def replay_graphs(turn: int) -> int:
    """Submit a graph as a stream, recorded and replayed, then change a variable."""
    data = zeros()
    graph = vd.CommandGraph()
    for _ in range(8):
        add_later(data, graph.bind_var("value"), graph=graph)
    for value in (1, 1, 1, turn % 5):
        graph.set_var("value", value)
        graph.submit()
    expect(data.read(0), 8 * (3 + turn % 5))
    return 33


def call_functions(turn: int) -> int:
    """Call functions on arrays."""
    keys = np.roll(KEYS, turn)
    data = vd.asbuffer(keys)
    expect(vd.sum(data).read(0), keys.sum(dtype=np.int64))
    expect(vd.cumsum(data).read(0), keys.cumsum(dtype=np.int64))
    expect(vd.sort(data).read(0), np.arange(keys.size))
    expect(vd.argmax(data).read(0), keys.argmax())
    expect(vd.topk(data, 5)[0].read(0), keys.size - 1 - np.arange(5))
    square = vd.asbuffer(keys[:900].reshape(30, 30).astype(np.float32))
    expect(vd.transpose(square).read(0), keys[:900].reshape(30, 30).T)
    ones = vd.asbuffer(np.ones((30, 30), np.float32))
    rows = keys[:900].reshape(30, 30).sum(axis=1, keepdims=True)
    expect(vd.matmul(square, ones).read(0), np.repeat(rows, 30, axis=1), 0.5)
    return 7


def transform(turn: int) -> int:
    """Transform there and back."""
    signal = np.roll(SIGNAL, turn)
    data = vd.asbuffer(signal)
    vd.fft.fft(data)
    expect(data.read(0), np.fft.fft(signal), 1e-2)
    vd.fft.ifft(data)
    expect(data.read(0), signal, 1e-4)
    return 4


def sample_images(turn: int) -> int:
    """Write, sample, store and read images."""
    texels = np.roll(TEXELS, turn, axis=1)
    source, target = vd.Image2D(texels.shape, vd.float32), vd.Image2D(texels.shape, vd.float32)
    source.write(texels)
    shift(source.sample(), target)
    expect(target.read()[:, :-1], texels[:, 1:])
    return 3


def read_later(turn: int) -> int:
    """Have reads under way while kernels run, and leave one of them unread."""
    data = zeros()
    futures = []
    for _ in range(4):
        add(data, turn % 9)
        futures.append(data.read_async())
    for count, future in enumerate(futures[:3], 1):
        expect(future.result(), count * (turn % 9))
    return 8


def use_contexts(turn: int) -> int:
    """Make another context, use it, and close it or leave it to the garbage collector."""
    current = vd.get_context()
    context = vd.Context(current.device_ids[:1], current.queue_families[:1])
    data = zeros(context)
    add(data, 5)
    expect(data.read(0), 5)
    if turn % 2:
        context.close()
    del context, data
    gc.collect()
    return 3


def use_threads(turn: int) -> int:
    """Have threads call kernels and read, on data of their own and on data of all of them."""
    shared = zeros()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            own = zeros()
            for _ in range(25):
                add(own, 1)
                shared.read(0)
            expect(own.read(0), 25)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return 51 * THREADS


def make_mistakes(turn: int) -> int:
    """Do what is refused, each time in the same way, and catch it."""
    data = zeros()
    gone = zeros()
    gone.destroy()
    mistakes: list[Callable[[], object]] = [
        lambda: add(data),  # type: ignore[call-overload]
        lambda: add(data, "five"),  # type: ignore[call-overload]
        lambda: add(gone, 5),
        lambda: data.write(np.zeros(SIZE + 1, np.uint32)),
        lambda: data.read(7),
        lambda: vd.Buffer(1 << 60, vd.float32),
        lambda: vd.Image2D((1 << 20, 1 << 20), vd.float32),
        lambda: vd.sum(3),  # type: ignore[arg-type]
        lambda: vd.glsl_kernel("this is no GLSL"),
        lambda: vd.spirv_kernel(b"this is no SPIR-V"),
    ]
    for mistake in mistakes:
        try:
            mistake()
        except VkDispatchError:
            continue
        raise WrongResultError("a mistake was not refused")
    expect(data.read(0), 0)
    return len(mistakes)


WORK: Sequence[Callable[[int], int]] = (
    call_kernels,
    make_kernels,
    replay_graphs,
    call_functions,
    transform,
    sample_images,
    read_later,
    use_contexts,
    use_threads,
    make_mistakes,
)
"""Each is given the number of its turn, and returns how many operations it did."""


def do_round(turn: int) -> int:
    """Do each piece of work once; return how many operations that was."""
    return sum(work(turn) for work in WORK)
