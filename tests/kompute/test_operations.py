"""Operations: their arguments, their effects, and derived classes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch.kompute as kp

from .kernels import ADD_ONE, PUSHED

ON_MEMORY = (kp.OpSyncDevice, kp.OpSyncLocal, kp.OpCopy)


# -- arguments


@pytest.mark.parametrize("operation", ON_MEMORY)
def test_lists_of_memory(manager: kp.Manager, operation: Any) -> None:
    tensor, image = manager.tensor([1]), manager.image([1], 1, 1, 1)
    for given in ([tensor, image], (image, tensor)):
        assert isinstance(operation(given), operation)
    for wrong in (tensor, None, 3, "ab", iter([tensor]), {tensor}, [None], [tensor, None], [tensor, 1]):
        with pytest.raises(TypeError, match=f"{operation.__name__}: expected"):
            operation(wrong)
    for arguments, keywords in (((), {}), ((), {"memories": [tensor]}), (([tensor], 1), {})):
        with pytest.raises(TypeError):
            operation(*arguments, **keywords)


def test_too_few_tensors_raise(manager: kp.Manager) -> None:
    for operation in (kp.OpSyncDevice, kp.OpSyncLocal):
        with pytest.raises(RuntimeError, match=f"{operation.__name__}: expected 1 or more"):
            operation([])
    for few in ([], [manager.tensor([1])]):
        with pytest.raises(RuntimeError, match=r"kp\.OpCopy: expected 2 or more"):
            kp.OpCopy(few)


def test_dispatches_of_other_objects_raise(manager: kp.Manager) -> None:
    for wrong in (None, 3, manager.tensor([1]), ADD_ONE):
        with pytest.raises(TypeError, match=r"algorithm: expected a kp\.Algorithm"):
            kp.OpAlgoDispatch(wrong)  # type: ignore[arg-type]
    algorithm = manager.algorithm([manager.tensor([1])], ADD_ONE)
    manager.sequence().eval(kp.OpAlgoDispatch(algorithm=algorithm, push_consts=[]))


# -- OpCopy


def test_copies_to_many(manager: kp.Manager) -> None:
    source = manager.tensor([1, 2, 3])
    kinds = [*kp.MemoryTypes]
    targets = [manager.tensor(np.zeros(3), kind) for kind in kinds]
    stored = targets[kinds.index(kp.MemoryTypes.storage)]
    back = manager.tensor(np.zeros(3), kp.MemoryTypes.host)
    sequence = manager.sequence().record(kp.OpSyncDevice([source]))
    sequence.record(kp.OpCopy([source, *targets])).record(kp.OpCopy([stored, back])).eval()
    for target in (*targets, back):
        assert target is stored or target.data().tolist() == [1, 2, 3]


def test_a_copy_copies_the_host_view_and_device_memory(manager: kp.Manager) -> None:
    source, target = manager.tensor([1, 2]), manager.tensor([0, 0])
    manager.sequence().eval(kp.OpSyncDevice([source]))
    source.data()[:] = [3, 4]
    manager.sequence().eval(kp.OpCopy([source, target]))
    assert target.data().tolist() == [3, 4]
    manager.sequence().eval(kp.OpSyncLocal([target]))
    assert target.data().tolist() == [1, 2]


def test_a_copy_onto_itself(manager: kp.Manager) -> None:
    tensor = manager.tensor([1, 2], kp.MemoryTypes.host)
    manager.sequence().eval(kp.OpCopy([tensor, tensor]))
    assert tensor.data().tolist() == [1, 2]


def test_mismatched_copies_raise(manager: kp.Manager) -> None:
    tensor = manager.tensor([1, 2])
    for other, match in (
        (manager.tensor([1]), "OpCopy: from 2 elements to 1"),
        (manager.tensor_t(np.zeros(2, np.int32)), "OpCopy: from elements of float to elements of int"),
        (manager.tensor_t(np.zeros(4, np.uint8)), "OpCopy: from elements of float to elements of uchar"),
    ):
        operation = kp.OpCopy([tensor, other])  # checked when it is recorded
        with pytest.raises(RuntimeError, match=match):
            manager.sequence().record(operation)


# -- OpMult


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_multiplication(manager: kp.Manager, size: int) -> None:
    a, b = (np.random.default_rng(seed).normal(size=size).astype(np.float32) for seed in (1, 2))
    left, right, product = manager.tensor(a), manager.tensor(b), manager.tensor(np.zeros(size))
    algorithm = manager.algorithm([], b"")
    operation = kp.OpMult([left, right, product], algorithm)
    assert algorithm.is_init() and algorithm.get_workgroup() == (size, 1, 1)
    assert algorithm.get_mem_objects() == [left, right, product]
    sequence = manager.sequence().record(kp.OpSyncDevice([left, right])).record(operation)
    sequence.record(kp.OpSyncLocal([product])).eval()
    np.testing.assert_array_equal(product.data(), a * b)


def test_invalid_multiplications_raise(manager: kp.Manager) -> None:
    a, b = manager.tensor([1, 2]), manager.tensor([1, 2])
    algorithm = manager.algorithm([], b"")
    for count in (0, 1, 2, 4):
        with pytest.raises(RuntimeError, match=f"OpMult expected 3 mem objects but got {count}"):
            kp.OpMult([a] * count, algorithm)
    for third in (
        manager.tensor([1]),
        manager.tensor_t(np.zeros(2, np.int32)),
        manager.image([1, 2], 2, 1, 1),
    ):
        with pytest.raises(RuntimeError, match=r"OpMult: expected three tensors|got a kp\.Image"):
            kp.OpMult([a, b, third], algorithm)
    long = manager.tensor([1, 2, 3])
    for sizes in ([long, a, b], [a, long, b], [a, b, long]):
        with pytest.raises(RuntimeError, match=r"OpMult: expected three tensors of . floats, got . elements"):
            kp.OpMult(sizes, algorithm)
    for wrong in (None, ADD_ONE):
        with pytest.raises(TypeError, match="algorithm: expected"):
            kp.OpMult([a, b, a], wrong)  # type: ignore[arg-type]
    assert not algorithm.is_init()
    for memories in (a, None, [a, b, None]):
        with pytest.raises(TypeError, match="OpMult: expected"):
            kp.OpMult(memories, algorithm)  # type: ignore[arg-type]


# -- OpMemoryBarrier

READ, WRITE, COMPUTE = 0x20, 0x40, 0x800


def test_barriers_among_dispatches(manager: kp.Manager) -> None:
    tensor, image = manager.tensor(np.zeros(3)), manager.image([1], 1, 1, 1)
    algorithm = manager.algorithm([tensor], ADD_ONE)
    barrier = kp.OpMemoryBarrier([tensor, image], WRITE, READ, COMPUTE, COMPUTE)
    staging = kp.OpMemoryBarrier([tensor], WRITE, READ, COMPUTE, COMPUTE, barrier_on_primary=False)
    sequence = manager.sequence().record(kp.OpSyncDevice([tensor]))
    for _ in range(5):
        sequence.record(kp.OpAlgoDispatch(algorithm)).record(barrier).record(staging)
    sequence.record(kp.OpSyncLocal([tensor]))
    for turn in (1, 2):
        sequence.eval()
        assert tensor.data().tolist() == [5 * turn] * 3


def test_invalid_barriers_raise(manager: kp.Manager) -> None:
    tensor = manager.tensor([1])
    for memories, masks in (([], (1, 1, 1, 1)), ([tensor], (-1, 1, 1, 1))):
        with pytest.raises(RuntimeError, match="OpMemoryBarrier: expected memory, and masks"):
            kp.OpMemoryBarrier(memories, *masks)
    for others, numbers in ((tensor, (1, 1, 1, 1)), ([None], (1, 1, 1, 1)), ([tensor], (1.0, 1, 1, None))):
        with pytest.raises(TypeError, match="OpMemoryBarrier: "):
            kp.OpMemoryBarrier(others, *numbers)  # type: ignore[arg-type]
    barrier = kp.OpMemoryBarrier([tensor], WRITE, READ, COMPUTE, COMPUTE)
    tensor.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        manager.sequence().record(barrier)


# -- derived classes

STEPS = ("init", "record", "pre_eval", "post_eval")


class Noted(kp.OpBase):
    """Notes its calls, and adds 1 to a tensor. Raises in a chosen method."""

    def __init__(self, notes: list[str], name: str, algorithm: kp.Algorithm, fails: str = "") -> None:
        self.notes, self.name, self.algorithm, self.fails = notes, name, algorithm, fails

    def note(self, step: str) -> None:
        self.notes.append(f"{self.name} {step}")
        if self.fails == step:
            raise ZeroDivisionError(step)

    def init(self) -> None:
        self.note("init")

    def record(self, commands: Any) -> None:
        commands.dispatch(self.algorithm)
        self.note("record")

    def pre_eval(self) -> None:
        self.note("pre_eval")

    def post_eval(self) -> None:
        self.note("post_eval")


@pytest.fixture
def tensor(manager: kp.Manager) -> kp.Tensor:
    return manager.tensor([0], kp.MemoryTypes.host)


@pytest.fixture
def noted(manager: kp.Manager, tensor: kp.Tensor) -> Callable[..., Noted]:
    """Return a function that makes an operation."""
    algorithm = manager.algorithm([tensor], ADD_ONE)
    return lambda notes, name, fails="": Noted(notes, name, algorithm, fails)


def test_the_order_of_calls(manager: kp.Manager, tensor: kp.Tensor, noted: Any) -> None:
    notes: list[str] = []

    def taken() -> list[str]:
        found = notes[:]
        notes.clear()
        return found

    recorded = ["a init", "a record", "b init", "b record"]
    before, after = ["a pre_eval", "b pre_eval"], ["a post_eval", "b post_eval"]
    sequence = manager.sequence().record(noted(notes, "a")).record(noted(notes, "b"))
    assert taken() == recorded
    for turn in (1, 2):
        sequence.eval()
        assert taken() == before + after and tensor.data()[0] == 2 * turn
    sequence.rerecord()
    assert taken() == recorded
    sequence.eval_async(blocking=False)
    assert taken() == before
    sequence.eval_await()
    assert taken() == after and tensor.data()[0] == 6
    sequence.record(noted(notes, "c"))  # recorded again, while the sequence keeps the others
    sequence.eval()
    assert taken() == ["c init", "c record", *before, "c pre_eval", *after, "c post_eval"]
    assert tensor.data()[0] == 7
    sequence.eval(noted(notes, "d"))
    assert taken() == ["d init", "d record", "d pre_eval", "d post_eval"]
    sequence.eval_async(noted(notes, "e"))
    assert taken() == ["e init", "e record", "e pre_eval"] and sequence.is_running()
    sequence.eval_await()
    assert taken() == ["e post_eval"] and tensor.data()[0] == 9


@pytest.mark.parametrize("fails", ["init", "record"])
def test_errors_while_recording(manager: kp.Manager, tensor: kp.Tensor, noted: Any, fails: str) -> None:
    notes: list[str] = []
    sequence = manager.sequence().record(noted(notes, "a"))
    with pytest.raises(ZeroDivisionError):
        sequence.record(noted(notes, "b", fails))
    assert sequence.is_recording() and not sequence.is_running()
    sequence.record(noted(notes, "c")).eval()
    assert tensor.data()[0] == 2
    assert [note for note in notes if "b" in note] == ["b init", "b record"][: 1 + (fails == "record")]
    sequence.rerecord()
    sequence.eval()
    assert tensor.data()[0] == 4


def test_an_error_before_an_evaluation(manager: kp.Manager, tensor: kp.Tensor, noted: Any) -> None:
    notes: list[str] = []
    failing = noted(notes, "a", "pre_eval")
    sequence = manager.sequence().record(failing)
    for call in (sequence.eval, lambda: sequence.eval_async(blocking=False)):
        with pytest.raises(ZeroDivisionError):
            call()
        assert not sequence.is_running() and tensor.data()[0] == 0
    failing.fails = ""
    sequence.eval()
    assert tensor.data()[0] == 1


def test_an_error_after_an_evaluation(manager: kp.Manager, tensor: kp.Tensor, noted: Any) -> None:
    notes: list[str] = []
    sequence = manager.sequence().record(noted(notes, "a", "post_eval"))
    with pytest.raises(ZeroDivisionError):
        sequence.eval()
    assert tensor.data()[0] == 1 and not sequence.is_running()
    sequence.eval_async(blocking=False)
    with pytest.raises(ZeroDivisionError):
        sequence.eval_await()
    assert tensor.data()[0] == 2 and not sequence.is_running()
    with pytest.raises(ZeroDivisionError):
        sequence.eval()
    assert tensor.data()[0] == 3


class Scaled(kp.OpAlgoDispatch):
    """A dispatch that also uploads and downloads its memory, with its own constants."""

    def __init__(self, algorithm: kp.Algorithm, scale: float) -> None:
        super().__init__(algorithm, [scale, 2 * scale, 3 * scale])
        self.algorithm = algorithm
        self.evaluations = 0

    def record(self, commands: Any) -> None:
        for memory in self.algorithm.get_mem_objects():
            commands.copy_to_device(memory)
        super().record(commands)
        for memory in self.algorithm.get_mem_objects():
            commands.copy_to_host(memory)

    def post_eval(self) -> None:
        self.evaluations += 1


def test_a_class_derived_from_a_dispatch(manager: kp.Manager) -> None:
    tensor = manager.tensor(np.zeros(3))
    algorithm = manager.algorithm([tensor], PUSHED, (1, 1, 1), [], [0, 0, 0])
    scaled = Scaled(algorithm, 10)
    assert isinstance(scaled, kp.OpBase)
    sequence = manager.sequence().record(scaled)
    for turn in (1, 2, 3):
        sequence.eval()
        assert tensor.data().tolist() == [10 * turn, 20 * turn, 30 * turn]
    assert scaled.evaluations == 3


def test_all_commands_of_an_operation(manager: kp.Manager) -> None:
    a, b = manager.tensor([1, 2]), manager.tensor([0, 0])
    algorithm = manager.algorithm([b], ADD_ONE)

    class All(kp.OpBase):
        def record(self, commands: Any) -> None:
            commands.copy_to_device(a)
            commands.copy(a, b)
            commands.barrier()
            commands.dispatch(algorithm)
            commands.copy_to_host(b)

    manager.sequence().record(All()).eval()
    assert b.data().tolist() == [2, 3]


def test_invalid_commands_raise(manager: kp.Manager) -> None:
    gone = manager.tensor([1])
    gone.destroy()
    calls: list[Callable[[Any], None]] = [
        lambda commands: commands.copy_to_device(gone),
        lambda commands: commands.copy_to_host(gone),
        lambda commands: commands.copy(gone, gone),
        lambda commands: commands.dispatch(manager.algorithm([], b"")),
    ]

    class Wrong(kp.OpBase):
        def __init__(self, call: Callable[[Any], None]) -> None:
            self.call = call

        def record(self, commands: Any) -> None:
            self.call(commands)

    for call in calls:
        with pytest.raises(RuntimeError):
            manager.sequence().record(Wrong(call))
    with pytest.raises(TypeError, match="algorithm: expected"):
        manager.sequence().record(Wrong(lambda commands: commands.dispatch(None)))


class ForgetfulSync(kp.OpSyncLocal):
    def __init__(self) -> None:
        pass


class ForgetfulDispatch(kp.OpAlgoDispatch):
    def __init__(self) -> None:
        pass


def test_derived_operations_must_call_init(manager: kp.Manager) -> None:
    for kind in (ForgetfulSync, ForgetfulDispatch):
        with pytest.raises(RuntimeError, match=f"{kind.__name__}: its __init__ must call"):
            manager.sequence().record(kind())


def test_an_operation_can_change_its_sequence(manager: kp.Manager) -> None:
    tensor = manager.tensor([0], kp.MemoryTypes.host)
    dispatch = kp.OpAlgoDispatch(manager.algorithm([tensor], ADD_ONE))

    class Meddling(kp.OpBase):
        def __init__(self, at: str, what: Callable[[kp.Sequence], object]) -> None:
            self.at, self.what = at, what

        def act(self, at: str) -> None:
            if at == self.at:
                self.at = ""
                self.what(sequence)

        def record(self, commands: Any) -> None:
            self.act("record")

        def pre_eval(self) -> None:
            self.act("pre_eval")

        def post_eval(self) -> None:
            self.act("post_eval")

    acts: list[Callable[[kp.Sequence], object]] = [
        lambda given: given.record(dispatch),
        lambda given: given.eval(),
        lambda given: given.eval(dispatch),
        lambda given: given.eval_async(dispatch),
        lambda given: given.clear(),
        lambda given: given.rerecord(),
        lambda given: given.destroy(),
    ]
    for at in STEPS[1:]:
        for act in acts:
            sequence = manager.sequence()
            try:
                sequence.record(dispatch).record(Meddling(at, act)).record(dispatch).eval()
                sequence.eval_await()
            except RuntimeError as error:
                assert "destroyed" in str(error) or "running" in str(error)
            if sequence.is_init():
                sequence.eval_await()
                sequence.eval(dispatch)
    other = kp.Manager()
    sequence = other.sequence().record(Meddling("post_eval", lambda _: other.destroy()))
    sequence.eval()
    assert not sequence.is_init()
