"""`norm` in every function, and transforms over any axes, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError

NORMS = (None, "backward", "ortho", "forward")
KINDS = [np.complex64] + ([np.complex128] if vd.get_devices()[0].float_64_support else [])


def noise(shape: tuple[int, ...], kind: Any) -> np.ndarray:
    generator = np.random.default_rng(sum(shape))
    values = generator.standard_normal(shape) + 1j * generator.standard_normal(shape)
    return values.astype(kind)


def close(ours: np.ndarray, wanted: np.ndarray) -> None:
    eps = np.finfo(ours.dtype).eps
    assert ours.shape == wanted.shape
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=8 * eps * max(1, np.log2(ours.size)) * scale)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *(("fft", (3, 10)), ("fft", (1,)), ("fft", (2, 37)), ("fft2", (6, 5)), ("fft3", (2, 3, 4))),
        *(("ifft", (10,)), ("ifft", (3, 101)), ("ifft", (67, 2)), ("ifft2", (2, 6, 5)), ("ifft3", (4, 3, 2))),
    ],
)
def test_complex(name: str, shape: tuple[int, ...], norm: Any, kind: Any) -> None:
    values = noise(shape, kind)
    buffer = vd.asbuffer(values)
    getattr(vd.fft, name)(buffer, norm=norm)
    theirs: Callable[..., np.ndarray] = getattr(np.fft, name.replace("3", "n"))
    close(buffer.read(0), theirs(values, norm=norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("name", "shape"),
    [("", (3, 9)), ("", (2, 1000)), ("", (5, 64)), ("2", (4, 3, 10)), ("3", (3, 4, 7)), ("n", (5, 6))],
)
def test_real(name: str, shape: tuple[int, ...], norm: Any) -> None:
    values = noise(shape, np.complex64).real.copy()
    buffer = vd.asrfftbuffer(values)
    getattr(vd.fft, "rfft" + name)(buffer, norm=norm)
    forward: Any = getattr(np.fft, "rfft" + name.replace("3", "n"))
    close(buffer.read_fourier(0), forward(values, norm=norm))
    getattr(vd.fft, "irfft" + name)(buffer, norm=norm)
    close(buffer.read_real(0), values)


@pytest.mark.parametrize("norm", ["ortho", "forward"])
def test_lines_longer_than_one_workgroup_holds(norm: Any) -> None:
    values = noise((20480,), np.complex64)
    buffer = vd.asbuffer(values)
    vd.fft.fft(buffer, norm=norm)
    close(buffer.read(0), np.fft.fft(values, norm=norm))
    vd.fft.ifft(buffer, norm=norm)
    close(buffer.read(0), values)


def test_norm_overrides_normalize() -> None:
    values = noise((8,), np.complex64)
    buffer = vd.asbuffer(values)
    vd.fft.ifft(buffer, normalize=False, norm="backward")
    close(buffer.read(0), np.fft.ifft(values))
    buffer.write(values)
    vd.fft.ifft(buffer, norm="ortho")
    close(buffer.read(0), np.fft.ifft(values, norm="ortho"))
    buffer.write(values)
    vd.fft.ifft(buffer, normalize=False)
    close(buffer.read(0), np.fft.ifft(values, norm="forward"))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axes", [None, (0,), 1, (2, 0), (-1, -2), (1, 0, 2), ()])
def test_any_axes(axes: Any, norm: Any) -> None:
    shape = (4, 6, 5)
    values = noise(shape, np.complex64)
    buffer = vd.asbuffer(values)
    theirs = (axes,) if isinstance(axes, int) else axes
    vd.fft.fftn(buffer, axes, norm)
    close(buffer.read(0), np.fft.fftn(values, axes=theirs, norm=norm))
    vd.fft.ifftn(buffer, axes=axes, norm=norm)
    close(buffer.read(0), values)


def test_more_axes_than_buffers_have() -> None:
    shape = (2, 3, 2, 5, 3)
    values = noise(shape, np.complex64)
    buffer = vd.asbuffer(values.reshape(-1))
    vd.fft.fftn(buffer, (0, 3, 1), buffer_shape=shape)
    close(buffer.read(0).reshape(shape), np.fft.fftn(values, axes=(0, 3, 1)))


@pytest.mark.parametrize("norm", NORMS)
def test_real_over_some_axes(norm: Any) -> None:
    values = noise((3, 4, 7), np.complex64).real.copy()
    buffer = vd.asrfftbuffer(values)
    vd.fft.rfftn(buffer, (0, 2), norm)
    close(buffer.read_fourier(0), np.fft.rfftn(values, axes=(0, 2), norm=norm))
    vd.fft.irfftn(buffer, (0, 2), norm)
    close(buffer.read_real(0), values)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_hermitian(n: int, norm: Any) -> None:
    half = noise((3, n // 2 + 1), np.complex64)
    buffer = vd.RFFTBuffer((3, n))
    buffer.write_fourier(half)
    vd.fft.hfft(buffer, norm)
    real = np.fft.hfft(half, n, norm=norm)
    close(buffer.read_real(0), real)
    buffer.write_real(real.astype(np.float32))
    vd.fft.ihfft(buffer, norm)
    close(buffer.read_fourier(0), np.fft.ihfft(real, norm=norm))


def test_graphs_record_them() -> None:
    values = noise((4, 5), np.complex64)
    buffer = vd.asbuffer(values)
    graph = vd.CommandGraph()
    vd.fft.fftn(buffer, norm="ortho", graph=graph)
    np.testing.assert_array_equal(buffer.read(0), values)
    graph.submit()
    close(buffer.read(0), np.fft.fftn(values, norm="ortho"))


def test_wrong_arguments() -> None:
    buffer = vd.Buffer((4, 5), vd.complex64)
    with pytest.raises(ArgumentValueError, match=r'norm: expected "backward".*sideways'):
        vd.fft.fft(buffer, norm="sideways")
    with pytest.raises(ArgumentValueError, match="norm"):
        vd.fft.fftn(buffer, axes=(), norm="sideways")
    with pytest.raises(ArgumentValueError, match=r"axes: repeated axis"):
        vd.fft.fftn(buffer, axes=(1, -1))
    with pytest.raises(ArgumentIndexError, match="axes: 2"):
        vd.fft.ifftn(buffer, axes=(0, 2))
    with pytest.raises(ArgumentTypeError, match="axes"):
        vd.fft.fftn(buffer, axes=(0, None))
    with pytest.raises(ArgumentTypeError, match="RFFTBuffer"):
        vd.fft.rfftn(buffer)
    with pytest.raises(ArgumentValueError, match="named last"):
        vd.fft.rfftn(vd.RFFTBuffer((4, 5)), axes=(1, 0))
