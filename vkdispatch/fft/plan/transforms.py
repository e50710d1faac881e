"""What a transform is: the key of its kernels."""

from typing import Any

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.shader.map import MappingFunction


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


def limits() -> tuple[Any, ...]:
    """Return what plans depend on besides a transform: what the context's devices can do."""
    context = get_context()
    facts = device_facts(context)
    return (
        context.max_workgroup_size,
        context.max_workgroup_invocations,
        context.max_shared_memory,
        facts.cpu,
        facts.features,
    )
