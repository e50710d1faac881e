"""Operations of sequences: copies, dispatches and barriers."""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.algorithm import NO_CONSTANTS, Algorithm, check_algorithm
from vkdispatch.kompute.constants import copy_constants
from vkdispatch.kompute.enums import DataTypes, MemoryTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory import ListTensor, Memory, Tensor, make_tensor, upload_block

if TYPE_CHECKING:
    from vkdispatch.kompute.commands import Commands


class OpBase:
    """An operation. A class of your own derives from it, or from one of the others.

    A sequence calls `init`, then `record`, where the operation is recorded (and `record` again where it is
    recorded anew), `pre_eval` before each evaluation, on the host, and `post_eval` after it.
    """

    __slots__ = ("__weakref__",)

    _acts_on_host: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Note whether there is something to do before or after an evaluation."""
        super().__init_subclass__()
        cls._acts_on_host = cls.pre_eval is not OpBase.pre_eval or cls.post_eval is not OpBase.post_eval

    def __init__(self, *_: object, **__: object) -> None:
        """Refuse an OpBase itself. Raises TypeError."""
        if type(self) is OpBase:
            raise ArgumentTypeError("kp.OpBase has no constructor: derive a class from it")

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be pickled. Raises TypeError."""
        raise ArgumentTypeError(f"kp.{type(self).__name__} cannot be pickled: it is about a device")

    def init(self) -> None:
        """Prepare for `record`."""

    def record(self, commands: "Commands") -> None:
        """Record commands of the device: `commands.dispatch`, `copy_to_host` and others."""

    def pre_eval(self) -> None:
        """Run on the host before the device starts."""

    def post_eval(self) -> None:
        """Run on the host after the device has finished."""


class _OnMemory(OpBase):
    """An operation on a list of tensors and images."""

    __slots__ = ("_memories",)

    _least = 1

    def __init__(self, memories: Sequence[Memory], /) -> None:
        """Take a list of tensors and images.

        Raises
        ------
        TypeError
            It is no list of tensors and images.
        RuntimeError
            There are too few.
        """
        self._memories = _parse_memories(memories, f"kp.{type(self).__name__}")
        if len(self._memories) < self._least:
            raise KomputeError(
                f"kp.{type(self).__name__}: expected {self._least} or more tensors or images, got "
                f"{len(self._memories)}"
            )


def _parse_memories(memories: object, who: str) -> tuple[Memory, ...]:
    if not isinstance(memories, (list, tuple)):
        raise ArgumentTypeError(f"{who}: expected a list of tensors and images, got {memories!r}")
    for memory in memories:
        if not isinstance(memory, Memory):
            raise ArgumentTypeError(f"{who}: expected tensors and images, got {memory!r}")
    return tuple(memories)


def _require_attribute(op: OpBase, name: str) -> Any:
    """Return an attribute set by `__init__`. Raises RuntimeError if a derived class did not call it."""
    try:
        return getattr(op, name)
    except AttributeError:
        raise KomputeError(
            f"{type(op).__name__}: its __init__ has to call that of the operation that it derives from"
        ) from None


class OpSyncDevice(_OnMemory):
    """Copies the host's view of tensors and images of type `device` to the device."""

    __slots__ = ()

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        for memory in _require_attribute(self, "_memories"):
            commands.copy_to_device(memory)


class OpSyncLocal(_OnMemory):
    """Copies tensors and images of type `device` from the device to the host's view."""

    __slots__ = ()

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        for memory in _require_attribute(self, "_memories"):
            commands.copy_to_host(memory)


class OpCopy(_OnMemory):
    """Copies the first tensor or image to each of the others, on the device and in the host's views."""

    __slots__ = ()

    _least = 2

    def record(self, commands: "Commands") -> None:
        """Record the copies. Raises RuntimeError for other types or numbers of elements."""
        source, *targets = _require_attribute(self, "_memories")
        for target in targets:
            commands.copy(source, target)

    def post_eval(self) -> None:
        """Copy the host's view of the first one to those of the others."""
        source, *targets = self._memories
        if not source._interface:
            return
        for target in targets:
            if target._interface and target is not source:
                np.copyto(np.asarray(target), np.asarray(source))


class OpTensorCreate(OpBase):
    """Gives tensors device memory where it is recorded, and fills it where it is evaluated.

    What it copies there are the values of when it was recorded, at every evaluation.
    """

    __slots__ = ("_blocks", "_context", "_owners", "_tensors")

    def __init__(
        self, context: Context, owners: "weakref.WeakSet[Any]", tensors: Sequence[ListTensor]
    ) -> None:
        """Take tensors that have no device memory.

        Parameters
        ----------
        owners
            The set of what the Manager destroys when it ends: the tensors are added to it.

        Raises
        ------
        TypeError
            Something else is given.
        RuntimeError
            There are none, or one has device memory.
        """
        if not isinstance(tensors, (list, tuple)):
            raise ArgumentTypeError(f"tensors: expected a list of tensors, got {tensors!r}")
        if not tensors:
            raise KomputeError("tensors: expected at least one tensor, got none")
        for index, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise ArgumentTypeError(f"tensors: expected tensors, got {tensor!r}")
            if tensor._initialized or any(tensor is other for other in tensors[:index]):
                raise KomputeError(f"tensors: number {index} has device memory already, or is given twice")
            if not isinstance(tensor, ListTensor):
                raise KomputeError(
                    f"tensors: number {index} was destroyed; only those of kp.Tensor(data) have values"
                )
        self._context, self._owners, self._tensors = context, owners, tuple(tensors)
        self._blocks: tuple[Any, ...] | None = None

    def init(self) -> None:
        """Make the memory, for all of the tensors or none. Raises RuntimeError where there is too little."""
        if self._blocks is not None:
            return
        made: list[Tensor] = []
        blocks: list[Any] = []
        for tensor in self._tensors:
            values = tensor._host_values()
            made.append(make_tensor(self._context, values, values.dtype, tensor._memory_type))
            block: Any = None
            if tensor._memory_type is MemoryTypes.device:
                block = upload_block(self._context, values)
            blocks.append(block)
        for tensor, new in zip(self._tensors, made, strict=True):
            tensor._take_over(new)
            if tensor._memory_type is not MemoryTypes.storage:
                tensor._values = None
            self._owners.add(tensor)
        self._blocks = tuple(blocks)

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        assert self._blocks is not None
        for tensor, block in zip(self._tensors, self._blocks, strict=True):
            if block is not None:
                commands.fill(tensor, block)


class OpAlgoDispatch(OpBase):
    """Dispatches an algorithm."""

    __slots__ = ("_algorithm", "_push_consts")

    def __init__(self, algorithm: Algorithm, push_consts: Any = NO_CONSTANTS) -> None:
        """Take an algorithm, and push constants that are to be its own from this dispatch on.

        Parameters
        ----------
        push_consts
            An array, or numbers in anything that can be iterated; empty: those that the algorithm has when
            this is recorded. As many bytes as the algorithm was made with.

        Raises
        ------
        TypeError
            `algorithm` is none, or `push_consts` are no numbers.
        """
        self._algorithm = check_algorithm(algorithm)
        if push_consts is not NO_CONSTANTS:
            push_consts = copy_constants("push_consts", push_consts)
        self._push_consts = push_consts if len(push_consts) else NO_CONSTANTS

    def record(self, commands: "Commands") -> None:
        """Record the dispatch.

        Raises RuntimeError where the algorithm is empty or the constants do not fit.
        """
        commands.dispatch(_require_attribute(self, "_algorithm"), self._push_consts)


class OpAlgoLro(OpAlgoDispatch):
    """Dispatches an algorithm on left, right and out, and copies out to the host's view."""

    __slots__ = ("_out",)

    def __init__(self, memories: Sequence[Memory], algorithm: Algorithm) -> None:
        """Take the memory that the algorithm is bound to.

        Raises RuntimeError where there are not three tensors, or they have different numbers of elements.
        """
        found = _parse_memories(memories, "algo_lro")
        if len(found) != 3 or len({memory.size() for memory in found}) != 1:
            raise KomputeError(
                "algo_lro: expected left, right and out, of as many elements each; got "
                f"{[memory.size() for memory in found]}"
            )
        super().__init__(algorithm)
        self._out = found[2]

    def record(self, commands: "Commands") -> None:
        """Record the dispatch and the copy."""
        super().record(commands)
        commands.copy_to_host(self._out)


_MULTIPLY = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    product[i] = left[i] * right[i];
}
"""


class OpMult(OpBase):
    """Multiplies two tensors of floats, element by element, into a third one."""

    __slots__ = ("_algorithm",)

    def __init__(self, memories: Sequence[Memory], algorithm: Algorithm, /) -> None:
        """Rebuild the algorithm, which may be an empty one, as the multiplication of these tensors.

        Raises
        ------
        TypeError
            An argument is of the wrong type.
        RuntimeError
            There are not exactly three tensors of floats, or they have different numbers of elements.
        """
        found = _parse_memories(memories, "kp.OpMult")
        if len(found) != 3:
            raise KomputeError(f"Kompute OpMult expected 3 mem objects but got {len(found)}")
        check_algorithm(algorithm)
        for memory in found:
            memory._require()
            if memory._data_type is not DataTypes.float or memory._size != found[0]._size:
                raise KomputeError(
                    f"kp.OpMult: expected three tensors of {found[0]._size} floats, got {memory._size} "
                    f"elements of {memory._data_type.name}"
                )
        algorithm.rebuild(found, _MULTIPLY)
        self._algorithm = algorithm

    def record(self, commands: "Commands") -> None:
        """Record the dispatch."""
        commands.dispatch(_require_attribute(self, "_algorithm"))


class OpMemoryBarrier(OpBase):
    """A barrier that a program asks for by itself.

    Sequences put barriers wherever two of their commands need one, so that this is never needed here;
    programs that have it keep it. It orders more than was asked for: all commands before it and all after it,
    whatever the accesses and stages, which are checked to be numbers of VkAccessFlags and
    VkPipelineStageFlags.
    """

    __slots__ = ("_memories",)

    def __init__(
        self,
        memories: Sequence[Memory],
        src_access_mask: int,
        dst_access_mask: int,
        src_stage_mask: int,
        dst_stage_mask: int,
        barrier_on_primary: bool = True,
    ) -> None:
        """Take the memory, and the accesses and stages between which it is to be ordered.

        Parameters
        ----------
        barrier_on_primary
            Whether the device's memory is meant, or the copy that the host sees.

        Raises
        ------
        TypeError
            An argument is of the wrong type.
        RuntimeError
            There is no memory, or a mask is negative.
        """
        self._memories = _parse_memories(memories, "kp.OpMemoryBarrier")
        masks = (src_access_mask, dst_access_mask, src_stage_mask, dst_stage_mask)
        if not all(hasattr(mask, "__index__") for mask in masks):
            raise ArgumentTypeError(f"kp.OpMemoryBarrier: masks are numbers of Vulkan's flags, got {masks}")
        if not self._memories or min(masks) < 0:
            raise KomputeError("kp.OpMemoryBarrier: expected memory, and masks of 0 or more")

    def record(self, commands: "Commands") -> None:
        """Record the barrier."""
        for memory in _require_attribute(self, "_memories"):
            memory._require()
        commands.barrier()
