"""Quantiles, means, covariances, reductions without NaN, histograms: against NumPy."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from tests.numpy.against_numpy import assert_same, check
from tests.numpy.both import run_texts

METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)

random = np.random.default_rng(1)
X = random.normal(size=(3, 4, 5))
NARROW = X.astype(np.float32)
WITH_NAN = X.copy()
WITH_NAN[0, 1, 2] = np.nan
WITH_NAN[1] = np.nan
WHOLE = random.integers(-5, 9, (7, 3))
MASK = WHOLE > 0


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """NumPy warns of slices without numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def test_quantiles_of_all_methods() -> None:
    line = np.arange(6.0)
    for method in METHODS:
        check("quantile", line, np.linspace(0, 1, 21), method=method)
        check("quantile", WHOLE, [0, 0.25, 0.5, 0.61, 1], axis=0, method=method)
        check("nanquantile", WITH_NAN, [0, 0.2, 0.5], axis=2, method=method)


def test_quantiles_of_axes_and_dtypes() -> None:
    check("quantile", NARROW, 0.3)
    check("quantile", NARROW, [[0.3], [0.2]], axis=(0, 2), keepdims=True)
    check("percentile", X[::-1, :, ::2], [3, 99.0], axis=(1, 0))
    check("quantile", np.array([1, 0], bool), 0.5, method="lower")
    check("quantile", WITH_NAN, 0.4, axis=0)
    check("nanpercentile", WITH_NAN, [40.0], axis=(0, 2))
    check("quantile", np.full((), 3.0), 0.5)
    out = vnp.zeros(3)
    assert vnp.quantile(vnp.asarray(WHOLE), 0.5, axis=0, out=out) is out
    assert_same(out, np.quantile(WHOLE, 0.5, axis=0))


@pytest.mark.parametrize("q", [np.float32(25), np.array([25, 75], np.float32), np.float64(25), [25], 25])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.uint8])
def test_quantiles_have_the_dtype_of_elements_and_fractions(kind: type, q: object) -> None:
    for method in ("linear", "weibull", "nearest"):
        check("percentile", np.arange(4, 25, 2).astype(kind), q, method=method)
        check("nanpercentile", np.arange(4, 25, 2).astype(kind), q, method=method)


def test_wrong_quantiles() -> None:
    check("quantile", X, 1.5)
    check("quantile", X, 0.5, method="none")
    check("quantile", X * 1j, 0.5)
    check("quantile", np.zeros(0), 0.5)
    check("quantile", np.array([1, 0], bool), 0.5)
    check("quantile", np.array([1, 0], bool), [0.5])
    with pytest.raises(TypeError, match=r"vnp\.asarray"):
        vnp.quantile(X, 0.5)


def test_weighted_quantiles() -> None:
    rng = np.random.default_rng(7)
    run_texts(
        """
        r = m.quantile(x, 0.3, weights=y, method="inverted_cdf")
        r = m.quantile(z, 0.5, weights=z, method="inverted_cdf")
        r = m.quantile(x, [0, 0.5, 1], axis=1, weights=y + 1, method="inverted_cdf")
        r = m.quantile(x, [0, 0.25, 1], axis=0, weights=m.asarray([1.0, 0, 2, 3]), method="inverted_cdf")
        r = m.percentile(x, [0, 25, 100], axis=0, weights=z[:4], method="inverted_cdf", keepdims=True)
        r = m.quantile(m.where(x > 1, np.nan, x), [0.1, 0.5], axis=1, weights=y + 1, method="inverted_cdf")
        r = m.nanquantile(m.where(x > 1, np.nan, x), [0.1, 0.5], axis=1, weights=y + 1, method="inverted_cdf")
        r = m.nanpercentile(m.where(x > 1, np.nan, x), 50, weights=y, method="inverted_cdf")
        r = m.quantile(y.astype(int), [0.1, 0.5], axis=(0, 1), weights=y, method="inverted_cdf")
        m.quantile(x, 0.3, weights=y)
        m.quantile(x, 0.3, axis=1, weights=z[:4], method="inverted_cdf")
        m.quantile(x, 0.3, weights=z[:4], method="inverted_cdf")
        m.quantile(x, 0.3, weights=y * 0, method="inverted_cdf")
        m.quantile(x, 0.3, weights=y - 5, method="inverted_cdf")
        """,
        rng.standard_normal((4, 257)),
        rng.integers(0, 4, (4, 257)).astype(np.float64),
        np.array([1.0, 0, 2, 3, 1]),
    )


def test_medians() -> None:
    for x in (X, NARROW, WHOLE, WITH_NAN, X[:, ::-1], X + 1j * X, MASK[:, 0], np.zeros(0), np.zeros((0, 3))):
        check("median", x)
        check("nanmedian", x)
    check("median", X, axis=(0, 1), keepdims=True)
    check("nanmedian", WITH_NAN, axis=-1, keepdims=True)
    check("median", WHOLE.astype(np.uint8), axis=0)


def test_averages() -> None:
    check("average", X, axis=1, weights=np.arange(4.0))
    check("average", WHOLE, weights=abs(WHOLE))
    check("average", NARROW, axis=(2, 0), weights=np.arange(15.0).reshape(5, 3), keepdims=True)
    check("average", WHOLE, returned=True)
    check("average", X, weights=np.arange(4.0))
    check("average", X, axis=0, weights=np.arange(4.0))


def test_covariances() -> None:
    y = X[0]
    counts, weights = np.array([1, 2, 3, 1, 1]), np.arange(5.0)
    check("cov", y)
    check("cov", y[0])
    check("cov", y, rowvar=False)
    check("cov", y[0], y[1])
    check("cov", y, y[:1], ddof=0)
    check("cov", y, fweights=counts)
    check("cov", y, fweights=counts, aweights=weights)
    check("cov", y, aweights=weights, bias=True)
    check("cov", y + 1j * y[::-1])
    check("cov", WHOLE)
    check("cov", NARROW[0], dtype=np.float32)
    check("cov", X)
    check("cov", y, fweights=weights + 0.5)
    check("corrcoef", y)
    check("corrcoef", y[0])
    check("corrcoef", y + 1j * y[::-1])


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax"])
def test_reductions_without_nan(name: str) -> None:
    check(name, WITH_NAN)
    check(name, WITH_NAN[:, ::-1], axis=1)
    check(name, WITH_NAN, axis=(2, 0), keepdims=True)
    check(name, WITH_NAN.astype(np.float32), axis=-1)
    check(name, WHOLE, axis=0)
    check(name, np.array(np.nan))


def test_options_of_reductions_without_nan() -> None:
    where = np.array([True, False, True, False, True])
    check("nansum", WITH_NAN, where=where)
    check("nanmean", WITH_NAN, where=where, axis=2)
    check("nanvar", WITH_NAN, where=where, axis=2)
    check("nanvar", WITH_NAN, ddof=4, axis=2)
    check("nanmin", WITH_NAN, initial=0.0, axis=2)
    check("nanmax", np.array([1 + 2j, np.nan, 3]))
    check("nansum", np.zeros(0))
    check("nancumsum", WITH_NAN, axis=1)
    check("nancumprod", WITH_NAN)
    check("nanargmin", WITH_NAN)
    check("nanargmax", WITH_NAN[::2], axis=0)
    check("nanargmin", WITH_NAN, axis=0)


def test_histograms() -> None:
    h = random.normal(size=300)
    for bins in (10, [0, 0.5, 1], "auto", "fd", "doane", "scott", "rice", "sturges", "sqrt"):
        check("histogram", h, bins)
    check("histogram", WHOLE, 4)
    check("histogram", h, 5, range=(0.0, 1.0), density=True)
    check("histogram", h, 5, weights=abs(h))
    check("histogram", h.astype(np.float32), 7)
    check("histogram", np.zeros(0))
    check("histogram", np.array([1, np.nan]))
    check("histogram", h, [1, 0])
    check("histogram", h, "none")
    check("histogram_bin_edges", WHOLE, "auto")
    check("histogram_bin_edges", np.ones(3), 3, range=(2, 2))
    check("histogram2d", h, h[::-1], bins=[3, [-1, 0, 1]])
    check("histogram2d", h, h[::-1], bins=4, density=True)
    check("histogramdd", X.reshape(-1, 3), [4, 3, 2], range=[(-1, 1), (0, 1), None], weights=h[:20])


def test_counts() -> None:
    numbers = abs(WHOLE).reshape(-1)
    check("bincount", numbers)
    check("bincount", numbers, minlength=20)
    check("bincount", numbers, weights=np.arange(21.0))
    check("bincount", WHOLE.reshape(-1))
    check("bincount", np.zeros(0, int), minlength=3)
    check("bincount", abs(WHOLE))
    for right in (False, True):
        check("digitize", X, np.array([-1, 0, 0.5, 2]), right=right)
        check("digitize", X, np.array([2.0, 1, 0, -1]), right=right)
        check("digitize", WHOLE, [0, 2, 4], right=right)
    check("digitize", X, [0, 2, 1])


VIEWS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x[:3],
    lambda x: x[::2],
    lambda x: x[5:9].reshape(2, 2),
    lambda x: x[:7].copy(),
    lambda x: x[1:5] - x[:4],
    lambda x: x[:4] * 2 + 1,
    lambda x: x.reshape(3, 4)[:, :2],
    lambda x: x.reshape(3, 4)[1:].T,
)


# Drivers compile the kernels of an expression for seconds: each has two kinds.
_KINDS = {4: (np.int64, np.float32), 5: (np.uint8, np.float32)}


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (number, kind)
        for number in range(len(VIEWS))
        for kind in _KINDS.get(number, (np.float32, np.int32, np.int64, np.uint8))
    ],
)
def test_ranges_of_parts_are_their_own(number: int, kind: Any) -> None:
    host = np.array([3, 5, 6, 8, 9, 7, 4, 5, 8, 100, 0, 90]).astype(kind)  # the extremes are in few parts
    part = VIEWS[number]
    ours, theirs = part(vnp.asarray(host)), part(host)
    for found, expected in zip(vnp.histogram(ours, bins=5), np.histogram(theirs, bins=5), strict=True):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    flat = theirs.ravel()
    if kind is not np.float32 and flat.min() >= 0:
        np.testing.assert_array_equal(vnp.bincount(ours.ravel()).numpy(), np.bincount(flat))


def test_halves_do_not_overflow() -> None:
    x = np.array([[60000, 60000, 3], [-60000, 50000, 1], [60000, 60000, 60000]], np.float16)
    for name in ("mean", "median", "ptp", "min", "max"):
        for axis in (None, 0, 1):
            check(name, x, axis=axis)
    check("median", x[2:, :2])
    assert float(vnp.nanmedian(vnp.asarray(x[0, :2]))) == 60000
    middle = np.median(np.array([60000, 50000], np.float16))
    assert vnp.nanmedian(vnp.asarray(np.array([np.nan, 60000, 50000], np.float16))).item() == middle


@pytest.mark.parametrize("right", [False, True])
def test_digitize_between_rising_and_falling_edges(right: bool) -> None:
    values = np.array([10.0, 4, 2.5, 1, 0, 3, np.nan, np.inf, -np.inf])
    for edges in (
        [10.0, 4, 2.5, 1, 0],
        [0, 1, 2.5, 4, 10.0],
        [3, 3, 3],
        [5, 3, 3, 1],
        [np.inf, np.inf, 0, -np.inf],
        [-np.inf, 0, np.inf, np.inf],
        [0, 1, np.nan],
        [2],
        [],
    ):
        check("digitize", values, edges, right=right)
        check("digitize", np.arange(-2, 12), edges, right=right)
    for wrong in ([0, 2, 1], [np.nan, 0, 1], [1j, 2]):
        check("digitize", values, wrong, right=right)
    check("digitize", values + 0j, [0, 1])


def test_edges_have_the_bits_of_numpys() -> None:
    x, y = random.standard_normal((2, 100_003), np.float32)
    for options in ({"bins": 32}, {"bins": [7, 32], "range": [[-1, 1.1], [0, 0.7]]}):
        expected, found = (
            np.histogram2d(x, y, **options),
            vnp.histogram2d(*map(vnp.asarray, (x, y)), **options),
        )
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)
            assert one.dtype == other.dtype
    for kind in ("f4", "f2", "i1", "u8"):
        for values in ([0, 1, 7], [5, 5], [-3 if kind[0] != "u" else 3, 100]):
            own = np.array(values, kind)
            np.testing.assert_array_equal(
                vnp.histogram_bin_edges(vnp.asarray(own), 7).numpy(), np.histogram_bin_edges(own, 7)
            )


def test_ranges_of_histograms_keep_their_dtype() -> None:
    one, eps = np.ones(1, np.float32), np.finfo(np.float64).eps
    for limits in ((1 + eps, 2.0), (0.0, 1 - eps), (0.5, 1.5), (np.float32(0.1), 1)):
        for given in (limits, np.array(limits)):
            expected = np.histogram(one, 1, given)
            assert_same(vnp.histogram(vnp.asarray(one), 1, given), expected)
        assert_same(vnp.histogram(vnp.asarray(one), 1, vnp.asarray(np.array(limits))), expected)
    check("histogram", one, 2.5)


def test_interpolation_of_complex_values() -> None:
    places = np.array([0.5, 1.5, 1, 0, 3, -1, 5, np.nan])
    known = np.arange(4.0)
    for values in ([1, np.inf, 3, 4j], [1 + 2j, -2j, complex(3, np.inf), 4.0]):
        for options in ({}, {"left": 1j, "right": 2}):
            found = vnp.interp(*map(vnp.asarray, (places, known, np.array(values, complex))), **options)
            expected = np.interp(places, known, np.array(values, complex), **options)
            np.testing.assert_array_equal(found.numpy().real, expected.real)
            np.testing.assert_array_equal(found.numpy().imag, expected.imag)
    check("interp", places, known, known, left=1j)


def test_no_variables() -> None:
    check("cov", np.zeros((0, 1), complex))
    check("cov", np.zeros((0, 1)))
    check("cov", np.arange(3.0), fweights=[1, -1, 2])
    with pytest.raises(ValueError, match="aweights"):
        vnp.cov(vnp.arange(3.0), aweights=[1, -1, 2])


def test_weights_along_axes_in_any_order() -> None:
    host = np.arange(24.0).reshape(2, 3, 4)
    weights = np.arange(1.0, 7.0).reshape(3, 2)
    ours, own = vnp.asarray(host), vnp.asarray(weights)
    for call in (
        lambda m, x, w: m.average(x, (1, 0), w),
        lambda m, x, w: m.quantile(x, 0.3, (1, 0), method="inverted_cdf", weights=w),
        lambda m, x, w: m.quantile(x[:, :, 0], 0.3, (1, 0), method="inverted_cdf", weights=w),
    ):
        np.testing.assert_allclose(call(vnp, ours, own).numpy(), call(np, host, weights))
    with pytest.raises(TypeError, match="axis: needed"):
        vnp.quantile(ours, 0.3, method="inverted_cdf", weights=own)
