"""Cosine and sine transforms against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import vkdispatch as vd
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError

HAS_F64 = bool(vd.get_devices()[0].float_64_support)


def noise(shape: tuple[int, ...], kind: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(kind)


def close(ours: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> None:
    assert ours.dtype == values.dtype
    assert ours.shape == wanted.shape
    eps = np.finfo(ours.dtype).eps
    # the error of all values of a transform is alike, and goes with the greatest
    bound = 6 * eps * (2 + np.log2(ours.size)) * np.abs(wanted).max()
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=bound)


@pytest.mark.parametrize("n", [1, 2, 6, 15, 37])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("family", ["dct", "dst"])
def test_lengths(family: str, type: int, n: int) -> None:
    if (family, type, n) == ("dct", 1, 1):
        pytest.skip("DCT-I begins with two values")
    values = noise((3, n))
    wanted = getattr(scipy.fft, family)(values.astype(np.float64), type)
    close(getattr(vd.fft, family)(vd.asbuffer(values), type).read(0), values, wanted)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("family", ["dct", "dst"])
def test_longer_lines_of_several_stages(family: str, type: int) -> None:
    n = {"dct": 121, "dst": 119}[family] if type == 1 else 240 if family == "dct" else 135
    values = noise((2, n))
    wanted = getattr(scipy.fft, family)(values.astype(np.float64), type)
    close(getattr(vd.fft, family)(vd.asbuffer(values), type).read(0), values, wanted)


@pytest.mark.parametrize("type", [2, 4])
def test_long_primes(type: int) -> None:
    values = noise((2, 1021))
    buffer = vd.asbuffer(values)
    vd.fft.dst(buffer, type, out=buffer, norm="ortho")
    wanted = scipy.fft.dst(values.astype(np.float64), type, norm="ortho")
    close(buffer.read(0), values, wanted)


@pytest.mark.parametrize("type", [2, 4])
def test_lines_longer_than_one_workgroup_holds(type: int) -> None:
    values = noise((2, 20480))
    buffer = vd.asbuffer(values)
    vd.fft.dct(buffer, type, out=buffer)
    close(buffer.read(0), values, scipy.fft.dct(values.astype(np.float64), type))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("family", ["dct", "dst"])
def test_norms_and_inverses(family: str, type: int, norm: Any) -> None:
    values = noise((2, 8 if type == 4 else 9))
    forward, inverse = getattr(vd.fft, family), getattr(vd.fft, "i" + family)
    theirs = getattr(scipy.fft, family)
    there = forward(vd.asbuffer(values), type, norm=norm)
    close(there.read(0), values, theirs(values.astype(np.float64), type, norm=norm))
    close(inverse(there, type, norm=norm).read(0), values, values)


@pytest.mark.parametrize("type", [1, 2, 3])
@pytest.mark.parametrize("family", ["dct", "idct", "dst"])
def test_orthogonalize_is_independent_of_norm(family: str, type: int) -> None:
    values = noise((7,))
    for norm, flag in (("ortho", False), ("forward", True)):
        wanted = getattr(scipy.fft, family)(values.astype(np.float64), type, norm=norm, orthogonalize=flag)
        ours = getattr(vd.fft, family)(vd.asbuffer(values), type, norm=norm, orthogonalize=flag)
        close(ours.read(0), values, wanted)


def test_orthogonal_matrices() -> None:
    for type in (1, 2, 3, 4):
        matrix = vd.fft.dct(vd.asbuffer(np.eye(8, dtype=np.float32)), type, norm="ortho").read(0)
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(8), atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("family", "type"), [("dct", 1), ("dct", 2), ("dst", 3), ("dct", 4), ("dst", 4)])
def test_axes(family: str, type: int, axis: int) -> None:
    values = noise((5, 6, 10))
    buffer = vd.asbuffer(values)
    ours = getattr(vd.fft, family)(buffer, type, axis)
    close(ours.read(0), values, getattr(scipy.fft, family)(values.astype(np.float64), type, axis=axis))
    np.testing.assert_array_equal(buffer.read(0), values)


@pytest.mark.parametrize(("name", "type"), [("dctn", 2), ("idctn", 2), ("dstn", 1), ("idstn", 4)])
def test_several_axes(name: str, type: int) -> None:
    values = noise((4, 3, 5))
    for axes in (None, (2, 0), 1, ()):
        ours = getattr(vd.fft, name)(vd.asbuffer(values), type, axes, "ortho").read(0)
        theirs = getattr(scipy.fft, name)(values.astype(np.float64), type, axes=axes, norm="ortho")
        close(ours, values, theirs)


@pytest.mark.skipif(not HAS_F64, reason="the device has no float64")
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("family", ["dct", "dst"])
def test_double_precision(family: str, type: int) -> None:
    for n in (5, 64 + (type == 1) * (1 if family == "dct" else -1)):
        values = noise((2, n), np.float64)
        ours = getattr(vd.fft, family)(vd.asbuffer(values), type, norm="ortho").read(0)
        close(ours, values, getattr(scipy.fft, family)(values, type, norm="ortho"))


def test_in_place_with_out_and_in_a_graph() -> None:
    values = noise((12, 10))
    wanted = scipy.fft.dctn(values.astype(np.float64))
    buffer, graph = vd.asbuffer(values), vd.CommandGraph()
    assert vd.fft.dctn(buffer, out=buffer, graph=graph) is buffer
    np.testing.assert_array_equal(buffer.read(0), values)
    graph.submit()
    close(buffer.read(0), values, wanted)
    out = vd.Buffer(values.shape, vd.float32)
    assert vd.fft.idctn(buffer, out=out) is out
    close(out.read(0), values, values)


def test_more_axes_than_buffers_have() -> None:
    values = noise((2, 3, 4, 5))
    ours = vd.fft.dct(vd.asbuffer(values.reshape(-1)), axis=1, buffer_shape=values.shape)
    assert ours.shape == (120,)
    wanted = scipy.fft.dct(values.astype(np.float64), axis=1)
    close(ours.read(0).reshape(values.shape), values, wanted)


def test_wrong_arguments() -> None:
    buffer = vd.Buffer((4, 1), vd.float32)
    with pytest.raises(ArgumentValueError, match="type: expected 1, 2, 3 or 4, got 5"):
        vd.fft.dct(buffer, 5)
    with pytest.raises(ArgumentTypeError, match="type: expected 1, 2, 3 or 4"):
        vd.fft.dct(buffer, "2")
    with pytest.raises(ArgumentTypeError, match="type: expected 1, 2, 3 or 4, got bool True"):
        vd.fft.dct(buffer, True)
    with pytest.raises(ArgumentValueError, match="DCT-I needs at least 2"):
        vd.fft.dct(buffer, 1)
    with pytest.raises(ArgumentIndexError, match="axis"):
        vd.fft.dct(buffer, axis=2)
    with pytest.raises(ArgumentValueError, match="norm"):
        vd.fft.dst(buffer, norm="unitary")
    with pytest.raises(ArgumentValueError, match=r"buffer: expected float32.*complex64"):
        vd.fft.dct(vd.Buffer(4, vd.complex64))
    with pytest.raises(ArgumentTypeError, match="buffer"):
        vd.fft.dct([0.0, 0.0])
    with pytest.raises(ArgumentValueError, match="out: expected shape"):
        vd.fft.dct(buffer, out=vd.Buffer((1, 4), vd.float32))
    with pytest.raises(ArgumentValueError, match="buffer_shape"):
        vd.fft.dct(buffer, buffer_shape=(3,))
