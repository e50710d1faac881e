"""The forms in which one kernel is written, for launches of different sizes and devices that lack types."""

from vkdispatch.base.record import record

# What devices may lack, in Vulkan's names: storage of small elements, by their bytes, and arithmetic.
STORAGE = {1: "storageBuffer8BitAccess", 2: "storageBuffer16BitAccess"}
INT64, INT16, FLOAT16 = "shaderInt64", "shaderInt16", "shaderFloat16"
# 16 bits in the argument block, whether it is push constants or a uniform block.
SHORT_ARGUMENTS = "storagePushConstant16"


@record
class Variant:
    """A form of a kernel that does the same as the plain one.

    Attributes
    ----------
    folded
        It takes any grid in a launch of another shape: devices limit the workgroups along an axis.
    addressed
        Its storage buffers are reached by device address: devices limit what a binding reaches.
    wide
        Invocation ids and indices have 64 bits.
    coarse
        How many elements along x one invocation does.
    blocks
        Whether these are neighbours (see `codegen.blocks`); else they lie a workgroup's size apart.
    lacks
        Features of the device's that the kernel does without: elements are packed in words, and types are
        computed with others (see `codegen.packing` and `codegen.emulation`).
    """

    folded: bool = False
    addressed: bool = False
    wide: bool = False
    coarse: int = 1
    blocks: bool = False
    lacks: frozenset[str] = frozenset()


PLAIN = Variant()
