"""The native engine: batches, order, hazards, transfers, lifetimes, threads."""

from __future__ import annotations

import gc
import struct
import threading
import time

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .kernels import AFFINE, AFFINE_UNIFORM, ROTATE, Array, affine_launcher

SIZES = [1, 2, 63, 64, 65, 997, 4096, 100_003]


@pytest.mark.parametrize("size", SIZES)
def test_launch(engine: native.Engine, size: int) -> None:
    values = np.arange(size, dtype=np.float32)
    array = Array(engine, values)
    _, launcher = affine_launcher(engine)
    assert launcher.launch((array, 2.0), size, False)
    np.testing.assert_array_equal(array.read(), values * 2 + 1)


def test_launch_limits_elements(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(200, np.float32))
    _, launcher = affine_launcher(engine)
    assert launcher.launch((array, 0.0), (130, 1), False)
    np.testing.assert_array_equal(array.read(), np.where(np.arange(200) < 130, 1, 0))
    assert launcher.launch((array, 0.0), 2, True)
    np.testing.assert_array_equal(array.read(), np.where(np.arange(200) < 130, 1, 0))


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        ((), 4),
        ((1, 2.0), 4),
        ((None, None), 4),
        (("buffer", "factor"), 4),
        (("ARRAY", "x"), 4),
        (("ARRAY", None), 4),
        (("ARRAY", 1j), 4),
        (("ARRAY", 2.0, 3), 4),
        (("ARRAY", 2.0), 0),
        (("ARRAY", 2.0), -1),
        (("ARRAY", 2.0), ()),
        (("ARRAY", 2.0), (1, 1, 1, 1)),
        (("ARRAY", 2.0), (1, 0)),
        (("ARRAY", 2.0), "4"),
        (("ARRAY", 2.0), None),
        (("ARRAY", 2.0), 2.5),
        (("ARRAY", 2.0), 2**40),
        (("ARRAY", 2.0), (1, 2**31)),
    ],
)
def test_launch_declines_unusual_arguments(engine: native.Engine, arguments: tuple, limit: object) -> None:
    array = Array(engine, np.zeros(4, np.float32))
    _, launcher = affine_launcher(engine)
    given = tuple(array if a == "ARRAY" else a for a in arguments)
    assert launcher.launch(given, limit, False) is False
    np.testing.assert_array_equal(array.read(), 0)


def test_dependent_launches_run_in_order(engine: native.Engine) -> None:
    a, b = Array(engine, np.arange(1000, dtype=np.float32)), Array(engine, np.zeros(1000, np.float32))
    plan = native.Plan(engine, native.compile_glsl(ROTATE), [1, 1], 12, "rotate")
    slots = [native.BufferSlot(binding=0, writes=False), native.BufferSlot(binding=1, reads=False)]
    launcher = native.Launcher(engine, plan, slots, 12, -1, 0, -1, (64, 1, 1), (65535,) * 3, None)
    for _ in range(150):
        assert launcher.launch((a, b), 1000, False)
        assert launcher.launch((b, a), 1000, False)
    np.testing.assert_array_equal(a.read(), np.roll(np.arange(1000), -300))


def test_independent_launches_need_no_barrier(engine: native.Engine) -> None:
    arrays = [Array(engine, np.zeros(8, np.float32)) for _ in range(10)]
    _, launcher = affine_launcher(engine)
    engine.wait_idle()
    # With staging the uploads come first, so each array's first launch may wait for its own upload.
    for array in arrays:
        launcher.launch((array, 1.0), 8, False)
    engine.wait_idle()
    before = engine.statistics()["barriers"]
    for array in arrays:
        launcher.launch((array, 1.0), 8, False)
    engine.wait_idle()
    assert engine.statistics()["barriers"] - before <= 1


def test_checker_finds_missing_barriers(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(8, np.float32))
    _, launcher = affine_launcher(engine)
    engine.set_barriers_enabled(False)
    for _ in range(3):
        launcher.launch((array, 1.0), 8, False)
    engine.wait_idle()
    engine.set_barriers_enabled(True)
    messages = [text for _, text in native.take_messages()]
    assert any("kernel 'affine' reads a buffer that kernel 'affine' writes" in text for text in messages)


def test_checker_finds_missing_barriers_in_recorded_segments(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(8, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    for _ in range(2):
        commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
    data = struct.pack("3If", 8, 1, 1, 1.0) * 2
    commands.submit(-2, data, 1)
    engine.wait_idle()
    engine.set_barriers_enabled(False)
    commands.submit(-2, data, 1)  # recorded now, without barriers
    engine.wait_idle()
    engine.set_barriers_enabled(True)
    assert native.take_messages()


@pytest.mark.parametrize("length", [1, 2, 255, 256, 257, 1000])
def test_replay(engine: native.Engine, length: int) -> None:
    array = Array(engine, np.zeros(100, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    for i in range(length):
        offset = commands.record(plan, [(array._native, 0, 0, 0, True, True)], (2, 1, 1), 16)
        assert offset == 16 * i
    assert (commands.length, commands.instance_size) == (length, 16 * length)
    data = struct.pack("3If", 100, 1, 1, 1.0) * length
    for _ in range(5):  # streamed, recorded, then replayed
        commands.submit(-2, data, 1)
    np.testing.assert_array_equal(array.read(), 5 * length)
    commands.submit(-2, data * 3, 3)
    np.testing.assert_array_equal(array.read(), 8 * length)
    commands.submit(-2, b"", 0)
    np.testing.assert_array_equal(array.read(), 8 * length)


def test_replay_with_changing_arguments(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(1, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    for _ in range(600):  # three segments
        commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
    factors, expected = [1.0] * 600, 0.0
    for change in (None, None, 300, None, None, 599, 0, None):
        if change is not None:
            factors[change] = 0.5
        commands.submit(-2, b"".join(struct.pack("3If", 1, 1, 1, f) for f in factors), 1)
        for factor in factors:
            expected = float(np.float32(expected * factor + 1))
    assert array.read()[0] == expected


def test_recording_after_submits(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(1, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    one, total = struct.pack("3If", 1, 1, 1, 1.0), 0
    for length in range(1, 300, 13):
        while commands.length < length:
            commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
        for _ in range(3):
            commands.submit(-2, one * length, 1)
            total += length
    assert array.read()[0] == total
    commands.reset()
    assert (commands.length, commands.instance_size) == (0, 0)
    commands.submit(-2, b"", 1)
    assert array.read()[0] == total


def test_rearranged_recordings(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(1, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    factors = [float(k % 3) for k in range(300)]  # two segments
    for _ in factors:
        commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)

    def submit() -> float:
        expected = float(array.read()[0])
        for _ in range(3):  # streamed, recorded, replayed
            commands.submit(-2, b"".join(struct.pack("3If", 1, 1, 1, f) for f in factors), 1)
            for factor in factors:
                expected = float(np.float32(expected * factor + 1))
        return expected

    assert submit() == array.read()[0]
    with pytest.raises(ValueError, match="there is no command 300"):
        commands.rearrange([0, 300])
    assert commands.length == 300
    order = [299, 5, 5, *range(100, 200), 0]
    assert commands.rearrange(order) == [(16 * number, 16) for number in order]
    assert (commands.length, commands.instance_size) == (len(order), 16 * len(order))
    factors = [factors[number] for number in order]
    assert submit() == array.read()[0]
    assert commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16) == 16 * len(order)
    assert commands.rearrange([]) == []
    assert (commands.length, commands.instance_size) == (0, 0)
    commands.submit(-2, b"", 1)


def test_reset_right_after_submit(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(1, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    for _ in range(300):
        commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
        commands.submit(-2, struct.pack("3If", 1, 1, 1, 1.0), 1)
        commands.reset()
    assert array.read()[0] == 300


def test_uniform_arguments(engine: native.Engine) -> None:
    array = Array(engine, np.ones(10, np.float32))
    size = 16 + 96 * 4
    plan = native.Plan(engine, native.compile_glsl(AFFINE_UNIFORM), [3, 1], 0, "affine")
    slots = [native.BufferSlot(binding=1), native.ScalarSlot(offset=12, code="f")]
    launcher = native.Launcher(engine, plan, slots, size, 0, 0, -1, (64, 1, 1), (65535,) * 3, None)
    for _ in range(500):  # more than one block of uniform memory
        assert launcher.launch((array, 1.0), 10, False)
    np.testing.assert_array_equal(array.read(), 501)
    commands = native.CommandList(engine)
    for _ in range(3):
        commands.record(plan, [(array._native, 1, 0, 0, True, True)], (1, 1, 1), size, 0)
    data = struct.pack("3If", 10, 1, 1, 2.0).ljust(size, b"\0") * 3
    for _ in range(3):
        commands.submit(-2, data, 1)
    expected = 501.0
    for _ in range(9):
        expected = expected * 2 + 1
    np.testing.assert_array_equal(array.read(), np.float32(expected))


@pytest.mark.parametrize("size", [1, 3, 255, 8 << 20, (8 << 20) + 1, (40 << 20) + 7])
def test_transfers(engine: native.Engine, size: int) -> None:
    values = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    array = Array(engine, values)
    np.testing.assert_array_equal(array.read(), values)
    part = min(size, 1000)
    array._native.write(0, np.full(part, 7, np.uint8), size - part)
    values[size - part :] = 7
    np.testing.assert_array_equal(array.read(), values)
    out = np.empty(part, np.uint8)
    array._native.read_into(0, out, size - part)
    np.testing.assert_array_equal(out, 7)


def test_write_waits_for_readers(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(50_000, np.float32))
    _, launcher = affine_launcher(engine)
    for i in range(100):
        launcher.launch((array, 1.0), 50_000, False)
        array._native.write(0, np.full(50_000, i, np.float32))
        launcher.launch((array, 1.0), 50_000, False)
        assert np.all(array.read() == i + 1)


def test_frees_are_deferred(engine: native.Engine) -> None:
    _, launcher = affine_launcher(engine)
    for _ in range(200):
        launcher.launch((Array(engine, np.zeros(1000, np.float32)), 1.0), 1000, False)
    gc.collect()
    engine.wait_idle()
    deadline = time.monotonic() + 100
    while engine.statistics()["waiting_frees"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.statistics()["waiting_frees"] == 0
    assert engine.statistics()["live_objects"] == 1  # the plan


def test_destroyed_objects_raise(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(4, np.float32))
    plan, launcher = affine_launcher(engine)
    commands = native.CommandList(engine)
    commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
    array._native.destroy()
    array._native.destroy()
    assert launcher.launch((array, 1.0), 4, False) is False
    with pytest.raises(RuntimeError, match="buffer was destroyed"):
        array.read()
    with pytest.raises(RuntimeError, match="buffer was destroyed"):
        commands.submit(-2, bytes(16), 1)
    plan.destroy()
    with pytest.raises(RuntimeError, match="plan was destroyed"):
        launcher.launch((Array(engine, np.zeros(4, np.float32)), 1.0), 4, False)
    commands.destroy()
    with pytest.raises(RuntimeError, match="list was destroyed"):
        commands.reset()


def test_threads(engine: native.Engine) -> None:
    _, launcher = affine_launcher(engine)
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            array = Array(engine, np.full(500, seed, np.float32))
            for _ in range(5):
                for _ in range(40):
                    launcher.launch((array, 1.0), 500, False)
                array.read()
            np.testing.assert_array_equal(array.read(), seed + 200)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_destroying_while_another_thread_reads(engine: native.Engine) -> None:
    for _ in range(20):
        array = Array(engine, np.zeros(2_000_000, np.float32))
        reader = threading.Thread(target=array.read)
        reader.start()
        array._native.destroy()
        reader.join()


def test_close_with_everything_alive() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    array = Array(engine, np.zeros(1000, np.float32))
    plan, launcher = affine_launcher(engine)
    commands = native.CommandList(engine)
    commands.record(plan, [(array._native, 0, 0, 0, True, True)], (16, 1, 1), 16)
    for _ in range(3):
        commands.submit(-2, struct.pack("3If", 1000, 1, 1, 1.0), 1)
        launcher.launch((array, 1.0), 1000, False)
    engine.close()
    engine.close()
    for use in (
        array.read,
        lambda: launcher.launch((array, 1.0), 4, False),
        lambda: commands.submit(-2, bytes(16), 1),
        lambda: native.Buffer(engine, 4),
        engine.wait_idle,
    ):
        with pytest.raises(RuntimeError, match="context was closed"):
            use()


@pytest.mark.parametrize(
    ("devices", "families"), [([], []), ([99], [[0]]), ([0], [[]]), ([0], [[99]]), ([0], []), ([0, 0], [[0]])]
)
def test_engine_arguments(devices: list[int], families: list[list[int]]) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        native.Engine(devices, families, False, False)


def test_two_queues_have_their_own_copies() -> None:
    engine = native.Engine([first_device()], [[0, 0]], True, False)
    assert engine.queue_count == 2
    array = Array(engine, np.zeros(10, np.float32))
    array._native.write(1, np.full(10, 5, np.float32))
    _, launcher = affine_launcher(engine)
    launcher.launch((array, 1.0), 10, False)
    np.testing.assert_array_equal(array.read(0), 1)
    np.testing.assert_array_equal(array.read(1), 6)
    engine.close()
    assert native.take_messages() == []


def test_record_checks_bindings(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(4, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    buffer = array._native
    for bindings in (
        [],
        [(buffer, 1, 0, 0, True, True)],
        [(buffer, 0, 16, 0, True, True)],
        [(buffer, 0, 8, 9, True, True)],
        [(buffer, 0, 0, 0, True, True), (buffer, 1, 0, 0, True, True)],
    ):
        with pytest.raises(ValueError, match="binding"):
            commands.record(plan, bindings, (1, 1, 1), 16)
    with pytest.raises(ValueError, match="argument_size"):
        commands.record(plan, [(buffer, 0, 0, 0, True, True)], (1, 1, 1), 20)
    assert commands.length == 0
    with pytest.raises(ValueError, match="data"):
        commands.submit(-2, b"1234", 1)


@pytest.mark.parametrize("spirv", [b"", b"1234", b"\x03\x02\x23\x07" * 4, bytes(64)])
def test_plan_refuses_invalid_spirv(engine: native.Engine, spirv: bytes) -> None:
    with pytest.raises(ValueError, match="SPIR-V"):
        native.Plan(engine, spirv, [1], 0, "broken")


def test_compile_errors_carry_the_log() -> None:
    with pytest.raises(ValueError, match="undeclared identifier"):
        native.compile_glsl(AFFINE.replace("PC.factor", "missing"))
