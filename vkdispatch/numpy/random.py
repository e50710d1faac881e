"""Random numbers: `vkdispatch.numpy.random`.

Streams are those of `vd.random.Generator`: the same on every device. With `bit_generator="philox4x64"`,
`random`, `uniform` and most `integers` are those of `numpy.random.Generator(numpy.random.Philox(seed))`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.numpy.basics.creation import full
from vkdispatch.numpy.basics.elementwise import (
    choose,
    exp,
    expm1,
    finish,
    floor,
    log,
    log1p,
    power,
    sqrt,
    tan,
)
from vkdispatch.numpy.basics.inputs import to_array, to_host
from vkdispatch.numpy.basics.manipulation import parse_axis, reshape, stack
from vkdispatch.numpy.basics.reductions import cumsum
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.application import broadcast_shapes
from vkdispatch.numpy.core.array import Array, parse_index, value_of
from vkdispatch.numpy.core.conversion import asarray, parse_shape
from vkdispatch.numpy.core.dtypes import Kind, default_real, float64, int64, kernel_type, parse_dtype
from vkdispatch.numpy.core.memory import Shape
from vkdispatch.numpy.indexing.gathering import array_from
from vkdispatch.numpy.linalg import matmul
from vkdispatch.numpy.rejection import draw_binomial, draw_gamma, draw_poisson
from vkdispatch.numpy.sorting.orders import topk
from vkdispatch.numpy.sorting.searching import argsort, searchsorted, take, take_along_axis
from vkdispatch.random.generator import Generator as Stream

__all__ = ["Generator", "default_rng", "rand", "randint", "randn", "random_sample", "seed"]


def _parse_size(size: Any, *parameters: Any) -> Shape:
    """Return the shape of a draw: `size`, or None, which is that to which parameters broadcast."""
    shapes = [each.shape for each in parameters if isinstance(each, Array)]
    wide = broadcast_shapes(shapes, "parameters") if shapes else ()
    if size is None:
        return wide
    shape = parse_shape(size, "size")
    if shapes and broadcast_shapes([shape, wide], "size") != shape:
        raise ArgumentValueError(f"size: {shape} does not fit parameters of the shape {wide}")
    return shape


def _parameter(value: Any, name: str, least: float | None = None, *, is_open: bool = False) -> Any:
    """Return a parameter: a number, which is checked, or an array, which is not.

    Raises ValueError for a number below `least`, or equal to it if it is open.
    """
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value):
        data = np.asarray(value, default_real())
        if least is not None and ((data < least) | (is_open & (data == least))).any():
            raise ArgumentValueError(f"{name}: expected numbers above {least}, got {value!r}")
        return asarray(data)
    if isinstance(value, Array):
        return value
    if isinstance(value, complex) or not isinstance(value, (int, float, np.number, np.ndarray)):
        raise ArgumentTypeError(f"{name}: expected a real number or an array, got {value!r}")
    number = float(value)
    if least is not None and (not number >= least or (is_open and number == least)):
        raise ArgumentValueError(
            f"{name}: expected {'more than' if is_open else 'at least'} {least}, got {value}"
        )
    return number


def _real(dtype: Any) -> Kind:
    if dtype is None:
        return default_real()
    kind = parse_dtype(dtype)
    if kind.kind != "f":
        raise ArgumentTypeError(f"dtype: expected float32, float64 or float16, got {dtype!r}")
    return kind


class Generator:
    """Random numbers as arrays, by the names of `numpy.random.Generator`.

    Real numbers have the default real dtype, integers int64, unless `dtype` says otherwise. Draws of one
    number are arrays without axes. Parameters may be arrays; their values are not checked.
    """

    def __init__(self, stream: Stream) -> None:
        """Draw from a `vd.random.Generator`. See `default_rng`."""
        if not isinstance(stream, Stream):
            raise ArgumentTypeError(f"stream: expected a vd.random.Generator, got {stream!r}")
        self._stream = stream

    @property
    def bit_generator(self) -> Stream:
        """The `vd.random.Generator` that is drawn from; its `state` can be saved and set."""
        return self._stream

    def __repr__(self) -> str:
        return f"<vkdispatch.numpy.random.Generator: {self._stream.bit_generator}>"

    def spawn(self, n_children: int) -> list["Generator"]:
        """Return generators of independent streams."""
        return [Generator(each) for each in self._stream.spawn(n_children)]

    # -- uniform numbers and integers

    def random(self, size: Any = None, dtype: Any = None, out: Any = None) -> Array:
        """Return uniformly distributed numbers of [0, 1)."""
        kind = _real(dtype)
        shape = _drawn_shape(size, out)
        return _deliver(array_from(self._stream.random(math.prod(shape), kernel_type(kind)), shape), out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None) -> Array:
        """Return uniformly distributed numbers of [low, high)."""
        low, high = _parameter(low, "low"), _parameter(high, "high")
        return self._scaled(self.random, low, high - low, _parse_size(size, low, high), dtype)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = int64, endpoint: bool = False
    ) -> Array:
        """Return integers of [low, high), each with the same probability; of [0, low) without `high`.

        Raises NotImplementedError if a limit is an array.
        """
        if isinstance(low, (Array, list, tuple)) or isinstance(high, (Array, list, tuple)):
            raise UnsupportedError("low, high: arrays of limits are not implemented; scale random()")
        kind = parse_dtype(dtype)
        shape = _parse_size(size)
        first = low if high is None else high
        if kind.kind == "b":
            start, end = (0, first) if high is None else (low, first)
            last = int(end) if endpoint else int(end) - 1
            if not 0 <= int(start) <= last <= 1:
                raise ArgumentValueError(f"low, high: expected 0 and 1 for booleans, got {low} and {high}")
            drawn = array_from(self._stream.integers(int(start), last + 1, math.prod(shape)), shape)
            return drawn.astype(kind)
        limits = (int(low), None if high is None else int(high))
        return array_from(
            self._stream.integers(*limits, math.prod(shape), kernel_type(kind), bool(endpoint)), shape
        )

    def bytes(self, length: int) -> bytes:
        """Return random bytes of the host."""
        return self.integers(0, 256, parse_index(length, "length"), np.uint8).tobytes()

    # -- distributions, of uniform or normal numbers

    def standard_normal(self, size: Any = None, dtype: Any = None, out: Any = None) -> Array:
        """Return normally distributed numbers of mean 0 and standard deviation 1."""
        kind = _real(dtype)
        shape = _drawn_shape(size, out)
        drawn = self._stream.standard_normal(math.prod(shape), kernel_type(kind))
        return _deliver(array_from(drawn, shape), out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Array:
        """Return normally distributed numbers with a mean and a standard deviation."""
        loc, scale = _parameter(loc, "loc"), _parameter(scale, "scale", 0)
        return self._scaled(self.standard_normal, loc, scale, _parse_size(size, loc, scale), dtype)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
        """Return numbers whose logarithms are normally distributed."""
        found: Array = exp(self.normal(mean, _parameter(sigma, "sigma", 0), size))
        return found

    def standard_exponential(
        self, size: Any = None, dtype: Any = None, method: str = "inv", out: Any = None
    ) -> Array:
        """Return exponentially distributed numbers of scale 1, as logarithms of uniform ones."""
        shape = _drawn_shape(size, out)
        return _deliver(-log1p(-self.random(shape, dtype)), out)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Return exponentially distributed numbers of a scale."""
        scale = _parameter(scale, "scale", 0)
        return self.standard_exponential(_parse_size(size, scale)) * scale  # type: ignore[no-any-return]

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Return numbers of Laplace's distribution."""
        loc, scale = _parameter(loc, "loc"), _parameter(scale, "scale", 0)
        u = self._open(_parse_size(size, loc, scale))
        return loc + scale * choose(u < 0.5, log(2 * u), -log(2 - 2 * u))  # type: ignore[no-any-return]

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Return numbers of the logistic distribution."""
        loc, scale = _parameter(loc, "loc"), _parameter(scale, "scale", 0)
        u = self._open(_parse_size(size, loc, scale))
        return loc + scale * log(u / (1 - u))  # type: ignore[no-any-return]

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Return numbers of Gumbel's distribution."""
        loc, scale = _parameter(loc, "loc"), _parameter(scale, "scale", 0)
        return loc - scale * log(-log(self._open(_parse_size(size, loc, scale))))  # type: ignore[no-any-return]

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Return numbers of Rayleigh's distribution."""
        scale = _parameter(scale, "scale", 0)
        return sqrt(2 * self.standard_exponential(_parse_size(size, scale))) * scale  # type: ignore[no-any-return]

    def weibull(self, a: Any, size: Any = None) -> Array:
        """Return numbers of Weibull's distribution with a shape `a`."""
        a = _parameter(a, "a", 0)
        drawn = self.standard_exponential(_parse_size(size, a))
        if not isinstance(a, Array) and a == 0:
            return drawn * 0
        return power(drawn, 1 / a)

    def pareto(self, a: Any, size: Any = None) -> Array:
        """Return numbers of Pareto's distribution II with a shape `a`."""
        a = _parameter(a, "a", 0, is_open=True)
        return expm1(self.standard_exponential(_parse_size(size, a)) / a)

    def power(self, a: Any, size: Any = None) -> Array:
        """Return numbers of [0, 1] with the density a x^(a-1)."""
        a = _parameter(a, "a", 0, is_open=True)
        drawn = -expm1(-self.standard_exponential(_parse_size(size, a)))
        return power(drawn, 1 / a)

    def standard_cauchy(self, size: Any = None) -> Array:
        """Return numbers of Cauchy's distribution."""
        return tan((self._open(_parse_size(size)) - 0.5) * math.pi)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Array:
        """Return numbers of a triangular distribution. Raises ValueError for limits in another order."""
        left, mode, right = _parameter(left, "left"), _parameter(mode, "mode"), _parameter(right, "right")
        are_numbers = not any(isinstance(each, Array) for each in (left, mode, right))
        if are_numbers and (not left <= mode <= right or left == right):
            raise ArgumentValueError(
                f"left, mode, right: expected ascending numbers, got {left}, {mode}, {right}"
            )
        u = self.random(_parse_size(size, left, mode, right))
        width, low, high = right - left, mode - left, right - mode
        below, above = sqrt(u * width * low), sqrt((1 - u) * width * high)
        return choose(u * width <= low, left + below, right - above)

    def geometric(self, p: Any, size: Any = None) -> Array:
        """Return how many trials of probability `p` the first success takes."""
        p = _parameter(p, "p", 0, is_open=True)
        if not isinstance(p, Array) and p > 1:
            raise ArgumentValueError(f"p: expected a probability, got {p}")
        shape = _parse_size(size, p)
        if not isinstance(p, Array) and p == 1:
            return self.integers(1, 2, shape)
        ratio = log1p(-p) if isinstance(p, Array) else math.log1p(-p)
        found = floor(-self.standard_exponential(shape) / ratio) + 1
        return found.astype(int64)  # type: ignore[no-any-return]

    # -- distributions by rejection: each element has a stream of its own, from one drawn seed

    def _seed(self) -> Array:
        """Return a random seed of 64 bits, which is not read."""
        return array_from(self._stream.integers(0, 1 << 64, 1, kernel_type(np.dtype(np.uint64))), ())

    def standard_gamma(self, shape: Any, size: Any = None) -> Array:
        """Return gamma-distributed numbers with a shape, and the scale 1."""
        a = _parameter(shape, "shape", 0)
        return draw_gamma(self._seed(), a, _parse_size(size, a))

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Array:
        """Return gamma-distributed numbers with a shape and a scale."""
        a, scale = _parameter(shape, "shape", 0), _parameter(scale, "scale", 0)
        return draw_gamma(self._seed(), a, _parse_size(size, a, scale)) * scale  # type: ignore[no-any-return]

    def chisquare(self, df: Any, size: Any = None) -> Array:
        """Return numbers of the chi-square distribution."""
        df = _parameter(df, "df", 0, is_open=True)
        return self.standard_gamma(df / 2, size) * 2

    def standard_t(self, df: Any, size: Any = None) -> Array:
        """Return numbers of Student's distribution."""
        df = _parameter(df, "df", 0, is_open=True)
        shape = _parse_size(size, df)
        return self.standard_normal(shape) * sqrt(df / self.chisquare(df, shape))

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Array:
        """Return numbers of the F distribution."""
        first = _parameter(dfnum, "dfnum", 0, is_open=True)
        second = _parameter(dfden, "dfden", 0, is_open=True)
        shape = _parse_size(size, first, second)
        found: Array = self.chisquare(first, shape) / first / (self.chisquare(second, shape) / second)
        return found

    def beta(self, a: Any, b: Any, size: Any = None) -> Array:
        """Return numbers of the beta distribution."""
        a, b = _parameter(a, "a", 0, is_open=True), _parameter(b, "b", 0, is_open=True)
        shape = _parse_size(size, a, b)
        first, second = self.standard_gamma(a, shape), self.standard_gamma(b, shape)
        return first / (first + second)

    def dirichlet(self, alpha: Any, size: Any = None) -> Array:
        """Return vectors of Dirichlet's distribution, as the last axis."""
        own = to_array(alpha, "alpha")
        if own.ndim != 1:
            raise ArgumentValueError(f"alpha: expected a vector, got the shape {own.shape}")
        drawn = self.standard_gamma(own, (*_parse_size(size), own.size))
        return drawn / total(drawn, axis=-1, keepdims=True)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Array:
        """Return numbers of the inverse Gaussian distribution."""
        mean = _parameter(mean, "mean", 0, is_open=True)
        scale = _parameter(scale, "scale", 0, is_open=True)
        shape = _parse_size(size, mean, scale)
        y = mean * self.standard_normal(shape) ** 2
        # the smaller root, without cancellation
        root = mean - 2 * mean * y / (y + sqrt(4 * scale * y + y * y))
        root = choose(y == 0, mean, root)
        return choose(self.random(shape) * (mean + root) <= mean, root, mean * mean / root)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Array:
        """Return Poisson-distributed integers."""
        lam = _parameter(lam, "lam", 0)
        return draw_poisson(self._seed(), lam, _parse_size(size, lam))

    def binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Return how many of `n` trials succeed, each with probability `p`."""
        n, p = _parameter(n, "n", 0), _parameter(p, "p", 0)
        if not isinstance(p, Array) and p > 1:
            raise ArgumentValueError(f"p: expected a probability, got {p}")
        return draw_binomial(self._seed(), n, p, _parse_size(size, n, p))

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Return how many trials of probability `p` fail before `n` have succeeded."""
        n, p = _parameter(n, "n", 0, is_open=True), _parameter(p, "p", 0, is_open=True)
        return self.poisson(self.gamma(n, (1 - p) / p, _parse_size(size, n, p)))

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Array:
        """Return how often each outcome occurs in `n` trials, as the last axis."""
        p = _probabilities(pvals, len(pvals)).numpy().astype(np.float64)
        shape = _parse_size(size)
        left: Any = full(shape, parse_index(n, "n"), int64)
        counts = []
        rest = 1.0
        for each in p[:-1]:
            drawn = self.binomial(left, min(1.0, each / rest) if rest > 0 else 0.0, shape)
            counts.append(drawn)
            left, rest = left - drawn, rest - float(each)
        return stack([*counts, left], axis=-1)

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "ignore",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> Array:
        """Return normally distributed vectors with a mean and a covariance matrix.

        The matrix is factored by LAPACK on the host.

        Raises
        ------
        ValueError
            The shapes do not fit.
        """
        centre = to_array(mean, "mean")
        matrix = to_host(cov).astype(np.float64)
        if centre.ndim != 1 or matrix.shape != (centre.size,) * 2:
            raise ArgumentValueError(
                "mean, cov: expected a vector and its matrix, got the shapes "
                f"{centre.shape} and {matrix.shape}"
            )
        kind = default_real()
        values, vectors = np.linalg.eigh(matrix)
        factor = asarray((vectors * np.sqrt(np.maximum(values, 0))).T.astype(kind))
        shape = () if size is None else parse_shape(size, "size")
        drawn = self.standard_normal((math.prod(shape), centre.size), kind)
        return reshape(matmul(drawn, factor) + centre, (*shape, centre.size))

    # -- choices and orders

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Array:
        """Return random parts of an array along an axis, or numbers below an int.

        Parameters
        ----------
        replace
            Whether a part may be chosen several times.
        p
            The probability of each part; None: all the same. Their sum is waited for.
        shuffle
            Results without replacement are always in random order.

        Raises
        ------
        ValueError
            There are fewer parts than are to be chosen, or `p` are no probabilities.
        """
        source = None if isinstance(a, (int, np.integer)) else to_array(a, "a")
        count = parse_index(a, "a") if source is None else source.shape[parse_axis(axis, source.ndim)]
        shape = () if size is None else parse_shape(size, "size")
        wanted = math.prod(shape)
        if count <= 0 and wanted:
            raise ArgumentValueError("a: expected at least one part to choose from")
        weights = None if p is None else _probabilities(p, count)
        if replace:
            if weights is None:
                places = self.integers(0, max(count, 1), shape)
            else:
                sums = cumsum(weights)
                drawn = self.random(shape, weights.dtype) * sums[-1]
                places = searchsorted(sums, drawn, side="right")
                # a rounded product may reach the last sum
                places = choose(places >= count, count - 1, places)
        elif wanted > count:
            raise ArgumentValueError(
                f"size: {wanted} different parts of {count} were asked for; see replace="
            )
        elif weights is None:
            places = reshape(self.permutation(count)[:wanted], shape)
        else:
            if wanted > int((weights > 0).sum()):
                raise ArgumentValueError(f"p: fewer than {wanted} probabilities are not zero")
            # the largest of these keys are as if drawn one after the other (Efraimidis, Spirakis 2006)
            keys = choose(
                weights > 0, log(weights) - log(-log(self._open((count,), weights.dtype))), -math.inf
            )
            places = reshape(topk(keys, wanted)[1], shape)
        places = places.astype(int64, copy=False)
        return places if source is None else take(source, places, axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Return the numbers below an int in random order, or a copy of an array with its parts in such."""
        if isinstance(x, (int, np.integer)):
            return array_from(self._stream.permutation(int(x), dtype=kernel_type(int64)))
        array = to_array(x)
        order = self.permutation(array.shape[parse_axis(axis, array.ndim)])
        return take(array, order, axis=axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Bring the parts of an array along an axis into random order, in place."""
        if not isinstance(x, Array):
            raise ArgumentTypeError(f"x: expected an Array, which is written to, got {type(x).__name__}")
        x[...] = self.permutation(x, axis)

    def permuted(self, x: Any, axis: int | None = None, out: Any = None) -> Array:
        """Return a copy with the elements of each line along an axis in a random order of its own."""
        array = to_array(x)
        flat = reshape(array, -1) if axis is None else array
        place = 0 if axis is None else parse_axis(axis, array.ndim)
        # ties of 64 random bits are as good as impossible
        order = argsort(self.integers(0, 1 << 63, flat.shape), axis=place)
        return _deliver(reshape(take_along_axis(flat, order, axis=place), array.shape), out)

    # -- helpers

    def _scaled(self, draw: Callable[..., Array], low: Any, scale: Any, shape: Shape, dtype: Any) -> Array:
        """Return low + scale * draw, in the dtype of the draw."""
        kind = _real(dtype)
        low, scale = (each.astype(kind) if isinstance(each, Array) else each for each in (low, scale))
        return low + scale * draw(shape, kind)  # type: ignore[no-any-return]

    def _open(self, shape: Shape, dtype: Any = None) -> Any:
        """Return uniformly distributed numbers of (0, 1)."""
        kind = _real(dtype)
        half = 2.0 ** (-54 if kind == float64 else -12 if kind.itemsize == 2 else -25)
        drawn = self.random(shape, kind) + half
        return choose(drawn >= 1, 1 - 2 * half, drawn)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"{name}: not implemented on devices; use vnp.asarray(numpy.random.default_rng(seed).{name}(...))"
        )


def _drawn_shape(size: Any, out: Any) -> Shape:
    if out is None:
        return _parse_size(size)
    if not isinstance(out, Array):
        raise ArgumentTypeError(f"out: expected an Array, got {type(out).__name__}")
    if size is not None and _parse_size(size) != out.shape:
        raise ArgumentValueError(f"size: expected the shape of out, {out.shape}, got {size}")
    shape: Shape = out.shape
    return shape


def _deliver(drawn: Array, out: Any) -> Array:
    return drawn if out is None else finish(value_of(drawn), out)


def _probabilities(p: Any, count: int) -> Array:
    weights = to_array(to_host(p).tolist() if isinstance(p, np.ndarray) else p, "p")
    if weights.shape != (count,):
        raise ArgumentValueError(f"p: expected {count} probabilities, got the shape {weights.shape}")
    weights = weights.astype(default_real() if weights.dtype.kind != "f" else weights.dtype, copy=False)
    least, whole = float(weights.min()), float(weights.sum())
    if not least >= 0 or not abs(whole - 1) < (1e-8 if weights.dtype == float64 else 1e-4):
        raise ArgumentValueError(f"p: expected probabilities with the sum 1, got the sum {whole}")
    return weights


def default_rng(seed: Any = None, *, bit_generator: str = "philox4x32") -> Generator:
    """Return a generator of random numbers. See `numpy.random.default_rng`.

    Parameters
    ----------
    seed
        A nonnegative int or several, a SeedSequence, a `vd.random.Generator`, or None: unpredictable. A
        Generator of this module is returned as it is.
    bit_generator
        "philox4x32", the faster one, or "philox4x64", whose uniform numbers are those of NumPy's Philox.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid.
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, Stream) else Stream(seed, bit_generator))


# ---- the generator that all share ----------------------------------------------------------------

_shared: list[Generator] = []


def _common() -> Generator:
    if not _shared:
        _shared.append(default_rng())
    return _shared[0]


def seed(seed: Any = None) -> None:
    """Begin the stream of the functions of this module anew; see `default_rng`, which is to be preferred."""
    _shared[:] = [default_rng(seed)]


def rand(*shape: int) -> Array:
    """Return uniformly distributed numbers of [0, 1)."""
    return _common().random(shape)


def randn(*shape: int) -> Array:
    """Return normally distributed numbers of mean 0 and standard deviation 1."""
    return _common().standard_normal(shape)


def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = int64) -> Array:
    """Return integers of [low, high); of [0, low) without `high`."""
    return _common().integers(low, high, size, dtype)


def random_sample(size: Any = None) -> Array:
    """Return uniformly distributed numbers of [0, 1)."""
    return _common().random(size)


def __getattr__(name: str) -> Any:
    """Return a method of the generator that all share, such as `normal`."""
    if not name.startswith("_") and name not in ("bit_generator", "integers", "spawn"):
        found = getattr(Generator, name, None)
        if found is not None:
            return getattr(_common(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
