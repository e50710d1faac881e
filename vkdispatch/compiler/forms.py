"""The forms in which one kernel is written, and the layout of its arguments: what launches know of it."""

from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType, component_type, float16, int16, int64, uint16, uint64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import field, record

# ---- The forms in which one kernel is written ------------------------------------------------------------
#
# For launches of different sizes and devices that lack types.


# What devices may lack, in Vulkan's names: storage of small elements, by their bytes, and arithmetic.
STORAGE = {1: "storageBuffer8BitAccess", 2: "storageBuffer16BitAccess"}
INT64, INT16, FLOAT16 = "shaderInt64", "shaderInt16", "shaderFloat16"
# 16 bits in the argument block, whether it is push constants or a uniform block.
SHORT_ARGUMENTS = "storagePushConstant16"
# What each feature is for.
FEATURE_OF: dict[DType, str] = {int64: INT64, uint64: INT64, int16: INT16, uint16: INT16, float16: FLOAT16}


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
        Whether these are neighbours (see `compiler.passes.coarsen`) instead of a workgroup size apart.
    lacks
        Device features that the kernel does without: elements are packed in words (see
        `compiler.glsl.packing`), and types are emulated (see `compiler.glsl.emulation`).
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


# ---- The layout of the argument block --------------------------------------------------------------------


@record(sealed=True)
class StructElement:
    """A member of the argument block: `count` values of type `dtype` at byte `offset`."""

    name: str
    dtype: dt.DType
    count: int = 1
    offset: int = 0


@record(sealed=True)
class ArgumentLayout:
    """The argument block of a kernel.

    Attributes
    ----------
    members, size
        The members, and the bytes of the block.
    uniform
        Whether it is a uniform block at binding 0 instead of push constants.
    exec_offset, group_count_offset
        Byte offsets of the execution limit and of the count of workgroups of a folded kernel (both uvec3), or
        None.
    addresses, lengths
        Names of the members that hold a buffer's device address (uint64) and its size in bytes (uint64, or
        uvec2 if buffers are bound), by position of the buffer among the resources.
    halves
        Members of 16 bits that are packed in words at the end of the block, with the number of the first half
        of each.
    """

    members: tuple[StructElement, ...]
    size: int
    uniform: bool
    exec_offset: int | None
    group_count_offset: int | None
    addresses: dict[int, str] = field(factory=dict)
    lengths: dict[int, str] = field(factory=dict)
    halves: dict[str, int] = field(factory=dict)

    @property
    def block(self) -> str:
        """The name of the block in GLSL."""
        return "UBO" if self.uniform else "PC"

    def offset_of(self, name: str) -> int:
        """Byte offset of a member. Raises ValueError if there is none of that name."""
        for member in self.members:
            if member.name == name:
                return member.offset
        names = ", ".join(member.name for member in self.members)
        raise ArgumentValueError(f"the argument block has no member {name!r}; it has: {names or 'none'}")
