"""GPU kernels as typed Python functions: traced to a typed IR, written as GLSL, run by Vulkan.

Importing this initialises nothing; the first use of a device does. Nor does it import more than this file:
each name brings along, when it is first asked for, the module that it lives in.
"""

import sys
from importlib import import_module
from os.path import exists
from types import ModuleType

__version__ = "1.0.0"

# A file that only another project's package of this name has: its distribution shares this folder.
if exists(f"{__path__[0]}/base/buffer_allocators.py"):
    from vkdispatch.installation import refuse_mixture

    refuse_mixture()

# Where public names live. `make format` writes them to `__init__.pyi`, for type checkers and editors, and the
# reference has functions in this order.
_NAMES = {
    "base.buffers.kinds": (
        "RFFTBuffer asrfftbuffer buffer_c64 buffer_dv2 buffer_dv3 buffer_dv4 buffer_f16 buffer_f32 "
        "buffer_f64 buffer_hv2 buffer_hv3 buffer_hv4 buffer_i16 buffer_i32 buffer_ihv2 buffer_ihv3 "
        "buffer_ihv4 buffer_iv2 buffer_iv3 buffer_iv4 buffer_u16 buffer_u32 buffer_uhv2 buffer_uhv3 "
        "buffer_uhv4 buffer_uv2 buffer_uv3 buffer_uv4 buffer_v2 buffer_v3 buffer_v4"
    ),
    "base.buffer": "Buffer OversizedBufferError asbuffer from_cuda_array",
    "base.buffers.foreign": "from_dlpack share",
    "base.sharing.dlpack": "SharedMemory",
    "base.context": (
        "Context get_context get_context_handle is_context_initialized make_context "
        "make_context_from_handles queue_wait_idle use_context"
    ),
    "base.init": (
        "CUDAGraphCapture cuda_graph_capture get_backend get_cuda_capture get_devices initialize is_cuda "
        "is_dummy is_initialized is_opencl is_vulkan"
    ),
    "base.devices": "DeviceInfo",
    "base.dtype": (
        "bfloat16 bool_ complex128 complex32 complex64 dtype dvec2 dvec3 dvec4 float16 float32 float64 "
        "hvec2 hvec3 hvec4 ihvec2 ihvec3 ihvec4 int16 int32 int64 int8 ivec2 ivec3 ivec4 mat2 mat3 mat4 "
        "uhvec2 uhvec3 uhvec4 uint16 uint32 uint64 uint8 uvec2 uvec3 uvec4 vec2 vec3 vec4"
    ),
    "base.contexts.current": "set_dummy_context_params",
    "base.errors": (
        "ArgumentIndexError ArgumentTypeError ArgumentValueError BackendUnavailableError BoundsError "
        "CheckError ComponentError DeviceLostError DeviceTimeoutError KernelAssertionError KernelWarning "
        "LoopLimitError MissingPackageError NanError OutOfDeviceMemoryError OverlapError ShaderBuildError "
        "SharingError UnsupportedError UsageError VkDispatchError VulkanError WaitTimeoutError"
    ),
    "base.derived_dtypes": "fixed_array",
    "base.synchronization": "Event ReadFuture Signal record_event wait_event",
    "base.image": "Image Image1D Image2D Image2DArray Image3D Sampler",
    "base.memory.images": (
        "AddressMode BorderColor Filter HostSampler image_format image_type image_view_type"
    ),
    "base.contexts.selection": (
        "ContextHandles DeviceHandles QueueHandle optional_device_features required_device_features "
        "select_queue_families"
    ),
    "base.process": "LogLevel log log_error log_info log_verbose log_warning set_log_level",
    "base.memory.transfers": "empty_pinned",
    "base.host_numpy": "AxisError",
    "codegen": "ShaderSource",
    "doctor.report": "doctor",
    "execution_pipeline.command_graph": "CommandGraph default_graph global_graph set_global_graph",
    "execution_pipeline.recordable": "BufferBindInfo ImageBindInfo",
    "matrices.product": "matmul",
    "numpy.interchange.explaining": "explain",
    "shader.explaining": "Explanation",
    "numpy.core.array": "Array",
    "rearrange.transposing": "transpose",
    "rearrange.taking": "take take_along_axis put",
    "rearrange.choosing": "where",
    "rearrange.joining": "concatenate stack roll flip tile repeat pad",
    "reduce.functions": "sum prod mean var std min max argmin argmax any all count_nonzero",
    "reduce.norms": "norm dot",
    "scans.functions": "ScanFunction cumsum cumprod cummax cummin scan",
    "selection.histogram": "histogram bincount",
    "selection.compact": "unique compact nonzero",
    "selection.searchsorted": "searchsorted",
    "selection.topk": "topk median",
    "shader.measurement.devices": "measure_accuracy",
    "shader.copying": "copyto",
    "shader.decorator": "shader",
    "families.calls": "MappedArray MappingFunction OutputMap map mapped_index",
    "shader.measurement.profile": "Profile profile",
    "shader.raw.kernel": "RawKernel glsl_kernel spirv_kernel",
    "shader.shader_function": "ShaderFunction make_shader_function",
    "sorting.functions": "sort argsort sort_by_key",
}
# Submodules that programs reach as attributes; the rest are reached by importing them.
_DOCUMENTED = ("codegen", "cuda", "fft", "kompute", "numpy", "orders", "random", "reduce", "torch", "vkfft")
_MODULES = sorted((*_DOCUMENTED, "backends", "base", "compat", "execution_pipeline"))
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

# `from vkdispatch import *` leaves Python's own functions as they are.
_SHADOWING = {"all", "any", "max", "min", "sum"}

__all__ = sorted([*(_HOMES.keys() - _SHADOWING), "__version__", "fft", "orders", "random", "reduce", "vkfft"])


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is not None:
        value = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    from vkdispatch.base import IN_PACKAGE, make_getattr

    return make_getattr(__name__, IN_PACKAGE, sys.modules[__name__])(name)


def __dir__() -> list[str]:
    python = {name for name in globals() if name.startswith("__")}
    return sorted({*python, *_HOMES, *_DOCUMENTED})


class _Package(ModuleType):
    """`vd.shader` is the decorator, whenever the folder of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        # The import system sets a submodule as an attribute of its package.
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, ...]:
        # cloudpickle pickles by name only what has exactly the type of modules
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
