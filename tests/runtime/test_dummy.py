"""The dummy backend, CUDA's part of the interface, and the names that programs import: in fresh processes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import errors, init

RunPython = Callable[..., subprocess.CompletedProcess[str]]

NO_DRIVER = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}

DUMMY = """
import vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.base.command_list import CommandList
from vkdispatch.base.compute_plan import ComputePlan
vd.initialize(backend="dummy")
@vd.shader("data.size")
def double(data: vc.Buff[vc.f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] * 2
raw = vd.glsl_kernel("#version 450\\nlayout(local_size_x = 4) in; void main() {}", exec_size=4)
"""


def test_kernels_on_the_dummy_backend(run_python: RunPython) -> None:
    done = run_python(
        DUMMY + "assert 'void main' in double.get_src().code and double.ready and double.plan is None\n"
        "double.build(); assert double.source == double.get_src().code\n"
        "assert double.bounds.local_size[0] == 1024\n"
        "raw.build(); assert raw.bounds.local_size == (4, 1, 1)\n"
        "vd.set_dummy_context_params(max_workgroup_size=(64, 1, 1))\n"
        "@vd.shader('data.size')\n"
        "def triple(data: vc.Buff[vc.f32]): data[0] = 3\n"
        "assert 'local_size_x = 64' in triple.get_src().code\n"
        "try: vd.shader('1', local_size=65)(lambda: None).build()\n"
        "except ValueError as error: print(error)\n"
        "vd.queue_wait_idle()\n",
        **NO_DRIVER,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "65" in done.stdout and "local_size" in done.stdout


@pytest.mark.parametrize(
    "use",
    [
        "vd.Buffer(3, vd.float32)",
        "vd.RFFTBuffer(4)",
        "vd.asbuffer(__import__('numpy').zeros(3))",
        "vd.CommandGraph()",
        "CommandList()",
        "vd.global_graph()",
        "vd.Signal()",
        "double(None)",
        "raw()",
        "ComputePlan('#version 450\\nvoid main() {}', [], 0, 'x')",
    ],
)
def test_nothing_runs_on_the_dummy_backend(run_python: RunPython, use: str) -> None:
    done = run_python(
        DUMMY + f"try: {use}\nexcept RuntimeError as error: print('dummy backend' in str(error))", **NO_DRIVER
    )
    assert (done.stdout.strip(), done.stderr) == ("True", "")


def test_the_dummy_device(run_python: RunPython) -> None:
    done = run_python(
        DUMMY + "assert vd.is_dummy() and vd.get_backend() == 'dummy' and not vd.is_vulkan()\n"
        "(device,) = vd.get_devices()\n"
        "assert device.device_type == 2 and device.queue_properties == [(8, 6), (4, 7)]\n"
        "assert not device.missing\n"
        "context = vd.get_context()\n"
        "assert context.subgroup_size == 32 and context.max_workgroup_size == (1024, 1024, 64)\n"
        "assert context.max_workgroup_count == (65535,) * 3 and context.max_shared_memory == 65536\n"
        "assert context.max_workgroup_invocations == 1024 and context.subgroup_enabled is True\n"
        "vd.set_dummy_context_params(64, False, (8, 4, 2), 32, (1, 2, 3), 100)\n"
        "assert context is vd.get_context() and context.uniform_buffer_alignment == 0\n"
        "assert (context.subgroup_size, context.subgroup_enabled) == (64, False)\n"
        "assert (context.max_workgroup_size, context.max_workgroup_count) == ((8, 4, 2), (1, 2, 3))\n"
        "assert (context.max_workgroup_invocations, context.max_shared_memory) == (32, 100)\n"
        "vd.set_dummy_context_params(); assert context.subgroup_size == 64\n"
        "bad = [dict(subgroup_size=0), dict(subgroup_size=True), dict(subgroup_size=1.5),\n"
        "    dict(subgroup_enabled=1), dict(max_workgroup_size=3), dict(max_workgroup_size=(1, 2)),\n"
        "    dict(max_workgroup_count=(1, 0, 1)), dict(max_shared_memory=-1),\n"
        "    dict(max_workgroup_invocations='9'), dict(subgroup_size=5, max_shared_memory=0)]\n"
        "for arguments in bad:\n"
        "    try: vd.set_dummy_context_params(**arguments)\n"
        "    except ValueError as error: assert any(name in str(error) for name in arguments), error\n"
        "    else: print('accepted', arguments)\n"
        "assert context.subgroup_size == 64\n"
        "try: vd.initialize(backend='vulkan')\n"
        "except RuntimeError: print('good')",
        **NO_DRIVER,
    )
    assert (done.stdout.strip(), done.stderr) == ("good", "")


def test_the_environment_chooses_the_dummy_backend(run_python: RunPython) -> None:
    done = run_python(
        "import vkdispatch as vd\nprint(vd.get_backend(), vd.get_context().queue_count, vd.is_dummy())",
        VKDISPATCH_BACKEND=" Dummy",
    )
    assert done.stdout.split() == ["dummy", "1", "True"], done.stderr


def test_dummy_parameters_need_the_dummy_backend() -> None:
    init.initialize()
    with pytest.raises(RuntimeError, match=r"set_dummy_context_params.*vulkan"):
        vd.set_dummy_context_params(subgroup_size=32)


# -- CUDA


def test_cuda_backend_is_reported_missing() -> None:
    for use in (
        vd.cuda_graph_capture,
        lambda: vd.from_cuda_array(object()),
        lambda: vd.Buffer(3, vd.float32, external_buffer=object()),  # type: ignore[call-overload]
        lambda: vd.CommandGraph().submit(cuda_stream=1),  # type: ignore[call-arg]
    ):
        with pytest.raises((RuntimeError, TypeError), match="cuda"):
            use()
    assert vd.get_cuda_capture() is None
    assert init.get_cuda_device_map() == {}
    capture = vd.CUDAGraphCapture(cuda_stream=7)
    capture.add_uniform_buffer("kept")
    assert (capture.cuda_stream, capture.uniform_buffers) == (7, ["kept"])


def test_errors_do_not_remain_pending() -> None:
    with pytest.raises(RuntimeError):
        vd.set_dummy_context_params(subgroup_size=16)
    errors.check_for_errors()
    assert vd.asbuffer(np.ones(3)).read(0).sum() == 3


# -- names

VD_NAMES = """
DeviceInfo LogLevel get_devices get_backend is_vulkan is_cuda is_opencl is_dummy initialize
is_initialized log log_error log_warning log_info log_verbose set_log_level BackendUnavailableError
dtype float16 float32 float64 int16 uint16 int32 uint32 int64 uint64 complex32 complex64 complex128
hvec2 hvec3 hvec4 vec2 vec3 vec4 dvec2 dvec3 dvec4 ihvec2 ihvec3 ihvec4 ivec2 ivec3 ivec4 uhvec2
uhvec3 uhvec4 uvec2 uvec3 uvec4 mat2 mat3 mat4 get_context get_context_handle make_context
select_queue_families set_dummy_context_params is_context_initialized queue_wait_idle Signal Buffer
RFFTBuffer asbuffer asrfftbuffer from_cuda_array CommandGraph BufferBindInfo global_graph
set_global_graph default_graph cuda_graph_capture get_cuda_capture CUDAGraphCapture shader
ShaderFunction ShaderSource ShaderBuildError make_shader_function map MappingFunction base codegen
backends compat execution_pipeline
"""
VC_NAMES = """
Constant Variable Buffer Image1D Image2D Image3D StructElement ShaderVariable BufferVariable
ImageVariable BoundVariable ShaderDescription BindingType ShaderArgumentInfo ShaderBinding
ShaderBuilder ShaderFlags ShaderContext shader_context CodeGenBackend GLSLBackend CUDABackend
OpenCLBackend set_builder get_builder set_codegen_backend get_codegen_backend
set_shader_print_line_numbers get_shader_print_line_numbers shared_buffer _ArgType
"""
ABBREVIATIONS = """
Const Var Buff Img1 Img2 Img3 f16 f32 f64 i16 u16 i32 u32 i64 u64 c32 c64 c128 hv2 hv3 hv4 v2 v3 v4
dv2 dv3 dv4 ihv2 ihv3 ihv4 iv2 iv3 iv4 uhv2 uhv3 uhv4 uv2 uv3 uv4 m2 m3 m4
"""
ALLOCATORS = """
u32 uv2 uv3 uv4 i32 iv2 iv3 iv4 f32 v2 v3 v4 c64 u16 uhv2 uhv3 uhv4 i16 ihv2 ihv3 ihv4 f16 hv2 hv3
hv4 f64 dv2 dv3 dv4
"""
PATHS = """
vkdispatch.base.command_list.CommandList vkdispatch.base.compute_plan.ComputePlan
vkdispatch.base.descriptor_set.DescriptorSet vkdispatch.base.context.Context
vkdispatch.base.context.Handle vkdispatch.base.context.Handle vkdispatch.base.context.destroy_context
vkdispatch.base.context.stop_threads vkdispatch.base.errors.check_for_errors
vkdispatch.base.init.get_cuda_device_map vkdispatch.base.dtype.to_vector
vkdispatch.execution_pipeline.buffer_builder.BufferBuilder
vkdispatch.execution_pipeline.buffer_builder.BufferUsage
vkdispatch.execution_pipeline.buffer_builder.BufferedStructEntry
"""


def test_every_public_name_exists() -> None:
    assert [name for name in VD_NAMES.split() if not hasattr(vd, name)] == []
    assert [name for name in (VC_NAMES + ABBREVIATIONS).split() if not hasattr(vc, name)] == []
    assert [name for name in ALLOCATORS.split() if not hasattr(vd, f"buffer_{name}")] == []
    for module in (vd, vc):
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
        assert list(module.__all__) == list(dict.fromkeys(module.__all__))


def test_every_module_path_exists(run_python: RunPython) -> None:
    lines = [f"from {path.rpartition('.')[0]} import {path.rpartition('.')[2]}" for path in PATHS.split()]
    lines += [
        f"from {module} import *\n{' '.join(ABBREVIATIONS.split()).replace(' ', '; ')}"
        for module in ("vkdispatch.codegen.abbreviations", "vkdispatch.codegen.abreviations")
    ]
    done = run_python("\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
