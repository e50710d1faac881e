"""Sixteen threads on one engine: no lost work, no early destruction, no deadlock."""

from __future__ import annotations

import gc
import struct
import threading
from collections.abc import Callable

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.codegen.abbreviations import Buff, Const, u32

from .conftest import first_device
from .kernels import Array, affine_launcher

THREADS = 16


def run_together(work: Callable[[int], object], threads: int = THREADS) -> None:
    """Run `work(number)` in many threads that start together, and raise the first error."""
    errors: list[BaseException] = []
    gate = threading.Barrier(threads)

    def guarded(number: int) -> None:
        try:
            gate.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=guarded, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]


@vd.shader("data.size")
def add(data: Buff[u32], value: Const[u32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + value


@pytest.mark.parametrize("shared", [False, True])
def test_each_launch_counts(shared: bool) -> None:
    one = vd.asbuffer(np.zeros(5, np.uint32))
    own = [one if shared else vd.asbuffer(np.zeros(5, np.uint32)) for _ in range(THREADS)]

    def work(number: int) -> None:
        for call in range(500):
            add(own[number], 1)
            if call % 100 == number:
                own[number].read(0)

    run_together(work)
    for buffer in own:
        np.testing.assert_array_equal(buffer.read(0), np.full(5, 500 * THREADS if shared else 500))


def test_more_commands_than_may_be_gathered() -> None:
    """Together the threads run so far ahead that all must wait for room."""
    engine = native.Engine([first_device()], [[0]], False, False)
    _, launcher = affine_launcher(engine)
    arrays = [Array(engine, np.zeros(3, np.float32)) for _ in range(THREADS)]

    def work(number: int) -> None:
        for _ in range(5000):
            launcher.launch((arrays[number], 1.0), 3, False)

    run_together(work)
    for array in arrays:
        np.testing.assert_array_equal(array.read(), np.full(3, 5000))
    engine.close()


def test_destroying_objects_while_other_threads_launch(engine: native.Engine) -> None:
    _, launcher = affine_launcher(engine)
    slots = [Array(engine, np.zeros(64, np.float32)) for _ in range(4)]

    def work(number: int) -> None:
        for turn in range(60):
            place = (number + turn) % len(slots)
            if number % 4 == 0:
                slots[place]._native.destroy()
                slots[place] = Array(engine, np.zeros(64, np.float32))
            elif number % 4 == 1:
                slots[place] = Array(engine, np.zeros(64, np.float32))  # the old one is freed automatically
            else:
                array = slots[place]
                launcher.launch((array, 1.0), 64, False)  # refused if it was destroyed
                try:
                    array.read()
                except RuntimeError as error:
                    assert "destroyed" in str(error)

    run_together(work)
    slots.clear()
    gc.collect()
    engine.wait_idle()


def test_one_list_recorded_submitted_and_reset_by_many_threads(engine: native.Engine) -> None:
    _, launcher = affine_launcher(engine)
    commands = native.CommandList(engine)
    array = Array(engine, np.zeros(4, np.float32))

    def work(number: int) -> None:
        for _ in range(40):
            if number % 4 == 0:
                launcher.record(commands, (Array(engine, np.zeros(4, np.float32)), 1.0), 4, False)
            elif number % 4 == 1:
                launcher.record(commands, (array, 1.0), 4, False)
            elif number % 4 == 2:
                rows = struct.pack("3If", 4, 1, 1, 1.0) * commands.length
                try:
                    commands.submit(0, rows, 1)
                except ValueError as error:
                    assert "instances" in str(error)
            else:
                commands.reset()

    run_together(work)
    engine.wait_idle()


def test_many_threads_build_and_call_one_new_kernel() -> None:
    @vd.shader("data.size")
    def fresh(data: Buff[u32], value: Const[u32]) -> None:
        i = vc.global_invocation_id().x
        data[i] = data[i] * 3 + value

    data = [vd.asbuffer(np.arange(7, dtype=np.uint32)) for _ in range(THREADS)]
    run_together(lambda number: fresh(data[number], number))
    for number, buffer in enumerate(data):
        np.testing.assert_array_equal(buffer.read(0), np.arange(7) * 3 + number)


def test_many_threads_trace_their_own_kernels() -> None:
    results: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.uint32]]] = {}

    def work(number: int) -> None:
        @vd.shader("data.size")
        def body(data: Buff[u32]) -> None:
            i = vc.global_invocation_id().x
            data[i] = i * number

        data = vd.Buffer(9, vd.uint32)
        body(data)
        results[number] = data.read(0)

    run_together(work)
    for number in range(THREADS):
        np.testing.assert_array_equal(results[number], np.arange(9) * number)


def test_buffers_of_many_threads_have_unique_numbers() -> None:
    made: list[list[vd.Buffer[vd.uint32]]] = [[] for _ in range(THREADS)]

    def work(number: int) -> None:
        made[number] = [vd.Buffer(1, vd.uint32) for _ in range(50)]

    run_together(work)
    handles = [buffer._handle for buffers in made for buffer in buffers]
    assert len(set(handles)) == len(handles) == 50 * THREADS
