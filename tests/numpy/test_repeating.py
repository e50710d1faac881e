"""Calls of functions of arrays that one native call repeats."""

import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp

CALLS = """
m.roll(x, 3)  m.roll(A, (1, 2), (0, 1))  m.concatenate([x, y])  m.concatenate([x, x])  m.stack([x, y], 1)
m.vstack([A, A])  m.tile(x, 3)  m.repeat(x, 2)  m.sort(x)  m.sort(A, axis=0)  m.argsort(x)  m.take(x, i)
m.searchsorted(e, x)  m.take_along_axis(A, k, 1)  m.isin(i, j)  m.lexsort([x, y])  m.partition(x, 5)
m.median(x)  m.percentile(A, 30, axis=1)  m.quantile(x, [0.1, 0.9])  m.cov(A)  m.corrcoef(A)  m.trace(A)
m.average(x, weights=y)  m.nansum(x)  m.nanmax(A, axis=0)  m.histogram(x, 5, (0.0, 1.0))[0]  m.interp(x, e, e)
m.gradient(A)[1]  m.trapezoid(x)  m.convolve(x, v)  m.correlate(x, v)  m.select([b, b], [x, y], 0)
m.packbits(b)  A @ B  m.matmul(A, B)  m.dot(x, y)  m.inner(A, B)  m.vdot(x, y)
m.tensordot(A, B, 1)  m.kron(A, B)  m.cross(V, V)  m.einsum("ij,ij->i", A, A)  m.einsum("ij,kj->ik", A, B)
m.linalg.norm(A, axis=1)  m.linalg.det(B)  m.fft.fft(x)  m.fft.rfft2(A)  m.fft.irfft(x)  m.fft.fftshift(A)
m.polyval(v, x)  m.delete(x, 5)  m.append(x, y)  m.pad(A, 2)  m.ptp(A, axis=0)  x[i]  A[:, k[0]]
A[k[0], k[0]]  T[k[0], ..., None]  R[i]
"""
# They wait for the device, or show a part of a memory that is read-only.
PLAIN = """
m.digitize(x, e)  m.bincount(i, minlength=40)  m.linalg.inv(B)  m.linalg.solve(B, A)  m.diag(A)  x[b]
m.unique(i)  m.choose(c, [x, y])  m.meshgrid(x, y)[0]  m.histogram(x, 5)[0]
"""


def split(text: str) -> list[str]:
    return [call for line in text.split("\n") for call in line.split("  ") if call]


def make(seed: int, space: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    table, integers = rng.random((8, 8)), rng.integers(0, 37, 37)
    values = {
        "x": rng.random(37), "y": rng.random(37), "A": table, "B": rng.random((8, 8)) + np.eye(8),
        "T": table.T, "V": rng.random((9, 3)), "R": rng.random(37)[::-1], "b": rng.random(37) > 0.5,
        "c": rng.integers(0, 2, 37), "e": np.sort(rng.random(9)), "v": rng.random(5), "i": integers,
        "j": rng.integers(0, 37, 5), "k": np.argsort(table, 1),
    }  # fmt: skip
    return {"m": space, **{key: space.asarray(value) for key, value in values.items()}}


def count_frames(call: Callable[[], Any]) -> tuple[int, Any]:
    """Return how many functions of Python a call runs, and its result."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    return count - 1, result


@pytest.mark.parametrize("text", split(CALLS + PLAIN))
def test_calls_with_other_values(text: str) -> None:
    code = compile(text, "<call>", "eval")
    for seed in range(4):
        wanted = eval(code, make(seed, np))
        names = make(seed, vnp)
        frames, result = count_frames(lambda names=names: eval(code, names))
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-9, atol=1e-12)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    if text in CALLS:
        assert frames <= 30  # of the call, and of operators and views around it


def test_layouts_have_calls_of_their_own() -> None:
    source = np.arange(60.0).reshape(6, 10)
    x = vnp.asarray(source)
    cuts = [np.s_[:5, :5], np.s_[1:, 5:], np.s_[:5, ::2], np.s_[4::-1, :5], np.s_[1:, 4::-1], np.s_[:5, 1:6]]
    for _ in range(3):
        for cut in cuts:
            np.testing.assert_array_equal(vnp.roll(x[cut], 2).numpy(), np.roll(source[cut], 2))
            np.testing.assert_array_equal(vnp.roll(x[cut].T, 2, 0).numpy(), np.roll(source[cut].T, 2, 0))


def test_the_same_array_twice_is_another_call() -> None:
    a, b = np.arange(5.0), -np.arange(5.0)
    x, y = vnp.asarray(a), vnp.asarray(b)
    for _ in range(3):
        for first, second, wanted in ((x, y, [*a, *b]), (x, x, [*a, *a]), (y, x, [*b, *a])):
            assert vnp.concatenate([first, second]).tolist() == wanted


def test_results_are_new_memory() -> None:
    x = vnp.arange(6.0)
    results = [vnp.roll(x, 1) for _ in range(4)]
    for number, result in enumerate(results):
        result[0] = 100 + number
    x[5] = -1
    assert [result[0].item() for result in results] == [100, 101, 102, 103]
    assert vnp.roll(x, 1).tolist() == [-1, 0, 1, 2, 3, 4]


def test_expressions_wait_for_results_that_change() -> None:
    x = vnp.arange(6.0)
    for _ in range(4):
        rolled = vnp.roll(x, 1)
        waiting = rolled + 1
        rolled[...] = 0
        assert waiting.tolist() == [6, 1, 2, 3, 4, 5]


def test_pending_arguments() -> None:
    for number in range(5):
        x = vnp.arange(300.0) * number + 1
        assert vnp.concatenate([x, x * 2]).tolist() == [*(x.numpy()), *(x.numpy() * 2)]
    for number in range(4):
        large = vnp.arange(300000.0) * number
        assert vnp.roll(large, 1)[:2].tolist() == [299999.0 * number, 0]


def test_results_may_be_views_of_arguments() -> None:
    for _ in range(4):
        x = vnp.arange(12.0).reshape(3, 4)
        front, back = vnp.meshgrid(x[0], x[1], copy=False)
        x[0] = 7
        assert front[0].tolist() == [7] * 4
        assert back[:, 0].tolist() == [4, 5, 6, 7]


def test_parts_of_an_argument_are_views() -> None:
    for number in range(4):
        x = vnp.arange(12.0).reshape(3, 4) + number
        low, high = vnp.split(x, 2, axis=1)
        low[...] = -1
        x[0, 3] = 9
        assert x[:, :2].tolist() == [[-1, -1]] * 3
        assert high[0].tolist() == [2 + number, 9]


def test_comparisons_of_whole_arrays() -> None:
    x = vnp.asarray([1.0, np.nan, 3.0])
    for last in (3.0, 4.0, 3.0 + 1e-9, 3.0):
        y = vnp.asarray([1.0, np.nan, last])
        assert vnp.allclose(x, y, equal_nan=True) == (last != 4)
        assert not vnp.allclose(x, y)
        assert vnp.array_equal(x, y, equal_nan=True) == (last == 3)
        assert vnp.array_equiv(x[::2], y[::2]) == (last == 3)
        assert not vnp.array_equal(x, y)


def test_indices_that_are_out_of_bounds_raise_each_time() -> None:
    x = vnp.arange(10.0)
    for index in ([1, 2], [3, 4], [5, 60], [7, 8], [70, 1]):
        picked = x[vnp.asarray(index)]
        if max(index) < 10:
            assert picked.tolist() == index
        else:
            with pytest.raises(IndexError):
                picked.numpy()


def test_the_default_dtype_decides() -> None:
    x = vnp.asarray(np.arange(5))
    try:
        for _ in range(3):
            vnp.set_default_dtype(vnp.float32)
            assert vnp.median(x).dtype == np.float32
            vnp.set_default_dtype(None)
            assert vnp.median(x).dtype == np.float64
    finally:
        vnp.set_default_dtype(None)


def test_warnings_come_each_time() -> None:
    x = vnp.asarray(np.arange(4) + 1j)
    for _ in range(4):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            vnp.concatenate([x, x], dtype=np.float64, casting="unsafe")
        assert [warning.category for warning in caught] == [np.exceptions.ComplexWarning] * 2


def test_graphs_do_not_record_them() -> None:
    x = vnp.arange(6.0)
    for _ in range(3):
        vnp.roll(x, 2)
    with vd.CommandGraph(), pytest.raises(vd.UsageError, match="cannot record"):
        vnp.roll(x, 2)
    assert vnp.roll(x, 2).tolist() == [4, 5, 0, 1, 2, 3]


def test_threads() -> None:
    wrong = []

    def work(seed: int) -> None:
        for number in range(30):
            a = np.random.default_rng((seed, number)).random(100)
            if not np.array_equal(
                vnp.roll(vnp.sort(vnp.asarray(a)), seed).numpy(), np.roll(np.sort(a), seed)
            ):
                wrong.append((seed, number))

    threads = [threading.Thread(target=work, args=(seed % 2,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
