"""Descriptions of a queue's unfinished work, as used in errors."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .gates import Gate
from .kernels import AFFINE, Array


class Kernels:
    """Numbered plans and launchers that differ only in their names. All have the same `place`."""

    def __init__(self, engine: native.Engine, count: int, place: str = "") -> None:
        code = native.compile_glsl(AFFINE)
        self.engine = engine
        self.array = Array(engine, np.zeros(64, np.float32))
        self.plans = [native.Plan(engine, code, [1], 16, f"k{i}", place=place) for i in range(count)]
        slots = [native.BufferSlot(binding=0), native.ScalarSlot(offset=12, code="f")]
        limits = ((64, 1, 1), (65535, 65535, 65535), None)
        self.launchers = [native.Launcher(engine, plan, slots, 16, -1, 0, -1, *limits) for plan in self.plans]

    def launch(self, *numbers: int) -> None:
        for number in numbers:
            assert self.launchers[number].launch((self.array, 2.0), 64, False, 0)

    def record(self, commands: native.CommandList, *numbers: int) -> None:
        for number in numbers:
            bindings = [(self.array._native, 0, 0, 0, True, True)]
            commands.record(self.plans[number], bindings, (1, 1, 1), 16)


@pytest.fixture
def gate(engine: native.Engine) -> Iterator[Gate]:
    with Gate(engine) as gate:
        yield gate


def pending_work(engine: native.Engine, queue: int = -1) -> str:
    """Describe the unfinished work other than the gate's own."""
    beginning = "queue 0: not finished: a launch of 'hold'"
    text = engine.describe_work(queue)
    assert text.startswith(beginning), text
    return text[len(beginning) :].removeprefix(", ")


def test_no_work(engine: native.Engine) -> None:
    assert engine.describe_work() == ""
    kernels = Kernels(engine, 1)
    kernels.launch(0)
    engine.wait_idle()
    assert engine.describe_work() == engine.describe_work(0) == ""


def test_names_places_and_counts(engine: native.Engine, gate: Gate) -> None:
    kernels, others = Kernels(engine, 1), Kernels(engine, 2, "heat.py:12")
    engine.wait_idle()
    gate.hold()
    assert pending_work(engine) == ""
    kernels.launch(0)
    others.launch(1, 1, 1)
    # submitted and gathered work is described in the same way
    assert pending_work(engine) == "a launch of 'k0', 3 launches of 'k1' (heat.py:12)"
    engine.flush(0, engine.last_value(0))
    assert pending_work(engine, 0) == "a launch of 'k0', 3 launches of 'k1' (heat.py:12)"
    gate.open()
    engine.wait_idle()
    assert engine.describe_work() == ""


def test_repeated_launches_are_counted_together(engine: native.Engine, gate: Gate) -> None:
    kernels = Kernels(engine, 3)
    engine.wait_idle()
    gate.hold()
    kernels.launch(2, *[0, 1] * 100, 2)
    assert pending_work(engine) == "2 launches of 'k2', 100 launches of 'k0', 100 launches of 'k1'"


@pytest.mark.parametrize(("count", "shown", "rest"), [(6, 7, 0), (7, 6, 2), (9, 6, 4)])
def test_only_the_first_launches_are_named(
    engine: native.Engine, gate: Gate, count: int, shown: int, rest: int
) -> None:
    kernels = Kernels(engine, count)
    engine.wait_idle()
    gate.hold()
    kernels.launch(*range(count))
    names = [f"a launch of 'k{i}'" for i in range(shown - 1)]  # the gate's launch is one of those shown
    assert pending_work(engine) == ", ".join(names) + (f" and {rest} more commands" if rest else "")


def test_copies(engine: native.Engine, gate: Gate) -> None:
    kernels = Kernels(engine, 1)
    other = Array(engine, np.zeros(64, np.float32))
    commands = native.CommandList(engine)
    kernels.record(commands, 0)
    image = native.Image(engine, 1, 100, (4, 4, 1), 1, 1, True, True)  # of float32
    same = native.Image(engine, 1, 100, (4, 4, 1), 1, 1, True, True)
    for size in (256, 256, 8):
        commands.record_copy(kernels.array._native, 0, other._native, 0, size)
    commands.record_image_copy(image, other._native, 0, True)
    commands.record_image_to_image(image, same)
    commands.record_barrier()
    engine.wait_idle()
    gate.hold()
    commands.submit(0, struct.pack("3If", 64, 1, 1, 1.0), 1)
    assert pending_work(engine) == (
        "a launch of 'k0', 2 copies of 256 bytes, a copy of 8 bytes, a copy of 64 bytes, a copy of an image"
    )


def test_replays_name_their_commands(engine: native.Engine, gate: Gate) -> None:
    kernels = Kernels(engine, 2, "heat.py:12")
    commands = native.CommandList(engine)
    kernels.record(commands, 0, 0, 1)
    arguments = struct.pack("3If", 64, 1, 1, 1.0) * 3
    for _ in range(3):
        commands.submit(0, arguments, 1)  # from the second on as a recorded segment
    engine.wait_idle()
    before = engine.statistics()["commands"]
    gate.hold()
    for _ in range(5):
        commands.submit(0, arguments, 1)
    assert engine.statistics()["commands"] == before + 1 + 5, "they are replayed"
    expected = "10 launches of 'k0' (heat.py:12), 5 launches of 'k1' (heat.py:12)"
    assert pending_work(engine) == expected
    engine.flush(0, engine.last_value(0))
    commands.destroy()
    kernels.plans[0].destroy()
    assert pending_work(engine) == expected, "what is given up lives until it is done"


def test_each_queue_describes_its_own_work() -> None:
    engine = native.Engine([first_device()], [[0, 0]], True, False)
    with Gate(engine) as gate:
        kernels = Kernels(engine, 1)
        engine.wait_idle()
        gate.hold()
        assert engine.describe_work(1) == ""
        assert engine.describe_work() == engine.describe_work(0) != ""
        with pytest.raises(ValueError, match="queue 2 does not exist"):
            engine.describe_work(2)
        del kernels
    engine.close()
    assert native.take_messages() == []
