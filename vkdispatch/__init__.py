"""GPU kernels as typed Python functions: traced to a typed IR, written as GLSL, run by Vulkan.

Importing this initialises nothing; the first use of a device does.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from vkdispatch.base.allocators import (
    buffer_c64,
    buffer_dv2,
    buffer_dv3,
    buffer_dv4,
    buffer_f16,
    buffer_f32,
    buffer_f64,
    buffer_hv2,
    buffer_hv3,
    buffer_hv4,
    buffer_i16,
    buffer_i32,
    buffer_ihv2,
    buffer_ihv3,
    buffer_ihv4,
    buffer_iv2,
    buffer_iv3,
    buffer_iv4,
    buffer_u16,
    buffer_u32,
    buffer_uhv2,
    buffer_uhv3,
    buffer_uhv4,
    buffer_uv2,
    buffer_uv3,
    buffer_uv4,
    buffer_v2,
    buffer_v3,
    buffer_v4,
)
from vkdispatch.base.buffer import (
    Buffer,
    EmptyBufferError,
    OversizedBufferError,
    asbuffer,
    from_cuda_array,
)
from vkdispatch.base.context import (
    get_context,
    get_context_handle,
    is_context_initialized,
    make_context,
    queue_wait_idle,
    select_queue_families,
)
from vkdispatch.base.cuda_capture import (
    CUDAGraphCapture,
    cuda_graph_capture,
    get_cuda_capture,
)
from vkdispatch.base.devices import (
    DeviceInfo,
)
from vkdispatch.base.dtype import (
    bfloat16,
    bool_,
    complex32,
    complex64,
    complex128,
    dtype,
    dvec2,
    dvec3,
    dvec4,
    float16,
    float32,
    float64,
    hvec2,
    hvec3,
    hvec4,
    ihvec2,
    ihvec3,
    ihvec4,
    int8,
    int16,
    int32,
    int64,
    ivec2,
    ivec3,
    ivec4,
    mat2,
    mat3,
    mat4,
    uhvec2,
    uhvec3,
    uhvec4,
    uint8,
    uint16,
    uint32,
    uint64,
    uvec2,
    uvec3,
    uvec4,
    vec2,
    vec3,
    vec4,
)
from vkdispatch.base.dummy_context import set_dummy_context_params
from vkdispatch.base.errors import (
    ArgumentIndexError,
    ArgumentTypeError,
    ArgumentValueError,
    BackendUnavailableError,
    BoundsError,
    CheckError,
    ComponentError,
    DeviceLostError,
    KernelAssertionError,
    LoopLimitError,
    NanError,
    OutOfDeviceMemoryError,
    ShaderBuildError,
    UnsupportedError,
    UsageError,
    VkDispatchError,
    VulkanError,
    WaitTimeoutError,
)
from vkdispatch.base.event import Event, ReadFuture, record_event, wait_event
from vkdispatch.base.image import Image, Image1D, Image2D, Image2DArray, Image3D, Sampler
from vkdispatch.base.image_format import (
    AddressMode,
    BorderColor,
    Filter,
    image_format,
    image_type,
    image_view_type,
)
from vkdispatch.base.init import (
    get_backend,
    get_devices,
    initialize,
    is_cuda,
    is_dummy,
    is_initialized,
    is_opencl,
    is_vulkan,
)
from vkdispatch.base.logging import (
    LogLevel,
    log,
    log_error,
    log_info,
    log_verbose,
    log_warning,
    set_log_level,
)
from vkdispatch.base.pinned import empty_pinned
from vkdispatch.base.rfft_buffer import (
    RFFTBuffer,
    asrfftbuffer,
)
from vkdispatch.base.sampling import HostSampler
from vkdispatch.base.signal import Signal
from vkdispatch.codegen import ShaderSource
from vkdispatch.execution_pipeline.command_graph import (
    BufferBindInfo,
    CommandGraph,
    ImageBindInfo,
    default_graph,
    global_graph,
    set_global_graph,
)
from vkdispatch.shader.decorator import shader
from vkdispatch.shader.shader_function import ShaderFunction, make_shader_function

# Submodules that programs reach as attributes.
from . import backends, base, codegen, compat, execution_pipeline  # noqa: F401

if TYPE_CHECKING:
    from vkdispatch import fft, orders, reduce, vkfft
    from vkdispatch.shader.copying import copyto
    from vkdispatch.shader.map import MappingFunction, map
    from vkdispatch.shader.profile import Profile, profile
    from vkdispatch.shader.raw import RawKernel, glsl_kernel, spirv_kernel

__version__ = "0.1.0"

# What most programs do without is imported when it is first asked for.
_LAZY = {
    "MappingFunction": "vkdispatch.shader.map",
    "Profile": "vkdispatch.shader.profile",
    "RawKernel": "vkdispatch.shader.raw",
    "copyto": "vkdispatch.shader.copying",
    "glsl_kernel": "vkdispatch.shader.raw",
    "map": "vkdispatch.shader.map",
    "profile": "vkdispatch.shader.profile",
    "spirv_kernel": "vkdispatch.shader.raw",
}
# So are these modules.
_LAZY_MODULES = frozenset(("fft", "orders", "reduce", "vkfft"))


def __getattr__(name: str) -> object:
    if name in _LAZY_MODULES:
        return import_module(f"vkdispatch.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_MODULES})


__all__ = [
    "AddressMode",
    "ArgumentIndexError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "BackendUnavailableError",
    "BorderColor",
    "BoundsError",
    "Buffer",
    "BufferBindInfo",
    "CUDAGraphCapture",
    "CheckError",
    "CommandGraph",
    "ComponentError",
    "DeviceInfo",
    "DeviceLostError",
    "EmptyBufferError",
    "Event",
    "Filter",
    "HostSampler",
    "Image",
    "Image1D",
    "Image2D",
    "Image2DArray",
    "Image3D",
    "ImageBindInfo",
    "KernelAssertionError",
    "LogLevel",
    "LoopLimitError",
    "MappingFunction",
    "NanError",
    "OutOfDeviceMemoryError",
    "OversizedBufferError",
    "Profile",
    "RFFTBuffer",
    "RawKernel",
    "ReadFuture",
    "Sampler",
    "ShaderBuildError",
    "ShaderFunction",
    "ShaderSource",
    "Signal",
    "UnsupportedError",
    "UsageError",
    "VkDispatchError",
    "VulkanError",
    "WaitTimeoutError",
    "__version__",
    "asbuffer",
    "asrfftbuffer",
    "bfloat16",
    "bool_",
    "buffer_c64",
    "buffer_dv2",
    "buffer_dv3",
    "buffer_dv4",
    "buffer_f16",
    "buffer_f32",
    "buffer_f64",
    "buffer_hv2",
    "buffer_hv3",
    "buffer_hv4",
    "buffer_i16",
    "buffer_i32",
    "buffer_ihv2",
    "buffer_ihv3",
    "buffer_ihv4",
    "buffer_iv2",
    "buffer_iv3",
    "buffer_iv4",
    "buffer_u16",
    "buffer_u32",
    "buffer_uhv2",
    "buffer_uhv3",
    "buffer_uhv4",
    "buffer_uv2",
    "buffer_uv3",
    "buffer_uv4",
    "buffer_v2",
    "buffer_v3",
    "buffer_v4",
    "complex32",
    "complex64",
    "complex128",
    "copyto",
    "cuda_graph_capture",
    "default_graph",
    "dtype",
    "dvec2",
    "dvec3",
    "dvec4",
    "empty_pinned",
    "fft",
    "float16",
    "float32",
    "float64",
    "from_cuda_array",
    "get_backend",
    "get_context",
    "get_context_handle",
    "get_cuda_capture",
    "get_devices",
    "global_graph",
    "glsl_kernel",
    "hvec2",
    "hvec3",
    "hvec4",
    "ihvec2",
    "ihvec3",
    "ihvec4",
    "image_format",
    "image_type",
    "image_view_type",
    "initialize",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_context_initialized",
    "is_cuda",
    "is_dummy",
    "is_initialized",
    "is_opencl",
    "is_vulkan",
    "ivec2",
    "ivec3",
    "ivec4",
    "log",
    "log_error",
    "log_info",
    "log_verbose",
    "log_warning",
    "make_context",
    "make_shader_function",
    "map",
    "mat2",
    "mat3",
    "mat4",
    "orders",
    "profile",
    "queue_wait_idle",
    "record_event",
    "reduce",
    "select_queue_families",
    "set_dummy_context_params",
    "set_global_graph",
    "set_log_level",
    "shader",
    "spirv_kernel",
    "uhvec2",
    "uhvec3",
    "uhvec4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uvec2",
    "uvec3",
    "uvec4",
    "vec2",
    "vec3",
    "vec4",
    "vkfft",
    "wait_event",
]
