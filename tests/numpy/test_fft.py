"""Fourier transforms against NumPy: lengths, axes, norms, dtypes, views."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp


def _signal(shape: tuple[int, ...], kind: str) -> Any:
    random = np.random.default_rng(3)
    if np.dtype(kind).kind == "c":
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(kind)
    return (4 * random.standard_normal(shape)).astype(kind)


def _agrees(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    tolerance = 1e-10 if expected.dtype.itemsize // (1 + (expected.dtype.kind == "c")) == 8 else 2e-4
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("length", [1, 2, 5, 12, 17, 97, 1021])
def test_lengths(length: int) -> None:
    for name, kind in (("fft", "c8"), ("rfft", "f4"), ("irfft", "c8")):
        if name == "irfft" and length == 1:
            continue
        x = _signal((3, length), kind)
        _agrees(getattr(vnp.fft, name)(vnp.asarray(x)), getattr(np.fft, name)(x))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_axes_lengths_and_norms(name: str) -> None:
    x = _signal((4, 5, 6), "f4" if name in ("rfft", "ihfft") else "c8")
    y = vnp.asarray(x)
    for axis, n, norm in ((0, None, "ortho"), (1, 7, None), (-1, 4, "forward"), (1, 1, "backward")):
        expected = getattr(np.fft, name)(x, n, axis, norm)
        _agrees(getattr(vnp.fft, name)(y, n=n, axis=axis, norm=norm), expected)
    # views, and expressions
    _agrees(getattr(vnp.fft, name)(y.T[::-1, ::2] + 1), getattr(np.fft, name)(x.T[::-1, ::2] + np.float32(1)))
    with pytest.raises(ValueError, match="at least 1 element"):
        getattr(vnp.fft, name)(y, 0)
    with pytest.raises(ValueError, match="norm"):
        getattr(vnp.fft, name)(y, norm="other")
    with pytest.raises(IndexError, match="axis"):
        getattr(vnp.fft, name)(y, axis=3)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_axes(name: str) -> None:
    x = _signal((4, 3, 2, 5), "f4" if name == "rfftn" else "c8")
    y = vnp.asarray(x)
    for s, axes in (
        (None, None),
        (None, (0, 2)),
        ((3, 7), (3, 0)),
        ((-1, 4), (0, 1)),
        ((3, 4, 5), (0, 1, 0)),
    ):
        _agrees(getattr(vnp.fft, name)(y, s=s, axes=axes), getattr(np.fft, name)(x, s, axes))
    _agrees(
        getattr(vnp.fft, name[:-1] + "2")(y, norm="ortho"), getattr(np.fft, name[:-1] + "2")(x, norm="ortho")
    )
    with pytest.raises(ValueError, match="as many lengths as axes"):
        getattr(vnp.fft, name)(y, s=(2,), axes=(0, 1))


def test_dtypes() -> None:
    for kind in ("f2", "i1", "?", "f8"):
        x = _signal((3, 8), kind)
        expected = np.fft.rfft(x)
        if vnp.__array_namespace_info__().default_dtypes()["real floating"] != np.float64:
            expected = expected.astype(np.complex64)
        found = vnp.fft.rfft(vnp.asarray(x))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-3, atol=2e-3)
    with pytest.raises(TypeError, match="real"):
        vnp.fft.rfft(vnp.zeros(4, dtype=np.complex64))


def test_the_argument_and_its_imaginary_edges_stay() -> None:
    x = _signal((2, 5), "c8")
    y = vnp.asarray(x)
    _agrees(vnp.fft.irfft(y, n=8), np.fft.irfft(x, n=8))
    np.testing.assert_array_equal(y.numpy(), x)
    out = vnp.zeros((2, 5), dtype=np.complex64)
    assert vnp.fft.fft(y, out=out) is out
    _agrees(out, np.fft.fft(x))


def test_empty_arrays() -> None:
    _agrees(vnp.fft.rfft(vnp.zeros((0, 6), dtype=np.float32)), np.fft.rfft(np.zeros((0, 6), np.float32)))
    _agrees(
        vnp.fft.irfft(vnp.zeros((0, 4), dtype=np.complex64)), np.fft.irfft(np.zeros((0, 4), np.complex64))
    )
    with pytest.raises(ValueError, match="at least 1 element"):
        vnp.fft.fft(vnp.zeros((3, 0)))


def test_frequencies_and_shifts() -> None:
    for n in (1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            found = getattr(vnp.fft, name)(n, 0.1)
            np.testing.assert_allclose(found.numpy(), getattr(np.fft, name)(n, 0.1), rtol=1e-6)
            assert getattr(vnp.fft, name)(n, dtype=vnp.float32).dtype == np.float32
    x = _signal((4, 5), "f4")
    for axes in (None, 0, (0, -1), (0, 0), [1, -1], (0, 1, -2), ()):
        _agrees(vnp.fft.fftshift(vnp.asarray(x), axes=axes), np.fft.fftshift(x, axes))
        _agrees(vnp.fft.ifftshift(vnp.asarray(x), axes=axes), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "fft2", "rfftn", "irfftn"]
)
@pytest.mark.parametrize("length", [3, 5, 8])
def test_transforms_leave_their_argument(name: str, length: int) -> None:
    host = _signal((5, 5), "f8" if name in ("rfft", "ihfft", "rfftn") else "c16")
    for x in (
        vnp.asarray(host) * 1,
        vnp.asarray(host) + 0,
        vnp.asarray(host),
    ):  # not computed yet, and computed
        extents = {"s": (length, length), "axes": (0, 1)} if name[-1] in "n2" else {"n": length}
        first = getattr(vnp.fft, name)(x, **extents).numpy()
        np.testing.assert_array_equal(x.numpy(), host)
        np.testing.assert_array_equal(getattr(vnp.fft, name)(x, **extents).numpy(), first)
        np.testing.assert_allclose(first, getattr(np.fft, name)(host, **extents), rtol=1e-10, atol=1e-10)
