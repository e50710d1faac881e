"""How types, literals, built-in values and fields are spelled in GLSL."""

import math
import re
from collections.abc import Sequence

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import Structure, field_type, is_structure
from vkdispatch.base.record import record
from vkdispatch.compiler.ir import Builtin, Storage
from vkdispatch.compiler.ir.literals import digits, rounded
from vkdispatch.compiler.ir.names import FreshNames, legal_name

# ---- How GLSL spells built-in values, types that only lie in buffers, images -----------------------------
#
# Also the names of our own.


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


STORED: dict[dt.DType, Stored] = {
    dt.bool_: Stored("uint8_t", "bool(uint({}))", "uint8_t(uint({}))"),
    dt.int8: Stored("int8_t", "int({})", "int8_t({})"),
    dt.uint8: Stored("uint8_t", "uint({})", "uint8_t({})"),
    dt.bfloat16: Stored("uint16_t", "uintBitsToFloat(uint({}) << 16)", "bfloat16_bits({})"),
}
BFLOAT16_BITS = """
uint16_t bfloat16_bits(float value) {
    uint bits = floatBitsToUint(value);
    uint rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return uint16_t(isnan(value) ? (bits >> 16) | 0x40u : rounded);
}
"""


# Prefixes of the names of image and vector types, and letters of image formats, by component type.
GVEC: dict[dt.DType, str] = {dt.float32: "", dt.int32: "i", dt.uint32: "u"}
FORMAT_LETTERS: dict[dt.DType, str] = {dt.float32: "f", dt.int32: "i", dt.uint32: "ui"}


# ---- How strongly the operators of GLSL bind -------------------------------------------------------------


# Binding strength of operators, weakest first.
(CHOICE, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUAL, ORDER, SHIFT, SUM, PRODUCT, PREFIX, POSTFIX) = range(13)
STRENGTH = {
    "||": OR,
    "&&": AND,
    "|": BIT_OR,
    "^": BIT_XOR,
    "&": BIT_AND,
    **dict.fromkeys(("==", "!="), EQUAL),
    **dict.fromkeys(("<", "<=", ">", ">="), ORDER),
    **dict.fromkeys(("<<", ">>"), SHIFT),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/%", PRODUCT),
}
# Mixtures of these keep their parentheses, since few readers know how they bind.
UNFAMILIAR = frozenset(("|", "^", "&", "<<", ">>"))


# ---- Scalar literals as GLSL text ------------------------------------------------------------------------


_SUFFIXES: dict[dt.DType, str] = {
    dt.uint16: "us",
    dt.int16: "s",
    dt.uint32: "u",
    dt.int32: "",
    dt.uint64: "ul",
    dt.int64: "l",
    dt.float16: "hf",
    dt.float32: "f",
    dt.float64: "lf",
}
_LOWEST: dict[dt.DType, str] = {
    dt.int16: "int16_t(0x8000us)",
    dt.int32: "int(0x80000000u)",
    dt.int64: "int64_t(0x8000000000000000ul)",
}
_LARGEST_FLOAT: dict[dt.DType, float] = {
    dt.float16: 65519.99,
    dt.float32: 3.4028235677973366e38,
    dt.float64: math.inf,
}
# Texts of up to this many characters cannot be shortened by writing float32 digits.
_SHORT = 7


def literal_text(value: int | float | bool, kind: dt.DType) -> str:
    """Write a scalar literal of type `kind`."""
    if kind is dt.bool_:
        return "true" if value else "false"
    if kind in _LARGEST_FLOAT:
        return _float_text(float(value), kind)
    if kind in _LOWEST and value == -(1 << (8 * kind.item_size - 1)):
        # the number without its sign does not fit the type
        return _LOWEST[kind]
    return f"{value}{_SUFFIXES[kind]}"


def _float_text(value: float, kind: dt.DType) -> str:
    if not math.isfinite(value) or abs(value) > _LARGEST_FLOAT[kind]:
        bits = "0x7FC00000u" if math.isnan(value) else "0x7F800000u" if value > 0 else "0xFF800000u"
        text = f"uintBitsToFloat({bits})"
        return text if kind is dt.float32 else f"{kind.glsl_type}({text})"
    text = repr(value)
    if kind is dt.float32 and len(text) > _SHORT and rounded(value, dt.float32) == value:
        # a value that came from float32 is written with float32's shorter digits
        text = min(text, digits(value, dt.float32), key=len)
    if not any(letter in text for letter in ".e"):
        text += ".0"
    return text + _SUFFIXES[kind]


# ---- Functions in GLSL -----------------------------------------------------------------------------------


# A definition, which ends with a brace at the end of its only line or at the start of one. Compiling it takes
# longer than to import this module.
_FUNCTION = r"^[@\w].*?(\w+)\(.*(?:\}|\{\n(?:.*\n)*?\})$"


def read_functions(text: str) -> dict[str, str]:
    """Return the function definitions in a GLSL text by name; other text is left out.

    Several functions of one name, for arguments of several types, are one definition.
    """
    functions: dict[str, str] = {}
    for match in re.finditer(_FUNCTION, text, re.MULTILINE):
        name, definition = match[1], match[0]
        functions[name] = f"{functions[name]}\n{definition}" if name in functions else definition
    return functions


# ---- Names of the blocks of buffers, and structures ------------------------------------------------------
#
# Their declarations and the fields of their elements.


def reference_name(buffer: Storage) -> str:
    """Name of a buffer's block, which is a type of reference where the buffer is reached by address."""
    return f"View{buffer.index}" if buffer.view else f"Buffer{buffer.index}"


def field_text(storage: Storage, indices: Sequence[str] = ()) -> str:
    """Write which field of an element a storage is: ".inner.x", or "" for the whole element.

    `indices` are those of the arrays on the way, as in ".inner[i].x".
    """
    if storage.whole is None:
        return ""
    kind: dt.DType = storage.whole.dtype
    text, rest = "", list(indices)
    for name in storage.path:
        assert is_structure(kind)
        text += f".{member_names(kind)[name]}"
        field = field_type(kind, name)
        assert field is not None
        text += "".join(f"[{rest.pop(0)}]" for _ in dt.array_shape(field))
        kind = dt.item_of(field)
    return text


def member_names(kind: type[Structure]) -> dict[str, str]:
    """Return the names in GLSL of the fields of a structure."""
    names = FreshNames()
    return {name: names.claim(legal_name(name, member=True)) for name, _, _ in kind.fields}


def memory_type(kind: dt.DType) -> str:
    """Return the type in GLSL of a field or an element as it lies in a buffer."""
    return STORED[kind].glsl if kind in STORED else kind.glsl_type


def structure_declaration(name: str, kind: type[Structure]) -> list[str]:
    """Declare a structure, after those within it."""
    lines: list[str] = []
    members: list[str] = []
    for (_, field, _), member in zip(kind.fields, member_names(kind).values(), strict=True):
        item = dt.item_of(field)
        text = memory_type(item)
        if is_structure(item):
            text = f"{name}_{member}".replace("__", "_")
            lines += structure_declaration(text, item)
        axes = "".join(f"[{count}]" for count in dt.array_shape(field))
        members.append(f"{INDENT}{text} {member}{axes};")
    return [*lines, f"struct {name} {{", *members, "};"]
