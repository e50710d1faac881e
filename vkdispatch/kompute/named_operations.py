"""Operations by name, as Kompute's Python module had them before 0.7: `sq.record_algo_data` and the like."""

import os
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.errors import KomputeError

if TYPE_CHECKING:
    from vkdispatch.kompute.algorithm import Algorithm
    from vkdispatch.kompute.memory import Memory
    from vkdispatch.kompute.operations import OpBase

Workgroup = Sequence[int]
_BY_SIZE = (0, 0, 0)
_SPIRV = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")


class Owner(NamedTuple):
    """Where an operation is to run, and the set of what ends with the Manager there."""

    context: Context
    owners: "weakref.WeakSet[Any]"


def make_tensor_create(owner: Owner, tensors: Any) -> "OpBase":
    """Return the operation that gives tensors device memory and their data."""
    from vkdispatch.kompute.operations import OpTensorCreate

    return OpTensorCreate(owner.context, owner.owners, tensors)


def make_sync_device(owner: Owner, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpSyncDevice."""
    from vkdispatch.kompute.operations import OpSyncDevice

    return _make_transfer(OpSyncDevice, tensors)


def make_sync_local(owner: Owner, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpSyncLocal."""
    from vkdispatch.kompute.operations import OpSyncLocal

    return _make_transfer(OpSyncLocal, tensors)


def make_copy(owner: Owner, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpCopy."""
    from vkdispatch.kompute.operations import OpCopy

    return _make_transfer(OpCopy, tensors)


def _make_transfer(
    operation: "Callable[[Sequence[Memory]], OpBase]", tensors: "Sequence[Memory]"
) -> "OpBase":
    from vkdispatch.kompute.memory import require_transfers

    made = operation(tensors)
    require_transfers(tensors)
    return made


def make_algo_data(
    owner: Owner,
    tensors: "Sequence[Memory]",
    bytes: Any,
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> "OpBase":
    """Return the dispatch of SPIR-V, GLSL or a traced kernel on tensors."""
    from vkdispatch.kompute.operations import OpAlgoDispatch

    code = _parse_code("bytes", bytes)
    return OpAlgoDispatch(_make_algorithm(owner, tensors, code, work_group, spec_consts, push_consts))


def make_algo_file(
    owner: Owner,
    tensors: "Sequence[Memory]",
    file_path: "str | os.PathLike[str]",
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> "OpBase":
    """Return the dispatch of the SPIR-V, or the GLSL, that a file holds."""
    if not isinstance(file_path, (str, os.PathLike)):
        raise ArgumentTypeError(f"file_path: expected the path of a SPIR-V or GLSL file, got {file_path!r}")
    with open(file_path, "rb") as file:
        code = _parse_code("file_path", file.read())
    return make_algo_data(owner, tensors, code, work_group, spec_consts, push_consts)


def make_algo_mult(owner: Owner, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpMult."""
    from vkdispatch.kompute.operations import OpMult

    return OpMult(tensors, _make_algorithm(owner, (), b""))


def make_algo_lro(
    owner: Owner,
    tensors: "Sequence[Memory]",
    shader: Any = None,
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> "OpBase":
    """Return the dispatch of a shader on left, right and out, with out copied to the host."""
    from vkdispatch.kompute.operations import OpAlgoLro

    if shader is None:
        raise KomputeError("shader: left, right and out need a shader: SPIR-V, GLSL or a traced kernel")
    code = _parse_code("shader", shader)
    return OpAlgoLro(tensors, _make_algorithm(owner, tensors, code, work_group, spec_consts, push_consts))


def _make_algorithm(
    owner: Owner,
    tensors: "Sequence[Memory]",
    code: Any,
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> "Algorithm":
    from vkdispatch.kompute.algorithm import make_algorithm

    return make_algorithm(owner.context, tensors, code, work_group, spec_consts, push_consts)


def _parse_code(argument: str, given: Any) -> Any:
    """Return SPIR-V as bytes, GLSL as text, a traced kernel as it is.

    Parameters
    ----------
    given
        Either in bytes, text, or a list of bytes or characters.

    Raises
    ------
    TypeError
        It is something else.
    RuntimeError
        Bytes are neither.
    """
    if isinstance(given, list) and given and all(isinstance(item, str) for item in given):
        given = "".join(given)
    if isinstance(given, (bytearray, memoryview, list)):
        try:
            given = bytes(given)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"{argument}: expected SPIR-V or GLSL: bytes, text or a list of characters: {error}"
            ) from None
    if isinstance(given, str):
        is_spirv = given.startswith(tuple(mark.decode("latin-1") for mark in _SPIRV))
        return given.encode("latin-1", "replace") if is_spirv else given
    if not isinstance(given, bytes) and not hasattr(given, "shader_description"):
        raise ArgumentTypeError(
            f"{argument}: expected SPIR-V or GLSL: bytes, text or a list of characters; got {given!r}"
        )
    if not isinstance(given, bytes) or given.startswith(_SPIRV):
        return given
    text = given.decode("utf-8", "replace").rstrip("\0")
    if any(not (letter.isprintable() or letter.isspace()) or letter == "\ufffd" for letter in text):
        raise KomputeError(f"{argument}: neither a SPIR-V module nor GLSL text")
    return text


class NamedRecords:
    """The `record_<operation>` of a sequence; each returns what `record` does, and raises as it."""

    __slots__ = ()

    if TYPE_CHECKING:
        _context: Context
        _owners: "weakref.WeakSet[Any]"

        def record(self, op: "OpBase") -> Any:
            """Record an operation."""

    def record_tensor_create(self, tensors: Any) -> Any:
        """Give tensors of `kp.Tensor(data)` device memory, and record the copy of their data to it.

        Every evaluation copies the data that they have now.
        """
        return self.record(make_tensor_create(self._make_owner(), tensors))

    def record_tensor_sync_device(self, tensors: "Sequence[Memory]") -> Any:
        """Record an OpSyncDevice."""
        return self.record(make_sync_device(self._make_owner(), tensors))

    def record_tensor_sync_local(self, tensors: "Sequence[Memory]") -> Any:
        """Record an OpSyncLocal."""
        return self.record(make_sync_local(self._make_owner(), tensors))

    def record_tensor_copy(self, tensors: "Sequence[Memory]") -> Any:
        """Record an OpCopy."""
        return self.record(make_copy(self._make_owner(), tensors))

    def record_algo_data(
        self,
        tensors: "Sequence[Memory]",
        bytes: Any,
        work_group: Workgroup = _BY_SIZE,
        *options: Any,
    ) -> Any:
        """Record the dispatch of SPIR-V or GLSL on tensors.

        Parameters
        ----------
        bytes
            Either in bytes, text, or a list of bytes or characters.
        work_group
            Workgroups along x, y and z; zeros: one for each element of the first tensor.
        options
            spec_consts and push_consts, as of `kp.Manager.algorithm`.
        """
        return self.record(make_algo_data(self._make_owner(), tensors, bytes, work_group, *options))

    def record_algo_file(
        self,
        tensors: "Sequence[Memory]",
        file_path: "str | os.PathLike[str]",
        work_group: Workgroup = _BY_SIZE,
        *options: Any,
    ) -> Any:
        """Record the dispatch of a file of SPIR-V or GLSL on tensors; else as `record_algo_data`."""
        return self.record(make_algo_file(self._make_owner(), tensors, file_path, work_group, *options))

    def record_algo_mult(self, tensors: "Sequence[Memory]") -> Any:
        """Record an OpMult of three tensors."""
        return self.record(make_algo_mult(self._make_owner(), tensors))

    def record_algo_lro(
        self,
        tensors: "Sequence[Memory]",
        shader: Any = None,
        work_group: Workgroup = _BY_SIZE,
        *options: Any,
    ) -> Any:
        """Record the dispatch of a shader on left, right and out, and the copy of out to the host.

        The three have as many elements each. Else as `record_algo_data`.
        """
        return self.record(make_algo_lro(self._make_owner(), tensors, shader, work_group, *options))

    def _make_owner(self) -> Owner:
        return Owner(self._context, self._owners)


class _Evaluation:
    """A method `eval_<operation>` of a Manager."""

    def __init__(self, make: "Callable[..., OpBase]", *, named: bool, waits: bool) -> None:
        self.make, self.named, self.waits = make, named, waits

    def __get__(self, manager: Any, owner: Any = None) -> "Callable[..., None]":
        """Return the method: it takes what the operation takes, with a sequence's name second if `named`."""

        def evaluate(tensors: Any, *arguments: Any, **options: Any) -> None:
            name = None
            if self.named:
                name, *arguments = arguments or (None,)  # type: ignore[assignment]
                if not isinstance(name, str):
                    raise ArgumentTypeError(
                        f"sequenceName: expected the name of a sequence as second argument, got {name!r}"
                    )
            op = self.make(manager._make_owner(), tensors, *arguments, **options)
            manager._evaluate(name, op, waits=self.waits)

        return evaluate


class NamedEvaluations:
    """The `eval_<operation>` of a Manager.

    Those with the name of a sequence as their second argument, behind the tensors, run the operation there;
    `_def` in a sequence without a name. `async` does not wait: `eval_await(name)` and `eval_await_def()` do.
    """

    __slots__ = ()

    eval_tensor_create = _Evaluation(make_tensor_create, named=True, waits=True)
    eval_tensor_create_def = _Evaluation(make_tensor_create, named=False, waits=True)
    eval_async_tensor_create = _Evaluation(make_tensor_create, named=True, waits=False)
    eval_async_tensor_create_def = _Evaluation(make_tensor_create, named=False, waits=False)
    eval_tensor_sync_device = _Evaluation(make_sync_device, named=True, waits=True)
    eval_tensor_sync_device_def = _Evaluation(make_sync_device, named=False, waits=True)
    eval_async_tensor_sync_device = _Evaluation(make_sync_device, named=True, waits=False)
    eval_async_tensor_sync_device_def = _Evaluation(make_sync_device, named=False, waits=False)
    eval_tensor_sync_local = _Evaluation(make_sync_local, named=True, waits=True)
    eval_tensor_sync_local_def = _Evaluation(make_sync_local, named=False, waits=True)
    eval_async_tensor_sync_local = _Evaluation(make_sync_local, named=True, waits=False)
    eval_async_tensor_sync_local_def = _Evaluation(make_sync_local, named=False, waits=False)
    eval_tensor_copy = _Evaluation(make_copy, named=True, waits=True)
    eval_tensor_copy_def = _Evaluation(make_copy, named=False, waits=True)
    eval_async_tensor_copy = _Evaluation(make_copy, named=True, waits=False)
    eval_async_tensor_copy_def = _Evaluation(make_copy, named=False, waits=False)
    eval_algo_data = _Evaluation(make_algo_data, named=True, waits=True)
    eval_algo_data_def = _Evaluation(make_algo_data, named=False, waits=True)
    eval_async_algo_data = _Evaluation(make_algo_data, named=True, waits=False)
    eval_async_algo_data_def = _Evaluation(make_algo_data, named=False, waits=False)
    eval_algo_str = _Evaluation(make_algo_data, named=True, waits=True)
    eval_algo_str_def = _Evaluation(make_algo_data, named=False, waits=True)
    eval_async_algo_str = _Evaluation(make_algo_data, named=True, waits=False)
    eval_async_algo_str_def = _Evaluation(make_algo_data, named=False, waits=False)
    eval_algo_file = _Evaluation(make_algo_file, named=True, waits=True)
    eval_algo_file_def = _Evaluation(make_algo_file, named=False, waits=True)
    eval_async_algo_file = _Evaluation(make_algo_file, named=True, waits=False)
    eval_async_algo_file_def = _Evaluation(make_algo_file, named=False, waits=False)
    eval_algo_mult = _Evaluation(make_algo_mult, named=True, waits=True)
    eval_algo_mult_def = _Evaluation(make_algo_mult, named=False, waits=True)
    eval_async_algo_mult = _Evaluation(make_algo_mult, named=True, waits=False)
    eval_async_algo_mult_def = _Evaluation(make_algo_mult, named=False, waits=False)
    eval_algo_lro = _Evaluation(make_algo_lro, named=True, waits=True)
    eval_algo_lro_def = _Evaluation(make_algo_lro, named=False, waits=True)
    eval_async_algo_lro = _Evaluation(make_algo_lro, named=True, waits=False)
    eval_async_algo_lro_def = _Evaluation(make_algo_lro, named=False, waits=False)
