"""Names in generated code: which ones GLSL reserves, legal forms of Python names, and names not yet taken."""

import re
from collections.abc import Iterable
from functools import lru_cache

from vkdispatch.compiler.ir.program import Declare, For, Kernel
from vkdispatch.compiler.ir.traversal import walk

_TYPES = """
void bool int uint float double vec2 vec3 vec4 dvec2 dvec3 dvec4 bvec2 bvec3 bvec4 ivec2 ivec3 ivec4 uvec2
uvec3 uvec4 mat2 mat3 mat4 mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 dmat2 dmat3 dmat4
atomic_uint half fixed int16_t uint16_t int32_t uint32_t int64_t uint64_t int8_t uint8_t float16_t float32_t
float64_t f16vec2 f16vec3 f16vec4 i16vec2 i16vec3 i16vec4 u16vec2 u16vec3 u16vec4 hvec2 hvec3 hvec4 fvec2
fvec3 fvec4 long short unsigned superp sampler1D sampler2D sampler3D samplerCube image1D image2D image3D
texture1D texture2D texture3D sampler buffer_reference bfloat16_t
"""
_KEYWORDS = """
const uniform buffer shared attribute varying coherent volatile restrict readonly writeonly layout centroid
flat smooth noperspective patch sample invariant precise break continue do for while switch case default if
else subroutine in out inout true false discard return lowp mediump highp precision struct common partition
active asm class union enum typedef template this resource goto inline noinline public static extern external
interface input output filter sizeof cast namespace using main demote terminateInvocation VULKAN
devicecoherent queuefamilycoherent workgroupcoherent subgroupcoherent shadercallcoherent nonprivate
nontemporal coopmat spirv_instruction
"""
_FUNCTIONS = """
abs sign floor ceil trunc round roundEven fract mod modf min max clamp mix step smoothstep isnan isinf fma
sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh radians degrees exp exp2 log log2 sqrt
inversesqrt pow ldexp reflect refract faceforward length distance dot cross normalize matrixCompMult
outerProduct transpose determinant inverse
floatBitsToInt floatBitsToUint intBitsToFloat uintBitsToFloat any all not greaterThanEqual barrier atomicAdd
atomicMin atomicMax atomicAnd atomicOr atomicXor atomicExchange atomicCompSwap atomicLoad atomicStore
bitCount bitfieldReverse
bitfieldExtract bitfieldInsert findLSB findMSB packHalf2x16 unpackHalf2x16 packUnorm2x16 unpackUnorm2x16
packSnorm2x16 unpackSnorm2x16 packUnorm4x8 unpackUnorm4x8 packSnorm4x8 unpackSnorm4x8 packDouble2x32
unpackDouble2x32 float16BitsToUint16 uint16BitsToFloat16 doubleBitsToUint64 uint64BitsToDouble
texture textureLod textureSize PC UBO Arguments global_id workgroup_id workgroup_index workgroup_row
group_count
"""
# Functions of our own: helpers of kernels, and of types that a device lacks.
_HELPERS = """
bfloat16_bits umul_high wrapped integer_power float_remainder double_remainder brain_bits half_value half_bits
half_round long_less long_signed_less long_add long_subtract long_negate long_multiply long_left long_right
long_signed_right long_divide long_modulo long_signed_divide long_signed_modulo long_abs long_signed_abs
long_signed_sign long_min long_signed_min long_max long_signed_max long_clamp long_signed_clamp long_of_float
long_signed_of_float long_integer_power long_signed_integer_power float_of_long
float_of_signed_long long_of_int
"""

# Patterns. Families of keywords: vectors and matrices, images and samplers, inputs, and what extensions add.
_FAMILIES = r"""(?x)
    (?:[dbiu]|[fiu](?:8|16|32|64))?(?:vec|mat)[234](?:x[234])?
    |(?:[iu]|f16|[iu]64)?(?:sampler|image|texture)(?:[123]D|Cube|Buffer|Shadow|External)\w*
    |[iu]?subpassInput(?:MS)?
    |[a-z]\w*(?:EXT|KHR|NV|AMD|ARM|QCOM|INTEL|GOOGLE|OES)"""
# Names of resources, which may be macros; and of types and functions that belong to a resource.
_RESOURCE = r"(?:buf|view|tex|img)\d+"
_OF_RESOURCE = r"(?:buf|tex|img)\d+_\w+|(?:Buffer|View|Element)\d+(?:_\w*)?"

# What a member of a block cannot be called: a method, and members of our own.
_MEMBERS = frozenset(("length", "group_count", "halves_"))

KEYWORDS = frozenset((_TYPES + _KEYWORDS).split())
RESERVED = KEYWORDS | frozenset((_FUNCTIONS + _HELPERS).split())
_TAKEN_MEMBERS = KEYWORDS | _MEMBERS


@lru_cache(4096)
def legal_name(name: str, *, member: bool = False) -> str:
    """Turn a Python identifier into a GLSL one, unchanged where that is possible.

    A member of a block may be called like a function; other variables may not.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    name = re.sub(r"__+", "_", name) or "value"
    if name.startswith(("gl_", "GL_")) or name[0].isdigit():
        name = "v_" + name
    taken = _TAKEN_MEMBERS if member else RESERVED
    clash = name in taken or bool(re.fullmatch(_FAMILIES, name) or re.fullmatch(_RESOURCE, name))
    # GLSL has more subgroup functions than one would list
    clash = clash or (not member and name.startswith("subgroup") and name != name.lower())
    # nor those of `glsl.mathematics` and `compiler.glsl.emulation`
    clash = clash or (not member and name.startswith(("f32_", "f64_", "lanes_")))
    clash = clash or (not member and bool(re.fullmatch(_OF_RESOURCE, name)))
    return _extend(name) if clash else name


def _extend(name: str) -> str:
    """Append to a name that cannot stay as it is: two underscores in a row are GLSL's own."""
    return name + ("1" if name.endswith("_") else "_")


class FreshNames:
    """Makes names that nothing else has: in a kernel, in an argument block."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    @classmethod
    def of_variables(cls, kernel: Kernel) -> "FreshNames":
        """Return a source of names for new registers and shared arrays of a kernel."""
        taken = {array.name for array in kernel.shared}
        for statement in walk(kernel.body):
            if isinstance(statement, Declare):
                taken.add(statement.register.name)
            elif isinstance(statement, For):
                taken.add(statement.counter.name)
        return cls(taken)

    @classmethod
    def of_arguments(cls, kernel: Kernel) -> "FreshNames":
        """Return a source of names for new arguments of a kernel."""
        return cls(argument.name for argument in kernel.arguments)

    def __contains__(self, name: str) -> bool:
        """Whether a name is taken."""
        return name in self._taken

    def claim(self, wanted: str) -> str:
        """Return `wanted`, with an underscore and ones behind it if it is taken."""
        if "__" in wanted:
            wanted = re.sub("__+", "_", wanted)
        while wanted in self._taken:
            wanted = _extend(wanted)
        self._taken.add(wanted)
        return wanted

    def claim_copy(self, wanted: str, first: int = 1) -> str:
        """Return `wanted`, or if it is taken `wanted_1`, `wanted_2`...; `first` is the first number."""
        name, number = wanted, first
        while name in self._taken:
            name = f"{wanted.rstrip('_')}_{number}"
            number += 1
        self._taken.add(name)
        return name

    def claim_number(self, prefix: str) -> str:
        """Return the next one of `prefix0`, `prefix1`..."""
        number = self._next.get(prefix, 0)
        while (name := f"{prefix}{number}") in self._taken:
            number += 1
        self._next[prefix] = number
        self._taken.add(name)
        return name
