"""Buffers that kernels access by address, and 64-bit launch limits."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch_native as native
from tests.native.conftest import first_device
from tests.native.kernels import Array

# data[i] = data[i] * factor + bytes / 4
SOURCE = """#version 450
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_buffer_reference : require
#extension GL_ARB_gpu_shader_int64 : require
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Arguments {
    uint64_t limit[3]; uint64_t address; uint64_t bytes; int64_t shape[4]; float factor;
} PC;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Data { float data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (uint64_t(i) >= PC.limit[0] || int64_t(i) >= PC.shape[3]) return;
    if (PC.limit[1] != 1ul || PC.limit[2] != 1ul) return;
    Data(PC.address).data[i] = Data(PC.address).data[i] * PC.factor + float(PC.bytes / 4ul);
}
"""
SIZE = 76
PLACES = {"shape_offset": 40, "address_offset": 24, "length_offset": 32}
SLOT = native.BufferSlot(binding=0, **PLACES)
FACTOR = native.ScalarSlot(offset=72, code="f")


def make_launcher(
    engine: native.Engine, slot: native.BufferSlot = SLOT, source: str = SOURCE, binding: int = -1
) -> native.Launcher:
    """Return a launcher of (buffer, factor)."""
    types, pushed = ([], SIZE) if binding < 0 else ([3], 0)
    plan = native.Plan(engine, native.compile_glsl(source), types, pushed, "addressed")
    return native.Launcher(
        engine, plan, [slot, FACTOR], SIZE, binding, 0, -1, (64, 1, 1), (65535,) * 3, None, wide=True
    )


@pytest.fixture
def engine(engine: native.Engine) -> native.Engine:
    """Skip the test if the device does not support buffer addresses."""
    skip_without_addresses()
    return engine


def skip_without_addresses() -> None:
    properties = native.device_properties()[first_device()]
    if "bufferDeviceAddress" not in properties["features"] or not properties["int_64_support"]:
        pytest.skip("no device addresses")


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("count", [1, 64, 1000])
def test_launches_run_in_order(engine: native.Engine, count: int, uniform: bool) -> None:
    source = SOURCE
    if uniform:
        source = source.replace("push_constant", "set = 0, binding = 0").replace("PC", "UBO")
    launcher = make_launcher(engine, source=source, binding=0 if uniform else -1)
    array = Array(engine, np.arange(count, dtype=np.float32))
    for _ in range(3):
        assert launcher.launch((array, 2.0), count, False)
    expected = ((np.arange(count) * 2 + count) * 2 + count) * 2 + count
    np.testing.assert_array_equal(array.read(), expected)


def test_two_queues_and_replays() -> None:
    skip_without_addresses()
    engine = native.Engine([first_device()], [[0, 0]], True, False)
    launcher = make_launcher(engine)
    array = Array(engine, np.ones(8, np.float32))
    array._native.write(1, np.full(8, 5, np.float32))
    launcher.launch((array, 3.0), 8, False)
    assert (array.read(0) == 11).all() and (array.read(1) == 23).all()
    commands = native.CommandList(engine)
    recorded = launcher.record(commands, (array, 1.0), 8, False)
    assert recorded is not None
    for round_ in range(1, 5):  # streamed, recorded, replayed
        commands.submit(-2, recorded[1], 1)
        assert (array.read(0) == 11 + 8 * round_).all() and (array.read(1) == 23 + 8 * round_).all()
    engine.close()
    assert native.take_messages() == []


def test_checker_sees_buffers_used_by_address(engine: native.Engine) -> None:
    launcher, array = make_launcher(engine), Array(engine, np.zeros(8, np.float32))
    engine.set_barriers_enabled(False)
    for _ in range(3):
        launcher.launch((array, 1.0), 8, False)
    engine.wait_idle()
    engine.set_barriers_enabled(True)
    messages = [text for _, text in native.take_messages()]
    assert any(
        "kernel 'addressed' reads a buffer that kernel 'addressed' writes" in text for text in messages
    )


def test_buffers_are_freed_only_after_their_last_use(engine: native.Engine) -> None:
    launcher = make_launcher(engine)
    for _ in range(20):
        array = Array(engine, np.zeros(4096, np.float32))
        launcher.launch((array, 1.0), 4096, False)
        array._native.destroy()
    engine.wait_idle()
    assert engine.statistics()["waiting_frees"] == 0


def test_narrow_launchers_refuse_large_shapes_and_sizes(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(8, np.float32))
    array.shader_shape = (1 << 31, 1, 1, 1 << 31)
    assert make_launcher(engine).launch((array, 1.0), 1, False)
    plan = native.Plan(engine, native.compile_glsl(SOURCE), [], SIZE, "narrow")
    launcher = native.Launcher(engine, plan, [SLOT, FACTOR], SIZE, -1, 0, -1, (64, 1, 1), (65535,) * 3, None)
    assert not launcher.launch((array, 1.0), 1, False)
    for most, taken in ((31, False), (32, True)):
        slot = native.BufferSlot(binding=0, most_bytes=most, **PLACES)
        assert make_launcher(engine, slot).launch((array, 1.0), 1, False) == taken
    # more workgroups than are possible
    assert not make_launcher(engine).launch((array, 1.0), 1 << 33, False)
    assert not make_launcher(engine).launch((array, 1.0), 1 << 60, False)


@pytest.mark.parametrize(
    "places",
    [
        {"address_offset": SIZE - 7, "length_offset": -1},
        {"length_offset": SIZE - 7},
        {"shape_offset": SIZE - 31},
        {"address_offset": 2**31 - 1},
    ],
)
def test_offsets_beyond_the_arguments(engine: native.Engine, places: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="beyond the argument block"):
        make_launcher(engine, native.BufferSlot(binding=0, **(PLACES | places)))


def test_a_limit_beyond_the_arguments(engine: native.Engine) -> None:
    plan = native.Plan(engine, native.compile_glsl(SOURCE), [], SIZE, "limit")
    with pytest.raises(ValueError, match="exec_offset"):
        native.Launcher(
            engine, plan, [SLOT, FACTOR], SIZE, -1, SIZE - 20, -1, (64, 1, 1), (65535,) * 3, None, wide=True
        )


def test_wide_launches_without_a_limit(engine: native.Engine) -> None:
    source = (
        SOURCE.partition("layout(push")[0]
        + "layout(push_constant, scalar) uniform Arguments { uint64_t address; } PC;\n"
        + "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Data { float data[]; };\n"
        + "void main() { Data(PC.address).data[gl_GlobalInvocationID.x] = 3.0; }"
    )
    plan = native.Plan(engine, native.compile_glsl(source), [], 8, "unlimited")
    slot = native.BufferSlot(binding=0, reads=False, address_offset=0)
    launcher = native.Launcher(engine, plan, [slot], 8, -1, -1, -1, (64, 1, 1), (65535,) * 3, None, wide=True)
    array = Array(engine, np.zeros(64, np.float32))
    assert launcher.launch((array,), 1, True)
    assert (array.read() == 3).all()
