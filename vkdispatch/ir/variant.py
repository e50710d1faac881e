"""The forms in which one kernel is written, for launches of different sizes and devices that lack types."""

from vkdispatch.base.dtype import DType, component_type, float16, int16, int64, uint16, uint64
from vkdispatch.base.record import record

# What devices may lack, in Vulkan's names: storage of small elements, by their bytes, and arithmetic.
STORAGE = {1: "storageBuffer8BitAccess", 2: "storageBuffer16BitAccess"}
INT64, INT16, FLOAT16 = "shaderInt64", "shaderInt16", "shaderFloat16"
# 16 bits in the argument block, whether it is push constants or a uniform block.
SHORT_ARGUMENTS = "storagePushConstant16"
# What each feature is for.
FEATURE_OF: dict[DType, str] = {
    int64: INT64,
    uint64: INT64,
    int16: INT16,
    uint16: INT16,
    float16: FLOAT16,
}


def emulates(kind: DType, lacks: frozenset[str]) -> bool:
    """Whether a form of a kernel emulates values of a type."""
    return FEATURE_OF.get(component_type(kind)) in lacks


@record
class Variant:
    """A form of a kernel that does the same as the plain one.

    Attributes
    ----------
    folded
        It runs any grid in a launch of another shape, as devices limit the workgroups along an axis.
    addressed
        It accesses storage buffers by device address, as devices limit the size of a binding.
    wide
        Invocation ids and indices have 64 bits.
    coarse
        How many elements along x one invocation processes.
    blocks
        Whether these are neighbours (see `passes.blocks`) instead of a workgroup size apart.
    lacks
        Device features that the kernel does without: elements are packed in words (see `glsl.packing`), and
        types are emulated (see `glsl.emulation`).
    shared
        Counts of elements of the shared arrays that calls size, in their order.
    """

    folded: bool = False
    addressed: bool = False
    wide: bool = False
    coarse: int = 1
    blocks: bool = False
    lacks: frozenset[str] = frozenset()
    shared: tuple[int, ...] = ()


PLAIN = Variant()
