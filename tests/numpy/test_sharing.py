"""Which results share memory with an argument, seen by writing; and edges that random programs found."""

from __future__ import annotations

import warnings

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from tests.numpy.both import run_texts

# Results that are written, so that what shares memory with `x` changes it.
SHARING = """
    r = m.floor(x); r[...] = 7
    r = m.ceil(x); r[...] = 7
    r = m.trunc(x); r[...] = 7
    r = m.rint(x) if x.dtype.kind == "f" else m.sign(x); r[...] = 7
    r = m.round(x); r[...] = 7
    r = x.round(1); r[...] = 7
    r = m.positive(x); r[...] = 7
    r = m.clip(x, None, 99); r[...] = 7
    r = m.nan_to_num(x); r[...] = 7
    r = m.take(x, 1, axis=0); r[...] = 7
    r = x[:1].sum(axis=0); r[...] = 7
    r = m.max(x, axis=()); r[...] = 7
    r = m.cumsum(x[:, :1], axis=1); r[...] = 7
    r = m.concatenate([x]); r[...] = 7
    r = m.tile(x, 1); r[...] = 7
    r = m.repeat(x, 1, axis=0); r[...] = 7
    r = m.roll(x, 0, axis=0); r[...] = 7
    r = m.pad(x, 0); r[...] = 7
    r = m.sort(x[:1], axis=0); r[...] = 7
    r = m.median(x[:1], axis=0); r[...] = 7
    r = x.astype(x.dtype); r[...] = 7
    r = x.astype(x.dtype, copy=False); r[...] = 7
    r = m.reshape(x[:, ::-1], -1); r[...] = 7
    r = m.reshape(x[::-1, ::-1], -1); r[...] = 7
    r = x.ravel(); r[...] = 7
    r = x[1:].ravel(); r[...] = 7
    r = x[::-1, ::-1].ravel(); r[...] = 7
    r = x[:, 1].ravel(); r[...] = 7
    r = x.T.ravel(); r[...] = 7
    r = x.T.ravel("F"); r[...] = 7
    r = x.T.ravel("A"); r[...] = 7
    r = m.ravel(x[:, None], "K"); r[...] = 7
    r = m.squeeze(x[:1]); r[...] = 7
    r = m.real(x); r[...] = 7
    y = x + 1; r = y.real; r[...] = 7; r = y
    y = x + 1; r = y[...]; r[...] = 7; r = y
    y = x + 1; r = m.asarray(y); r[...] = 7; r = y
    y = x + 1; r = y * 2; y[...] = 7
    y = x + 1; r = m.reshape(y, y.shape); y += 3
    r = m.flip(x, axis=()); r[...] = 7
    r = m.split(x, 1)[0]; r[...] = 7
"""


@pytest.mark.parametrize("kind", ["int32", "float32"])
def test_results_share_memory_where_numpys_do(kind: str) -> None:
    run_texts(SHARING, np.arange(1, 13).reshape(4, 3).astype(kind))


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_parts_of_complex_numbers_are_views(kind: str) -> None:
    texts = """
        x.real[...] = 7; r = x
        x.imag[1] = y[1].imag; r = x
        x.real = 3; r = x
        x.imag = y.real; r = x
        x[::2, 1].imag = -1; r = x
        x.T[1:].real[:, ::-1] = y.T[1:].imag; r = x
        x.imag[x.real > 5] = 0; r = x
        x.real += x.imag; r = x
        r = x.real; x[...] = 2
        r = x.real * 2; x.real = 1
        z = x * 2; z.real[...] = 7; r = z
        z = x * 2; r = z.imag; z *= 3
        x.real = (x * y).imag; r = x
        z = m.asarray(2 + 3j); z.imag = 5; r = z
        z = x[:0]; z.real = 1; r = z.imag
        z = x.real; z.real = 2; r = x
        r = x.real.strides
    """
    run_texts(texts, (np.arange(1, 13) + 1j * np.arange(12)).reshape(4, 3).astype(kind), np.ones((4, 3)) * 2j)
    with pytest.raises(TypeError, match="imag"):
        vnp.ones(2).imag = 1


def test_masks_of_repeated_and_of_no_elements() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    mask = np.random.default_rng(0).integers(0, 2, (2, 1, 4)).astype(bool)
    texts = """
        r = m.broadcast_to(x[0], (2, 3, 4))[:, None, 0][y]
        r = m.broadcast_to(x, (2, *x.shape))[:, :1, :, 0][m.ones((2, 1, 3), dtype=bool)]
        r = x[:, :1][y]
        x[:, 1:2][y] = -1; r = x
        r = x[:, ::-2][:, :1][y]
        r = x[m.zeros((0,), dtype=bool)]
        r = x[m.zeros((2, 0), dtype=bool)]
        r = x[m.zeros((0, 3, 4), dtype=bool)]
        r = x[np.zeros((0, 0, 0), dtype=bool)]
        r = x[m.zeros((0, 5), dtype=bool)]
        r = x[m.zeros((3,), dtype=bool)]
        x[m.zeros((2, 0), dtype=bool)] = 5; r = x
        x[m.zeros((0, 2), dtype=bool)] = 5
        r = m.zeros((0, 1))[m.zeros((0, 0), dtype=bool)]
    """
    run_texts(texts, x, mask)


def test_numbers_of_numpy_on_the_left() -> None:
    texts = """
        r = np.uint8(3) < x
        r = np.float32(3) == x
        r = np.int64(3) >= x
        r = np.int8(3) != x
        r = np.asarray(3, "int16") + x
        r = x * np.asarray(3, "int16")
        r = np.asarray(3.5) > x
    """
    run_texts(texts, np.arange(6, dtype=np.uint16))
    with pytest.raises(TypeError, match="convert it with vnp"):
        np.asarray([3]) + vnp.arange(3)


def test_arrays_of_no_axes_and_of_no_elements() -> None:
    texts = """
        r = m.cumulative_sum(x)
        r = m.cumulative_sum(x, include_initial=True)
        r = m.cumulative_prod(x, axis=0, include_initial=True)
        r = m.cumulative_sum(x, axis=1)
        r = m.partition(y, 0)
        r = m.argpartition(y, 5, axis=1)
        r = m.einsum("ii->i", z)
        r = m.einsum("ii", z)
        r = m.bincount(y[0])
        r = m.bincount(y[0].astype(int))
    """
    run_texts(texts, np.asarray(3.5, np.float32), np.zeros((3, 0)), np.ones((1, 3)))


def test_python_integers_are_searched_exactly() -> None:
    # NumPy goes by float64, to which these are equal
    x = vnp.asarray(np.array([2**63 - 1, 2**63, 2**63 + 1], np.uint64))
    assert int(vnp.searchsorted(x, 2**63, side="left")) == 1
    assert int(vnp.searchsorted(x, 2**63, side="right")) == 2
    assert vnp.isin(x, 2**63).tolist() == [False, True, False]
    assert vnp.isin(2**62, x).item() is False
    assert vnp.searchsorted(vnp.asarray(np.array([1, 2], np.int8)), 300).item() == 2
    assert vnp.isin(vnp.asarray(np.array([44, 2], np.int8)), 300).tolist() == [False, False]


def test_eigenvalues_are_complex_whatever_they_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vnp.linalg.PerformanceWarning)
        for data in (np.diag([1, 2, 3]).astype(np.float32), np.array([[0, 1], [-1, 0]], np.float32)):
            values, vectors = vnp.linalg.eig(vnp.asarray(data))
            assert (
                values.dtype == vectors.dtype == vnp.linalg.eigvals(vnp.asarray(data)).dtype == np.complex64
            )
            np.testing.assert_allclose(data @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-5)


def test_arguments_that_numpys_functions_take() -> None:
    texts = """
        r = m.frexp(x)
        r = m.frexp(y)
        r = m.modf(x)
        r = m.modf(y)
        r = m.spacing(x)
        r = m.ldexp(y, 3)
        r = m.angle(x > 1)
        r = m.angle(x)
        r = m.size(x, axis=(0, 1))
        r = m.size(x, axis=-1)
        r = m.size(x, axis=2)
        r = m.permute_dims(x)
        r = m.transpose(x[0], 0)
        r = m.transpose(x, 0)
        r = m.transpose(x, range(2))
        r = m.vstack([x, y], dtype="float32")
        r = m.hstack([x, y], dtype="int8")
        r = m.hstack([x, y * 1.0], dtype="int8")
        r = m.vsplit(x[0], 1)
        r = m.dsplit(x, 1)
        r = m.hsplit(x[0, 0], 1)
        r = m.vsplit(x, 1)
    """
    run_texts(texts, np.arange(6).reshape(2, 3).astype("int16"), np.arange(6).reshape(2, 3).astype("uint8"))


# Of the array x, or of an expression: whatever is written to one shows in the other.
PARTS = """
r = m.real(x); r[...] = 7
r = m.imag(x); r += 1
r = m.real(x); x[...] = 2
r = m.imag(x[::-1, 1]); r[1:] = 9; x += 1j
r = m.real(x.T); r[0] = m.imag(x.T)[1]
r = m.real(x[0, 1, ...]); r[...] = 4
y = x * 2; r = m.real(y); r[...] = 7; r = y
y = x * 2; r = m.imag(y); r += 1; r = y
y = x * 2; r = m.imag(y); r[1:] += 1; r = y
y = x * 2; r = m.real(y); y[...] = 7
y = x * 2; r = m.real(y); y += 7 + 1j
y = x * 2; r = m.real(y); y[0] = 7
y = x * 2; r = m.real(y); s = r + 1; y[...] = 7; r = s
y = x * 2; r = m.real(y); s = r + 1; r[...] = 7; r = s
y = x * 2; r = m.imag(y); s = m.real(y); s[...] = r; r = y
y = x * 2; r = m.real(y); x[...] = 0; r[...] = 3; r = y
y = x * 2; r = m.real(y); x[...] = 0; y[...] = 3
y = x * 2; r = m.real(y); str(r); r[...] = 3; r = y
y = x * 2; r = m.real(y); str(y); r[...] = 3; r = y
y = x * 2; r = m.real(y); str(y); y[...] = 3
y = x * 2; r = m.real(y)[1:]; r[...] = 3; r = y
y = x * 2; r = m.real(y); t = m.imag(m.conj(y)); m.add(r, t, out=r); r = y
r = m.real(x * 2); r += 1
r = m.real(x * 2) + m.imag(x * 3)
r = m.real(m.real(x)); r[...] = 5
"""


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_parts_of_complex_numbers_share_memory(kind: str) -> None:
    x = np.arange(12).reshape(3, 4) + 1j * np.arange(12, 24).reshape(3, 4)
    run_texts(PARTS, x.astype(kind))


def test_parts_of_expressions_stay_in_one_kernel() -> None:
    z = vnp.asarray(np.arange(8) + 1j * np.arange(8))
    text = str(vnp.explain(vnp.real(z * 2) * vnp.imag(z * 3) + 1))
    assert text.count("kernel") == str(vnp.explain(z * 2)).count("kernel")
    named = z * 2
    r = vnp.real(named) + 1
    assert type(r._value).__name__ == "Node"
    assert type(named._value).__name__ == "Node"
    np.testing.assert_array_equal(r.numpy(), np.arange(8) * 2 + 1)
    assert named._value.result is None
