"""What VkFFT plans, made ready to run: its kernels compiled, its tables in device memory."""

import re
import struct
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context, wrong_context
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.vkfft.layout import VkFFTAxis

# The first numbers of buffers are those that a caller passes; the program's own follow.
BUFFER, INPUT, KERNEL, _OWN = 0, 1, 2, 3
_STORAGE_BUFFER = 1
_BINDING = re.compile(r"layout\s*\(\s*std430\s*,\s*binding\s*=\s*(\d+)\s*\)[^{]*\{\s*\w+\s+(\w+)\s*\[")

RawKernel = tuple[str, int, int]
RawBuffer = tuple[int, bytes]
RawPass = tuple[int, tuple[int, ...], bytes, tuple[int, int, int]]


@record
class Request:
    """A transform as VkFFT is asked for it; the axes are in its order, the contiguous one first.

    Attributes
    ----------
    axes
        As `Layout` has them.
    options
        The keywords of `native.plan_fft`, sorted by name.
    """

    axes: tuple[VkFFTAxis, ...]
    options: tuple[tuple[str, int], ...]

    @property
    def title(self) -> str:
        """How profiles and messages call it."""
        sizes = "x".join(str(size) for size, *_ in reversed(self.axes))
        named = dict(self.options)
        kind = "convolution" if named.get("kernel_size") else "fft"
        real = "r" if named.get("real") else ""
        direction = "" if kind == "convolution" or named.get("forward", 1) else "i"
        return f"vkfft {direction}{real}{kind} {sizes}"


@record(eq=False)
class _Pass:
    launcher: native.Launcher
    plan: ComputePlan
    buffers: tuple[int, ...]
    words: tuple[int, ...]
    groups: tuple[int, int, int]
    fusible: None = None


class Program:
    """The passes of one transform in one direction. Threads may share it.

    Attributes
    ----------
    sources
        The GLSL of each pass, in order.
    """

    def __init__(self, context: Context, request: Request) -> None:
        """Plan, compile and upload.

        Raises
        ------
        UnsupportedError
            VkFFT has no such transform on this device; its name for the reason is in the message.
        ShaderBuildError, VulkanError
            The compiler or the driver refused a kernel.
        """
        options = dict(request.options)
        try:
            kernels, buffers, forward, inverse = native.plan_fft(
                _device(context), request.axes, options, lambda *raw: _run(context, request.title, *raw)
            )
        except ValueError as error:
            raise UnsupportedError(f"{request.title}: VkFFT refuses it on this device: {error}") from None
        self.context = context
        self._title = request.title
        passes = forward or inverse
        self.sources = tuple(kernels[kernel][0] for kernel, *_ in passes)
        self._passes = _compiled(context, request.title, kernels, passes)
        self._tables = {
            number: _uploaded(size, contents)
            for number, (size, contents) in enumerate(buffers, start=_OWN)
            if contents
        }
        self._scratch_sizes = {
            number: size for number, (size, contents) in enumerate(buffers, start=_OWN) if not contents
        }
        self._scratch: Mapping[int, Buffer[Any]] | None = None
        # A graph is replayed whenever its owner says so: what it scribbles on is its own.
        self._graph_scratch: weakref.WeakKeyDictionary[CommandGraph, Mapping[int, Buffer[Any]]] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do, as for transforms of length 1."""
        return not self._passes

    @property
    def poisoned(self) -> bool:
        """Whether its tables did not reach the device."""
        return any(table._native.poisoned for table in self._tables.values())

    def run(self, given: Mapping[int, Buffer[Any]], graph: CommandGraph | None) -> None:
        """Queue the passes, or append them to a graph; see `launch`."""
        if graph is None:
            self.launch(given)
        else:
            self.record(graph, given)

    def launch(self, given: Mapping[int, Buffer[Any]], queue: int = ALL_QUEUES) -> None:
        """Queue the passes; returns at once.

        Parameters
        ----------
        given
            The caller's buffers by number.
        """
        # Passes of two threads that use the same scratch memory must not mix.
        with self._lock:
            if self._scratch is None:
                self._scratch = _scratch(self._scratch_sizes)
            for buffer in self._scratch.values():
                buffer._native.announce()
            buffers = {**given, **self._tables, **self._scratch}
            for step in self._passes:
                arguments = (*(buffers[number] for number in step.buffers), *step.words)
                if not step.launcher.launch(arguments, step.groups, True, queue):
                    raise self._refusal(given)

    def record(self, graph: CommandGraph, given: Mapping[int, Buffer[Any]]) -> None:
        """Append the passes to a graph."""
        with self._lock:
            scratch = self._graph_scratch.get(graph)
            if scratch is None:
                scratch = self._graph_scratch[graph] = _scratch(self._scratch_sizes)
        buffers = {**given, **self._tables, **scratch}
        with graph.recording_together():
            for step in self._passes:
                bound = tuple(buffers[number] for number in step.buffers)
                if not graph._append_dispatch(step, (*bound, *step.words), step.groups, True, bound):
                    raise self._refusal(given)

    def _refusal(self, given: Mapping[int, Buffer[Any]]) -> Exception:
        for buffer in given.values():
            buffer.require_alive()
            if buffer.context is not self.context:
                return wrong_context(f"{self._title}: a buffer", buffer.context)
        largest = max(buffer.mem_size for buffer in given.values())
        return ArgumentValueError(
            f"{self._title}: buffer: the device binds less at once than its {largest} bytes; transform parts "
            "of it one by one"
        )


def _device(context: Context) -> tuple[Any, ...]:
    return (
        context.device_infos[0].vendor_id,
        context.max_workgroup_invocations,
        context.max_shared_memory,
        context.max_workgroup_count,
        context.max_workgroup_size,
    )


def _compiled(
    context: Context, title: str, kernels: Sequence[RawKernel], passes: Sequence[RawPass]
) -> tuple[_Pass, ...]:
    made: dict[RawKernel, tuple[ComputePlan, native.Launcher]] = {}
    steps = []
    for position, (number, buffers, push_constants, groups) in enumerate(passes, start=1):
        kernel = kernels[number]
        if kernel not in made:
            name = f"{title}, pass {position}" if len(passes) > 1 else title
            made[kernel] = _bound(context, name, *kernel)
        plan, launcher = made[kernel]
        words = struct.unpack(f"<{len(push_constants) // 4}I", push_constants)
        steps.append(_Pass(launcher, plan, buffers, words, groups))
    return tuple(steps)


def _bound(
    context: Context, name: str, source: str, binding_count: int, push_constant_size: int
) -> tuple[ComputePlan, native.Launcher]:
    plan = ComputePlan(source, [_STORAGE_BUFFER] * binding_count, push_constant_size, name)
    written = written_bindings(source)
    slots: list[native.ArgumentSlot] = [
        native.BufferSlot(binding=binding, writes=binding in written) for binding in range(binding_count)
    ]
    slots += [native.ScalarSlot(offset=offset, code="I") for offset in range(0, push_constant_size, 4)]
    launcher = native.Launcher(
        context._native,
        plan._native,
        slots,
        push_constant_size,
        -1,
        -1,
        -1,
        (1, 1, 1),
        context.max_workgroup_count,
        _no_values,
    )
    return plan, launcher


def written_bindings(source: str) -> frozenset[int]:
    """Return the bindings that a kernel of VkFFT stores to: barriers follow from it."""
    return frozenset(
        int(binding)
        for binding, name in _BINDING.findall(source)
        if re.search(rf"\b{name}\s*\[[^;=]*\]\s*(\.\w+)?\s*=(?!=)", source)
    )


def _no_values(position: int, value: object) -> bytes:
    raise AssertionError("kernels of VkFFT take words alone")


def _uploaded(size: int, contents: bytes) -> Buffer[Any]:
    buffer = function_buffer((max(size + 3, 4) // 4,), dtype.uint32)
    buffer.write(contents)
    return buffer


def _scratch(sizes: Mapping[int, int]) -> Mapping[int, Buffer[Any]]:
    return {number: function_buffer(((size + 3) // 4,), dtype.uint32) for number, size in sizes.items()}


def _run(
    context: Context,
    title: str,
    kernels: Sequence[RawKernel],
    buffers: Sequence[RawBuffer],
    passes: Sequence[RawPass],
) -> list[bytes]:
    """Run the transforms that VkFFT makes its tables with, on the first queue."""
    memory = [
        _uploaded(size, contents) if contents else function_buffer(((size + 3) // 4,), dtype.uint32)
        for size, contents in buffers
    ]
    for step in _compiled(context, f"{title}: its tables", kernels, passes):
        arguments = (*(memory[number] for number in step.buffers), *step.words)
        if not step.launcher.launch(arguments, step.groups, True, 0):
            raise UnsupportedError(f"{title}: the device cannot make its tables")
    return [
        np.ascontiguousarray(buffer.read(0)).tobytes()[:size]
        for buffer, (size, _) in zip(memory, buffers, strict=True)
    ]
