"""Handles out and in: what other libraries do with ours, and contexts on devices that are somebody else's."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.base.contexts.selection import as_handle
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, f64

from .by_hand import REQUIRED, Foreign, device_name, get_queue, has_validation, vk

SOME = ("hostQueryReset", "shaderFloat64", "shaderInt64", "bufferDeviceAddress")
RunPython = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def maker() -> Iterator[Foreign]:
    """Yield a device that was made with no more than what is required."""
    made = Foreign()
    yield made
    gc.collect()
    made.destroy()


@pytest.fixture
def foreign(maker: Foreign) -> Iterator[vd.Context]:
    """Yield a context on it."""
    context = vd.make_context_from_handles(**maker.handles)
    yield context
    context.close()
    vk.vkDeviceWaitIdle(maker.device)  # it is still there


@vd.shader("data.size")
def triple(data: Buff[f32], plus: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = 3 * data[i] + plus


@vd.shader("data.size")
def triple_later(data: Buff[f32], plus: Var[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = 3 * data[i] + plus


def numbers(count: int = 1009) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(3).random(count, np.float32)


# ---- handles out


def test_handles_are_vulkan_handles() -> None:
    context = vd.get_context()
    handles = context.handles
    assert len(handles.devices) == len(context.device_infos)
    assert handles.api_version == 0x402000
    for device, info in zip(handles.devices, context.device_infos, strict=True):
        assert device_name(ctypes.c_void_p(device.physical_device)) == info.device_name
        for queue in device.queues + device.transfer_queues:
            assert queue.index is not None
            found = get_queue(ctypes.c_void_p(device.device), queue.family, queue.index)
            assert found.value == queue.handle
    count = ctypes.c_uint32()
    assert vk.vkEnumeratePhysicalDevices(ctypes.c_void_p(handles.instance), ctypes.byref(count), None) == 0
    assert count.value == len(vd.get_devices())


def test_enabled_features_and_extensions() -> None:
    context = vd.get_context()
    for device, info in zip(context.handles.devices, context.device_infos, strict=True):
        assert device.features == info.features
        assert set(vd.required_device_features()) <= device.features
        assert set(device.extensions) <= set(info.extensions)
        assert ("VK_KHR_push_descriptor" in device.extensions) == (
            "VK_KHR_push_descriptor" in info.extensions
        )
    assert vd.required_device_features() == ("timelineSemaphore", "scalarBlockLayout")
    assert vd.optional_device_features()["shaderFloat64"] is None
    assert vd.optional_device_features()["shaderBufferFloat32AtomicAdd"] == "VK_EXT_shader_atomic_float"


def test_handles_of_a_closed_context() -> None:
    context = vd.Context([0], [[0]])
    assert context.handles.devices[0].device
    context.close()
    with pytest.raises(RuntimeError, match="context was closed"):
        _ = context.handles


# ---- extensions


def test_requested_extensions_are_enabled() -> None:
    usual = vd.get_context().handles.devices[0].extensions
    candidates = ("VK_KHR_shader_clock", "VK_EXT_scalar_block_layout", "VK_KHR_8bit_storage")
    extra = [name for name in candidates if name in vd.get_devices()[0].extensions and name not in usual]
    assert extra
    context = vd.Context([0], [[0]], [*extra, *extra])
    assert set(context.handles.devices[0].extensions) == {*usual, *extra}
    context.close()
    with pytest.raises(vd.UnsupportedError, match="has no VK_nobody_has_this"):
        vd.Context([0], [[0]], ["VK_nobody_has_this"])
    with pytest.raises(vd.VulkanError, match="EXTENSION_NOT_PRESENT"):
        native.Engine([0], [[0]], False, False, ["VK_nobody_has_this"])
    native.take_messages()
    if "VK_EXT_buffer_device_address" in vd.get_devices()[0].extensions:
        with pytest.raises(ValueError, match="together with bufferDeviceAddress"):
            vd.Context([0], [[0]], ["VK_EXT_buffer_device_address"])


def test_invalid_foreign_contexts_are_refused() -> None:
    count = len(vd.get_devices())
    for devices, families, extensions, kind, message in (
        ([count], [[0]], [], ValueError, "device_ids"),
        ([], [], [], ValueError, "device_ids"),
        ([0], [[99]], [], ValueError, "queue_families"),
        ([0], [[]], [], ValueError, "queue_families"),
        ([0], [[0], [0]], [], ValueError, "queue_families"),
        ([0], [[0]], [1], TypeError, "extensions"),
        ([0], [[0]], "VK_KHR_push_descriptor", TypeError, "extensions"),
    ):
        with pytest.raises(kind, match=message):
            vd.Context(devices, families, extensions)  # type: ignore[arg-type]


def test_extensions_of_make_context(run_python: RunPython) -> None:
    result = run_python("""
import vkdispatch as vd
has = vd.get_devices()[0].extensions
name = next(n for n in ("VK_KHR_shader_clock", "VK_EXT_scalar_block_layout") if n in has)
def refused(kind, *extensions):
    try:
        vd.make_context(extensions=extensions[0] if extensions else 5)
    except kind as error:
        print(type(error).__name__, error)
refused(vd.UnsupportedError, [name, "VK_one", "VK_two"])
refused(TypeError, "VK_one")
refused(TypeError)
refused(TypeError, [1])
assert not vd.is_context_initialized()
context = vd.make_context(extensions=[name])
assert name in context.handles.devices[0].extensions
assert vd.make_context(extensions=[name]) is context
refused(vd.UsageError, ["VK_one"])
""")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()[-5:]  # where there is no layer, debug mode says so before
    assert [line.split()[0] for line in lines] == [
        "UnsupportedError",
        *["ArgumentTypeError"] * 3,
        "UsageError",
    ]
    assert lines[0].endswith("has no VK_one, VK_two")


# ---- handles in


def test_kernels_run_where_their_buffers_are(foreign: vd.Context) -> None:
    data = numbers()
    here, there = vd.asbuffer(data), vd.asbuffer(data, context=foreign)
    assert here.context is vd.get_context() is not foreign
    assert there.context is foreign
    for plus in range(3):  # turn and turn about
        triple(there, plus)
        triple(here, 10 * plus)
    expected, expected_here = data, data
    for plus in range(3):
        expected, expected_here = 3 * expected + plus, 3 * expected_here + 10 * plus
    np.testing.assert_allclose(there.read(0), expected, rtol=1e-6)
    np.testing.assert_allclose(here.read(0), expected_here, rtol=1e-6)


def test_a_kernel_is_built_once_in_each_context(foreign: vd.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    @vd.shader("data.size")
    def increment(data: Buff[f32]) -> None:
        data[vc.global_invocation_id().x] += 1

    here, there = vd.asbuffer(numbers()), vd.asbuffer(numbers(), context=foreign)
    increment(here)
    increment(there)
    compiled = native.compile_count()
    monkeypatch.setattr(native, "Plan", None)  # nothing may be built from here on
    for _ in range(3):
        increment(here)
        increment(there)
    assert native.compile_count() == compiled
    np.testing.assert_allclose(there.read(0), numbers() + 4, rtol=1e-6)
    np.testing.assert_array_equal(here.read(0), there.read(0))


def test_graphs(foreign: vd.Context) -> None:
    graph = vd.CommandGraph(context=foreign)
    buffer = vd.asbuffer(numbers(), context=foreign)
    triple_later(buffer, graph.bind_var("plus"), graph=graph)
    triple(buffer, 1, graph=graph)
    graph.set_var("plus", 2)
    expected = numbers()
    for _ in range(4):
        graph.submit()
        expected = 3 * (3 * expected + 2) + 1
    np.testing.assert_allclose(buffer.read(0), expected, rtol=1e-5)
    with pytest.raises(RuntimeError, match="another context"):
        triple(vd.asbuffer(numbers()), 1, graph=graph)


def test_the_current_context_of_a_thread(foreign: vd.Context) -> None:
    own = vd.get_context()
    signal = np.exp(1j * np.arange(360)).astype(np.complex64)
    seen: list[vd.Context] = []
    with vd.use_context(foreign) as context:
        assert context is foreign is vd.get_context()
        assert vd.is_context_initialized()
        assert vd.global_graph().context is foreign
        buffer = vd.asbuffer(signal)
        image = vd.Image2D((4, 8))
        vd.fft.fft(buffer)
        thread = threading.Thread(target=lambda: seen.append(vd.get_context()))
        thread.start()
        thread.join()
        with vd.use_context(own):
            assert vd.get_context() is own
        vd.queue_wait_idle()
    assert seen == [own]
    assert vd.get_context() is own
    assert vd.global_graph().context is own
    assert buffer.context is image.context is foreign
    np.testing.assert_allclose(buffer.read(0), np.fft.fft(signal), atol=2e-4)


def test_reductions_run_where_their_buffers_are(foreign: vd.Context) -> None:
    data = np.arange(5000, dtype=np.float32) % 7

    @vd.reduce.reduce(0)
    def total(a: f32, b: f32) -> f32:
        return a + b

    for context in (foreign, vd.get_context(), foreign):
        result = total(vd.asbuffer(data, context=context))
        assert result.context is context
        assert result.read(0)[0] == data.sum()


def test_constants_prints_and_images(foreign: vd.Context, capsys: pytest.CaptureFixture[str]) -> None:
    table = vc.ConstantArray(np.array([2, 3, 5, 7], np.float32))

    @vd.shader("data.size")
    def primes(data: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        data[i] = vc.constant_array(table)[i % 4]

    @vd.shader(4)
    def tell(data: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        vc.printf("%d: %g", i, data[i])

    buffers = [vd.Buffer(10, vd.float32, context=context) for context in (foreign, vd.get_context())]
    for buffer in [*buffers, *buffers]:
        primes(buffer)
        np.testing.assert_array_equal(buffer.read(0), [2, 3, 5, 7, 2, 3, 5, 7, 2, 3])
        tell(buffer)
        assert sorted(capsys.readouterr().out.splitlines()) == ["0: 2", "1: 3", "2: 5", "3: 7"]
    texels = np.arange(32, dtype=np.float32).reshape(4, 8)
    image = vd.Image2D((4, 8), context=foreign)
    image.write(texels)
    np.testing.assert_array_equal(image.read(), texels)


def test_named_features_are_enabled() -> None:
    info = vd.get_context().device_infos[0]
    lacking = {*SOME, "VK_KHR_push_descriptor"} - {*info.features, *info.extensions}
    if lacking:
        pytest.skip(f"the device has no {', '.join(sorted(lacking))}")
    made = Foreign((*REQUIRED, *SOME), ["VK_KHR_push_descriptor"])

    @vd.shader("data.size")
    def halve(data: Buff[f64]) -> None:
        data[vc.global_invocation_id().x] *= 0.5

    data = np.linspace(0, 1, 50)
    silent = vd.make_context_from_handles(**made.handles)
    assert silent.handles.devices[0].features == set(REQUIRED)
    assert silent.device_infos[0].float_64_support == 0
    with pytest.raises(vd.UnsupportedError, match="float64"):
        halve(vd.asbuffer(data, context=silent))
    named = vd.make_context_from_handles(**made.handles, features=SOME, extensions=["VK_KHR_push_descriptor"])
    assert named.device_infos[0].features == {*REQUIRED, *SOME}
    assert named.device_infos[0].extensions == ("VK_KHR_push_descriptor",)
    buffer = vd.asbuffer(data, context=named)
    halve(buffer)
    np.testing.assert_array_equal(buffer.read(0), data / 2)
    with vd.use_context(named), vd.profile() as profile:  # which resets queries from the host
        halve(buffer)
        vd.queue_wait_idle()
    assert [row.calls for row in profile.rows()] == [1]
    silent.close()
    named.close()
    made.destroy()


def test_several_contexts_share_a_queue(maker: Foreign) -> None:
    contexts = [vd.make_context_from_handles(**maker.handles) for _ in range(3)]
    buffers = [vd.asbuffer(np.zeros(257, np.float32), context=context) for context in contexts]

    def work(buffer: vd.Buffer[Any]) -> None:
        for _ in range(50):
            triple(buffer, 1)
            buffer.read(0)
            triple(buffer, -3 * buffer.read(0)[0])

    threads = [threading.Thread(target=work, args=(buffer,)) for buffer in buffers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for buffer, context in zip(buffers, contexts, strict=True):
        np.testing.assert_array_equal(buffer.read(0), np.zeros(257))
        context.close()


def test_own_handles_are_accepted() -> None:
    own = vd.get_context()
    device = own.handles.devices[0]
    context = vd.make_context_from_handles(
        own.handles.instance,
        device.physical_device,
        device.device,
        device.queues,
        device.extensions,
        device.features,
    )
    assert context.handles.devices[0].queues == device.queues
    assert context.device_ids == own.device_ids[:1]
    assert context.device_infos[0].features == own.device_infos[0].features
    here, there = vd.asbuffer(numbers()), vd.asbuffer(numbers(), context=context)
    for _ in range(20):
        triple(here, 0.5)
        triple(there, 0.5)
    np.testing.assert_array_equal(here.read(0), there.read(0))
    context.close()
    triple(here, 0.5)
    here.read(0)


# ---- the end


def test_memory_after_a_context_is_closed(maker: Foreign) -> None:
    context = vd.make_context_from_handles(**maker.handles)
    buffer, graph = vd.asbuffer(numbers(), context=context), vd.CommandGraph(context=context)
    triple(buffer, 1, graph=graph)
    triple(buffer, 1)
    future = buffer.read_async()
    kept = future.result()
    context.close()
    context.close()
    np.testing.assert_allclose(kept, 3 * numbers() + 1, rtol=1e-6)
    for use in (
        lambda: buffer.read(0),
        lambda: triple(buffer, 1),
        lambda: graph.submit(),
        lambda: vd.Buffer(4, vd.float32, context=context),
        lambda: context.make_current(),
        lambda: vd.use_context(context).__enter__(),
    ):
        with pytest.raises(RuntimeError):
            use()


def test_pinned_memory_holds_the_device(maker: Foreign) -> None:
    context = vd.make_context_from_handles(**maker.handles)
    with vd.use_context(context):
        pinned = vd.empty_pinned(1009)
        buffer = vd.asbuffer(numbers())
        buffer.read(0, out=pinned)
    with pytest.raises(RuntimeError, match="pinned memory"):
        context.close()
    np.testing.assert_array_equal(pinned, buffer.read(0))  # nothing was closed
    del pinned
    context.close()


def test_closing_inside_of_use_context(maker: Foreign) -> None:
    context = vd.make_context_from_handles(**maker.handles)
    with vd.use_context(context):
        context.close()
        with pytest.raises(RuntimeError, match="closed"):
            vd.Buffer(4, vd.float32)
    assert vd.get_context() is not context
    with pytest.raises(TypeError, match="context: expected"):
        vd.use_context(5).__enter__()  # type: ignore[arg-type]


_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from by_hand import Foreign, vk
import gc
import weakref
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.base.context import destroy_context
from vkdispatch.codegen.abbreviations import Buff, f32

@vd.shader("data.size")
def increment(data: Buff[f32]):
    data[vc.global_invocation_id().x] += 1

def check(context):
    buffer = vd.asbuffer(np.arange(100, dtype=np.float32), context=context)
    increment(buffer)
    assert (buffer.read(0) == np.arange(1, 101)).all()
    assert buffer.context is (context or vd.get_context())
    return buffer
"""
_ENDS = {
    "theirs first": """
made = Foreign()
theirs, ours = vd.make_context_from_handles(**made.handles), vd.make_context()
kept = check(theirs), check(ours)
theirs.close()
made.destroy()
check(ours)
""",
    "ours first": """
made = Foreign()
theirs, ours = vd.make_context_from_handles(**made.handles), vd.make_context()
kept = check(theirs), check(ours)
destroy_context()
check(theirs)
theirs.close()
made.destroy()
check(None)
""",
    "only theirs, for everything": """
made = Foreign()
context = vd.make_context_from_handles(**made.handles, make_current=True)
assert vd.get_context() is context
check(None)
assert vd.make_context() is context
destroy_context()
assert context.closed
made.destroy()
""",
    "open at the exit": """
made = Foreign()
context = vd.make_context_from_handles(**made.handles, make_current=True)
kept = check(None)
pinned = vd.empty_pinned(10)
increment(kept)
""",
    "dropped": """
made = Foreign()
context = vd.make_context_from_handles(**made.handles)
check(context)
del context
gc.collect()
made.destroy()
""",
    "dropped, with pinned memory": """
made = Foreign()
context = vd.make_context_from_handles(**made.handles)
with vd.use_context(context):
    pinned = vd.empty_pinned(10)
alive = weakref.ref(context)
del context
gc.collect()
assert alive() is not None
pinned[:] = 1
del pinned
gc.collect()
assert alive() is None
made.destroy()
""",
    "current, then closed": """
made = Foreign()
ours = vd.make_context()
theirs = vd.make_context_from_handles(**made.handles)
assert theirs.make_current() is ours
check(None)
theirs.close()
made.destroy()
assert vd.get_context() not in (ours, theirs)
check(None)
check(ours)
assert vd.get_context().make_current() is vd.get_context()
""",
}


@pytest.mark.parametrize("end", _ENDS)
def test_every_order_of_ending_is_silent(run_python: RunPython, end: str) -> None:
    code = f"{_PROGRAM}{_ENDS[end]}\nassert native.take_messages() == []\nprint('done')"
    result = run_python(code, str(Path(__file__).parent))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "done"  # where there is no layer, debug mode says so before
    assert "vkdispatch:" not in result.stderr


# ---- handles that are none


def test_wrong_handles(maker: Foreign) -> None:
    good = maker.handles
    junk = ctypes.create_string_buffer(64)
    cases: list[tuple[str, Any, type[Exception], str]] = [
        ("instance", 0, ValueError, "instance: the handle is null"),
        ("instance", None, TypeError, "instance: expected a Vulkan handle"),
        ("instance", "0x1234", TypeError, "instance: expected"),
        ("instance", True, TypeError, "instance: expected"),
        ("instance", 4096, ValueError, "instance: 4096 is not a Vulkan handle"),
        ("instance", ctypes.addressof(junk), ValueError, "instance: .* is not a Vulkan handle"),
        ("instance", maker.physical, ValueError, "instance: expected a VkInstance"),
        ("instance", maker.device, ValueError, "physical_device: it does not belong to this instance"),
        ("physical_device", ctypes.c_void_p(), ValueError, "physical_device: the handle is null"),
        ("physical_device", maker.instance, ValueError, "physical_device"),
        ("physical_device", maker.device, ValueError, "physical_device: it does not belong"),
        ("physical_device", -5, ValueError, "physical_device: -5 is not a Vulkan handle"),
        ("device", 0, ValueError, "device: the handle is null"),
        ("device", 8192, ValueError, "device: 8192 is not a Vulkan handle"),
        ("device", 1 << 70, ValueError, "device: .* is not a Vulkan handle"),
        ("device", maker.physical, ValueError, "passed as physical_device"),
        ("device", maker.queue, ValueError, "passed as device"),
        ("queues", [], ValueError, "queues: at least one"),
        ("queues", 0, TypeError, r"queues: expected a list of \(family, queue\)"),
        ("queues", [5], TypeError, "queues: expected pairs"),
        ("queues", [(99, 0)], ValueError, "queues: .* has families 0 to"),
        ("queues", [(-1, 0)], ValueError, "queues: .* has families 0 to"),
        ("queues", [(0, 65000)], ValueError, "queues: family 0 of .* has queues 0 to"),
        ("queues", [(0, None)], TypeError, "queues: expected a Vulkan handle"),
        ("queues", [(0, maker.device)], ValueError, "passed as device"),
        ("queues", [(0, maker.physical)], ValueError, "passed as physical_device"),
        ("queues", [(0, 1 << 40)], ValueError, "queues: .* is not a Vulkan handle"),
        ("extensions", ["VK_nobody_has_this"], vd.UnsupportedError, "has no VK_nobody_has_this"),
        ("extensions", "VK_KHR_push_descriptor", TypeError, "extensions: expected names"),
        ("features", [1], TypeError, "features: expected names, got 1"),
        ("features", ["wideLines"], ValueError, "'wideLines' is not a feature that vkdispatch uses"),
        ("features", ["shaderBufferFloat32AtomicAdd"], ValueError, "belongs to VK_EXT_shader_atomic_float"),
    ]
    for name, value, kind, message in cases:
        with pytest.raises(kind, match=message):
            vd.make_context_from_handles(**{**good, name: value})
    context = vd.make_context_from_handles(**{**good, "queues": [(maker.family, 0)]})  # by its index
    assert context.handles.devices[0].queues[0].handle == maker.queue.value
    context.close()


def test_objects_of_two_devices(maker: Foreign) -> None:
    own = vd.get_context().handles
    with pytest.raises(ValueError, match="queues: the VkQueue does not belong to this device"):
        vd.make_context_from_handles(
            **{**maker.handles, "queues": [(maker.family, own.devices[0].queues[0].handle)]}
        )
    with pytest.raises(ValueError, match="physical_device: it does not belong to this instance"):
        vd.make_context_from_handles(**{**maker.handles, "physical_device": own.devices[0].physical_device})


def test_kinds_of_handles(maker: Foreign) -> None:
    class Wrapped:
        def __int__(self) -> int:
            return 4711

    number = maker.device.value
    assert number is not None
    pointer = ctypes.cast(maker.device, ctypes.POINTER(ctypes.c_uint64))
    for given in (number, maker.device, pointer, np.uint64(number)):
        assert as_handle("device", given) == number
    assert as_handle("device", Wrapped()) == 4711


def test_handles_of_cffi(maker: Foreign) -> None:
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef("typedef struct VkDevice_T *VkDevice;")
    assert as_handle("device", ffi.cast("VkDevice", maker.device.value)) == maker.device.value
    assert as_handle("device", ffi.cast("uintptr_t", maker.device.value)) == maker.device.value
    with pytest.raises(ValueError, match="null"):
        as_handle("device", ffi.cast("VkDevice", 0))


@pytest.mark.skipif(not has_validation(), reason="the Khronos validation layer is not installed")
def test_foreign_layer_messages_are_reported(run_python: RunPython) -> None:
    """In debug mode what a foreign instance's layer says is noted, such as of a feature that is off."""
    result = run_python(
        f"""{_PROGRAM}
from by_hand import REQUIRED
made = Foreign(features=REQUIRED[:1])  # no timeline semaphores, contrary to what is required
context = vd.make_context_from_handles(**made.handles)
said = native.take_messages()
print(any("timelineSemaphore" in text for _, text in said), native.validation_enabled())
context.close()
""",
        str(Path(__file__).parent),
        VKDISPATCH_DEBUG="1",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["True", "True"]


def test_dummy_backend_has_no_handles(run_python: RunPython) -> None:
    result = run_python(
        """
import vkdispatch as vd
for use in (lambda: vd.make_context_from_handles(1, 1, 1, [(0, 0)]), lambda: vd.get_context().handles):
    try:
        use()
    except vd.UsageError as error:
        print(error)
""",
        VKDISPATCH_BACKEND="dummy",
    )
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 2


def test_debug_mode_reaches_foreign_contexts(run_python: RunPython) -> None:
    result = run_python(
        f"""{_PROGRAM}
made = Foreign()
context = vd.make_context_from_handles(**made.handles)
context._native.set_barriers_enabled(False)
buffer = vd.asbuffer(np.zeros(100, np.float32), context=context)
increment(buffer)
increment(buffer)
vd.queue_wait_idle(context=context)
print(any("hazard" in text for _, text in native.take_messages()))
context.close()
made.destroy()
""",
        str(Path(__file__).parent),
        VKDISPATCH_DEBUG="1",
    )
    assert result.returncode == 0, result.stderr
    # our own hazard checker: where there is no layer, debug mode says so before
    assert result.stdout.splitlines()[-1] == "True"
