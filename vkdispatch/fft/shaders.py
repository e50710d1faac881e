"""Kernels of whole transforms, made once for each set of arguments."""

import functools
import math
from typing import Any

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.fft.config import Pass, plan_pass
from vkdispatch.fft.context import fft_context
from vkdispatch.fft.device import runs_on_cpu
from vkdispatch.fft.io import checked_map
from vkdispatch.fft.long import column_fft, long_fft, scale_of
from vkdispatch.fft.long_real import long_real_fft
from vkdispatch.fft.ops import current_kernel
from vkdispatch.fft.planes import make_plane_kernel, plan_planes
from vkdispatch.fft.precision import choose_compute_type, ensure_supported_complex_precision
from vkdispatch.fft.program import Program
from vkdispatch.fft.real import make_real_kernel, plan_real
from vkdispatch.fft.shapes import SignalRange, checked_axis, checked_range, checked_shape, require_neighbours
from vkdispatch.fft.staged import make_staged_kernel, plan_staged
from vkdispatch.fft.stages import Split
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction

# Lines in place whose registers leave room for two workgroups if nothing else takes any: radices and
# invocations, as measured on an H200.
_LONG_LINES = {8192: ((32, 32, 8), 256)}


@record
class Transform:
    """All that tells one transform's kernel from another's.

    Attributes
    ----------
    shape, axis
        Of the data; the axis counted from the front. Of a real transform's reals.
    inverse, normalize, r2c
        Direction, whether an inverse one is divided by the length, and whether it is a real one.
    input_map, output_map
        Maps, or None.
    input_type, output_type
        Types of the buffers that are read and written where there is no map, else None.
    compute_type
        What it is computed in.
    signal_range
        Beginning and end of what is read, or None.
    separate
        Whether there are two buffers also where there are no maps.
    kernel_index
        What `mapped_kernel_index` returns in the maps.
    scale
        What the outcome is multiplied by, besides being normalized.
    """

    shape: tuple[int, ...]
    axis: int
    inverse: bool
    normalize: bool
    r2c: bool
    input_map: MappingFunction | None
    output_map: MappingFunction | None
    input_type: DType | None
    output_type: DType | None
    compute_type: DType
    signal_range: tuple[int, int] | None
    separate: bool = False
    kernel_index: int | None = None
    scale: float = 1.0

    @property
    def length(self) -> int:
        """Values of a line."""
        return self.shape[self.axis]


def checked_types(
    input_map: MappingFunction | None,
    output_map: MappingFunction | None,
    input_type: DType | None,
    output_type: DType | None,
    compute_type: DType | None,
    *others: DType | None,
) -> tuple[DType | None, DType | None, DType]:
    """Return input, output and compute type, as far as there are buffers. Raises ValueError for bad ones."""
    for kind, mapping, side in ((input_type, input_map, "input"), (output_type, output_map, "output")):
        if kind is not None and mapping is not None:
            raise ArgumentValueError(f"{side}_type: {side}_map decides what is read or written; leave it out")
    if output_map is None:
        output_type = complex64 if output_type is None else output_type
        ensure_supported_complex_precision(output_type, role="output_type")
    if input_map is None:
        input_type = output_type or complex64 if input_type is None else input_type
        ensure_supported_complex_precision(input_type, role="input_type")
    if compute_type is None:
        compute_type = choose_compute_type(input_type, output_type, *others)
    else:
        ensure_supported_complex_precision(compute_type, role="compute_type")
    return input_type, output_type, compute_type


def limits() -> tuple[Any, ...]:
    """Return what plans depend on besides a transform: what the context's devices can do."""
    context = get_context()
    facts = device_facts(context)
    return (
        context.max_workgroup_size,
        context.max_workgroup_invocations,
        context.max_shared_memory,
        facts.is_cpu,
        facts.features,
    )


def make_fft_shader(
    buffer_shape: Any,
    axis: int | None = None,
    inverse: bool = False,
    normalize_inverse: bool = True,
    r2c: bool = False,
    input_map: MappingFunction | None = None,
    output_map: MappingFunction | None = None,
    input_type: DType | None = None,
    output_type: DType | None = None,
    compute_type: DType | None = None,
    input_signal_range: SignalRange | None = None,
) -> Any:
    """Make the kernel of a transform along an axis, batched over all others. Equal arguments give one kernel.

    Parameters
    ----------
    buffer_shape, axis
        Shape of the data, and the axis (default: the last).
    inverse, normalize_inverse
        Direction, and whether an inverse transform is divided by the length.
    r2c
        Whether the data is an RFFTBuffer's; `buffer_shape` is then the shape of the reals.
    input_map, output_map
        What reads and writes instead of a buffer; see `read_op` and `write_op`.
    input_type, output_type
        Complex types of the buffers (default complex64).
    compute_type
        Complex type of the computation; default: the widest of those, at least complex64.
    input_signal_range
        (start, end): what is outside of it counts as zero.

    Returns
    -------
    ShaderFunction
        Its arguments are the output (a buffer or the output map's), then the input's; one buffer if there are
        no maps.

    Raises
    ------
    TypeError, ValueError
        A wrong argument, such as a type that is not complex.
    AxisError
        There is no such axis.
    """
    shape = checked_shape(buffer_shape)
    axis = checked_axis(axis, len(shape))
    if r2c:
        require_neighbours(shape, axis)
    input_map, output_map = checked_map(input_map, "input_map"), checked_map(output_map, "output_map")
    kinds = checked_types(input_map, output_map, input_type, output_type, compute_type)
    if input_map is None and output_map is None and kinds[0] is not kinds[1]:
        raise ArgumentValueError(
            f"input_type, output_type: one buffer is read and written, so they must be the same; got "
            f"{kinds[0].name if kinds[0] else None}, {kinds[1].name if kinds[1] else None}"
        )
    spec = Transform(
        shape,
        axis,
        bool(inverse),
        bool(normalize_inverse),
        bool(r2c),
        input_map,
        output_map,
        *kinds,
        checked_range(input_signal_range, shape[axis]),
    )
    return fft_kernel(spec)


def fft_kernel(spec: Transform) -> Any:
    """Return the kernel of a transform. Raises ValueError where there is none."""
    return cached_fft_kernel(spec, limits())


@functools.cache
def cached_fft_kernel(spec: Transform, _limits: object) -> Any:
    """Return the kernel of a transform, made for what the device can do."""
    fast = _real_fft(spec) if spec.r2c else None
    if fast is not None:
        return fast
    staged = _staged_fft(spec)
    if staged is not None:
        return staged
    long_line = _plan_long_line(spec)
    plan = long_line or plan_pass(spec.shape, spec.axis, spec.compute_type)
    if plan is None:
        with current_kernel(spec.kernel_index):
            return long_fft(spec)
    # on a CPU, exchanges in workgroup memory take longer than one more launch
    columns = None if plan.layout is None else column_fft(spec)
    if columns is not None:
        return columns
    sizes = "x".join(map(str, spec.shape))
    kind = ("irfft" if spec.inverse else "rfft") if spec.r2c else ("ifft" if spec.inverse else "fft")
    with fft_context(
        spec.shape,
        spec.axis,
        compute_type=spec.compute_type,
        name=f"{kind}_{sizes}_axis{spec.axis}",
        plan=plan,
    ) as context:
        io = context.make_io_manager(
            spec.output_map,
            spec.output_type,
            spec.input_type,
            spec.input_map,
            separate=spec.separate,
            words=not spec.r2c,
        )
        with current_kernel(spec.kernel_index):
            io.read_input(r2c=spec.r2c, inverse=spec.inverse, signal_range=spec.signal_range)
            context.execute(spec.inverse)
            if spec.inverse and spec.normalize:
                context.registers.normalize()
            if spec.scale != 1:
                context.registers.scale(spec.scale)
            if long_line is not None:
                context.resources.part_writes()
            io.write_output(r2c=spec.r2c, inverse=spec.inverse)
    return context.get_callable()


def _plan_long_line(spec: Transform) -> Pass | None:
    """Plan the pass of a line that takes nearly all registers; None for others."""
    maps = spec.input_map is not None or spec.output_map is not None
    if maps or spec.r2c or spec.separate or spec.length not in _LONG_LINES or runs_on_cpu():
        return None
    radices, threads = _LONG_LINES[spec.length]
    context = get_context()
    behind = math.prod(spec.shape[spec.axis + 1 :])
    if behind > 1 or spec.compute_type is not complex64 or threads > context.max_invocations_along_x:
        return None
    split = Split(spec.length, radices, threads)
    return plan_pass(spec.shape, spec.axis, spec.compute_type, split=split)


def _staged_fft(spec: Transform) -> ShaderFunction | None:
    """Make the kernel of a transform of short lines that lie one after another, else None."""
    if spec.r2c or spec.signal_range is not None or spec.input_type is None or spec.output_type is None:
        return None
    plan = plan_staged(spec.shape, spec.axis, spec.compute_type)
    if plan is None:
        return None
    name = f"{'ifft' if spec.inverse else 'fft'}_{'x'.join(map(str, spec.shape))}_axis{spec.axis}"
    return make_staged_kernel(
        name, plan, spec.input_type, spec.output_type, spec.inverse, scale_of(spec), spec.separate
    )


def _real_fft(spec: Transform) -> ShaderFunction | Program | None:
    """Make the kernel of a real transform that a complex one of half the length can do, else None."""
    maps = spec.input_map is not None or spec.output_map is not None
    if maps or spec.separate or spec.signal_range is not None or spec.output_type is None:
        return None
    count = math.prod(spec.shape[: spec.axis])
    plan = plan_real(count, spec.length, spec.compute_type)
    if plan is None:
        return long_real_fft(spec)
    name = f"{'irfft' if spec.inverse else 'rfft'}_{'x'.join(map(str, spec.shape))}"
    return make_real_kernel(plan, spec.output_type, spec.inverse, spec.normalize, name, spec.scale)


def plane_kernel(
    shape: tuple[int, ...],
    inverse: bool,
    normalize: bool,
    kind: DType,
    compute_type: DType,
    scale: float = 1.0,
) -> ShaderFunction | None:
    """Return the kernel that transforms the last two axes at once, in place; None where there is none.

    None on a CPU too: workgroup memory is no faster than any other there, and two kernels have less to do.
    """
    if runs_on_cpu():
        return None
    return cached_plane_kernel((shape, inverse, normalize, kind, compute_type, scale), limits())


@functools.cache
def cached_plane_kernel(
    what: tuple[tuple[int, ...], bool, bool, DType, DType, float], _limits: object
) -> ShaderFunction | None:
    """Return the kernel of `plane_kernel`, made for what the device can do."""
    shape, inverse, normalize, kind, compute_type, scale = what
    plan = plan_planes(math.prod(shape[:-2]), shape[-2], shape[-1], compute_type)
    if plan is None:
        return None
    name = f"{'ifft2' if inverse else 'fft2'}_{'x'.join(map(str, shape))}"
    return make_plane_kernel(plan, kind, inverse, normalize, name, scale)
