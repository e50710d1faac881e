"""SciPy and scikit-learn given arrays: right results, as arrays or as NumPy's, or one error."""

import random
from collections.abc import Callable
from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp

pytest.importorskip("scipy", "1.15")

# What each call returns is compared with what it returns for NumPy arrays.
_COMPARE = """
import warnings
import numpy as np, vkdispatch.numpy as vnp
warnings.simplefilter("ignore")
random = np.random.default_rng(1)
a, b = random.normal(size=(20, 3)), random.normal(size=20)
c, d = random.uniform(0.1, 0.9, 20), random.normal(size=20)
image, spd = random.normal(size=(9, 8)), a.T @ a + np.eye(3)

def flat(value):
    if isinstance(value, (tuple, list)):
        return [part for each in value for part in flat(each)]
    if hasattr(value, "statistic"):
        return [value.statistic, value.pvalue]
    return [value]

def compare(name, call):
    found, wanted = flat(call(vnp.asarray)), flat(call(np.asarray))
    kinds = {"Array" if isinstance(each, vnp.ndarray) else "NumPy" for each in found}
    assert len(found) == len(wanted), name
    for mine, theirs in zip(found, wanted):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert mine.shape == theirs.shape, (name, mine.shape, theirs.shape)
        np.testing.assert_allclose(mine, theirs, 1e-6, 1e-8, err_msg=name)
    print(name, *sorted(kinds))
"""

_FUNCTIONS = (
    _COMPARE
    + """
import scipy.cluster.vq, scipy.fft, scipy.integrate, scipy.interpolate, scipy.linalg, scipy.ndimage
import scipy.signal, scipy.sparse, scipy.spatial.distance, scipy.special, scipy.stats
from scipy import stats

for name, call in {
    "softmax": lambda f: scipy.special.softmax(f(a), axis=1),
    "logsumexp": lambda f: scipy.special.logsumexp(f(a), axis=1),
    "xlogy": lambda f: scipy.special.xlogy(f(b), abs(f(b))),
    "gammainc": lambda f: scipy.special.gammainc(f(c), f(c)),
    "dctn": lambda f: scipy.fft.dctn(f(image)),
    "rfftn": lambda f: scipy.fft.rfftn(f(a)),
    "fftn": lambda f: scipy.fft.fftn(f(image), 4),
    "pearsonr": lambda f: stats.pearsonr(f(b), f(d)),
    "variation": lambda f: stats.variation(f(b)),
    "zscore": lambda f: stats.zscore(f(a)),
    "ttest_ind": lambda f: stats.ttest_ind(f(b), f(d)),
    "kurtosis": lambda f: stats.kurtosis(f(a)),
    "cumulative_trapezoid": lambda f: scipy.integrate.cumulative_trapezoid(f(b)),
    "simpson": lambda f: scipy.integrate.simpson(f(b), x=f(np.arange(20.0))),
    "whiten": lambda f: scipy.cluster.vq.whiten(f(a)),
    "hilbert": lambda f: scipy.signal.hilbert(f(b)),
    "fftconvolve": lambda f: scipy.signal.fftconvolve(f(b), f(d)),
    "sosfilt": lambda f: scipy.signal.sosfilt(f(scipy.signal.butter(3, 0.3, output="sos")), f(b)),
    "gaussian_filter": lambda f: scipy.ndimage.gaussian_filter(f(image), 1.5),
    "CubicSpline": lambda f: scipy.interpolate.CubicSpline(f(np.arange(20.0)), f(b))(f(c)),
    "lfilter": lambda f: scipy.signal.lfilter(*map(f, scipy.signal.butter(3, 0.3)), f(b)),
    "cdist": lambda f: scipy.spatial.distance.cdist(f(a), f(a[::-2]), "cityblock"),
    "expm": lambda f: scipy.linalg.expm(f(spd)),
    "toeplitz": lambda f: scipy.linalg.toeplitz(f(b[:5])[::-1], f(b)),
    "csr_array": lambda f: scipy.sparse.csr_array(spd) @ f(b[:3]),
    "norm.pdf": lambda f: stats.norm.pdf(f(b)),
}.items():
    compare(name, call)
"""
)


def _outcomes(done: Any) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_functions_of_scipy_compute_with_arrays(run_python: Any) -> None:
    outcomes = _outcomes(run_python(_FUNCTIONS, timeout=400, SCIPY_ARRAY_API="1"))
    assert len(outcomes) == 26
    of_numpy = {name for name, kinds in outcomes.items() if kinds == "NumPy"}
    assert of_numpy == {"cdist", "expm", "toeplitz", "csr_array", "norm.pdf"} | (of_numpy & {"simpson"})


_ESTIMATORS = (
    _COMPARE
    + """
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, mean_squared_error, pairwise
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    LabelEncoder, MaxAbsScaler, MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler
)
sklearn.set_config(array_api_dispatch=True)
labels = (a[:, 0] > 0).astype(np.int64)

for estimator in (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), Normalizer(), PolynomialFeatures()):
    compare(type(estimator).__name__, lambda f: estimator.fit(f(a)).transform(f(a)))
ridge = Ridge(solver="svd")
classifiers = (RidgeClassifier(solver="svd"), LinearDiscriminantAnalysis(), GaussianNB())
for estimator in classifiers:
    compare(type(estimator).__name__, lambda f: estimator.fit(f(a), f(labels)).predict(f(a)))
mixture = GaussianMixture(2, init_params="random_from_data", random_state=0)
steps = make_pipeline(StandardScaler(), PCA(2), LinearDiscriminantAnalysis())
for name, call in {
    "Ridge": lambda f: ridge.fit(f(a), f(b)).predict(f(a)),
    "PCA": lambda f: (lambda pca: pca.inverse_transform(pca.fit_transform(f(a))))(PCA(2)),
    "GaussianMixture": lambda f: mixture.fit(f(a)).predict_proba(f(a)),
    "LabelEncoder": lambda f: LabelEncoder().fit_transform(f(labels + 3)),
    "pipeline": lambda f: steps.fit(f(a), f(labels)).predict_proba(f(a)),
    "GridSearchCV": lambda f: GridSearchCV(ridge, {"alpha": [0.1, 1]}, cv=2).fit(f(a), f(b)).predict(f(a)),
    "train_test_split": lambda f: train_test_split(f(a), f(labels), random_state=0),
    "cross_val_predict": lambda f: cross_val_predict(ridge, f(a), f(b), cv=2),
    "rbf_kernel": lambda f: pairwise.rbf_kernel(f(a)),
    "accuracy_score": lambda f: accuracy_score(f(labels), f(labels[::-1].copy())),
    "mean_squared_error": lambda f: mean_squared_error(f(b), f(d)),
}.items():
    compare(name, call)
"""
)


def test_estimators_of_scikit_learn_compute_with_arrays(run_python: Any) -> None:
    pytest.importorskip("sklearn", "1.8")
    outcomes = _outcomes(run_python(_ESTIMATORS, timeout=400, SCIPY_ARRAY_API="1"))
    assert len(outcomes) == 19
    of_numpy = {name for name, kinds in outcomes.items() if kinds != "Array"}
    assert of_numpy == {"accuracy_score", "mean_squared_error"}


def test_scikit_learn_reads_arrays_where_it_has_no_other_way() -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    data = np.random.default_rng(0).normal(size=(30, 2)) + np.repeat([[0], [9]], 15, axis=0)
    means = cluster.KMeans(2, n_init=1, random_state=0)
    np.testing.assert_array_equal(means.fit(vnp.asarray(data)).labels_, means.fit(data).labels_)


# ---- what goes past the protocols ----------------------------------------------------------------

X = np.arange(1.0, 25).reshape(4, 6)


@pytest.mark.parametrize(
    "part",
    [lambda x: x, lambda x: x[1:, ::-2], lambda x: x[::-1].T[2:], lambda x: x + 1],
    ids=["whole", "steps", "transposed", "expression"],
)
def test_as_strided_reads_the_memory_of_the_array(part: Callable[[Any], Any]) -> None:
    as_strided = np.lib.stride_tricks.as_strided
    found, wanted = part(vnp.asarray(X)), part(X)
    if wanted.base is None or found.strides == wanted.strides:
        # from the middle on, backwards: outside of a copy of the elements alone
        windows = [as_strided(each[1:, 1:], (2, 2), each.strides) for each in (found, wanted)]
        back = [as_strided(each[1:, 1:], (2, 2), [-s for s in each.strides]) for each in (found, wanted)]
        np.testing.assert_array_equal(*windows)
        np.testing.assert_array_equal(*back)
    window = as_strided(found)
    with pytest.raises(ValueError, match="read-only"):
        window[...] = 0
    assert as_strided(vnp.zeros((0, 3))).shape == (0, 3)


def test_matrices_of_scipy_made_by_strides() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    first, second = np.arange(1.0, 5), np.arange(10.0, 17)
    for call in (
        lambda f: linalg.toeplitz(f(first)),
        lambda f: linalg.toeplitz(f(first), f(second)),
        lambda f: linalg.hankel(f(first), f(second)),
        lambda f: linalg.circulant(f(first)[::-1]),
        lambda f: linalg.convolution_matrix(f(first), 3),
    ):
        np.testing.assert_array_equal(np.asarray(call(vnp.asarray)), call(np.asarray))


def test_scipy_says_that_it_cannot_write_to_an_array() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    image = vnp.asarray(X)
    for call in (
        lambda out: ndimage.gaussian_filter(image, 1, output=out),
        lambda out: ndimage.label(image > 3, output=out),
        lambda out: ndimage.shift(X, 1, output=out),
    ):
        with pytest.raises(TypeError, match=r"output: scipy\.ndimage cannot write|Multiple namespaces"):
            call(vnp.zeros((4, 6)))


@pytest.mark.filterwarnings("ignore:you are shuffling")
def test_exchanged_elements_keep_their_values() -> None:
    x, y = vnp.arange(8.0), np.arange(8.0)
    for each in (x, y):
        each[1], each[5] = each[5], each[1]
        kept = each[0]
        each[0] = each[7]
        each[7] = kept + 1
        total = each[2]
        total += each[3]
        each[3] = total
        each *= each[4]
    np.testing.assert_array_equal(x.numpy(), y)
    for shuffle in (
        random.Random(1).shuffle,
        np.random.RandomState(1).shuffle,
        np.random.default_rng(1).shuffle,
    ):
        x = vnp.arange(9)
        shuffle(x)
        assert sorted(x.tolist()) == list(range(9))


def test_one_element_is_a_copy_and_a_view_where_numpy_has_one() -> None:
    x = vnp.asarray(X)
    element, whole, line = x[1, 2], x[1, 2, ...], x[1]
    x[1, 2] = -5
    assert (element.item(), float(element), whole.item(), line[2].item()) == (9, 9, -5, -5)
    whole[...] = 4
    assert x[1, 2].tolist() == 4
    assert (x * x[1, 2]).numpy()[0, 0] == 4
    assert vnp.explain(x * x[1, 2]).startswith("1 kernel")  # the element is read in place
    point = vnp.asarray(3)
    value = point[()]
    point[...] = 4
    assert (int(value), int(point)) == (3, 4)


def test_arrays_of_numpy_without_axes_are_numbers() -> None:
    x = vnp.asarray(X, vnp.float32)
    for number in (np.array(2, np.float32), np.array(2.0), np.array(2)):
        wanted = X.astype(np.float32) * number
        for found in (x * number, number * x, np.multiply(number, x), vnp.multiply(x, number)):
            assert (type(found), found.dtype) == (vnp.ndarray, wanted.dtype)
            np.testing.assert_array_equal(found.numpy(), wanted)
    x += np.array(1)
    np.testing.assert_array_equal(
        np.where(x > 9, x, np.array(0, np.float32)).numpy(), np.where(X > 8, X + 1, 0)
    )
    with pytest.raises(TypeError, match="an Array or a number"):
        x + np.array("a")
    with pytest.raises(TypeError, match=r"NumPy array of shape \(1,\)"):
        x + np.ones(1)


def test_flags_say_how_elements_lie() -> None:
    for index in (..., 1, (slice(None), 2), (slice(None, None, -1), slice(1, 2))):
        found, wanted = vnp.asarray(X)[index].flags, X[index].flags
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "FORC"):
            assert found[name] == wanted[name], (index, name)
        assert found.c_contiguous == found["C"] == wanted.c_contiguous
    assert vnp.asarray(X).T.flags.f_contiguous and vnp.asarray(X).T.flags["FNC"]
    assert vnp.asarray(X).flags.owndata and not vnp.asarray(X)[1:].flags.owndata
    with pytest.raises(KeyError, match="OWNDATA"):
        vnp.asarray(X).flags["nothing"]
    flags = vnp.broadcast_to(vnp.asarray(X), (2, 4, 6)).flags
    assert not flags.writeable
    with pytest.raises(AttributeError):
        flags.writeable = True


def test_arguments_of_numpy_that_change_nothing() -> None:
    x = vnp.asarray(X)
    assert x.astype(np.int32, "C", "unsafe", False, True).dtype == np.int32
    assert x.astype("f8", copy=False) is x
    with pytest.raises(TypeError, match="cannot cast"):
        x.astype(np.int32, casting="same_kind")
    assert np.zeros_like(x, order="C", subok=False).shape == x.shape
    flags = vnp.asarray([True, False])
    assert flags.conj().dtype == bool
    np.testing.assert_array_equal(np.rad2deg(x), np.rad2deg(X))
    np.testing.assert_allclose(vnp.fft.fftn(x, 3).numpy(), np.fft.fftn(X, (3,), axes=(-1,)), 1e-12, 1e-12)
