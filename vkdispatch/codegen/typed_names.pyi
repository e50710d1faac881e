"""What type checkers see of functions that loops make. Nothing imports this at run time.

There is one for each type of `vectors.NAMED_TYPES`, packing of GLSL, and operation across a subgroup.
"""

from vkdispatch.codegen.execution.registers import RegisterMaker
from vkdispatch.codegen.execution.subgroups import ClusteredFunction, SubgroupFunction
from vkdispatch.codegen.functions.elementwise import Operand
from vkdispatch.codegen.functions.vectors import Conversion
from vkdispatch.codegen.variables import ShaderVariable

to_float16: Conversion
to_float: Conversion
to_float64: Conversion
to_int16: Conversion
to_int: Conversion
to_int64: Conversion
to_uint16: Conversion
to_uint: Conversion
to_uint64: Conversion
to_complex32: Conversion
to_complex64: Conversion
to_complex128: Conversion
to_hvec2: Conversion
to_hvec3: Conversion
to_hvec4: Conversion
to_vec2: Conversion
to_vec3: Conversion
to_vec4: Conversion
to_dvec2: Conversion
to_dvec3: Conversion
to_dvec4: Conversion
to_ihvec2: Conversion
to_ihvec3: Conversion
to_ihvec4: Conversion
to_ivec2: Conversion
to_ivec3: Conversion
to_ivec4: Conversion
to_uhvec2: Conversion
to_uhvec3: Conversion
to_uhvec4: Conversion
to_uvec2: Conversion
to_uvec3: Conversion
to_uvec4: Conversion
to_mat2: Conversion
to_mat3: Conversion
to_mat4: Conversion
new_float16_register: RegisterMaker
new_float_register: RegisterMaker
new_float64_register: RegisterMaker
new_int16_register: RegisterMaker
new_int_register: RegisterMaker
new_int64_register: RegisterMaker
new_uint16_register: RegisterMaker
new_uint_register: RegisterMaker
new_uint64_register: RegisterMaker
new_complex32_register: RegisterMaker
new_complex64_register: RegisterMaker
new_complex128_register: RegisterMaker
new_hvec2_register: RegisterMaker
new_hvec3_register: RegisterMaker
new_hvec4_register: RegisterMaker
new_vec2_register: RegisterMaker
new_vec3_register: RegisterMaker
new_vec4_register: RegisterMaker
new_dvec2_register: RegisterMaker
new_dvec3_register: RegisterMaker
new_dvec4_register: RegisterMaker
new_ihvec2_register: RegisterMaker
new_ihvec3_register: RegisterMaker
new_ihvec4_register: RegisterMaker
new_ivec2_register: RegisterMaker
new_ivec3_register: RegisterMaker
new_ivec4_register: RegisterMaker
new_uhvec2_register: RegisterMaker
new_uhvec3_register: RegisterMaker
new_uhvec4_register: RegisterMaker
new_uvec2_register: RegisterMaker
new_uvec3_register: RegisterMaker
new_uvec4_register: RegisterMaker
new_mat2_register: RegisterMaker
new_mat3_register: RegisterMaker
new_mat4_register: RegisterMaker
subgroup_add: SubgroupFunction
subgroup_mul: SubgroupFunction
subgroup_min: SubgroupFunction
subgroup_max: SubgroupFunction
subgroup_and: SubgroupFunction
subgroup_or: SubgroupFunction
subgroup_xor: SubgroupFunction
subgroup_inclusive_add: SubgroupFunction
subgroup_inclusive_mul: SubgroupFunction
subgroup_inclusive_min: SubgroupFunction
subgroup_inclusive_max: SubgroupFunction
subgroup_inclusive_and: SubgroupFunction
subgroup_inclusive_or: SubgroupFunction
subgroup_inclusive_xor: SubgroupFunction
subgroup_exclusive_add: SubgroupFunction
subgroup_exclusive_mul: SubgroupFunction
subgroup_exclusive_min: SubgroupFunction
subgroup_exclusive_max: SubgroupFunction
subgroup_exclusive_and: SubgroupFunction
subgroup_exclusive_or: SubgroupFunction
subgroup_exclusive_xor: SubgroupFunction
subgroup_clustered_add: ClusteredFunction
subgroup_clustered_mul: ClusteredFunction
subgroup_clustered_min: ClusteredFunction
subgroup_clustered_max: ClusteredFunction
subgroup_clustered_and: ClusteredFunction
subgroup_clustered_or: ClusteredFunction
subgroup_clustered_xor: ClusteredFunction

def pack_half2x16(x: Operand) -> ShaderVariable: ...
def unpack_half2x16(x: Operand) -> ShaderVariable: ...
def pack_unorm2x16(x: Operand) -> ShaderVariable: ...
def unpack_unorm2x16(x: Operand) -> ShaderVariable: ...
def pack_snorm2x16(x: Operand) -> ShaderVariable: ...
def unpack_snorm2x16(x: Operand) -> ShaderVariable: ...
def pack_unorm4x8(x: Operand) -> ShaderVariable: ...
def unpack_unorm4x8(x: Operand) -> ShaderVariable: ...
def pack_snorm4x8(x: Operand) -> ShaderVariable: ...
def unpack_snorm4x8(x: Operand) -> ShaderVariable: ...
def pack_double2x32(x: Operand) -> ShaderVariable: ...
def unpack_double2x32(x: Operand) -> ShaderVariable: ...
