"""Launches allocate nothing, handles have a constant cost, and dropped objects are freed."""

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
    """Yield an engine without debug mode, whose access log would allocate memory."""
    engine = native.Engine([first_device()], [[0]], False, request.param == "staged")
    yield engine
    engine.close()


def count_allocations(work: Callable[[], object]) -> int:
    """Return how many allocations the module makes during `work`."""
    before = native.allocation_count()
    work()
    after = native.allocation_count()
    assert before is not None and after is not None
    return after - before


def least_allocations(work: Callable[[], object]) -> int:
    """Return the smallest number of allocations during `work` in several runs."""
    # How far the host gets ahead of the device is random, and a new maximum of gathered commands allocates
    # memory. Allocations of a launch or a batch itself would occur in every run.
    least = count_allocations(work)
    for _ in range(9):
        least = min(least, count_allocations(work))
        if least == 0:
            break
    return least


def warm_up(engine: native.Engine, launch: Callable[[], object]) -> None:
    """Fill the queue with as many submits in flight as possible."""
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

    warm_up(engine, lambda: launcher.launch((array, 1.0), 4, False))
    assert least_allocations(burst) == 0
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

    warm_up(quiet_engine, lambda: launcher.launch((array, 1.0), 4, False))
    assert least_allocations(one_by_one) == 0


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

    warm_up(quiet_engine, lambda: commands.submit(0, rows, 1))
    assert least_allocations(replay) == 0


@counted
def test_allocation_counter_counts(quiet_engine: native.Engine) -> None:
    kept = []
    assert least_allocations(lambda: kept.append(native.Buffer(quiet_engine, 64))) > 0
    assert least_allocations(lambda: native.compile_glsl("#version 450\nvoid main() {}")) > 0


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

    assert least_allocations(burst) == 0
    gc.collect()
    before = sys.getallocatedblocks()
    burst()
    assert sys.getallocatedblocks() - before < 100  # pytest's own threads may change it slightly


# -- long runs


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_does_not_grow(quiet_engine: native.Engine) -> None:
    _, launcher = affine_launcher(quiet_engine)
    array = Array(quiet_engine, np.zeros(4, np.float32))

    def run(calls: int) -> int:
        for call in range(calls):
            launcher.launch((array, 1.0), 4, False)
            if call % 5000 == 0:
                array.read()
        quiet_engine.wait_idle()
        return resident_bytes()

    # How far the host gets ahead is random, and each new maximum allocates memory once: in the first third. A
    # leak grows in every round.
    rounds = [run(CALLS // 4) for _ in range(9)]
    growth = np.diff(rounds[3:])
    assert np.median(growth) < 256 << 10  # detects 11 bytes per launch


# -- handles


def measure_seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()  # of all threads of this process
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
        kept.clear()  # before the device has finished using them
        quiet_engine.wait_idle()

    make_and_drop(1000)
    few = min(measure_seconds(lambda: make_and_drop(1000)) for _ in range(3))
    many = min(measure_seconds(lambda: make_and_drop(8000)) for _ in range(2))
    assert many < few * 8 * 4  # quadratic cost would be 64 times
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
    few = min(measure_seconds(lambda: record(2000)) for _ in range(3))
    many = min(measure_seconds(lambda: record(20_000)) for _ in range(2))
    assert many < few * 10 * 4


# -- what is dropped is freed


def live_objects(context: vd.Context) -> int:
    return context._native.statistics()["live_objects"]


def count_leftovers(make: Callable[[], object]) -> int:
    """Return how many native objects remain of those that `make` creates and returns."""
    context = vd.get_context()
    vd.queue_wait_idle()
    gc.collect()
    before = live_objects(context)
    kept = make()
    assert live_objects(context) > before
    del kept
    gc.collect()
    vd.queue_wait_idle()
    for _ in range(10_000):  # the queue's thread destroys the last ones
        if context._native.statistics()["waiting_frees"] == 0:
            break
        time.sleep(0.01)
    return live_objects(context) - before


def make_kernel_with_closure() -> object:
    seen: list[object] = []

    @vd.shader("data.size")
    def kernel(data: Buff[f32], a: Const[f32]) -> None:
        seen.append(data)
        data[vc.global_invocation_id().x] = a

    data = vd.Buffer(4, vd.float32)
    kernel(data, 1.0)
    seen.append(kernel)  # a cycle: the closure refers to the kernel, and the kernel to its function
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
def test_dropped_objects_are_freed(make: Callable[[], object]) -> None:
    if os.environ.get("VKDISPATCH_INTERPRET") == "1":
        pytest.skip("the interpreter builds nothing")
    make()  # creates objects that are cached, such as the pipelines of copies
    assert count_leftovers(make) == 0


def test_leak_is_detected() -> None:
    kept = []

    def make() -> object:
        kept.append(vd.Buffer(64, vd.float32))
        return kept[-1]

    assert count_leftovers(make) == 1


def test_a_buffer_is_freed_with_its_last_reference() -> None:
    buffer = vd.Buffer(64, vd.float32)
    handle = weakref.ref(buffer)
    numbers = set(buffer.context.handles_dict)
    assert buffer._handle in numbers
    del buffer
    assert handle() is None  # without the garbage collector
    assert len(set(vd.get_context().handles_dict) & numbers) == len(numbers) - 1
