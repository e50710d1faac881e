"""Signals, maps and truths that the tests of transforms share.

`beside_010` runs the maps in 0.1.0, too, which takes no annotations that are texts.
"""

from typing import Any

import numpy as np

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32


def signal(*shape: int, seed: int = 0, kind: Any = np.complex64) -> Any:
    generator = np.random.default_rng((seed, *shape))
    return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(kind)


def real(*shape: int, seed: int = 0, kind: Any = np.float32) -> Any:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(kind)


def close(a: Any, b: Any) -> None:
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, atol=1e-4 * max(1.0, float(np.abs(b).max())))


def correlated(a: Any, k: Any, axes: tuple[int, ...]) -> Any:
    return np.fft.ifftn(np.fft.fftn(a, axes=axes) * np.conj(np.fft.fftn(k, axes=axes)), axes=axes)


# ---- maps that the tests share ---------------------------------------------------------------------


@vd.map
def read_plainly(source: Buff[c64]) -> None:
    op = vd.fft.read_op()
    op.read_from_buffer(source)


@vd.map
def read_reals(source: Buff[f32]) -> None:
    op = vd.fft.read_op()
    op.register.real = source[op.io_index]
    op.register.imag = 0


@vd.map
def write_plainly(target: Buff[c64]) -> None:
    op = vd.fft.write_op()
    op.write_to_buffer(target)


@vd.map
def write_scaled(target: Buff[c64], scale: Const[f32]) -> None:
    op = vd.fft.write_op()
    target[op.io_index] = op.register * scale


@vd.map
def scale_spectrum(scales: Buff[f32]) -> None:
    op = vd.fft.read_op()
    op.register[:] = op.register * scales[op.io_index]


@vd.map
def scale_all(scale: Const[f32]) -> None:
    op = vd.fft.read_op()
    op.register[:] = op.register * scale
