"""What a transform is: the key of its kernels."""

import math
from typing import Any

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.plan.tuning import tuning
from vkdispatch.shader.map import MappingFunction


@record
class Transform:
    """A transform along one axis: everything that its kernels depend on but the device.

    Attributes
    ----------
    shape, axis
        Shape of the data, of the reals if `r2c`; the axis counts from the front.
    compute_type
        Complex type of the computation.
    inverse, normalize, r2c
        Direction, whether an inverse transform is divided by the length, whether it is a real transform.
    input_map, output_map
        Maps that read and write, or None.
    input_type, output_type
        Complex types of the buffers, or None if there is a map.
    signal_range
        Start and end of the values that are read, or None.
    separate
        Whether there are two buffers even without maps.
    kernel_index
        What `mapped_kernel_index` returns in the maps.
    scale
        Factor of the result, besides the normalization.
    """

    shape: tuple[int, ...]
    axis: int
    compute_type: DType
    inverse: bool = False
    normalize: bool = True
    r2c: bool = False
    input_map: MappingFunction | None = None
    output_map: MappingFunction | None = None
    input_type: DType | None = None
    output_type: DType | None = None
    signal_range: tuple[int, int] | None = None
    separate: bool = False
    kernel_index: int | None = None
    scale: float = 1.0

    @property
    def length(self) -> int:
        """Values of a line."""
        return self.shape[self.axis]

    @property
    def is_mapped(self) -> bool:
        """Whether a map reads or writes."""
        return self.input_map is not None or self.output_map is not None

    @property
    def count(self) -> int:
        """Lines along the axes before the transformed one."""
        return math.prod(self.shape[: self.axis])

    @property
    def stride(self) -> int:
        """Distance of neighbouring values of a line: the lines along the axes behind it."""
        return math.prod(self.shape[self.axis + 1 :])

    @property
    def factor(self) -> float:
        """Factor of the result, with the normalization."""
        return self.scale / self.length if self.inverse and self.normalize else float(self.scale)

    @property
    def name(self) -> str:
        """Name of the kernels."""
        kind = ("i" if self.inverse else "") + ("rfft" if self.r2c else "fft")
        return f"{kind}_{_text_of(self.shape)}_axis{self.axis}"

    @property
    def plane_name(self) -> str:
        """Name of the kernel of this axis and the one before it."""
        return f"{'ifft2' if self.inverse else 'fft2'}_{_text_of(self.shape)}"


def _text_of(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def device_limits() -> tuple[Any, ...]:
    """Return what plans depend on besides a transform: what the context's devices can do."""
    context = get_context()
    facts = device_facts(context)
    return (
        context.max_workgroup_size,
        context.max_workgroup_invocations,
        context.max_shared_memory,
        facts.is_cpu,
        facts.features,
        tuning.key(),
    )
