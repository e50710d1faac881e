"""Faults of the driver, a few of them: `python -m tests.faults.sweep` and `make test-faults` make more."""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import building
from .layer_control import FOREVER, Fault
from .results import DEVICE_LOST, FRAGMENTED_POOL, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY, RESULTS
from .sweep import FAILED, Cases, case_of, environment_of, shown
from .workloads import WORKLOADS

Run = Callable[[str], None]
_EACH = 6
_SECONDS = 120
# Called before there is an instance, which layers like ours do not see.
_BEFORE_INSTANCES = {"vkEnumerateInstanceVersion", "vkEnumerateInstanceLayerProperties"}
# Most workloads call these; of the others few.
_COMMON = (
    "vkAllocateMemory",
    "vkBindBufferMemory",
    "vkCreateBuffer",
    "vkCreateShaderModule",
    "vkCreateComputePipelines",
    "vkCreatePipelineLayout",
    "vkCreateDescriptorSetLayout",
    "vkCreateCommandPool",
    "vkResetCommandPool",
    "vkAllocateCommandBuffers",
    "vkBeginCommandBuffer",
    "vkEndCommandBuffer",
    "vkCreateSemaphore",
    "vkGetSemaphoreCounterValue",
    "vkWaitSemaphores",
    "vkQueueSubmit",
    "vkDeviceWaitIdle",
    "vkCreateDevice",
)


@pytest.fixture(scope="session")
def layer() -> Path:
    """Return the folder of the layer."""
    try:
        return building.build()
    except RuntimeError as error:
        pytest.skip(f"no layer: {error}")


@pytest.fixture(scope="module")
def worker(layer: Path) -> Iterator[Cases]:
    """Yield a process that does cases."""
    with tempfile.TemporaryDirectory() as cache:
        made = Cases(environment_of(cache))
        yield made
        made.end()


@pytest.fixture
def run(worker: Cases) -> Run:
    """Return a function that runs code in that process, on a new context."""

    def run_code(code: str) -> None:
        found = worker.do({"code": _BEGIN + code}, _SECONDS)
        assert not found.failures, "\n".join(text for _, text in found.failures)

    return run_code


_BEGIN = """
import gc, threading
import numpy as np, pytest
import vkdispatch as vd
from tests.faults.layer_control import FOREVER, Fault
from tests.faults.results import *
from tests.faults.workloads import X, Y, SIZE, saxpy, shift, brighten
context = vd.make_context()
def raises(call, *kinds):
    with pytest.raises(kinds or vd.VkDispatchError) as caught:
        call()
    return caught.value
"""


# -- the table


@pytest.mark.usefixtures("layer")  # without headers there is none
def test_every_function_of_the_engine_can_fail() -> None:
    """The table has what the sources name, and what VMA calls for them."""
    try:
        headers = Path(building.prefix(), "include", "vulkan", "vulkan_core.h")
    except RuntimeError as error:
        pytest.skip(f"no headers: {error}")
    if not headers.is_file() or not (building.ROOT / "vkdispatch_native").is_dir():
        pytest.skip("the sources are not beside the tests")
    with_result = set(re.findall(r"VkResult VKAPI_CALL (vk\w+)\(", headers.read_text()))
    native = building.ROOT / "vkdispatch_native"
    # VkFFT's calls end in the file that has them
    sources = [path for path in (*native.rglob("*.cpp"), *native.rglob("*.hpp")) if path.stem != "vkfft"]
    called = {name for path in sources for name in re.findall(r"\bvk[A-Z]\w+", path.read_text())}
    missing = (called & with_result) - RESULTS.keys() - _BEFORE_INSTANCES
    assert not missing, f"tests/faults/results.py and the layer do not know {sorted(missing)}"


def test_the_layer_knows_the_table(run: Run) -> None:
    run("assert set(layer.functions) == set(RESULTS)")


# -- some of everything


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_sample(worker: Cases, workload: str) -> None:
    """No wrong number, crash, hang, leak or exception that is not ours."""
    for case in _sample(workload):
        found = worker.do(case, _SECONDS)
        assert found.verdict not in (FAILED, "crashed", "hung"), f"{shown(case)}\n{found}"


def _sample(workload: str) -> Iterator[dict[str, Any]]:
    chances = random.Random(workload)
    for _ in range(_EACH):
        function = chances.choice(_COMMON if chances.random() < 0.7 else list(RESULTS))
        result = chances.choice(RESULTS[function])
        times = 1 if result >= 0 else chances.choice((1, 1, 1, 2, FOREVER))
        n = chances.choice((1, 1, 2, 3, 5))
        sticky = result == DEVICE_LOST and chances.random() < 0.5
        yield case_of(workload, Fault(function, result, n, times, sticky, sticky and chances.random() < 0.5))


# -- what was wrong once (FINDINGS, E)


@pytest.mark.parametrize("result", [OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY])
def test_everyone_who_waits_is_told(run: Run, result: int) -> None:
    """E1: a batch that fails is reported to each reader, each time, in each thread."""
    run(f"""
buffers = [vd.asbuffer(X + i) for i in range(3)]
other = vd.asbuffer(Y)
vd.queue_wait_idle()
layer.arm(Fault("vkQueueSubmit", {result}, times=FOREVER))
for buffer in buffers: shift(buffer, 1.0)
for buffer in buffers:  # the launches may be in several batches
    raises(lambda: buffer.read(0), vd.OutOfDeviceMemoryError)
layer.disarm()
for buffer in buffers:
    texts = {{str(raises(lambda: buffer.read(0), vd.OutOfDeviceMemoryError)) for _ in range(3)}}
    assert len(texts) == 1 and "vkQueueSubmit" in texts.pop()
raises(lambda: buffers[1].read_async().result(), vd.OutOfDeviceMemoryError)
raises(vd.queue_wait_idle, vd.OutOfDeviceMemoryError)
told = []
def read():
    told.append(raises(lambda: buffers[2].read(0), vd.OutOfDeviceMemoryError))
threads = [threading.Thread(target=read) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(told) == 3
# nothing is made of it, and what has nothing to do with it is right
raises(lambda: saxpy(other, buffers[0], 1.0), vd.OutOfDeviceMemoryError)
assert (other.read(0) == Y).all()
shift(other, 1.0)
assert (other.read(0) == Y + 1).all()
# a kernel of the user's clears nothing, and written anew all is well
raises(lambda: shift(buffers[0], 1.0), vd.OutOfDeviceMemoryError)
raises(lambda: buffers[0].read(0), vd.OutOfDeviceMemoryError)
for buffer in buffers: buffer.write(X)
for buffer in buffers: shift(buffer, 1.0)
for buffer in buffers: assert (buffer.read(0) == X + 1).all()
gc.collect()  # of a future, which has an exception that has it
vd.queue_wait_idle()
""")


def test_what_is_made_of_lost_data_before_anyone_knows(run: Run) -> None:
    """E1: work that was given before the failure is known raises where it is looked at."""
    run("""
for _ in range(5):
    x, y, z = vd.asbuffer(X), vd.asbuffer(Y), vd.asbuffer(Y)
    vd.queue_wait_idle()
    layer.arm(Fault("vkQueueSubmit", OUT_OF_DEVICE_MEMORY, times=2))
    for step in (lambda: shift(x, 1.0), lambda: saxpy(y, x, 1.0), lambda: saxpy(z, y, 1.0)):
        try: step()
        except vd.OutOfDeviceMemoryError: break
    else:
        for _ in range(2):
            for buffer in (z, y, x): raises(lambda: buffer.read(0), vd.OutOfDeviceMemoryError)
    layer.disarm()
    for buffer in (x, y, z): buffer.write(X)
    saxpy(z, y, 1.0)
    assert (z.read(0) == 2 * X).all()
    del x, y, z
""")


@pytest.mark.parametrize("gathered", [1, 1500])
def test_a_failure_ends_with_the_buffer_that_it_hit(run: Run, gathered: int) -> None:
    """Memory that is used again is not poisoned by what its former owner's work comes to."""
    run(f"""
from tests.native.gates import Gate
from vkdispatch.base.buffer import function_buffer
engine = context._native
other = vd.asbuffer(Y)
X = np.arange(1 << 15, dtype=np.float32)  # small memory takes turns
for _ in range(5):
    lost, kept = vd.asbuffer(X), vd.asbuffer(X)
    vd.queue_wait_idle()
    with Gate(engine) as gate:
        gate.hold()
        for _ in range(2):  # as many batches as are submitted before one is done
            shift(other, 0.0)
            engine.flush(0, engine.last_value(0))
        layer.arm(Fault("vkQueueSubmit", OUT_OF_DEVICE_MEMORY, times=FOREVER))
        for _ in range({gathered}): shift(lost, 1.0)
        shift(kept, 1.0)
        before = engine.statistics()["allocations"]
        del lost
        new = function_buffer(X.shape, vd.float32)
        assert engine.statistics()["allocations"] == before
    raises(vd.queue_wait_idle, vd.OutOfDeviceMemoryError)
    raises(lambda: kept.read(0), vd.OutOfDeviceMemoryError)
    layer.disarm()
    new.read(0)
    saxpy(other, new, 0.0)
    new.write(X)
    shift(new, 1.0)
    assert (new.read(0) == X + 1).all()
    raises(lambda: kept.read(0), vd.OutOfDeviceMemoryError)
    del kept
    gc.collect()  # of exceptions, whose frames have it
    vd.queue_wait_idle()
    other.write(Y)
""")


def test_what_is_kept_for_later_is_given_back_when_memory_is_short(run: Run) -> None:
    """A buffer that finds no memory is made of what dropped ones have."""
    run("""
engine = context._native
for busy in (False, True):
    buffers = [vd.asbuffer(np.zeros(size, np.float32)) for size in (1 << 18, 1 << 19, 1 << 20)]
    for buffer in buffers: shift(buffer, 1.0)
    if not busy: vd.queue_wait_idle()
    del buffer, buffers
    assert engine.statistics()["idle_memory"] >= 7 << 20
    layer.arm(Fault("vkAllocateMemory", OUT_OF_DEVICE_MEMORY, times=2))
    large = vd.asbuffer(np.zeros(40 << 20, np.float32))
    assert layer.made == 2
    layer.disarm()
    assert engine.statistics()["idle_memory"] == 0
    shift(large, 1.0)
    assert (large.read(0) == 1).all()
    assert layer.problems() == []
    del large
    context.close()
    context = vd.make_context()
    engine = context._native
""")


def test_every_pending_future_is_told(run: Run) -> None:
    """E1: of three futures none returns what was there before."""
    run("""
buffers = [vd.asbuffer(X) for _ in range(3)]
layer.arm(Fault("vkQueueSubmit", OUT_OF_DEVICE_MEMORY, times=FOREVER))
futures = []
for buffer in buffers:
    shift(buffer, 1.0)
    futures.append(buffer.read_async())
for future in futures: raises(future.result, vd.OutOfDeviceMemoryError)
layer.disarm()
for future in futures: raises(future.result, vd.OutOfDeviceMemoryError)
for buffer in buffers: raises(lambda: buffer.read(0), vd.OutOfDeviceMemoryError)
""")


@pytest.mark.parametrize("function", ["vkWaitSemaphores", "vkGetSemaphoreCounterValue", "vkDeviceWaitIdle"])
@pytest.mark.parametrize("result", [OUT_OF_HOST_MEMORY, DEVICE_LOST])
def test_nothing_is_destroyed_that_the_device_uses(run: Run, function: str, result: int) -> None:
    """E2: a wait that fails while the context is closed."""
    run(f"""
given_up = False
for times in (1, 3, FOREVER):
    context = vd.make_context()
    buffer = vd.asbuffer(np.zeros(1 << 20, np.float32))
    for _ in range(40): shift(buffer, 1.0)
    layer.arm(Fault({function!r}, {result}, times=times))
    try: context.close()
    except vd.VkDispatchError: pass
    layer.disarm()
    assert layer.problems() == []
    if context._engine.abandoned:  # nobody could tell that the device was idle
        assert times == FOREVER
        given_up = True
    del buffer
    after = vd.asbuffer(X)
    shift(after, 1.0)
    assert (after.read(0) == X + 1).all()
    del after
    vd.get_context().close()
""")


@pytest.mark.parametrize("function", ["vkBeginCommandBuffer", "vkAllocateCommandBuffers", "vkQueueSubmit"])
def test_a_passing_shortage_is_no_loss(run: Run, function: str) -> None:
    """E3: what fails once for want of memory is tried again, on the queue's own thread, too."""
    run(f"""
for _ in range(5):
    context = vd.make_context()
    buffer = vd.asbuffer(X)
    layer.arm(Fault({function!r}, OUT_OF_HOST_MEMORY))
    for _ in range(10): shift(buffer, 1.0)
    assert (buffer.read(0) == X + 10).all()
    assert not context.lost and layer.made == 1
    layer.disarm()
    context.close()
""")


def test_a_wait_that_has_no_memory_is_no_loss(run: Run) -> None:
    """E3: nor is a wait that fails so."""
    run("""
for function in ("vkWaitSemaphores", "vkGetSemaphoreCounterValue"):
    buffer = vd.asbuffer(X)
    layer.arm(Fault(function, OUT_OF_HOST_MEMORY))
    for _ in range(3):
        shift(buffer, 1.0)
        try: vd.queue_wait_idle()
        except vd.OutOfDeviceMemoryError: pass
    layer.disarm()
    assert not context.lost
    assert (buffer.read(0) == X + 3).all()
""")


def test_images_of_a_batch_that_failed_can_be_used(
    layer: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """E7: an image whose first batch failed is like new once it was written; its layout is for validation."""
    code = """
import vkdispatch_native as native
from tests.faults.layer_control import Layer
layer = Layer()
texels = np.arange(16 * 8 * 4, dtype=np.float32).reshape(16, 8, 4)
for function in ("vkQueueSubmit", "vkBeginCommandBuffer", "vkEndCommandBuffer"):
    vd.queue_wait_idle()
    layer.arm(Fault(function, OUT_OF_DEVICE_MEMORY, times=FOREVER))
    image = vd.Image2D((16, 8), vd.float32, 4)
    try: vd.queue_wait_idle()
    except vd.OutOfDeviceMemoryError: pass
    layer.disarm()
    image.write(texels)
    assert (image.read() == texels).all()
    brighten(image)
    assert (image.read() == texels + 1).all()
    del image
    try: vd.queue_wait_idle()
    except vd.OutOfDeviceMemoryError: pass
    assert native.take_messages() == []
"""
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(building.ROOT)]))
    environment = {**building.layer_environment(layer), "PYTHONPATH": paths, "VKDISPATCH_DEBUG": "1"}
    done = run_python(_BEGIN + code, **environment)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_frame_that_cannot_be_reset_does_not_take_the_next_batch_along(run: Run) -> None:
    """E8: pools of frames that are done fail to be reset, each of them once, for ever."""
    run("""
buffer = vd.asbuffer(X)
for n in range(1, 6):
    layer.arm(Fault("vkResetCommandPool", OUT_OF_DEVICE_MEMORY, n))
    for step in range(8):
        shift(buffer, 1.0)
        vd.queue_wait_idle()
    layer.disarm()
    assert (buffer.read(0) == X + 8 * n).all()
""")


@pytest.mark.parametrize("result", [FRAGMENTED_POOL, OUT_OF_HOST_MEMORY])
def test_a_pool_without_room_is_a_shortage(run: Run, result: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """E8: sets that cannot be had come from a new pool, or there is no memory: no other error."""
    run(f"""
import os
context.close()
os.environ["VKDISPATCH_NO_PUSH_DESCRIPTORS"] = "1"
try: vd.make_context()
finally: del os.environ["VKDISPATCH_NO_PUSH_DESCRIPTORS"]
buffer = vd.asbuffer(X)
layer.arm(Fault("vkAllocateDescriptorSets", {result}))
shift(buffer, 1.0)
assert (buffer.read(0) == X + 1).all()
layer.arm(Fault("vkAllocateDescriptorSets", {result}, times=FOREVER))
shift(buffer, 1.0)
raises(lambda: buffer.read(0), vd.OutOfDeviceMemoryError)
layer.disarm()
raises(lambda: buffer.read(0), vd.OutOfDeviceMemoryError)
""")


# -- what is kept between calls


_LOST = """
from tests.faults.workloads import TABLE, look_up, square_checked
lost, y, other = vd.asbuffer(X), vd.asbuffer(Y), vd.asbuffer(X)
vd.queue_wait_idle()
layer.arm(Fault("vkQueueSubmit", OUT_OF_DEVICE_MEMORY, times=FOREVER))
shift(lost, 1.0)
raises(lambda: lost.read(0), vd.OutOfDeviceMemoryError)
layer.disarm()
"""


def test_a_call_that_failed_does_not_run_with_the_next(run: Run) -> None:
    """In a graph that submits each call: the default graph of a thread, or a user's own."""
    run(f"""{_LOST}
own = vd.CommandGraph(submit_on_record=True)
both = vd.CommandGraph(submit_on_record=True, reset_on_submit=True)
for graph in (vd.default_graph(), own, both):
    y.write(Y)
    raises(lambda: saxpy(y, lost, 1.0, graph=graph), vd.OutOfDeviceMemoryError)
    assert graph.length == 0
    saxpy(y, other, 1.0, graph=graph)
    assert (y.read(0) == Y + X).all()
assert own.length == 1 and both.length == 0
# what the user recorded before stays, and does not end with the buffer of the call that failed
raises(lambda: saxpy(y, lost, 1.0, graph=own), vd.OutOfDeviceMemoryError)
assert own.length == 1 and lost._handle not in own.parents
lost.destroy()
own.submit()
assert (y.read(0) == Y + 2 * X).all() and not own.destroyed
""")


def test_a_graph_whose_submit_failed_stays_as_it_was_recorded(run: Run) -> None:
    run(f"""{_LOST}
for resets in (False, True):
    graph = vd.CommandGraph(reset_on_submit=resets)
    saxpy(y, lost, 1.0, graph=graph)
    raises(graph.submit, vd.OutOfDeviceMemoryError)
    assert graph.length == 1
    lost.write(X)
    y.write(Y)
    graph.submit()
    assert (y.read(0) == Y + X).all() and graph.length == (not resets)
    layer.arm(Fault("vkQueueSubmit", OUT_OF_DEVICE_MEMORY, times=FOREVER))
    shift(lost, 1.0)
    raises(lambda: lost.read(0), vd.OutOfDeviceMemoryError)
    layer.disarm()
""")


def test_a_call_of_several_launches_is_recorded_whole_or_not_at_all(run: Run) -> None:
    run("""
from vkdispatch.execution_pipeline.command_graph import CommandGraph
x = vd.asbuffer(np.arange(1 << 16, dtype=np.float32))
graph = vd.CommandGraph()
shift(x, 1.0, graph=graph)
record, calls = CommandGraph._append_dispatch, []
def fail(self, *arguments):
    calls.append(None)
    if len(calls) == 2: raise MemoryError
    return record(self, *arguments)
CommandGraph._append_dispatch = fail
try: raises(lambda: vd.sort(x, graph=graph), MemoryError)
finally: CommandGraph._append_dispatch = record
assert len(calls) == 2 and graph.length == 1
graph.submit()
assert (x.read(0) == np.arange(1 << 16) + 1).all()
""")


_KEPT = {
    "table of a kernel": ("a = vd.asbuffer(X); look_up(a); return a", "TABLE"),
    "checked": ("a = vd.asbuffer(X); square_checked(a); return a", "X * X"),
    "permutation": ("return vd.sort(vd.random.Generator(1).permutation(999))", "np.arange(999)"),
    "sum": ("return vd.sum(vd.asbuffer(np.arange(1 << 16, dtype=np.int32)))", "(1 << 15) * ((1 << 16) - 1)"),
    "cumsum": ("return vd.cumsum(vd.asbuffer(np.ones(1 << 16, np.int32)))", "np.arange(1, (1 << 16) + 1)"),
    "fft": ("a = vd.asbuffer(X + np.complex64(0)); vd.fft.fft(a); return a", "np.fft.fft(X)"),
    "vkfft": (
        "a = vd.asbuffer(X[:990].astype(np.complex64)); vd.vkfft.fft(a); return a",
        "np.fft.fft(X[:990])",
    ),
    "histogram": (
        "return vd.histogram(vd.asbuffer(X), 10, range=(-100, 100))[0]",
        "np.histogram(X, 10, (-100, 100))[0]",
    ),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("what", _KEPT)
def test_what_is_kept_between_calls_is_made_again_after_a_failure(run: Run, what: str, staged: bool) -> None:
    """Tables, zeros and boards in device memory, where the first upload or launch found no memory."""
    body, expected = _KEPT[what]
    run(f"""
import os
from tests.faults.workloads import TABLE, look_up, square_checked
context.close()
if {staged}: os.environ["VKDISPATCH_FORCE_STAGING"] = "1"
try: context = vd.make_context()
finally: os.environ.pop("VKDISPATCH_FORCE_STAGING", None)
def call():
    {body}
expected = {expected}
# after the first, what is kept is there, and may be lost all the same
for function in ("vkQueueSubmit", "vkBeginCommandBuffer", "vkQueueSubmit"):
    layer.arm(Fault(function, OUT_OF_DEVICE_MEMORY, times=FOREVER))
    raises(lambda: call().read(0), vd.OutOfDeviceMemoryError)
    layer.disarm()
    for _ in range(3):
        np.testing.assert_allclose(call().read(0), expected, rtol=1e-3, atol=1e-2)
    gc.collect()
    try: vd.queue_wait_idle()
    except vd.OutOfDeviceMemoryError: pass
""")


def test_a_graph_recovers_whose_table_could_not_be_uploaded(run: Run) -> None:
    run("""
import os
from tests.faults.workloads import TABLE, look_up
context.close()
os.environ["VKDISPATCH_FORCE_STAGING"] = "1"
try: context = vd.make_context()
finally: del os.environ["VKDISPATCH_FORCE_STAGING"]
a, graph = vd.asbuffer(X), vd.CommandGraph()
look_up(a, graph=graph)
table, = (each for each in graph.parents.values() if getattr(each, "_contents", None))
vd.queue_wait_idle()
layer.arm(Fault("vkQueueSubmit", OUT_OF_DEVICE_MEMORY, times=FOREVER))
table.write(-TABLE)
raises(vd.queue_wait_idle, vd.OutOfDeviceMemoryError)
layer.disarm()
graph.submit()
assert (a.read(0) == TABLE).all()
""")


# -- copies between devices


_CROSSING = """
import vkdispatch_native as native
from tests.native.kernels import Array
index = context.device_ids[0]
context.close()
engine = native.Engine([index] * 2, [[0]] * 2, False, True)
data = np.arange(3 << 18, dtype=np.float32)  # three parts
array = Array(engine, data)
def restart():
    for _ in range(20):  # a part of the copy may still fail after the write
        array._native.write(1, np.zeros_like(data))
        try: return engine.wait_idle()
        except vd.OutOfDeviceMemoryError: pass
    engine.wait_idle()
restart()
"""


def test_a_copy_between_devices_that_fails_is_told(run: Run) -> None:
    """Whichever part fails, on either side: every read of the target raises until the next write."""
    run(f"""{_CROSSING}
for n in range(1, 7):
    layer.arm(Fault("vkQueueSubmit", OUT_OF_DEVICE_MEMORY, n, times=FOREVER))
    array._native.copy_between(0, 1)
    told = 0
    for _ in range(8):  # each queue reports its own failures, and parts may fail at different times
        try: engine.wait_idle()
        except vd.OutOfDeviceMemoryError: told += 1
    assert told
    layer.disarm()
    for _ in range(2):
        raises(lambda: array.read(1), vd.OutOfDeviceMemoryError)
    raises(lambda: array._native.copy_between(1, 0), vd.OutOfDeviceMemoryError)
    assert (array.read(0) == data).all()
    restart()
    array._native.copy_between(0, 1)
    assert (array.read(1) == data).all()
    restart()
engine.close()
""")


def test_devices_that_cannot_share_memory_copy_all_the_same(run: Run) -> None:
    run(f"""{_CROSSING}
layer.arm(Fault("vkGetMemoryHostPointerPropertiesEXT", INVALID_EXTERNAL_HANDLE, times=FOREVER))
for source, target in ((0, 1), (1, 0)):
    array._native.copy_between(source, target)
    assert (array.read(target) == data).all()
    array._native.write(source, np.zeros_like(data))
layer.disarm()
engine.close()
""")


# -- the tools


def test_the_layer_tells_of_what_is_left_over(run: Run) -> None:
    run("""
count = layer.live().get("vkCreateBuffer", 0)
buffer = vd.asbuffer(np.zeros(1 << 20, np.float32))
assert layer.live()["vkCreateBuffer"] == count + 1
context.close()
assert layer.live().get("vkCreateBuffer", 0) == count
assert layer.calls()["vkCreateBuffer"] > 0
""")
    with pytest.raises(AssertionError, match="vkCreateDevice"):
        run("left = vd.Context([0], [[0]]); layer.left = left")


def test_wrong_numbers_are_found() -> None:
    from .trial import Trial

    trial = Trial()
    item = trial.make("x", lambda: 3)
    trial.check(item, lambda value: value, 3)
    assert trial.faults == []
    trial.check(item, lambda value: value, 4)
    trial.check(item, lambda value: 1 // 0, 4)
    assert [kind for kind, _ in trial.faults] == ["wrong", "foreign"]
    trial.do(lambda value: 1 // 0, item, writes=[item])
    assert not item.sure
