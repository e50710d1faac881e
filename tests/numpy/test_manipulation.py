"""Shapes and orders of elements against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.numpy.both import compare, run_texts
from vkdispatch.numpy.core import memory

_ARRAYS = (
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.arange(6, dtype=np.int16).reshape(2, 3),
    np.arange(5.0),
)


def test_shapes() -> None:
    run_texts(
        """
        r = m.reshape(x, (4, -1), order='F')
        r = m.reshape(x.T, (4, 6), order='A')
        r = m.reshape(x.T[::-1], -1)
        r = m.reshape(x, (4, 6), order='X')
        r = m.reshape(x, (5, 5))
        r = m.reshape(x, (-1, -1))
        r = z[:0].reshape(0, 3)
        r = z[:0].reshape(3, -1)
        r = x.reshape(4, 6, order='F')
        r = x.ravel('F')
        r = x.flatten('F')
        r = m.transpose(x, (2, 0))
        r = x.transpose(2, 0, 1)
        r = m.moveaxis(x, [0, 1], [-1, -2])
        r = m.rollaxis(x, 0, 3)
        r = m.expand_dims(x, (0, -1))
        r = m.squeeze(x, 0)
        r = m.squeeze(x[:1])
        r = m.flip(x, (0, 2))
        r = m.flip(z[:0])
        r = m.fliplr(z)
        r = m.rot90(x, 3, (1, 2))
        r = m.rot90(x, 1, (0, 0))
        r = m.swapaxes(x, 0, 3)
        r = m.broadcast_to(z, (2, 5))
        r = m.broadcast_to(z, (2, 4))
        r = m.broadcast_arrays(x, y[..., None])
        r = m.meshgrid(z, y[0], indexing='ij')
        r = m.diagonal(x, -1, 0, 2)
        r = m.diagonal(x, 9)
        r = m.atleast_3d(y)
        r = m.unstack(x, axis=1)
        r = m.tril(y, 1)
        r = m.triu(x, -1)
        r = m.tril(z)
        """,
        *_ARRAYS,
    )


def test_joined_and_repeated() -> None:
    run_texts(
        """
        r = m.concatenate([x, x], -1)
        r = m.concatenate([x, y], axis=None)
        r = m.concatenate([x, y])
        r = m.concatenate([])
        r = m.concatenate([z[:0], z])
        r = m.concatenate([y.astype('u8'), y.astype('i8')])
        r = m.concatenate([y > 2, y])
        r = m.concatenate((z, z), dtype='i4')
        r = m.concatenate((z, z), dtype='i4', casting='unsafe')
        r = m.concatenate((z, z), out=m.zeros(10, 'f4'))
        r = m.concatenate((z, z), out=m.zeros(9))
        r = m.concatenate([x.T[::-1], x.T])
        r = m.stack([z, z], 1)
        r = m.stack([z, z], 2)
        r = m.stack([z, z[:2]])
        r = m.stack([z, z], axis=1, out=m.zeros((5, 2)))
        r = m.hstack([x, x])
        r = m.vstack([z, z])
        r = m.dstack([y, y])
        r = m.column_stack([z, z])
        r = m.split(z, [3, 1])
        r = m.split(x, 2, 1)
        r = m.split(x, np.int64(2), 1)
        r = m.array_split(z, 3)
        r = m.dsplit(x, 2)
        r = m.roll(x, (1, 2), (0, 2))
        r = m.roll(x, -30)
        r = m.roll(x, 1, axis=(1, 1))
        r = m.roll(z[:0], 3)
        r = m.tile(z, (2, 3))
        r = m.tile(x, (2, 1))
        r = m.tile(z, 0)
        r = m.tile(z, -1)
        r = m.repeat(x, 2, 1)
        r = m.repeat(y, m.asarray([1, 2, 0]), axis=1)
        r = m.repeat(y, [1, 2], axis=1)
        r = m.repeat(z, -1)
        """,
        *_ARRAYS,
    )


def test_views_are_views() -> None:
    x = vnp.asarray(np.arange(24).reshape(2, 3, 4))
    for view in (
        x.T,
        x[:, ::-1],
        vnp.reshape(x, (6, 4)),
        vnp.moveaxis(x, 0, 2),
        vnp.flip(x),
        vnp.split(x, 3, 1)[1],
        x[0, 1, 1:],
        vnp.squeeze(x[:1, :1]),
    ):
        view[...] = -1
        assert int(vnp.sum(x == -1)) == view.size
        x[...] = vnp.reshape(vnp.arange(24), (2, 3, 4))
    with pytest.raises(ValueError, match="copy"):
        vnp.reshape(x.T, -1, copy=False)


def test_read_only_views_show_writes_and_refuse_them() -> None:
    x = vnp.asarray(np.arange(4.0))
    square = vnp.asarray(np.arange(9.0).reshape(3, 3))
    views = (
        vnp.broadcast_to(x, (4,)),
        vnp.broadcast_to(x, (2, 4))[1, 1:],
        vnp.broadcast_to(x, (4,)).view(np.int64).reshape(2, 2),
        vnp.diagonal(square),
        square.diagonal(1)[1:],
        x.imag,
        vnp.asarray(1.0).imag,
    )
    for view in views:
        before = view.numpy()
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 7
        with pytest.raises(ValueError, match="read-only"):
            vnp.add(view, 1, out=view)
        with pytest.raises(ValueError, match="read-only"):
            view.fill(7)
        np.testing.assert_array_equal(view.numpy(), before)
    doubled = views[0] * 2
    x += 1
    np.testing.assert_array_equal(views[0].numpy(), [1, 2, 3, 4])
    np.testing.assert_array_equal(doubled.numpy(), [0, 2, 4, 6])
    vnp.asbuffer(views[0]).write(np.zeros(4))
    np.testing.assert_array_equal(x.numpy(), [1, 2, 3, 4])


def test_copies_of_transposed_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_MIN_ELEMENTS", 1)
    monkeypatch.setattr(memory, "_SHORT", 1 << 30)
    turned = []
    original = memory.turn

    def turn(view: memory.View) -> memory.View | None:
        turned.append(original(view) is not None)
        return original(view)

    monkeypatch.setattr(memory, "turn", turn)
    for shape, kind in (((65, 33), "f4"), ((3, 1, 4, 5), "u1"), ((2, 3, 2, 3), "c16")):
        host = np.random.default_rng(0).integers(0, 100, shape).astype(kind)
        x = vnp.asarray(host)
        for order in itertools.permutations(range(len(shape))):
            compare(vnp.ascontiguousarray(vnp.transpose(x, order)).numpy(), host.transpose(order))
            compare(vnp.transpose(x, order)[1:].copy().numpy(), host.transpose(order)[1:])
    assert sum(turned) > 30 and not all(turned)
    copied = x.T.copy()
    copied[...] = 0
    compare(x.numpy(), host)


@pytest.mark.parametrize(
    ("window", "axis"), [((2, 3, 2), None), (2, 0), ((2, 2), (2, 0)), ((2, 2), (1, 1)), (1, -1)]
)
def test_sliding_windows(window: Any, axis: Any) -> None:
    host = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = vnp.asarray(host)
    expected = np.lib.stride_tricks.sliding_window_view(host, window, axis=axis)
    found = vnp.sliding_window_view(x, window, axis=axis)
    np.testing.assert_array_equal(found.numpy(), expected)
    x[...] = x + 1  # it is a view
    np.testing.assert_array_equal(found.numpy(), expected + 1)
    with pytest.raises(ValueError, match="read-only"):
        found[...] = 0
    through = np.lib.stride_tricks.sliding_window_view(x[::-1], window, axis=axis)
    np.testing.assert_array_equal(
        through.numpy(), np.lib.stride_tricks.sliding_window_view(host[::-1] + 1, window, axis=axis)
    )


@pytest.mark.parametrize(("window", "axis"), [((2, 2), None), (4, 1), ((2, 2), 1), (-1, 0)])
def test_windows_that_do_not_fit(window: Any, axis: Any) -> None:
    with pytest.raises(ValueError, match="window_shape"):
        vnp.sliding_window_view(vnp.zeros((2, 3, 4)), window, axis=axis)


def test_asfortranarray() -> None:
    host = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = vnp.asarray(host)
    found = vnp.asfortranarray(x)
    assert found.strides == np.asfortranarray(host).strides
    np.testing.assert_array_equal(found.numpy(), host)
    assert vnp.asfortranarray(found) is found and vnp.asfortranarray(host).flags.f_contiguous


def test_views_of_nothing_as_other_dtypes() -> None:
    x = vnp.zeros((0, 0), np.int64)
    assert (x.T.view(np.int32).shape, vnp.asfortranarray(x).T.view(np.int16).shape) == ((0, 0), (0, 0))
    assert vnp.zeros((3, 0), np.int64).view(np.int32).shape == (3, 0)


def test_shapes_are_ints_whatever_integers_they_come_from() -> None:
    x, two = vnp.ones((5, 4)), np.int64(2)
    made = [
        vnp.diagonal(x, two),
        *vnp.topk(x, two),
        x[two:, :two],
        vnp.zeros((two, two)),
        vnp.eye(two, k=two),
    ]
    made += [x.reshape(two, -1), vnp.tile(x, two), vnp.pad(x, two), vnp.broadcast_to(x, (two, 5, 4))]
    assert {type(length) for each in made for length in each.shape} == {int}


def test_rollaxis_to_every_place() -> None:
    x = np.zeros((2, 3, 4))
    for axis in range(-3, 3):
        for start in range(-3, 4):
            assert vnp.rollaxis(vnp.asarray(x), axis, start).shape == np.rollaxis(x, axis, start).shape
    for start in (-4, 4):
        with pytest.raises(vd.AxisError, match="start"):
            vnp.rollaxis(vnp.asarray(x), 0, start)
