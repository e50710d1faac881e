"""The methods of a Manager in Kompute 0.5 and 0.6."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute import generation
from vkdispatch.kompute.enums import MemoryTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory.memory import parse_memory_type
from vkdispatch.kompute.memory.tensor import ListTensor
from vkdispatch.kompute.resources import Resources

if TYPE_CHECKING:
    from vkdispatch.kompute.operations.operation import OpBase
    from vkdispatch.kompute.sequences.sequence import Sequence

_DEVICE_TYPE = MemoryTypes.device


class _Evaluation:
    """A method `eval[_async]_<operation>[_def]` of a Manager.

    Parameters
    ----------
    function
        The function of `operations.named` that makes the operation.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._is_named = self._waits = True

    def __set_name__(self, owner: type, name: str) -> None:
        """Derive from the name whether the method takes a sequence's name, and whether it waits."""
        self._is_named = not name.endswith("_def")
        self._waits = not name.startswith("eval_async_")

    def __get__(self, manager: Any, owner: Any = None) -> "Callable[..., None]":
        """Return the method. It takes the operation's arguments, and second a sequence's name if named."""

        def evaluate(tensors: Any, *arguments: Any, **options: Any) -> None:
            from vkdispatch.kompute.operations import named

            name = None
            if self._is_named:
                name, *arguments = arguments or (None,)  # type: ignore[assignment]
                if not isinstance(name, str):
                    raise ArgumentTypeError(
                        f"sequenceName: expected the name of a sequence as second argument, got {name!r}"
                    )
            resources = manager._require_alive()
            place = named.Owner(manager._require_context(), resources.objects)
            op = getattr(named, self._function)(place, tensors, *arguments, **options)
            manager._evaluate(name, op, waits=self._waits)

        return evaluate


class LegacyManager:
    """The methods that evaluate operations in named sequences.

    `eval_<operation>` takes the name of a sequence as its second argument, behind the tensors, and runs the
    operation there. `eval_<operation>_def` runs it in a sequence without a name. `eval_async_<operation>`
    does not wait; `eval_await(name)` and `eval_await_def()` do.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def _require_alive(self) -> Resources:
            """Return the objects of the Manager."""

        def _make_sequence(self, queue_index: int, total_timestamps: int, kind: Any = None) -> "Sequence":
            """Make a sequence of a class."""

    eval_tensor_create = _Evaluation("make_tensor_create")
    eval_tensor_create_def = _Evaluation("make_tensor_create")
    eval_async_tensor_create = _Evaluation("make_tensor_create")
    eval_async_tensor_create_def = _Evaluation("make_tensor_create")
    eval_tensor_sync_device = _Evaluation("make_sync_device")
    eval_tensor_sync_device_def = _Evaluation("make_sync_device")
    eval_async_tensor_sync_device = _Evaluation("make_sync_device")
    eval_async_tensor_sync_device_def = _Evaluation("make_sync_device")
    eval_tensor_sync_local = _Evaluation("make_sync_local")
    eval_tensor_sync_local_def = _Evaluation("make_sync_local")
    eval_async_tensor_sync_local = _Evaluation("make_sync_local")
    eval_async_tensor_sync_local_def = _Evaluation("make_sync_local")
    eval_tensor_copy = _Evaluation("make_copy")
    eval_tensor_copy_def = _Evaluation("make_copy")
    eval_async_tensor_copy = _Evaluation("make_copy")
    eval_async_tensor_copy_def = _Evaluation("make_copy")
    eval_algo_data = _Evaluation("make_algo_data")
    eval_algo_data_def = _Evaluation("make_algo_data")
    eval_async_algo_data = _Evaluation("make_algo_data")
    eval_async_algo_data_def = _Evaluation("make_algo_data")
    eval_algo_str = _Evaluation("make_algo_data")
    eval_algo_str_def = _Evaluation("make_algo_data")
    eval_async_algo_str = _Evaluation("make_algo_data")
    eval_async_algo_str_def = _Evaluation("make_algo_data")
    eval_algo_file = _Evaluation("make_algo_file")
    eval_algo_file_def = _Evaluation("make_algo_file")
    eval_async_algo_file = _Evaluation("make_algo_file")
    eval_async_algo_file_def = _Evaluation("make_algo_file")
    eval_algo_mult = _Evaluation("make_algo_mult")
    eval_algo_mult_def = _Evaluation("make_algo_mult")
    eval_async_algo_mult = _Evaluation("make_algo_mult")
    eval_async_algo_mult_def = _Evaluation("make_algo_mult")
    eval_algo_lro = _Evaluation("make_algo_lro")
    eval_algo_lro_def = _Evaluation("make_algo_lro")
    eval_async_algo_lro = _Evaluation("make_algo_lro")
    eval_async_algo_lro_def = _Evaluation("make_algo_lro")

    def build_tensor(self, data: Any, tensorType: MemoryTypes = _DEVICE_TYPE) -> ListTensor:  # noqa: N803
        """Make a `kp.Tensor(data)` with device memory. Raises the errors of `kp.Tensor`."""
        tensor = ListTensor(data, parse_memory_type(tensorType, "tensorType"))
        self.eval_tensor_create_def([tensor])
        return tensor

    def create_sequence(self, name: str = "", queueIndex: int = 0) -> "Sequence":  # noqa: N803
        """Make a sequence, and register it by name if the name is new and not empty.

        Raises
        ------
        TypeError, RuntimeError
            `name` is not a string, or as `sequence`.
        """
        if not isinstance(name, str):
            raise ArgumentTypeError(f"name: expected text, got {name!r}")
        sequence = self._make_named_sequence(queueIndex)
        if name:
            self._require_alive().named_sequences.setdefault(name, sequence)
        return sequence

    def get_create_sequence(self, name: str) -> "Sequence":
        """Return the sequence of a name; make it if it does not exist. Raises as `create_sequence`."""
        return self._require_alive().named_sequences.get(name) or self.create_sequence(name)

    def _make_named_sequence(self, queue_index: int = 0) -> "Sequence":
        """Make a sequence of the generation in use."""
        if not generation.is_before_0_7():
            return self._make_sequence(queue_index, 0)
        from vkdispatch.kompute.sequences.legacy_sequence import LegacySequence

        return self._make_sequence(queue_index, 0, LegacySequence)

    def eval_await(self, sequenceName: str, waitFor: int | None = None) -> None:  # noqa: N803
        """Wait for a named sequence, if it is running, for at most `waitFor` nanoseconds.

        Raises RuntimeError if it does not exist.
        """
        sequence = self._require_alive().named_sequences.get(sequenceName)
        if sequence is None:
            raise KomputeError(f"sequenceName: there is no sequence {sequenceName!r}")
        if sequence.is_running():
            sequence.eval_await(waitFor)

    def eval_await_def(self, waitFor: int | None = None) -> None:  # noqa: N803
        """Wait for the last `eval_async_..._def`, if it is running.

        Raises RuntimeError if there was no `eval_..._def`.
        """
        self.eval_await("", waitFor)

    def _evaluate(self, name: str | None, op: "OpBase", *, waits: bool) -> None:
        """Run an operation in a named sequence, or with None in a new one.

        `eval_await_def` waits for the new sequence, which is kept unless the operation raises an error.
        """
        sequences = self._require_alive().named_sequences
        sequence = (None if name is None else sequences.get(name)) or self._make_named_sequence()
        if waits:
            sequence.eval(op)
        else:
            sequence.eval_async(op)
        if name is None and waits:
            sequences.setdefault("", sequence)  # an earlier sequence may still be running
        else:
            sequences[name or ""] = sequence
