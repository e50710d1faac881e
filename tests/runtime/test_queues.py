"""Contexts of several queues and of several devices, each in a process of its own; and signals."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32

Run = Callable[..., str]

BEGIN = """
import sys, threading
import numpy as np
import vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.base.command_list import CommandList
from vkdispatch.codegen.abbreviations import *
@vd.shader("data.size")
def add(data: Buff[f32], amount: Const[f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] + amount
@vd.shader("data.size")
def scale(data: Buff[f32], factor: Const[f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] * factor
"""
DRIVERS = [
    Path(folder) / name
    for folder in ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d")
    for name in ("lvp_icd.x86_64.json", "lvp_icd.json", "lvp_icd.aarch64.json")
]


@pytest.fixture(params=["two queues", "two queues, staged", "two devices"])
def run(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> Run:
    """Return a function that runs code on a context of two queues, of one device or of two."""
    environment = {"VKDISPATCH_DEBUG": "1"}
    context = "vd.make_context(device_ids=DEVICE, queue_counts=2)".replace(
        "DEVICE", str(vd.get_context().device_ids[0])
    )
    if request.param == "two queues, staged":
        environment["VKDISPATCH_FORCE_STAGING"] = "1"
    if request.param == "two devices":
        environment |= twice_the_cpu_driver(tmp_path)
        context = "vd.make_context(multi_device=True, use_cpu=True)"

    def run_code(code: str) -> str:
        end = "\nvd.queue_wait_idle()\nimport vkdispatch_native as native\n"
        end += "assert not native.take_messages()\nprint('good')"
        done = run_python(
            f"{BEGIN}\ncontext = {context}\nassert context.queue_count == 2\n{code}{end}", **environment
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().endswith("good"), done.stdout
        return done.stdout

    return run_code


def twice_the_cpu_driver(folder: Path) -> dict[str, str]:
    """Return the environment in which the loader finds llvmpipe two times: a driver per manifest."""
    manifest = next((path for path in DRIVERS if path.exists()), None)
    if manifest is None:
        pytest.skip("llvmpipe's manifest is not where it usually is")
    files = [folder / "first.json", folder / "second.json"]
    for file in files:
        file.write_text(json.dumps(json.loads(manifest.read_text())))
    paths = ":".join(map(str, files))
    return {"VK_ICD_FILENAMES": paths, "VK_DRIVER_FILES": paths, "VKDISPATCH_DEVICE": ""}


def test_each_queue_works_on_its_own_copies(run: Run) -> None:
    run("""
data = vd.asbuffer(np.arange(1003, dtype=np.float32))
add(data, 1.0)                                   # on every queue
assert (data.read() == np.arange(1003) + 1).all() and data.read().shape == (2, 1003)
data.write(np.zeros(1003, np.float32), index=1)
add(data, 5.0)
assert (data.read(0) == np.arange(1003) + 6).all() and (data.read(1) == 5).all()
assert (data.read(1) == data.read()[1]).all()
for use in (lambda: data.read(2), lambda: data.write(np.zeros(1003, np.float32), index=2),
            lambda: data.copy_between_queues(0, 2), lambda: data.copy_between_queues(-1),
            lambda: vd.queue_wait_idle(2)):
    try: use()
    except ValueError as error: assert "0 to 1" in str(error), error
    else: assert False
""")


def test_functions_whose_size_depends_on_data(run: Run) -> None:
    run("""
def both(a, b):
    made = vd.Buffer(np.shape(a), vd.int32)
    made.write(np.array(a, np.int32), 0); made.write(np.array(b, np.int32), 1)
    return made
def refused(call, *words):
    try: call()
    except (ValueError, IndexError) as error: assert all(word in str(error) for word in words), error
    else: assert False, words
a, b = [3, 1, 2, 3, 0, 7], [5, 5, 1, 0, 2, 7]
x, y = both(a, b), both(a, [5, 5, 1, 0, 0, 8])
found, index, inverse, counts = vd.unique(x, True, True, True)
for queue, each in enumerate((a, b)):
    expected = np.unique(each, True, True, True)
    for mine, its in zip((found, index, inverse, counts), expected): assert (mine.read(queue) == its).all()
    assert (vd.bincount(x).read(queue) == np.bincount(each)).all()
    assert (vd.nonzero(x)[0].read(queue) == np.nonzero(each)[0]).all()
    assert (vd.compact(x, x).read(queue) == np.array(each)[np.nonzero(each)[0]]).all()
    assert (vd.nonzero(y, size=3)[0].read(queue) == np.nonzero((a, [5, 5, 1, 0, 0, 8])[queue])[0][:3]).all()
for call in (vd.unique, vd.nonzero, vd.bincount):
    refused(lambda: call(y), "x:", "queue 0", "queue 1", "size=", "copy_between_queues")
refused(lambda: vd.compact(x, y), "condition:", "queue 1", "size=")
refused(lambda: vd.bincount(both(a, [0, 0, 0, 0, 0, -1])), "from 0 on")
y.copy_between_queues(0)
assert (vd.unique(y).read() == np.unique(a)).all()
""")


def test_edges_and_indices_of_each_queue(run: Run) -> None:
    run("""
rng = np.random.default_rng(3)
def both(a, b):
    made = vd.Buffer(a.shape, a.dtype)
    made.write(a, 0); made.write(b, 1)
    return made
# Sums of float32 weights and the bin edges of 64-bit integers are float64.
exact = context.device_infos[0].float_64_support
weighed = [vd.asbuffer(np.ones(2000, np.float32))] if exact else []
for kind, ways in ((np.float32, (None, *weighed)), (np.int64 if exact else np.int32, (None,))):
    parts = [(rng.standard_normal(2000) * scale).astype(kind) for scale in (5, 90)]
    for weights in ways:
        counts, edges = vd.histogram(both(*parts), 9, weights=weights)
        for queue, part in enumerate(parts):
            expected = np.histogram(part, 9)
            assert (counts.read(queue) == expected[0]).all() and (edges.read(queue) == expected[1]).all()
def refused(call, kind, *words):
    try: call(); vd.queue_wait_idle()
    except kind as error: assert all(word in str(error) for word in words), error
    else: assert False, words
x = vd.asbuffer(np.arange(6, dtype=np.float32))
def places(*numbers): return both(np.array([0, 1, 2]), np.array(numbers))
for good in (places(5, 4, -1),):
    assert (vd.take(x, good).read() == [[0, 1, 2], [5, 4, 5]]).all()
refused(lambda: vd.take(x, places(0, 9, 1)), IndexError, "9 at [1] on queue 1", "indices")
refused(lambda: vd.put(x, places(0, 1, -7), 1.0), IndexError, "-7 at [2] on queue 1")
assert (x.read() == [[1, 1, 1, 3, 4, 5], [1, 1, 2, 3, 4, 5]]).all()
x = vd.asbuffer(np.arange(6, dtype=np.float32))
s = vd.asbuffer(np.arange(3, dtype=np.float32))
refused(lambda: vd.searchsorted(s, x, sorter=places(0, 3, 1)), IndexError, "sorter: 3 at [1] on queue 1")
refused(lambda: vd.sort(x, segments=places(4, 2, 6)), ValueError, "segments", "2 at [1], behind 4 on queue 1")
refused(lambda: vd.cumsum(x, segments=places(4, 2, -6)), ValueError, "segments", "-6 at [2] on queue 1")
""")


def test_queue_of_a_graph(run: Run) -> None:
    run("""
data = vd.asbuffer(np.zeros(77, np.float32))
graph = vd.CommandGraph()
add(data, 1.0, graph=graph)
graph.submit()
assert data.read()[:, 0].tolist() == [1, 1]
graph.submit(queue_index=1)
graph.submit(3, 1)
assert data.read()[:, 0].tolist() == [1, 5]
graph.submit(queue_index=0)
assert data.read()[:, 0].tolist() == [2, 5]
for _ in range(10): graph.submit_any()
for _ in range(10): graph.submit(queue_index=-1)
assert data.read()[:, 0].sum() == 27
for bad in (2, -3, 1.5, "0", None):
    try: graph.submit(queue_index=bad)
    except ValueError as error: assert "queue_index" in str(error)
    else: assert False, bad
""")


def test_any_queue_selects_an_idle_queue(run: Run) -> None:
    run("""
@vd.shader(64)
def spin(data: Buff[f32], rounds: Const[u32]):
    i = vc.global_invocation_id().x
    x = data[i].to_register()
    n = vc.new_uint_register(0)
    with vc.while_block(n < rounds):
        x[:] = vc.sin(x) + 1.0
        n += 1
    data[i] = x
busy, data = vd.asbuffer(np.zeros(64, np.float32)), vd.asbuffer(np.zeros(8, np.float32))
long, short = vd.CommandGraph(), vd.CommandGraph()
spin(busy, 4000, graph=long)
add(data, 1.0, graph=short)
short.submit(); vd.queue_wait_idle()
for _ in range(6):
    for _ in range(10): long.submit(queue_index=0)
    signal = vd.Signal()
    before = data.read(1)[0]
    short.submit_any()
    still_busy = not signal.try_wait(True, 0)
    vd.queue_wait_idle()
    if still_busy: assert data.read(1)[0] == before + 1
""")


@pytest.mark.parametrize("size", [1, 1003, 70_001])
def test_copies_between_queues_keep_the_order_of_both(run: Run, size: int) -> None:
    run(f"""
rng = np.random.default_rng({size})
data = vd.asbuffer(rng.integers(0, 5, {size}).astype(np.float32))
expected = [data.read(0), data.read(0)]
one, two = vd.CommandGraph(), vd.CommandGraph()
add(data, 1.0, graph=one)
scale(data, 0.5, graph=two)
for step in range(150):
    queue = int(rng.integers(2))
    if rng.random() < 0.6:
        one.submit(queue_index=queue); expected[queue] = expected[queue] + np.float32(1)
    else:
        two.submit(queue_index=queue); expected[queue] = expected[queue] * np.float32(0.5)
    if rng.random() < 0.4:
        data.copy_between_queues(queue, [None, 1 - queue][step % 2]); expected[1 - queue] = expected[queue]
    if rng.random() < 0.05:
        fresh = rng.integers(0, 9, {size}).astype(np.float32)
        data.write(fresh, queue); expected[queue] = fresh
assert (data.read(0) == expected[0]).all() and (data.read(1) == expected[1]).all()
data.copy_between_queues(0, 0)
assert (data.read(0) == expected[0]).all()
data.copy_between_queues(0); data.destroy()
try: data.copy_between_queues(0)
except RuntimeError as error: assert "destroyed" in str(error)
""")


def test_the_interpreter_does_not_choose_a_queue(run: Run) -> None:
    run("""
data = vd.asbuffer(np.zeros(3, np.float32))
data.write(np.ones(3, np.float32), 1)
try: add.interpret(data, 1.0)
except ValueError as error: assert "'data': it has 2 copies" in str(error), error
else: raise AssertionError
host = data.read(1)
add.interpret(host, 1.0)
assert (host == 2).all() and (data.read(0) == 0).all() and (data.read(1) == 1).all()
""")


def test_threads_that_share_buffers_of_two_queues(run: Run) -> None:
    run("""
data = [vd.asbuffer(np.zeros(513, np.float32)) for _ in range(4)]
failed = []
def work(mine):
    try:
        graph = vd.CommandGraph()
        add(mine, 1.0, graph=graph)
        for step in range(60):
            graph.submit(queue_index=step % 2)
            mine.copy_between_queues(step % 2)
    except BaseException as error: failed.append(error)
threads = [threading.Thread(target=work, args=(mine,)) for mine in data]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
assert all((mine.read() == 60).all() for mine in data)
""")


def test_two_devices_are_described(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = run_python(
        BEGIN + "devices = vd.get_devices()\n"
        "assert [device.sorted_index for device in devices] == [0, 1]\n"
        "context = vd.make_context(device_ids=[1, 0], queue_counts=[1, 2])\n"
        "assert context.device_ids == [1, 0] and context.queue_families == [[0], [0, 0]]\n"
        "assert context.queue_count == 3 and len(context.device_infos) == 2\n"
        "context.device_infos[0].sub_group_size = 4; context.refresh_limits_from_device_infos()\n"
        "assert context.subgroup_size == 4\n"
        "data = vd.asbuffer(np.zeros(9, np.float32)); add(data, 2.0)\n"
        "assert data.read().shape == (3, 9) and (data.read() == 2).all() and len(data.signals) == 3\n"
        "print('good')",
        **twice_the_cpu_driver(tmp_path),
    )
    assert done.stdout.strip() == "good", done.stderr


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ("device_count=2, use_cpu=True", "[0, 1]"),
        ("multi_device=True", "[0, 1]"),
        ("multi_device=True, device_count=1", "[0]"),
        ("device_count=3", "device_count"),
        ("device_ids=[0, 1], queue_counts=[1]", "queue_counts"),
        ("device_ids=[0, 1], queue_counts=1.5", "queue_counts"),
        ("device_ids=[0, 1], queue_families=[[0]]", "queue_families"),
        ("device_ids=[0, 1], queue_families=[0, 0]", "queue_families"),
        ("device_ids=[0, 1], queue_families=3", "queue_families"),
        ("device_ids=np.int64(1)", "[1]"),
        ("device_ids=np.array([1, 0])", "[1, 0]"),
        ("device_ids='01'", "device_ids"),
        ("device_ids=1.0", "device_ids"),
        ("device_ids=0, queue_counts=1000", "queue_count"),
    ],
)
def test_which_devices(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]], arguments: str, outcome: str
) -> None:
    done = run_python(
        "import numpy as np, vkdispatch as vd\n"
        f"try: print(vd.make_context({arguments}).device_ids)\n"
        "except ValueError as error: print(str(error).partition(':')[0])",
        **twice_the_cpu_driver(tmp_path),
    )
    assert done.stdout.strip() == outcome, done.stderr


# -- signals


@vd.shader("data.size")
def increment(data: Buff[f32], amount: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + amount


def test_signals() -> None:
    data = vd.asbuffer(np.zeros(1003, np.float32))
    assert len(data.signals) == vd.get_context().queue_count
    for _ in range(300):
        increment(data, 1.0)
    signal = vd.Signal()
    assert signal.try_wait(False, 0) is True
    signal.wait(wait_for_timestamp=True, queue_index=0)
    assert signal.try_wait(True, 0) is True
    data.signals[0].wait(True, 0)
    assert data.signals[0].try_wait(True, 0) is True
    assert (data.read(0) == 300).all()


def test_a_signal_stands_for_earlier_work() -> None:
    data = vd.asbuffer(np.zeros(64, np.float32))
    graph = vd.CommandGraph()
    for _ in range(2000):
        increment(data, 1.0, graph=graph)
    increment(data, 0.0)
    early = vd.Signal()
    early.wait(True, 0)
    for _ in range(3):
        graph.submit()
    late = vd.Signal()
    assert early.try_wait(True, 0) is True
    late.wait(True, 0)
    assert late.try_wait(True, 0) is True
    assert (data.read(0) == 6000).all()


def test_invalid_signals_are_refused() -> None:
    signal = vd.Signal()
    for bad in (-1, 99, 1.5, "0"):
        with pytest.raises(ValueError, match="queue_index"):
            signal.wait(True, bad)  # type: ignore[arg-type]
    signal.free()
    signal.free()
    with pytest.raises(RuntimeError, match="freed"):
        signal.try_wait(True, 0)
    with pytest.raises(TypeError, match="ptr_addr"):
        vd.Signal(1234)
    data = vd.asbuffer(np.zeros(3, np.float32))
    data.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        _ = data.signals


def test_signals_end_with_their_context(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(
        "import vkdispatch as vd\nfrom vkdispatch.base.context import destroy_context\n"
        "signal = vd.Signal(); destroy_context()\n"
        "try: signal.wait(True, 0)\n"
        "except RuntimeError as error: print('the context of this Signal has ended' in str(error))"
    )
    assert done.stdout.strip() == "True", done.stderr
