"""Operations by name, as Kompute's Python module had them before 0.7: `sq.record_algo_data` and the like."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.errors import KomputeError

if TYPE_CHECKING:
    from vkdispatch.kompute.memory import Memory
    from vkdispatch.kompute.operations import OpBase

_R = TypeVar("_R", bound="NamedRecords")
Workgroup = Sequence[int]
_BY_SIZE = (0, 0, 0)


def tensor_sync_device(context: Context, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpSyncDevice."""
    from vkdispatch.kompute.operations import OpSyncDevice

    return OpSyncDevice(tensors)


def tensor_sync_local(context: Context, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpSyncLocal."""
    from vkdispatch.kompute.operations import OpSyncLocal

    return OpSyncLocal(tensors)


def tensor_copy(context: Context, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpCopy."""
    from vkdispatch.kompute.operations import OpCopy

    return OpCopy(tensors)


def algo_data(
    context: Context,
    tensors: "Sequence[Memory]",
    data: Any,
    workgroup: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> "OpBase":
    """Return the dispatch of SPIR-V, GLSL or a traced kernel on tensors."""
    from vkdispatch.kompute.algorithm import make_algorithm
    from vkdispatch.kompute.operations import OpAlgoDispatch

    code = data
    if isinstance(data, (bytearray, memoryview, list)):
        try:
            code = bytes(data)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"data: expected the bytes of a SPIR-V module: {error}") from None
    return OpAlgoDispatch(make_algorithm(context, tensors, code, workgroup, spec_consts, push_consts))


def algo_file(
    context: Context,
    tensors: "Sequence[Memory]",
    path: "str | os.PathLike[str]",
    workgroup: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> "OpBase":
    """Return the dispatch of the SPIR-V, or the GLSL, that a file holds."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"path: expected the path of a SPIR-V or GLSL file, got {path!r}")
    with open(path, "rb") as file:
        code = file.read()
    if code[:4] in (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03"):
        return algo_data(context, tensors, code, workgroup, spec_consts, push_consts)
    try:
        text = code.decode()
    except UnicodeDecodeError:
        raise KomputeError(f"path: {path} is neither a SPIR-V module nor GLSL text") from None
    return algo_data(context, tensors, text, workgroup, spec_consts, push_consts)


def algo_mult(context: Context, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpMult."""
    from vkdispatch.kompute.algorithm import make_algorithm
    from vkdispatch.kompute.operations import OpMult

    return OpMult(tensors, make_algorithm(context, (), b"", _BY_SIZE, (), ()))


class NamedRecords:
    """The `record_<operation>` of a sequence; each returns the sequence, and raises as `record`."""

    __slots__ = ()

    if TYPE_CHECKING:
        _context: Context

        def record(self: _R, op: "OpBase") -> _R:
            """Record an operation."""

    def record_tensor_sync_device(self: _R, tensors: "Sequence[Memory]") -> _R:
        """Record an OpSyncDevice."""
        return self.record(tensor_sync_device(self._context, tensors))

    def record_tensor_sync_local(self: _R, tensors: "Sequence[Memory]") -> _R:
        """Record an OpSyncLocal."""
        return self.record(tensor_sync_local(self._context, tensors))

    def record_tensor_copy(self: _R, tensors: "Sequence[Memory]") -> _R:
        """Record an OpCopy."""
        return self.record(tensor_copy(self._context, tensors))

    def record_algo_data(self: _R, tensors: "Sequence[Memory]", data: Any, *options: Any) -> _R:
        """Record the dispatch of SPIR-V bytes on tensors.

        Parameters
        ----------
        options
            workgroup, spec_consts and push_consts, as of `kp.Manager.algorithm`.
        """
        return self.record(algo_data(self._context, tensors, data, *options))

    def record_algo_file(
        self: _R, tensors: "Sequence[Memory]", path: "str | os.PathLike[str]", *options: Any
    ) -> _R:
        """Record the dispatch of a file of SPIR-V or GLSL on tensors; `options` as in `record_algo_data`."""
        return self.record(algo_file(self._context, tensors, path, *options))

    def record_algo_mult(self: _R, tensors: "Sequence[Memory]") -> _R:
        """Record an OpMult of three tensors."""
        return self.record(algo_mult(self._context, tensors))


class _Evaluation:
    """A method `eval_<operation>` of a Manager."""

    def __init__(self, make: "Callable[..., OpBase]", *, named: bool, waits: bool) -> None:
        self.make, self.named, self.waits = make, named, waits

    def __get__(self, manager: Any, owner: Any = None) -> "Callable[..., None]":
        """Return the method: it takes what the operation takes, and if `named` the name of a sequence."""

        def evaluate(*arguments: Any) -> None:
            name = None
            if self.named:
                *arguments, name = arguments or ("",)  # type: ignore[assignment]
                if not isinstance(name, str):
                    raise ArgumentTypeError(
                        f"sequence_name: expected the name of a sequence as last argument, got {name!r}"
                    )
            manager._evaluate(name, self.make(manager._context(), *arguments), waits=self.waits)

        return evaluate


class NamedEvaluations:
    """The `eval_<operation>` of a Manager.

    Those with the name of a sequence as their last argument run the operation there; `_def` in a sequence
    without a name. `async` does not wait: `eval_await(name)` and `eval_await_def()` do.
    """

    __slots__ = ()

    eval_tensor_sync_device = _Evaluation(tensor_sync_device, named=True, waits=True)
    eval_tensor_sync_device_def = _Evaluation(tensor_sync_device, named=False, waits=True)
    eval_async_tensor_sync_device = _Evaluation(tensor_sync_device, named=True, waits=False)
    eval_async_tensor_sync_device_def = _Evaluation(tensor_sync_device, named=False, waits=False)
    eval_tensor_sync_local = _Evaluation(tensor_sync_local, named=True, waits=True)
    eval_tensor_sync_local_def = _Evaluation(tensor_sync_local, named=False, waits=True)
    eval_async_tensor_sync_local = _Evaluation(tensor_sync_local, named=True, waits=False)
    eval_async_tensor_sync_local_def = _Evaluation(tensor_sync_local, named=False, waits=False)
    eval_tensor_copy = _Evaluation(tensor_copy, named=True, waits=True)
    eval_tensor_copy_def = _Evaluation(tensor_copy, named=False, waits=True)
    eval_async_tensor_copy = _Evaluation(tensor_copy, named=True, waits=False)
    eval_async_tensor_copy_def = _Evaluation(tensor_copy, named=False, waits=False)
    eval_algo_data = _Evaluation(algo_data, named=True, waits=True)
    eval_algo_data_def = _Evaluation(algo_data, named=False, waits=True)
    eval_async_algo_data = _Evaluation(algo_data, named=True, waits=False)
    eval_async_algo_data_def = _Evaluation(algo_data, named=False, waits=False)
    eval_algo_file = _Evaluation(algo_file, named=True, waits=True)
    eval_algo_file_def = _Evaluation(algo_file, named=False, waits=True)
    eval_async_algo_file = _Evaluation(algo_file, named=True, waits=False)
    eval_async_algo_file_def = _Evaluation(algo_file, named=False, waits=False)
    eval_algo_mult = _Evaluation(algo_mult, named=True, waits=True)
    eval_algo_mult_def = _Evaluation(algo_mult, named=False, waits=True)
    eval_async_algo_mult = _Evaluation(algo_mult, named=True, waits=False)
    eval_async_algo_mult_def = _Evaluation(algo_mult, named=False, waits=False)
