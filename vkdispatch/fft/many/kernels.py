"""The choice of the kernel of a transform, which is made once for equal transforms."""

import functools
import math
from typing import Any

from vkdispatch.compiler.ir.location import fixed_place
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.line.context import fft_context, trace_for_maps
from vkdispatch.fft.line.real import make_real_kernel
from vkdispatch.fft.line.staged import make_staged_kernel
from vkdispatch.fft.many.long import make_column_fft, make_long_fft
from vkdispatch.fft.many.long_real import make_long_real_fft
from vkdispatch.fft.many.planes import make_plane_kernel
from vkdispatch.fft.many.program import Program
from vkdispatch.fft.plan.lines import plan_long_line, plan_staged
from vkdispatch.fft.plan.passes import Pass, plan_for_long_maps, plan_pass
from vkdispatch.fft.plan.planes import plan_planes
from vkdispatch.fft.plan.real import plan_real
from vkdispatch.fft.plan.transforms import Transform, device_limits
from vkdispatch.fft.trace.ops import tracing_for
from vkdispatch.shader.shader_function import ShaderFunction


def get_fft_kernel(transform: Transform) -> Any:
    """Return the kernel of a transform. Raises ValueError if its lines are too long."""
    return build_fft_kernel(transform, device_limits())


@functools.cache
@fixed_place()
def build_fft_kernel(transform: Transform, _limits: object) -> Any:
    """Make the kernel of a transform for devices of some limits: a ShaderFunction or a Program."""
    if transform.r2c:
        real = _make_real_fft(transform)
        if real is not None:
            return real
    staged = _make_staged_fft(transform)
    if staged is not None:
        return staged
    long_line = plan_long_line(transform)
    plan = long_line or plan_pass(transform.shape, transform.axis, transform.compute_type)
    if plan is None:
        with tracing_for(kernel=transform.kernel_index):
            return make_long_fft(transform)
    # on a CPU, an exchange in workgroup memory takes longer than another launch
    columns = None if plan.layout is None else make_column_fft(transform)
    if columns is not None:
        return columns
    fewer = plan if long_line or not transform.is_mapped else plan_for_long_maps(plan, transform)
    return trace_for_maps(lambda plan, most: _trace(transform, plan, most, long_line), plan, fewer)


def _trace(transform: Transform, plan: Pass, most: int | None, long_line: Pass | None) -> ShaderFunction:
    """Trace a transform in one pass, whose maps have at most so many statements."""
    with fft_context(
        transform.shape,
        transform.axis,
        compute_type=transform.compute_type,
        name=transform.name,
        plan=plan,
        most=most,
    ) as context:
        io = context.make_io_manager(
            transform.output_map,
            transform.output_type,
            transform.input_type,
            transform.input_map,
            separate=transform.separate,
            words=not transform.r2c,
        )
        r2c, inverse = transform.r2c, transform.inverse
        with tracing_for(kernel=transform.kernel_index):
            io.read_input(r2c=r2c, inverse=inverse, signal_range=transform.signal_range)
            context.execute(inverse)
            if inverse and transform.normalize:
                context.registers.normalize()
            if transform.scale != 1:
                context.registers.scale(transform.scale)
            if long_line is not None:
                context.resources.recompute_addresses()
            io.write_output(r2c=r2c, inverse=inverse)
    return context.get_callable()


def _make_staged_fft(transform: Transform) -> ShaderFunction | None:
    """Return the kernel of a transform of short contiguous lines; None for others."""
    if transform.is_mapped or transform.r2c or transform.signal_range is not None:
        return None
    plan = plan_staged(transform.shape, transform.axis, transform.compute_type)
    return None if plan is None else make_staged_kernel(plan, transform)


def _make_real_fft(transform: Transform) -> ShaderFunction | Program | None:
    """Return the kernel of a real transform by a complex one of half the length, or None if there is none."""
    if transform.is_mapped or transform.separate or transform.signal_range is not None:
        return None
    plan = plan_real(transform.count, transform.length, transform.compute_type)
    if plan is None:
        return make_long_real_fft(transform)
    return make_real_kernel(plan, transform)


def get_plane_kernel(transform: Transform) -> ShaderFunction | None:
    """Return the kernel that transforms the last two axes in place, or None if there is none.

    `transform` is that of the last axis, with the normalization of both. There is none on a CPU, where
    workgroup memory is as slow as any other and two kernels do less.
    """
    return None if device_facts().is_cpu else build_plane_kernel(transform, device_limits())


@functools.cache
@fixed_place()
def build_plane_kernel(transform: Transform, _limits: object) -> ShaderFunction | None:
    """Make the kernel of `get_plane_kernel` for devices of some limits."""
    shape = transform.shape
    plan = plan_planes(math.prod(shape[:-2]), shape[-2], shape[-1], transform.compute_type)
    return None if plan is None else make_plane_kernel(plan, transform)
