"""Transforms of several kernels, with buffers between them."""

import threading
import weakref
from typing import Any

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.codegen import ShaderSource
from vkdispatch.execution_pipeline.command_graph import CommandGraph, global_graph
from vkdispatch.shader.shader_function import ShaderFunction

# The largest buffer between kernels, in bytes, that is kept for the next call.
_KEPT = 64 << 20


@record
class Step:
    """A launch of a kernel.

    Attributes
    ----------
    kernel
        The kernel.
    inputs, outputs
        Whether its arguments include the caller's for the input, and for the output.
    scratch
        Numbers of the scratch buffers that follow.
    constants
        Its last arguments.
    """

    kernel: ShaderFunction
    inputs: bool
    outputs: bool
    scratch: tuple[int, ...]
    constants: tuple[int, ...] = ()


class KernelSequence:
    """Several kernels that are called like one."""

    __slots__ = ()

    def _kernels(self) -> list[Any]:
        """Return the kernels in the order of their first launches."""
        raise NotImplementedError

    def get_src(self, line_numbers: bool | None = None) -> list[ShaderSource]:
        """Return the GLSL of each kernel, in the order of their first launches."""
        found: list[ShaderSource] = []
        for kernel in self._kernels():
            source = kernel.get_src(line_numbers)
            found += source if isinstance(source, list) else [source]
        return found

    def print_src(self, line_numbers: bool | None = None) -> None:
        """Print the GLSL of each kernel."""
        print("\n".join(map(str, self.get_src(line_numbers))))

    def __repr__(self) -> str:
        return "\n".join(map(str, self.get_src()))


@record
class Program(KernelSequence):
    """Kernels of a transform that are launched one after another, such as those of a long line.

    Attributes
    ----------
    name
        Name of the whole.
    steps
        The launches, in order.
    scratch
        Elements and dtype of the buffers that the steps share.
    outputs
        How many of the caller's arguments belong to the output; the others belong to the input. None: one
        buffer is both.
    """

    name: str
    steps: tuple[Step, ...]
    scratch: tuple[tuple[int, DType], ...]
    outputs: int | None

    def __call__(self, *args: Any, graph: CommandGraph | None = None) -> None:
        """Launch the kernels, or record them. The arguments are those of a kernel of one pass."""
        split = self.outputs
        written, read = (args, args) if split is None else (args[:split], args[split:])
        target = graph if isinstance(graph, CommandGraph) else global_graph()
        buffers = [scratch_buffer(slot, size, kind, target) for slot, (size, kind) in enumerate(self.scratch)]
        for step in self.steps:
            values: list[Any] = []
            if step.outputs:
                values += written
            if step.inputs and not (step.outputs and split is None):
                values += read
            values += [buffers[slot] for slot in step.scratch]
            step.kernel(*values, *step.constants, graph=graph)

    def _kernels(self) -> list[Any]:
        return list(dict.fromkeys(step.kernel for step in self.steps))


class _Scratch(threading.local):
    """The scratch buffers of a thread and context for each graph, by slot and dtype."""

    def __init__(self) -> None:
        self.buffers: weakref.WeakKeyDictionary[CommandGraph, dict[tuple[int, DType], Buffer[Any]]]
        self.buffers = weakref.WeakKeyDictionary()


_SCRATCH = "fft.scratch"


def scratch_buffer(slot: int, elements: int, kind: DType, graph: CommandGraph) -> "Buffer[Any]":
    """Return the scratch buffer of a slot, which is this thread's for a graph until its next call.

    Earlier launches may still use it, as the device runs them in order. Each graph has its own buffers,
    because another thread may submit it between two steps of this thread's call.
    """
    if elements * kind.item_size > _KEPT:
        return function_buffer((elements,), kind)
    hold = get_context()._keep(_SCRATCH, _Scratch).buffers.setdefault(graph, {})
    buffer = hold.get((slot, kind))
    if buffer is None or buffer.size < elements:
        buffer = hold[slot, kind] = function_buffer((elements,), kind)
    buffer._native.announce()
    return buffer
