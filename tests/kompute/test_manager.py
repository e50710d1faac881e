"""Managers: their arguments, their objects, and the destruction of these."""

import gc
import logging
import subprocess
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.kompute as kp
from vkdispatch.kompute import manager as managers

from .kernels import ADD_ONE

PROPERTIES = {
    "device_name": str,
    "max_work_group_count": tuple,
    "max_work_group_invocations": int,
    "max_work_group_size": tuple,
    "timestamps_supported": bool,
}


def works(manager: kp.Manager, queue: int = 0) -> bool:
    tensor = manager.tensor([1, 2, 3])
    sequence = manager.sequence(queue).record(kp.OpSyncDevice([tensor]))
    sequence.record(kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE)))
    sequence.record(kp.OpSyncLocal([tensor])).eval()
    return tensor.data().tolist() == [2, 3, 4]


@pytest.mark.parametrize("device", [0, np.int32(0), np.uint8(0), False])
def test_devices_must_be_integers(device: Any) -> None:
    assert works(kp.Manager(device)) and works(kp.Manager(device=device))


@pytest.mark.parametrize("device", [-1, 0.0, "0", None, [0]])
def test_invalid_devices_raise(device: Any) -> None:
    with pytest.raises(TypeError, match="device: expected an int"):
        kp.Manager(device)


@pytest.mark.parametrize("device", [99, 2**70])
def test_a_missing_device_raises(device: int) -> None:
    with pytest.raises(RuntimeError, match=r"device: expected 0 to \d+, got"):
        kp.Manager(device)


@pytest.mark.parametrize("families", [[0], (0, 0), range(1), np.array([0, 0, 0])])
def test_queues_by_family(families: Any) -> None:
    manager = kp.Manager(0, families)
    for queue in range(len(families)):
        assert works(manager, queue)
    with pytest.raises(RuntimeError, match="queue_index: expected 0 to"):
        manager.sequence(len(families))


@pytest.mark.parametrize("families", ["0", 0, None, [-1], [0.0], ["0"]])
def test_invalid_families_raise(families: Any) -> None:
    with pytest.raises(TypeError, match="family_queue_indices"):
        kp.Manager(0, families)


@pytest.mark.parametrize("families", [[99], [0, 99], [0] * 100])
def test_missing_families_raise(families: Any) -> None:
    with pytest.raises(RuntimeError, match="family_queue_indices"):
        kp.Manager(0, families)


def test_missing_extensions_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    offered = "VK_KHR_16bit_storage"
    manager = kp.Manager(0, [], [offered, "VK_NO_such"])
    (record,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert record.name == "kp" and "VK_NO_such" in record.message and offered not in record.message
    assert works(manager)


@pytest.mark.parametrize("extensions", ["VK_KHR_16bit_storage", 3, None, [3], [None]])
def test_invalid_extensions_raise(extensions: Any) -> None:
    with pytest.raises(TypeError, match="desired_extensions"):
        kp.Manager(0, [], extensions)


def test_keywords() -> None:
    assert works(kp.Manager(device=0, family_queue_indices=[], desired_extensions=[]))
    with pytest.raises(TypeError):
        kp.Manager(queue=0)  # type: ignore[call-arg]


def test_properties(manager: kp.Manager) -> None:
    devices = manager.list_devices()
    own = manager.get_device_properties()
    assert own in devices and len(devices) == len(vd.get_devices())
    for each in devices:
        assert {name: type(value) for name, value in each.items()} == PROPERTIES
        for name in ("max_work_group_count", "max_work_group_size"):
            assert len(each[name]) == 3 and all(isinstance(count, int) for count in each[name])
    assert own["device_name"] == vd.get_context().device_infos[0].device_name
    assert manager.timestamp_period > 0


@pytest.mark.parametrize("arguments", [(-1,), (0.5,), ("0",), (None,), (0, -1), (0, 0.5), (0, None)])
def test_invalid_arguments_of_sequence_raise(manager: kp.Manager, arguments: Any) -> None:
    with pytest.raises(TypeError, match="queue_index" if len(arguments) == 1 else "total_timestamps"):
        manager.sequence(*arguments)


def test_a_missing_queue_raises(manager: kp.Manager) -> None:
    for queue in (manager.context.queue_count, 2**70):
        with pytest.raises(RuntimeError, match=f"queue_index: .* got {queue}"):
            manager.sequence(queue)
    assert manager.sequence(queue_index=0, total_timestamps=3).is_init()


# -- destruction


def made_by(manager: kp.Manager) -> list[Any]:
    tensor = manager.tensor([1])
    algorithm = manager.algorithm([tensor], ADD_ONE)
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    return [tensor, manager.image([1], 1, 1, 1), algorithm, sequence, manager.create_sequence("named")]


def test_destroy_destroys_all_objects() -> None:
    manager = kp.Manager()
    made = made_by(manager)
    assert all(each.is_init() for each in made)
    manager.destroy()
    assert not any(each.is_init() for each in made)
    manager.destroy()
    calls: list[Any] = [
        lambda: manager.tensor([1]),
        lambda: manager.tensor_t(np.zeros(1, np.float32)),
        lambda: manager.empty_tensor(1),
        lambda: manager.image([1], 1, 1, 1),
        lambda: manager.image_t(np.zeros(1, np.float32), 1, 1, 1),
        lambda: manager.algorithm([], b""),
        manager.sequence,
        manager.list_devices,
        manager.get_device_properties,
        manager.clear,
        lambda: manager.context,
        lambda: manager.timestamp_period,
        lambda: manager.build_tensor([1]),
        lambda: manager.create_sequence("named"),
        lambda: manager.eval_await("named"),
        manager.eval_await_def,
        lambda: manager.eval_tensor_sync_local_def([]),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match=r"Manager was destroyed.*make a new one"):
            call()


def test_deleting_a_manager_destroys_all_objects() -> None:
    manager = kp.Manager()
    made = made_by(manager)
    del manager
    gc.collect()
    assert not any(each.is_init() for each in made)
    # not in an assert, where pytest keeps intermediate objects alive
    sequence, tensor = kp.Manager().sequence(), kp.Manager(0, [0]).tensor([1])
    assert not sequence.is_init() and not tensor.is_init()


def test_deleting_objects_affects_no_others(manager: kp.Manager) -> None:
    made = made_by(manager)
    gone = [weakref.ref(each) for each in made[:4]]
    del made
    gc.collect()
    manager.clear()
    assert all(each() is None for each in gone)
    assert works(manager)


def test_managers_are_destroyed_independently() -> None:
    one, other = kp.Manager(), kp.Manager()
    kept = other.tensor([1])
    one.destroy()
    assert kept.is_init() and works(other)
    other.destroy()


def test_destroy_waits_for_running_work(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(1 << 18))
    algorithm = manager.algorithm([tensor], ADD_ONE, (65535, 1, 1))
    sequence = manager.sequence().record(kp.OpAlgoDispatch(algorithm))
    sequence.eval_async(blocking=False)
    assert sequence.is_running()
    manager.destroy()
    assert not sequence.is_running() and not sequence.is_init()


def test_running_work_outlives_its_references(manager: kp.Manager) -> None:
    kept = manager.tensor(np.zeros(1000), kp.host)
    for _ in range(5):
        dropped = manager.tensor(np.zeros(1000))
        algorithm = manager.algorithm([kept, dropped], ADD_ONE)
        manager.sequence().eval_async(kp.OpAlgoDispatch(algorithm))
        del dropped, algorithm
    gc.collect()
    manager.sequence().record(kp.OpCopy([kept, manager.tensor(np.zeros(1000))])).eval()
    assert set(kept.data().tolist()) == {5}


def test_the_interpreter_exits_with_live_objects(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_python(
        "import vkdispatch.kompute as kp\n"
        "managers = [kp.Manager(), kp.Manager(0, [0])]\n"
        "tensors = [each.tensor([1, 2, 3], kp.host) for each in managers]\n"
        "sequences = [each.sequence() for each in managers]\n"
        f"code = {ADD_ONE!r}\n"
        "for manager, tensor, sequence in zip(managers, tensors, sequences):\n"
        "    algorithm = manager.algorithm([tensor], code)\n"
        "    for _ in range(1000):\n"
        "        sequence.record(kp.OpAlgoDispatch(algorithm))\n"
        "    sequence.eval_async(blocking=False)\n"
        "views = [tensor.data() for tensor in tensors]\n"
        "print(all(sequence.is_running() for sequence in sequences))\n"
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


# -- derived classes and other contexts


class Mine(kp.Manager):
    def __init__(self, name: str) -> None:
        super().__init__(0)
        self.name = name

    def ones(self, count: int) -> kp.Tensor:
        return self.tensor(np.ones(count))


class Forgetful(kp.Manager):
    def __init__(self) -> None:
        pass


def test_a_derived_manager() -> None:
    mine = Mine("mine")
    assert mine.name == "mine" and mine.ones(3).data().tolist() == [1, 1, 1]
    assert works(mine)
    with pytest.raises(RuntimeError, match="never initialized"):
        Forgetful().tensor([1])
    Forgetful().destroy()


def test_a_manager_on_a_context() -> None:
    context = vd.get_context()
    manager = kp.Manager(context=context)
    assert manager.context is context and works(manager)
    kept = manager.tensor([1])
    manager.destroy()
    assert not kept.is_init() and context.usable
    for wrong in (3, "context", kp.Manager):
        with pytest.raises(TypeError, match="context: expected a context"):
            kp.Manager(context=wrong)  # type: ignore[arg-type]


def test_a_manager_whose_context_was_closed() -> None:
    own = kp.Manager(0, [0])
    guest = kp.Manager(context=own.context)
    kept, context = guest.tensor([1, 2]), guest.context
    view = kept.data()
    own.destroy()
    with pytest.raises(RuntimeError, match=r"context of this kp\.Manager was closed"):
        guest.tensor([1])
    with pytest.raises(RuntimeError, match="context: it was closed"):
        kp.Manager(context=context)
    with pytest.raises(RuntimeError):
        guest.sequence()
    guest.destroy()
    assert view.tolist() == [1, 2]


def test_objects_of_managers_with_other_queues_raise(manager: kp.Manager) -> None:
    other = kp.Manager(0, [0])
    mine, foreign = manager.tensor([1]), other.tensor([1])
    algorithm = other.algorithm([foreign], ADD_ONE)
    with pytest.raises(RuntimeError, match=r"tensors: .* another device or queues"):
        manager.algorithm([foreign], ADD_ONE)
    for operation in (
        kp.OpSyncDevice([foreign]),
        kp.OpSyncLocal([mine, foreign]),
        kp.OpCopy([mine, foreign]),
        kp.OpCopy([foreign, mine]),
        kp.OpAlgoDispatch(algorithm),
    ):
        with pytest.raises(RuntimeError, match="another device or queues"):
            manager.sequence().record(operation)


def test_managers_of_one_context_share_objects(manager: kp.Manager) -> None:
    other = kp.Manager()
    assert manager.context is other.context
    tensor = other.tensor([1, 2])
    algorithm = manager.algorithm([tensor], ADD_ONE)
    sequence = manager.sequence().record(kp.OpSyncDevice([tensor])).record(kp.OpAlgoDispatch(algorithm))
    sequence.record(kp.OpSyncLocal([tensor])).eval()
    assert tensor.data().tolist() == [2, 3]
    other.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        manager.sequence().record(kp.OpAlgoDispatch(algorithm))


def test_a_manager_on_the_handles_of_a_device() -> None:
    maker = kp.Manager(0, [0])
    handles = maker.context.handles
    (device,) = handles.devices
    context = vd.make_context_from_handles(
        handles.instance,
        device.physical_device,
        device.device,
        [(queue.family, queue.handle) for queue in device.queues],
        device.extensions,
    )
    manager = kp.Manager(context=context)
    assert works(manager)
    image = manager.image_t(np.arange(15, dtype=np.uint8), 3, 5, 1)
    view = image.data()
    sequence = manager.sequence(0, 2).record(kp.OpSyncDevice([image])).record(kp.OpSyncLocal([image]))
    assert sequence.eval().get_timestamps()[2] > 0 and view.tolist() == list(range(15))
    kept = manager.tensor([1])
    manager.destroy()
    assert not kept.is_init() and context.usable and works(kp.Manager(context=context))
    with pytest.raises(RuntimeError, match="arrays still use"):
        context.close()  # the views lie in memory of that device
    del image, view, kept, sequence
    gc.collect()
    context.close()
    assert works(maker)


def test_managers_share_a_context_where_the_current_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managers.contexts, "get_context_on", lambda _: None)  # it is on another device
    first, second = kp.Manager(), kp.Manager()
    own = kp.Manager(family_queue_indices=[0])
    a, b, out = first.tensor([1, 2]), second.tensor([3, 4]), second.tensor([0, 0])
    context = second._require_context()
    assert first._require_context() is context
    assert own._require_context() is not context
    first.algorithm([a, b, out])  # raises if they are of several contexts
    first.destroy()
    assert not context.closed
    assert b.data().tolist() == [3, 4]
    second.destroy()
    assert context.closed
    third = kp.Manager()
    assert third.tensor([5, 6]).data().tolist() == [5, 6]
    third.destroy()
    own.destroy()
