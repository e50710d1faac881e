"""`scipy.fft` with our backend against `scipy.fft` without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import vkdispatch as vd
from vkdispatch.base.errors import ArgumentValueError

HAS_F64 = bool(vd.get_devices()[0].float_64_support)
SINGLE = [np.float32, np.complex64]
DOUBLE = [np.float64, np.complex128] if HAS_F64 else []


def noise(shape: tuple[int, ...], kind: Any) -> np.ndarray:
    generator = np.random.default_rng(sum(shape))
    values = generator.standard_normal(shape)
    if np.dtype(kind).kind == "c":
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(kind)


def check(name: str, values: Any, *args: Any, **options: Any) -> None:
    """Compare the device alone with SciPy alone."""
    function = getattr(scipy.fft, name)
    before = np.array(values, copy=True)
    with scipy.fft.set_backend(vd.fft.scipy_backend, only=True):
        ours = function(values, *args, **options)
    wanted = function(before.copy(), *args, **options)
    assert type(ours) is np.ndarray
    assert (ours.dtype, ours.shape) == (wanted.dtype, wanted.shape)
    assert ours.flags.c_contiguous
    eps = np.finfo(ours.dtype).eps
    bound = 10 * eps * (2 + np.log2(ours.size)) * max(np.abs(wanted).max(), 1e-30)
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=bound)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("kind", SINGLE + DOUBLE)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name: str, kind: Any) -> None:
    if name in ("rfft", "ihfft") and np.dtype(kind).kind == "c":
        pytest.skip("reals only")
    values = noise((4, 6, 5), kind)
    for options in ({}, {"axis": 0, "norm": "ortho"}, {"n": 7, "axis": 1, "norm": "forward"}, {"n": 3}):
        check(name, values, **options)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_two_axes_and_more(name: str) -> None:
    values = noise((4, 6, 5), np.float32)
    check(name + "2", values)
    check(name + "2", values, s=(3, 8), norm="ortho")
    check(name + "n", values)
    check(name + "n", values, axes=(2, 0), norm="forward")
    check(name + "n", values, s=(5, 4), axes=(0, 1))
    check(name + "n", values, (-1, 6))


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_cosines_and_sines(name: str) -> None:
    values = noise((4, 6), np.float32)
    check(name, values)
    check(name, values, 4, 5, 0, "ortho")
    check(name, noise((3, 4), np.complex64), 3, norm="ortho")
    check(name, values, orthogonalize=True)
    check(name + "n", values, 1, norm="forward")
    check(name + "n", values, 2, (8,), (0,), "ortho")


@pytest.mark.parametrize("shape", [(1,), (31,), (149,), (2, 1, 3, 2, 4), (6, 1)])
def test_shapes(shape: tuple[int, ...]) -> None:
    check("fftn", noise(shape, np.complex64))
    check("rfft", noise(shape, np.float32))


def test_other_arrays() -> None:
    values = noise((6, 8), np.complex64)
    check("fft", values[::2, ::-1])
    check("fft2", np.asfortranarray(values))
    check("fft", values.astype(">c8"))
    check("rfft", noise((8,), np.float32).astype(np.float16))
    if HAS_F64:
        check("fft", [1, 2, 3])
        check("rfft", np.arange(6, dtype=np.uint8))
        check("dct", np.array([True, False, True]))


def test_overwrite_and_workers_are_accepted() -> None:
    values = noise((8,), np.complex64)
    check("fft", values, overwrite_x=True, workers=2)
    check("dct", values.real.copy(), overwrite_x=True, workers=2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: scipy.fft.fft(x, 0),
        lambda x: scipy.fft.fft(x, -1),
        lambda x: scipy.fft.fft(x, workers=0),
        lambda x: scipy.fft.dct(x, workers="all"),
        lambda x: scipy.fft.fft(x, axis=3),
        lambda x: scipy.fft.fft(x, norm="sideways"),
        lambda x: scipy.fft.fftn(x, axes=(0, 0)),
        lambda x: scipy.fft.fftn(x, s=(3,), axes=(0, 1)),
        lambda x: scipy.fft.rfft(x * 1j),
        lambda x: scipy.fft.irfft(x[:, :1]),
        lambda x: scipy.fft.dct(x, 5),
        lambda x: scipy.fft.dct(x, 0),
        lambda x: scipy.fft.dctn(x, 2, axes=(0, 0)),
        lambda x: scipy.fft.dctn(x[:, :1], 1),
        lambda x: scipy.fft.dct(x[:, :1], 1),
    ],
)
def test_wrong_arguments_raise_the_errors_of_scipy(call: Callable[[np.ndarray], Any]) -> None:
    values = noise((4, 6), np.float32)
    with pytest.raises((ValueError, TypeError, IndexError, RuntimeError)) as theirs:
        call(values)
    with scipy.fft.set_backend(vd.fft.scipy_backend), pytest.raises(type(theirs.value)) as ours:
        call(values)
    assert str(ours.value) == str(theirs.value)


def test_faults_of_ours_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ArgumentValueError("buffer: it is wrong")

    monkeypatch.setattr("vkdispatch.fft.scipy_backend.fft", fail)
    values = noise((6,), np.float32)
    with scipy.fft.set_backend(vd.fft.scipy_backend), pytest.raises(ArgumentValueError, match="it is wrong"):
        scipy.fft.fft(values)


def test_declined_calls_are_computed_by_scipy() -> None:
    with scipy.fft.set_backend(vd.fft.scipy_backend):
        if np.dtype(np.longdouble).itemsize > 8:
            assert scipy.fft.fft(np.ones(4, np.longdouble)).dtype == np.clongdouble
        assert scipy.fft.fht(np.ones(4), 0.1, 0.5).shape == (4,)
        assert scipy.fft.fft(np.ones((0, 4), np.float32)).shape == (0, 4)


def test_double_precision_is_declined_without_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkdispatch.fft.scipy_backend.supports", lambda kind: False)
    values = noise((6,), np.float64)
    with scipy.fft.set_backend(vd.fft.scipy_backend):
        ours = scipy.fft.fft(values)
    np.testing.assert_array_equal(ours, scipy.fft.fft(values))
    with scipy.fft.set_backend(vd.fft.scipy_backend, only=True), pytest.raises(NotImplementedError):
        scipy.fft.fft(values)


def test_set_globally(run_python: Any) -> None:
    code = """
import numpy as np, scipy.fft, vkdispatch as vd
scipy.fft.set_global_backend(vd.fft.scipy_backend, only=True)
assert np.allclose(scipy.fft.fft(np.eye(1, 8, dtype=np.complex64)), 1)
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_import_without_scipy(run_python: Any) -> None:
    done = run_python("import sys, vkdispatch as vd; vd.fft.scipy_backend; assert 'scipy' not in sys.modules")
    assert done.returncode == 0, done.stderr
