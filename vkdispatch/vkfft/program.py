"""Programs: the compiled kernels of a VkFFT plan, its axes in VkFFT's order, and the cache."""

import math
import operator
import re
import struct
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, cached_buffer, function_buffer, renew_contents
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context, get_context, wrong_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph

# ---- Conversion of shapes and axes from NumPy's order to VkFFT's -----------------------------------------
#
# Contiguous axis first, idle axes merged.


Shape = tuple[int, ...]
VkFFTAxis = tuple[int, bool, tuple[int, int] | None, int]
Padding = tuple[tuple[int, int] | None, ...]  # for each axis, the range of elements that are zeros

HALF, SINGLE, DOUBLE = range(3)
_PRECISIONS: dict[DType, int] = {
    dtype.complex32: HALF,
    dtype.hvec2: HALF,
    dtype.complex64: SINGLE,
    dtype.vec2: SINGLE,
    dtype.complex128: DOUBLE,
    dtype.dvec2: DOUBLE,
}
_REAL_PRECISIONS: dict[DType, int] = {dtype.float16: HALF, dtype.float32: SINGLE, dtype.float64: DOUBLE}


@record
class Layout:
    """The data layout in VkFFT's order, contiguous axis first.

    Attributes
    ----------
    axes
        For each axis: its size; whether it is omitted from the transform (it may then stand for several
        axes); the range of zeros, or None; and the stride of the next axis for an input with its own rows.
    batches
        The number of such arrays, one after another.
    """

    axes: tuple[VkFFTAxis, ...]
    batches: int


def make_layout(
    shape: Shape, axes: Sequence[int], padding: Padding, real: bool, input_shape: Shape | None = None
) -> Layout:
    """Return the layout of a transform of `shape` along `axes`.

    Axes of length 1 are omitted, except the last axis of a real transform. The result has at least one axis.
    `input_shape` is the shape in memory of a separate input whose rows differ from the buffer's.
    """
    merged: list[VkFFTAxis] = []
    last = len(shape) - 1
    stride = 1
    for axis in range(last, -1, -1):
        size = shape[axis]
        stride *= 0 if input_shape is None else input_shape[axis]
        transformed = axis in axes and (size > 1 or (real and axis == last))
        plain = not transformed and padding[axis] is None
        if plain and merged and input_shape is None and merged[-1][1] and merged[-1][2] is None:
            merged[-1] = (merged[-1][0] * size, True, None, 0)
        elif not plain or size > 1:
            merged.append((size, not transformed, padding[axis], stride))
    batches = 1
    if merged and merged[-1][1] and merged[-1][2] is None:
        batches = merged.pop()[0]
    return Layout(tuple(merged) or ((1, False, None, 0),), batches)


def find_precision(kind: DType, name: str, context: Context, real: bool = False) -> int:
    """Return the precision in which VkFFT transforms a dtype.

    Parameters
    ----------
    name
        The name of the argument, for error messages.
    real
        Whether real dtypes are accepted, for the padded rows of a real transform.

    Raises
    ------
    ValueError
        The dtype is not complex.
    UnsupportedError
        The device does not support the dtype.
    """
    precision = _PRECISIONS.get(kind)
    if precision is None and real:
        precision = _REAL_PRECISIONS.get(kind)
    if precision is None:
        raise ArgumentValueError(
            f"{name}: VkFFT transforms complex32, complex64 and complex128, got {kind.name}"
        )
    for device in context.device_infos:
        if precision == DOUBLE and not device.float_64_support:
            raise UnsupportedError(f"{name}: the device {device.device_name!r} has no float64; use complex64")
        if precision == HALF and not (device.float_16_support and device.storage_buffer_16_bit_access):
            raise UnsupportedError(f"{name}: the device {device.device_name!r} has no float16; use complex64")
    return precision


def count_complex_bytes(precision: int) -> int:
    """Return the size of a complex number in bytes."""
    return 4 << precision


def count_stored_elements(shape: Shape, real: bool) -> int:
    """Return the number of complex elements in a buffer for a transform of `shape`."""
    if real:
        return math.prod(shape[:-1]) * (shape[-1] // 2 + 1)
    return math.prod(shape)


def parse_shape(shape: object, name: str) -> Shape:
    """Return 1 to 3 positive ints. Raises TypeError or ValueError for anything else."""
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise ArgumentTypeError(f"{name}: expected 1 to 3 ints, got {shape!r}")
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected 1 to 3 ints, got {shape!r}") from None
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise ArgumentValueError(f"{name}: expected 1 to 3 positive ints, got {shape!r}")
    return sizes


def parse_padding(padding: object, shape: Shape) -> Padding:
    """Return the range of zeros of each axis, or None for an axis without zeros.

    Raises ValueError unless `padding` has None or a pair (left, right) with 0 <= left <= right <= size for
    each axis.
    """
    if padding is None:
        return (None,) * len(shape)
    if not isinstance(padding, Sequence) or len(padding) != len(shape):
        raise ArgumentValueError(
            f"padding: expected (left, right) or None for each of {len(shape)} axes, got {padding!r}"
        )
    ranges: list[tuple[int, int] | None] = []
    for size, pair in zip(shape, padding, strict=True):
        if pair is None:
            ranges.append(None)
            continue
        try:
            left, right = (operator.index(end) for end in pair)
        except (TypeError, ValueError):
            raise ArgumentValueError(f"padding: expected (left, right) or None, got {pair!r}") from None
        if not 0 <= left <= right <= size:
            raise ArgumentValueError(
                f"padding: expected 0 <= left <= right <= {size}, the size of its axis, got {pair!r}"
            )
        ranges.append((left, right) if left < right else None)
    return tuple(ranges)


# ---- Programs: the compiled kernels of a VkFFT plan, with its tables in device memory --------------------


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
    engine, most_groups = context._native, context.max_workgroup_count
    launcher = native.Launcher(
        engine, plan._native, slots, push_constant_size, -1, -1, -1, (1, 1, 1), most_groups, _reject_value
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


# ---- A cache of compiled programs: each context keeps the most recently used ones ------------------------


MAX_PROGRAMS = 256

_Programs = OrderedDict[Request, Program]
_PROGRAMS = "vkfft.programs"
_contexts: "WeakSet[Context]" = WeakSet()
_lock = threading.RLock()


def find_program(request: Request) -> Program:
    """Return the program for a request in the current context. Raises the errors of `Program`."""
    context = get_context()
    with _lock:
        _contexts.add(context)
        programs = context._keep(_PROGRAMS, _Programs)
        program = programs.get(request)
        if program is None:
            program = programs[request] = Program(context, request)
            while len(programs) > MAX_PROGRAMS:
                programs.popitem(last=False)
        programs.move_to_end(request)
        return program


def clear_plan_cache() -> None:
    """Clear the cache. Queued and recorded work continues, and a `VkFFTPlan` keeps its programs.

    Examples
    --------
    >>> vd.vkfft.clear_plan_cache()
    """
    with _lock:
        for context in _contexts:
            context.kept.pop(_PROGRAMS, None)


def count_cached_programs() -> int:
    """Return the number of cached programs."""
    with _lock:
        return sum(len(context.kept.get(_PROGRAMS, ())) for context in _contexts)
