"""Profiles: what is recorded, when, with which bytes, and what is made of it."""

from __future__ import annotations

import inspect
import itertools
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.synchronization import Timing
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, SImg2, Var, f32
from vkdispatch.shader.measurement import devices as bandwidth
from vkdispatch.shader.measurement import profile
from vkdispatch.shader.measurement import profile as profile_trace

COUNT = 3001


@pytest.fixture(autouse=True)
def _cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path))
    monkeypatch.setattr(bandwidth, "_CPU_BYTES", 16 << 20)
    monkeypatch.setattr(bandwidth, "_RUNS", 2)


@vd.shader("y.size")
def saxpy(y: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
    tid = vc.global_invocation_id().x
    y[tid] = a * x[tid] + y[tid]


@vd.shader("y.size")
def fill(y: Buff[f32], value: Var[f32]) -> None:
    y[vc.global_invocation_id().x] = value


def line_of(kernel: vd.ShaderFunction) -> str:
    """Where the decorator of a kernel of this file stands."""
    lines, _ = inspect.getsourcelines(inspect.getmodule(line_of))  # type: ignore[arg-type]
    name = next(number for number, text in enumerate(lines, 1) if text.startswith(f"def {kernel.name}("))
    return f"test_profile.py:{name - 1}"


def buffers(count: int = COUNT) -> tuple[vd.Buffer[Any], vd.Buffer[Any]]:
    return vd.asbuffer(np.ones(count, np.float32)), vd.asbuffer(np.ones(count, np.float32))


def kernels_of(p: vd.Profile) -> list[Any]:
    return [item for item in p.records if item.kind == "kernel"]


# ---- what is recorded


def test_names_lines_bytes_and_times() -> None:
    y, x = buffers()
    saxpy(y, x, 1.0)
    before = time.perf_counter()
    with vd.profile() as p:
        saxpy(y, x, 2.0)
        fill(x, 1.0)
        saxpy(y, x, 2.0)
    after = time.perf_counter()
    records = kernels_of(p)
    assert [item.name for item in records] == ["saxpy", "fill", "saxpy"]
    assert [item.source for item in records] == [line_of(saxpy), line_of(fill), line_of(saxpy)]
    assert [(item.bytes_read, item.bytes_written) for item in records] == [
        (8 * COUNT, 4 * COUNT),
        (0, 4 * COUNT),
        (8 * COUNT, 4 * COUNT),
    ]
    assert {item.precision for item in records} == {"exact"}
    assert all(item.invocations == (COUNT, 1, 1) and item.queue == 0 for item in records)
    assert all(before <= item.begin < item.end <= after for item in records)
    # each needs what the one before wrote
    assert all(a.end <= b.begin for a, b in itertools.pairwise(records))
    assert 0 < p.seconds <= after - before


def test_nothing_is_recorded_outside() -> None:
    y, x = buffers()
    for _ in range(20):
        saxpy(y, x, 1.0)
    with vd.profile() as p:
        pass
    saxpy(y, x, 1.0)
    vd.queue_wait_idle()
    assert p.records == []
    with vd.profile() as p:
        fill(x, 1.0)
    assert [item.name for item in kernels_of(p)] == ["fill"]


def test_many_commands_in_several_batches() -> None:
    y, x = buffers(8)
    with vd.profile() as p:
        for _ in range(5000):
            saxpy(y, x, 0.0)
    assert len(kernels_of(p)) == 5000
    begins = [item.begin for item in p.records]
    assert begins == sorted(begins)
    assert sum(submit.commands for submit in p.submits) >= 5000


@pytest.mark.parametrize("submits", [1, 4])
def test_graphs_are_recorded_launch_by_launch(submits: int) -> None:
    y, x = buffers()
    graph = vd.CommandGraph()
    for _ in range(3):
        saxpy(y, x, 1.0, graph=graph)
    fill(x, graph.bind_var("value"), graph=graph)
    graph.set_var("value", [1.0, 1.0])
    for _ in range(3):
        graph.submit(2)  # from the second on it is replayed
    with vd.profile() as p:
        for _ in range(submits):
            graph.submit(2)
    names = [item.name for item in kernels_of(p)]
    assert names == ["saxpy", "saxpy", "saxpy", "fill"] * 2 * submits
    assert sum(item.bytes for item in kernels_of(p)) == (3 * 12 + 4) * COUNT * 2 * submits
    graph.submit(2)
    expected = 1 + 3 * 2 * (3 + submits + 1)
    np.testing.assert_array_equal(y.read(0), np.full(COUNT, expected, np.float32))


def test_groups_and_workgroup_kernels() -> None:
    @vd.shader(workgroups=5, local_size=(8, 2, 1))
    def grouped(y: Buff[f32]) -> None:
        y[vc.workgroup_id().x] = 1

    y = vd.Buffer(5, f32)
    with vd.profile() as p:
        grouped(y)
    (item,) = kernels_of(p)
    assert (item.groups, item.invocations) == ((5, 1, 1), (40, 2, 1))
    assert (item.bytes_read, item.bytes_written) == (0, 20)


def test_loop_counts_come_from_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    @vd.shader("y.size")
    def rows(y: Buff[f32], x: Buff[f32], n: Const[vd.int32]) -> None:
        tid = vc.global_invocation_id().x
        total = vc.new_float_register(0)
        with vc.for_block(n) as k:
            total += x[tid.to_dtype(vd.int32) * n + k]
        y[tid] = total

    y, x = vd.Buffer(10, f32), vd.asbuffer(np.ones(1000, np.float32))
    vd.get_context().kept.pop("loops.limit", None)  # what measures it is not part of profiles
    monkeypatch.setattr(disk_cache, "load", lambda *key: None)
    with vd.profile() as p:
        rows(y, x, 7)
        rows(y, x, 50)
    assert [item.bytes_read for item in kernels_of(p)] == [4 * 70, 4 * 500]


def test_images() -> None:
    @vd.shader(lambda args: args.out.shape[::-1])
    def sampled(out: SImg2[f32], image: Img2[f32]) -> None:
        g = vc.global_invocation_id()
        at = vc.to_dtype(vd.ivec2, g.x, g.y)
        out[at] = image.sample(vc.to_dtype(vd.vec2, g.x, g.y)).x

    image = vd.Image2D((6, 9), vd.float32, 1)
    out = vd.Image2D((6, 9), vd.float32, 1)
    image.write(np.ones((6, 9), np.float32))
    with vd.profile() as p:
        sampled(out, image.sample())
        out.read(0)
    (item,) = kernels_of(p)
    assert item.bytes_written == 6 * 9 * 4
    assert item.bytes_read == 6 * 9 * 4
    copies = [item for item in p.records if item.kind == "read image"]
    assert sum(item.bytes for item in copies) == 6 * 9 * 4


def test_raw_kernels_have_a_name_and_no_bytes() -> None:
    raw = vd.glsl_kernel(
        "#version 450\nlayout(local_size_x = 8) in;\n"
        "layout(set = 0, binding = 0) buffer B { float data[]; };\n"
        "void main() { data[gl_GlobalInvocationID.x] = 3.0; }",
        {"data": Buff[f32]},
        workgroups=2,
        name="by_hand",
    )
    data = vd.Buffer(16, f32)
    with vd.profile() as p:
        raw(data)
    (item,) = kernels_of(p)
    assert (item.name, item.bytes, item.precision) == ("by_hand", None, None)
    assert item.source is not None
    assert item.source.startswith("test_profile.py:")
    assert item.invocations == (16, 1, 1)
    assert "-" in p.table().splitlines()[1].split()


def test_a_kernel_that_is_gone_keeps_its_name() -> None:
    y = vd.Buffer(64, f32)
    with vd.profile() as p:

        def launch() -> None:
            @vd.shader("y.size")
            def passing(y: Buff[f32]) -> None:
                y[vc.global_invocation_id().x] = 1

            passing(y)

        launch()
    assert [(item.name, item.bytes) for item in kernels_of(p)] == [("passing", 256)]


def test_launches_of_other_threads_count() -> None:
    threads_count, each = 4, 50
    pairs = [buffers(64) for _ in range(threads_count)]
    saxpy(*pairs[0], 0.0)

    def work(pair: tuple[Any, Any]) -> None:
        for _ in range(each):
            saxpy(*pair, 0.0)

    with vd.profile() as p:
        threads = [threading.Thread(target=work, args=(pair,)) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(kernels_of(p)) == threads_count * each


# ---- blocks


def test_profiles_within_profiles() -> None:
    y, x = buffers()
    with vd.profile() as outer:
        saxpy(y, x, 1.0)
        with vd.profile() as inner:
            fill(x, 1.0)
        saxpy(y, x, 1.0)
    assert [item.name for item in kernels_of(inner)] == ["fill"]
    assert [item.name for item in kernels_of(outer)] == ["saxpy", "fill", "saxpy"]


def test_profiles_that_overlap() -> None:
    y, x = buffers()
    first, second = vd.profile(), vd.profile()
    first.__enter__()
    saxpy(y, x, 1.0)
    second.__enter__()
    fill(x, 1.0)
    first.__exit__(None, None, None)
    saxpy(y, x, 1.0)
    second.__exit__(None, None, None)
    assert [item.name for item in kernels_of(first)] == ["saxpy", "fill"]
    assert [item.name for item in kernels_of(second)] == ["fill", "saxpy"]


def test_a_profile_may_be_used_again_but_not_within_itself() -> None:
    y, x = buffers()
    p = vd.profile()
    with p:
        saxpy(y, x, 1.0)
        with pytest.raises(vd.UsageError, match="running already"), p:
            pass
        with pytest.raises(vd.UsageError, match="still running"):
            p.table()
        assert "running" in str(p)
    assert len(kernels_of(p)) == 1
    with p:
        fill(y, 1.0)
        fill(y, 1.0)
    assert [item.name for item in kernels_of(p)] == ["fill", "fill"]


def test_errors_inside_the_block_pass() -> None:
    y, x = buffers()
    p = vd.profile()
    with pytest.raises(ZeroDivisionError), p:
        saxpy(y, x, 1.0)
        raise ZeroDivisionError
    assert len(kernels_of(p)) == 1
    with vd.profile() as after:
        pass
    assert after.records == []


def test_timing_ends_with_the_last_profile() -> None:
    y, x = buffers()
    with vd.profile():
        pass
    graph = vd.CommandGraph()
    for _ in range(10):
        saxpy(y, x, 1.0, graph=graph)
    for _ in range(2):
        graph.submit()
    engine = vd.get_context()._native
    before = engine.statistics()["commands"]
    graph.submit()  # one replay, not ten dispatches
    assert engine.statistics()["commands"] == before + 1
    with vd.profile():
        graph.submit()
    assert engine.statistics()["commands"] == before + 11


def test_native_refuses_wrong_calls() -> None:
    engine = vd.get_context()._native
    with pytest.raises(ValueError, match="since"):
        native.timings(engine, [0])
    timing = Timing(vd.get_context())
    commands, submits = timing.finish()
    timing.stop()
    assert (commands, submits) == ([], [])


def test_without_a_context_or_with_one_that_ends(run_python: Callable[..., Any]) -> None:
    done = run_python(
        "import numpy as np, vkdispatch as vd\n"
        "from vkdispatch.base.context import destroy_context\n"
        "try:\n"
        "    with vd.profile():\n"
        "        vd.asbuffer(np.zeros(4, np.float32))\n"
        "        destroy_context()\n"
        "except vd.UsageError as error:\n"
        "    print(error)\n"
        "try:\n"
        "    with vd.profile():\n"
        "        destroy_context()\n"
        "        raise KeyError('mine')\n"
        "except KeyError as error:\n"
        "    print(error)\n"
        "with vd.profile() as p:\n"
        "    pass\n"
        "print(len(p.records))\n"
        "p = vd.profile().__enter__()\n"  # never ended
    )
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert "nothing is left of the profile" in first
    assert (second, third) == ("'mine'", "0")


def test_failed_work_ends_a_profile_with_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise vd.DeviceLostError("it stopped")

    monkeypatch.setattr(Timing, "finish", fail)
    with pytest.raises(vd.DeviceLostError, match="it stopped") as raised, vd.profile():
        pass
    assert raised.value.__notes__ == ["nothing is left of the profile"]
    with pytest.raises(KeyError, match="mine"), vd.profile():
        raise KeyError("mine")


def test_the_dummy_backend_has_nothing_to_time(run_python: Callable[..., Any]) -> None:
    done = run_python(
        "import vkdispatch as vd\n"
        "vd.initialize(backend='dummy')\n"
        "try:\n"
        "    vd.profile().__enter__()\n"
        "except vd.UsageError as error:\n"
        "    print(error)\n"
    )
    assert "dummy" in done.stdout, done.stderr


QUEUES = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32
vd.make_context(queue_counts=3)
@vd.shader("data.size")
def bump(data: Buff[f32]):
    data[vc.global_invocation_id().x] += 1
data = vd.asbuffer(np.zeros(500, np.float32))
graph = vd.CommandGraph()
bump(data, graph=graph)
with vd.profile() as p:
    bump(data)
    graph.submit(2, 1)
    data.read(0)
kernels = [item for item in p.records if item.kind == "kernel"]
print(sorted(item.queue for item in kernels), {item.bytes for item in kernels})
print(sorted({item.kind for item in p.records}))
assert all(item.begin <= item.end for item in p.records)
p.to_chrome_trace(__import__("sys").argv[1])
"""


@pytest.mark.parametrize("setting", ["", "VKDISPATCH_NO_CALIBRATION", "VKDISPATCH_FORCE_STAGING"])
def test_several_queues(run_python: Callable[..., Any], tmp_path: Path, setting: str) -> None:
    trace = tmp_path / "trace.json"
    done = run_python(QUEUES, str(trace), **({setting: "1"} if setting else {}))
    assert done.returncode == 0, done.stderr
    queues, kinds = done.stdout.splitlines()
    assert queues == "[0, 1, 1, 1, 2] {4000}"
    if "STAGING" in setting:
        assert kinds == "['kernel', 'read buffer']"
    events = json.loads(trace.read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"queue 0", "queue 1", "queue 2"} <= names


def test_nothing_runs_before_it_is_submitted(run_python: Callable[..., Any]) -> None:
    """Also where clocks are compared by submits, which the host may take long for."""
    code = """
import vkdispatch as vd
x = vd.Buffer(8, vd.float32)
for _ in range(20):
    with vd.profile() as p:
        vd.flip(x)
    assert p.records and min(r.begin for r in p.records) >= min(s.begin for s in p.submits)
print("done")
"""
    done = run_python(code, VKDISPATCH_NO_CALIBRATION="1")
    assert done.stdout == "done\n", done.stderr


# ---- the table and the trace


def test_table() -> None:
    y, x = buffers(1 << 16)
    saxpy(y, x, 1.0)
    with vd.profile() as p:
        for _ in range(3):
            saxpy(y, x, 1.0)
        fill(x, 1.0)
    rows = {row.name: row for row in p.rows()}
    assert set(rows) == {"saxpy", "fill"}
    row, records = rows["saxpy"], [item for item in p.records if item.name == "saxpy"]
    times = [item.duration for item in records]
    assert (row.calls, row.source, row.bytes) == (3, line_of(saxpy), 3 * 12 << 16)
    assert row.total == pytest.approx(sum(times))
    assert row.mean == pytest.approx(sum(times) / 3)
    assert row.least == min(times)
    assert row.bandwidth == pytest.approx((3 * 12 << 16) / sum(times))
    limit = bandwidth.measure_copy_bandwidth(vd.get_context(), 0)
    assert limit is not None
    assert row.share == pytest.approx(row.bandwidth / limit)
    text = str(p)
    assert text == p.table()
    lines = text.splitlines()
    assert lines[0].split() == [
        "kernel",
        "where",
        "calls",
        "total",
        "ms",
        "mean",
        "us",
        "min",
        "us",
        "bytes",
        "GB/s",
        "of",
        "copy",
    ]
    shown = next(line for line in lines if line.startswith("saxpy"))
    assert shown.split()[1:3] == [line_of(saxpy), "3"]
    assert "768 KiB" in shown
    assert shown.endswith("%")
    assert lines[-1].startswith("4 commands in ")
    # the kernels that measure are no part of anything
    assert "measurement" not in text


def test_estimates_and_lower_bounds_are_marked() -> None:
    @vd.shader("y.size")
    def sometimes(y: Buff[f32], x: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        with vc.if_block(x[tid] > 0):
            y[tid] = 1

    @vd.shader("y.size")
    def search(y: Buff[f32], x: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        with vc.while_block(y[tid] < x[0]):
            y[tid] += 1

    y, x = buffers()
    with vd.profile() as p:
        sometimes(y, x)
    assert kernels_of(p)[0].precision == "about"
    assert "~" in p.table()
    with vd.profile() as p:
        search(y, x)
    assert kernels_of(p)[0].precision == "at least"
    assert ">=" in p.table()


def test_copy_bandwidth_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    context = vd.get_context()
    monkeypatch.setattr(bandwidth, "_measured_bandwidth", {})
    runs = []
    real = bandwidth._time_fastest_copy

    def fastest(*arguments: Any) -> float:
        runs.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(bandwidth, "_time_fastest_copy", fastest)
    first = bandwidth.measure_copy_bandwidth(context, 0)
    assert first is not None
    assert 1e6 < first < 1e14
    assert bandwidth.measure_copy_bandwidth(context, 0) == first
    bandwidth._measured_bandwidth.clear()  # as in another process
    assert bandwidth.measure_copy_bandwidth(context, 0) == first
    assert len(runs) == 1


def test_measuring_inside_a_profile_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    y, x = buffers()
    monkeypatch.setattr(bandwidth, "_measured_bandwidth", {})
    with vd.profile() as outer:
        with vd.profile() as inner:
            saxpy(y, x, 1.0)
        inner.table()
    assert [item.name for item in kernels_of(outer)] == ["saxpy"]


def test_no_room_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> float:
        raise MemoryError

    monkeypatch.setattr(bandwidth, "_measured_bandwidth", {})
    monkeypatch.setattr(bandwidth, "_time_fastest_copy", full)
    y, x = buffers()
    with vd.profile() as p:
        saxpy(y, x, 1.0)
    assert p.rows()[0].share is None
    assert p.table().splitlines()[1].endswith(" -")


def test_trace(tmp_path: Path) -> None:
    y, x = buffers()
    with vd.profile() as p:
        saxpy(y, x, 1.0)
        fill(x, 1.0)
    path = tmp_path / "trace.json"
    p.to_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    kernels = [event for event in spans if event["cat"] == "kernel"]
    assert [event["name"] for event in kernels] == ["saxpy", "fill"]
    assert kernels[0]["args"]["source"] == line_of(saxpy)
    assert kernels[0]["args"]["bytes read"] == 8 * COUNT
    assert kernels[0]["args"]["invocations"] == [COUNT, 1, 1]
    for event, item in zip(kernels, p.records, strict=True):
        assert event["dur"] == pytest.approx(item.duration * 1e6)
        assert 0 <= event["ts"] <= p.seconds * 1e6
    submits = [event for event in spans if event["cat"] == "submit"]
    assert sum(event["args"]["commands"] for event in submits) == 2
    assert all(event["ts"] <= kernels[-1]["ts"] for event in submits)
    with pytest.raises(OSError, match="missing"):
        p.to_chrome_trace(tmp_path / "missing" / "trace.json")


def test_overlapping_commands_get_tracks_of_their_own(tmp_path: Path) -> None:
    def item(begin: float, end: float) -> Any:
        return profile.ProfileRecord("kernel", "k", None, 1, begin, end, (1, 1, 1), None, None, None, None)

    path = tmp_path / "trace.json"
    profile_trace.write_trace(path, [item(0, 2), item(1, 3), item(2.5, 4), item(3, 5)], [], 0.0)
    events = json.loads(path.read_text())["traceEvents"]
    tracks: dict[int, list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            tracks.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(tracks) == 2
    for spans in tracks.values():
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


FORMS = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32
@vd.shader("y.size")
def smooth(y: Buff[f32], x: Buff[f32]):
    tid = vc.global_invocation_id().x
    with vc.if_block(vc.all(tid > 0, tid < y.shape.w - 1)):
        y[tid] = x[tid - 1] + x[tid + 1]
x, y = (vd.asbuffer(np.ones(3001, np.float32)) for _ in range(2))
with vd.profile() as p:
    smooth(y, x)
(item,) = (item for item in p.records if item.kind == "kernel")
print(item.invocations, item.bytes_read, item.bytes_written, item.precision)
"""


@pytest.mark.parametrize("form", ["", "coarse", "addressed", "wide"])
def test_all_forms_of_a_kernel_count_the_same(run_python: Callable[..., Any], form: str) -> None:
    done = run_python(FORMS, VKDISPATCH_FORCE_VARIANT=form)
    assert done.stdout.strip() == f"(3001, 1, 1) {4 * 3001} {4 * 3001} about", done.stderr


TRANSFERS = """
import json, sys
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32
@vd.shader("data.size")
def bump(data: Buff[f32]):
    data[vc.global_invocation_id().x] += 1
data, pinned = vd.Buffer(1 << 16, f32), vd.empty_pinned((1 << 16,), np.float32)
pinned[:] = 3
data.write_async(pinned)  # before the profile
with vd.profile() as p:
    data.write_async(pinned)
    bump(data)
    data.read_async(0, out=pinned).result()
assert (pinned == 4).all()
print([(item.kind, item.transfer, item.bytes) for item in p.records])
assert all(a.end <= b.begin for a, b in zip(p.records, p.records[1:]))
p.to_chrome_trace(sys.argv[1])
events = json.load(open(sys.argv[1]))["traceEvents"]
print(sorted({e["args"]["name"] for e in events if e["ph"] == "M"}))
"""


def test_queues_that_move_data_are_timed(run_python: Callable[..., Any], tmp_path: Path) -> None:
    setting = {"VKDISPATCH_FORCE_STAGING": "1", "VKDISPATCH_FORCE_TRANSFER_QUEUE": "1"}
    done = run_python(TRANSFERS, str(tmp_path / "trace.json"), **setting)
    assert done.returncode == 0, done.stderr
    records, names = done.stdout.splitlines()
    assert records == str(
        [("write buffer", True, 4 << 16), ("kernel", False, 8 << 16), ("read buffer", True, 4 << 16)]
    )
    assert "queue 0, transfers" in names
    assert "submits to queue 0, transfers" in names
