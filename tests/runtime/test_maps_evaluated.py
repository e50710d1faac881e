"""Maps as arrays of their own: buffers of what they give, and what they give as NumPy arrays."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, Const, b8, f32

SIZES = [0, 1, 2, 251, 257, 1021, 65537]
KINDS: list[DType] = [
    *(vd.bool_, vd.int8, vd.uint8, vd.int16, vd.uint16, vd.int32, vd.uint32, vd.int64, vd.uint64),
    *(vd.float16, vd.bfloat16, vd.float32, vd.float64, vd.complex32, vd.complex64, vd.complex128),
    *(vd.vec2, vd.vec3, vd.vec4, vd.hvec3, vd.dvec3, vd.ivec4, vd.uhvec2, vd.mat2, vd.mat3, vd.mat4),
]


@vd.map
def scaled(x: f32, by: f32) -> f32:
    return x * by


@vd.map
def shifted(x: Buff[f32], by: Const[f32]) -> f32:
    return x[vd.mapped_index()] + by


def identity(kind: DType) -> vd.MappingFunction:
    def same_element(x: Any) -> Any:
        return x

    return vd.map(same_element, kind, [kind])


def bytes_of(shape: tuple[int, ...], kind: DType) -> vd.Buffer[Any]:
    """Return a buffer of bytes that make finite numbers."""
    if 0 in shape:
        return vd.Buffer(shape, kind)
    buffer: vd.Buffer[Any] = vd.Buffer(shape, kind)
    high = 2 if kind is vd.bool_ else 60
    buffer.write(np.random.default_rng(0).integers(0, high, buffer.mem_size).astype(np.uint8).tobytes())
    return buffer


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    mapped = scaled(shifted(vd.asbuffer(x), 1.0), 2)
    made = vd.asbuffer(mapped)
    assert isinstance(made, vd.Buffer)
    assert (made.shape, made.var_type, made.context) == ((size,), f32, mapped.context)
    np.testing.assert_array_equal(made.read(0), (x + 1) * 2)
    np.testing.assert_array_equal(mapped.read(0), (x + 1) * 2)
    np.testing.assert_array_equal(mapped.read(), [(x + 1) * 2])
    np.testing.assert_array_equal(np.asarray(mapped), (x + 1) * 2)


@pytest.mark.parametrize("shape", [(), (1,), (3, 1, 5), (2, 0), (7, 11)], ids=str)
def test_shapes(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).random(shape, np.float32)
    np.testing.assert_array_equal(vd.asbuffer(scaled(vd.asbuffer(x), 2)).read(0), x * 2)
    array = np.asarray(scaled(vd.asbuffer(x), 2), np.float64)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, (x * 2).astype(np.float64))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_dtype(kind: DType) -> None:
    for shape in [(0,), (1,), (13, 23)]:
        try:
            buffer = bytes_of(shape, kind)
            made = vd.asbuffer(identity(kind)(buffer))
        except vd.UnsupportedError as error:
            pytest.skip(str(error))
        assert made is not buffer
        assert (made.shape, made.var_type) == (shape, kind)
        assert made.read(0).tobytes() == buffer.read(0).tobytes()


def test_boolean_and_number_arguments() -> None:
    @vd.map
    def larger(x: f32, limit: f32) -> b8:
        return x > limit

    x = np.arange(-5, 6, dtype=np.float32)
    made = vd.asbuffer(larger(vd.asbuffer(x), 2))
    np.testing.assert_array_equal(made.read(0), x > 2)
    assert made.read(0).dtype == np.bool_


def test_value_is_computed_once_on_demand() -> None:
    buffer = vd.asbuffer(np.float32([1, 2, 3]))
    mapped = scaled(buffer, 2)
    made = vd.asbuffer(mapped)
    buffer.write(np.float32([4, 5, 6]))
    assert made.read(0).tolist() == [2, 4, 6]
    assert mapped.read(0).tolist() == [8, 10, 12]


def test_global_graphs_record_buffers_and_not_reads() -> None:
    buffer = vd.asbuffer(np.float32([1, 2, 3]))
    graph = vd.CommandGraph()
    mapped = scaled(buffer, graph.bind_var("by"))
    vd.set_global_graph(graph)
    try:
        made = vd.asbuffer(mapped)
        assert scaled(buffer, 3).read(0).tolist() == [3, 6, 9]
        assert vd.global_graph() is graph
    finally:
        vd.set_global_graph(None)
    for factor in (2.0, 5.0):
        graph.set_var("by", factor)
        graph.submit()
        assert made.read(0).tolist() == [factor, 2 * factor, 3 * factor]
    with pytest.raises((vd.ArgumentTypeError, vd.ArgumentValueError)):
        mapped.read(0)


def test_the_context_is_that_of_the_arguments() -> None:
    mapped = scaled(vd.asbuffer(np.float32([1, 2])), 2)
    here = vd.get_context()
    other = vd.Context(here.device_ids, here.queue_families)
    try:
        there = vd.asbuffer(np.float32([5, 6]), context=other)
        assert vd.asbuffer(mapped).context is mapped.context
        made = vd.asbuffer(scaled(there, 2), context=other)
        assert made.context is other
        assert made.read(0).tolist() == [10, 12]
        with pytest.raises(vd.ArgumentValueError, match=r"context: map 'scaled'"):
            vd.asbuffer(mapped, context=other)
    finally:
        other.close()


def test_wrong_uses_are_refused() -> None:
    buffer = vd.asbuffer(np.float32([1, 2]))
    mapped = scaled(buffer, 2)
    with pytest.raises(ValueError, match="copy: "):
        np.asarray(mapped, copy=False)
    with pytest.raises(vd.ArgumentValueError, match="queue"):
        mapped.read(7)
    with pytest.raises(TypeError, match="expected a NumPy array or a map"):
        vd.asbuffer([1.0])  # type: ignore[arg-type]

    with pytest.raises(vd.UsageError, match="a kernel cannot call"):

        @vd.shader("x.size")
        def kernel(x: Buff[f32]) -> None:
            vd.asbuffer(mapped)

    buffer.destroy()
    with pytest.raises(RuntimeError):
        mapped.read(0)


def test_numpy_does_not_compute_on_the_host_by_surprise() -> None:
    mapped = scaled(vd.asbuffer(np.float32([1, 2, 0])), 2)
    out = np.empty(3, np.float32)
    assert mapped.read(0, out) is out
    assert out.tolist() == [2, 4, 0]
    assert len(mapped) == 3
    assert float(scaled(vd.asbuffer(np.float32([3])), 2)) == 6
    for wrong in (
        lambda: np.sin(mapped),
        lambda: np.sum(mapped),
        lambda: np.float32(2) * mapped,
        lambda: list(mapped),
    ):
        with pytest.raises(vd.ArgumentTypeError):
            wrong()
    with pytest.raises(vd.ArgumentValueError, match="ambiguous"):
        bool(mapped)


QUEUES = """
import numpy as np
import vkdispatch as vd
from vkdispatch.codegen.abbreviations import *
context = vd.make_context(device_ids=DEVICE, queue_counts=2)
@vd.map
def doubled(x: f32) -> f32:
    return x * 2
x = vd.Buffer(3, f32)
x.write(np.float32([1, 2, 3]), 0)
x.write(np.float32([4, 5, 6]), 1)
made = vd.asbuffer(doubled(x))
assert made.read().tolist() == doubled(x).read().tolist() == [[2, 4, 6], [8, 10, 12]]
assert doubled(x).read(1).tolist() == [8, 10, 12]
assert np.asarray(doubled(x)).tolist() == [2, 4, 6]
print("good")
"""


def test_every_queue_computes_its_own(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(QUEUES.replace("DEVICE", str(vd.get_context().device_ids[0])))
    assert done.stdout.strip() == "good", done.stderr


def test_one_kernel_for_all_arrays_of_a_map() -> None:
    from vkdispatch.families import calls as evaluation

    def evaluate(size: int) -> None:
        vd.asbuffer(scaled(vd.asbuffer(np.ones(size, np.float32)), 2))

    evaluate(5)
    before = evaluation._make_store_kernel.cache_info()  # type: ignore[attr-defined]
    evaluate(1021)
    after = evaluation._make_store_kernel.cache_info()  # type: ignore[attr-defined]
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)


def test_a_kernel_reads_what_a_map_makes() -> None:
    @vd.shader("x.size")
    def increment(x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        x[i] = x[i] + 1

    made = vd.asbuffer(scaled(vd.asbuffer(np.float32([1, 2])), 2))
    increment(made)
    assert made.read(0).tolist() == [3, 5]
