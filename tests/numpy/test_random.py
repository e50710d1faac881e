"""Random numbers as arrays: distributions, against NumPy's stream of the same seed and SciPy, and orders."""

import copy
from typing import Any

import pytest
from scipy import stats
from scipy.special import zeta

import numpy as np
import vkdispatch.numpy as vnp


def test_stream_is_numpys() -> None:
    own = vnp.random.default_rng(7, bit_generator="philox4x64")
    wanted = np.random.Generator(np.random.Philox(7))
    np.testing.assert_array_equal(own.random((2, 3, 1, 4)).numpy(), wanted.random((2, 3, 1, 4)))
    np.testing.assert_array_equal(own.uniform(2, 3, 5).numpy(), wanted.uniform(2, 3, 5))


class Zeta:
    """SciPy adds up its cumulative function of zipf term by term."""

    def __init__(self, a: float) -> None:
        self.a = a

    def cdf(self, k: Any) -> Any:
        return 1 - zeta(self.a, np.asarray(k) + 1.0) / zeta(self.a, 1)


def distance(drawn: Any, distribution: Any) -> float:
    """Return Kolmogorov's and Smirnov's statistic: of 2.2 or more once in 8000 times."""
    values, counts = np.unique(drawn.numpy().astype(np.float64), return_counts=True)
    above = np.cumsum(counts) / drawn.size
    found = distribution.cdf(values)
    if drawn.dtype.kind == "i":
        return float(np.abs(above - found).max() * np.sqrt(drawn.size))
    below = above - counts / drawn.size
    return float(max((above - found).max(), (found - below).max()) * np.sqrt(drawn.size))


def good_and_bad(good: int, bad: int, sample: int) -> Any:
    return stats.hypergeom(good + bad, good, sample)


@pytest.mark.parametrize(
    ("name", "parameters", "make"),
    [
        ("random", (), stats.uniform),
        ("uniform", (2, 5), lambda low, high: stats.uniform(low, high - low)),
        ("normal", (3, 2), stats.norm),
        ("integers", (3, 9), stats.randint),
        ("exponential", (2.0,), lambda scale: stats.expon(scale=scale)),
        ("laplace", (1, 2), stats.laplace),
        ("logistic", (1, 2), stats.logistic),
        ("gumbel", (1, 2), stats.gumbel_r),
        ("rayleigh", (2,), lambda scale: stats.rayleigh(scale=scale)),
        ("weibull", (1.7,), stats.weibull_min),
        ("pareto", (5.0,), stats.lomax),
        ("power", (3.0,), stats.powerlaw),
        ("standard_cauchy", (), stats.cauchy),
        ("triangular", (1, 2, 5), lambda a, b, c: stats.triang((b - a) / (c - a), a, c - a)),
        ("geometric", (0.3,), stats.geom),
        ("lognormal", (0, 0.5), lambda mean, sigma: stats.lognorm(sigma)),
        ("gamma", (0.3, 2.0), lambda a, scale: stats.gamma(a, scale=scale)),
        ("standard_gamma", (7.0,), stats.gamma),
        ("chisquare", (3,), stats.chi2),
        ("standard_t", (2.5,), stats.t),
        ("f", (3, 7), stats.f),
        ("beta", (2, 3), stats.beta),
        ("beta", (0.3, 0.2), stats.beta),
        ("wald", (2, 3), lambda mean, scale: stats.invgauss(mean / scale, scale=scale)),
        ("vonmises", (0, 4.0), lambda mu, kappa: stats.vonmises(kappa)),
        ("vonmises", (0.5, 1e4), lambda mu, kappa: stats.vonmises(kappa, loc=mu)),
        ("vonmises", (0, 0), lambda mu, kappa: stats.uniform(-np.pi, 2 * np.pi)),
        ("noncentral_chisquare", (0.7, 3), stats.ncx2),
        ("noncentral_f", (3, 20, 2), stats.ncf),
        ("poisson", (3,), stats.poisson),
        ("poisson", (1e6,), stats.poisson),
        ("binomial", (10, 0.3), stats.binom),
        ("binomial", (100, 0.85), stats.binom),
        ("negative_binomial", (5, 0.3), stats.nbinom),
        ("hypergeometric", (15, 7, 5), good_and_bad),
        ("hypergeometric", (15, 7, 19), good_and_bad),
        ("hypergeometric", (60, 70, 50), good_and_bad),
        ("hypergeometric", (90, 30, 100), good_and_bad),
        ("hypergeometric", (100000, 30000, 5000), good_and_bad),
        ("zipf", (1.5,), Zeta),
        ("zipf", (4,), Zeta),
        ("logseries", (0.3,), stats.logser),
        ("logseries", (0.98,), stats.logser),
    ],
)
def test_distributions(name: str, parameters: tuple[Any, ...], make: Any) -> None:
    found = getattr(vnp.random.default_rng(5), name)(*parameters, size=(50, 40, 5, 2))
    assert found.dtype == getattr(np.random.default_rng(6), name)(*parameters, size=1).dtype
    assert distance(found.ravel(), make(*parameters)) < 2.2


def test_single_precision_does_not_favour_numbers() -> None:
    vnp.set_default_dtype(np.float32)
    try:
        rng = vnp.random.default_rng(1)
        for name, parameters, make in (
            ("poisson", (1e6,), stats.poisson),
            ("binomial", (10**6, 0.3), stats.binom),
            ("hypergeometric", (100000, 30000, 5000), good_and_bad),
            ("vonmises", (0.5, 1e4), lambda mu, kappa: stats.vonmises(kappa, loc=mu)),
        ):
            assert distance(getattr(rng, name)(*parameters, 200000), make(*parameters)) < 2.2
    finally:
        vnp.set_default_dtype(None)


def test_ends_of_parameters() -> None:
    rng = vnp.random.default_rng(3)
    assert (rng.zipf(1e3, 50).numpy() == 1).all()
    assert (rng.logseries(0, 50).numpy() == 1).all()
    assert (rng.hypergeometric([0, 5, 5], [5, 0, 5], [3, 3, 10]).numpy() == [0, 3, 5]).all()
    assert abs(rng.vonmises([0.5, 4], np.inf).numpy() - [0.5, 4 - 2 * np.pi]).max() < 1e-6
    # both gamma-distributed numbers are too small for floats
    tiny = rng.beta(1e-4, 1e-4, 200).numpy()
    assert set(np.round(tiny)) == {0, 1}
    shares = rng.dirichlet([1e-4, 1e-4, 0], 50).numpy()
    np.testing.assert_allclose(shares.sum(1), 1)
    assert (shares[:, 2] == 0).all()


def test_integers_of_several_ranges() -> None:
    rng = vnp.random.default_rng(4)
    found = rng.integers(vnp.asarray([[0], [3], [-5]]), [3, 20], (4000, 3, 2), np.int16, endpoint=True)
    assert found.dtype == np.int16
    values = found.numpy()
    assert (values.min(0) == [[0, 0], [3, 3], [-5, -5]])[:, 1].all()
    assert (values.max(0)[:, 1] == 20).all()
    assert abs(values[:, 2].mean(0) - [-1, 7.5]).max() < 0.5
    assert distance(rng.integers([5], [12], 5000)[:], stats.randint(5, 12)) < 2.2
    wide = rng.integers([0], [1 << 64], 2000, np.uint64).numpy()
    assert abs(wide.astype(np.float64).mean() / 2.0**63 - 1) < 0.05
    for wrong in ((([3], [3])), ([0], [300])):
        with pytest.raises(ValueError, match="low, high"):
            rng.integers(*wrong, dtype=np.uint8)
    with pytest.raises(TypeError, match="low, high"):
        rng.integers([0.5], 3)


def test_counts_of_many_outcomes() -> None:
    rng = vnp.random.default_rng(6)
    p = np.array([[0.1, 0.2, 0.3, 0.4, 0], [0, 0, 1, 0, 0]])
    counts = rng.multinomial(vnp.asarray([[10], [1000]]), p, (300, 2, 2)).numpy()
    assert (counts.sum(-1) == [[10, 10], [1000, 1000]]).all()
    assert (counts[:, :, 1, 2] == [10, 1000]).all()
    assert abs(counts[:, 1, 0].mean(0) / 1000 - p[0]).max() < 0.01
    variance = 1000 * p[0] * (1 - p[0])
    assert abs(counts[:, 1, 0].var(0) - variance).max() < 0.3 * variance.max()
    colors = np.array([5, 0, 60, 35, 20])
    drawn = rng.multivariate_hypergeometric(colors, 30, 3000).numpy()
    assert (drawn.sum(1) == 30).all()
    assert (drawn <= colors).all()
    exact = stats.multivariate_hypergeom(colors, 30)
    assert abs(drawn.mean(0) - exact.mean()).max() < 0.15
    assert abs(np.cov(drawn.T) - exact.cov()).max() < 0.6
    assert rng.multivariate_hypergeometric([4], 3).tolist() == [3]
    with pytest.raises(ValueError, match="nsample"):
        rng.multivariate_hypergeometric([4, 3], 8)


def test_normal_vectors() -> None:
    rng = vnp.random.default_rng(7)
    cov = np.array([[2, 0.5], [0.5, 1]])
    for method in ("svd", "cholesky"):
        vectors = rng.multivariate_normal([1, 2], cov, 20000, method=method).numpy()
        assert abs(np.cov(vectors.T) - cov).max() < 0.1
        assert abs(vectors.mean(0) - [1, 2]).max() < 0.05
    with pytest.warns(RuntimeWarning, match="cov"):
        rng.multivariate_normal([0, 0], [[1, 2], [2, 1]])
    with pytest.raises(ValueError, match="cov"):
        rng.multivariate_normal([0, 0], [[1, 2], [2, 1]], check_valid="raise")
    with pytest.raises(np.linalg.LinAlgError):
        rng.multivariate_normal([0, 0], [[1, 2], [2, 1]], check_valid="ignore", method="cholesky")


def test_draws_of_several_numbers() -> None:
    rng = vnp.random.default_rng(5)
    shares = rng.dirichlet([1, 2, 3.0], 2000).numpy()
    np.testing.assert_allclose(shares.sum(1), 1)
    assert abs(shares.mean(0) - np.array([1, 2, 3]) / 6).max() < 0.02
    counts = rng.multinomial(10, [0.2, 0.3, 0.5], 2000).numpy()
    assert (counts.sum(1) == 10).all()
    assert abs(counts.mean(0) - [2, 3, 5]).max() < 0.2
    assert rng.poisson(vnp.asarray([[0.0], [1e6]]), (2, 3)).numpy().sum(1)[0] == 0
    # parameters that are no numbers end as well
    assert rng.gamma(vnp.asarray([np.nan, np.inf, 1.0])).shape == (3,)
    with pytest.raises(ValueError, match="n: expected"):
        rng.binomial(vnp.asarray([np.nan, np.inf, 5]), 0.5).numpy()


def test_sizes_and_dtypes() -> None:
    rng = vnp.random.default_rng(1)
    assert rng.random().shape == ()
    assert rng.random(0).shape == (0,)
    assert rng.normal(size=(0, 3)).shape == (0, 3)
    assert rng.random(5, dtype=np.float32).dtype == np.float32
    assert rng.integers(10, size=(2, 1, 1, 2), dtype=np.uint8, endpoint=True).dtype == np.uint8
    assert set(rng.integers(0, 2, 50, dtype=bool).tolist()) == {False, True}
    assert len(rng.bytes(7)) == 7
    out = vnp.zeros((2, 3))
    assert rng.random(out=out) is out
    assert (out.numpy() > 0).all()


def test_parameters_may_be_arrays() -> None:
    rng = vnp.random.default_rng(2)
    found = rng.normal(vnp.asarray([[0.0], [1000.0]]), [1e-3, 1.0, 2.0]).numpy()
    assert found.shape == (2, 3)
    assert abs(found - [[0], [1000]]).max() < 20
    assert abs(found[:, 0] - [0, 1000]).max() < 0.02
    with pytest.raises(ValueError, match="size"):
        rng.normal([1, 2.0], 1, size=3)


def test_orders() -> None:
    rng = vnp.random.default_rng(3)
    data = np.arange(60).reshape(3, 20)
    x = vnp.asarray(data)
    assert sorted(rng.permutation(20).tolist()) == list(range(20))
    moved = rng.permutation(x, axis=1).numpy()
    assert (moved != data).any()
    np.testing.assert_array_equal(np.sort(moved, axis=1), data)
    np.testing.assert_array_equal(moved - moved[:1], data - data[:1])  # columns are kept
    apart = rng.permuted(x, axis=1).numpy()
    np.testing.assert_array_equal(np.sort(apart, axis=1), data)
    assert (apart - apart[:1] != data - data[:1]).any()
    rng.shuffle(x.T)
    assert (x.numpy() != data).any()
    np.testing.assert_array_equal(np.sort(x.numpy(), axis=1), data)


def test_choices() -> None:
    rng = vnp.random.default_rng(4)
    assert sorted(rng.choice(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    p = [0.1, 0.2, 0.0, 0.7]
    counts = np.bincount(rng.choice(4, 5000, p=p).numpy(), minlength=4)
    assert abs(counts / 5000 - p).max() < 0.04
    assert counts[2] == 0
    assert sorted(rng.choice(4, 3, replace=False, p=p).tolist()) == [0, 1, 3]
    columns = rng.choice(vnp.asarray([[1, 2, 3], [4, 5, 6]]), 4, axis=1).numpy()
    np.testing.assert_array_equal(columns[1] - columns[0], 3)
    assert rng.choice([1.5, 2.5], (2, 2)).shape == (2, 2)


def test_streams_go_on() -> None:
    rng = vnp.random.default_rng(8)
    twin = copy.deepcopy(rng)
    assert float(rng.random()) == float(twin.random())
    assert float(rng.random()) != float(rng.random())
    first, second = rng.spawn(2)
    assert float(first.random()) != float(second.random())
    assert vnp.random.default_rng(first) is first
    vnp.random.seed(9)
    once = vnp.random.normal(size=3).tolist()
    vnp.random.seed(9)
    assert vnp.random.randn(3).tolist() == once


def test_wrong_arguments() -> None:
    rng = vnp.random.default_rng(0)
    for call, text in (
        (lambda: rng.normal(0, -1), "scale"),
        (lambda: rng.choice(3, 5, replace=False), "size"),
        (lambda: rng.choice(3, 5, p=[0.5, 0.1, 0.1]), "sum"),
        (lambda: rng.integers(5, 3), "low, high"),
        (lambda: rng.random(-1), "size"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError, match="dtype"):
        rng.random(3, dtype=int)
    for call, text in (
        (lambda: rng.zipf(1), "a:"),
        (lambda: rng.logseries(1), "p:"),
        (lambda: rng.hypergeometric(2, 3, 6), "nsample"),
        (lambda: rng.dirichlet([-1, 2]), "alpha"),
        (lambda: rng.vonmises(0, -1), "kappa"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(AttributeError, match="default_rng"):
        vnp.random.RandomState(3)


def test_functions_are_the_generators() -> None:
    for name in np.random.__all__:
        if hasattr(vnp.random, name) and callable(getattr(np.random.Generator, name, None)):
            vnp.random.seed(3)
            assert getattr(vnp.random, name).__name__ == name
            assert getattr(vnp.random, name).__self__ is not None
    vnp.random.seed(3)
    assert 0 < float(vnp.random.power(2.0)) < 1
    assert float(vnp.random.uniform(1, 0)) <= 1  # as NumPy's function, not as its generator


BAD: list[tuple[str, list[Any], int, list[float]]] = [
    ("beta", [2, 2], 1, [0, -1]),
    ("binomial", [5, 0.5], 0, [-1, float("nan"), 2.0**60]),
    ("binomial", [5, 0.5], 1, [-0.1, 1.5, float("nan")]),
    ("chisquare", [2], 0, [0, -1]),
    ("exponential", [2], 0, [-1]),
    ("geometric", [0.5], 0, [0, 1.5, float("nan")]),
    ("hypergeometric", [5, 5, 4], 0, [-1, 1e9]),
    ("hypergeometric", [5, 5, 4], 2, [11]),
    ("logseries", [0.5], 0, [-0.1, 1]),
    ("negative_binomial", [5, 0.5], 0, [0, 1e19]),
    ("negative_binomial", [5, 0.5], 1, [0, 1.5]),
    ("normal", [0, 1], 1, [-1]),
    ("poisson", [2], 0, [-1, 1e19, float("nan")]),
    ("standard_gamma", [2], 0, [-1]),
    ("triangular", [0, 0.5, 1], 1, [-1, 2]),
    ("uniform", [0, 1], 1, [-1]),
    ("vonmises", [0, 1], 1, [-1]),
    ("zipf", [3], 0, [1, float("nan")]),
]


@pytest.mark.parametrize(
    ("name", "parameters", "place", "wrong"), BAD, ids=[f"{n}-{i}" for n, _, i, _ in BAD]
)
def test_bad_parameters(name: str, parameters: list[Any], place: int, wrong: list[float]) -> None:
    draw = getattr(vnp.random.default_rng(1), name)
    for number in wrong:
        pair = [parameters[place], number]
        for given in (number, np.array(pair), vnp.asarray(np.array(pair, float))):
            own = [*parameters]
            own[place] = given
            with pytest.raises(ValueError, match=r"expected|asked|hold"):
                draw(*own).numpy()
    own = [*parameters]
    own[place] = vnp.asarray(np.array([parameters[place]] * 3, float))
    assert draw(*own).numpy().shape == (3,)


def test_bad_ranges() -> None:
    rng = vnp.random.default_rng(1)
    for low, high in ((-1e308, 1e308), (0, float("inf")), (float("nan"), 1)):
        with pytest.raises(OverflowError, match="low, high"):
            rng.uniform(low, high)
    with pytest.raises(OverflowError, match="n: int64"):
        rng.binomial(2.0**70, 0.5)
    for low, high in ((vnp.asarray([0, 5]), 5), (0, vnp.asarray([3, 0])), (vnp.asarray([0, 300]), 400)):
        with pytest.raises(ValueError, match="low, high"):
            rng.integers(low, high, dtype=np.uint8).numpy()
    assert int(rng.geometric(1e-300)) == 2**63 - 1
    with pytest.raises(ValueError, match="colors"):
        rng.multivariate_hypergeometric([10**9, 3], 5)
