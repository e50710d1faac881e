"""Indices against NumPy: random ones, what overlaps, what is out of bounds, what is cast."""

from __future__ import annotations

import random
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.numpy.both import compare, run_both, run_texts

_KINDS = ["f4", "i4", "f8", "u1", "c8", "?", "i2"]


class _Indices:
    """Random indices for shapes."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def index(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        entries: list[Any] = []
        common = self.choose.choice([(), (3,), (2, 3), (1,), (2, 1, 2)])
        axis, has_ellipsis = 0, False
        while axis < len(shape):
            length, kind = shape[axis], self.choose.random()
            if kind < 0.1:
                entries.append(None)
            elif kind < 0.2 and not has_ellipsis:
                has_ellipsis = True
                entries.append(Ellipsis)
                axis += self.choose.randint(0, len(shape) - axis)
            elif kind < 0.4:
                ends = [None, *range(-length - 1, length + 2)]
                step = self.choose.choice([None, 1, -1, 2, -2, 3])
                entries.append(slice(self.choose.choice(ends), self.choose.choice(ends), step))
                axis += 1
            elif kind < 0.55:
                entries.append(self.choose.randrange(-length, length))
                axis += 1
            elif kind < 0.8:
                own = tuple(self.choose.choice([n, 1]) for n in common)
                entries.append(self.numbers.integers(-length, length, own))
                axis += 1
            elif kind < 0.93:
                count = self.choose.randint(1, min(2, len(shape) - axis))
                entries.append(self.numbers.random(shape[axis : axis + count]) < 0.5)
                axis += count
            elif kind < 0.96:
                entries.append(self.choose.choice([True, False]))
            elif kind > 0.99:
                break
        return tuple(entries)

    def on_device(self, entry: Any) -> Any:
        if not isinstance(entry, np.ndarray):
            return entry
        kind = self.choose.random()
        return entry.tolist() if kind < 0.2 and entry.size else entry if kind < 0.35 else vnp.asarray(entry)


@pytest.mark.parametrize("seed", range(4))
def test_random_indices(seed: int) -> None:
    indices = _Indices(seed)
    for _ in range(60):
        shape = tuple(indices.choose.choice([1, 2, 3, 4, 5]) for _ in range(indices.choose.randint(1, 4)))
        kind = indices.choose.choice(_KINDS)
        memory = indices.numbers.integers(0, 100, tuple(n + 1 for n in shape)).astype(kind)
        device = vnp.asarray(memory)
        part = tuple(slice(0, n) for n in shape)
        host, array = memory[part], device[part]
        if indices.choose.random() < 0.3:
            host, array = host.T, array.T
        index = indices.index(host.shape)
        own = tuple(indices.on_device(each) for each in index)
        try:
            expected = host[index]
        except IndexError:
            with pytest.raises(IndexError):
                array[own]
            continue
        try:
            compare(array[own].numpy(), expected)
            value = indices.numbers.integers(0, 100, [indices.choose.choice([n, 1]) for n in expected.shape])
            host[index] = value
            array[own] = vnp.asarray(value)
            compare(device.numpy(), memory)
        except AssertionError as error:
            raise AssertionError(f"{kind} {host.shape} {own}: {error}") from None


def test_overlaps() -> None:
    run_texts(
        """
        x[1:] = x[:-1]
        x[:-1] = x[1:]
        x[::-1] = x
        x[1:] += x[:-1]
        x[x[:3].astype('i4')] = x[-3:]
        x[[0, 1]] = x[[1, 0]]
        x[m.asarray([3, 4, 5])] = x[2:5]
        y[y[0]] = y[::-1][:3]
        y[:, [0, 1, 2]] = y.T
        """,
        np.arange(10.0),
        np.array([[1, 2, 0], [0, 2, 1], [2, 2, 2]]),
    )


def test_writes() -> None:
    run_texts(
        """
        x[z] += 1
        x[z] = m.asarray([1., 2., 3., 4.])
        x[[1, 2, 1]] = [5, 6, 7]
        x[z] = x[0]
        x[x > 3] = 0
        x[x > 3] = m.asarray([7.])
        x[x > 3] = m.asarray([1., 2., 3.])
        x[x > 5] *= 2
        x[None] = 7
        x[...] = 3
        x[3:3] = []
        x[2:5] = (1, 2, 3)
        x[0:2] = [[1, 2], [3, 4]]
        x[0] = [1, 2]
        x[False] = 2
        x[[]] = 1
        y[[0, 1], :, [1, 2]] = m.asarray([[1, 2, 3], [4, 5, 6]])
        y[:, y[0, :, 0] > 4] = 0
        y[..., y[0, 0] > 1] += 5
        y[:, [[0, 1], [2, 0]]] = 7
        y[y > 5] = m.asarray(1)
        y[m.asarray([1, 0])] = m.arange(4)
        y[:, :, ::-1][m.asarray([1])] = 9
        y[0][1] = 5
        y[0, ...][1, :] = 5
        """,
        np.arange(10.0),
        np.arange(24).reshape(2, 3, 4),
        np.array([1, 3, 1, -1]),
    )


def test_casts_of_writes() -> None:
    run_texts(
        """
        x[0] = 300
        x[0] = 2.7
        x[0] = float('nan')
        x[0] = 1j
        x[0] = np.float64(2.9)
        x[:2] = [300, 1]
        x[:2] = [2.5, 1]
        x[[1, 2]] = 300
        x[x > 3] = 300
        x[x > 3] = 2.5
        x[[1, 2]] = m.asarray([1000, -3])
        x[:] = m.asarray([1000] * 5)
        x[1:] = 2.5
        x += 1.5
        y[0] = 5
        y[0] = 0.5
        y[[0, 1]] = [0, 7]
        y |= True
        z[1] = 1j
        z[z == 0] = 2
        z[[0, 1]] = [1, 2j]
        """,
        np.arange(5, dtype=np.int8),
        np.zeros(5, bool),
        np.zeros(3, np.complex64),
    )


def test_errors() -> None:
    run_texts(
        """
        x[20]
        x[-11] = 1
        x[[20]]
        x[[20]] = 1
        x[m.asarray([0, 20])].tolist()
        x[m.asarray([0, -11])] = 1; x.tolist()
        x[1.0]
        x['a']
        x[m.asarray([1.0])]
        x[:, 0]
        x[..., ...]
        x[::0]
        x[1.5:]
        x[[True] * 9]
        x[m.asarray([True] * 9)] = 1
        x[2 ** 70]
        x[[1, 2], [1, 2]]
        y[[0, 1], [0, 1, 2]]
        y[[0, 1]] = m.asarray([1, 2, 3, 4])
        x[[1, 2]] = m.asarray([1., 2., 3.])
        m.broadcast_to(x, (3, 10))[0] = 1
        m.broadcast_to(x, (3, 10))[[1]] = 1
        z = m.broadcast_to(x, (3, 10)); z += 1
        """,
        np.arange(10.0),
        np.arange(6).reshape(2, 3),
    )


def write_and_read(x: vnp.ndarray, index: Any) -> None:
    x[index] = 1
    x.numpy()


def test_bad_indices_name_themselves() -> None:
    x = vnp.asarray(np.zeros((4, 5)))
    with pytest.raises(IndexError, match=r"7 at \[1\] is out of bounds for axis 1 of 5"):
        x[:, vnp.asarray([1, 7])].numpy()
    with pytest.raises(IndexError, match=r"-9 at \[1\] is out of bounds for axis 0 of 4"):
        write_and_read(x, vnp.asarray([2, -9]))
    # nothing is written for an index that is out of bounds
    compare(x.numpy(), np.repeat([[0.0], [0.0], [1.0], [0.0]], 5, 1))


def test_last_value_counts() -> None:
    places = np.random.default_rng(1).integers(0, 50, 4000)
    values = np.arange(4000)

    def write(m: Any, x: Any, y: Any) -> None:
        x[m.asarray(places)] = m.asarray(values)
        y[m.asarray(places[:20]), :, m.asarray(places[:20] % 3)] = m.asarray(values[:40].reshape(20, 2))

    run_both(write, np.zeros(50, int), np.zeros((50, 2, 3), int))
    # so many elements that a table of writers is smaller than the array
    run_both(write, np.zeros(100_000, int), np.zeros((9000, 2, 3), int))


def test_reads_before_writes() -> None:
    x = vnp.asarray(np.arange(4.0))
    y = x + 1
    z, w = y * 2, y[vnp.asarray([0, 1])]
    y.numpy()
    y[0] = 100
    compare(z.numpy(), np.arange(2.0, 10, 2))
    compare(w.numpy(), np.array([1.0, 2.0]))
    y[vnp.asarray([1])] = z[3]
    compare(y.numpy(), np.array([100.0, 8.0, 3.0, 4.0]))
    later = y + 1
    y[vnp.asarray([0, 1])] = 0
    compare(later.numpy(), np.array([101.0, 9.0, 4.0, 5.0]))


def test_whole_writes_do_not_share_memory() -> None:
    y = vnp.asarray([1.0, 2.0, 3.0])
    for value in (y, y + 1):
        x = vnp.zeros(3)
        x[...] = value
        x[0] = 7
        assert float(value[0]) < 7


def test_outputs_of_take_are_arrays() -> None:
    for out in (np.zeros(2), [0, 0]):
        with pytest.raises(TypeError, match="out: "):
            vnp.take(vnp.arange(4.0), [1, 2], out=out)


def test_memory_of_buffers() -> None:
    buffer = vd.asbuffer(np.arange(12, dtype=np.float32).reshape(3, 4))
    x = vnp.asarray(buffer)
    x[vnp.asarray([0, 2]), 1:3] = 9
    expected = np.arange(12, dtype=np.float32).reshape(3, 4)
    expected[[0, 2], 1:3] = 9
    compare(buffer.read(0), expected)
    compare(x[vnp.asarray([[2], [0]]), vnp.asarray([3, 1])].numpy(), expected[[[2], [0]], [3, 1]])


def test_take() -> None:
    run_texts(
        """
        r = m.take(x, [0, 1], 1)
        r = m.take(x, [[0, 1], [1, 0]], axis=0)
        r = m.take(x, [0, 100])
        r = m.take(x, m.asarray([-5, 100]), mode='wrap')
        r = m.take(x, m.asarray([-5, 100]), mode='clip')
        r = m.take(x, [-5, 100], mode='clip')
        r = m.take(x, m.asarray([100, -2], dtype='i1'), mode='wrap')
        r = m.take(x, m.asarray(3))
        r = m.take(x[:0], [0])
        r = m.take(x, [], axis=1)
        r = m.take(x, [0, 1], axis=0, out=m.zeros((2, 3, 4), 'f4'))
        r = x.take([1, 2], axis=2)
        r = m.take(x[:0], m.asarray([], dtype='u8')[:0], mode='clip', axis=0)
        r = m.take(x[:0], [], mode='clip', axis=0)
        r = m.take_along_axis(x, m.argsort(x, axis=1), axis=1)
        r = m.take_along_axis(y, m.asarray([[0], [2]]), 1)
        r = m.take_along_axis(y, m.asarray([0, 2]), None)
        r = m.take_along_axis(x[:1], m.asarray([[[0]], [[1]]]), axis=1)
        r = m.take_along_axis(y, m.asarray([0]), 0)
        r = m.take_along_axis(y, m.asarray([[0.5]]), 0)
        r = m.take_along_axis(x, m.asarray([[[9]]]), axis=1)
        r = m.nonzero(y > 2)
        r = m.nonzero(m.reshape(x, (2, 3, 2, 2)) > 2)
        r = m.argwhere(y > 2)
        r = m.flatnonzero(y > 2)
        r = m.where(y > 2)
        r = m.where(y > 2, y, 0)
        r = m.where(y > 2, y)
        """,
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.arange(6, dtype=np.int16).reshape(2, 3),
    )


def test_arrays_of_another_context() -> None:
    own = vd.get_context()
    other = vd.Context(own.device_ids, own.queue_families[:1])
    with vd.use_context(other):
        x = vnp.asarray(np.arange(12.0).reshape(3, 4))
        index = vnp.asarray([2, 0])
    x[[0, 0]] = [[1.0, 2, 3, 4]]
    x[index] += 1
    x[x > 10] = 0
    for found in (
        x[index],
        x[[1]],
        x[x > 3],
        vnp.unique(x),
        vnp.zeros_like(x),
        vnp.full((3, 4), x),
        x.T.copy(),
    ):
        assert found.device == x.device
        found.numpy()
    with pytest.raises(RuntimeError, match="another context"):
        x[vnp.asarray([1])]
    other.close()


def test_views_of_other_dtypes_overlap() -> None:
    buffer = vd.asbuffer(np.arange(64, dtype=np.int32))
    narrow, wide = vnp.asarray(buffer), vnp.asarray(buffer.view(vd.int64))
    host = np.arange(64, dtype=np.int32)
    host[32:] = host.view(np.int64).copy()
    narrow[32:] = wide
    compare(narrow.numpy(), host)
    host.view(np.int64)[:] = host[:32].copy()
    wide[...] = narrow[:32]
    compare(narrow.numpy(), host)


def test_flat_indices_do_not_wrap() -> None:
    def ravel(*dims: int, **options: Any) -> Any:
        index = tuple(vnp.asarray([1, 0]) for _ in dims)
        host = tuple(np.array([1, 0]) for _ in dims)
        return vnp.ravel_multi_index(index, dims, **options), np.ravel_multi_index(host, dims, **options)

    for dims in ((2**31, 2**31), (2**63 - 1,), (3, 4)):
        for order in "CF":
            found, expected = ravel(*dims, order=order)
            np.testing.assert_array_equal(found.numpy(), expected)
    for wrong in ((2**32,) * 3, (2**32, 2**31), (2**63,)):
        with pytest.raises(ValueError, match="int64"):
            ravel(*wrong)
        with pytest.raises(ValueError, match="int64"):
            vnp.unravel_index(vnp.asarray([1]), wrong)
    with pytest.raises(ValueError, match="no elements"):
        ravel(0, 4, mode="wrap")
    assert int(vnp.ravel_multi_index((), ())) == 0


def test_put_of_nothing_into_a_read_only_view() -> None:
    with pytest.raises(ValueError, match="read-only"):
        vnp.put(vnp.broadcast_to(vnp.zeros(1), (3,)), [], 2)
