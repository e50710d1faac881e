"""Arrays as chunks of `dask.array`: the truth is Dask with NumPy's arrays as chunks."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import tomllib
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.distributed  # registers, whatever is installed
import vkdispatch.numpy as vnp
from vkdispatch.distributed import loading
from vkdispatch.numpy.core.memory import View

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from dask.callbacks import Callback  # noqa: E402
from dask.sizeof import sizeof  # noqa: E402

RunPython = Callable[..., subprocess.CompletedProcess[str]]
NO_DRIVER = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
ROOT = Path(__file__).parents[2]

_rng = np.random.default_rng(24)
A = _rng.random((12, 10), np.float32)
WITH_NAN = np.where(A > 0.8, np.float32(np.nan), A)
INTEGERS = _rng.integers(0, 9, (12, 10))
COUNTS = _rng.integers(0, 9, 30)
PARTS = _rng.random(30, np.float32)
COMPLEX = (A + 1j * A[::-1]).astype(np.complex64)
POSITIVE = (A.T @ A + 10 * np.eye(10)).astype(np.float32)


class Chunked:
    """Dask arrays whose chunks are made by `make`."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        def chunk(data: Any, chunks: Any) -> Any:
            return da.from_array(make(data), chunks=chunks)

        self.make = make
        self.a = chunk(A, (5, 4))
        self.tall, self.wide, self.one = chunk(A, (4, 10)), chunk(A.T.copy(), (10, 4)), chunk(A, (12, 10))
        self.nan, self.i, self.c = chunk(WITH_NAN, (5, 4)), chunk(INTEGERS, (5, 4)), chunk(COMPLEX, (5, 4))
        self.v, self.p, self.s = chunk(COUNTS, 7), chunk(PARTS, 7), chunk(POSITIVE, (5, 5))
        self.t = chunk(A.reshape(4, 3, 10), (2, 3, 5))


@pytest.fixture(scope="module")
def both() -> tuple[Chunked, Chunked]:
    return Chunked(vnp.asarray), Chunked(lambda data: data)


def compare(ours: Any, theirs: Any, tolerance: float = 2e-5) -> None:
    """Compute both; the first has to be of Arrays, with equal dtypes, shapes and values."""
    if isinstance(ours, (tuple, list)):
        assert len(ours) == len(theirs)
        for x, y in zip(ours, theirs, strict=True):
            compare(x, y, tolerance)
        return
    found, expected = ours.compute(), theirs.compute()
    assert type(found) is type(ours._meta) is vnp.ndarray
    expected = np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape) and ours.dtype == theirs.dtype
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found.numpy(), expected)
    else:
        np.testing.assert_allclose(found.numpy(), expected, rtol=10 * tolerance, atol=tolerance)


CASES: dict[str, Callable[[Any], Any]] = {
    "fused operations": lambda d: da.exp(-d.a) * 2 + d.a[::-1].rechunk(d.a.chunks),
    "operators": lambda d: [
        abs(d.a - 0.5) // 0.2,
        d.i % 4,
        2**d.i,
        ~d.i & 3,
        d.a @ d.a.T,
        (d.a > 0.5) | (d.a < 0.1),
    ],
    "reductions": lambda d: [
        d.a.sum(),
        d.a.mean(axis=0),
        d.i.prod(axis=1),
        d.a.max(axis=0),
        d.i.min(),
        d.i.any(),
    ],
    "variance": lambda d: [d.a.var(axis=1), d.a.std(ddof=1), d.a.moment(3), da.sum(d.a, split_every=2)],
    "places of extremes": lambda d: [d.a.argmax(), d.a.argmin(axis=0), da.nanargmax(d.nan, axis=1)],
    "nan": lambda d: [
        da.nansum(d.nan, axis=0),
        da.nanmean(d.nan),
        da.nanstd(d.nan),
        da.nanmin(d.nan, axis=1),
    ],
    "running": lambda d: [d.a.cumsum(axis=0), d.i.cumprod(axis=1), da.nancumsum(d.nan, axis=0)],
    "running in parallel": lambda d: da.cumsum(d.a, axis=0, method="blelloch"),
    "largest": lambda d: [
        da.topk(d.p, 4),
        da.topk(d.a, -2, axis=0),
        da.argtopk(d.p, 3),
        da.argtopk(d.a, 2, axis=1),
    ],
    "percentiles": lambda d: [da.percentile(d.p, [10, 50, 90]), da.percentile(d.v, 25, method="nearest")],
    "medians": lambda d: [da.median(d.a, axis=0), da.nanquantile(d.nan, [0.2, 0.5], axis=1)],
    "histograms": lambda d: [
        da.histogram(d.p, bins=5, range=(0, 1))[0],
        da.histogram(d.p, bins=np.linspace(0, 1, 4), weights=d.p)[0],
    ],
    "counts": lambda d: [da.bincount(d.v, minlength=9), da.bincount(d.v, weights=d.p, minlength=9)],
    "sets": lambda d: [da.unique(d.v), da.union1d(d.v, d.i), da.isin(d.i, [1, 5])],
    "bins": lambda d: [da.digitize(d.p, np.array([0.2, 0.5])), da.searchsorted(d.p.cumsum(0), d.p)],
    "joining": lambda d: [da.concatenate([d.a, d.a], axis=1), da.stack([d.v, d.v]), da.block([[d.a], [d.a]])],
    "chunks of NumPy beside": lambda d: da.concatenate([d.v, da.arange(4, chunks=2)]),
    "insertion": lambda d: [
        da.insert(d.v, [2, 5], 9, axis=0),
        da.delete(d.v, [1, 3], axis=0),
        da.roll(d.a, 3, 0),
    ],
    "shapes": lambda d: [
        d.a.reshape(-1),
        d.t.transpose(2, 0, 1),
        d.a.rechunk((6, 5)),
        da.tile(d.v, 2),
        d.a[..., None],
    ],
    "slices": lambda d: [d.a[2:9, ::-2], d.a[3], d.a[3, 4], d.a.blocks[0, 1]],
    "indices": lambda d: [d.a[[5, 1, 1]], d.a[:, [3, 0]], d.a.vindex[[0, 11], [2, 3]], da.take(d.v, [1, 20])],
    "indices in chunks": lambda d: d.a[da.from_array(d.make(np.array([7, 0])), chunks=1)],
    "masks": lambda d: [
        d.a[d.a > 0.5],
        d.v[(d.v > 4).compute()],
        da.compress([True, False] * 6, d.a, axis=0),
    ],
    "choices": lambda d: [
        da.where(d.a > 0.5, d.a, 0),
        da.select([d.v > 5, d.v > 2], [d.v, -d.v]),
        da.clip(d.a, 0.2, 0.7),
    ],
    "padding": lambda d: [
        da.pad(d.a, 2, mode=mode) for mode in ("constant", "reflect", "mean", "linear_ramp", "wrap")
    ],
    "contractions": lambda d: [
        da.tensordot(d.a, d.a, axes=([0], [0])),
        da.einsum("ij,jk,kl->il", d.a, d.a.T, d.a),
        da.matmul(d.t, d.t.transpose(0, 2, 1)),
        da.outer(d.v, d.v),
        da.vdot(d.p, d.p),
    ],
    "statistics": lambda d: [da.cov(d.a), da.corrcoef(d.a), da.average(d.a, axis=0, weights=d.a)],
    "differences": lambda d: [da.diff(d.a, axis=1), da.gradient(d.p), da.ediff1d(d.v)],
    "complex": lambda d: [d.c.conj(), d.c.imag, da.angle(d.c), abs(d.c).sum(axis=0)],
    "casts": lambda d: [d.a.astype("i4"), d.a.view("i4"), da.round(d.a, 1), da.isfinite(d.nan)],
    "windows": lambda d: da.lib.stride_tricks.sliding_window_view(d.a, (3, 2)),
    "coarsening": lambda d: da.coarsen(np.sum, d.a[:10, :8].rechunk((4, 4)), {0: 2, 1: 2}),
    "map_blocks": lambda d: d.a.map_blocks(
        lambda x: x.sum(axis=1, keepdims=True), chunks=((5, 5, 2), (1, 1, 1))
    ),
    "map_overlap": lambda d: [
        d.a.map_overlap(lambda x: x[1:-1, 1:-1] - x[2:, 1:-1], depth=1, trim=False, boundary=boundary)
        for boundary in ("reflect", "periodic", "nearest", 0)
    ],
    "gufunc": lambda d: da.apply_gufunc(lambda x: x.mean(axis=-1), "(i)->()", d.tall),
    "reduction": lambda d: da.reduction(
        d.a,
        lambda x, axis, keepdims: (x**2).sum(axis=axis, keepdims=keepdims),
        lambda x, axis, keepdims: x.sum(axis=axis, keepdims=keepdims),
        dtype="f4",
    ),
    "fft": lambda d: [
        da.fft.fft(d.tall),
        da.fft.irfft(da.fft.rfft(d.tall)),
        da.fft.fft2(d.one),
        da.fft.fftshift(d.a),
    ],
    "products of qr": lambda d: da.dot(*da.linalg.qr(d.tall)),
    "singular values": lambda d: [da.linalg.svd(x)[1] for x in (d.tall, d.wide, d.one)],
    "cholesky": lambda d: [da.linalg.cholesky(d.s), da.linalg.cholesky(d.s, lower=True)],
    "lu": lambda d: da.linalg.lu(d.s),
    "solutions": lambda d: [
        da.linalg.solve(d.s, d.s[:, 0]),
        da.linalg.solve(d.s, d.s[:, :3].rechunk((5, 3)), assume_a="pos"),
        da.linalg.inv(d.s),
        da.linalg.solve_triangular(da.triu(d.s), d.s[:, 0]),
    ],
    "least squares": lambda d: da.linalg.lstsq(d.tall, d.tall[:, 0])[:2],
    "norms": lambda d: [da.linalg.norm(d.a), da.linalg.norm(d.a, axis=1), da.linalg.norm(d.a, np.inf)],
    "lines": lambda d: [
        da.apply_along_axis(lambda x: x.sum(), 1, d.a),
        da.apply_along_axis(lambda x, k: np.outer(x[:2], x[:3]) * k, 0, d.a, 3),
        da.apply_along_axis(np.sort, -1, d.t),
    ],
    "axes": lambda d: [
        da.apply_over_axes(np.sum, d.a, (0, 1)),
        da.apply_over_axes(np.cumsum, d.i, [-1]),
        da.apply_over_axes(lambda x, axis: x.max(axis=axis, keepdims=True), d.t, 1),
    ],
    "densities": lambda d: [
        da.histogram(d.p, bins=5, range=(0, 1), density=True)[0],
        da.histogram(d.p, bins=[0, 0.2, 0.9], weights=d.p, density=True)[0],
        da.histogram2d(d.p, d.p**2, bins=3, range=((0, 1), (0, 1)), density=True)[0],
        da.histogramdd(d.tall[:, :2].rechunk((4, 2)), bins=(3, 4), range=((0, 1), (0, 1)))[0],
    ],
    "places": lambda d: [
        da.argwhere(d.a > 0.5),
        da.nonzero(d.v > 4),
        da.where(d.i == 3),
        da.flatnonzero(d.v),
        d.v.nonzero(),
    ],
    "unique elements": lambda d: [
        da.unique(d.v, return_counts=True),
        da.unique(d.i, return_index=True, return_inverse=True, return_counts=True),
        da.unique(d.p, return_inverse=True),
    ],
    "likes": lambda d: [da.ones_like(d.a), da.zeros_like(d.i), da.full_like(d.a, 3)],
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_dask(both: tuple[Chunked, Chunked], name: str) -> None:
    ours, theirs = both
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's of NaN, ours of functions on the host
        compare(
            CASES[name](ours),
            CASES[name](theirs),
            2e-3 if name in ("solutions", "least squares", "lu") else 2e-5,
        )


def test_svd_compressed(both: tuple[Chunked, Chunked]) -> None:
    ours, _ = both
    u, s, v = da.linalg.svd_compressed(ours.a, 10, iterator="QR", seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (product,) = dask.compute(da.dot(u * s, v))
    np.testing.assert_allclose(product.numpy(), A, atol=1e-4)


def test_unique_elements_of_unknown_chunks_and_with_nan(both: tuple[Chunked, Chunked]) -> None:
    x = both[0].v
    values, index, inverse, counts = dask.compute(*da.unique(x[x > 3], True, True, True))
    expected = np.unique(COUNTS[COUNTS > 3], True, True, True)
    for found, right in zip((values, index, inverse, counts), expected, strict=True):
        np.testing.assert_array_equal(found.numpy(), right)
    data = np.float32([2, np.nan, 1, np.nan, 2, 1, np.nan])
    found = dask.compute(*da.unique(da.from_array(vnp.asarray(data), chunks=3), return_counts=True))
    for each, right in zip(found, np.unique(data, return_counts=True), strict=True):
        np.testing.assert_array_equal(each.numpy(), right)


def test_a_function_that_changes_axes_is_refused(both: tuple[Chunked, Chunked]) -> None:
    with pytest.raises(ValueError, match="func: expected a result with 2 axes"):
        da.apply_over_axes(lambda x, axis: x[None], both[0].a, 0)


def test_assignment(both: tuple[Chunked, Chunked]) -> None:
    def assign(x: Any) -> Any:
        x = x.copy()
        x[x > 0.5] = -1
        x[2:9, ::3] = 7
        x[0] = x[-1]
        return x

    compare(assign(both[0].a), assign(both[1].a))
    x, y = both[0].v.copy(), both[1].v.copy()
    x[da.from_array(vnp.asarray([2, 20]))] = 99
    y[da.from_array(np.array([2, 20]))] = 99
    compare(x, y)


# ---- creation, conversion --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "create",
    [
        lambda: da.ones((5, 4), chunks=2, dtype="f4"),
        lambda: da.zeros(7, chunks=3, dtype="i4"),
        lambda: da.full((3, 3), 2.5, chunks=2, dtype="f4"),
        lambda: da.arange(2, 11, 2, chunks=2),
    ],
)
def test_the_backend_creates_arrays(create: Callable[[], Any]) -> None:
    with dask.config.set({"array.backend": "vkdispatch"}):
        ours = create()
    assert type(ours._meta) is vnp.ndarray
    compare(ours, create())


def test_the_backend_creates_empty_arrays() -> None:
    with dask.config.set({"array.backend": "vkdispatch"}):
        made = da.empty((5, 4), chunks=2, dtype="f4").compute()
    assert (type(made), made.shape, made.dtype) == (vnp.ndarray, (5, 4), np.float32)


def test_random_numbers_are_arrays_and_repeat() -> None:
    with dask.config.set({"array.backend": "vkdispatch"}):
        first, second = (
            da.random.default_rng(7).normal(3, 2, size=(400, 30), chunks=(90, 30)) for _ in range(2)
        )
        other = da.random.default_rng(8).normal(3, 2, size=(400, 30), chunks=(90, 30))
        legacy = da.random.RandomState(7).randint(0, 6, size=4000, chunks=900)
        chosen = da.random.default_rng(7).choice(5, size=600, chunks=200)
    x, y, z = (each.compute() for each in (first, second, other))
    assert type(first._meta) is type(x) is vnp.ndarray
    assert bool((x == y).all()) and not bool((x == z).any())
    assert not bool((x[:90] == x[90:180]).any())  # chunks have streams of their own
    assert abs(float(x.mean()) - 3) < 0.1 and abs(float(x.std()) - 2) < 0.1
    assert set(legacy.compute().tolist()) == set(range(6)) and set(chosen.compute().tolist()) == set(range(5))


def test_a_generator_of_ours_decides() -> None:
    drawn = da.random.default_rng(vnp.random.default_rng(5)).random((6, 4), chunks=3)
    assert type(drawn._meta) is type(drawn.compute()) is vnp.ndarray


def test_permutations_of_generators_of_ours() -> None:
    with dask.config.set({"array.backend": "vkdispatch"}):
        x = da.arange(50, chunks=20)
        first, second = (da.random.default_rng(3).permutation(x).compute().numpy() for _ in range(2))
    assert sorted(first) == list(range(50)) and list(first) != list(range(50))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "create",
    [
        lambda: da.arange(5, chunks=2),
        lambda: da.arange(3.0, 9, 0.5, chunks=2) + 1,
        lambda: da.ones((4, 4), chunks=2),
        lambda: da.random.RandomState(3).normal(size=5, chunks=2),
        lambda: da.random.default_rng(3).permutation(da.arange(5)),
    ],
)
def test_arrays_of_numpy_and_of_the_backend_in_one_graph(create: Callable[[], Any]) -> None:
    with dask.config.set({"array.backend": "vkdispatch"}):
        ours, again = create(), create()
    theirs = create()
    assert ours.name == again.name and not set(ours.dask) & set(theirs.dask)
    assert [type(each) for each in dask.compute(ours, theirs)] == [vnp.ndarray, np.ndarray]


def test_triangles_of_numpy_and_of_the_backend_in_one_graph(both: tuple[Chunked, Chunked]) -> None:
    found, expected = dask.compute(da.tril(both[0].s), da.tril(both[1].s))  # Dask compares indices
    np.testing.assert_array_equal(found.numpy(), expected)


def test_to_backend() -> None:
    theirs = da.from_array(A, chunks=5)
    ours = theirs.to_backend("vkdispatch")
    assert type(ours._meta) is vnp.ndarray and ours.to_backend("vkdispatch") is ours
    compare(ours, theirs)
    back = ours.to_backend("numpy")
    assert type(back._meta) is np.ndarray
    np.testing.assert_array_equal(back.compute(), A)


def test_conversions() -> None:
    x = vnp.asarray(A)
    for convert in (da.asarray, da.asanyarray, da.from_array, da.array):
        made = convert(x)
        assert type(made._meta) is vnp.ndarray
        np.testing.assert_array_equal(made.compute().numpy(), A)
    kept = made.persist()
    assert all(type(chunk) is vnp.ndarray for chunk in kept.dask.values())
    like = da.from_array(vnp.zeros(0, np.float32))
    assert type(da.asarray(np.ones(3), like=like).compute()) is vnp.ndarray


def test_an_array_beside_a_dask_array(both: tuple[Chunked, Chunked]) -> None:
    ours, theirs = both
    row = vnp.asarray(A[0])
    compare(row + ours.a, A[0] + theirs.a)
    compare(ours.a * row, theirs.a * A[0])
    compare(np.add(row, ours.a), np.add(A[0], theirs.a))


def test_store_writes_to_an_array(both: tuple[Chunked, Chunked]) -> None:
    target = vnp.zeros(A.shape, np.float32)
    da.store(both[0].a * 2, target)
    np.testing.assert_array_equal(target.numpy(), A * 2)


def test_chunks_of_numpy_are_not_uploaded_in_silence(both: tuple[Chunked, Chunked]) -> None:
    with pytest.raises(TypeError, match=r"vnp\.asarray"):
        (both[0].a + both[1].a).compute()


# ---- sizes, tokens, pickles ------------------------------------------------------------------------


def test_sizes() -> None:
    x = vnp.ones((30, 20), np.float32) * 2
    assert sizeof(x) == 2400 and type(x._value) is View  # what is measured is computed
    assert sizeof(vd.Buffer(100, vd.float32)) == 400


def test_tokens_are_those_of_values() -> None:
    x = vnp.asarray(A)
    token = dask.base.tokenize(x)
    assert (
        token
        == dask.base.tokenize(vnp.asarray(A))
        == dask.base.tokenize(x * 1)
        == dask.base.tokenize(x.T.copy().T)
    )
    changed = x.copy()
    changed[3, 4] += 1
    others = [changed, x.T, x.astype(np.float64), x.reshape(-1), x[:0], x[:0].T, x.sum(), x.max()]
    assert len({token, *map(dask.base.tokenize, others)}) == 9
    assert da.from_array(x).name == da.from_array(vnp.asarray(A)).name


def test_pickles_of_small_arrays() -> None:
    for x in (
        vnp.zeros((0, 3), np.int16),
        vnp.asarray(2.5),
        vnp.asarray(True),
        vnp.asarray(2**63 - 1),
        vnp.asarray(1j),
    ):
        y = pickle.loads(pickle.dumps(x))
        assert (type(y), y.shape, y.dtype) == (vnp.ndarray, x.shape, x.dtype)
        np.testing.assert_array_equal(y.numpy(), x.numpy())


# ---- tasks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_results_of_tasks_are_computed(both: tuple[Chunked, Chunked], scheduler: str) -> None:
    values = []

    def note(key: Any, result: Any, *_: Any) -> None:
        parts = result if isinstance(result, tuple) else (result,)
        values.extend(type(part._value) for part in parts if isinstance(part, vnp.ndarray))

    work = [
        both[0].a * 2 + 1,
        both[0].a.map_blocks(lambda x: vnp.sin(x)),
        both[0].tall.map_blocks(lambda x: -x).sum(),
    ]
    with Callback(posttask=note):
        dask.compute(*work, scheduler=scheduler, optimize_graph=False)
    assert len(values) > 20 and set(values) == {View}


def _note_key(keys: list[Any], key: Any, *_: Any) -> None:
    keys.append(key)


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_an_error_of_the_device_is_one_of_its_task(both: tuple[Chunked, Chunked], scheduler: str) -> None:
    def pick(x: Any) -> Any:
        return x[vnp.asarray([0, 5_000])]

    wrong = both[0].v.map_blocks(pick, dtype=np.int64, chunks=((2,) * 5,))
    right = both[0].v.map_blocks(lambda x: x[vnp.asarray([0, 1])], dtype=np.int64, chunks=((2,) * 5,))
    for _ in range(3):
        keys: list[Any] = []
        note = functools.partial(_note_key, keys)
        with Callback(posttask=note), pytest.raises(IndexError, match="5000"):
            wrong.compute(scheduler=scheduler)
        assert not any("pick" in str(key) for key in keys)
        # no thread gets it again in other tasks
        found = [right.compute(scheduler=scheduler).numpy() for _ in range(4)]
        assert all(
            (each == np.array([COUNTS[i : i + 2] for i in range(0, 30, 7)]).ravel()).all() for each in found
        )
    assert float(vnp.ones(3).sum()) == 3


def test_workers_finish_the_results_of_tasks() -> None:
    worker = pytest.importorskip("distributed.worker")
    from dask._task_spec import Task

    x = vnp.asarray(A)
    done = worker._run_task_simple(Task("k", lambda: {"parts": [vnp.sin(x), 3]}), {}, 0.0)
    assert done["op"] == "task-finished" and type(done["result"]["parts"][0]._value) is View
    failed = worker._run_task_simple(Task("k", lambda: x[vnp.asarray([77])]), {}, 0.0)
    assert failed["op"] == "task-erred" and isinstance(failed["actual_exception"], IndexError)
    buffer, places = vd.asbuffer(A[0]), vd.asbuffer(np.array([77]))
    failed = worker._run_task_simple(Task("k", lambda: vd.take(buffer, places)), {}, 0.0)
    assert failed["op"] == "task-erred" and isinstance(failed["actual_exception"], IndexError)


def test_an_error_in_python_is_one_of_its_task(both: tuple[Chunked, Chunked]) -> None:
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        da.linalg.solve_triangular(both[0].s * 0, both[0].s[:, 0]).compute()


def test_many_threads(both: tuple[Chunked, Chunked]) -> None:
    ours, theirs = both
    work: list[Callable[[Any], Any]] = [
        lambda d: da.exp(-d.a).sum(axis=0),
        lambda d: (d.a @ d.a.T)[:5],
        lambda d: d.v[d.v > 4].sum(),
        lambda d: d.a.map_overlap(lambda x: x * 2, depth=1, boundary="reflect"),
        lambda d: d.a.std(axis=1),
        lambda d: d.a[[3, 7, 1], ::-1],
    ]
    expected = [each(theirs).compute(scheduler="sync") for each in work]

    def run(turn: int) -> None:
        number = turn % len(work)
        found = work[number](ours).compute(scheduler="threads", num_workers=8)
        np.testing.assert_allclose(found.numpy(), expected[number], rtol=1e-4, atol=1e-5)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(48)))


# ---- registration ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a process in which the entry points of pyproject.toml are installed."""
    folder = tmp_path_factory.mktemp("installed")
    facts = folder / "vkdispatch_points-1.dist-info"
    facts.mkdir()
    facts.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: vkdispatch-points\nVersion: 1\n")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    text = "".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in points.items()
    )
    facts.joinpath("entry_points.txt").write_text(text)
    paths = [str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]  # where Dask may be
    return {"PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.parametrize(
    "imports", ["vkdispatch.distributed, dask.sizeof", "dask.sizeof, vkdispatch.distributed"]
)
def test_sizes_are_known_without_entry_points(run_python: RunPython, imports: str) -> None:
    done = run_python(
        "import importlib.metadata, sys\n"
        "try: import importlib_metadata\n"
        "except ImportError: importlib_metadata = importlib.metadata\n"
        "importlib.metadata.entry_points = importlib_metadata.entry_points = lambda **_: ()\n"
        f"import {imports}\n"
        "import vkdispatch as vd\n"
        "print(dask.sizeof.sizeof(vd.Buffer(100, vd.float32)))"
    )
    assert (done.stdout, done.stderr) == ("400\n", "")


ORDERS = [
    "import dask.array as da, vkdispatch.numpy as vnp",
    "import vkdispatch.numpy as vnp, dask.array as da",
]


@pytest.mark.parametrize("imports", ORDERS)
def test_dask_knows_arrays_in_any_order_of_imports(
    run_python: RunPython, installed: dict[str, str], imports: str
) -> None:
    done = run_python(
        imports + "\nimport dask, dask.local\n"
        "from dask.sizeof import sizeof\n"
        "x = da.from_array(vnp.ones((4, 4), 'f4'), chunks=2)\n"
        "print(type((vnp.ones(4, 'f4') + x).compute()).__name__, sizeof(vnp.ones(9, 'f4')), end=' ')\n"
        "with dask.config.set({'array.backend': 'vkdispatch'}):\n"
        "    print(type(da.ones(3)._meta).__name__, end=' ')\n"
        "print(dask.local.execute_task.__module__, dask.local.execute_task.__wrapped__ is not None)\n",
        **installed,
    )
    assert (done.stdout.split(), done.stderr) == (["Array", "36", "Array", "dask.local", "True"], "")


def test_a_failed_registration_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(loading._waiting, ("arrays", "register_nothing"), frozenset(("dask.array",)))
    with pytest.warns(RuntimeWarning, match=r"arrays\.register_nothing"):
        loading.register()
    assert not loading._waiting.get(("arrays", "register_nothing"))


def test_query_planning(run_python: RunPython, installed: dict[str, str]) -> None:
    done = run_python(
        "import dask; dask.config.set({'array.query-planning': True})\n"
        "import dask.array as da, vkdispatch.numpy as vnp\n"
        "x = (da.from_array(vnp.ones((4, 4), 'f4'), chunks=2) * 2 + 1).sum(axis=0).compute()\n"
        "print(type(x).__name__, x.tolist())",
        **installed,
    )
    assert (done.stdout, done.stderr) == ("Array [12.0, 12.0, 12.0, 12.0]\n", "")


def test_importing_arrays_does_not_import_dask_nor_the_other_way_round(
    run_python: RunPython, installed: dict[str, str]
) -> None:
    done = run_python(
        "import sys, vkdispatch, vkdispatch.numpy, vkdispatch.distributed\n"
        "vkdispatch.numpy.ones; print('dask' in sys.modules)",
        **installed,
    )
    assert (done.stdout.split(), done.stderr) == (["False"], "")
    done = run_python("import sys, dask.array; print('vkdispatch.numpy' in sys.modules)", **installed)
    assert (done.stdout.split(), done.stderr) == (["False"], "")


# ---- without a device ------------------------------------------------------------------------------

GRAPHS = """
import pickle, sys
import numpy as np, dask, dask.array as da
import vkdispatch.distributed, vkdispatch.numpy as vnp

def make(x):
    n = da.from_array(np.arange(144, dtype="f4").reshape(12, 12), chunks=6)
    return {
        "operators": -x * 2 + 1, "ufunc": np.sqrt(x), "sum": x.sum(), "mean": x.mean(axis=0), "std": x.std(),
        "argmax": x.argmax(axis=1), "cumsum": x.cumsum(axis=0), "slice": x[2:, ::2], "transpose": x.T,
        "reshape": x.reshape(-1), "matmul": x @ x, "tensordot": da.tensordot(x, x, 1),
        "einsum": da.einsum("ij,jk->ik", x, x), "where": da.where(x > 3, x, 0), "topk": da.topk(x, 2),
        "concatenate": da.concatenate([x, x]), "unique": da.unique(x.ravel()),
        "percentile": da.percentile(x.ravel(), [10, 50]),
        "median": da.median(x, axis=0), "astype": x.astype("i4"), "full_like": da.full_like(x, 2),
        "map_blocks": x.map_blocks(lambda b: vnp.sort(b, axis=1) * 2),
        "map_overlap": x.map_overlap(lambda b: b + 1, depth=1, boundary="reflect"),
        "cholesky": da.linalg.cholesky(x @ x.T), "inverse": da.linalg.inv(x @ x.T),
        "over axes": da.apply_over_axes(np.sum, x, [0]),
        "counts": da.unique(x.ravel(), return_counts=True)[1],
        "density": da.histogram(x, bins=4, range=(0, 20), density=True)[0], "places": da.argwhere(x > 5),
        "mask": x[x > 5], "lines": da.apply_along_axis(lambda b: b.sum(), 0, x, dtype="f4", shape=()),
        "fft": da.fft.fft(x.rechunk((12, 6)), axis=0),
        "uploaded": n.map_blocks(vnp.asarray), "backend": n.to_backend("vkdispatch"),
        "host": x.to_backend("numpy"), "triangle": da.linalg.qr(x.rechunk((6, 12)))[1],
        "random": da.random.default_rng(3).normal(size=(6, 4), chunks=3),
        "legacy": da.random.RandomState(3).normal(size=(6, 4), chunks=3), "arange": da.arange(9, chunks=4),
    }

with dask.config.set({"array.backend": "vkdispatch"}):
    work = make(da.ones((12, 12), chunks=6, dtype="f4").cumsum(axis=1))
"""


def test_graphs_are_built_without_a_device_and_computed_with_one(
    run_python: RunPython, tmp_path: Path
) -> None:
    graphs = tmp_path / "graphs"
    code = GRAPHS + (
        "print([name for name, x in work.items() if type(x._meta) is not vnp.ndarray])\n"
        "print({name: str(x.dtype) for name, x in work.items()})\n"
        "print(dask.sizeof.sizeof(vnp.ones((0, 3))), dask.sizeof.sizeof(work['sum']._meta))\n"
        "import cloudpickle; del work['cholesky'], work['inverse']  # of a singular matrix\n"
        f"open({str(graphs)!r}, 'wb').write(cloudpickle.dumps(work))\n"
    )
    without = run_python(code, **NO_DRIVER)
    assert without.stderr == ""
    with_device = run_python(code.replace(str(graphs), str(tmp_path / "others")))
    assert with_device.stderr == ""
    assert without.stdout.splitlines()[0] == "['host']"
    assert without.stdout == with_device.stdout  # the dtypes are the same
    done = run_python(
        "import pickle, numpy as np, warnings; warnings.simplefilter('ignore')\n"
        f"names = {str(graphs)!r}, {str(tmp_path / 'others')!r}\n"
        "work, others = (pickle.load(open(name, 'rb')) for name in names)\n"
        "for name, x in work.items():\n"
        "    found, expected = x.compute(), others[name].compute()\n"
        "    assert type(found) is type(expected) and found.dtype == expected.dtype, name\n"
        "    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected), err_msg=name)\n"
        "print(len(work))"
    )
    assert done.stderr == ""
    assert done.stdout == "37\n"


def test_graphs_with_a_device_are_read_without_one(run_python: RunPython, tmp_path: Path) -> None:
    x = da.from_array(vnp.asarray(A), chunks=5)
    file = tmp_path / "graph"
    with dask.config.set({"array.backend": "vkdispatch"}):
        ones = da.ones((6, 6), chunks=3)
    file.write_bytes(pickle.dumps([ones.sum(), ones.T[:2] * 3, ones.mean(axis=0), x._meta, x.sum()._meta]))
    done = run_python(
        "import pickle, vkdispatch.distributed\n"
        f"found = pickle.load(open({str(file)!r}, 'rb'))\n"
        "print([type(getattr(x, '_meta', x)).__name__ for x in found])\n"
        "print((found[1] + 1).sum(axis=0).dtype, found[3].dtype, found[4].shape, found[3][:, None].shape)\n"
        "try: found[0].compute()\n"
        "except Exception as error: print(type(error).__name__)",
        **NO_DRIVER,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        str(["Array"] * 5),
        "float64 float32 () (0, 1, 0)",
        "BackendUnavailableError",
    ]


def test_arrays_without_a_device_have_no_values_of_their_own(run_python: RunPython, tmp_path: Path) -> None:
    file = tmp_path / "total"
    done = run_python(
        "import pickle, vkdispatch.numpy as vnp\n"
        "def fails(call):\n"
        "    try: call()\n"
        "    except Exception as error: return type(error).__name__\n"
        "print(fails(lambda: vnp.ones(3)), fails(lambda: vnp.asarray([1, 2])))\n"  # nothing of Dask's yet
        "x = vnp.ones((0, 2), vnp.float32)\n"
        "total = x.sum()\n"
        "print(*[fails(call) for call in (total.item, (total + 1).numpy, x.sum(axis=0).numpy)])\n"
        "print(x.numpy().shape, (x + 1).shape, len(x), x.strides, vnp.asarray([1, 2]).tolist())\n"
        "print(fails(lambda: vnp.asarray([1.0, 2]) @ vnp.asarray([3.0, 4])))\n"
        "open_one = pickle.loads(pickle.dumps(vnp.asarray(2.5)))\n"
        "print(float(open_one), pickle.loads(pickle.dumps(vnp.asarray([1, 2]))).tolist())\n"
        f"open({str(file)!r}, 'wb').write(pickle.dumps(total))",
        **NO_DRIVER,
    )
    assert done.stderr == ""
    error = "BackendUnavailableError"
    assert done.stdout.splitlines() == [
        f"{error} {error}",
        f"{error} {error} {error}",
        "(0, 2) (0, 2) 0 (8, 4) [1, 2]",
        "None",
        "2.5 [1, 2]",
    ]
    found = pickle.loads(file.read_bytes())
    assert (found.shape, found.dtype) == ((), np.float32)
    with pytest.raises(vd.UsageError, match="without a device"):
        float(found + 1)
