"""Frequencies and shifts, of arrays and of buffers, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError

SHAPES = [(1,), (2,), (7,), (600,), (5, 4), (3, 1), (2, 3, 5), (4, 6, 2)]
AXES = [None, 0, -1, (0, -1), ()]


def pairs() -> list[tuple[tuple[int, ...], Any]]:
    return [(shape, axes) for shape in SHAPES for axes in AXES if axes != (0, -1) or len(shape) > 1]


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize(("shape", "axes"), pairs())
def test_shifts(name: str, shape: tuple[int, ...], axes: Any) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    ours, theirs = getattr(vd.fft, name), getattr(np.fft, name)
    wanted = theirs(values, axes)
    np.testing.assert_array_equal(ours(values, axes), wanted)
    buffer = vd.asbuffer(values)
    shifted = ours(buffer, axes)
    np.testing.assert_array_equal(shifted.read(0), wanted)
    np.testing.assert_array_equal(buffer.read(0), values)
    chosen = range(len(shape)) if axes is None else (axes,) if isinstance(axes, int) else axes
    if all(shape[axis] % 2 == 0 or shape[axis] == 1 for axis in chosen):
        assert ours(buffer, axes, out=buffer) is buffer
        np.testing.assert_array_equal(buffer.read(0), wanted)
    else:
        with pytest.raises(ArgumentValueError, match=r"out: .* only axes of even length"):
            ours(buffer, axes, out=buffer)


def test_other_dtypes_and_graphs() -> None:
    values = (np.arange(15) + 1j).astype(np.complex64).reshape(3, 5)
    buffer, graph = vd.asbuffer(values), vd.CommandGraph()
    out = vd.asbuffer(np.zeros_like(values))
    assert vd.fft.fftshift(buffer, out=out, graph=graph) is out
    assert not out.read(0).any()
    graph.submit()
    np.testing.assert_array_equal(out.read(0), np.fft.fftshift(values))
    vectors = np.arange(12, dtype=np.uint32).reshape(6, 2)
    buffer = vd.Buffer(6, vd.uvec2)
    buffer.write(vectors)
    np.testing.assert_array_equal(vd.fft.fftshift(buffer).read(0), np.fft.fftshift(vectors, 0))


@pytest.mark.parametrize("n", [1, 2, 9, 10])
def test_frequencies(n: int) -> None:
    np.testing.assert_array_equal(vd.fft.fftfreq(n, 0.1), np.fft.fftfreq(n, 0.1))
    np.testing.assert_array_equal(vd.fft.rfftfreq(n), np.fft.rfftfreq(n))


def test_wrong_arguments() -> None:
    buffer = vd.Buffer((4, 5), vd.float32)
    with pytest.raises(ArgumentIndexError, match="axes: 2 is out of bounds"):
        vd.fft.fftshift(buffer, 2)
    with pytest.raises(ArgumentValueError, match=r"axes: repeated axis"):
        vd.fft.fftshift(buffer, (0, 0))
    with pytest.raises(ArgumentValueError, match=r"out: expected shape \(4, 5\) of float32"):
        vd.fft.fftshift(buffer, out=vd.Buffer((5, 4), vd.float32))
    with pytest.raises(ArgumentTypeError, match="out: expected a"):
        vd.fft.fftshift(buffer, out=np.zeros((4, 5), np.float32))
    with pytest.raises(ArgumentTypeError, match="graph: it is for buffers"):
        vd.fft.fftshift(np.zeros(4), graph=vd.CommandGraph())


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 5)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    buffer = vd.asbuffer(np.empty(shape, np.float32))
    for shift in (vd.fft.fftshift, vd.fft.ifftshift):
        assert shift(buffer).shape == shape
        assert shift(buffer, 0, out=buffer) is buffer


def test_frequencies_of_no_samples() -> None:
    for function in (vd.fft.fftfreq, vd.fft.rfftfreq):
        with pytest.raises(ArgumentValueError, match="n: expected an int from 1 on, got 0"):
            function(0)
        with pytest.raises(ArgumentTypeError, match=r"n: expected an int, got float 2\.5"):
            function(2.5)  # type: ignore[arg-type]
        with pytest.raises(ArgumentValueError, match="d: "):
            function(4, 0.0)
