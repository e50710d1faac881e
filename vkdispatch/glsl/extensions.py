"""Which GLSL extensions a kernel's types, subgroup functions and atomics need."""

from vkdispatch.analyses.contents import Usage
from vkdispatch.base.dtype import (
    DType,
    bfloat16,
    bool_,
    component_type,
    float16,
    float32,
    float64,
    int8,
    int16,
    int64,
    is_array,
    is_cooperative,
    is_float_dtype,
    uint8,
    uint16,
    uint64,
)
from vkdispatch.ir import ShaderFlags

_TYPES: tuple[tuple[tuple[DType, ...], str], ...] = (
    ((float16,), "GL_EXT_shader_explicit_arithmetic_types_float16"),
    ((int16, uint16), "GL_EXT_shader_explicit_arithmetic_types_int16"),
    ((int8, uint8), "GL_EXT_shader_explicit_arithmetic_types_int8"),
    ((int64, uint64), "GL_ARB_gpu_shader_int64"),
    ((float64,), "GL_ARB_gpu_shader_fp64"),
)
_STORED: tuple[tuple[tuple[DType, ...], str], ...] = (
    ((bfloat16,), "GL_EXT_shader_16bit_storage"),
    ((bool_, int8, uint8), "GL_EXT_shader_8bit_storage"),
)
# Types that subgroup functions exchange only with an extension; each goes with the group's own.
EXTENDED_TYPES: tuple[tuple[tuple[DType, ...], str], ...] = (
    ((float16,), "GL_EXT_shader_subgroup_extended_types_float16"),
    ((int16, uint16), "GL_EXT_shader_subgroup_extended_types_int16"),
    ((int64, uint64), "GL_EXT_shader_subgroup_extended_types_int64"),
)
_PREFIXES: tuple[tuple[str, str], ...] = (
    ("Clustered", "clustered"),
    ("Quad", "quad"),
    ("ShuffleUp", "shuffle_relative"),
    ("ShuffleDown", "shuffle_relative"),
    ("Shuffle", "shuffle"),
    ("Broadcast", "ballot"),
    ("Ballot", "ballot"),
    ("InverseBallot", "ballot"),
    ("Mask", "ballot"),
    ("All", "vote"),
    ("Any", "vote"),
    ("Elect", "basic"),
    ("Builtin", "basic"),
    ("Barrier", "basic"),
    ("MemoryBarrier", "basic"),
)


# The compiler does not know the type: `vkdispatch.base.compilation.bfloat16` renames it afterwards.
BFLOAT16 = "#define bfloat16_t float16_t  // bfloat16 in the compiled code"


def subgroup_class(function: str) -> str:
    """Class of operations that a GLSL subgroup function belongs to, as the extensions are called."""
    name = function.removeprefix("subgroup")
    return next((group for prefix, group in _PREFIXES if name.startswith(prefix)), "arithmetic")


def atomic_extension(function: str, kind: DType) -> str | None:
    """Extension that an atomic needs, or None for those that GLSL always has."""
    if kind in (int64, uint64):
        return "GL_EXT_shader_atomic_int64"
    if not is_float_dtype(kind):
        return None
    first = kind in (float32, float64) and function in ("atomicAdd", "atomicExchange")
    return "GL_EXT_shader_atomic_float" if first else "GL_EXT_shader_atomic_float2"


def has_bfloat16_matrices(used: Usage) -> bool:
    """Whether a kernel has cooperative matrices of bfloat16, which GLSL calls float16_t."""
    return any(is_cooperative(kind) and component_type(kind) is bfloat16 for kind in used.dtypes)


def extensions(used: Usage, flags: ShaderFlags) -> list[str]:
    """Names of the extensions that a kernel needs, in the order in which they are written."""
    names = ["GL_EXT_scalar_block_layout"]
    if used.subgroup_functions and not flags & ShaderFlags.NO_SUBGROUP_OPS:
        groups = {subgroup_class(function) for function in used.subgroup_functions}
        names += [f"GL_KHR_shader_subgroup_{group}" for group in ("basic", *sorted(groups - {"basic"}))]
        names += [name for kinds, name in EXTENDED_TYPES if used.subgroup_dtypes.intersection(kinds)]
    scalars = {component_type(kind) for kind in used.dtypes}
    if used.hints:
        names.append("GL_EXT_control_flow_attributes")
    if used.addresses:
        names.append("GL_EXT_buffer_reference")
        scalars.add(uint64)
    if any(map(is_array, used.dtypes)):
        names.append("GL_EXT_null_initializer")
    matrices = [kind for kind in used.dtypes if is_cooperative(kind)]
    if matrices:
        names += ["GL_KHR_cooperative_matrix", "GL_KHR_memory_scope_semantics"]
    if has_bfloat16_matrices(used):
        scalars.add(float16)
    if used.windows or any(kind.scope == "workgroup" for kind in matrices):  # type: ignore[attr-defined]
        names.append("GL_NV_cooperative_matrix2")
    names += [name for kinds, name in _TYPES if scalars.intersection(kinds)]
    names += [name for kinds, name in _STORED if used.stored.intersection(kinds)]
    atomic = {atomic_extension(function, kind) for function, kind, _ in used.atomics}
    if any(function.startswith(("atomicLoad", "atomicStore")) for function, _, _ in used.atomics):
        atomic.add("GL_KHR_memory_scope_semantics")
    return names + sorted(name for name in atomic if name)
