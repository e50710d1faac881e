"""Random numbers as arrays: distributions, against NumPy's stream of the same seed, and orders."""

import copy
from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp


def test_stream_is_numpys() -> None:
    own = vnp.random.default_rng(7, bit_generator="philox4x64")
    wanted = np.random.Generator(np.random.Philox(7))
    np.testing.assert_array_equal(own.random((2, 3, 1, 4)).numpy(), wanted.random((2, 3, 1, 4)))
    np.testing.assert_array_equal(own.uniform(2, 3, 5).numpy(), wanted.uniform(2, 3, 5))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("random", ()),
        ("uniform", (2, 5)),
        ("normal", (3, 2)),
        ("integers", (3, 9)),
        ("exponential", (2.0,)),
        ("laplace", (1, 2)),
        ("logistic", (1, 2)),
        ("gumbel", (1, 2)),
        ("rayleigh", (2,)),
        ("weibull", (2.0,)),
        ("pareto", (5.0,)),
        ("power", (3.0,)),
        ("triangular", (1, 2, 5)),
        ("geometric", (0.3,)),
        ("lognormal", (0, 0.5)),
        ("gamma", (0.3, 2.0)),
        ("gamma", (7.0, 1.0)),
        ("standard_t", (5,)),
        ("beta", (2, 3)),
        ("wald", (2, 3)),
        ("poisson", (3,)),
        ("poisson", (40,)),
        ("binomial", (10, 0.3)),
        ("binomial", (100, 0.85)),
        ("negative_binomial", (5, 0.3)),
    ],
)
def test_distributions(name: str, parameters: tuple[Any, ...]) -> None:
    found = getattr(vnp.random.default_rng(5), name)(*parameters, size=(50, 40, 5, 2)).numpy()
    wanted = getattr(np.random.default_rng(6), name)(*parameters, size=20000)
    assert found.dtype == wanted.dtype
    # Kolmogorov's and Smirnov's test: a larger distance happens once in 10**5 times
    both = np.sort(np.concatenate([found.reshape(-1), wanted]))
    apart = [np.searchsorted(np.sort(each.reshape(-1)), both, "right") / 20000 for each in (found, wanted)]
    assert np.abs(apart[0] - apart[1]).max() < 2.5 * np.sqrt(2 / 20000)


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
    assert rng.binomial(vnp.asarray([np.nan, np.inf, 5]), vnp.asarray([0.5, 0.5, np.nan])).shape == (3,)


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
    vectors = rng.multivariate_normal([1, 2], [[2, 0.5], [0.5, 1]], 20000).numpy()
    assert abs(np.cov(vectors.T) - [[2, 0.5], [0.5, 1]]).max() < 0.1


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
    with pytest.raises(NotImplementedError, match="limits"):
        rng.integers([1, 2])
    with pytest.raises(AttributeError, match=r"numpy\.random"):
        rng.hypergeometric(1, 2, 3)
