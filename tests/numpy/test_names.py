"""NumPy's names beyond the array API standard: against NumPy."""

import pickle
import sys
import warnings
from pathlib import Path

import pytest
import scipy.special

import numpy as np
import vkdispatch.numpy as vnp
from tests.numpy.against_numpy import assert_same, check, check_write
from vkdispatch.base.errors import MissingPackageError

random = np.random.default_rng(1)
X = random.normal(size=(3, 4, 5))
NARROW = X.astype(np.float32)
WHOLE = random.integers(-5, 9, (7, 3))
SMALL = random.integers(0, 3, (6, 7))
NANS = np.array([np.nan, 1, 2, np.nan, 1])


# ---- samples -------------------------------------------------------------------------------------


def test_interp() -> None:
    places, values = np.sort(random.normal(size=9)), random.normal(size=9)
    check("interp", X, places, values)
    check("interp", X, places, values, -7, 9.0)
    check("interp", 0.3, places, values)
    check("interp", X[0, ::-1], places, values * (1 + 1j))
    check("interp", X, places, values, period=1.5)
    check("interp", X, places[:1], values[:1])
    check("interp", np.array([np.nan, np.inf, -np.inf]), places, values)
    check("interp", X, np.array([0, 0, 1.0]), np.array([1, 2, 3.0]))
    check("interp", np.array([0.5, 1, 1.5]), [0, 1, 2.0], [1, np.inf, np.inf])
    check("interp", X, places[:0], values[:0])
    check("interp", X, places, values[:3])


def test_unwrap() -> None:
    phases = np.cumsum(random.normal(size=(3, 20)) * 3, axis=1) % (2 * np.pi)
    check("unwrap", phases)
    check("unwrap", phases, discont=4, axis=0)
    check("unwrap", WHOLE, period=4)
    check("unwrap", WHOLE, period=5, axis=0)


def test_gradient_and_trapezoid() -> None:
    check("gradient", X)
    check("gradient", X, 2.0, axis=(0, 2))
    check("gradient", X[0], np.array([0, 1, 3, 4.0]), np.array([0, 1.0, 2, 5, 6]))
    check("gradient", WHOLE, axis=0)
    check("gradient", NARROW, edge_order=2, axis=(0, -1))
    check("gradient", X, np.array([0, 1, 3.0, 7, 8]), axis=2, edge_order=2)
    check("gradient", X[:1])
    check("gradient", X > 0)
    check("gradient", X, 1.0, 2.0)
    check("trapezoid", X, dx=0.5, axis=0)
    check("trapezoid", X, np.array([0, 1.0, 4, 5]), axis=1)
    check("trapezoid", X, X**2)
    check("trapezoid", WHOLE)
    check("ediff1d", WHOLE, to_begin=3, to_end=[1, 2])
    check("ediff1d", WHOLE, to_begin=1.5)


def test_convolutions() -> None:
    a, b, long, longer = (random.normal(size=n) for n in (7, 4, 600, 700))
    for mode in ("full", "same", "valid"):
        for first, second in ((a, b), (b, a), (a, a), (a[:1], b), (a + 1j, b * 1j + 1), (long, longer)):
            check("convolve", first, second, mode)
            check("correlate", first, second, mode)
        check("convolve", WHOLE[:, 0], WHOLE[:3, 0], mode)
    check("correlate", long.astype(np.float32), longer.astype(np.float32), "same", tolerance=1e-4)
    check("convolve", SMALL[0].astype(np.uint8) * 100, SMALL[1].astype(np.uint8))
    check("convolve", SMALL[0] > 0, SMALL[1] > 0)
    check("convolve", np.array([1, np.nan, 2, np.inf, 3]), np.array([1, np.inf, np.nan]))
    check("correlate", np.float64(1) * np.ones(()), a)
    check("convolve", X, X)
    check("convolve", a, a[:0])
    check("convolve", a, b, "none")


# ---- einsum --------------------------------------------------------------------------------------


def test_einsum_of_up_to_two_operands() -> None:
    a, b, square = X[0], X[1].T, X[0, :, :4]
    for equation, *operands in (
        ("ij,jk->ik", a, b),
        ("ij,jk", a, b),
        ("ii", square),
        ("ii->i", square),
        ("ji", a),
        ("ij->", a),
        ("ij,ij->i", a, a),
        ("i,j->ji", a[0], b[0]),
        ("i,", a[0], 2.0),
        ("...ij,...jk", X, X.swapaxes(1, 2)),
        ("...i->i...", X),
        ("bij,jk->bik", X, b),
        ("ij,jj->i", square, square),
        ("ij,jk", a[:, :1], b),
        ("ab,bc->ac", SMALL.astype(np.int8), SMALL.T.astype(np.int8)),
        ("ab,bc->ac", SMALL > 1, SMALL.T > 1),
        ("ij,jk", a + 1j, b),
        ("ij,jk", a[:0], b),
        ("ij,jk", a, a),
        ("ij", X),
        ("ij->ii", a),
        ("ij->ik", a),
        ("i.j", a),
        ("ij->->", a),
        ("ij,jk", a),
    ):
        check("einsum", equation, *operands)
    check("einsum", a, [0, 1], b, [1, 2], [2, 0])
    check("einsum", X, [..., 0], b[:, 0], [0], [...])


def test_einsum_from_left_to_right() -> None:
    for equation, *operands in (
        ("ij,jk,kl->il", X[0], X[1].T, X[2]),
        ("ij,ik,il->jkl", *X),
        ("i,i,i->i", *X[0, :3]),
        ("abc,bd,ce->ade", X, X[0], X[0, :, :2].T @ X[0]),
    ):
        if equation[:3] == "abc":
            operands = [X, X[0], X[0].T]
        check("einsum", equation, *operands, optimize=False)


def test_einsum_by_opt_einsum(monkeypatch: pytest.MonkeyPatch) -> None:
    operands = (X[0], X[1].T, X[2])
    equation = "ij,jk,kl->il"
    monkeypatch.setitem(sys.modules, "opt_einsum", None)
    with pytest.raises(MissingPackageError, match="opt_einsum"):
        vnp.einsum(equation, *map(vnp.asarray, operands))
    monkeypatch.undo()
    pytest.importorskip("opt_einsum")
    check("einsum", equation, *operands)
    check("einsum", equation, *operands, optimize="optimal")
    check("einsum", equation, *operands, optimize=["einsum_path", (1, 2), (0, 1)])
    assert vnp.einsum_path(equation, *map(vnp.asarray, operands))[0] == ["einsum_path", (0, 1), (0, 1)]


# ---- parts added and removed ---------------------------------------------------------------------


def test_pad() -> None:
    for x in (X, WHOLE, X[:, ::-1, :, None], SMALL > 1):
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "maximum"):
            check("pad", x, 2, mode)
    for mode in ("linear_ramp", "mean", "median", "minimum"):
        check("pad", X, ((1, 2), (0, 3), (2, 0)), mode)
        check("pad", WHOLE, (1, 3), mode)
    check("pad", X[..., None], 1, constant_values=((1, 2), (3, 4), (5, 6), (7, 8)))
    check("pad", WHOLE, 2, "mean", stat_length=((2, 3), (1, 1)))
    check("pad", X, 2, "linear_ramp", end_values=((1, 2), (3, 4), (5, 6)))
    check("pad", X, {0: 1, -1: (2, 3)})
    check("pad", X, 7, "reflect")
    check("pad", X, -1)
    check("pad", X, 1.5)
    check("pad", X, 1, "none")
    check("pad", X, 1, "edge", constant_values=2)
    check("pad", np.zeros((0, 3)), 1)
    check("pad", np.zeros((0, 3)), 1, "edge")


def test_delete_and_append() -> None:
    mask = np.array([True, False, True, False, True, False, True])
    for places in (0, -1, [0, 2], slice(None, None, 2), [], [1, 1, -7], slice(5, 1, -1), mask):
        check("delete", WHOLE, places, axis=0)
    check("delete", WHOLE, [1, 20])
    check("delete", np.arange(100), np.arange(0, 100, 7))
    check("delete", WHOLE, 9, axis=0)
    check("append", WHOLE, [[1.0, 2, 3]], axis=0)
    check("append", WHOLE, 5)
    check("append", X, WHOLE, axis=0)


def test_insert() -> None:
    line = np.arange(6)
    for place, values in (
        (1, 50),
        (1, [9, 8]),
        (-1, 5.7),
        ([1, 3], [7, 8]),
        ([3, 1, 1], [7, 8, 9]),
        (6, 4),
        (slice(0, 4, 2), [1, 2]),
        ([], []),
        ([2], [7, 8]),
        (np.array([True, False, True, False, False, False]), 3),
        (9, 1),
    ):
        check("insert", line, place, values)
    check("insert", WHOLE, 1, np.arange(7), axis=1)
    check("insert", WHOLE, [1], np.arange(7).reshape(7, 1), axis=1)
    check("insert", WHOLE, 1, np.arange(6).reshape(2, 3), axis=0)
    check("insert", WHOLE, [1, 3], np.arange(6).reshape(2, 3), axis=0)
    check("insert", np.arange(50), np.arange(0, 50, 5), -1)
    check("insert", X, 2, X[:, 0], axis=1)


def test_resize_and_trim_zeros() -> None:
    check("resize", WHOLE, (4, 9))
    check("resize", WHOLE, (2, 3))
    check("resize", np.zeros(0), (2, 2))
    line = np.array([0, 0, 1, 0, 2, 0])
    check("trim_zeros", line)
    check("trim_zeros", line, "f")
    check("trim_zeros", line * 0, "b")
    check("trim_zeros", np.pad(abs(WHOLE) + 1, 2))
    check("trim_zeros", np.pad(abs(WHOLE) + 1, 2), "f", axis=1)
    check("trim_zeros", line, "x")


# ---- equality, sets, orders ----------------------------------------------------------------------


def test_equality() -> None:
    check("allclose", NARROW, X)
    check("allclose", X, X + 1)
    check("allclose", NANS, NANS)
    check("allclose", NANS, NANS, equal_nan=True)
    check("array_equal", X, X[0])
    check("array_equal", NANS, NANS, equal_nan=True)
    check("array_equal", WHOLE, WHOLE + 0.0)
    check("array_equiv", WHOLE, WHOLE[None])
    check("array_equiv", WHOLE, [1, 2])
    check("iscomplex", X + 1j * (X > 0))
    check("isreal", WHOLE)


def test_sets() -> None:
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        for first, second in ((WHOLE, SMALL), (WHOLE, np.zeros(0)), (NANS, NANS), (NARROW, X)):
            check(name, first, second)
    check("intersect1d", WHOLE, SMALL, return_indices=True)
    check("intersect1d", np.array([3, 1, 2]), np.array([2, 5, 3]), True, True)
    check("setdiff1d", np.array([3, 1, 2]), np.array([2, 5]), True)


def test_orders() -> None:
    check("lexsort", [WHOLE[:, 0], WHOLE[:, 1] // 3])
    check("lexsort", X > 0, axis=0)
    check("partition", WHOLE, 9)
    found = vnp.partition(vnp.asarray(WHOLE), 3, axis=0).numpy()
    assert (found[:3] <= found[3]).all()
    assert (found[4:] >= found[3]).all()
    values, places = vnp.topk(vnp.asarray(X), 2, axis=1)
    assert_same(values, -np.sort(-X, axis=1)[:, :2])
    assert_same(places, np.argsort(-X, axis=1)[:, :2])
    assert_same(vnp.topk(vnp.asarray(X), 3, axis=None, largest=False)[0], np.sort(X, axis=None)[:3])


# ---- choices, indices, matrices ------------------------------------------------------------------


def test_choices() -> None:
    check("select", [X > 0, X < -1], [X, X**2])
    check("select", [X > 0, X < -1], [1, 2], 5)
    check("select", [WHOLE > 0], [WHOLE], 2.5)
    check("select", [WHOLE], [WHOLE])
    check("select", [], [])
    check("choose", SMALL, [1, 2.5, 3])
    check("choose", SMALL, [WHOLE[:6, :1], 2, 3])
    check("choose", SMALL, [1, 2])
    check("choose", SMALL, [1, 2], mode="wrap")
    check("choose", SMALL - 1, [1, 2], mode="clip")
    check("choose", WHOLE > 0, [WHOLE, -WHOLE])
    check("choose", X, [1, 2])
    check("piecewise", X, [X < 0, X > 1], [-1, lambda x: x * 2, 7])
    check("piecewise", X, [X < 0], [1, 2, 3])


def test_selections() -> None:
    check("compress", [True, False, True], WHOLE, axis=1)
    check("compress", [0, 1, 1], WHOLE)
    check("compress", [0, 1, 1, 0, 1], WHOLE, axis=1)
    check("extract", WHOLE > 0, WHOLE)
    check("real_if_close", X + 1e-16j)
    check("sort_complex", WHOLE)


def test_blocks_and_bits() -> None:
    check("block", [[WHOLE, WHOLE], [WHOLE * 2.0, WHOLE]])
    check("block", [np.arange(3), 5])
    check("block", [[WHOLE], WHOLE])
    check("block", [])
    check("packbits", WHOLE > 0)
    check("packbits", WHOLE, axis=1, bitorder="little")
    check("packbits", X)
    check("unpackbits", WHOLE.astype(np.uint8), axis=0)
    check("unpackbits", WHOLE.astype(np.uint8), axis=1, count=-3, bitorder="little")
    check("unpackbits", WHOLE)


def test_grids_and_windows() -> None:
    assert_same(vnp.mgrid[0:3, 1:5:2], np.mgrid[0:3, 1:5:2])
    assert_same(vnp.mgrid[0:1:3j, 0:2], np.mgrid[0:1:3j, 0:2])
    assert_same(vnp.ogrid[0:3, 1:5:2.5], np.ogrid[0:3, 1:5:2.5])
    assert_same(vnp.r_[1:4, 0, [7, 8.0], 0:1:3j], np.r_[1:4, 0, [7, 8.0], 0:1:3j])
    assert_same(vnp.c_[vnp.arange(3), vnp.arange(3)], np.c_[np.arange(3), np.arange(3)])
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        check(name, 7)
    check("kaiser", 9, 3.0)


def test_polynomials() -> None:
    check("polyval", [1, 2, 3], X)
    check("polyval", np.array([1.5, 0, 2]), WHOLE)
    check("polyadd", [1, 2], [3, 4, 5.0])
    check("polysub", [1, 2, 3], [1])
    check("polymul", [1, 2], [3, 4.0])
    check("polyder", [1, 2, 3, 4], 2)
    check("polyder", [1])
    check("polyint", [1, 2, 3], 2, [5, 6])


def test_fits_and_roots() -> None:
    x = np.linspace(-1, 2, 40)
    noise = random.normal(size=(40, 3))
    y = 3 * x**2 - x + 0.1 * noise[:, 0]
    columns = np.stack([y, np.sin(x), x], axis=1)
    weights = 1 + random.random(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vnp.linalg.PerformanceWarning)
        check("polyfit", x, y, 3, tolerance=1e-9)
        check("polyfit", x, columns, 2, w=weights, tolerance=1e-9)
        found = vnp.polyfit(vnp.asarray(x), vnp.asarray(y), 2, full=True)
        for one, other in zip(found, np.polyfit(x, y, 2, full=True), strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9)
        check("polyfit", x, y, 2, cov=True, tolerance=1e-9)
        check("polyfit", x, columns, 2, cov=True, tolerance=1e-9)
        check("polyfit", x, columns, 2, w=weights, cov="unscaled", tolerance=1e-9)
        check("polyfit", np.arange(9), np.arange(9) ** 2, 2, tolerance=1e-9)
        check("polyfit", x, y, -1)
        check("polyfit", x, y[:5], 2)
        check("polyfit", x[:2], y[:2], 1, cov=True)
        with pytest.warns(np.exceptions.RankWarning):
            vnp.polyfit(vnp.asarray([1.0, 1, 1]), vnp.asarray([1.0, 2, 3]), 2)
    for given in (np.array([2.0, -3, 1]), np.array([1, 0, 1]), np.array([0, 0, 3.0, 1, 0]), np.zeros(2)):
        check("roots", given, tolerance=1e-9)
        check("poly", given, tolerance=1e-9)
    check("poly", np.array([1j, -1j, 2]), tolerance=1e-9)
    check("poly", X[:, :3, 0], tolerance=1e-9)
    check("poly", X[:, :2, 0])
    check("roots", X)
    check("polydiv", np.array([1.0, 5, 6, 2]), np.array([1.0, 2]), tolerance=1e-9)
    check("polydiv", np.array([3, 4]), np.array([1, 2, 3]), tolerance=1e-9)


def test_bessel_function() -> None:
    places = np.concatenate([np.linspace(-20, 20, 301), [0, -0.0, 8, 700, 720, np.inf, np.nan]])
    wanted = scipy.special.i0(places)
    wanted[-2] = np.inf
    np.testing.assert_allclose(vnp.i0(vnp.asarray(places)).numpy(), wanted, rtol=1e-13)
    narrow = vnp.i0(vnp.asarray(places[:300].astype(np.float32)))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow.numpy(), wanted[:300], rtol=2e-5)
    np.testing.assert_allclose(vnp.special.i0e(vnp.asarray([1e9])).numpy(), (2e9 * np.pi) ** -0.5)
    check("i0", WHOLE, tolerance=1e-10)
    # exp(713) alone is too large
    found = vnp.i0(vnp.asarray([-713.0])).numpy()
    np.testing.assert_allclose(np.log(found), 713 + np.log(scipy.special.i0e([713])), rtol=1e-15)


def test_functions_over_axes() -> None:
    own = vnp.asarray(X)
    for axes in (0, (0, 2), [-1, 1]):
        assert_same(vnp.apply_over_axes(vnp.sum, own, axes), np.apply_over_axes(np.sum, X, axes))
    assert_same(vnp.apply_over_axes(vnp.cumsum, own, (1,)), np.apply_over_axes(np.cumsum, X, (1,)))
    with pytest.raises(ValueError, match="func"):
        vnp.apply_over_axes(lambda x, axis: x.sum(), own, 0)


def test_files(tmp_path: Path) -> None:
    own = vnp.asarray(X)[:, ::2]
    vnp.save(tmp_path / "x.npy", own)
    assert_same(vnp.load(tmp_path / "x.npy"), X[:, ::2])
    for write in (vnp.savez, vnp.savez_compressed):
        write(tmp_path / "x.npz", own, whole=vnp.asarray(WHOLE))
        with vnp.load(tmp_path / "x.npz") as archive:
            assert sorted(archive.files) == ["arr_0", "whole"]
            assert len(archive) == 2
            assert_same(archive["whole"], WHOLE)
            assert_same(dict(archive)["arr_0"], X[:, ::2])
    vnp.savetxt(tmp_path / "x.txt", vnp.asarray(WHOLE), fmt="%d")
    assert_same(vnp.loadtxt(tmp_path / "x.txt"), WHOLE.astype(float))
    assert_same(vnp.loadtxt(tmp_path / "x.txt", dtype=int, unpack=True), WHOLE.T)
    assert_same(vnp.genfromtxt(tmp_path / "x.txt"), WHOLE.astype(float))
    own.tofile(tmp_path / "x.bin")
    assert_same(vnp.fromfile(tmp_path / "x.bin"), X[:, ::2].ravel())
    own.dump(tmp_path / "x.pickle")
    assert_same(vnp.load(tmp_path / "x.pickle", allow_pickle=True), X[:, ::2])
    assert (pickle.loads(own.dumps()) == X[:, ::2]).all()


def test_names_of_types() -> None:
    for name in ("half", "single", "double", "intp", "ubyte", "floating", "integer", "number", "generic"):
        assert getattr(vnp, name) is getattr(np, name)
    assert vnp.issubdtype(vnp.ones(2, vnp.single).dtype, vnp.floating)
    with vnp.printoptions(precision=2):
        assert str(vnp.asarray([1 / 3])) == "[0.33]"


def test_keywords_of_numpy() -> None:
    check("repeat", WHOLE, repeats=2, axis=0)
    check("tile", WHOLE, reps=(2, 1))
    check("take", WHOLE, indices=[1, 2], axis=1)
    check("moveaxis", X, source=0, destination=-1)
    check("searchsorted", np.arange(5), v=np.array([2, 7]))
    check("isin", WHOLE, test_elements=[1, 2])
    check("eye", 3, M=4, k=1)
    check("vstack", [WHOLE, WHOLE], dtype=np.float32)
    check("hstack", [WHOLE, WHOLE], dtype=np.int8, casting="unsafe")
    check("hstack", [WHOLE, WHOLE], dtype=np.int8, casting="safe")


def test_arrays_of_indices() -> None:
    check("indices", (2, 3))
    check("indices", (2, 3), sparse=True)
    check("indices", ())
    check("ix_", [0, 2], np.array([True, False, True]))
    places = (np.array([1, 7]), np.array([3, -1]))
    check("ravel_multi_index", places, (3, 4), mode=("wrap", "clip"))
    check("ravel_multi_index", places, (3, 4))
    check("ravel_multi_index", (np.array([1, 2]), np.array([3, 0])), (3, 4), order="F")
    check("unravel_index", np.array([[5, 7], [0, 11]]), (3, 4))
    check("unravel_index", np.array([5, 7]), (2, 2, 5), order="F")
    check("unravel_index", np.array([12]), (3, 4))
    check("unravel_index", 5, (3, 4))
    for name in ("tril_indices", "triu_indices"):
        check(name, 4, -1, 6)
        check(name + "_from", WHOLE, 1)
    check("diag_indices", 3, 3)


def test_matrices_of_vectors() -> None:
    check("diag", np.arange(3.0), 2)
    check("diag", WHOLE, -1)
    check("diag", WHOLE, 9)
    check("diag", X)
    check("diagflat", SMALL[:2, :2], -1)
    check("vander", np.arange(4))
    check("vander", X[0, 0], 3, increasing=True)
    check("tri", 3, 4, 1)


def test_shapes() -> None:
    check("broadcast_shapes", (2, 1), (3,))
    check("broadcast_shapes", (2,), (3,))
    assert vnp.isfortran(vnp.asarray(WHOLE).T)
    assert not vnp.isfortran(vnp.asarray(WHOLE))


# ---- writing -------------------------------------------------------------------------------------


def test_put_and_place() -> None:
    check_write("put", WHOLE, [0, -1, 5], [7, 8, 9])
    check_write("put", WHOLE, np.array([0, 2, 0]), [1, 2])
    check_write("put", WHOLE, [22, -30], [1, 2], mode="wrap")
    check_write("put", WHOLE, [22, -30], [1, 2], mode="clip")
    check_write("put", WHOLE, [99], 1)
    check_write("put_along_axis", X, np.argsort(X, axis=1)[:, :2], 99.0, 1)
    check_write("place", X, X > 0, [1.0, 2, 3])
    check_write("place", X, X > 0, [])
    check_write("putmask", WHOLE, WHOLE > 0, [1, 2, 3])
    own, wanted = vnp.asarray(WHOLE), WHOLE.copy()
    vnp.put(own.T, [1, 2, -1], [50, 51, 52])
    np.put(wanted.T, [1, 2, -1], [50, 51, 52])
    assert_same(own, wanted)
    with pytest.raises(IndexError):
        vnp.put(own.T, [99], 1)
        own.numpy()


def test_copyto_and_fill_diagonal() -> None:
    check_write("copyto", WHOLE, 3)
    check_write("copyto", WHOLE, 3.5)
    check_write("copyto", WHOLE, WHOLE[0], where=WHOLE > 0)
    check_write("copyto", NARROW, X)
    check_write("copyto", WHOLE, 2.7, casting="unsafe")
    check_write("fill_diagonal", WHOLE, 5)
    check_write("fill_diagonal", WHOLE, [1, 2], wrap=True)
    check_write("fill_diagonal", X[:3, :3, :3], 1)
    check_write("fill_diagonal", X, 1)


def test_refused_names_give_advice() -> None:
    with pytest.raises(NotImplementedError, match="axis="):
        vnp.apply_along_axis(sum, 0, vnp.asarray(X))
    with pytest.raises(NotImplementedError, match=r"x\.numpy"):
        vnp.nditer(vnp.asarray(X))
    with pytest.raises(NotImplementedError, match="block"):
        vnp.bmat([[vnp.asarray(X)]])
