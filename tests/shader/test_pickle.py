"""Kernels, maps, reductions, scans and generators: copied, pickled, and sent to other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32
from vkdispatch.shader import pickling as payload

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
WAYS: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *(lambda item, protocol=protocol: pickle.loads(pickle.dumps(item, protocol)) for protocol in PROTOCOLS),
]
BY_VALUE = [copy.deepcopy, *(WAYS[2 + protocol] for protocol in (2, 5))]


@vd.shader("data.size")
def add(data: Buff[f32], amount: Const[f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] + amount


@vd.map
def scaled(x: f32, by: f32) -> f32:
    return x * by


def _plus(value: f32, other: f32) -> f32:
    return value + other


plus = vd.map(_plus)


@vd.reduce.reduce(0)
def total(a: f32, b: f32) -> f32:
    return a + b


@vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
def total_of_squares(x: Buff[f32]) -> f32:
    value = x[vd.reduce.mapped_io_index()]
    return value * value


@vd.scan(identity=0)
def running(a: f32, b: f32) -> f32:
    return a + b


class Scaler:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @vd.shader("data.size")
    def scale(self, data: Buff[f32]):
        i = vc.global_invocation_id().x
        data[i] = data[i] * self.factor

    @vd.shader("self.count()")
    def scale_some(self, data: Buff[f32]):
        i = vc.global_invocation_id().x
        data[i] = data[i] * self.factor

    def count(self) -> int:
        return 2

    @staticmethod
    @vd.shader("data.size")
    def clear(data: Buff[f32]):
        data[vc.global_invocation_id().x] = 0.0


with vc.shader_context() as _context:
    (_data,) = _context.declare_input_arguments([Buff[f32]], ["data"])
    _data[vc.global_invocation_id().x] = 1.0
built = vd.make_shader_function(_context.get_description("built_by_hand"), exec_count="data.size")


def numbers() -> vd.Buffer[Any]:
    return vd.asbuffer(np.float32([1, 2, 3]))


BY_NAME = [add, scaled, plus, total, total_of_squares, running, built, Scaler.scale, Scaler.clear]
BY_NAME += [vd.reduce.SubgroupAdd, vd.reduce.SubgroupMax]


@pytest.mark.parametrize("item", BY_NAME, ids=range(len(BY_NAME)))
def test_what_a_module_has_is_itself(item: Any) -> None:
    for way in WAYS:
        assert way(item) is item
    assert copy.deepcopy({"kernel": [item]})["kernel"][0] is item


def test_kernels_of_instances_are_copied_with_them() -> None:
    scaler = Scaler(3)
    assert copy.copy(scaler.scale) is scaler.scale
    for way in (copy.deepcopy, WAYS[-1]):
        for kernel, expected in [(scaler.scale, [3, 6, 9]), (scaler.scale_some, [3, 6, 3])]:
            made = way(kernel)
            scaler.factor = 100  # the copy has its own instance
            data = numbers()
            made(data)
            assert data.read(0).tolist() == expected
            scaler.factor = 3
    pair = copy.deepcopy([scaler, scaler.scale])
    assert pair[0].scale is pair[1]


def test_a_kernel_whose_instance_is_gone() -> None:
    kernel = Scaler(2).scale
    with pytest.raises(vd.ArgumentTypeError, match=r"kernel scale .*instance .* is gone"):
        pickle.dumps(kernel)


def local_kernel() -> Any:
    @vd.shader("data.size")
    def local(data: Buff[f32]):
        data[vc.global_invocation_id().x] = 1.0

    return local


def test_what_no_module_has_is_pickled_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    @vd.map
    def local_map(x: f32) -> f32:
        return x * 2

    @vd.reduce.reduce(0)
    def local_total(a: f32, b: f32) -> f32:
        return a + b

    @vd.scan
    def local_running(a: f32, b: f32) -> f32:
        return a + b

    kernel = local_kernel()
    for protocol in PROTOCOLS[2:]:
        assert pickle.loads(pickle.dumps(kernel, protocol)) is kernel
        made = [
            pickle.loads(pickle.dumps(each, protocol)) for each in (local_map, local_total, local_running)
        ]
        assert [each(numbers()).read(0).tolist() for each in made] == [[2, 4, 6], [6], [1, 3, 6]]
        # maps with equal functions are equal, so that plans for one serve the other
        again = pickle.loads(pickle.dumps(local_map, protocol))
        assert again == made[0] != local_map
    assert copy.copy(kernel) is kernel
    assert copy.deepcopy([kernel])[0] is kernel
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    for item, words in [
        (local_kernel(), r"kernel local \(test_pickle.py:\d+\) cannot be pickled.*install cloudpickle"),
        (local_map, "map 'local_map' cannot be pickled.*it is defined in a function"),
        (local_map(numbers()), "map 'local_map' cannot be pickled"),
        (local_total, "reduction 'local_total' cannot be pickled"),
        (local_running, "scan 'local_running' cannot be pickled"),
    ]:
        with pytest.raises(pickle.PicklingError, match=words) as caught:
            pickle.dumps(item)
        assert isinstance(caught.value, vd.ArgumentTypeError)


def test_a_name_that_is_another_object_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "add", None)
    assert pickle.loads(pickle.dumps(BY_NAME[0])) is BY_NAME[0]


def test_a_pickle_of_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(scaled)
    monkeypatch.delitem(globals(), "scaled")
    with pytest.raises(pickle.PicklingError, match=r"refers to .*scaled, which this process does not have"):
        pickle.loads(data)


def test_maps_called_travel_with_their_arguments() -> None:
    x, by = numbers(), vd.asbuffer(np.float32([[1], [10]]))
    mapped = scaled(plus(x, 1), by)
    expected = (np.float32([1, 2, 3]) + 1) * np.float32([[1], [10]])
    shallow = copy.copy(mapped)
    assert shallow is not mapped
    assert shallow.arguments == mapped.arguments
    made = [way(mapped) for way in BY_VALUE]
    x.write(np.zeros(3, np.float32))
    for each in made:
        assert (each.shape, each.mapping) == ((2, 3), scaled)
        np.testing.assert_array_equal(each.read(0), expected)
    for way in BY_VALUE:
        to = way(plus(by))
        assert to.shape == (2, 1)
        result = vd.cumsum(vd.asbuffer(np.ones((2, 3), np.float32)), axis=1, output_map=to).read(0)
        np.testing.assert_array_equal(result, np.float32([[2, 3, 4], [11, 12, 13]]))


def test_raw_kernels_travel_by_value() -> None:
    source = """
        #version 450
        layout(local_size_x_id = 0) in;
        layout(constant_id = 1) const uint STEP = 1;
        layout(set = 0, binding = 0) buffer Data { uint data[]; };
        layout(push_constant) uniform Numbers { uint amount; };
        void main() {
            uint i = gl_GlobalInvocationID.x;
            if (i < data.length()) data[i] += amount * STEP;
        }
    """
    kernel = vd.glsl_kernel(
        source, [("data", Buff[u32]), ("amount", Const[u32])], "data.size", 64, specialization={"STEP": 3}
    )
    words = kernel._code.module.words.tobytes()
    arguments = [("data", Buff[u32]), ("amount", Const[u32])]
    for item in (kernel, vd.spirv_kernel(words, arguments, "data.size", 64, specialization={"STEP": 3})):
        assert copy.copy(item) is item
        assert copy.deepcopy(item) is item
        for protocol in PROTOCOLS[2:]:
            data = pickle.dumps(item, protocol)
            payload._known.clear()
            payload._recent.clear()
            payload._payloads.clear()
            made = pickle.loads(data)
            assert made is not item
            assert (made.name, made.specialization) == (item.name, item.specialization)
            data = vd.asbuffer(np.arange(257, dtype=np.uint32))
            made(data, 5)
            np.testing.assert_array_equal(data.read(0), np.arange(257) + 15)
            assert str(made.get_src()) == str(item.get_src())


class Named(vd.random.Generator):
    """A generator with an attribute of its own."""


@pytest.mark.parametrize("kind", ["philox4x32", "philox4x64"])
def test_generators_go_on_where_they_stand(kind: str) -> None:
    for way in [copy.copy, *BY_VALUE]:
        rng = Named(5, kind)
        rng.name = "mine"  # type: ignore[attr-defined]
        rng.random(3)
        made = way(rng)
        assert type(made) is Named
        assert made.name == "mine"
        assert made is not rng
        expected = rng.random(1001).read(0)
        np.testing.assert_array_equal(made.random(1001).read(0), expected)
        children = [each.key for each in rng.spawn(2)]
        assert [each.key for each in made.spawn(2)] == children
        made.random(7)
        again = Named(5, kind)
        again.random(3)
        again.random(1001)
        np.testing.assert_array_equal(rng.random(50).read(0), again.random(50).read(0))


def run(kernel: Any, data: np.ndarray[Any, Any], *arguments: Any) -> np.ndarray[Any, Any]:
    """Run a kernel in a worker."""
    buffer = vd.asbuffer(data)
    kernel(buffer, *arguments)
    return buffer.read(0)


def call(function: Any, *arguments: Any) -> Any:
    """Return what a function on arrays makes in a worker, as a NumPy array."""
    return function(*(vd.asbuffer(each) for each in arguments)).read(0)


def test_a_worker_process_runs_them() -> None:
    data = np.arange(1009, dtype=np.float32)
    rng = vd.random.Generator(3)
    rng.random(10)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(run, (add, data, 2.5)), data + np.float32(2.5))
        scaler = Scaler(3)
        np.testing.assert_array_equal(pool.apply(run, (scaler.scale, data)), data * 3)
        np.testing.assert_array_equal(pool.apply(call, (scaled, data, data)), data * data)
        assert pool.apply(call, (total, data)) == data.sum()
        np.testing.assert_array_equal(pool.apply(call, (running, data)), data.cumsum())
        drawn = pool.apply(drawn_by, (rng, 100))
    np.testing.assert_array_equal(drawn, rng.random(100).read(0))


def drawn_by(rng: vd.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Draw in a worker."""
    return rng.random(count).read(0)


SCRIPT = """
import multiprocessing
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32

@vd.shader("data.size")
def add(data: Buff[f32], amount: Const[f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] + amount

def work(kernel, amount):
    buffer = vd.asbuffer(np.float32([1, 2, 3]))
    kernel(buffer, amount)
    return kernel, buffer.read(0).tolist()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        kernel, values = pool.apply(work, (add, 4))
    assert kernel is add
    print(values)
"""


def test_a_kernel_of_a_script(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = run_python(None, str(path))
    assert done.stdout.strip() == "[5.0, 6.0, 7.0]", done.stderr
