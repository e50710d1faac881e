"""The module: names, enumerations, opaque objects, and the logger."""

import copy
import logging
import pickle
import subprocess
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import vkdispatch.kompute as kp

CLASSES = [
    *("Algorithm", "Image", "Manager", "Memory", "Sequence", "Tensor"),
    *("OpAlgoDispatch", "OpBase", "OpCopy", "OpMult", "OpSyncDevice", "OpSyncLocal"),
    *("DataTypes", "MemoryTypes"),
]
DATA_TYPES = ["bool", "int", "uint", "float", "double", "custom", "short", "ushort", "char", "uchar"]
MEMORY_TYPES = ["device", "host", "storage", "deviceAndHost"]


@pytest.fixture
def level() -> Iterator[None]:
    """Restore the logger's level after the test."""
    before = logging.getLogger("kp").level
    yield
    logging.getLogger("kp").setLevel(before)


def test_names() -> None:
    assert isinstance(kp.__version__, str)
    for name in CLASSES:
        assert isinstance(getattr(kp, name), type) and name in kp.__all__
    for name in kp.__all__:
        assert hasattr(kp, name)


def test_the_names_of_0_9_mean_the_same() -> None:
    assert kp.TensorTypes is kp.MemoryTypes
    assert kp.OpTensorSyncDevice is kp.OpSyncDevice
    assert kp.OpTensorSyncLocal is kp.OpSyncLocal
    assert kp.OpTensorCopy is kp.OpCopy


def test_hierarchy() -> None:
    for operation in (kp.OpSyncDevice, kp.OpSyncLocal, kp.OpCopy, kp.OpAlgoDispatch, kp.OpMult):
        assert issubclass(operation, kp.OpBase)
    assert not issubclass(kp.OpMult, kp.OpAlgoDispatch)
    assert issubclass(kp.Tensor, kp.Memory) and issubclass(kp.Image, kp.Memory)


@pytest.mark.parametrize(
    ("kind", "names"), [(kp.DataTypes, DATA_TYPES), (kp.MemoryTypes, MEMORY_TYPES)], ids=["data", "memory"]
)
def test_enumerations(kind: Any, names: list[str]) -> None:
    assert list(kind.__members__) == names
    for number, name in enumerate(names):
        member = getattr(kind, name)
        assert getattr(kp, name) is member
        assert (member.name, member.value, int(member)) == (name, number, number)
        assert kind(number) is member
        assert str(member) == f"{kind.__name__}.{name}"
        assert repr(member) == f"<{kind.__name__}.{name}: {number}>"
        assert member != number and hash(member) == hash(member)


def test_star_import_brings_the_members(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(
        "from vkdispatch.kompute import *\n"
        "import vkdispatch.kompute as kp\n"
        "assert host is kp.MemoryTypes.host and float is kp.DataTypes.float and uint is kp.uint\n"
        "manager = Manager()\n"
        "print(manager.tensor([1, 2], deviceAndHost).data().tolist())\n"
    )
    assert (done.stdout, done.returncode) == ("[1.0, 2.0]\n", 0), done.stderr


@pytest.mark.parametrize("name", ["OpBase", "Memory", "Image", "Algorithm", "Sequence"])
def test_objects_of_a_manager_have_no_constructor(name: str) -> None:
    for arguments in ((), (1, 2)):
        with pytest.raises(TypeError, match=f"kp.{name} has no constructor"):
            getattr(kp, name)(*arguments)


def everything(manager: kp.Manager) -> list[Any]:
    tensor = manager.tensor([1, 2, 3])
    algorithm = manager.algorithm([], b"")
    return [
        tensor,
        manager.image([1, 2, 3, 4], 2, 2, 1),
        algorithm,
        manager.sequence(),
        kp.OpSyncDevice([tensor]),
        kp.OpSyncLocal([tensor]),
        kp.OpCopy([tensor, tensor]),
        kp.OpAlgoDispatch(algorithm),
        kp.OpMult([tensor, tensor, tensor], manager.algorithm([], b"")),
        manager,
    ]


def test_objects_are_opaque(manager: kp.Manager) -> None:
    made = everything(manager)
    assert len(set(made)) == len(made)  # hashed and compared by identity
    for each in made:
        assert each and weakref.ref(each)() is each
        with pytest.raises(AttributeError):
            each.something = 1
        for refused in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled"):
                refused(each)


def test_tensors_of_a_manager_are_not_iterable(manager: kp.Manager) -> None:
    tensor = manager.tensor([1, 2, 3])
    for refused in (iter, memoryview, lambda given: given[0]):
        with pytest.raises(TypeError):
            refused(tensor)  # type: ignore[operator]


def test_the_same_object_comes_back(manager: kp.Manager) -> None:
    tensor, image = manager.tensor([1, 2]), manager.image([1], 1, 1, 1)
    algorithm = manager.algorithm([tensor, image], b"")
    sequence = manager.sequence()
    assert tensor.data().base is tensor and image.data().base is image
    first, second = algorithm.get_mem_objects()
    assert first is tensor and second is image
    assert algorithm.get_mem_objects() is not algorithm.get_mem_objects()
    assert algorithm.get_tensors()[0] is tensor
    assert sequence.record(kp.OpSyncDevice([tensor])) is sequence
    assert sequence.eval() is sequence and sequence.eval_await() is sequence
    assert sequence.eval_async(kp.OpSyncLocal([tensor])).eval_await(10**9) is sequence


def test_an_array_keeps_its_tensor(manager: kp.Manager) -> None:
    kept = manager.tensor([1, 2, 3]).data()
    assert kept.base.is_init() and kept.tolist() == [1, 2, 3]
    manager.destroy()
    assert not kept.base.is_init() and len(kept.base) == 0 and not kept.base


def test_importing_the_module_configures_the_logger(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_python(
        "import logging, vkdispatch.kompute as kp\n"
        "assert logging.getLogger().handlers\n"
        "manager = kp.Manager(0, [], ['VK_NO_such'])\n"
        "kp.log_level(2)\n"
        "kp.Manager()\n"
        "kp.log_level(4)\n"
        "manager.sequence().eval_await()\n"
    )
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if ":kp:" in line]
    assert [line.split(":")[0] for line in lines] == ["ERROR", "INFO"]
    assert "VK_NO_such" in lines[0]


def test_log_level(level: None, manager: kp.Manager, caplog: pytest.LogCaptureFixture) -> None:
    for number, wanted in enumerate([5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR]):
        kp.log_level(number)
        assert logging.getLogger("kp").level == wanted
    manager.sequence().eval_await()
    assert not caplog.records
    kp.log_level(3)
    manager.sequence().eval_await()
    assert [(record.name, record.levelname) for record in caplog.records] == [("kp", "WARNING")]


def test_invalid_log_levels_raise(level: None) -> None:
    for wrong in (-1, 5):
        with pytest.raises(RuntimeError, match=f"level: .* got {wrong}"):
            kp.log_level(wrong)
    for other in (1.0, "1", None):
        with pytest.raises(TypeError, match="level"):
            kp.log_level(other)  # type: ignore[arg-type]
