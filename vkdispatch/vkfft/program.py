"""Programs: the compiled kernels of a VkFFT plan, with its tables in device memory."""

import re
import struct
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, cached_buffer, function_buffer, renew_contents
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context, wrong_context
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.vkfft.layout import VkFFTAxis

# Buffer numbers: those of the caller first, then the buffers of the program.
BUFFER, INPUT, KERNEL, _OWN = 0, 1, 2, 3
_STORAGE_BUFFER = 1
_BINDING = re.compile(r"layout\s*\(\s*std430\s*,\s*binding\s*=\s*(\d+)\s*\)[^{]*\{\s*\w+\s+(\w+)\s*\[")

RawKernel = tuple[str, int, int]
RawBuffer = tuple[int, bytes]
RawPass = tuple[int, tuple[int, ...], bytes, tuple[int, int, int]]


@record
class Request:
    """A request to VkFFT. The axes are in its order, contiguous axis first.

    Attributes
    ----------
    axes
        As in `Layout`.
    options
        The keyword arguments of `native.plan_fft`, sorted by name.
    """

    axes: tuple[VkFFTAxis, ...]
    options: tuple[tuple[str, int], ...]

    @property
    def title(self) -> str:
        """The name in profiles and messages."""
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
    """The passes of one transform in one direction. Threads may share a program.

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
            VkFFT does not support this transform on this device; the message has its reason.
        ShaderBuildError, VulkanError
            The compiler or the driver rejected a kernel.
        """
        options = dict(request.options)
        try:
            kernels, buffers, forward, inverse = native.plan_fft(
                _describe_device(context),
                request.axes,
                options,
                lambda *raw: _run_immediately(context, request.title, *raw),
            )
        except ValueError as error:
            raise UnsupportedError(
                f"{request.title}: VkFFT does not support it on this device: {error}"
            ) from None
        self.context = context
        self._title = request.title
        passes = forward or inverse
        self.sources = tuple(kernels[kernel][0] for kernel, *_ in passes)
        self._passes = _compile_passes(context, request.title, kernels, passes)
        self._tables = {
            number: _upload(size, contents)
            for number, (size, contents) in enumerate(buffers, start=_OWN)
            if contents
        }
        self._scratch_sizes = {
            number: size for number, (size, contents) in enumerate(buffers, start=_OWN) if not contents
        }
        self._scratch: Mapping[int, Buffer[Any]] | None = None
        # Each graph has its own scratch memory, as it may be replayed at any time.
        self._graph_scratch: weakref.WeakKeyDictionary[CommandGraph, Mapping[int, Buffer[Any]]] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """Whether the program has no passes, as for transforms of length 1."""
        return not self._passes

    def run(self, buffers: Mapping[int, Buffer[Any]], graph: CommandGraph | None) -> None:
        """Queue the passes, or append them to a graph; see `launch`."""
        if graph is None:
            self.launch(buffers)
        else:
            self.record(graph, buffers)

    def launch(self, buffers: Mapping[int, Buffer[Any]], queue: int = ALL_QUEUES) -> None:
        """Queue the passes; returns at once.

        Parameters
        ----------
        buffers
            The caller's buffers, by number.
        """
        # The passes of two threads share scratch memory and must not interleave.
        with self._lock:
            if self._scratch is None:
                self._scratch = _allocate_scratch(self._scratch_sizes)
            for buffer in self._scratch.values():
                buffer._native.announce()
            for table in self._tables.values():
                renew_contents(table)
            bound = {**buffers, **self._tables, **self._scratch}
            for step in self._passes:
                arguments = (*(bound[number] for number in step.buffers), *step.words)
                if not step.launcher.launch(arguments, step.groups, True, queue):
                    raise self._make_error(buffers)

    def record(self, graph: CommandGraph, buffers: Mapping[int, Buffer[Any]]) -> None:
        """Append the passes to a graph."""
        with self._lock:
            scratch = self._graph_scratch.get(graph)
            # after a reset, nothing tells that the first pass overwrites what a failure left
            if scratch is None or any(buffer._native.poisoned for buffer in scratch.values()):
                scratch = self._graph_scratch[graph] = _allocate_scratch(self._scratch_sizes)
        bound = {**buffers, **self._tables, **scratch}
        with graph.recording_together():
            for step in self._passes:
                used = tuple(bound[number] for number in step.buffers)
                if not graph._append_dispatch(step, (*used, *step.words), step.groups, True, used):
                    raise self._make_error(buffers)

    def _make_error(self, buffers: Mapping[int, Buffer[Any]]) -> Exception:
        for buffer in buffers.values():
            buffer.require_alive()
            if buffer.context is not self.context:
                return wrong_context(f"{self._title}: a buffer", buffer.context)
        largest = max(buffer.mem_size for buffer in buffers.values())
        return ArgumentValueError(
            f"{self._title}: buffer: {largest} bytes are more than the device binds at once; transform the "
            "buffer in parts"
        )


def _describe_device(context: Context) -> tuple[Any, ...]:
    return (
        context.device_infos[0].vendor_id,
        context.max_workgroup_invocations,
        context.max_shared_memory,
        context.max_workgroup_count,
        context.max_workgroup_size,
    )


def _compile_passes(
    context: Context, title: str, kernels: Sequence[RawKernel], passes: Sequence[RawPass]
) -> tuple[_Pass, ...]:
    launchers: dict[RawKernel, tuple[ComputePlan, native.Launcher]] = {}
    steps = []
    for position, (number, buffers, push_constants, groups) in enumerate(passes, start=1):
        kernel = kernels[number]
        if kernel not in launchers:
            name = f"{title}, pass {position}" if len(passes) > 1 else title
            launchers[kernel] = _bind_kernel(context, name, *kernel)
        plan, launcher = launchers[kernel]
        words = struct.unpack(f"<{len(push_constants) // 4}I", push_constants)
        steps.append(_Pass(launcher, plan, buffers, words, groups))
    return tuple(steps)


def _bind_kernel(
    context: Context, name: str, source: str, binding_count: int, push_constant_size: int
) -> tuple[ComputePlan, native.Launcher]:
    plan = ComputePlan(source, [_STORAGE_BUFFER] * binding_count, push_constant_size, name, context=context)
    written = find_written_bindings(source)
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
        _reject_value,
    )
    return plan, launcher


def find_written_bindings(source: str) -> frozenset[int]:
    """Return the bindings that a VkFFT kernel stores to, which determine the barriers."""
    return frozenset(
        int(binding)
        for binding, name in _BINDING.findall(source)
        if re.search(rf"\b{name}\s*\[[^;=]*\]\s*(\.\w+)?\s*=(?!=)", source)
    )


def _reject_value(position: int, value: object) -> bytes:
    raise AssertionError("kernels of VkFFT take only words")


def _upload(size: int, contents: bytes) -> Buffer[Any]:
    return cached_buffer(_words(size), dtype.uint32, lambda: contents)


def _allocate_scratch(sizes: Mapping[int, int]) -> Mapping[int, Buffer[Any]]:
    return {number: _allocate(size) for number, size in sizes.items()}


def _allocate(size: int) -> Buffer[Any]:
    """Return uninitialized memory of at least `size` bytes, in words."""
    return function_buffer(_words(size), dtype.uint32)


def _words(size: int) -> int:
    return max(size + 3, 4) // 4


def _run_immediately(
    context: Context,
    title: str,
    kernels: Sequence[RawKernel],
    buffers: Sequence[RawBuffer],
    passes: Sequence[RawPass],
) -> list[bytes]:
    """Run the transforms with which VkFFT computes its lookup tables, on the first queue."""
    memory = [_upload(size, contents) if contents else _allocate(size) for size, contents in buffers]
    for step in _compile_passes(context, f"{title}: its tables", kernels, passes):
        arguments = (*(memory[number] for number in step.buffers), *step.words)
        if not step.launcher.launch(arguments, step.groups, True, 0):
            raise UnsupportedError(f"{title}: the device cannot compute its tables")
    return [
        np.ascontiguousarray(buffer.read(0)).tobytes()[:size]
        for buffer, (size, _) in zip(memory, buffers, strict=True)
    ]
