"""The order of work that CUDA and a context share, on a machine in the test: no GPU is needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.sharing.cuda_machine import Machine, Memory
from vkdispatch.base.sharing import cuda_link
from vkdispatch.base.sharing.cuda_link import PART, CudaLink
from vkdispatch.base.sharing.cuda_memory import MappedMemories, SharedDeviceMemory, copy_between_links

SEEDS = range(10)


@pytest.fixture
def make_machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Machine, list[Any]]]:
    def make(devices: int = 1) -> tuple[Machine, list[Any]]:
        machine = Machine(devices)
        monkeypatch.setattr(cuda_link, "load_driver", lambda: machine.driver)
        return machine, [CudaLink(context) for context in machine.contexts]

    return make


def in_thread(call: Callable[[], None]) -> None:
    """Run a function in a new thread, to its end."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def create_stream(machine: Machine, link: Any) -> int:
    with link.enter():
        handle: int = machine.cuStreamCreate(1)[1]
    return handle


@pytest.mark.parametrize("seed", SEEDS)
def test_work_follows_in_both_directions(make_machine: Any, seed: int) -> None:
    machine, (link,) = make_machine()
    streams = [create_stream(machine, link) for _ in range(3)]
    for step in range(6):
        stream = streams[step % 3]
        machine.work(stream, f"theirs {step}")
        link.take(stream)
        machine.engines[0].work(f"ours {step}")
        link.give(streams[(step + 1) % 3])
    wanted = [name for step in range(6) for name in (f"theirs {step}", f"ours {step}")]
    assert machine.run(seed) == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_follow_each_other_without_work_between(make_machine: Any, seed: int) -> None:
    machine, (link,) = make_machine()
    first, second = (create_stream(machine, link) for _ in range(2))
    for step in range(3):
        machine.work(first, f"first {step}")
        link.take(first)
        link.give(second)
        machine.work(second, f"second {step}")
        link.take(second)
        link.give(first)
    wanted = [name for step in range(3) for name in (f"first {step}", f"second {step}")]
    assert machine.run(seed) == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_waits_for_the_call_of_its_own_thread(make_machine: Any, seed: int) -> None:
    machine, (link,) = make_machine()
    mine, other = (create_stream(machine, link) for _ in range(2))
    link.take(mine)
    link.add_visitor(mine)

    def call() -> None:
        link.take(other)
        link.add_visitor(other)
        link.dismiss_visitors()

    in_thread(call)  # between the import of an argument and the kernel
    machine.engines[0].work("kernel")
    link.dismiss_visitors()
    machine.work(mine, "after")
    assert machine.run(seed) == ["kernel", "after"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_waits_if_another_one_with_its_handle_did(make_machine: Any, seed: int) -> None:
    machine, (link,) = make_machine()
    machine.engines[0].work("kernel")
    stream = create_stream(machine, link)
    link.give(stream)
    machine.destroy(stream)
    assert create_stream(machine, link) == stream
    link.give(stream)
    machine.work(stream, "after")
    assert machine.run(seed) == ["kernel", "after"]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_thread_has_a_default_stream(make_machine: Any, seed: int) -> None:
    machine, (link,) = make_machine()
    machine.engines[0].work("kernel")

    def give_and_work(name: str) -> None:
        link.give(2)
        with link.enter():
            machine.work(2, name)
        link.take(2)

    in_thread(lambda: give_and_work("first"))
    in_thread(lambda: give_and_work("second"))
    machine.engines[0].work("last")
    log = machine.run(seed)
    assert log[0] == "kernel" and sorted(log[1:3]) == ["first", "second"] and log[3] == "last"


@pytest.mark.parametrize("seed", SEEDS)
def test_more_streams_than_timelines(make_machine: Any, seed: int) -> None:
    machine, (link,) = make_machine()
    streams = [create_stream(machine, link) for _ in range(150)]
    for number, stream in enumerate(streams * 2):
        machine.work(stream, f"theirs {number}")
        link.take(stream)
    machine.engines[0].work("ours")
    assert len(machine.engines[0].incoming) == 64
    log = machine.run(seed)
    assert len(log) == 301 and log[-1] == "ours"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loan_ends_while_the_link_is_at_work(make_machine: Any, seed: int) -> None:
    machine, (link,) = make_machine()
    stream, memory = create_stream(machine, link), Memory()
    loans = [link.lend(memory, stream) for _ in range(2000)]

    def collect() -> None:  # as the garbage collector might
        machine.in_signal = lambda: None
        machine.work(stream, "theirs")
        loans.clear()

    machine.in_signal = collect
    link.take(stream)
    machine.engines[0].work("ours")
    assert memory.holds == 0
    assert machine.run(seed) == ["theirs", "ours"]


def test_a_loan_ends_in_a_thread_that_does_not_wait_for_the_link(make_machine: Any) -> None:
    machine, (link,) = make_machine()
    stream, memory = create_stream(machine, link), Memory()
    loans = [link.lend(memory, stream)]
    with link.hold():
        in_thread(loans.clear)  # would never end if it waited
        assert memory.holds == 1
    assert memory.holds == 0
    machine.run()


def test_captures_are_refused(make_machine: Any) -> None:
    machine, (link,) = make_machine()
    stream, memory = create_stream(machine, link), Memory()
    loan = link.lend(memory, stream)
    machine.engines[0].work("kernel")
    machine.streams[stream].is_captured = True
    for handle in (stream, 1):
        with pytest.raises(RuntimeError, match="graph is being captured"):
            link.give(handle)
        with pytest.raises(RuntimeError, match="graph is being captured"):
            link.take(handle)
    del loan
    assert memory.holds == 1  # it can be taken back only afterwards
    machine.streams[stream].is_captured = False
    link.give(stream)
    assert memory.holds == 0
    machine.run()


def test_a_loan_that_ends_does_not_end_the_capture_of_another_stream(make_machine: Any) -> None:
    machine, (link,) = make_machine()
    stream, other, memory = create_stream(machine, link), create_stream(machine, link), Memory()
    loan = link.lend(memory, stream)
    machine.streams[other].is_captured = True
    del loan  # which imports the semaphore that the stream signals
    assert memory.holds == 0
    machine.run()


def test_a_loan_outlives_its_stream_and_cuda(make_machine: Any) -> None:
    machine, (link,) = make_machine()
    stream, memory = create_stream(machine, link), Memory()
    loans = [link.lend(memory, stream) for _ in range(2)]
    machine.destroy(stream)
    loans.pop()
    assert machine.synchronized == 1 and memory.holds == 1
    machine.lost.add(0)
    loans.pop()
    assert machine.synchronized == 1 and memory.holds == 0
    assert machine.current == []


def test_a_stream_of_another_device_is_refused(make_machine: Any) -> None:
    machine, links = make_machine(2)
    stream = create_stream(machine, links[1])
    links[1].check_stream(stream, "s")
    links[0].check_stream(1, "s")
    with pytest.raises(ValueError, match=r"s: the stream does not belong to CUDA's device 0"):
        links[0].check_stream(stream, "s")


@pytest.mark.parametrize("size", [64, 5 * PART + 64], ids=["one part", "six parts"])
@pytest.mark.parametrize("seed", SEEDS)
def test_copies_between_devices_are_in_order(make_machine: Any, seed: int, size: int) -> None:
    machine, links = make_machine(2)
    memories = Memory(1), Memory(1 << 20)  # so far apart that parts do not meet
    addresses = [link.blocks.map(memory) for link, memory in zip(links, memories, strict=True)]
    firsts = range(0, size, PART)
    found: list[list[object]] = []

    def fill(device: int, value: object) -> None:
        machine.memory.update({addresses[device] + first: (value, first) for first in firsts})

    for step in range(4):
        here, there = step % 2, 1 - step % 2
        machine.engines[here].do(partial(fill, here, step))
        machine.engines[there].do(partial(fill, there, "overwritten"))
        copy_between_links(links[there], memories[there], links[here], memories[here], size)
        machine.engines[here].do(partial(fill, here, "later"))
        machine.engines[there].do(
            lambda there=there: found.append([machine.memory[addresses[there] + first] for first in firsts])
        )
    machine.run(seed)
    assert found == [[(step, first) for first in firsts] for step in range(4)]
    assert machine.peers == {(0, 1), (1, 0)}
    copy_between_links(links[0], memories[0], links[0], memories[1], 64)  # two contexts of one device
    assert machine.peers == {(0, 1), (1, 0)}


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_of_another_process(make_machine: Any, seed: int) -> None:
    machine, (sender, receiver) = make_machine(2)
    source, target = Memory(1), Memory(2)
    places = sender.blocks.map(source), receiver.blocks.map(target)
    shared = SharedDeviceMemory(sender, 1 << 20)
    kept = int.from_bytes(shared.handle, "little") + 512
    mapped = MappedMemories()
    ours, theirs = machine.engines
    for step in range(4):
        ours.do(partial(machine.memory.__setitem__, places[0], f"chunk {step}"))
        shared.fill(512, source, 0, 64)
        assert machine.memory[kept] == f"chunk {step}"  # the host has waited for the device
        theirs.do(partial(machine.memory.__setitem__, places[1], "what the memory held before"))
        mapped.read(receiver, os.getpid(), shared.handle, 512, target, 64)
        assert machine.memory[places[1]] == f"chunk {step}"
    assert len(machine.mapped) == 1
    machine.run(seed)
    assert machine.memory[places[1]] == "chunk 3"


def test_memory_after_the_end_of_its_process(make_machine: Any) -> None:
    machine, (sender, receiver) = make_machine(2)
    shared = [SharedDeviceMemory(sender, 1 << 20) for _ in range(100)]
    mapped, target, ended = MappedMemories(), Memory(2), (1 << 22) + 1  # no process has this number
    for each in shared[:10]:
        mapped.read(receiver, ended, each.handle, 0, target, 64)
        assert len(machine.mapped) == 1
    for each in shared:
        mapped.read(receiver, os.getpid(), each.handle, 0, target, 64)
    # those that were used last stay
    wanted = [int.from_bytes(each.handle, "little") for each in shared[-64:]]
    assert machine.mapped == wanted
