"""Maps, reductions, scans and vectorized functions notice what they read from outside, as kernels do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.codegen.abbreviations import Buff, c64, f32

SCALE: Any = 2.0
VALUES = np.arange(1, 8, dtype=np.float32)


def helper(x: Any) -> Any:
    return x * SCALE


@vd.map
def scaled(x: f32) -> f32:
    return helper(x)


@vd.map
def element(x: Buff[f32]) -> f32:
    return helper(x[vd.mapped_index()])


@vd.map
def scaled_complex(x: Buff[c64]) -> None:
    op = vd.fft.read_op()
    op.register[:] = helper(x[op.io_index])


@vd.reduce.reduce(identity=0)
def weighted(a: f32, b: f32) -> f32:
    return vc.max(a, b) + 0 * SCALE


@vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
def weighted_sum(x: Buff[f32]) -> f32:
    return helper(x[vd.mapped_index()])


@vd.scan
def clipped(a: f32, b: f32) -> f32:
    return vc.min(a + b, vc.to_float(SCALE))


@vnp.vectorize
def vectorized(x):  # type: ignore[no-untyped-def]
    return helper(x) if x > 2 else x


@pytest.fixture(autouse=True)
def scale(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    monkeypatch.setitem(globals(), "SCALE", 2.0)

    def change(value: float) -> None:
        globals()["SCALE"] = value

    return change


def buffer() -> Any:
    return vd.asbuffer(VALUES)


def fft(x: Any, **maps: Any) -> Any:
    signal = vd.asbuffer(x.astype(np.complex64))
    out = vd.Buffer(signal.shape, vd.complex64)
    vd.fft.fft(out, signal, **maps)
    return out.read(0)


CALLS: dict[str, tuple[Callable[[], Any], Callable[[float], Any]]] = {
    "sum of a map": (lambda: vd.sum(scaled(buffer())).read(0), lambda s: [VALUES.sum() * s]),
    "output map": (lambda: vd.sum(buffer(), output_map=scaled).read(0), lambda s: [VALUES.sum() * s]),
    "evaluation": (lambda: scaled(buffer()).read(0), lambda s: VALUES * s),
    "sort": (lambda: vd.sort(scaled(buffer())).read(0), lambda s: np.sort(VALUES * s)),
    "cumsum": (lambda: vd.cumsum(scaled(buffer())).read(0), lambda s: (VALUES * s).cumsum()),
    "matmul": (
        lambda: vd.matmul(vd.asbuffer(VALUES[None]), vd.asbuffer(VALUES[:, None]), output_map=scaled).read(0),
        lambda s: VALUES[None] @ VALUES[:, None] * s,
    ),
    "mapped reduction": (lambda: weighted_sum(buffer()).read(0), lambda s: [VALUES.sum() * s]),
    "scan": (lambda: clipped(buffer()).read(0), lambda s: np.minimum(VALUES.cumsum(), s)),
    "fft": (lambda: fft(VALUES[:4], input_map=scaled_complex), lambda s: np.fft.fft(VALUES[:4] * s)),
    "vectorize": (
        lambda: vectorized(vnp.asarray(VALUES)).numpy(),
        lambda s: np.where(VALUES > 2, VALUES * s, VALUES),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_global_that_changes(name: str, scale: Callable[[float], None]) -> None:
    call, expected = CALLS[name]
    for value in (2.0, 3.0, 2.0, 4.5, 3.0):
        scale(value)
        # the first call is recorded, and later ones repeat it
        for _ in range(3):
            np.testing.assert_allclose(call(), expected(value), rtol=1e-6)
