"""Buffers and functions on buffers of four to six axes, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32, i32

Array = Any
SHAPE = (3, 4, 2, 5, 2)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


X = numbers(*SHAPE)
MASK = numbers(1, 4, 1, 5, 1, seed=1) > 0


@vd.map
def added(x: f32, y: f32) -> f32:
    return x + y


@vd.reduce.reduce(0, axes=(0, 2, 4))
def total(a: f32, b: f32) -> f32:
    return a + b


def read(found: Any) -> Array:
    return found.read(0)


@pytest.mark.parametrize("count", range(1, 6))
def test_sums_along_all_sets_of_axes(count: int) -> None:
    x, y = vd.asbuffer(X), vd.asbuffer(X[:1, :, :1])
    mask = vd.asbuffer(MASK)
    for axes in itertools.combinations(range(5), count):
        np.testing.assert_array_equal(read(vd.sum(x, axes)), X.sum(axes))
        np.testing.assert_array_equal(read(vd.max(x, axes, keepdims=True)), X.max(axes, keepdims=True))
        np.testing.assert_array_equal(read(vd.sum(added(x, y), axes)), (X + X[:1, :, :1]).sum(axes))
        masked = X.sum(axes, where=np.broadcast_to(MASK, SHAPE))
        np.testing.assert_array_equal(read(vd.sum(x, axes, where=mask)), masked)


def test_other_reductions_along_axes_that_alternate() -> None:
    x, axes = vd.asbuffer(X), (1, 3)
    np.testing.assert_allclose(read(vd.var(x, axes)), X.var(axes), rtol=1e-5)
    np.testing.assert_allclose(read(vd.mean(x, axes)), X.mean(axes), rtol=1e-5)
    np.testing.assert_array_equal(read(vd.median(x, axes)), np.median(X, axes))
    np.testing.assert_array_equal(read(vd.count_nonzero(x, axes)), np.count_nonzero(X, axes))
    np.testing.assert_array_equal(read(total(x))[0], X.sum((0, 2, 4)).ravel())
    # the same function for a shape that the kernel of the other one must not reduce
    moved = np.ascontiguousarray(X.transpose(1, 3, 0, 2, 4)).reshape(4, 5, 3, 2, 2)
    np.testing.assert_array_equal(read(total(vd.asbuffer(moved)))[0], moved.sum((0, 2, 4)).ravel())


@pytest.mark.parametrize("order", [(4, 3, 2, 1, 0), (2, 0, 4, 1, 3), (1, 0, 3, 2, 4), (0, 3, 1, 4, 2)])
@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.complex64])
def test_transposes(order: tuple[int, ...], kind: Any) -> None:
    x = X.astype(kind)
    np.testing.assert_array_equal(read(vd.transpose(vd.asbuffer(x), order)), x.transpose(order))
    doubled = added(vd.asbuffer(X), vd.asbuffer(X))
    np.testing.assert_array_equal(read(vd.transpose(doubled, order)), (2 * X).transpose(order))


WIDTHS = ((1, 0), (0, 2), (1, 1), (0, 0), (2, 1))
PLACES = np.array([[1, 0], [1, 1]])
CALLS: list[tuple[Callable[[Any], Any], Callable[[Array], Array]]] = [
    (lambda x: vd.flip(x, (0, 2, 4)), lambda x: np.flip(x, (0, 2, 4))),
    (lambda x: vd.roll(x, (1, 2, 1), (0, 3, 4)), lambda x: np.roll(x, (1, 2, 1), (0, 3, 4))),
    (lambda x: vd.pad(x, WIDTHS), lambda x: np.pad(x, WIDTHS)),
    (lambda x: vd.pad(x, 1, "symmetric"), lambda x: np.pad(x, 1, "symmetric")),
    (lambda x: vd.tile(x, (2, 1, 3, 1, 1, 2)), lambda x: np.tile(x, (2, 1, 3, 1, 1, 2))),
    (lambda x: vd.repeat(x, 3, 2), lambda x: np.repeat(x, 3, 2)),
    (lambda x: vd.stack([x, x], 2), lambda x: np.stack([x, x], 2)),
    (lambda x: vd.concatenate([x, x], 3), lambda x: np.concatenate([x, x], 3)),
    (lambda x: vd.take(x, vd.asbuffer(PLACES), 2), lambda x: np.take(x, PLACES, 2)),
    (lambda x: vd.where(vd.asbuffer(MASK), x, 0), lambda x: np.where(MASK, x, 0)),
    (lambda x: vd.sort(x, 1), lambda x: np.sort(x, 1)),
    (lambda x: vd.cumsum(x, 2), lambda x: np.cumsum(x, 2)),
    (lambda x: vd.topk(x, 2, 3)[0], lambda x: -np.sort(-x, 3)[:, :, :, :2]),
    (lambda x: vd.argmax(x, 3), lambda x: np.argmax(x, 3)),
    (lambda x: vd.norm(x, 1, (1,)), lambda x: np.linalg.norm(x, 1, 1)),
    (lambda x: vd.nonzero(x)[3], lambda x: np.nonzero(x)[3]),
]


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_calls_on_five_axes(at: int) -> None:
    call, truth = CALLS[at]
    found, expected = read(call(vd.asbuffer(X))), truth(X)
    np.testing.assert_array_equal(found, expected.reshape(found.shape) if not expected.ndim else expected)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 1, 3, 4), (1, 3, 4, 5)),
        ((2, 1, 3, 4), (3, 4, 5)),
        ((2, 3, 3, 4), (4, 5)),
        ((4,), (2, 3, 4, 5)),
        ((2, 2, 1, 17, 33), (1, 3, 33, 9)),
        ((2, 0, 3, 4), (2, 1, 4, 5)),
    ],
)
def test_batches_of_products_broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = numbers(*a), numbers(*b, seed=1)
    found = vd.matmul(vd.asbuffer(left), vd.asbuffer(right))
    np.testing.assert_array_equal(read(found), left @ right)
    if len(a) > 1:
        swapped = vd.asbuffer(np.ascontiguousarray(left.swapaxes(-1, -2)))
        np.testing.assert_array_equal(
            read(vd.matmul(swapped, vd.asbuffer(right), transpose_a=True)), left @ right
        )


def test_batches_that_do_not_broadcast() -> None:
    with pytest.raises(ValueError, match=r"a, b: .*\(2, 3, 1, 1\).*along each axis"):
        vd.matmul(vd.Buffer((2, 3, 1, 1), vd.float32), vd.Buffer((3, 2, 1, 1), vd.float32))


def test_transforms() -> None:
    x = (X + 1j * X[::-1]).astype(np.complex64)
    for call, truth in (
        (lambda z: vd.fft.fft(z, axis=2), lambda z: np.fft.fft(z, axis=2)),
        (vd.fft.fft2, np.fft.fft2),
        (vd.fft.fft3, lambda z: np.fft.fftn(z, axes=(2, 3, 4))),
        (vd.fft.fftn, np.fft.fftn),
    ):
        buffer = vd.asbuffer(x)
        call(buffer)
        np.testing.assert_allclose(read(buffer), truth(x), atol=1e-3)
    reals = vd.asrfftbuffer(X)
    vd.fft.rfft2(reals)
    np.testing.assert_allclose(reals.read_fourier(0), np.fft.rfft2(X), atol=1e-3)


def test_kernels_see_one_axis() -> None:
    @vd.shader("x.size")
    def note(sizes: Buff[i32], x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        with vc.if_block(i < 4):
            sizes[i] = vc.select(i == 0, x.shape.x, vc.select(i == 1, x.shape.y, x.shape.w))
        x[i] = x[i] + 1

    sizes, x = vd.Buffer(4, vd.int32), vd.asbuffer(X)
    note(sizes, x)
    np.testing.assert_array_equal(read(x), X + 1)
    x = vd.asbuffer(X)
    note(sizes, x, exec_size="x.shape[0]")
    assert read(sizes).tolist() == [X.size, 1, X.size, X.size]
    np.testing.assert_array_equal(read(x), X + 1)
    host = X.copy()
    note.interpret(np.zeros(4, np.int32), host)
    np.testing.assert_array_equal(host, X + 1)


@pytest.mark.parametrize("axes", [None, (0, 2, 4), (1, 3), 3])
def test_shifts_of_frequencies(axes: Any) -> None:
    for shift, truth in ((vd.fft.fftshift, np.fft.fftshift), (vd.fft.ifftshift, np.fft.ifftshift)):
        np.testing.assert_array_equal(read(shift(vd.asbuffer(X), axes)), truth(X, axes))
    even = numbers(2, 4, 2, 6, 2)
    buffer = vd.asbuffer(even)
    vd.fft.fftshift(buffer, axes, out=buffer)
    np.testing.assert_array_equal(read(buffer), np.fft.fftshift(even, axes))
