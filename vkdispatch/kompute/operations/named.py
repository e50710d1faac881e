"""The named operations of Kompute 0.5 and 0.6, such as `algo_data`, made from their arguments."""

import os
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.errors import KomputeError

if TYPE_CHECKING:
    from vkdispatch.kompute.algorithms.algorithm import Algorithm
    from vkdispatch.kompute.memory.memory import Memory
    from vkdispatch.kompute.operations.operation import OpBase

Workgroup = Sequence[int]


_BY_SIZE = (0, 0, 0)


_SPIRV = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")


class Owner(NamedTuple):
    """The context that an operation runs in, and the objects of the Manager there."""

    context: Context
    objects: "weakref.WeakSet[Any]"


def make_tensor_create(owner: Owner, tensors: Any) -> "OpBase":
    """Return the operation that allocates device memory for tensors and fills it."""
    from vkdispatch.kompute.operations.transfers import OpTensorCreate

    return OpTensorCreate(owner.context, owner.objects, tensors)


def make_sync_device(owner: Owner, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpSyncDevice."""
    from vkdispatch.kompute.operations.transfers import OpSyncDevice

    return _make_transfer(OpSyncDevice, tensors)


def make_sync_local(owner: Owner, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpSyncLocal."""
    from vkdispatch.kompute.operations.transfers import OpSyncLocal

    return _make_transfer(OpSyncLocal, tensors)


def make_copy(owner: Owner, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpCopy."""
    from vkdispatch.kompute.operations.transfers import OpCopy

    return _make_transfer(OpCopy, tensors)


def _make_transfer(
    operation: "Callable[[Sequence[Memory]], OpBase]", tensors: "Sequence[Memory]"
) -> "OpBase":
    from vkdispatch.kompute.memory.tensor import require_transfers

    op = operation(tensors)
    require_transfers(tensors)
    return op


def make_algo_data(
    owner: Owner,
    tensors: "Sequence[Memory]",
    bytes: Any,
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> "OpBase":
    """Return the dispatch of SPIR-V, GLSL or a traced kernel on tensors."""
    from vkdispatch.kompute.operations.dispatches import OpAlgoDispatch

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
    """Return the dispatch of a file of SPIR-V or GLSL."""
    if not isinstance(file_path, (str, os.PathLike)):
        raise ArgumentTypeError(f"file_path: expected the path of a SPIR-V or GLSL file, got {file_path!r}")
    with open(file_path, "rb") as file:
        code = _parse_code("file_path", file.read())
    return make_algo_data(owner, tensors, code, work_group, spec_consts, push_consts)


def make_algo_mult(owner: Owner, tensors: "Sequence[Memory]") -> "OpBase":
    """Return an OpMult."""
    from vkdispatch.kompute.operations.dispatches import OpMult

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
    from vkdispatch.kompute.operations.dispatches import OpAlgoLro

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
    from vkdispatch.kompute.algorithms.algorithm import make_algorithm

    return make_algorithm(owner.context, tensors, code, work_group, spec_consts, push_consts)


def _parse_code(argument: str, code: Any) -> Any:
    """Return SPIR-V as bytes, GLSL as text, and a traced kernel unchanged.

    Parameters
    ----------
    code
        Bytes, text, a list of bytes or characters, or a traced kernel.

    Raises
    ------
    TypeError
        `code` is something else.
    RuntimeError
        The bytes are neither SPIR-V nor GLSL.
    """
    if isinstance(code, list) and code and all(isinstance(item, str) for item in code):
        code = "".join(code)
    if isinstance(code, (bytearray, memoryview, list)):
        try:
            code = bytes(code)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"{argument}: expected SPIR-V or GLSL: bytes, text or a list of characters: {error}"
            ) from None
    if isinstance(code, str):
        is_spirv = code.startswith(tuple(mark.decode("latin-1") for mark in _SPIRV))
        return code.encode("latin-1", "replace") if is_spirv else code
    if not isinstance(code, bytes) and not hasattr(code, "shader_description"):
        raise ArgumentTypeError(
            f"{argument}: expected SPIR-V or GLSL: bytes, text or a list of characters; got {code!r}"
        )
    if not isinstance(code, bytes) or code.startswith(_SPIRV):
        return code
    text = code.decode("utf-8", "replace").rstrip("\0")
    if any(not (letter.isprintable() or letter.isspace()) or letter == "\ufffd" for letter in text):
        raise KomputeError(f"{argument}: neither a SPIR-V module nor GLSL text")
    return text
