"""Initialisation, devices, context, signals and handles; also the other backends (section 13)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from subprocess import CompletedProcess

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.command_list import CommandList
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Handle
from vkdispatch.base.descriptor_set import DescriptorSet
from vkdispatch.codegen.abbreviations import Buff, f32

RunPython = Callable[..., CompletedProcess[str]]

DEVICE_FIELDS = (
    "dev_index version_variant version_major version_minor version_patch driver_version vendor_id device_id "
    "device_type device_name shader_buffer_float32_atomics shader_buffer_float32_atomic_add float_64_support "
    "float_16_support int_64_support int_16_support storage_buffer_16_bit_access "
    "uniform_and_storage_buffer_16_bit_access storage_push_constant_16 storage_input_output_16 "
    "max_workgroup_size max_workgroup_invocations max_workgroup_count max_bound_descriptor_sets "
    "max_push_constant_size max_storage_buffer_range max_uniform_buffer_range uniform_buffer_alignment "
    "sub_group_size supported_stages supported_operations quad_operations_in_all_stages "
    "max_compute_shared_memory_size queue_properties scalar_block_layout timeline_semaphores uuid"
)
CONTEXT_ATTRIBUTES = (
    "device_ids mapped_device_ids device_infos queue_families queue_count subgroup_size subgroup_enabled "
    "subgroup_arithmetic max_workgroup_size max_workgroup_invocations max_workgroup_count "
    "uniform_buffer_alignment max_shared_memory handles_dict _handle"
)


@vd.shader("a.size")
def ones(a: Buff[f32]) -> None:
    a[vc.global_invocation_id().x] = 1.0


def test_device_info() -> None:
    names = DEVICE_FIELDS.split()
    assert list(inspect.signature(vd.DeviceInfo).parameters)[: len(names)] == names
    device = vd.get_devices()[0]
    assert device.sorted_index == 0
    copy = vd.DeviceInfo(*(getattr(device, name) for name in names))
    assert copy.uuid == device.uuid and copy.device_name == device.device_name
    assert len({device, copy, device}) == 2
    assert device.is_nvidia() == ("NVIDIA" in device.device_name) and not device.is_apple()
    assert repr(device) == device.get_info_string() != device.get_info_string(True)


def test_context() -> None:
    context = vd.get_context()
    for name in CONTEXT_ATTRIBUTES.split():
        assert hasattr(context, name)
    assert vd.make_context(device_ids=[99], queue_counts=7) is context
    assert vd.get_context_handle() == context._handle
    context.refresh_limits_from_device_infos()
    assert not context.is_apple()
    for bad in (-1, context.queue_count, "0", 0.0):
        with pytest.raises(ValueError):
            vd.queue_wait_idle(bad)
    vd.queue_wait_idle(0, context)


def test_initialising_again() -> None:
    vd.initialize()
    vd.initialize(debug_mode=True, log_level=vd.LogLevel.VERBOSE, backend=" Vulkan ")
    with pytest.raises(RuntimeError):
        vd.initialize(backend="dummy")
    with pytest.raises((RuntimeError, ValueError)):
        vd.initialize(backend="nothing")


def test_signals_and_handles() -> None:
    buffer = vd.Buffer(10, vd.float32)
    assert isinstance(buffer, Handle) and len(buffer.signals) == vd.get_context().queue_count
    assert buffer.context is vd.get_context() and isinstance(buffer._handle, int)
    ones(buffer)
    buffer.signals[0].wait(True, 0)
    assert buffer.signals[0].try_wait(True, 0)
    graph = vd.CommandGraph()
    ones(buffer, graph=graph)
    buffer.destroy()
    buffer.destroy()
    assert buffer.destroyed and graph.destroyed
    for use in (lambda: buffer.read(0), lambda: ones(buffer), graph.submit):
        with pytest.raises(RuntimeError):
            use()


def test_an_error_is_raised_once() -> None:
    buffer = vd.Buffer(4, vd.float32)
    for fails in (
        lambda: vd.Buffer(2**46, vd.float32),
        lambda: ComputePlan("void main() { x; }", [], 0, "bad"),
    ):
        with pytest.raises((RuntimeError, MemoryError)):
            fails()
        ones(buffer)
        assert buffer.read(0).tolist() == [1.0] * 4


PLAIN = """
#version 450
#extension GL_ARB_separate_shader_objects : enable
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint n; } push;
layout(set = 0, binding = 0) buffer A { float a[]; } in_;
layout(set = 0, binding = 1) buffer B { float b[]; } out_;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < push.n) out_.b[i] = in_.a[i] * 2.0 + out_.b[i];
}
""".lstrip()


def test_command_list() -> None:
    plan = ComputePlan(PLAIN, [1, 1], 4, "plain")
    assert (plan.pc_size, plan.binding_list, plan.shader_source) == (4, [1, 1], PLAIN)
    a, b = vd.asbuffer(np.arange(100, dtype=np.float32)), vd.asbuffer(np.zeros(100, np.float32))
    bound = DescriptorSet(plan)
    bound.bind_buffer(a, 0)
    bound.bind_buffer(b, 1, 0, 0, False, True, True)
    commands = CommandList()
    assert commands.get_instance_size() == 0
    for _ in range(100):
        commands.reset()
        for blocks in ([2, 1, 1], (2, 1, 1), np.array([2, 1, 1])):
            commands.record_compute_plan(plan, bound, blocks)
        commands.submit(np.full(3, 100, np.uint32).tobytes(), instance_count=1)
        commands.reset()
    np.testing.assert_array_equal(b.read(0), np.arange(100) * 600.0)
    commands.record_compute_plan(plan, bound, (2, 1, 1))
    assert commands.get_instance_size() == 4
    commands.submit(np.array([100, 50], np.uint32).tobytes())
    expected = np.arange(100) * 602.0
    expected[:50] += np.arange(50) * 2
    np.testing.assert_array_equal(b.read(0), expected)
    for arguments in ({}, {"data": b"\0\0\0"}, {"data": bytes(4), "instance_count": 2}):
        with pytest.raises(ValueError):
            commands.submit(**arguments)
    with pytest.raises(RuntimeError):
        commands.submit(bytes(4), cuda_stream=0)
    a.destroy()
    assert bound.destroyed and commands.destroyed


def test_dummy_backend(run_python: RunPython) -> None:
    done = run_python(
        "import vkdispatch as vd, vkdispatch.codegen as vc\n"
        "vd.initialize(backend='dummy')\n"
        "vd.set_dummy_context_params(64, True, (512, 512, 8), 512, (10, 10, 10), 4096)\n"
        "@vd.shader('a.size')\n"
        "def kernel(a: vc.Buff[vc.f32]): a[vc.global_invocation_id().x] = 1.0\n"
        "assert kernel.get_src().local_size == (512, 1, 1) and kernel.plan is None\n"
        "for arguments in ((), (None,), (1, 2, 3)):\n"
        "    try: kernel(*arguments)\n"
        "    except RuntimeError: print('refused')\n"
        "for name in ('cuda', 'opencl'):\n"
        "    vc.set_codegen_backend(name)\n"
        "    assert vc.get_codegen_backend().name == name\n"
        "assert vd.get_cuda_capture() is None\n"
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "refused\n" * 3)


def test_text_for_another_backend_is_refused_when_it_is_built() -> None:
    vc.set_codegen_backend(vc.CUDABackend())
    try:

        @vd.shader(1)
        def kernel(a: Buff[f32]) -> None:
            a[0] = 1.0
    finally:
        vc.set_codegen_backend(None)
    with pytest.raises(RuntimeError, match="cuda"):
        kernel.build()
    with pytest.raises(RuntimeError):
        vd.cuda_graph_capture().__enter__()
    with pytest.raises(RuntimeError):
        vd.set_dummy_context_params(subgroup_size=32)
