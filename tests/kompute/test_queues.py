"""Several queues: sequences on each, shared memory, overlapping evaluations."""

from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.kompute as kp
from vkdispatch.base.context import use_context
from vkdispatch.codegen.abbreviations import Buff, f32

from .kernels import ADD_ONE, DOUBLE_SUM

QUEUES = 3


@pytest.fixture
def many() -> Iterator[kp.Manager]:
    """Return a Manager with several queues, which may share a queue of the driver."""
    made = kp.Manager(0, [0] * QUEUES)
    yield made
    made.destroy()


@pytest.fixture
def queues(many: kp.Manager) -> list[kp.Sequence]:
    return [many.sequence(queue) for queue in range(QUEUES)]


@pytest.mark.parametrize("kind", [kp.MemoryTypes.device, kp.MemoryTypes.host, kp.MemoryTypes.deviceAndHost])
def test_queues_see_writes_of_other_queues(
    many: kp.Manager, queues: list[kp.Sequence], kind: kp.MemoryTypes
) -> None:
    tensor = many.tensor(np.arange(1000), kind)
    dispatch = kp.OpAlgoDispatch(many.algorithm([tensor], ADD_ONE))
    queues[0].eval(kp.OpSyncDevice([tensor]))
    for turn in range(10):
        queues[turn % QUEUES].eval(dispatch)
    queues[1].eval(kp.OpSyncLocal([tensor]))
    np.testing.assert_array_equal(tensor.data(), np.arange(1000) + 10)


def test_overlapping_evaluations_of_shared_memory_are_in_order(
    many: kp.Manager, queues: list[kp.Sequence]
) -> None:
    data = np.random.default_rng(1).integers(0, 10, 500).astype(np.float32)
    a, b = many.tensor(data), many.tensor(np.zeros(500))
    groups = (-(-500 // 64), 1, 1)
    forth, back = many.algorithm([a, b], DOUBLE_SUM, groups), many.algorithm([b, a], DOUBLE_SUM, groups)
    queues[0].record(kp.OpSyncDevice([a])).eval_async(blocking=False)
    queues[1].record(kp.OpAlgoDispatch(forth)).eval_async(blocking=False)
    queues[2].record(kp.OpAlgoDispatch(back)).record(kp.OpSyncLocal([a])).eval_async(blocking=False)
    for sequence in reversed(queues):
        sequence.eval_await()
    for _ in range(2):
        data = np.roll(data, -1) + data
    np.testing.assert_array_equal(a.data(), data)


def test_many_rounds_of_overlapping_evaluations(many: kp.Manager, queues: list[kp.Sequence]) -> None:
    shared = many.tensor(np.zeros(100))
    own = [many.tensor(np.zeros(100)) for _ in queues]
    many.sequence().eval(kp.OpSyncDevice([shared, *own]))
    for sequence, tensor in zip(queues, own, strict=True):
        sequence.record(kp.OpAlgoDispatch(many.algorithm([tensor], ADD_ONE)))
        sequence.record(kp.OpAlgoDispatch(many.algorithm([shared], ADD_ONE)))
    for _ in range(40):
        for sequence in queues:
            sequence.eval_async(blocking=False)
        for sequence in queues:
            sequence.eval_await()
    queues[2].eval(kp.OpSyncLocal([shared, *own]))
    assert set(shared.data().tolist()) == {40 * QUEUES}
    for tensor in own:
        assert set(tensor.data().tolist()) == {40}


def test_several_sequences_of_one_queue(many: kp.Manager) -> None:
    tensor = many.tensor(np.zeros(10), kp.MemoryTypes.host)
    dispatch = kp.OpAlgoDispatch(many.algorithm([tensor], ADD_ONE))
    sequences = [many.sequence(1) for _ in range(5)]
    for sequence in sequences:
        sequence.eval_async(dispatch)
    assert all(sequence.is_running() for sequence in sequences)
    for sequence in reversed(sequences):
        sequence.eval_await()
    assert tensor.data().tolist() == [5] * 10


def test_images_on_several_queues(many: kp.Manager, queues: list[kp.Sequence]) -> None:
    for kind in kp.MemoryTypes:
        source, image = many.image(np.arange(12), 3, 4, 1), many.image(np.zeros(12), 3, 4, 1, kind)
        target = many.tensor(np.zeros(12))
        queues[0].record(kp.OpSyncDevice([source])).record(kp.OpCopy([source, image]))
        queues[1].record(kp.OpCopy([image, target]))
        for sequence in queues[:2]:
            sequence.eval_async(blocking=False)
        for sequence in queues[:2]:
            sequence.eval_await()
            sequence.clear()
        queues[2].eval(kp.OpSyncLocal([target]))
        assert target.data().tolist() == list(range(12))


def test_timestamps_of_each_queue(many: kp.Manager) -> None:
    tensor = many.tensor(np.zeros(10))
    algorithm = many.algorithm([tensor], ADD_ONE)
    many.sequence().eval(kp.OpSyncDevice([tensor]))
    for queue in range(QUEUES):
        sequence = many.sequence(queue, 2).record(kp.OpAlgoDispatch(algorithm))
        sequence.record(kp.OpSyncLocal([tensor])).eval()
        stamps = sequence.get_timestamps()
        assert len(stamps) == 3 and stamps == sorted(stamps) and stamps[0] > 0


def test_named_sequences_on_a_queue(many: kp.Manager) -> None:
    tensor = many.tensor([1], kp.MemoryTypes.host)
    for queue in range(QUEUES):
        many.create_sequence(f"queue {queue}", queue).record_algo_data([tensor], ADD_ONE).eval()
    assert tensor.data().tolist() == [1 + QUEUES]


def test_destroy_while_all_queues_run(many: kp.Manager, queues: list[kp.Sequence]) -> None:
    tensor = many.tensor(np.zeros(1 << 16))
    dispatch = kp.OpAlgoDispatch(many.algorithm([tensor], ADD_ONE, (65535, 1, 1)))
    for sequence in queues:
        sequence.eval_async(dispatch)
    many.destroy()
    assert not any(sequence.is_running() or sequence.is_init() for sequence in queues)


@vd.shader("buf.size")
def double(buf: Buff[f32]) -> None:
    """Double each element."""
    i = vc.global_invocation_id().x
    buf[i] = buf[i] * 2


@pytest.mark.parametrize("kind", [kp.MemoryTypes.device, kp.MemoryTypes.host])
def test_native_kernels_on_shared_memory_run_once_and_in_order(
    many: kp.Manager, queues: list[kp.Sequence], kind: kp.MemoryTypes
) -> None:
    tensor = many.tensor(np.arange(1000), kind)
    dispatch = kp.OpAlgoDispatch(many.algorithm([tensor], ADD_ONE))
    wanted = np.arange(1000)
    many.sequence().eval(kp.OpSyncDevice([tensor]))
    for sequence in queues:
        for _ in range(50):
            sequence.record(dispatch)
    with use_context(many.context):
        graph = vd.CommandGraph()
        double(tensor.buffer, graph=graph)
        for sequence in queues:
            sequence.eval_async(blocking=False)
            double(tensor.buffer)  # would run on every queue if each had its own memory
            graph.submit()
            wanted = (wanted + 50) * 4
        np.testing.assert_array_equal(tensor.buffer.read(1), wanted)


def test_threads_with_separate_queues_share_memory_in_order(
    many: kp.Manager, queues: list[kp.Sequence]
) -> None:
    data = np.zeros(5000)
    tensor, other = many.tensor(data), many.tensor(data)
    many.sequence().eval(kp.OpSyncDevice([tensor]))
    add = kp.OpAlgoDispatch(many.algorithm([tensor], ADD_ONE))
    for sequence in queues:
        # A write by another thread between the two copies would be lost.
        sequence.record(kp.OpCopy([tensor, other])).record(add)

    def work(sequence: kp.Sequence) -> None:
        for _ in range(50):
            sequence.eval()

    threads = [Thread(target=work, args=(sequence,)) for sequence in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    many.sequence().eval(kp.OpSyncLocal([tensor]))
    assert set(tensor.data().tolist()) == {50 * QUEUES}


def test_native_copies_of_shared_memory_are_in_order(many: kp.Manager, queues: list[kp.Sequence]) -> None:
    a, b = (many.tensor(np.zeros(2000)) for _ in range(2))
    many.sequence().eval(kp.OpSyncDevice([a, b]))
    dispatch = kp.OpAlgoDispatch(many.algorithm([a], ADD_ONE))
    for _ in range(100):
        queues[2].record(dispatch)
    for turn in range(1, 4):
        queues[2].eval_async(blocking=False)
        with use_context(many.context):
            vd.copyto(b.buffer, a.buffer)
            assert set(b.buffer.read(turn % QUEUES).tolist()) == {100 * turn}
        queues[2].eval_await()
