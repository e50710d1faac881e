"""`CommandList.evaluate`: submits a command list and waits for it."""

from __future__ import annotations

import signal
import struct
import threading
import time
from functools import partial

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .gates import Gate, releases_the_lock
from .kernels import SPIN, Array, affine_launcher

ONE = struct.pack("3If", 8, 1, 1, 1.0)


def make_counting_list(engine: native.Engine, length: int = 1) -> tuple[native.CommandList, np.ndarray]:
    """Return a list that adds 1 to the elements of a block `length` times, and the block."""
    block = native.HostBlock(engine, 0, 32, "host")
    seen = np.frombuffer(block, np.float32)
    seen[:] = 0
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    for _ in range(length):
        commands.record(plan, [(native.Buffer.over(block), 0, 0, 0, True, True)], (1, 1, 1), 16)
    return commands, seen


def make_spinning_list(engine: native.Engine, dispatches: int) -> native.CommandList:
    """Return a list that keeps the device busy for some milliseconds with each dispatch."""
    plan = native.Plan(engine, native.compile_glsl(SPIN), [1], 4, "spin")
    buffer = native.Buffer(engine, 4)
    commands = native.CommandList(engine)
    for _ in range(dispatches):
        commands.record(plan, [(buffer, 0, 0, 0, True, True)], (1, 1, 1), 4)
    return commands


ROUNDS = struct.pack("I", 60_000)


@pytest.mark.parametrize("length", [1, 2, 300])
def test_work_is_finished_on_return(engine: native.Engine, length: int) -> None:
    commands, seen = make_counting_list(engine, length)
    for turn in range(1, 12):
        assert commands.evaluate(0, ONE * length, None) is True
        np.testing.assert_array_equal(seen, turn * length)
    assert commands.evaluate(-1, ONE * length, 10**12) is True
    np.testing.assert_array_equal(seen, 12 * length)
    empty = native.CommandList(engine)
    assert empty.evaluate(0, b"", None) is True
    assert empty.evaluate(0, b"", 0) is True


def test_order_with_other_work(engine: native.Engine) -> None:
    commands, seen = make_counting_list(engine)
    array = Array(engine, np.zeros(8, np.float32))
    _, launcher = affine_launcher(engine)
    for turn in range(1, 100):
        launcher.launch((array, 1.0), 8, False)
        commands.submit(0, ONE * 2, 2)
        assert commands.evaluate(0, ONE, None)
        np.testing.assert_array_equal(seen, 3 * turn)
        if turn % 10 == 0:
            np.testing.assert_array_equal(array.read(), turn)


def test_more_submits_than_fit_in_flight(engine: native.Engine) -> None:
    busy = make_spinning_list(engine, 1)
    commands, seen = make_counting_list(engine)
    for _ in range(12):
        value = busy.submit(0, ROUNDS, 1)
        engine.flush(0, value)
    assert commands.evaluate(0, ONE, 10**11) is True
    np.testing.assert_array_equal(seen, 1)


def test_timeout(engine: native.Engine) -> None:
    commands, seen = make_counting_list(engine)
    with Gate(engine) as gate:
        gate.hold()
        assert commands.evaluate(0, ONE, 1_000_000) is False
        assert commands.evaluate(0, ONE, 0) is False
        assert gate.is_holding()
        np.testing.assert_array_equal(seen, 0)
    engine.wait_idle()
    np.testing.assert_array_equal(seen, 2)
    value = engine.last_value(0)
    assert commands.evaluate(0, ONE, 0) in (True, False)
    assert engine.last_value(0) > value
    assert engine.wait_until([(0, engine.last_value(0))], None)
    np.testing.assert_array_equal(seen, 3)


def test_submit_names_the_batch_to_wait_for(engine: native.Engine) -> None:
    commands, seen = make_counting_list(engine)
    for turn in range(1, 10):
        value = commands.submit(0, ONE, 1)
        assert value == engine.last_value(0)
        assert engine.wait_until([(0, value)], None)
        np.testing.assert_array_equal(seen, turn)


def test_other_threads_run_meanwhile(engine: native.Engine) -> None:
    commands, seen = make_counting_list(engine)
    with Gate(engine) as gate:
        gate.hold()
        assert releases_the_lock(gate, lambda: commands.evaluate(0, ONE, None))
    np.testing.assert_array_equal(seen, 1)


def test_control_c_ends_the_wait(engine: native.Engine) -> None:
    commands, seen = make_counting_list(engine)

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    with Gate(engine) as gate:
        gate.hold()
        try:
            with pytest.raises(Stop):
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                while True:
                    commands.evaluate(0, ONE, None)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert gate.is_holding()
        np.testing.assert_array_equal(seen, 0)
    engine.wait_idle()


def test_invalid_arguments(engine: native.Engine) -> None:
    commands, seen = make_counting_list(engine)
    for queue in (1, 7, -2, -3):
        with pytest.raises(ValueError, match="queue"):
            commands.evaluate(queue, ONE, None)
    for data in (b"", ONE * 2, ONE[:-1]):
        with pytest.raises(ValueError, match="data"):
            commands.evaluate(0, data, None)
    with pytest.raises(OverflowError):
        commands.evaluate(0, ONE, -1)
    with pytest.raises(TypeError):
        commands.evaluate(0, ONE, "soon")  # type: ignore[arg-type]
    assert engine.wait_until([(0, engine.last_value(0))], None)
    np.testing.assert_array_equal(seen, 0)
    commands.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        commands.evaluate(0, ONE, None)


def test_threads_evaluate_one_list(engine: native.Engine) -> None:
    commands, seen = make_counting_list(engine)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(100):
                assert commands.evaluate(0, ONE, None)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    np.testing.assert_array_equal(seen, 400)


@pytest.mark.parametrize("end", ["close", "destroy"])
def test_engine_ends_during_an_evaluation(end: str) -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    busy = make_spinning_list(engine, 20)
    answers: list[object] = []

    def work() -> None:
        try:
            while True:
                answers.append(busy.evaluate(0, ROUNDS * 20, None))
        except RuntimeError as error:
            answers.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.02)
    (partial(engine.close) if end == "close" else busy.destroy)()
    thread.join()
    assert any(text in str(answers[-1]) for text in ("destroyed", "context was closed"))
    assert set(answers[:-1]) <= {True}
    engine.close()
    assert native.take_messages() == []
