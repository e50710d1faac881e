"""The properties of recorded kernels that fusing their launches needs."""

from collections.abc import Sequence

from vkdispatch.base.record import record
from vkdispatch.codegen import ShaderDescription
from vkdispatch.compiler.analyses.contents import ArgumentLayout
from vkdispatch.compiler.analyses.launch_values import Extent
from vkdispatch.shader.arguments.slots import BufferSlot, ImageSlot, Slot


@record(eq=False)
class FusibleKernel:
    """A recorded kernel, with what fusing its launches needs.

    Attributes
    ----------
    description
        The kernel.
    layout
        The layout of the arguments of the recorded variant.
    resources
        Positions among the kernel's resources of the bound buffers and images, in order of the slots.
    local_size
        The workgroup size given by the user, or None.
    most_buffers
        The device's limit of storage buffers in a kernel.
    """

    description: ShaderDescription
    layout: ArgumentLayout
    resources: tuple[int, ...]
    local_size: Extent | None
    most_buffers: int


def find_bound_resources(description: ShaderDescription, slots: Sequence[Slot]) -> tuple[int, ...]:
    """Return the positions among a kernel's resources of the buffers and images in its slots."""
    base = description.resource_binding_base
    return tuple(slot.binding - base for slot in slots if isinstance(slot, (BufferSlot, ImageSlot)))
