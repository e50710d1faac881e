"""Convolutions of small planes in one kernel."""

import functools
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.compiler.ir.location import fixed_place
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.many.planes import PlaneSteps
from vkdispatch.fft.plan.indices import hold
from vkdispatch.fft.plan.memory import SharedLayout, count_allocated, plan_layout
from vkdispatch.fft.plan.planes import PlanePlan, plan_planes
from vkdispatch.fft.plan.stages import Split
from vkdispatch.fft.plan.transforms import device_limits
from vkdispatch.fft.trace.words import cast
from vkdispatch.shader.shader_function import ShaderFunction


@record
class PlaneConvolution:
    """A convolution of planes: everything that its kernel depends on but the device.

    Attributes
    ----------
    count, height, width
        Number of planes, their rows and columns.
    kind, kernel_kind, compute_type
        Complex types of the buffers and of the computation.
    inner_only
        Whether all planes have one kernel.
    normalize
        Whether the result is divided by the number of values of a plane.
    """

    count: int
    height: int
    width: int
    kind: DType
    kernel_kind: DType
    compute_type: DType
    inner_only: bool
    normalize: bool


def get_plane_convolution(planes: PlaneConvolution) -> ShaderFunction | None:
    """Return the kernel, whose arguments are the signal and the kernel, or None if there is none.

    There is none where a workgroup cannot hold a plane, and on a CPU.
    """
    if device_facts().is_cpu:
        return None
    key: Any = (planes, device_limits())
    return build_plane_convolution(key)


@functools.cache
@fixed_place()
def build_plane_convolution(key: tuple[PlaneConvolution, object]) -> ShaderFunction | None:
    """Make the kernel of `get_plane_convolution` for devices of some limits."""
    planes = key[0]
    plan = plan_planes(planes.count, planes.height, planes.width, planes.compute_type)
    if plan is None:
        return None
    # with reversed radices, the inverse transform reads values from where the forward one leaves them
    back = plan.columns.reverse()
    layout = _layout(plan, back)
    if layout is None and plan.column_layout is not None:
        return None
    least = count_allocated(back, layout) if layout is not None else 0
    if least * planes.compute_type.item_size // plan.parts > get_context().max_shared_memory:
        return None
    return _trace(planes, plan, back, layout, least)


def _layout(plan: PlanePlan, split: Split) -> SharedLayout | None:
    if plan.column_layout is None:
        return None
    item, most = plan.compute_type.item_size, get_context().max_shared_memory
    return plan_layout(split, plan.column_layout.lines, True, item, most, plan.parts)


def _trace(
    planes: PlaneConvolution, plan: PlanePlan, back: Split, layout: SharedLayout | None, least: int
) -> ShaderFunction:
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as shader:
        kinds: list[Any] = [planes.kind, planes.kernel_kind]
        annotations: list[Any] = [vc.Buffer[kind] for kind in kinds]  # type: ignore[valid-type]
        buffer, kernel = shader.declare_input_arguments(annotations, ["buffer", "kernel"])
        steps = PlaneSteps(plan, planes.kind, buffer, least)
        values = steps.transform_rows(steps.read_rows(), inverse=False)
        values = steps.transform_columns(steps.rows_to_columns(values), inverse=False)
        product: list[Any] = [vc.new_register(plan.compute_type) for _ in values]

        def multiply(number: int, index: Any) -> None:
            factor = hold(cast(kernel[index], plan.compute_type))
            product[number][:] = values[number] * vc.to_complex(factor.real, -factor.imag)

        steps.at_columns(plan.columns.stages[-1], 0 if planes.inner_only else steps.origin, multiply)
        values = steps.transform_columns_by(back, layout, product, inverse=True)
        values = steps.transform_rows(steps.columns_to_rows(values, back.stages[-1]), inverse=True)
        steps.write_rows(steps.normalize(values) if planes.normalize else values)
        description = shader.get_description(f"convolve2D_{planes.count}x{planes.height}x{planes.width}")
    return ShaderFunction(description, plan.local_size, (plan.workgroups, 1, 1))
