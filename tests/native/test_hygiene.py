"""Launching costs no memory, handles cost the same however many there are, and what is dropped is freed."""

from __future__ import annotations

import gc
import os
import struct
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32

from .conftest import first_device
from .kernels import AFFINE_UNIFORM, Array, affine_launcher

CALLS = 100_000

counted = pytest.mark.skipif(
    native.allocation_count() is None, reason="sanitized builds do not count allocations"
)


@pytest.fixture(params=["mapped", "staged"])
def quiet_engine(request: pytest.FixtureRequest) -> Iterator[native.Engine]:
    """Yield an engine without debug mode, whose log of accesses takes memory."""
    engine = native.Engine([first_device()], [[0]], False, request.param == "staged")
    yield engine
    engine.close()


def asked_for(work: Callable[[], object]) -> int:
    """Return how often the module asks for memory during `work`."""
    before = native.allocation_count()
    work()
    after = native.allocation_count()
    assert before is not None and after is not None
    return after - before


def allocations(work: Callable[[], object]) -> int:
    """Return how often the module asks for memory during `work`, in the best of several runs."""
    # How far the host gets ahead of the device is chance, and what is gathered takes memory when it is more
    # than ever before. What a launch or a batch would ask for itself, it would ask for in every run.
    least = asked_for(work)
    for _ in range(9):
        least = min(least, asked_for(work))
        if least == 0:
            break
    return least


def warm(engine: native.Engine, launch: Callable[[], object]) -> None:
    """Have as many submits under way as there may ever be."""
    for _ in range(3):
        for _ in range(20):
            launch()
            engine.flush(0, engine.last_value(0))
        engine.wait_idle()


def uniform_launcher(engine: native.Engine) -> native.Launcher:
    plan = native.Plan(engine, native.compile_glsl(AFFINE_UNIFORM), [3, 1], 0, "affine_uniform")
    slots = [native.BufferSlot(binding=1), native.ScalarSlot(offset=12, code="f")]
    return native.Launcher(engine, plan, slots, 400, 0, 0, -1, (64, 1, 1), (65535,) * 3, None)


# -- nothing is allocated


@counted
@pytest.mark.parametrize("uniform", [False, True])
def test_launches_allocate_nothing(uniform: bool) -> None:
    engine = native.Engine([first_device()], [[0]], False, False)
    launcher = uniform_launcher(engine) if uniform else affine_launcher(engine)[1]
    array = Array(engine, np.zeros(4, np.float32))
    calls = CALLS // 5 if uniform else CALLS

    def burst() -> None:
        for _ in range(calls):
            launcher.launch((array, 1.0), 4, False)
        engine.wait_idle()

    warm(engine, lambda: launcher.launch((array, 1.0), 4, False))
    assert allocations(burst) == 0
    engine.close()


@counted
def test_waiting_between_launches_allocates_nothing(quiet_engine: native.Engine) -> None:
    _, launcher = affine_launcher(quiet_engine)
    array = Array(quiet_engine, np.zeros(4, np.float32))

    def one_by_one() -> None:
        for count in (1, 2, 3, 100, 150) * 30:
            for _ in range(count):
                launcher.launch((array, 1.0), 4, False)
            quiet_engine.wait_idle()

    warm(quiet_engine, lambda: launcher.launch((array, 1.0), 4, False))
    assert allocations(one_by_one) == 0


@counted
def test_replaying_a_list_allocates_nothing(quiet_engine: native.Engine) -> None:
    plan, _ = affine_launcher(quiet_engine)
    array = Array(quiet_engine, np.zeros(4, np.float32))
    commands = native.CommandList(quiet_engine)
    for _ in range(300):
        commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
    rows = struct.pack("3If", 4, 1, 1, 1.0) * 300

    def replay() -> None:
        for _ in range(20):
            commands.submit(0, rows, 1)
        quiet_engine.wait_idle()

    warm(quiet_engine, lambda: commands.submit(0, rows, 1))
    assert allocations(replay) == 0


@counted
def test_the_counter_counts(quiet_engine: native.Engine) -> None:
    kept = []
    assert allocations(lambda: kept.append(native.Buffer(quiet_engine, 64))) > 0
    assert allocations(lambda: native.compile_glsl("#version 450\nvoid main() {}")) > 0


@counted
def test_a_kernel_call_allocates_nothing() -> None:
    @vd.shader("data.size")
    def add(data: Buff[f32], a: Const[f32], b: Const[u32]) -> None:
        i = vc.global_invocation_id().x
        data[i] = data[i] + a + b.to_dtype(vd.float32)

    if os.environ.get("VKDISPATCH_DEBUG") == "1" or os.environ.get("VKDISPATCH_INTERPRET") == "1":
        pytest.skip("the log of debug mode, and the interpreter, take memory")
    data = vd.asbuffer(np.zeros(4, np.float32))

    def burst() -> None:
        for _ in range(20_000):
            add(data, 0.5, 1)
        vd.queue_wait_idle()

    assert allocations(burst) == 0
    gc.collect()
    before = sys.getallocatedblocks()
    burst()
    assert sys.getallocatedblocks() - before < 100  # pytest's own threads may move it a little


# -- long runs


def resident() -> int:
    """Return the bytes of memory that this process really has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat(quiet_engine: native.Engine) -> None:
    _, launcher = affine_launcher(quiet_engine)
    array = Array(quiet_engine, np.zeros(4, np.float32))

    def run(calls: int) -> int:
        for call in range(calls):
            launcher.launch((array, 1.0), 4, False)
            if call % 5000 == 0:
                array.read()
        quiet_engine.wait_idle()
        return resident()

    # How far the host ever gets ahead is chance, and takes memory once and for all: the first third. What
    # leaks does so in every round.
    rounds = [run(CALLS // 4) for _ in range(9)]
    growth = np.diff(rounds[3:])
    assert np.median(growth) < 256 << 10  # 11 bytes a launch would show


# -- handles


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()  # of all threads, and of no other process
    work()
    return time.process_time() - begin


@pytest.mark.parametrize("used", [False, True])
def test_the_cost_of_a_buffer_does_not_grow_with_their_number(
    quiet_engine: native.Engine, used: bool
) -> None:
    _, launcher = affine_launcher(quiet_engine)

    def make_and_drop(count: int) -> None:
        kept = [Array(quiet_engine, np.zeros(4, np.float32)) for _ in range(count)]
        if used:
            for array in kept:
                launcher.launch((array, 1.0), 4, False)
        kept.clear()  # before the device is done with them
        quiet_engine.wait_idle()

    make_and_drop(1000)
    few = min(seconds(lambda: make_and_drop(1000)) for _ in range(3))
    many = min(seconds(lambda: make_and_drop(8000)) for _ in range(2))
    assert many < few * 8 * 4  # a square would be 64 times
    launcher.launch((Array(quiet_engine, np.zeros(4, np.float32)), 1.0), 4, False)
    quiet_engine.wait_idle()


def test_the_cost_of_recording_does_not_grow_with_the_length(quiet_engine: native.Engine) -> None:
    _, launcher = affine_launcher(quiet_engine)
    array = Array(quiet_engine, np.zeros(4, np.float32))

    def record(count: int) -> None:
        commands = native.CommandList(quiet_engine)
        for _ in range(count):
            launcher.record(commands, (array, 1.0), 4, False)

    record(1000)
    few = min(seconds(lambda: record(2000)) for _ in range(3))
    many = min(seconds(lambda: record(20_000)) for _ in range(2))
    assert many < few * 10 * 4


# -- what is dropped is freed


def live(context: vd.Context) -> int:
    return context._native.statistics()["live_objects"]


def leftover(make: Callable[[], object]) -> int:
    """Return how many native objects are left of what `make` makes and gives back."""
    context = vd.get_context()
    vd.queue_wait_idle()
    gc.collect()
    before = live(context)
    kept = make()
    assert live(context) > before
    del kept
    gc.collect()
    vd.queue_wait_idle()
    for _ in range(10_000):  # the queue's thread does the last of it
        if context._native.statistics()["waiting_frees"] == 0:
            break
        time.sleep(0.01)
    return live(context) - before


def make_kernel_with_closure() -> object:
    seen: list[object] = []

    @vd.shader("data.size")
    def kernel(data: Buff[f32], a: Const[f32]) -> None:
        seen.append(data)
        data[vc.global_invocation_id().x] = a

    data = vd.Buffer(4, vd.float32)
    kernel(data, 1.0)
    seen.append(kernel)  # the function's closure now holds the kernel, and the kernel its function
    return kernel, data


def make_graph() -> object:
    kernel, data = make_kernel_with_closure()  # type: ignore[misc]
    graph = vd.CommandGraph()
    for _ in range(300):
        kernel(data, 2.0, graph=graph)
    graph.submit()
    graph.submit()
    graph.submit()  # by now it is recorded into command buffers
    return graph


def make_image() -> object:
    image = vd.Image2D((8, 8), vd.float32)
    return image.sample()


@pytest.mark.parametrize(
    "make",
    [lambda: vd.Buffer(64, vd.float32), make_image, make_kernel_with_closure, make_graph],
    ids=["buffer", "image", "kernel", "graph"],
)
def test_what_is_dropped_is_freed(make: Callable[[], object]) -> None:
    if os.environ.get("VKDISPATCH_INTERPRET") == "1":
        pytest.skip("the interpreter builds nothing")
    make()  # what is kept once and for all, such as the pipelines of copies
    assert leftover(make) == 0


def test_what_is_kept_is_noticed() -> None:
    kept = []

    def make() -> object:
        kept.append(vd.Buffer(64, vd.float32))
        return kept[-1]

    assert leftover(make) == 1


def test_a_buffer_goes_with_its_last_reference() -> None:
    buffer = vd.Buffer(64, vd.float32)
    handle = weakref.ref(buffer)
    numbers = set(buffer.context.handles_dict)
    assert buffer._handle in numbers
    del buffer
    assert handle() is None  # without the garbage collector
    assert len(set(vd.get_context().handles_dict) & numbers) == len(numbers) - 1
