"""Kernels, maps and what is made of them, sent to another process, which has none of the files."""

from __future__ import annotations

import linecache
import os
import pickle
import re
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp
from vkdispatch.shader import pickling as payload

cloudpickle = pytest.importorskip("cloudpickle")


class RemoteError(Exception):
    """An exception of the other process: its type and its message."""


class Other:
    """Another process, in an empty folder."""

    def __init__(self, folder: Path, *paths: Path) -> None:
        here = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        path = os.pathsep.join([*map(str, paths), *here, str(Path(vd.__file__).parents[1])])
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("there.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
        )

    def call(self, function: str, sent: bytes, *arguments: Any) -> Any:
        """Call a function of `there.py` with pickled items, and then with other arguments."""
        given, answers = self.process.stdin, self.process.stdout
        assert given is not None
        assert answers is not None
        data = pickle.dumps((function, sent, arguments))
        given.write(struct.pack("<q", len(data)) + data)
        given.flush()
        done, result = pickle.loads(answers.read(struct.unpack("<q", answers.read(8))[0]))
        if not done:
            raise RemoteError(": ".join(result))
        return result

    def close(self) -> None:
        self.process.communicate(timeout=120)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of modules that both processes can import."""
    return tmp_path_factory.mktemp("modules")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, modules: Path) -> Iterator[Other]:
    process = Other(tmp_path_factory.mktemp("empty"), modules)
    yield process
    process.close()


HEADER = """
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.codegen.abbreviations import *
from dataclasses import dataclass
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Any]:
    """Return a function that runs a text as a script whose file is gone when its functions are loaded."""
    files: list[Path] = []

    def run(text: str) -> Any:
        path = tmp_path / f"script{len(files)}.py"
        files.append(path)
        whole = HEADER + textwrap.dedent(text)
        path.write_text(whole)
        module = ModuleType("__main__")
        exec(compile(whole, str(path), "exec", dont_inherit=True), module.__dict__)

        def dumps(*items: Any) -> bytes:
            path.write_text(whole)
            linecache.checkcache()
            data: bytes = cloudpickle.dumps(items)
            path.unlink()
            return data

        return SimpleNamespace(**{**vars(module), "dumps": dumps})

    return run


def run_kernel(kernel: Any, data: Any, *arguments: Any, **options: Any) -> Any:
    buffer = vd.asbuffer(data)
    kernel(buffer, *arguments, **options)
    return buffer.read(0)


KERNELS = """
def make_scaling(factor):
    @vd.shader("data.size")
    def scale(data: Buff[f32], amount: Const[f32] = 0.5):
        i = vc.global_invocation_id().x
        data[i] = data[i] * factor + amount
    return scale

def clamp(value, least):
    # a helper with control flow
    if value < least:
        return value * 0 + least
    return value

def twice(value):
    return clamp(value, 3.0) * 2

@vd.shader("data.size")
def nested(data: Buff[f32]):
    i = vc.global_invocation_id().x
    data[i] = twice(data[i])

@dataclass
class Settings:
    scale: Const[f32]
    steps: Const[u32]

@vd.shader("data.size", local_size=32)
def with_settings(data: Buff[f32], settings: Settings):
    i = vc.global_invocation_id().x
    for _ in range(settings.steps):
        data[i] += settings.scale

TYPES = [Buff[f32], Const[f32]]

@vd.shader(lambda args: args.data.size, arg_type_annotations=TYPES, arg_names=["data", "by"])
def with_annotations(a, b):
    i = vc.global_invocation_id().x
    a[i] = a[i] - b

@vd.shader("data.size")
def with_text(data: "Buff[f32]", by: "Const[f32]"):
    i = vc.global_invocation_id().x
    data[i] = data[i] / by

@vd.shader(workgroups=4, local_size=(8, 1, 1))
def in_groups(data: Buff[f32]):
    shared = vc.shared_buffer(f32, 8)
    at = vc.local_invocation_id().x
    shared[at] = data[vc.global_invocation_id().x]
    vc.barrier()
    data[vc.global_invocation_id().x] = shared[7 - at]

TABLE = np.float32([10, 20, 30, 40])

@vd.shader("data.size")
def with_table(data: Buff[f32]):
    table = vc.constant_array(TABLE)
    i = vc.global_invocation_id().x
    data[i] += table[i % 4]

@dataclass
class Point:
    x: f32
    n: u32

POINT = vd.asbuffer(np.zeros(1, [("x", "f4"), ("n", "u4")])).var_type

@vd.shader("points.size")
def with_structures(points: Buff[Point]):
    i = vc.global_invocation_id().x
    points[i].x = points[i].x * points[i].n

@vd.shader("data.size")
def with_local_array(data: Buff[f32]):
    i = vc.global_invocation_id().x
    values = vc.local_array(f32, 4) if hasattr(vc, "local_array") else None
    x = data[i].to_register()
    for k in range(600):
        x[:] = x + 1
    data[i] = x

@vd.shader("data.size")
def deep(data: Buff[f32]):
    i = vc.global_invocation_id().x
    total = data[i]
    for k in range(3000):
        total = total + 1
    data[i] = total
"""

DATA = np.arange(32, dtype=np.float32)
REVERSED = DATA.reshape(4, 8)[:, ::-1].reshape(-1)
CASES = {
    "make_scaling(2)": ((), DATA * 2 + 0.5),
    "make_scaling(5)": ((1.0,), DATA * 5 + 1),
    "nested": ((), np.maximum(DATA, 3) * 2),
    "with_annotations": ((4.0,), DATA - 4),
    "with_text": ((4.0,), DATA / 4),
    "in_groups": ((), REVERSED),
    "with_table": ((), DATA + np.float32([10, 20, 30, 40])[np.arange(32) % 4]),
    "with_local_array": ((), DATA + 600),
    "deep": ((), DATA + 3000),
}


def test_kernels_without_their_files(other: Other, script: Callable[[str], Any]) -> None:
    made = script(KERNELS)
    items = [(eval(text, vars(made)), *case) for text, case in CASES.items()]
    for kernel, arguments, expected in items:
        sent = made.dumps(kernel)
        np.testing.assert_array_equal(other.call("run_kernel", sent, DATA, *arguments), expected)
        # what is loaded here again is the kernel itself, unless what it is traced from may change
        loaded = pickle.loads(sent)[0]
        assert (loaded is kernel) == kernel._is_fixed
        assert pickle.loads(sent)[0] is loaded
    settings = made.Settings(0.5, 3)
    sent = made.dumps(made.with_settings, DATA, settings)
    np.testing.assert_array_equal(other.call("run_kernel", sent), DATA + 1.5)


def test_structures(other: Other, script: Callable[[str], Any]) -> None:
    made = script(KERNELS)
    points = np.zeros(5, made.POINT.host)
    points["x"], points["n"] = [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]
    result = other.call("run_kernel", made.dumps(made.with_structures), points)
    np.testing.assert_array_equal(result["x"], [5, 8, 9, 8, 5])


def test_a_kernel_is_sent_as_it_is_called_here(other: Other, script: Callable[[str], Any]) -> None:
    made = script("""
        def make():
            factor = 2
            @vd.shader("data.size")
            def scale(data: Buff[f32]):
                i = vc.global_invocation_id().x
                data[i] *= factor
            def change(value):
                nonlocal factor
                factor = value
            return scale, change
    """)
    kernel, change = made.make()
    sent = made.dumps(kernel)
    change(1000)
    np.testing.assert_array_equal(run_kernel(kernel, DATA), DATA * 1000)
    np.testing.assert_array_equal(run_kernel(pickle.loads(sent)[0], DATA), DATA * 2)
    np.testing.assert_array_equal(other.call("run_kernel", sent, DATA), DATA * 2)
    np.testing.assert_array_equal(other.call("run_kernel", made.dumps(kernel), DATA), DATA * 1000)


MAPS = """
Real = np.float32

def make(limit):
    @vd.map
    def kink(x: "f32") -> "f32":
        if x > limit:
            return x * 10
        return x

    @vd.reduce.reduce(0)
    def total(a: "f32", b: "f32") -> "f32":
        return a + b

    @vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
    def kinked_total(x: Buff[f32]) -> f32:
        value = x[vd.reduce.mapped_io_index()]
        if value > limit:
            return value * 10
        return value

    @vd.scan(identity="-inf")
    def most(a: "f32", b: "f32") -> "f32":
        if a > b:
            return a
        return b

    @vnp.vectorize
    def kinked(x: "Real") -> "Real":
        if x > limit:
            return x * 10
        return x

    doubled = vd.map(lambda x: x * 2 if x > limit else x, f32, [f32])
    return kink, total, kinked_total, most, kinked, doubled
"""


def test_maps_and_what_is_made_of_them(other: Other, script: Callable[[str], Any]) -> None:
    made = script(MAPS)
    kink, total, kinked_total, most, kinked, doubled = made.make(20)
    expected = np.where(DATA > 20, DATA * 10, DATA)
    mixed = np.float32([3, 1, 4, 1, 5, 9, 2, 6])
    for function, data, result in [
        (kink, DATA, expected),
        (total, DATA, [DATA.sum()]),
        (kinked_total, DATA, [expected.sum()]),
        (most, mixed, np.maximum.accumulate(mixed)),
        (doubled, DATA, np.where(DATA > 20, DATA * 2, DATA)),
    ]:
        np.testing.assert_array_equal(other.call("run_function", made.dumps(function), data), result)
    np.testing.assert_array_equal(other.call("run_on_array", made.dumps(kinked), DATA), expected)
    # another limit is another map, also where the first one is known already
    np.testing.assert_array_equal(
        other.call("run_function", made.dumps(made.make(30)[0]), DATA), np.where(DATA > 30, DATA * 10, DATA)
    )


def test_a_map_is_sent_with_the_values_that_it_has_then(other: Other, script: Callable[[str], Any]) -> None:
    made = script("""
        def make():
            factor = 2
            @vd.map
            def scale(x: f32) -> f32:
                return x * factor
            def change(value):
                nonlocal factor
                factor = value
            return scale, change
    """)
    scale, change = made.make()
    first = made.dumps(scale)
    change(3)
    second = made.dumps(scale)
    np.testing.assert_array_equal(other.call("run_function", first, DATA), DATA * 2)
    np.testing.assert_array_equal(other.call("run_function", second, DATA), DATA * 3)


def test_called_maps_and_methods(other: Other, script: Callable[[str], Any]) -> None:
    made = script("""
        class Scaler:
            def __init__(self, factor):
                self.factor = factor

            @vd.shader("data.size")
            def scale(self, data: Buff[f32]):
                i = vc.global_invocation_id().x
                if data[i] > 2:
                    data[i] = data[i] * self.factor

            @vd.shader("self.count()")
            def scale_some(self, data: Buff[f32]):
                data[vc.global_invocation_id().x] *= self.factor

            def count(self):
                return 2

            @classmethod
            @vd.shader("data.size")
            def clear(cls, data: Buff[f32]):
                data[vc.global_invocation_id().x] = 0.0

        @vd.map
        def plus(x: f32, y: f32) -> f32:
            return x + y
    """)
    scaler = made.Scaler(3.0)
    for name, expected in [
        ("scale", np.where(DATA > 2, DATA * 3, DATA)),
        ("scale_some", np.where(DATA < 2, DATA * 3, DATA)),
        ("clear", DATA * 0),
    ]:
        sent = made.dumps(scaler)
        result = other.call("run_method", sent, name, DATA)
        np.testing.assert_array_equal(result, expected)
    result = other.call("run_through_class", made.dumps(scaler), "scale", DATA)
    np.testing.assert_array_equal(result, np.where(DATA > 2, DATA * 3, DATA))
    sent = made.dumps(made.plus(vd.asbuffer(DATA), 1))
    np.testing.assert_array_equal(other.call("read", sent), DATA + 1)


def test_functions_that_record_graphs(other: Other, script: Callable[[str], Any]) -> None:
    made = script("""
        @vd.shader("data.size")
        def add(data: Buff[f32], amount: Const[f32]):
            i = vc.global_invocation_id().x
            data[i] += amount

        @vd.map
        def square(x: f32) -> f32:
            return x * x

        OFFSETS = vd.asbuffer(np.float32([100, 200, 300]))

        @vd.shader("data.size")
        def add_offsets(data: Buff[f32], offsets: Buff[f32]):
            i = vc.global_invocation_id().x
            data[i] += offsets[i % 3]

        def record(values):
            data = vd.asbuffer(values)
            graph = vd.CommandGraph()
            add(data, 2.0, graph=graph)
            add_offsets(data, OFFSETS, graph=graph)
            graph.submit()
            graph.submit()
            return vd.sum(square(data)).read(0), data.read(0)
    """)
    squares, data = other.call("call", made.dumps(made.record), DATA)
    expected = DATA + 2 * (2 + np.float32([100, 200, 300])[np.arange(32) % 3])
    np.testing.assert_array_equal(data, expected)
    np.testing.assert_allclose(squares, (expected.astype(np.float64) ** 2).sum(), rtol=1e-6)


def test_what_a_module_has_is_sent_by_name(
    other: Other, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (modules / "their_kernels.py").write_text(
        HEADER
        + textwrap.dedent("""
            @vd.shader("data.size")
            def add(data: Buff[f32], amount: Const[f32]):
                i = vc.global_invocation_id().x
                data[i] += amount

            @vnp.vectorize
            def squared(x):
                return x * x
        """)
    )
    monkeypatch.syspath_prepend(str(modules))
    import their_kernels  # type: ignore[import-not-found]

    for dumps in (pickle.dumps, cloudpickle.dumps):
        sent = dumps(their_kernels.add)
        assert len(sent) < 200
        result = other.call("run_kernel", dumps((their_kernels.add,)), DATA, 1.0)
        np.testing.assert_array_equal(result, DATA + 1)
        assert pickle.loads(dumps(their_kernels.squared)) is their_kernels.squared
    cloudpickle.register_pickle_by_value(their_kernels)
    try:
        assert b"their_kernels" not in pickle.dumps(their_kernels.add)
    finally:
        cloudpickle.unregister_pickle_by_value(their_kernels)


def test_errors_there_have_the_lines_from_here(other: Other, script: Callable[[str], Any]) -> None:
    made = script("""
        @vd.shader("data.size", check="bounds")
        def beyond(data: Buff[f32]):
            i = vc.global_invocation_id().x
            data[i + 1] = 2.0  # the wrong line

        def inner(x):
            if x > 2:
                return x * "text"  # the other wrong line
            return x

        @vd.map
        def wrong(x: f32) -> f32:
            return inner(x)
    """)
    with pytest.raises(RemoteError, match=re.escape("script0.py:12)")) as caught:
        other.call("run_kernel", made.dumps(made.beyond), DATA)
    assert "data[i + 1] = 2.0" in str(caught.value)
    with pytest.raises(RemoteError, match=re.escape("script0.py:16)")) as caught:
        other.call("run_function", made.dumps(made.wrong), DATA)
    assert 'return x * "text"' in str(caught.value)


def test_a_file_that_is_another_one_there(other: Other, tmp_path: Path) -> None:
    # the same path has other lines by the time that the function is loaded
    path = tmp_path / "changed.py"
    text = HEADER + "@vd.map\ndef kink(x: f32) -> f32:\n    if x > 3:\n        return x * 2\n    return x\n"
    path.write_text(text)
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, str(path), "exec", dont_inherit=True), scope)
    sent = cloudpickle.dumps((scope["kink"],))
    path.write_text(text.replace("x * 2", "x * 3").replace("\nimport numpy", "\n\n\nimport numpy"))
    result = other.call("run_function", sent, DATA)
    np.testing.assert_array_equal(result, np.where(DATA > 3, DATA * 2, DATA))


def test_compiled_once_however_often_it_is_loaded(other: Other, script: Callable[[str], Any]) -> None:
    made = script(KERNELS)
    kernel = pickle.dumps(made.make_scaling(7))
    kink = pickle.dumps(script(MAPS).make(20)[0])
    assert other.call("count_compilations", pickle.dumps((kernel, kink))) == [1, 1]
    assert other.call("is_same_after_two_ways", pickle.dumps((kernel,)))


def test_loaded_kernels_do_not_pile_up(other: Other, script: Callable[[str], Any]) -> None:
    made = script(KERNELS)
    sent = [pickle.dumps(made.make_scaling(factor)) for factor in range(300)]
    assert other.call("count_kept", pickle.dumps((sent,))) <= payload._MAX_RECENT


def test_what_lies_on_a_device_is_refused_by_name(script: Callable[[str], Any]) -> None:
    made = script("""
        weights = vd.asbuffer(np.float32([1, 2, 3]))

        def weigh(x):
            return x * weights[0]

        @vd.map
        def weighed(x: f32) -> f32:
            return weigh(x)

        @vd.shader("data.size")
        def clear(data: Buff[f32] = weights):
            data[vc.global_invocation_id().x] = 0

        def make(array):
            @vnp.vectorize
            def scaled(x):
                return x * array
            return scaled
    """)
    with pytest.raises(vd.ArgumentTypeError, match=r"map 'weighed' .* 'weigh' refers to 'weights', a Buffer"):
        pickle.dumps(made.weighed)
    with pytest.raises(pickle.PicklingError, match=r"kernel clear .*cannot be pickled.* a Buffer.* argument"):
        pickle.dumps(made.clear)
    with pytest.raises(pickle.PicklingError, match=r"function 'scaled' .* refers to 'array', a Array"):
        pickle.dumps(made.make(vnp.asarray(3.0)))


def test_without_cloudpickle(script: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = script(KERNELS)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(pickle.PicklingError, match=r"kernel scale .*cannot be pickled.*install cloudpickle"):
        pickle.dumps(made.make_scaling(2))


def test_another_version(script: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = script(KERNELS)
    kernel = made.make_scaling(2)
    with monkeypatch.context() as patch:
        patch.setattr(payload, "_name_version", lambda: "cpython-399, vkdispatch 9.9")
        data = payload.make_payload(made.make_scaling(13))
    with pytest.raises(
        pickle.UnpicklingError, match=r"pickled by value by cpython-399.*this process runs cpython"
    ):
        payload._load(data)
    assert payload._load(payload.make_payload(kernel)).name == "scale"


def test_tokens(script: Callable[[str], Any], other: Other) -> None:
    tokenize = pytest.importorskip("dask.base").tokenize
    made = script(KERNELS + MAPS)
    for make in (made.make_scaling, *(lambda x, at=at: made.make(x)[at] for at in (0, 2, 4, 5))):
        first, same, another = make(2), make(2), make(3)
        assert tokenize(first, ensure_deterministic=True) == tokenize(same, ensure_deterministic=True)
        assert tokenize(first) != tokenize(another)
    kernel = made.make_scaling(2)
    assert other.call("tokenize", made.dumps(kernel)) == tokenize(kernel)
    kernels = [made.nested, made.with_table, made.in_groups, made.with_text, made.with_structures]
    assert len({tokenize(each) for each in kernels}) == len(kernels)
    tables = [np.float32([1, 2]), np.float32([1, 3])]
    with_tables = []
    for table in tables:
        vars(made)["table"] = table
        with_tables.append(tokenize(script(_WITH_TABLE.format(*table)).kernel))
    assert len(set(with_tables)) == 2


_WITH_TABLE = """
@vd.shader("data.size")
def kernel(data: Buff[f32]):
    data[vc.global_invocation_id().x] = vc.constant_array(np.float32([{}, {}]))[0]
"""


def test_dask_pickles_kernels(script: Callable[[str], Any]) -> None:
    pickles = pytest.importorskip("distributed.protocol.pickle")
    made = script(KERNELS)
    kernel = made.make_scaling(2)
    loaded = pickles.loads(pickles.dumps(kernel))
    assert pickles.loads(pickles.dumps(kernel)) is loaded  # not the kernel, whose factor may change
    function, _ = pickles.loads(pickles.dumps((made.twice, kernel)))
    assert function(4.0) == 8


def test_launch_sizes_and_defaults_are_those_of_then(other: Other, script: Callable[[str], Any]) -> None:
    made = script("""
        @dataclass
        class Settings:
            scale: Const[f32]

        def make():
            count = 2
            settings = Settings(3.0)

            @vd.shader(lambda args: count)
            def scale(data: Buff[f32], settings: Settings = settings):
                data[vc.global_invocation_id().x] *= settings.scale

            def change(value):
                nonlocal count
                count = value
                settings.scale = 10.0

            return scale, change
    """)
    scale, change = made.make()
    first = made.dumps(scale)
    change(4)
    second = made.dumps(scale)
    for sent, count, factor in [(first, 2, 3), (second, 4, 10)]:
        expected = np.where(np.arange(32) < count, DATA * factor, DATA)
        np.testing.assert_array_equal(other.call("run_kernel", sent, DATA), expected)
    np.testing.assert_array_equal(run_kernel(scale, DATA), np.where(np.arange(32) < 4, DATA * 10, DATA))


def test_buffers_of_structures(other: Other, script: Callable[[str], Any]) -> None:
    made = script(KERNELS)
    points = np.zeros(3, made.POINT.host)
    points["x"], points["n"] = [1, 2, 3], [3, 2, 1]
    sent = made.dumps(made.with_structures, vd.asbuffer(points))
    assert other.call("run_on_buffer", sent)["x"].tolist() == [3, 4, 3]


def test_tasks_of_a_cluster(script: Callable[[str], Any]) -> None:
    distributed = pytest.importorskip("distributed")
    made = script("""
        from vkdispatch.shader.launchable import LaunchableKernel

        def make(limit):
            @vd.shader("data.size", check="bounds")
            def clip(data: Buff[f32], offset: Const[i32] = 0):
                i = vc.global_invocation_id().x
                if data[i + offset] > limit:
                    data[i] = limit

            def task(values, offset):
                data = vd.asbuffer(values)
                clip(data, offset)
                return data.read(0)

            def count(values):
                builds = []
                original = LaunchableKernel._compile

                def compile_kernel(self, *arguments):
                    builds.append(self.name)
                    return original(self, *arguments)

                LaunchableKernel._compile = compile_kernel
                try:
                    task(values, 0)
                finally:
                    LaunchableKernel._compile = original
                return len(builds)

            return task, count
    """)
    task, count = made.make(5)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        parts = [DATA + index for index in range(6)]
        for found, part in zip(client.gather(client.map(task, parts, [0] * 6)), parts, strict=True):
            np.testing.assert_array_equal(found, np.minimum(part, 5))
        workers = list(client.scheduler_info()["workers"])
        builds = [
            client.submit(count, DATA, workers=worker, pure=False).result()
            for worker in workers
            for _ in range(3)
        ]
        # each worker has built the kernel for its first task, and no later one builds it again
        assert sum(builds) <= len(workers)
        assert builds[2::3] == [0] * len(workers)
        with pytest.raises(IndexError, match=r"script0\.py:15\)\n    if data\[i \+ offset\] > limit:"):
            client.submit(task, DATA, 1).result()
