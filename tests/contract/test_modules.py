# ruff: noqa: SIM905
"""Modules and names a program written for 0.1.0 may import."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Callable
from typing import Any

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc

VD_NAMES = """
DeviceInfo LogLevel get_devices get_backend is_vulkan is_cuda is_opencl is_dummy initialize is_initialized
log log_error log_warning log_info log_verbose set_log_level BackendUnavailableError
dtype float16 float32 float64 int16 uint16 int32 uint32 int64 uint64 complex32 complex64 complex128
hvec2 hvec3 hvec4 vec2 vec3 vec4 dvec2 dvec3 dvec4 ihvec2 ihvec3 ihvec4 ivec2 ivec3 ivec4
uhvec2 uhvec3 uhvec4 uvec2 uvec3 uvec4 mat2 mat3 mat4
get_context get_context_handle make_context select_queue_families set_dummy_context_params
is_context_initialized
queue_wait_idle Signal
Buffer RFFTBuffer asbuffer asrfftbuffer from_cuda_array
buffer_u32 buffer_uv2 buffer_uv3 buffer_uv4 buffer_i32 buffer_iv2 buffer_iv3 buffer_iv4 buffer_f32
buffer_v2 buffer_v3
buffer_v4 buffer_c64 buffer_u16 buffer_uhv2 buffer_uhv3 buffer_uhv4 buffer_i16 buffer_ihv2 buffer_ihv3
buffer_ihv4
buffer_f16 buffer_hv2 buffer_hv3 buffer_hv4 buffer_f64 buffer_dv2 buffer_dv3 buffer_dv4
Image Image1D Image2D Image2DArray Image3D Sampler Filter AddressMode BorderColor image_format image_type
image_view_type
CommandGraph BufferBindInfo ImageBindInfo global_graph set_global_graph default_graph cuda_graph_capture
get_cuda_capture CUDAGraphCapture
shader ShaderFunction ShaderSource ShaderBuildError make_shader_function map MappingFunction
base codegen backends compat execution_pipeline __version__
""".split()

ABBREVIATIONS = """
Const Var Buff Img1 Img2 Img3
f16 f32 f64 i16 u16 i32 u32 i64 u64 c32 c64 c128 hv2 hv3 hv4 v2 v3 v4 dv2 dv3 dv4
ihv2 ihv3 ihv4 iv2 iv3 iv4 uhv2 uhv3 uhv4 uv2 uv3 uv4 m2 m3 m4
""".split()

VC_NAMES = """
Constant Variable Buffer Image1D Image2D Image3D StructElement ShaderVariable BufferVariable
ImageVariable BoundVariable
ShaderDescription BindingType ShaderArgumentInfo ShaderBinding ShaderBuilder ShaderFlags ShaderContext
shader_context
CodeGenBackend GLSLBackend CUDABackend OpenCLBackend set_builder get_builder set_codegen_backend
get_codegen_backend
set_shader_print_line_numbers get_shader_print_line_numbers shared_buffer _ArgType
abs sign floor ceil trunc round round_even fract mod modf min max clip clamp mix step smoothstep isnan isinf
float_bits_to_int float_bits_to_uint int_bits_to_float uint_bits_to_float fma comment
sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh radians degrees exp exp2 log log2 sqrt
inversesqrt atan2 pow
length distance dot cross normalize matrix_comp_mult outer_product transpose determinant inverse
complex_from_euler_angle mult_complex
to_dtype to_float16 to_float to_float64 to_int16 to_int to_int64 to_uint16 to_uint to_uint64
to_hvec2 to_hvec3 to_hvec4 to_vec2 to_vec3 to_vec4 to_dvec2 to_dvec3 to_dvec4 to_ihvec2 to_ihvec3 to_ihvec4
to_ivec2 to_ivec3 to_ivec4 to_uhvec2 to_uhvec3 to_uhvec4 to_uvec2 to_uvec3 to_uvec4 to_mat2 to_mat3 to_mat4
to_complex to_complex32 to_complex64 to_complex128 str_to_dtype
new_register new_float16_register new_float_register new_float64_register new_int16_register new_int_register
new_int64_register new_uint16_register new_uint_register new_uint64_register
new_hvec2_register new_hvec3_register new_hvec4_register new_vec2_register new_vec3_register new_vec4_register
new_dvec2_register new_dvec3_register new_dvec4_register new_ihvec2_register new_ihvec3_register
new_ihvec4_register
new_ivec2_register new_ivec3_register new_ivec4_register new_uhvec2_register new_uhvec3_register
new_uhvec4_register
new_uvec2_register new_uvec3_register new_uvec4_register new_mat2_register new_mat3_register new_mat4_register
new_complex_register new_complex32_register new_complex64_register new_complex128_register
if_block else_if_block else_block while_block scope_block return_statement any all
if_statement if_any if_all else_statement else_if_statement else_if_any else_if_all while_statement
new_scope end
logical_and logical_or
global_invocation_id local_invocation_id workgroup_id workgroup_size num_workgroups local_invocation_index
num_subgroups subgroup_id subgroup_size subgroup_invocation_id
inf_f32 ninf_f32 inf_f64 ninf_f64 inf_f16 ninf_f16
barrier memory_barrier memory_barrier_buffer memory_barrier_shared memory_barrier_image group_memory_barrier
subgroup_barrier subgroup_add subgroup_mul subgroup_min subgroup_max subgroup_and subgroup_or subgroup_xor
subgroup_elect atomic_add printf print ravel_index unravel_index
""".split()

MODULE_NAMES = {
    "vkdispatch.base.command_list": "CommandList",
    "vkdispatch.base.compute_plan": "ComputePlan",
    "vkdispatch.base.descriptor_set": "DescriptorSet",
    "vkdispatch.base.context": """Context Handle Signal destroy_context stop_threads get_context make_context
queue_wait_idle select_queue_families set_dummy_context_params""",
    "vkdispatch.base.errors": "check_for_errors",
    "vkdispatch.base.init": """BackendUnavailableError get_cuda_device_map DeviceInfo LogLevel get_devices
initialize is_cuda
is_initialized is_opencl log log_error log_info log_verbose log_warning set_log_level""",
    "vkdispatch.execution_pipeline.command_graph": """CommandGraph BufferBindInfo ImageBindInfo default_graph
global_graph set_global_graph""",
    "vkdispatch.fft.functions": "fft ifft2 irfft3 convolve convolve2D convolve2DR transpose",
    "vkdispatch.fft.shader_factories": """make_fft_shader make_convolution_shader make_transpose_shader
get_transposed_size mapped_kernel_index get_cache_info print_cache_info cache_clear""",
    "vkdispatch.codegen.backends": "CodeGenBackend GLSLBackend CUDABackend OpenCLBackend",
    "vkdispatch.codegen.builder": """ShaderBuilder ShaderArgumentInfo ShaderFlags BindingType ShaderBinding
ShaderDescription get_codegen_backend""",
    "vkdispatch.codegen.functions.complex_numbers": "mult_complex complex_from_euler_angle to_complex",
    "vkdispatch.codegen.functions.index_raveling": "ravel_index unravel_index",
    "vkdispatch.codegen.functions.trigonometry": "sin cos tan atan2 degrees radians",
    "vkdispatch.reduce.reduce_function": "ReduceFunction ReduceOp",
    "vkdispatch.codegen.variables": "ShaderVariable BoundVariable",
    "vkdispatch.execution_pipeline.buffer_builder": "BufferBuilder BufferUsage BufferedStructEntry",
    "vkdispatch.base.buffer": "Buffer RFFTBuffer asbuffer asrfftbuffer from_cuda_array",
    "vkdispatch.base.image": "Image Image1D Image2D Sampler Filter AddressMode BorderColor image_format",
    "vkdispatch.codegen.arguments": "Image2DArray",
    "vkdispatch.base.dtype": """to_vector is_dtype is_scalar is_complex is_vector is_matrix is_float_dtype
is_integer_dtype vector_size complex_from_float make_floating_dtype cross_scalar_scalar
cross_vector_scalar
cross_vector_vector cross_vector cross_matrix cross_type cross_multiply_type from_numpy_dtype
to_numpy_dtype
        _Scalar _Complex _Vector _Matrix""",
}


@pytest.mark.parametrize("name", VD_NAMES)
def test_top_level_name(name: str) -> None:
    assert hasattr(vd, name)


@pytest.mark.parametrize("name", [*VC_NAMES, *ABBREVIATIONS])
def test_name_of_the_kernel_language(name: str) -> None:
    assert hasattr(vc, name)


@pytest.mark.parametrize("spelling", ["abbreviations", "abreviations"])
def test_abbreviations(spelling: str) -> None:
    module = importlib.import_module(f"vkdispatch.codegen.{spelling}")
    for name in ABBREVIATIONS:
        assert getattr(module, name) is getattr(vc, name)
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    # What came later may not shadow what a program that imports everything has.
    assert public - set(ABBREVIATIONS) <= {"SImg1", "SImg2", "SImg3", "b8", "bf16", "i8", "u8"}


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in MODULE_NAMES.items() for name in names.split()]
)
def test_name_of_a_module(module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    # where the package has the name too it is the same
    package = vc if ".codegen." in module else vd.fft if ".fft." in module else vd
    assert getattr(package, name, value) is value


@pytest.mark.parametrize("module", ["base.buffer", "base.context", "base.init", "fft.functions"])
def test_missing_name_of_a_module(module: str) -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(importlib.import_module(f"vkdispatch.{module}"), "no_such_name")  # noqa: B009
    with pytest.raises(ImportError, match="no_such_name"):
        exec(f"from vkdispatch.{module} import no_such_name")


def test_version_and_missing_names() -> None:
    assert vd.__version__  # programs print it
    for name in ("CommandList", "ComputePlan", "DescriptorSet", "to_vector"):
        assert not hasattr(vd, name)


# Names that 0.1.0 no longer has, and its documentation still uses; `signatures.py` has the others.
SIGNATURES: list[tuple[Callable[..., Any], str]] = [
    (vc.new_scope, "indent comment"),
    (vc.end, "indent"),
    (vc.if_statement, "cond command"),
]


@pytest.mark.parametrize(("function", "expected"), SIGNATURES, ids=lambda v: getattr(v, "__qualname__", ""))
def test_order_of_parameters(function: Callable[..., Any], expected: str) -> None:
    """Where the contract names a parameter it has that place (and, below, that name)."""
    parameters = inspect.signature(function).parameters.values()
    ours = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    assert ours[: len(expected.split())] == expected.split()
