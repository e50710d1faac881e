"""The messages of the levels TRACE and DEBUG."""

import logging
from collections.abc import Iterator

import pytest

import vkdispatch.kompute as kp
from vkdispatch.kompute import log

from .kernels import ADD_ONE


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """Restore the logger's level after the test."""
    before = logging.getLogger("kp").level
    yield
    logging.getLogger("kp").setLevel(before)
    log.debug("looks at the level")


def program() -> None:
    """Use each kind of object."""
    manager = kp.Manager()
    tensor = manager.tensor([1, 2, 3])
    algorithm = manager.algorithm([tensor], ADD_ONE, push_consts=[0.5])
    sequence = manager.sequence().begin()
    sequence.record(kp.OpSyncDevice([tensor])).record(kp.OpAlgoDispatch(algorithm)).end()
    sequence.eval()
    manager.image([1, 2], 2, 1, 1)
    tensor.rebuild([1])
    manager.sequence().eval_async(kp.OpSyncLocal([tensor])).eval_await()
    manager.destroy()


DEBUG = [
    "manager made: number of queues 1, a shared context",
    "tensor made: number of elements 3, float32, MemoryTypes.device, 12 bytes",
    "algorithm built: number of tensors and images 1, workgroups (3, 1, 1), push constants 4 bytes",
    "sequence made on queue 0",
    "sequence: eval on queue 0, number of operations 2",
    "image made: 2 x 1 texels, number of channels 1, float32, MemoryTypes.device",
    "tensor made: number of elements 1, float32, MemoryTypes.device, 4 bytes",
    "sequence made on queue 0",
    "sequence: eval_async on queue 0, number of operations 1",
    "sequence: eval_await: done",
    "manager destroyed: number of its objects 3",
    "sequence destroyed",
    "algorithm destroyed",
    "kp.Tensor destroyed: number of elements 1",
]
TRACE = [
    "sequence: recording begins",
    "sequence: OpSyncDevice recorded, operation 1",
    "sequence: OpAlgoDispatch recorded, operation 2",
    "sequence: recording ends, number of operations 2",
    "sequence: OpSyncLocal recorded, operation 1",
]


@pytest.mark.parametrize("by", ["kp.log_level", "the logger"])
@pytest.mark.parametrize("number", range(5))
def test_messages_of_each_level(number: int, by: str, caplog: pytest.LogCaptureFixture) -> None:
    if by == "kp.log_level":
        kp.log_level(number)
    else:
        logging.getLogger("kp").setLevel([5, 10, 20, 30, 40][number])
    program()
    said = {
        level: [each.message for each in caplog.records if each.levelno == level] for level in (5, 10, 20)
    }
    assert {each.name for each in caplog.records} <= {"kp"}
    assert said[5] == (TRACE if number == 0 else [])
    assert said[10] == (DEBUG if number <= 1 else [])
    assert bool(said[20]) == (number <= 2)


def test_a_new_level_applies_to_existing_objects(
    manager: kp.Manager, caplog: pytest.LogCaptureFixture
) -> None:
    tensor = manager.tensor([1])
    sequence = manager.sequence().record(kp.OpSyncDevice([tensor])).eval()
    assert not caplog.records
    kp.log_level(0)
    sequence.record(kp.OpSyncDevice([tensor])).eval()
    assert [each.levelname for each in caplog.records] == ["TRACE", "DEBUG"]
    kp.log_level(3)
    sequence.record(kp.OpSyncDevice([tensor])).eval()
    assert len(caplog.records) == 2
