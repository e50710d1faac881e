"""Convolutions, and the plans of their transforms."""

import math
from collections.abc import Sequence

from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.record import record, replace
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.arguments.shapes import parse_axis, parse_shape
from vkdispatch.fft.arguments.types import ensure_supported_complex_precision
from vkdispatch.fft.line.resources import transposed_size
from vkdispatch.fft.plan.passes import Pass, PassChoices, plan_pass, reverse_radices
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.plan.tuning import look_up, tuning
from vkdispatch.shader.map import MappingFunction


@record
class Spectra:
    """The kernels of a convolution, which are given by their spectra.

    Attributes
    ----------
    kernel_map, kernel_type
        The map that changes the signal's spectrum, or else the type of the kernels' buffer.
    count
        How many kernels are applied to one signal.
    transposed
        Whether the buffer has the layout that `transpose` writes.
    inner_only
        Whether the kernels lack the axes before the transformed one.
    """

    kernel_map: MappingFunction | None
    kernel_type: DType | None
    count: int = 1
    transposed: bool = False
    inner_only: bool = False

    @property
    def kernel(self) -> MappingFunction | DType | None:
        """The map, or else the type."""
        return self.kernel_map or self.kernel_type


@record
class Convolution:
    """A convolution along one axis: everything that its kernel depends on but the device.

    Attributes
    ----------
    transform
        The forward transform of the signal; `normalize` is that of the inverse one.
    spectra
        The kernels.
    """

    transform: Transform
    spectra: Spectra

    @property
    def name(self) -> str:
        """Name of the kernel."""
        transform = self.transform
        return f"convolution_{'x'.join(map(str, transform.shape))}_axis{transform.axis}"

    @property
    def natural_elements(self) -> int:
        """Elements of one kernel in the layout of the signal."""
        shape = self.transform.shape
        return math.prod(shape[self.transform.axis :] if self.spectra.inner_only else shape)

    @property
    def kernel_elements(self) -> int:
        """Elements that the buffer of the kernels needs."""
        spectra = self.spectra
        plans = plan_convolution(self.transform) if spectra.transposed else None
        if plans is None:
            return self.natural_elements * spectra.count
        inverse = plans[1]
        return transposed_size(remove_outer_axes(inverse) if spectra.inner_only else inverse) * spectra.count


def plan_inverse(plan: Pass) -> Pass:
    """Return the plan of the inverse transform: the radices in reverse order.

    Its first stage then reads values from where the last stage of the forward transform leaves them. Where
    workgroup memory has no room for that, it is the same plan, and values must be moved.
    """
    radices = plan.split.radices
    if plan.layout is None or radices[0] == radices[-1]:
        return plan
    return reverse_radices(plan) or plan


def plan_convolution(transform: Transform) -> tuple[Pass, Pass] | None:
    """Return the plans of the forward and the inverse transform, or None if no workgroup holds a line."""
    plan = plan_pass(transform.shape, transform.axis, transform.compute_type, _choose(transform))
    return None if plan is None else (plan, plan_inverse(plan))


def _choose(transform: Transform) -> PassChoices:
    """Return what is chosen for the two transforms of one kernel."""
    shape, axis = transform.shape, transform.axis
    length = shape[axis]
    if device_facts().is_cpu or axis != len(shape) - 1 or length & (length - 1):
        return PassChoices()
    registers = look_up(tuning.registers_convolution, length)
    return PassChoices(registers=registers, group=look_up(tuning.group_convolution, length))


def remove_outer_axes(plan: Pass) -> Pass:
    """Return the plan of the lines of one index along the axes before the transformed one."""
    lines = plan.grid.lines if plan.grid.is_interleaved else 1
    return replace(plan, grid=replace(plan.grid, outer=1, lines=lines))


def make_transposition(transform: Transform, inner_only: bool) -> Convolution:
    """Return the convolution whose kernel `transpose` rearranges, between buffers of its types."""
    return Convolution(transform, Spectra(None, transform.output_type, 1, True, inner_only))


def get_transposed_layout(convolution: Convolution) -> object:
    """Return what a transposed layout depends on: which invocations read which values."""
    plans = plan_convolution(convolution.transform)
    if plans is None:
        return ("transposed",)
    plan, inverse = plans
    return (inverse.split, plan.grid, convolution.spectra.inner_only)


def get_transposed_size(
    buffer_shape: int | Sequence[int], axis: int | None = None, compute_type: DType = complex64
) -> int:
    """Return the number of elements that `transpose` writes for convolutions of a shape along an axis.

    Raises
    ------
    TypeError, ValueError
        `buffer_shape` is not a shape, or `compute_type` is not complex.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> vd.fft.get_transposed_size((8, 16))
    128
    """
    shape = parse_shape(buffer_shape)
    axis = parse_axis(axis, len(shape))
    ensure_supported_complex_precision(compute_type, role="compute_type")
    plans = plan_convolution(Transform(shape, axis, compute_type))
    return math.prod(shape) if plans is None else transposed_size(plans[1])
