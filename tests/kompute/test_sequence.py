"""Recording, evaluation, and the state of sequences."""

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.kompute as kp
import vkdispatch_native as native
from tests.native.gates import Gate, releases_the_lock

from .kernels import ADD_ONE, DOUBLE_SUM, PRODUCT, PUSHED


def test_three_operations_in_a_chain(manager: kp.Manager) -> None:
    a, b, c = manager.tensor([2, 2, 2]), manager.tensor([1, 2, 3]), manager.tensor([0, 0, 0])
    algorithm = manager.algorithm([a, b, c], kp.compile_glsl(PRODUCT))
    sequence = manager.sequence()
    same = (
        sequence.record(kp.OpSyncDevice([a, b, c]))
        .record(kp.OpAlgoDispatch(algorithm))
        .record(kp.OpSyncLocal([c]))
    )
    assert same is sequence and sequence.is_recording()
    assert sequence.eval() is sequence
    assert not sequence.is_recording() and not sequence.is_running()
    assert c.data().tolist() == [2, 4, 6]


@pytest.mark.parametrize("size", [1, 7, 64, 65, 1000])
def test_dispatches_of_one_sequence_see_each_other(manager: kp.Manager, size: int) -> None:
    data = np.random.default_rng(size).normal(size=size).astype(np.float32)
    a, b = manager.tensor(data), manager.tensor(np.zeros(size))
    groups = (-(-size // 64), 1, 1)
    forth = manager.algorithm([a, b], DOUBLE_SUM, groups)
    back = manager.algorithm([b, a], DOUBLE_SUM, groups)
    sequence = manager.sequence().record(kp.OpSyncDevice([a]))
    for _ in range(5):
        sequence.record(kp.OpAlgoDispatch(forth)).record(kp.OpAlgoDispatch(back))
    sequence.record(kp.OpSyncLocal([a])).eval()
    wanted = data.copy()
    for _ in range(10):
        wanted = np.roll(wanted, -1) + wanted
    np.testing.assert_array_equal(a.data(), wanted)


def test_evaluating_again_runs_the_same_commands(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(10))
    algorithm = manager.algorithm([a], ADD_ONE)
    manager.sequence().eval(kp.OpSyncDevice([a]))
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    for _ in range(5):
        sequence.eval()
    manager.sequence().eval(kp.OpSyncLocal([a]))
    assert a.data().tolist() == [5] * 10


@pytest.mark.parametrize("count", [1, 2, 100])
def test_repeated_dispatches_are_merged_after_some_runs(manager: kp.Manager, count: int) -> None:
    a = manager.tensor(np.arange(37))
    algorithm = manager.algorithm([a], ADD_ONE)
    sequence = manager.sequence().record(kp.OpSyncDevice([a]))
    for _ in range(count):
        sequence.record(kp.OpAlgoDispatch(algorithm))
    sequence.record(kp.OpSyncLocal([a]))
    for _ in range(40):
        sequence.eval()
        np.testing.assert_array_equal(a.data(), np.arange(37) + count)
        a.data()[:] = np.arange(37)
    commands: Any = sequence._commands
    assert (commands.graph._native.length < count + 2) == (count == 100)


def test_dispatches_with_other_constants_are_not_merged(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(3))
    algorithm = manager.algorithm([a], PUSHED, (1, 1, 1), [], [1, 1, 1])
    manager.sequence().eval(kp.OpSyncDevice([a]))
    sequence = manager.sequence()
    for k in range(100):
        sequence.record(kp.OpAlgoDispatch(algorithm, [k % 2, 1, 2]))
    for _ in range(30):
        sequence.eval()
    manager.sequence().eval(kp.OpSyncLocal([a]))
    assert a.data().tolist() == [1500, 3000, 6000]


def test_eval_of_an_operation_drops_the_previous_ones(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(4), kp.host)
    algorithm = manager.algorithm([a], ADD_ONE)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm)).record(kp.OpAlgoDispatch(algorithm))
    sequence.eval(kp.OpAlgoDispatch(algorithm))
    assert a.data().tolist() == [1] * 4
    sequence.eval()
    assert a.data().tolist() == [2] * 4


def test_record_after_eval_starts_a_new_recording_and_rerecord_includes_all(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(2), kp.host)
    algorithm = manager.algorithm([a], ADD_ONE)
    dispatch = kp.OpAlgoDispatch(algorithm)
    sequence = manager.sequence().record(dispatch).record(dispatch)
    sequence.eval()
    assert a.data()[0] == 2
    sequence.record(dispatch).eval()
    assert a.data()[0] == 3
    sequence.rerecord()
    assert sequence.is_recording()
    sequence.eval()
    assert a.data()[0] == 6


def test_clear_drops_operations_but_keeps_the_last_recording(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(2), kp.host)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(manager.algorithm([a], ADD_ONE)))
    sequence.clear()
    assert not sequence.is_recording()
    sequence.eval()
    assert a.data()[0] == 1
    sequence.rerecord()
    sequence.eval()
    assert a.data()[0] == 1


def test_dispatches_without_constants_use_the_latest(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(3), kp.host)
    algorithm = manager.algorithm([a], PUSHED, (1, 1, 1), [], [1, 1, 1])
    sequence = (
        manager.sequence()
        .record(kp.OpAlgoDispatch(algorithm))
        .record(kp.OpAlgoDispatch(algorithm, [10, 10, 10]))
    )
    sequence.eval()
    assert a.data()[0] == 11
    a.data()[:] = 0
    sequence.rerecord()
    sequence.eval()
    assert a.data()[0] == 20


# -- asynchronous

SPIN = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { uint a[]; };
void main() { for (uint i = 0; i < 60000; ++i) a[0] = a[0] * 1664525u + 1013904223u; }
"""


def busy(manager: kp.Manager, count: int = 200) -> tuple[kp.Sequence, kp.Tensor]:
    a = manager.tensor_t(np.zeros(1, np.uint32), kp.host)
    algorithm = manager.algorithm([a], SPIN, (1, 1, 1))
    sequence = manager.sequence()
    for _ in range(count):
        sequence.record(kp.OpAlgoDispatch(algorithm))
    return sequence, a


def test_asynchronous_evaluation(manager: kp.Manager) -> None:
    a = manager.tensor(np.arange(5))
    sequence = manager.sequence()
    assert sequence.eval_async(kp.OpSyncDevice([a])) is sequence
    assert sequence.is_running() and not sequence.is_recording()
    assert sequence.eval_await() is sequence
    assert not sequence.is_running()
    assert sequence.eval_await() is sequence  # nothing runs


def test_eval_async_without_an_operation_waits_by_default(manager: kp.Manager) -> None:
    sequence, _ = busy(manager)
    sequence.eval_async()
    assert not sequence.is_running()
    sequence.eval_async(blocking=False)
    assert sequence.is_running()
    sequence.eval_await()


def test_an_evaluation_without_commands(manager: kp.Manager) -> None:
    source, target = (manager.tensor([value], kp.MemoryTypes.host) for value in (1, 2))
    sequence = manager.sequence().record(kp.OpCopy([source, target])).eval()
    sequence.record(kp.OpSyncLocal([source]))  # no effect for memory of this type
    target.data()[:] = 3
    sequence.eval_async(blocking=False)
    assert sequence.is_running()
    with pytest.raises(RuntimeError, match="record: the sequence is running"):
        sequence.record(kp.OpSyncLocal([source]))
    sequence.eval_await()
    assert not sequence.is_running() and target.data().tolist() == [1]


def test_a_running_sequence_rejects_calls(manager: kp.Manager) -> None:
    sequence, a = busy(manager)
    sequence.eval_async(blocking=False)
    for refused in (
        sequence.eval,
        sequence.rerecord,
        lambda: sequence.eval_async(blocking=False),
        lambda: sequence.record(kp.OpSyncLocal([a])),
        lambda: sequence.eval(kp.OpSyncLocal([a])),
    ):
        with pytest.raises(RuntimeError, match=r"running.*eval_await"):
            refused()
    sequence.eval_await()
    sequence.eval()


def engine_of(manager: kp.Manager) -> native.Engine:
    return manager.context._native


def test_a_timeout_leaves_the_sequence_running(manager: kp.Manager) -> None:
    sequence, _ = busy(manager)
    with Gate(engine_of(manager)) as gate:
        gate.hold()
        sequence.eval_async(blocking=False)
        assert sequence.eval_await(1000) is sequence
        assert sequence.is_running()
    sequence.eval_await(600_000_000_000)
    assert not sequence.is_running()
    for wrong in (-1, 1.5, "1"):
        with pytest.raises(TypeError, match="wait_for"):
            sequence.eval_await(wrong)  # type: ignore[arg-type]


def test_other_threads_run_during_an_evaluation(manager: kp.Manager) -> None:
    sequence, _ = busy(manager)
    with Gate(engine_of(manager)) as gate:
        gate.hold()
        assert releases_the_lock(gate, sequence.eval)


@pytest.mark.parametrize(
    "wait", [0, 1, True, np.int64(5), 2**32, 2**64, 2**2000, None], ids=lambda wait: str(wait)[:9]
)
def test_all_timeouts(manager: kp.Manager, wait: Any) -> None:
    sequence = manager.sequence().eval_async(kp.OpSyncDevice([manager.tensor(np.zeros(1000))]))
    assert sequence.eval_await(wait) is sequence
    assert sequence.eval_await().is_running() is False


def test_other_objects_than_operations_raise(manager: kp.Manager) -> None:
    sequence = manager.sequence()
    for wrong in (3, [], "op", kp.OpSyncDevice, manager.tensor([1])):
        for call in (sequence.eval, sequence.eval_async, sequence.record):
            with pytest.raises(TypeError, match=r"op: expected an operation such as kp\.OpAlgoDispatch"):
                call(wrong)  # type: ignore[operator]


# -- timestamps


def test_timestamps_before_an_evaluation_are_zero(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(1000))
    sequence = manager.sequence(0, 2).record(kp.OpSyncDevice([tensor]))
    assert sequence.get_timestamps() == [0, 0]
    sequence.eval_async(blocking=False)
    before = sequence.get_timestamps()  # waits
    assert len(before) == 2 and all(before)
    sequence.eval_await()
    sequence.record(kp.OpSyncLocal([tensor]))
    assert sequence.get_timestamps() == [*before, 0]
    sequence.eval()
    stamps = sequence.get_timestamps()
    assert stamps[:2] == before and stamps[2] >= stamps[1]
    sequence.rerecord()
    assert sequence.get_timestamps() == [0, 0, 0]
    assert all(sequence.eval().get_timestamps())


def test_timestamps(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(100))
    algorithm = manager.algorithm([a], ADD_ONE)
    sequence = manager.sequence(0, 10)
    assert sequence.get_timestamps() == [0]
    sequence.record(kp.OpSyncDevice([a])).record(kp.OpAlgoDispatch(algorithm)).record(kp.OpSyncLocal([a]))
    sequence.eval()
    stamps = sequence.get_timestamps()
    assert len(stamps) == 4 and stamps == sorted(stamps) and stamps[0] > 0 and stamps[3] > stamps[0]
    sequence.eval()
    assert sequence.get_timestamps()[0] >= stamps[3]
    sequence.record(kp.OpSyncLocal([a])).eval()
    assert len(sequence.get_timestamps()) == 5
    sequence.clear()
    sequence.record(kp.OpSyncLocal([a])).eval()
    assert len(sequence.get_timestamps()) == 2
    assert manager.timestamp_period > 0


def test_timestamps_after_clear_are_those_of_new_operations(manager: kp.Manager) -> None:
    tensor = manager.tensor([1])
    sequence = manager.sequence(total_timestamps=3)
    sequence.record(kp.OpSyncDevice([tensor])).record(kp.OpSyncLocal([tensor])).eval()
    assert len(sequence.get_timestamps()) == 3
    sequence.clear()
    sequence.eval()
    assert len(sequence.get_timestamps()) == 1
    sequence.record(kp.OpSyncLocal([tensor])).eval()
    assert len(sequence.get_timestamps()) == 2 and min(sequence.get_timestamps()) > 0


def test_timestamps_without_capacity_raise(manager: kp.Manager) -> None:
    with pytest.raises(RuntimeError, match="total_timestamps"):
        manager.sequence().get_timestamps()
    a = manager.tensor([1])
    sequence = manager.sequence(0, 1).record(kp.OpSyncDevice([a]))
    with pytest.raises(RuntimeError, match="total_timestamps"):
        sequence.record(kp.OpSyncDevice([a]))
    sequence.eval()


# -- lifetimes


def test_destroyed(manager: kp.Manager) -> None:
    a = manager.tensor([1])
    sequence = manager.sequence().record(kp.OpSyncDevice([a]))
    sequence.destroy()
    sequence.destroy()
    assert not sequence.is_init()
    calls: list[Any] = [
        sequence.eval,
        sequence.eval_async,
        sequence.eval_await,
        sequence.clear,
        sequence.rerecord,
        sequence.get_timestamps,
        sequence.begin,
        lambda: sequence.record(kp.OpSyncDevice([a])),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="destroyed"):
            call()


def test_an_operation_keeps_its_objects_alive(manager: kp.Manager) -> None:
    c = manager.tensor([0, 0, 0], kp.host)
    sequence = manager.sequence().record(
        kp.OpAlgoDispatch(
            manager.algorithm(
                [manager.tensor([1, 2, 3], kp.host), manager.tensor([4, 5, 6], kp.host), c], PRODUCT
            )
        )
    )
    sequence.eval()
    assert c.data().tolist() == [4, 10, 18]


def test_destroyed_memory_is_not_replayed(manager: kp.Manager) -> None:
    a = manager.tensor([1])
    sequence = manager.sequence().record(kp.OpSyncDevice([a]))
    sequence.eval()
    a.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        sequence.eval()
    with pytest.raises(RuntimeError, match="destroyed"):
        sequence.rerecord()
    with pytest.raises(RuntimeError, match="destroyed"):
        sequence.eval()  # not empty, unlike a failed recording


@pytest.mark.parametrize("blocking", [True, False])
def test_a_closed_context_raises(blocking: bool) -> None:
    manager = kp.Manager(0, [0])
    tensor = manager.tensor([1])
    sequence = manager.sequence().record(kp.OpSyncDevice([tensor])).eval()
    manager.context.close()
    with pytest.raises(RuntimeError, match="context of this sequence was closed"):
        sequence.eval_async(blocking=blocking)
    assert not sequence.is_running()
    manager.destroy()


class Failing:
    """An engine with failing work, which counts its waits."""

    def __init__(self, engine: Any, error: BaseException) -> None:
        self.engine = engine
        self.error = error
        self.waits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def wait_until(self, *_: object) -> None:
        self.waits += 1
        raise self.error


def _running(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> tuple[kp.Manager, kp.Sequence, Failing, kp.Tensor]:
    """Return a Manager with a submitted sequence whose wait raises, and its tensor."""
    manager = kp.Manager(0, [0])
    tensor = manager.tensor([1])
    sequence = manager.sequence()
    sequence.eval_async(kp.OpSyncDevice([tensor]))
    failing = Failing(manager.context._engine, error)
    monkeypatch.setattr(manager.context, "_engine", failing)
    return manager, sequence, failing, tensor


def test_a_sequence_with_failed_work_is_not_running(monkeypatch: pytest.MonkeyPatch) -> None:
    manager, sequence, *_ = _running(monkeypatch, vd.OutOfDeviceMemoryError("none left"))
    with pytest.raises(vd.OutOfDeviceMemoryError, match="none left"):
        sequence.eval_await()
    assert not sequence.is_running()
    monkeypatch.undo()
    assert sequence.eval() is sequence
    manager.destroy()


def test_an_interrupted_wait_leaves_the_sequence_running(monkeypatch: pytest.MonkeyPatch) -> None:
    manager, sequence, *_ = _running(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        sequence.eval_await()
    assert sequence.is_running()
    monkeypatch.undo()
    sequence.eval_await()
    assert not sequence.is_running()
    manager.destroy()


@pytest.mark.parametrize("error", [vd.VulkanError("it failed"), KeyboardInterrupt()])
def test_a_manager_is_destroyed_despite_errors_of_its_sequences(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    manager, sequence, failing, tensor = _running(monkeypatch, error)
    context = manager.context
    with pytest.raises(type(error)):
        manager.destroy()
    assert failing.waits == 1 and context.closed
    assert not sequence.is_init() and not tensor.is_init()
    sequence.destroy()
    manager.destroy()


def test_nothing_recorded(manager: kp.Manager) -> None:
    assert manager.sequence().eval().is_init()
    assert not manager.sequence().eval_async(blocking=False).is_running()


def test_a_failed_record_changes_nothing(manager: kp.Manager) -> None:
    a, b = manager.tensor([1, 2]), manager.tensor([0, 0])
    c = manager.tensor([0, 0, 0])
    sequence = manager.sequence().record(kp.OpSyncDevice([a, b]))
    with pytest.raises(RuntimeError, match="from 2 elements to 3"):
        sequence.record(kp.OpCopy([a, b, c]))
    assert sequence.is_recording()
    sequence.record(kp.OpSyncLocal([b])).eval()
    assert b.data().tolist() == [0, 0]
    for wrong in (None, 3, kp.OpCopy):
        with pytest.raises(TypeError, match="op"):
            sequence.record(wrong)  # type: ignore[arg-type]


class Refused(kp.OpAlgoDispatch):
    """A dispatch that raises after it is recorded."""

    __slots__ = ()

    def record(self, commands: Any) -> None:
        super().record(commands)
        raise KeyError("refused")


def refusals(manager: kp.Manager) -> list[tuple[Any, type[Exception]]]:
    """Return operations that cannot be recorded, and their errors."""
    a, c = manager.tensor([1, 2]), manager.tensor([0, 0, 0])
    whole = manager.tensor_t(np.zeros(2, np.int32))
    pushed = manager.algorithm([c], PUSHED, push_consts=[1.0, 2.0, 3.0])
    gone = manager.algorithm([a], ADD_ONE)
    gone.destroy()
    return [
        (3, TypeError),
        (kp.OpCopy, TypeError),
        (kp.OpCopy([a, a, c]), RuntimeError),
        (kp.OpCopy([a, whole]), RuntimeError),
        (kp.OpAlgoDispatch(pushed, [1.0]), RuntimeError),
        (kp.OpAlgoDispatch(gone), RuntimeError),
        (Refused(pushed, [4.0, 5.0, 6.0]), KeyError),
    ]


@pytest.mark.parametrize("timestamps", [0, 3])
@pytest.mark.parametrize("call", ["eval", "eval_async", "record"])
def test_a_rejected_operation_keeps_the_evaluated_recording(
    manager: kp.Manager, call: str, timestamps: int
) -> None:
    a, b = manager.tensor([1, 2]), manager.tensor([0, 0])
    algorithm = manager.algorithm([a], ADD_ONE)
    sequence = manager.sequence(0, timestamps).record(kp.OpSyncDevice([a])).record(kp.OpCopy([a, b])).eval()
    assert b.data().tolist() == [1, 2]
    for count, (op, error) in enumerate(refusals(manager)):
        with pytest.raises(error):
            getattr(sequence, call)(op)
        assert not sequence.is_recording() and not sequence.is_running()
        a.data()[:] = count
        sequence.eval()
        assert b.data().tolist() == [count] * 2  # by the copy on the host after the evaluation
        sequence.rerecord()
        sequence.eval()
        if timestamps:
            assert len(sequence.get_timestamps()) == 3
    sequence.eval(kp.OpAlgoDispatch(algorithm))
    sequence.eval(kp.OpSyncLocal([a]))
    assert a.data().tolist() == [count + 1] * 2


@pytest.mark.parametrize("call", ["eval", "eval_async", "record"])
def test_a_rejected_operation_keeps_the_current_recording(manager: kp.Manager, call: str) -> None:
    a, b = manager.tensor([1, 2]), manager.tensor([0, 0])
    sequence = manager.sequence().record(kp.OpSyncDevice([a]))
    for op, error in refusals(manager):
        with pytest.raises(error):
            getattr(sequence, call)(op)
        assert sequence.is_recording()
    sequence.record(kp.OpCopy([a, b])).record(kp.OpSyncLocal([b])).eval()
    assert b.data().tolist() == [1, 2]


@pytest.mark.parametrize("call", ["eval", "eval_async", "record"])
def test_an_operation_rejected_by_a_running_sequence_changes_nothing(manager: kp.Manager, call: str) -> None:
    sequence, a = busy(manager)
    b = manager.tensor_t(np.zeros(a.size(), np.uint32))
    sequence.record(kp.OpSyncLocal([a])).record(kp.OpCopy([a, b]))
    sequence.eval_async(blocking=False)
    with pytest.raises(RuntimeError, match=r"running.*eval_await"):
        getattr(sequence, call)(kp.OpSyncDevice([a]))
    sequence.eval_await()
    np.testing.assert_array_equal(b.data(), a.data())
    assert b.data().any()


@pytest.mark.parametrize("call", ["eval", "eval_async", "record"])
def test_a_rejected_dispatch_keeps_the_push_constants(manager: kp.Manager, call: str) -> None:
    a = manager.tensor([1, 2, 3])
    algorithm = manager.algorithm([a], PUSHED, push_consts=[1.0, 2.0, 3.0])
    sequence = manager.sequence()
    with pytest.raises(KeyError):
        getattr(sequence, call)(Refused(algorithm, [4.0, 5.0, 6.0]))
    assert algorithm.get_push_consts().tolist() == [1, 2, 3]
    sequence.eval(kp.OpAlgoDispatch(algorithm, [7.0, 8.0, 9.0]))
    assert algorithm.get_push_consts().tolist() == [7, 8, 9]


def test_a_rejected_rerecord_keeps_the_push_constants(manager: kp.Manager) -> None:
    a, b = manager.tensor([1, 2, 3]), manager.tensor([1, 2])
    first = manager.algorithm([a], PUSHED, push_consts=[1.0, 2.0, 3.0])
    second = manager.algorithm([b], ADD_ONE)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(first, [4.0, 5.0, 6.0]))
    sequence.record(kp.OpAlgoDispatch(second)).eval()
    first.set_push_consts([7.0, 8.0, 9.0])
    second.destroy()
    with pytest.raises(RuntimeError, match="nothing to dispatch"):
        sequence.rerecord()
    assert first.get_push_consts().tolist() == [7, 8, 9]
    sequence.eval()


def test_a_sequence_is_a_graph(manager: kp.Manager) -> None:
    a = manager.tensor(np.zeros(4), kp.host)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(manager.algorithm([a], ADD_ONE)))
    graph = sequence.graph
    assert isinstance(graph, vd.CommandGraph)
    graph.submit()
    vd.queue_wait_idle()
    assert a.data().tolist() == [1] * 4
