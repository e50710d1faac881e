"""Threads: separate sequences on one Manager, and a sequence used by several threads."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

import vkdispatch.kompute as kp

from .kernels import ADD_ONE, PUSHED

THREADS = 8


def in_threads(work: Callable[[int], None], count: int = THREADS) -> list[BaseException]:
    """Run in threads that start together. Return their exceptions."""
    raised: list[BaseException] = []
    start = threading.Barrier(count)

    def run(index: int) -> None:
        start.wait()
        try:
            work(index)
        except BaseException as error:  # every exception is returned to the test
            raised.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return raised


@pytest.mark.parametrize("families", [(), (0, 0)])
def test_threads_with_separate_sequences(families: tuple[int, ...]) -> None:
    manager = kp.Manager(0, families)
    count = max(1, len(families))

    def work(index: int) -> None:
        queue = index % count
        tensor = manager.tensor(np.full(101 + index, index))
        algorithm = manager.algorithm([tensor], ADD_ONE)
        sequence = manager.sequence(queue).record(kp.OpSyncDevice([tensor]))
        for _ in range(3):
            sequence.record(kp.OpAlgoDispatch(algorithm))
        sequence.record(kp.OpSyncLocal([tensor]))
        for turn in range(20):
            if turn % 2:
                sequence.eval()
            else:
                sequence.eval_async(blocking=False).eval_await()
            assert set(tensor.data().tolist()) == {index + 3 * (turn + 1)}
        stored = manager.image(np.arange(4), 2, 2, 1)
        manager.sequence(queue).record(kp.OpSyncDevice([stored])).record(kp.OpSyncLocal([stored])).eval()
        assert stored.data().tolist() == [0, 1, 2, 3]

    assert in_threads(work) == []
    manager.destroy()


def test_threads_on_shared_memory(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(100))
    manager.sequence().eval(kp.OpSyncDevice([tensor]))
    algorithm = manager.algorithm([tensor], ADD_ONE)

    def work(index: int) -> None:
        sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
        for _ in range(20):
            sequence.eval()

    assert in_threads(work) == []
    manager.sequence().eval(kp.OpSyncLocal([tensor]))
    assert set(tensor.data().tolist()) == {20 * THREADS}


def test_constants_of_threads(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(3))
    manager.sequence().eval(kp.OpSyncDevice([tensor]))
    algorithm = manager.algorithm([tensor], PUSHED, (1, 1, 1), [], [0, 0, 0])

    def work(index: int) -> None:
        for _ in range(20):
            manager.sequence().eval(kp.OpAlgoDispatch(algorithm, [index, 1, 2]))

    assert in_threads(work) == []
    manager.sequence().eval(kp.OpSyncLocal([tensor]))
    assert tensor.data().tolist() == [20 * sum(range(THREADS)), 20 * THREADS, 40 * THREADS]


@pytest.mark.parametrize("families", [(), (0, 0)])
def test_a_sequence_used_by_two_threads_does_not_crash(families: tuple[int, ...]) -> None:
    manager = kp.Manager(0, families)
    tensor = manager.tensor(np.zeros(100))
    dispatch = kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE))
    sync = kp.OpSyncLocal([tensor])
    sequence = manager.sequence().record(dispatch)
    calls: list[Callable[[], object]] = [
        sequence.eval,
        lambda: sequence.record(dispatch),
        lambda: sequence.eval_async(blocking=False),
        sequence.eval_await,
        lambda: sequence.eval(sync),
        sequence.rerecord,
        lambda: sequence.eval_async(dispatch),
        sequence.clear,
        lambda: sequence.graph,
    ]

    def work(index: int) -> None:
        for turn in range(60):
            try:
                calls[(turn * (index + 1) + index) % len(calls)]()
            except RuntimeError as error:
                assert str(error)

    assert in_threads(work, 4) == []
    sequence.eval_await()
    sequence.clear()
    sequence.record(kp.OpSyncDevice([tensor])).record(dispatch).record(sync).eval()
    tensor.data()[:] = 0
    sequence.eval()
    assert set(tensor.data().tolist()) == {1}
    manager.destroy()


def test_destroy_while_threads_work() -> None:
    manager = kp.Manager()
    evaluated = threading.Event()

    def work(index: int) -> None:
        if index == 0:
            evaluated.wait(100)
            manager.destroy()
            return
        try:
            for _ in range(10_000):
                tensor = manager.tensor(np.zeros(50))
                sequence = manager.sequence().record(kp.OpSyncDevice([tensor]))
                sequence.record(kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE))).eval()
                evaluated.set()
        except RuntimeError as error:
            assert "destroyed" in str(error)
        else:
            raise AssertionError("the manager went on after it was destroyed")

    assert in_threads(work, 4) == []
    with pytest.raises(RuntimeError, match="destroyed"):
        manager.sequence()


def test_objects_deleted_by_threads(manager: kp.Manager) -> None:
    def work(index: int) -> None:
        for _ in range(30):
            tensor = manager.tensor(np.zeros(64))
            manager.sequence().eval_async(kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE)))
        manager.clear()

    assert in_threads(work) == []
