"""What a recorded launch tells of its kernel, so that graphs can fuse it with others."""

from collections.abc import Sequence

from vkdispatch.base.record import record
from vkdispatch.codegen import ShaderDescription
from vkdispatch.codegen.layout import ArgumentLayout
from vkdispatch.shader.launch_size import Extent
from vkdispatch.shader.parameters import BufferSlot, ImageSlot, Slot


@record(eq=False)
class FusibleKernel:
    """A kernel as it was recorded: what there is to know before its launches are fused with others.

    Attributes
    ----------
    description
        The kernel.
    layout
        Where the arguments of the variant that was recorded lie.
    resources
        Positions, among the kernel's resources, of what a launch binds, in the order of its slots.
    local_size
        The workgroup size that its user asked for.
    most_buffers
        How many a kernel may bind.
    """

    description: ShaderDescription
    layout: ArgumentLayout
    resources: tuple[int, ...]
    local_size: Extent | None
    most_buffers: int


def bound_resources(description: ShaderDescription, slots: Sequence[Slot]) -> tuple[int, ...]:
    """Return the positions, among a kernel's resources, of what its slots bind."""
    base = description.resource_binding_base
    return tuple(slot.binding - base for slot in slots if isinstance(slot, (BufferSlot, ImageSlot)))
