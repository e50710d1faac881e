"""How GLSL spells built-in values, types that only lie in buffers, images, and the names of our own."""

from vkdispatch.base.dtype import DType, bfloat16, bool_, float32, int8, int32, uint8, uint32
from vkdispatch.base.record import record
from vkdispatch.ir import Builtin

INDENT = "    "

BUILTINS: dict[Builtin, str] = {
    Builtin.GLOBAL_INVOCATION_ID: "gl_GlobalInvocationID",
    Builtin.LOCAL_INVOCATION_ID: "gl_LocalInvocationID",
    Builtin.LOCAL_INVOCATION_INDEX: "gl_LocalInvocationIndex",
    Builtin.WORKGROUP_ID: "gl_WorkGroupID",
    Builtin.WORKGROUP_SIZE: "gl_WorkGroupSize",
    Builtin.NUM_WORKGROUPS: "gl_NumWorkGroups",
    Builtin.NUM_SUBGROUPS: "gl_NumSubgroups",
    Builtin.SUBGROUP_ID: "gl_SubgroupID",
    Builtin.SUBGROUP_SIZE: "gl_SubgroupSize",
    Builtin.SUBGROUP_INVOCATION_ID: "gl_SubgroupInvocationID",
    Builtin.SUBGROUP_EQ_MASK: "gl_SubgroupEqMask",
    Builtin.SUBGROUP_GE_MASK: "gl_SubgroupGeMask",
    Builtin.SUBGROUP_GT_MASK: "gl_SubgroupGtMask",
    Builtin.SUBGROUP_LE_MASK: "gl_SubgroupLeMask",
    Builtin.SUBGROUP_LT_MASK: "gl_SubgroupLtMask",
}
# A folded kernel runs a grid of any shape in a launch of another shape; see `writer`.
FOLDED_GLOBAL_ID, FOLDED_WORKGROUP_ID = "global_id", "workgroup_id"

# Tells our compiler that every operation of floats rounds: NoContraction in SPIR-V.
PRECISE = "#pragma vkdispatch precise"

# The member of the argument block that holds packed 16-bit arguments.
HALVES = "halves_"

# Prefixes of the names of components of built-in values.
COMPONENT_NAMES: dict[Builtin, str] = {
    Builtin.GLOBAL_INVOCATION_ID: "gid",
    Builtin.LOCAL_INVOCATION_ID: "lid",
    Builtin.WORKGROUP_ID: "group",
    Builtin.WORKGROUP_SIZE: "group_size",
    Builtin.NUM_WORKGROUPS: "groups",
}


@record
class Stored:
    """The GLSL type in memory of a type that kernels do not compute with, and how to load and store it."""

    glsl: str
    load: str
    store: str


STORED: dict[DType, Stored] = {
    bool_: Stored("uint8_t", "bool(uint({}))", "uint8_t(uint({}))"),
    int8: Stored("int8_t", "int({})", "int8_t({})"),
    uint8: Stored("uint8_t", "uint({})", "uint8_t({})"),
    bfloat16: Stored("uint16_t", "uintBitsToFloat(uint({}) << 16)", "bfloat16_bits({})"),
}
BFLOAT16_BITS = """
uint16_t bfloat16_bits(float value) {
    uint bits = floatBitsToUint(value);
    uint rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return uint16_t(isnan(value) ? (bits >> 16) | 0x40u : rounded);
}
"""


# Prefixes of the names of image and vector types, and letters of image formats, by component type.
GVEC: dict[DType, str] = {float32: "", int32: "i", uint32: "u"}
FORMAT_LETTERS: dict[DType, str] = {float32: "f", int32: "i", uint32: "ui"}
