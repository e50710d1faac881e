"""JAX on the CPU: arrays and buffers on one memory. JAX's arrays never change."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp

from .arrays import add, double
from .hand_overs import Jax

jax: Any = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def _on_cpu() -> Iterator[None]:
    if jax.default_backend() != "cpu":
        pytest.skip("JAX computes elsewhere; see test_cuda.py")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def kind_of(name: str) -> Any:
    return getattr(vd, "bool_" if name == "bool" else name)


def make_array(name: str) -> Any:
    return (jax.numpy.arange(64) % (2 if name == "bool" else 99)).astype(name)


def octets(array: Any) -> Any:
    """Return a copy of the bytes of an array."""
    return np.frombuffer(np.asarray(array).tobytes(), np.uint8)


@pytest.mark.parametrize("name", Jax.kinds)
def test_an_array_shows_the_memory_of_a_buffer(on_host: None, name: str) -> None:
    expected = octets(make_array(name))
    buffer = vd.Buffer(64, kind_of(name))
    buffer.view(vd.uint8).write(expected)
    array = jax.dlpack.from_dlpack(buffer)
    assert array.dtype == name and array.unsafe_buffer_pointer() == vd.share(buffer).address
    np.testing.assert_array_equal(octets(array), expected)


@pytest.mark.parametrize("name", Jax.kinds)
def test_a_buffer_lies_in_the_memory_of_an_array(takes_host: None, name: str) -> None:
    array = make_array(name)
    buffer = vd.from_dlpack(array, copy=False)
    assert buffer.var_type is kind_of(name) and buffer.is_external
    assert vd.share(buffer).address == array.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.asarray(vd.share(buffer.view(vd.uint8))), octets(array))


def test_arrays_are_never_written(takes_host: None) -> None:
    array = jax.numpy.arange(64, dtype="float32")
    own = vd.asbuffer(np.ones(64, np.float32))
    add(own, array)
    np.testing.assert_array_equal(own.read(0), np.arange(64) + 1)
    buffer, x = vd.from_dlpack(array, copy=False), vnp.from_dlpack(array, copy=False)
    assert not buffer.is_writable and not x.flags.writeable
    for write in (
        lambda: double(array),
        lambda: double(buffer),
        lambda: double(array, graph=vd.CommandGraph()),
        lambda: vd.cumsum(own, out=array),
        lambda: vd.fft.fft(jax.numpy.ones(64, "complex64")),
        lambda: buffer.write(np.zeros(64, np.float32)),
        lambda: x.__setitem__(0, 1),
        lambda: x.sort(),
    ):
        with pytest.raises(ValueError, match=r"read.only"):
            write()
    np.testing.assert_array_equal(np.asarray(array), np.arange(64))
    assert not np.from_dlpack(buffer).flags.writeable
    copy = vd.from_dlpack(array, copy=True)
    double(copy)
    np.testing.assert_array_equal(copy.read(0), 2 * np.arange(64))


def test_an_array_on_our_memory_is_not_written_either(takes_host: None) -> None:
    buffer = vd.asbuffer(np.arange(64, dtype=np.float32))
    array = jax.dlpack.from_dlpack(buffer)
    with pytest.raises(ValueError, match=r"read.only"):
        double(array)
    assert float(vd.sum(array).read(0)) == np.arange(64).sum()
    del array
    gc.collect()
    assert not buffer._native.lent
    double(buffer)
    np.testing.assert_array_equal(buffer.read(0), 2 * np.arange(64))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1, 1)])
def test_small_arrays(on_host: None, shape: Any) -> None:
    array = jax.numpy.ones(shape, "float32")
    for x in (vd.from_dlpack(array), vnp.from_dlpack(array)):
        assert x.shape == shape
        np.testing.assert_array_equal(np.asarray(x), np.asarray(array))
        again = jax.dlpack.from_dlpack(vd.from_dlpack(array, copy=True))
        assert again.shape == shape and again.sum() == array.sum()


@pytest.mark.parametrize("view", [lambda x: x[1], lambda x: x.T, lambda x: x[:, 1:1], lambda x: x[1:, None]])
def test_views_without_gaps_are_arrays_of_jax(on_host: None, view: Any) -> None:
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    array = jax.dlpack.from_dlpack(view(vnp.asarray(data)))
    np.testing.assert_array_equal(np.asarray(array), view(data))


def test_work_of_either_side_is_done_when_the_other_sees_it(takes_host: None) -> None:
    @jax.jit
    def compute(x: Any) -> Any:
        return jax.lax.fori_loop(0, 30, lambda i, y: y @ y / jax.numpy.abs(y).max(), x)

    for seed in range(3):
        x = jax.numpy.asarray(np.random.default_rng(seed).normal(size=(256, 256)).astype(np.float32))
        later = compute(x)  # JAX returns before it has computed
        ours = vd.from_dlpack(later, copy=False).read(0)
        np.testing.assert_array_equal(ours, np.asarray(later))
        buffer = vd.asbuffer(np.ones(1 << 14, np.float32))
        for _ in range(10):
            double(buffer)
        assert (jax.dlpack.from_dlpack(buffer) == 1024).all()


def test_functions_and_graphs_take_arrays(takes_host: None) -> None:
    array = jax.numpy.asarray(np.random.default_rng(4).normal(size=256).astype(np.float32))
    np.testing.assert_allclose(vd.sum(array).read(0), array.sum(), rtol=1e-4)
    np.testing.assert_array_equal(vd.sort(array).read(0), np.sort(np.asarray(array)))
    own = vd.asbuffer(np.zeros(256, np.float32))
    graph = vd.CommandGraph()
    add(own, array, graph=graph)
    expected = 3 * np.asarray(array)
    del array  # the graph keeps it
    gc.collect()
    kept = [jax.numpy.zeros(256) for _ in range(8)]
    for _ in range(3):
        graph.submit()
    np.testing.assert_allclose(own.read(0), expected, rtol=1e-5)
    assert not any(each.any() for each in kept)


def test_arrays_outlive_buffers(on_host: None) -> None:
    array = jax.dlpack.from_dlpack(vd.asbuffer(np.arange(1000, dtype=np.float32)))
    gc.collect()
    others = [vd.asbuffer(np.full(1000, 7, np.float32)) for _ in range(8)]
    np.testing.assert_array_equal(np.asarray(array), np.arange(1000))
    assert all((other.read(0) == 7).all() for other in others)


AT_EXIT = """
import threading
import numpy as np, jax
import vkdispatch as vd
kept = [jax.dlpack.from_dlpack(vd.asbuffer(np.ones(4, np.float32))), vd.from_dlpack(jax.numpy.ones(4096))]
later = jax.jit(lambda x: x * 2)(kept[0])
thread = threading.Thread(target=kept.pop)
thread.start()
thread.join()
{close}
assert later.tolist() == [2] * 4 and kept[0].tolist() == [1] * 4
print("done")
"""


@pytest.mark.parametrize("close", ["", "vd.get_context().close()"])
def test_the_interpreter_ends_with_live_arrays(takes_host: None, run_python: Any, close: str) -> None:
    done = run_python(AT_EXIT.replace("{close}", close))
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
