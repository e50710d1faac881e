"""Operations that copy memory."""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.enums import MemoryTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory.tensor import ListTensor, Tensor, make_tensor, upload_block

if TYPE_CHECKING:
    from vkdispatch.kompute.commands.commands import Commands
from vkdispatch.kompute.operations.operation import MemoryOperation, OpBase, require_attribute


class OpSyncDevice(MemoryOperation):
    """Copies the host view of tensors and images of type `device` to the device."""

    __slots__ = ()

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        for memory in require_attribute(self, "_memories"):
            commands.copy_to_device(memory)


class OpSyncLocal(MemoryOperation):
    """Copies tensors and images of type `device` from the device to the host view."""

    __slots__ = ()

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        for memory in require_attribute(self, "_memories"):
            commands.copy_to_host(memory)


class OpCopy(MemoryOperation):
    """Copies the first tensor or image to each of the others, on the device and in the host views."""

    __slots__ = ()

    _minimum = 2

    def record(self, commands: "Commands") -> None:
        """Record the copies. Raises RuntimeError if types or numbers of elements differ."""
        source, *targets = require_attribute(self, "_memories")
        for target in targets:
            commands.copy(source, target)

    def post_eval(self) -> None:
        """Copy the host view of the first one to those of the others."""
        source, *targets = self._memories
        if not source._interface:
            return
        for target in targets:
            if target._interface and target is not source:
                np.copyto(np.asarray(target), np.asarray(source))


class OpTensorCreate(OpBase):
    """Allocates device memory for tensors when it is recorded, and fills it when it is evaluated.

    Every evaluation copies the values that the tensors had when the operation was recorded.
    """

    __slots__ = ("_blocks", "_context", "_objects", "_tensors")

    def __init__(
        self, context: Context, objects: "weakref.WeakSet[Any]", tensors: Sequence[ListTensor]
    ) -> None:
        """Make the operation for tensors without device memory.

        Parameters
        ----------
        objects
            The objects of the Manager, to which the tensors are added.

        Raises
        ------
        TypeError
            `tensors` is not a list of tensors.
        RuntimeError
            It is empty, or a tensor has device memory already.
        """
        if not isinstance(tensors, (list, tuple)):
            raise ArgumentTypeError(f"tensors: expected a list of tensors, got {tensors!r}")
        if not tensors:
            raise KomputeError("tensors: expected at least one tensor, got none")
        for index, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise ArgumentTypeError(f"tensors: expected tensors, got {tensor!r}")
            if tensor._initialized or any(tensor is other for other in tensors[:index]):
                raise KomputeError(f"tensors: number {index} has device memory already, or occurs twice")
            if not isinstance(tensor, ListTensor):
                raise KomputeError(
                    f"tensors: number {index} was destroyed; only a kp.Tensor(data) keeps its values"
                )
        self._context, self._objects, self._tensors = context, objects, tuple(tensors)
        self._blocks: tuple[Any, ...] | None = None

    def init(self) -> None:
        """Allocate memory for all tensors or none. Raises RuntimeError if the device has too little."""
        if self._blocks is not None:
            return
        allocated: list[Tensor] = []
        blocks: list[Any] = []
        for tensor in self._tensors:
            values = tensor._host_values()
            allocated.append(make_tensor(self._context, values, values.dtype, tensor._memory_type))
            block: Any = None
            if tensor._memory_type is MemoryTypes.device:
                block = upload_block(self._context, values)
            blocks.append(block)
        for tensor, new in zip(self._tensors, allocated, strict=True):
            tensor._replace_with(new)
            if tensor._memory_type is not MemoryTypes.storage:
                tensor._values = None
            self._objects.add(tensor)
        self._blocks = tuple(blocks)

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        assert self._blocks is not None
        for tensor, block in zip(self._tensors, self._blocks, strict=True):
            if block is not None:
                commands.fill(tensor, block)
