"""Kernels of whole transforms, made once for each set of arguments."""

import functools
import math
from typing import Any

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.dtype import DType
from vkdispatch.fft.line.context import fft_context
from vkdispatch.fft.line.real import make_real_kernel
from vkdispatch.fft.line.staged import make_staged_kernel
from vkdispatch.fft.many.long import column_fft, long_fft
from vkdispatch.fft.many.long_real import long_real_fft
from vkdispatch.fft.many.planes import make_plane_kernel
from vkdispatch.fft.many.program import Program
from vkdispatch.fft.plan.lines import plan_long_line, plan_staged
from vkdispatch.fft.plan.passes import plan_pass
from vkdispatch.fft.plan.planes import plan_planes
from vkdispatch.fft.plan.real import plan_real
from vkdispatch.fft.plan.transforms import Transform, limits
from vkdispatch.fft.trace.ends import scale_of
from vkdispatch.fft.trace.ops import current_kernel
from vkdispatch.shader.shader_function import ShaderFunction


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
    long_line = plan_long_line(spec)
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
    if device_facts().cpu:
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
