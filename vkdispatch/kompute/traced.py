"""Traced kernels as the code of an algorithm."""

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.context import Context, use_context
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.kompute.code import parse_constants
from vkdispatch.kompute.enums import KomputeError
from vkdispatch.kompute.memory import Image, Memory, Tensor
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import BufferSlot, ValueSlot

Array = np.ndarray[Any, Any]
Groups = tuple[int, int, int]


class TracedDispatch:
    """A traced kernel. Its buffers are the tensors and its numbers the push constants, in order."""

    def __init__(
        self,
        context: Context,
        memories: Sequence[Memory],
        kernel: ShaderFunction,
        groups: Groups | None,
        spec_consts: Any,
        push_consts: Any,
    ) -> None:
        """Match a kernel's parameters with tensors and push constants.

        Raises
        ------
        RuntimeError
            The parameters do not match.
        """
        label = f"spirv: {kernel.name}"
        if len(np.ravel(spec_consts)):
            raise KomputeError(f"{label}: spec_consts: a traced kernel has none; use values of its closure")
        if any(isinstance(memory, Image) for memory in memories):
            raise KomputeError(
                f"{label}: tensors: a traced kernel takes tensors; pass images to GLSL or SPIR-V"
            )
        self.context = context
        self.kernel = kernel
        self.memories = tuple(memories)
        self.images: tuple[Image, ...] = ()
        self.stored_images: tuple[Image, ...] = ()
        buffers = [index for index, slot in enumerate(kernel._kernel.slots) if isinstance(slot, BufferSlot)]
        values = [slot for slot in kernel._kernel.slots if isinstance(slot, ValueSlot)]
        if len(buffers) + len(values) != len(kernel._kernel.parameters):
            raise KomputeError(
                f"{label}: an algorithm's kernel takes buffers and numbers, no images or dataclasses"
            )
        if len(buffers) != len(memories):
            raise KomputeError(f"tensors: {kernel.name} takes {len(buffers)} buffers, got {len(memories)}")
        if not all(dtype.is_scalar(slot.kind) for slot in values):
            raise KomputeError(f"{label}: push constants are numbers; it has a vector or matrix parameter")
        self.kinds = tuple(slot.kind for slot in values)
        self.push_types = frozenset(
            ("float" if dtype.is_float_dtype(kind) else "int", kind.item_size * 8) for kind in self.kinds
        )
        self.constants = parse_constants("push_consts", push_consts, self.push_types)
        if self.constants.size != len(values):
            raise KomputeError(
                f"push_consts: {kernel.name} takes {len(values)} numbers, got {self.constants.size}"
            )
        self.positions = frozenset(buffers)
        # Without workgroups: the kernel's own size, or one invocation for each element.
        is_sized = kernel.exec_size is not None or kernel.workgroups is not None
        self.own_size: dict[str, Any] = {} if is_sized else {"exec_size": len(memories[0])}
        self.size = self.own_size if groups is None else {"workgroups": groups}

    def record(self, graph: CommandGraph, constants: Array) -> None:
        """Append a dispatch to a graph."""
        tensors = iter([memory.buffer for memory in self.memories if isinstance(memory, Tensor)])
        numbers = iter(
            [
                float(value) if dtype.is_float_dtype(kind) else _parse_integer(value, kind)
                for value, kind in zip(constants.tolist(), self.kinds, strict=True)
            ]
        )
        count = len(self.memories) + len(self.kinds)
        arguments = [next(tensors if index in self.positions else numbers) for index in range(count)]
        try:
            with use_context(self.context):
                self.kernel(*arguments, graph=graph, **self.size)
        except (ValueError, TypeError, VkDispatchError) as error:
            raise KomputeError(f"algorithm: {error}") from error

    def with_groups(self, groups: Groups, *, chosen: bool) -> "TracedDispatch":
        """Return a copy with other workgroup counts, or with the kernel's own size."""
        other = copy(self)
        other.size = {"workgroups": groups} if chosen else self.own_size
        return other

    def repeat(self, count: int) -> None:
        """Return None: `vd.CommandGraph.optimize` merges dispatches of traced kernels."""


def _parse_integer(value: float, kind: dtype.DType) -> int:
    """Return a push constant as an integer. Raises RuntimeError if it has a fraction."""
    if not math.isfinite(value) or value != int(value):
        raise KomputeError(f"push_consts: {value!r} is not an integer; the kernel declares {kind.name}")
    return int(value)
