"""What a recorded launch tells of its kernel, so that graphs can fuse it with others."""

from collections.abc import Callable, Mapping, Sequence

from vkdispatch.analyses.layout import ArgumentLayout
from vkdispatch.base.record import record
from vkdispatch.codegen import ShaderDescription
from vkdispatch.execution_pipeline.optimization import Fusion, Launch
from vkdispatch.shader.launch_size import Extent
from vkdispatch.shader.parameters import BufferSlot, ImageSlot, Slot

# Makes a callable kernel of a description, for a workgroup size or None.
MakeKernel = Callable[[ShaderDescription, Extent | None], Callable[..., None]]
FindFusions = Callable[[Sequence[Launch], Mapping[int, int], frozenset[int]], list[Fusion]]


@record(eq=False)
class FusibleKernel:
    """A kernel as it was recorded; see `Fusible` in `execution_pipeline.optimization`.

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
    make
        Makes kernels like it.
    find
        Finds chains of such kernels.
    """

    description: ShaderDescription
    layout: ArgumentLayout
    resources: tuple[int, ...]
    local_size: Extent | None
    most_buffers: int
    make: MakeKernel
    find: FindFusions

    def fuse(
        self, launches: Sequence[Launch], uses: Mapping[int, int], discarded: frozenset[int]
    ) -> list[Fusion]:
        """Find chains among launches in a row; see `Fusible`."""
        return self.find(launches, uses, discarded)


def bound_resources(description: ShaderDescription, slots: Sequence[Slot]) -> tuple[int, ...]:
    """Return the positions, among a kernel's resources, of what its slots bind."""
    base = description.resource_binding_base
    return tuple(slot.binding - base for slot in slots if isinstance(slot, (BufferSlot, ImageSlot)))
