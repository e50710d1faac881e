"""Linear algebra against NumPy: products, norms, factors by residuals, and errors."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from tests.numpy.both import check_evaluations
from vkdispatch.numpy.core import expressions, kernels
from vkdispatch.numpy.linalg import HOST_FUNCTIONS, PerformanceWarning
from vkdispatch.numpy.linalg import solving as triangles
from vkdispatch.numpy.linalg.spectra import _warned

pytestmark = pytest.mark.filterwarnings("ignore::vkdispatch.numpy.linalg.PerformanceWarning")


def _draw(shape: tuple[int, ...], kind: str) -> Any:
    random = np.random.default_rng(5)
    if np.dtype(kind).kind in "biu":
        return random.integers(0, 5, shape).astype(kind)
    values = random.standard_normal(shape)
    return (values + 1j * random.standard_normal(shape) if np.dtype(kind).kind == "c" else values).astype(
        kind
    )


def _agrees(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    values = np.asarray(expected)
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    scale = max(1.0, float(np.abs(values).max(initial=0)))
    np.testing.assert_allclose(found.numpy() / scale, values / scale, rtol=tolerance, atol=tolerance)


def _solves(matrix: Any, found: Any, right: Any) -> None:
    """Judge a solution as LAPACK's tests do: by its residual, in units of rounding."""
    wide = np.complex128 if matrix.dtype.kind == "c" else np.float64
    x, a = found.numpy().astype(wide), matrix.astype(wide)
    n = a.shape[-1]
    size = np.abs(a).sum(-1).max() * np.abs(x).max() * n * np.finfo(matrix.dtype).eps
    assert np.abs(a @ x - right).max() < 5 * size


# ---- products ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((4,), (2, 4, 3)),
        ((2, 3, 4), (4,)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((3, 0), (0, 2)),
        ((0, 4), (4, 2)),
    ],
)
def test_shapes_of_products(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = _draw(first, "f4"), _draw(second, "f4")
    _agrees(vnp.matmul(vnp.asarray(a), vnp.asarray(b)), a @ b)


def test_dtypes_of_products() -> None:
    for first, second in (("?", "?"), ("i1", "u1"), ("i4", "f4"), ("f4", "c8"), ("?", "i8"), ("f2", "f2")):
        a, b = _draw((3, 4), first), _draw((4, 2), second)
        expected = a @ b
        if expected.dtype == np.float64 and vnp.asarray([1.0]).dtype != np.float64:
            continue
        _agrees(vnp.asarray(a) @ vnp.asarray(b), expected, 2e-3)


def test_transposed_matrices_are_multiplied_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _draw((5, 4), "f4"), _draw((5, 3), "f4")
    x, y = vnp.asarray(a), vnp.asarray(b)

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("a copy is made")

    check_evaluations(monkeypatch)
    monkeypatch.setattr(expressions, "_computing", [refuse])
    monkeypatch.setattr(kernels, "_compute_program", refuse)
    found = x.T @ y
    monkeypatch.undo()
    _agrees(found, a.T @ b)
    _agrees((x + 1)[::-1, ::2].T @ y[::-1], (a + 1)[::-1, ::2].T @ b[::-1])


def test_products_into_an_array() -> None:
    a, b = _draw((2, 3, 4), "f4"), _draw((4, 5), "f4")
    x, y = vnp.asarray(a), vnp.asarray(b)
    out = vnp.zeros((2, 3, 5), dtype=np.float32)
    assert vnp.matmul(x, y, out=out) is out
    _agrees(out, a @ b)
    with pytest.raises(ValueError, match="out"):
        vnp.matmul(x, y, out=out[0])
    with pytest.raises(TypeError, match="out"):
        vnp.matmul(x, y, out=vnp.zeros((2, 3, 5), dtype=np.int32))


def test_products_of_shapes_that_do_not_fit() -> None:
    x = vnp.zeros((2, 3))
    for wrong in (vnp.zeros((2, 3)), vnp.zeros(2), vnp.asarray(1.0)):
        with pytest.raises(ValueError, match="matmul"):
            vnp.matmul(x, wrong)
    with pytest.raises(ValueError, match="vecdot"):
        vnp.vecdot(x, vnp.zeros((2, 4)))


def test_other_products() -> None:
    a, b, m = _draw((2, 3), "c8"), _draw((2, 3), "c8"), _draw((2, 3, 3), "c8")
    x, y, z = vnp.asarray(a), vnp.asarray(b), vnp.asarray(m)
    _agrees(vnp.vecdot(x, y), np.vecdot(a, b))
    _agrees(vnp.vecdot(x, y, axis=0), np.vecdot(a, b, axis=0))
    _agrees(vnp.vdot(x, y), np.vdot(a, b))
    _agrees(vnp.inner(x, y), np.inner(a, b))
    _agrees(vnp.outer(x, y), np.outer(a, b))
    _agrees(vnp.matvec(z, x), (m @ a[..., None])[..., 0])
    _agrees(vnp.vecmat(x, z), (a.conj()[:, None] @ m)[:, 0])
    _agrees(vnp.cross(x, y), np.cross(a, b))
    _agrees(vnp.kron(x, y), np.kron(a, b))
    _agrees(vnp.dot(x, y.T), np.dot(a, b.T))
    _agrees(vnp.tensordot(z, x, axes=((1,), (1,))), np.tensordot(m, a, axes=((1,), (1,))))
    _agrees(vnp.trace(z), np.trace(m))
    _agrees(vnp.linalg.trace(z, offset=1), np.linalg.trace(m, offset=1))
    chain = [_draw(shape, "f4") for shape in ((3, 9), (9, 2), (2, 7), (7,))]
    _agrees(vnp.linalg.multi_dot([vnp.asarray(each) for each in chain]), np.linalg.multi_dot(chain))
    for power in (-2, 0, 3):
        _agrees(vnp.linalg.matrix_power(z, power), np.linalg.matrix_power(m, power), 1e-3)


def test_norms() -> None:
    a = _draw((2, 3, 4), "f4")
    x = vnp.asarray(a)
    for ord, axis in ((None, None), (1, -1), (np.inf, 0), (0, 1), (3, 2), ("fro", (2, 0)), (2, (0, 1))):
        _agrees(vnp.linalg.norm(x, ord, axis), np.linalg.norm(a, ord, axis))
    for ord in (1, -1, np.inf, -np.inf, "nuc"):
        _agrees(vnp.linalg.norm(x, ord, (0, 2), keepdims=True), np.linalg.norm(a, ord, (0, 2), keepdims=True))
    _agrees(vnp.linalg.vector_norm(x, axis=(0, 2), ord=0.5), np.linalg.vector_norm(a, axis=(0, 2), ord=0.5))
    for ord, axis in (("fro", 0), (3, (0, 1)), (None, (0, 1, 2)), (1, None)):
        with pytest.raises(ValueError, match=r"ord|axis"):
            vnp.linalg.norm(x, ord, axis)


# ---- factors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((1, 1), "c8"), ((3, 7, 7), "f8"), ((2, 32, 32), "f4"), ((67, 67), "f4"), ((2, 33, 33), "c16")],
)
def test_factors(shape: tuple[int, ...], kind: str) -> None:
    a, b = _draw(shape, kind), _draw((*shape[:-1], 3), kind)
    x = vnp.asarray(a)
    _solves(a, vnp.linalg.solve(x, vnp.asarray(b)), b)
    _solves(a, vnp.linalg.inv(x), np.eye(shape[-1]))
    tolerance = 1e-3 if np.dtype(kind).char in "fF" else 1e-10
    sign, logarithm = vnp.linalg.slogdet(x)
    expected = np.linalg.slogdet(a)
    _agrees(sign, expected[0], tolerance)
    _agrees(logarithm, expected[1], tolerance)
    positive = a @ a.conj().swapaxes(-1, -2) + np.eye(shape[-1], dtype=kind)
    low = vnp.linalg.cholesky(vnp.asarray(positive))
    assert low.dtype == a.dtype
    values = low.numpy()
    assert (np.triu(values, 1) == 0).all()
    error = np.abs(values @ values.conj().swapaxes(-1, -2) - positive).max()
    assert error < 5 * shape[-1] * np.finfo(kind).eps * np.abs(positive).max()
    high = vnp.linalg.cholesky(vnp.asarray(np.triu(positive)), upper=True)
    np.testing.assert_allclose(high.numpy(), values.conj().swapaxes(-1, -2), rtol=1e-3, atol=1e-3)


def test_the_first_of_the_largest_pivots_is_taken() -> None:
    a = np.array([[0, 2, 1], [1, 0, 0], [-1, 3, 5]], np.float32)
    _agrees(vnp.linalg.inv(vnp.asarray(a)), np.linalg.inv(a))
    _agrees(vnp.linalg.det(vnp.asarray(a)), np.linalg.det(a))
    # a small pivot without swaps would lose all digits
    tiny = np.array([[1e-12, 1], [1, 1]], np.float32)
    found = vnp.linalg.solve(vnp.asarray(tiny), vnp.asarray(np.ones(2, np.float32)))
    _agrees(found, np.array([0, 1], np.float32))
    _agrees(vnp.linalg.det(vnp.asarray(a[:, [1, 0, 2]])), -np.linalg.det(a))


def test_batches_of_solutions() -> None:
    a, b = _draw((2, 1, 4, 4), "f4"), _draw((3, 4, 2), "f4")
    _agrees(vnp.linalg.solve(vnp.asarray(a), vnp.asarray(b)), np.linalg.solve(a, b), 1e-3)
    _agrees(vnp.linalg.solve(vnp.asarray(a[0]), vnp.asarray(b)), np.linalg.solve(a[0], b), 1e-3)
    _agrees(vnp.linalg.solve(vnp.asarray(a), vnp.asarray(b[0, :, 0])), np.linalg.solve(a, b[0, :, 0]), 1e-3)
    _agrees(vnp.linalg.solve(vnp.asarray(a).mT, vnp.asarray(b)), np.linalg.solve(a.mT, b), 1e-3)
    empty = vnp.zeros((0, 0), dtype=np.float32)
    _agrees(vnp.linalg.det(empty), np.float32(1))
    assert vnp.linalg.inv(empty).shape == (0, 0)


def test_singular_and_indefinite_matrices() -> None:
    ones = vnp.ones((2, 40, 40), dtype=np.float32)
    for call in (
        lambda: vnp.linalg.inv(ones),
        lambda: vnp.linalg.solve(ones[0, :3, :3], ones[0, :3]),
        lambda: vnp.linalg.cholesky(-ones),
        lambda: vnp.linalg.cholesky(ones),
        lambda: vnp.linalg.inv(ones[:, :3]),
        lambda: vnp.linalg.det(ones[0, 0]),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            call()
    _agrees(vnp.linalg.det(ones), np.zeros(2, np.float32))
    sign, logarithm = vnp.linalg.slogdet(ones)
    assert (sign.numpy() == 0).all()
    assert (logarithm.numpy() == -np.inf).all()
    with pytest.raises(TypeError, match="float16"):
        vnp.linalg.inv(vnp.eye(2, dtype=np.float16))
    with pytest.raises(ValueError, match="x2"):
        vnp.linalg.solve(vnp.eye(3), vnp.zeros(4))


def test_tensors() -> None:
    a = (np.eye(12).reshape(4, 3, 2, 6) + 0.1 * _draw((4, 3, 2, 6), "f4")).astype(np.float32)
    b = _draw((4, 3), "f4")
    _agrees(vnp.linalg.tensorsolve(vnp.asarray(a), vnp.asarray(b)), np.linalg.tensorsolve(a, b), 1e-3)
    _agrees(vnp.linalg.tensorinv(vnp.asarray(a)), np.linalg.tensorinv(a), 1e-3)


def _is_orthogonal_factor(a: Any, mode: str = "reduced") -> None:
    """Judge QR factors as LAPACK's tests do: by what is left of A - QR and of Q^H Q - I."""
    q, r = vnp.linalg.qr(vnp.asarray(a), mode)
    expected = np.linalg.qr(a, mode)
    assert (q.shape, q.dtype, r.shape, r.dtype) == (
        expected[0].shape,
        expected[0].dtype,
        expected[1].shape,
        expected[1].dtype,
    )
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    orthogonal, triangle = q.numpy().astype(wide), r.numpy().astype(wide)
    assert (np.tril(triangle, -1) == 0).all()
    allowed = 4 * np.sqrt(max(1, *a.shape[-2:])) * np.finfo(a.dtype).eps
    # each column has its own scale
    sizes = np.linalg.norm(a.astype(wide), axis=-2, keepdims=True)
    assert (np.abs(orthogonal @ triangle - a) <= allowed * sizes).all()
    left = orthogonal.conj().swapaxes(-1, -2) @ orthogonal - np.eye(q.shape[-1])
    assert np.abs(left).max(initial=0) < allowed


@pytest.mark.parametrize("kind", ["f4", "f8", "c8", "c16"])
def test_orthogonal_factors(kind: str) -> None:
    for shape in ((1, 1), (5, 1), (1, 5), (31, 13), (2, 3, 33, 40), (257, 257), (4500, 7), (3, 0), (2, 0, 3)):
        _is_orthogonal_factor(_draw(shape, kind))
    for shape in ((20, 5), (40, 70), (100, 37)):
        _is_orthogonal_factor(_draw(shape, kind), "complete")
    random = _draw((90, 50), kind)
    for matrix in (
        np.zeros((40, 40)),
        np.ones((5003, 6)),
        random[:, :4] @ random[:4],
        random * np.logspace(0, -30, 50),
        random * np.logspace(-30, 0, 90)[:, None],
        np.vander(np.linspace(0, 1, 70), 40),
        random * 1e25,
        random * 1e-25,
    ):
        _is_orthogonal_factor(matrix.astype(kind))


def test_triangles_of_orthogonal_factors() -> None:
    a = _draw((2, 70, 40), "c16")
    x = vnp.asarray(a)
    _agrees(vnp.linalg.qr(x, "r"), np.linalg.qr(a, "r"), 1e-10)
    _agrees(vnp.linalg.qr(x).R, np.linalg.qr(a).R, 1e-10)
    _agrees(vnp.linalg.qr(x.mT[:, ::-1]).R, np.linalg.qr(a.mT[:, ::-1]).R, 1e-10)
    _agrees(vnp.linalg.qr(vnp.asarray([[3, 4], [4, 3]])).R, np.linalg.qr(np.array([[3, 4], [4, 3]])).R, 1e-5)
    tall = _draw((5000, 9), "f8")
    upper = vnp.linalg.qr(vnp.asarray(tall), "r").numpy()
    np.testing.assert_allclose(upper.T @ upper, tall.T @ tall, rtol=1e-10, atol=1e-8)
    a[1, 3, 4] = np.nan
    assert np.isnan(vnp.linalg.qr(vnp.asarray(a)).R.numpy()[1, :, 4:]).any()
    assert not np.isnan(vnp.linalg.qr(vnp.asarray(a)).R.numpy()[0]).any()
    with pytest.raises(TypeError, match="float16"):
        vnp.linalg.qr(vnp.eye(2, dtype=np.float16))
    with pytest.raises(np.linalg.LinAlgError, match="axes"):
        vnp.linalg.qr(vnp.ones(3))
    with pytest.raises(ValueError, match="mode"):
        vnp.linalg.qr(vnp.eye(3), "raw")


def test_tall_matrices_are_reduced_to_triangles() -> None:
    a, b = _draw((3000, 12), "f8"), _draw((3000, 2), "f8")
    x, y = vnp.asarray(a), vnp.asarray(b)
    for right, host in ((y, b), (y[:, 0], b[:, 0])):
        found, expected = vnp.linalg.lstsq(x, right), np.linalg.lstsq(a, host)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-12)
            assert np.shape(one) == np.shape(other)
    _agrees(vnp.linalg.pinv(x), np.linalg.pinv(a), 1e-10)
    _agrees(vnp.linalg.svdvals(x), np.linalg.svdvals(a), 1e-10)
    u, s, vh = vnp.linalg.svd(x, full_matrices=False)
    _agrees(u * s @ vh, a, 1e-10)
    _agrees(u.T @ u, np.eye(12), 1e-10)
    # of a rank of 11
    a[:, 5] = a[:, 2] - a[:, 7]
    deficient = vnp.linalg.lstsq(vnp.asarray(a), y)
    assert deficient[1].shape == (0,)
    assert deficient[2] == 11
    _agrees(deficient[0], np.linalg.lstsq(a, b)[0], 1e-9)


# ---- by the host ---------------------------------------------------------------------------------


def test_what_runs_on_the_host_warns_once() -> None:
    a = _draw((4, 4), "f4")
    symmetric = a + a.T
    x, y = vnp.asarray(a), vnp.asarray(symmetric)
    calls = {
        "cond": lambda: _agrees(vnp.linalg.cond(x), np.linalg.cond(a), 1e-3),
        "eig": lambda: _agrees(vnp.linalg.eig(x).eigenvalues, np.linalg.eig(a)[0], 1e-3),
        "eigh": lambda: _agrees(vnp.linalg.eigh(y).eigenvalues, np.linalg.eigh(symmetric)[0], 1e-3),
        "eigvals": lambda: _agrees(vnp.linalg.eigvals(x), np.linalg.eigvals(a), 1e-3),
        "eigvalsh": lambda: _agrees(vnp.linalg.eigvalsh(y, "U"), np.linalg.eigvalsh(symmetric, "U"), 1e-3),
        "lstsq": lambda: _agrees(vnp.linalg.lstsq(x, y)[0], np.linalg.lstsq(a, symmetric)[0], 1e-3),
        "pinv": lambda: _agrees(vnp.linalg.pinv(x), np.linalg.pinv(a), 1e-3),
        "svd": lambda: _agrees(vnp.linalg.svd(x).S, np.linalg.svd(a)[1], 1e-3),
        "svdvals": lambda: _agrees(vnp.linalg.svdvals(x), np.linalg.svdvals(a), 1e-3),
    }
    assert set(calls) == set(HOST_FUNCTIONS)
    for name, call in calls.items():
        _warned.discard(name)
        with pytest.warns(PerformanceWarning, match=name):
            call()
    _agrees(vnp.linalg.matrix_rank(x), np.linalg.matrix_rank(a))


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "int32"])
@pytest.mark.parametrize("columns", [(), (3,), (0,)])
@pytest.mark.parametrize("n", [1, 5, 90])
def test_triangular_systems(kind: str, columns: tuple[int, ...], n: int) -> None:
    scipy = pytest.importorskip("scipy.linalg")
    a = _draw((n, n), kind) + (3 * n * np.eye(n)).astype(kind)  # what is in the other triangle does not count
    b = _draw((n, *columns), kind)
    for lower in (False, True):
        found = triangles.solve_triangular(vnp.asarray(a), vnp.asarray(b), lower=lower)
        assert found.shape == b.shape
        wide = scipy.solve_triangular(a.astype(complex), b.astype(complex), lower=lower) if b.size else b
        np.testing.assert_allclose(found.numpy(), wide, rtol=1e-4, atol=1e-6)


def test_triangular_systems_without_a_solution() -> None:
    a = vnp.asarray(np.diag([1.0, 0, 2]))
    with pytest.raises(vnp.linalg.LinAlgError, match="singular"):
        triangles.solve_triangular(a, vnp.ones(3))
    with pytest.raises(ValueError, match=r"b: .*\(4,\)"):
        triangles.solve_triangular(a, vnp.ones(4))
    with pytest.raises(vnp.linalg.LinAlgError, match="square"):
        triangles.solve_triangular(a[:2], vnp.ones(2))


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [1, 6, 70])
def test_lu_factors(kind: str, n: int) -> None:
    a = _draw((n, n), kind)
    p, lower, upper = (each.numpy() for each in triangles.factor_plu(vnp.asarray(a)))
    assert sorted(p.argmax(axis=0)) == list(range(n)) and p.sum() == n and set(np.unique(p)) <= {0, 1}
    np.testing.assert_array_equal(np.triu(lower, 1), 0)
    np.testing.assert_array_equal(np.diag(lower), 1)
    np.testing.assert_array_equal(np.tril(upper, -1), 0)
    assert np.abs(lower).max() < 1.5  # rows were swapped
    np.testing.assert_allclose(p @ lower @ upper, a, atol=1e-5 * n)
