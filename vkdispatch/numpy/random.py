"""Random numbers: `vkdispatch.numpy.random`.

Streams are those of `vd.random.Generator`: the same on every device. With `bit_generator="philox4x64"`,
`random`, `uniform` and most `integers` are those of `numpy.random.Generator(numpy.random.Philox(seed))`.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.families.kernels import note_bad_starts
from vkdispatch.numpy import rejection
from vkdispatch.numpy.basics import elementwise, manipulation
from vkdispatch.numpy.basics.creation import full, zeros
from vkdispatch.numpy.basics.elementwise import power as raise_to
from vkdispatch.numpy.basics.joining import concatenate, stack
from vkdispatch.numpy.basics.manipulation import matrix_transpose, parse_axis, reshape
from vkdispatch.numpy.basics.reductions import cumsum
from vkdispatch.numpy.basics.reductions import max as greatest
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.application import broadcast_shapes
from vkdispatch.numpy.core.array import Array, array_from, describe, parse_index, store_result, value_of
from vkdispatch.numpy.core.conversion import asarray, asnumpy, parse_shape, require_choice, to_array
from vkdispatch.numpy.core.expressions import Operation, evaluate
from vkdispatch.numpy.core.kernels import as_buffer
from vkdispatch.numpy.linalg.products import matmul
from vkdispatch.numpy.linalg.solving import cholesky
from vkdispatch.numpy.searching import argsort, searchsorted, take, take_along_axis, topk
from vkdispatch.random.generator import Generator as Stream

__all__ = ["Generator", "default_rng", "rand", "randint", "randn", "random_sample", "ranf", "sample", "seed"]


def _parse_size(size: Any, *parameters: Any) -> memory.Shape:
    """Return the shape of a draw: `size`, or for None that to which the parameters broadcast."""
    shapes = [parameter.shape for parameter in parameters if isinstance(parameter, Array)]
    return _fit_size(size, broadcast_shapes(shapes, "parameters") if shapes else ())


def _fit_size(size: Any, wide: memory.Shape) -> memory.Shape:
    if size is None:
        return wide
    shape = parse_shape(size, "size")
    if wide and broadcast_shapes([shape, wide], "size") != shape:
        raise ArgumentValueError(f"size: {shape} does not fit parameters of the shape {wide}")
    return shape


# The largest mean that NumPy draws Poisson-distributed integers of, and the number of things to draw from.
_MAX_MEAN = float(np.iinfo(np.int64).max - np.sqrt(np.iinfo(np.int64).max) * 10)
_MAX_THINGS = 10**9


def _parameter(
    value: Any, name: str, least: float | None = None, *, is_open: bool = False, most: float | None = None
) -> Any:
    """Return a parameter: a number or an array.

    Raises ValueError for numbers below `least`, or equal to it if it is open, and above `most`. Arrays may
    have NaN if there is no `most`. For an Array the next wait for the device raises it.
    """
    wanted = f"numbers {'above' if is_open else 'from'} {least}" + ("" if most is None else f" to {most}")
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value):
        data = np.asarray(value, memory.default_real())
        if _is_bad(data, least, is_open, most).any():
            raise ArgumentValueError(f"{name}: expected {wanted}, got {value!r}")
        return asarray(data)
    if isinstance(value, Array):
        if least is None:
            return value
        good = 0.5 if most is not None and most <= 1 else least + 1
        return _replace_bad(value, _is_bad(value, least, is_open, most), good, name, wanted)
    if isinstance(value, complex) or not isinstance(value, (int, float, np.number, np.ndarray)):
        raise ArgumentTypeError(f"{name}: expected a real number or an array, got {value!r}")
    number = float(value)
    if least is not None and (not number >= least or (is_open and number == least)):
        raise ArgumentValueError(
            f"{name}: expected {'more than' if is_open else 'at least'} {least}, got {value}"
        )
    if most is not None and number > most:
        raise ArgumentValueError(f"{name}: expected at most {most}, got {value}")
    return number


def _is_bad(values: Any, least: float | None, is_open: bool, most: float | None) -> Any:
    if least is None:
        return values != values if most is not None else np.zeros(1, bool)
    bad = values <= least if is_open else values < least
    return bad if most is None else bad | ~(values <= most)


def _check_later(bad: Array, name: str, wanted: str) -> None:
    """Have the next wait for the device raise ValueError if a parameter is bad somewhere."""
    if bad.size:
        view = evaluate(value_of(elementwise.choose(bad, -1, 0).astype(np.int32)))
        note_bad_starts("random", as_buffer(view, (view.size,)), name=name, wanted=wanted)


def _replace_bad(value: Any, bad: Array, good: Any, name: str, wanted: str) -> Array:
    """Check a parameter, and return it with a good number for bad ones, of which a loop might not end."""
    _check_later(bad, name, wanted)
    return elementwise.choose(bad, good, value)


def _count(value: Any, name: str, most: int | None = None) -> Any:
    """Return a parameter that counts something, without its fraction.

    Raises ValueError for numbers below 0, above `most`, or above what the real dtype holds exactly, and
    OverflowError for those that int64 does not hold.
    """
    exact = 1 << (53 if memory.default_real() == memory.float64 else 24)
    if not isinstance(value, Array) and not np.all(np.abs(np.asarray(value, np.float64)) < 2.0**63):
        if np.isnan(np.asarray(value, np.float64)).any():
            raise ArgumentValueError(f"{name}: expected integers, got {value!r}")
        raise OverflowError(f"{name}: int64 does not hold {value!r}")
    number = _parameter(value, name, 0, most=exact if most is None else min(most, exact))
    if isinstance(number, Array):
        return elementwise.floor(number) if number.dtype.kind == "f" else number
    return float(math.floor(number))


def _probability(p: Any, *, is_open: bool, is_open_above: bool = False) -> Any:
    """Return probabilities. Raises ValueError for others, also 0 if it is open, and 1 if it is open above."""
    return _parameter(p, "p", 0, is_open=is_open, most=math.nextafter(1, 0) if is_open_above else 1)


def _real(dtype: Any) -> memory.Kind:
    if dtype is None:
        return memory.default_real()
    kind = memory.parse_dtype(dtype)
    if kind.kind != "f":
        raise ArgumentTypeError(f"dtype: expected float32, float64 or float16, got {dtype!r}")
    return kind


class Generator:
    """Random numbers as arrays, by the names of `numpy.random.Generator`.

    Real numbers have the default real dtype, integers int64, unless `dtype` says otherwise. Draws of one
    number are arrays without axes. Parameters may be arrays. The device checks the values of Arrays, and the
    next wait raises the ValueError.

    Examples
    --------
    >>> rng = vnp.random.default_rng(1)
    >>> rng.random(3)
    Array([0.7299931 , 0.34757536, 0.08327684], dtype=float64)
    """

    # NumPy's generator refuses ranges that fall, its functions do not
    _may_fall = False

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

    @property
    def _source(self) -> Stream:
        """The stream to draw from now. Raises UsageError while a graph records the calls of this thread."""
        memory.refuse_recording()
        return self._stream

    def spawn(self, n_children: int) -> list["Generator"]:
        """Return generators of independent streams.

        Examples
        --------
        >>> first, second = vnp.random.default_rng(1).spawn(2)
        >>> first.random(2)
        Array([0.07083418, 0.88249815], dtype=float64)
        """
        return [Generator(stream) for stream in self._stream.spawn(n_children)]

    # -- uniform numbers and integers

    def random(self, size: Any = None, dtype: Any = None, out: Any = None) -> Array:
        """Return uniformly distributed numbers of [0, 1).

        Examples
        --------
        >>> vnp.random.default_rng(1).random(2)
        Array([0.7299931 , 0.34757536], dtype=float64)
        """
        kind = _real(dtype)
        shape = _shape_of_draw(size, out)
        drawn = self._source.random(math.prod(shape), memory.kernel_type(kind))
        return store_result(out, array_from(drawn, shape))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None) -> Array:
        """Return uniformly distributed numbers of [low, high).

        Examples
        --------
        >>> vnp.random.default_rng(1).uniform(-1, 1, size=2)
        Array([ 0.4599862 , -0.30484928], dtype=float64)
        """
        low, high = _parameter(low, "low"), _parameter(high, "high")
        width = high - low
        self._check_width(width)
        return self._scale(self.random, low, width, _parse_size(size, low, high), dtype)

    def _check_width(self, width: Any) -> None:
        """Raise OverflowError for a range that is not finite, ValueError for one that falls."""
        if isinstance(width, Array):
            is_falling = False if self._may_fall else width < 0
            _check_later(is_falling | ~elementwise.isfinite(width), "low, high", "finite ascending ranges")
        elif not math.isfinite(width):
            raise OverflowError("low, high: the range exceeds the largest number")
        elif width < 0 and not self._may_fall:
            raise ArgumentValueError(f"low, high: expected an ascending range, got the width {width}")

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = memory.int64, endpoint: bool = False
    ) -> Array:
        """Return integers of [low, high), each with the same probability; of [0, low) without `high`.

        Limits may be arrays. The device checks those in Arrays, and the next wait raises the ValueError.

        Raises
        ------
        ValueError
            There is no such integer, or the dtype does not hold all of them.

        Examples
        --------
        >>> vnp.random.default_rng(1).integers(0, 10, size=5)
        Array([3, 7, 8, 3, 5], dtype=int64)
        """
        if any(isinstance(limit, (Array, list, tuple, np.ndarray)) for limit in (low, high)):
            first, last = (0, low) if high is None else (low, high)
            return self._integers_between(first, last, size, memory.parse_dtype(dtype), endpoint)
        kind = memory.parse_dtype(dtype)
        shape = _parse_size(size)
        if 0 in shape:  # there may be no such integers
            return zeros(shape, kind)
        if kind.kind == "b":
            start, end = (0, low) if high is None else (low, high)
            last = int(end) if endpoint else int(end) - 1
            if not 0 <= int(start) <= last <= 1:
                raise ArgumentValueError(f"low, high: expected 0 and 1 for booleans, got {low} and {high}")
            bits = array_from(self._source.integers(int(start), last + 1, math.prod(shape)), shape)
            return bits.astype(kind)
        limits = (int(low), None if high is None else int(high))
        drawn = self._source.integers(*limits, math.prod(shape), memory.kernel_type(kind), bool(endpoint))
        return array_from(drawn, shape)

    def _integers_between(self, low: Any, high: Any, size: Any, kind: memory.Kind, endpoint: bool) -> Array:
        """Return integers of limits that broadcast, each with a stream of its own."""
        if kind.kind not in "iu":
            raise ArgumentTypeError(f"dtype: expected an integer type for arrays of limits, got {kind}")
        wide = np.dtype(np.uint64) if kind == np.uint64 else memory.int64
        last = high if endpoint else high - 1 if isinstance(high, Array) else np.asarray(high, object) - 1
        limits = [each if isinstance(each, Array) else np.asarray(each, object) for each in (low, last)]
        hosts = [each for each in limits if isinstance(each, np.ndarray)]
        bounds = np.iinfo(kind)
        if any(not isinstance(number, (int, np.integer)) for host in hosts for number in host.flat):
            raise ArgumentTypeError(f"low, high: expected ints, got {low!r} and {high!r}")
        if any(((each < bounds.min) | (each > bounds.max)).any() for each in hosts):
            raise ArgumentValueError(f"low, high: {kind} does not hold all integers of the ranges")
        if len(hosts) == 2 and (hosts[0] > hosts[1]).any():
            raise ArgumentValueError(f"low, high: a range is empty: {low!r} to {high!r}")
        first, end = (each if isinstance(each, Array) else asarray(each.astype(wide)) for each in limits)
        if len(hosts) < 2:
            arrays = [limit for limit in limits if isinstance(limit, Array)]
            wrong = sum(((limit < bounds.min) | (limit > bounds.max) for limit in arrays), first > end)
            end = _replace_bad(end, wrong, first, "low, high", f"ranges of {kind} that are not empty")
        drawn = self._draw(rejection.INTEGERS, _parse_size(size, first, end), first, end, kind=wide)
        return drawn.astype(kind, copy=False)

    def bytes(self, length: int) -> bytes:
        """Return random bytes of the host.

        Examples
        --------
        >>> len(vnp.random.default_rng(1).bytes(4))
        4
        """
        return self.integers(0, 256, parse_index(length, "length"), np.uint8).tobytes()

    # -- distributions, of uniform or normal numbers

    def standard_normal(self, size: Any = None, dtype: Any = None, out: Any = None) -> Array:
        """Return normally distributed numbers of mean 0 and standard deviation 1.

        Examples
        --------
        >>> vnp.random.default_rng(1).standard_normal(2)
        Array([-0.45650082,  0.64888165], dtype=float64)
        """
        kind = _real(dtype)
        shape = _shape_of_draw(size, out)
        drawn = self._source.standard_normal(math.prod(shape), memory.kernel_type(kind))
        return store_result(out, array_from(drawn, shape))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Array:
        """Return normally distributed numbers with a mean and a standard deviation.

        Examples
        --------
        >>> vnp.random.default_rng(1).normal(5, 2, size=2)
        Array([4.08699837, 6.2977633 ], dtype=float64)
        """
        loc, scale = _parameter(loc, "loc"), _parameter(scale, "scale", 0)
        return self._scale(self.standard_normal, loc, scale, _parse_size(size, loc, scale), dtype)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
        """Return numbers whose logarithms are normally distributed.

        Examples
        --------
        >>> vnp.random.default_rng(1).lognormal(size=2)
        Array([0.63349649, 1.91339978], dtype=float64)
        """
        mean, sigma = _parameter(mean, "mean"), _parameter(sigma, "sigma", 0)
        drawn = self._scale(self.standard_normal, mean, sigma, _parse_size(size, mean, sigma), None)
        return elementwise.exp(drawn)

    def standard_exponential(
        self, size: Any = None, dtype: Any = None, method: str = "inv", out: Any = None
    ) -> Array:
        """Return exponentially distributed numbers of scale 1, as logarithms of uniform ones.

        Examples
        --------
        >>> vnp.random.default_rng(1).standard_exponential(2)
        Array([1.30930777, 0.42705964], dtype=float64)
        """
        shape = _shape_of_draw(size, out)
        return store_result(out, -elementwise.log1p(-self.random(shape, dtype)))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Return exponentially distributed numbers of a scale.

        Examples
        --------
        >>> vnp.random.default_rng(1).exponential(2, size=2)
        Array([2.61861553, 0.85411928], dtype=float64)
        """
        scale = _parameter(scale, "scale", 0)
        return self.standard_exponential(_parse_size(size, scale)) * scale  # type: ignore[no-any-return]

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Return numbers of Laplace's distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).laplace(size=2)
        Array([ 0.61616059, -0.3636266 ], dtype=float64)
        """
        loc, scale = _parameter(loc, "loc"), _parameter(scale, "scale", 0)
        u = self._open(_parse_size(size, loc, scale))
        return loc + scale * elementwise.choose(u < 0.5, elementwise.log(2 * u), -elementwise.log(2 - 2 * u))  # type: ignore[no-any-return]

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Return numbers of the logistic distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).logistic(size=2)
        Array([ 0.99458757, -0.62971414], dtype=float64)
        """
        loc, scale = _parameter(loc, "loc"), _parameter(scale, "scale", 0)
        u = self._open(_parse_size(size, loc, scale))
        return loc + scale * elementwise.log(u / (1 - u))  # type: ignore[no-any-return]

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Return numbers of Gumbel's distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).gumbel(size=2)
        Array([ 1.1560713 , -0.05522066], dtype=float64)
        """
        loc, scale = _parameter(loc, "loc"), _parameter(scale, "scale", 0)
        return loc - scale * elementwise.log(-elementwise.log(self._open(_parse_size(size, loc, scale))))  # type: ignore[no-any-return]

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Return numbers of Rayleigh's distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).rayleigh(size=2)
        Array([1.61821369, 0.92418574], dtype=float64)
        """
        scale = _parameter(scale, "scale", 0)
        return elementwise.sqrt(2 * self.standard_exponential(_parse_size(size, scale))) * scale  # type: ignore[no-any-return]

    def weibull(self, a: Any, size: Any = None) -> Array:
        """Return numbers of Weibull's distribution with a shape `a`.

        Examples
        --------
        >>> vnp.random.default_rng(1).weibull(2, size=2)
        Array([1.14424987, 0.653498  ], dtype=float64)
        """
        a = _parameter(a, "a", 0)
        drawn = self.standard_exponential(_parse_size(size, a))
        if not isinstance(a, Array) and a == 0:
            return drawn * 0
        return raise_to(drawn, 1 / a)

    def pareto(self, a: Any, size: Any = None) -> Array:
        """Return numbers of Pareto's distribution II with a shape `a`.

        Examples
        --------
        >>> vnp.random.default_rng(1).pareto(3, size=2)
        Array([0.5471831 , 0.15298383], dtype=float64)
        """
        a = _parameter(a, "a", 0, is_open=True)
        return elementwise.expm1(self.standard_exponential(_parse_size(size, a)) / a)

    def power(self, a: Any, size: Any = None) -> Array:
        """Return numbers of [0, 1] with the density a x^(a-1).

        Examples
        --------
        >>> vnp.random.default_rng(1).power(2, size=2)
        Array([0.85439634, 0.58955522], dtype=float64)
        """
        a = _parameter(a, "a", 0, is_open=True)
        drawn = -elementwise.expm1(-self.standard_exponential(_parse_size(size, a)))
        return raise_to(drawn, 1 / a)

    def standard_cauchy(self, size: Any = None) -> Array:
        """Return numbers of Cauchy's distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).standard_cauchy(2)
        Array([ 0.88158007, -0.51915781], dtype=float64)
        """
        return elementwise.tan((self._open(_parse_size(size)) - 0.5) * math.pi)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Array:
        """Return numbers of a triangular distribution. Raises ValueError for limits in another order.

        Examples
        --------
        >>> vnp.random.default_rng(1).triangular(0, 1, 2, size=2)
        Array([1.26514369, 0.83375699], dtype=float64)
        """
        left, mode, right = _parameter(left, "left"), _parameter(mode, "mode"), _parameter(right, "right")
        if any(isinstance(limit, Array) for limit in (left, mode, right)):
            bad = (left > mode) | (mode > right) | (left == right)
            _check_later(bad, "left, mode, right", "ascending numbers")
        elif not left <= mode <= right or left == right:
            raise ArgumentValueError(
                f"left, mode, right: expected ascending numbers, got {left}, {mode}, {right}"
            )
        u = self.random(_parse_size(size, left, mode, right))
        width, low, high = right - left, mode - left, right - mode
        below, above = elementwise.sqrt(u * width * low), elementwise.sqrt((1 - u) * width * high)
        return elementwise.choose(u * width <= low, left + below, right - above)

    def geometric(self, p: Any, size: Any = None) -> Array:
        """Return how many trials of probability `p` the first success takes.

        Examples
        --------
        >>> vnp.random.default_rng(1).geometric(0.5, size=4)
        Array([2, 1, 1, 2], dtype=int64)
        """
        p = _probability(p, is_open=True)
        shape = _parse_size(size, p)
        if not isinstance(p, Array) and p == 1:
            return self.integers(1, 2, shape)
        ratio = elementwise.log1p(-p) if isinstance(p, Array) else math.log1p(-p)
        return _whole(elementwise.floor(-self.standard_exponential(shape) / ratio) + 1)

    # -- distributions by rejection: each element has a stream of its own, from one drawn seed

    def _draw(self, operation: Operation, shape: memory.Shape, *parameters: Any, kind: Any = None) -> Array:
        """Return numbers of a distribution of `rejection`, by a seed that is not read."""
        seed = array_from(self._source.integers(0, 1 << 64, 1, memory.kernel_type(np.dtype(np.uint64))), ())
        return rejection.draw(operation, seed, parameters, shape, kind or memory.default_real())

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = None, out: Any = None) -> Array:
        """Return gamma-distributed numbers with a shape, and the scale 1.

        Examples
        --------
        >>> vnp.random.default_rng(1).standard_gamma(2, size=2)
        Array([0.69481574, 0.30628092], dtype=float64)
        """
        a = _parameter(shape, "shape", 0)
        lengths = _parse_size(size, a) if out is None else _shape_of_draw(size, out)
        drawn = self._draw(rejection.GAMMA, lengths, a)
        return store_result(out, drawn if dtype is None else drawn.astype(_real(dtype), copy=False))

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Array:
        """Return gamma-distributed numbers with a shape and a scale.

        Examples
        --------
        >>> vnp.random.default_rng(1).gamma(2, size=2)
        Array([0.69481574, 0.30628092], dtype=float64)
        """
        a, scale = _parameter(shape, "shape", 0), _parameter(scale, "scale", 0)
        return self._draw(rejection.GAMMA, _parse_size(size, a, scale), a) * scale  # type: ignore[no-any-return]

    def chisquare(self, df: Any, size: Any = None) -> Array:
        """Return numbers of the chi-square distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).chisquare(2, size=2)
        Array([0.28803665, 0.04279316], dtype=float64)
        """
        df = _parameter(df, "df", 0, is_open=True)
        return self._chisquare(df, _parse_size(size, df))

    def _chisquare(self, df: Any, shape: memory.Shape) -> Array:
        return self._draw(rejection.GAMMA, shape, df / 2) * 2

    def standard_t(self, df: Any, size: Any = None) -> Array:
        """Return numbers of Student's distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).standard_t(4, size=2)
        Array([-0.53253651,  0.94164345], dtype=float64)
        """
        df = _parameter(df, "df", 0, is_open=True)
        shape = _parse_size(size, df)
        return self.standard_normal(shape) * elementwise.sqrt(df / self._chisquare(df, shape))

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Array:
        """Return numbers of the F distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).f(2, 5, size=2)
        Array([1.25121994, 0.01780888], dtype=float64)
        """
        first = _parameter(dfnum, "dfnum", 0, is_open=True)
        second = _parameter(dfden, "dfden", 0, is_open=True)
        shape = _parse_size(size, first, second)
        return self._chisquare(first, shape) / first / (self._chisquare(second, shape) / second)  # type: ignore[no-any-return]

    def _log_gamma(self, a: Any, shape: memory.Shape) -> Any:
        """Return logarithms of gamma-distributed numbers, which may underflow for small shapes."""
        drawn = self._draw(rejection.GAMMA, shape, a + 1)
        return elementwise.log(drawn) + elementwise.log(self._open(shape)) / a

    def beta(self, a: Any, b: Any, size: Any = None) -> Array:
        """Return numbers of the beta distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).beta(2, 3, size=2)
        Array([0.6399392 , 0.87538429], dtype=float64)
        """
        a, b = _parameter(a, "a", 0, is_open=True), _parameter(b, "b", 0, is_open=True)
        shape = _parse_size(size, a, b)
        return 1 / (1 + elementwise.exp(self._log_gamma(b, shape) - self._log_gamma(a, shape)))

    def dirichlet(self, alpha: Any, size: Any = None) -> Array:
        """Return vectors of Dirichlet's distribution, as the last axis.

        Examples
        --------
        >>> x = vnp.random.default_rng(1).dirichlet([1, 2, 3])
        >>> round(float(x.sum()), 6)
        1.0
        """
        own = _parameter(alpha, "alpha", 0)
        if not isinstance(own, Array) or own.ndim != 1:
            raise ArgumentValueError(f"alpha: expected a vector, got the shape {getattr(own, 'shape', ())}")
        logarithms = self._log_gamma(own, (*_parse_size(size), own.size))
        drawn = elementwise.exp(logarithms - greatest(logarithms, axis=-1, keepdims=True))
        return drawn / total(drawn, axis=-1, keepdims=True)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Array:
        """Return numbers of the noncentral chi-square distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).noncentral_chisquare(3, 1, size=2)
        Array([0.08578931, 6.00727745], dtype=float64)
        """
        df = _parameter(df, "df", 0, is_open=True)
        nonc = _parameter(nonc, "nonc", 0)
        shape = _parse_size(size, df, nonc)
        return self._noncentral(df, nonc, shape)

    def _noncentral(self, df: Any, nonc: Any, shape: memory.Shape) -> Array:
        """Return numbers of the central distribution with Poisson-distributed degrees of freedom."""
        more = self._draw(rejection.POISSON, shape, nonc / 2)
        return self._draw(rejection.GAMMA, shape, df / 2 + more) * 2

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Array:
        """Return numbers of the noncentral F distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).noncentral_f(3, 5, 1, size=2)
        Array([0.03683431, 3.76138226], dtype=float64)
        """
        first = _parameter(dfnum, "dfnum", 0, is_open=True)
        second = _parameter(dfden, "dfden", 0, is_open=True)
        nonc = _parameter(nonc, "nonc", 0)
        shape = _parse_size(size, first, second, nonc)
        upper = self._noncentral(first, nonc, shape) / first
        return upper / (self._chisquare(second, shape) / second)  # type: ignore[no-any-return]

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Array:
        """Return angles of [-pi, pi], distributed about `mu` the more narrowly the larger `kappa` is.

        Examples
        --------
        >>> vnp.random.default_rng(1).vonmises(0, 4, size=2)
        Array([ 0.45867808, -0.08451738], dtype=float64)
        """
        mu, kappa = _parameter(mu, "mu"), _parameter(kappa, "kappa", 0)
        return self._draw(rejection.VONMISES, _parse_size(size, mu, kappa), mu, kappa)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Array:
        """Return numbers of the inverse Gaussian distribution.

        Examples
        --------
        >>> vnp.random.default_rng(1).wald(1, 2, size=2)
        Array([0.72512619, 0.63451377], dtype=float64)
        """
        mean = _parameter(mean, "mean", 0, is_open=True)
        scale = _parameter(scale, "scale", 0, is_open=True)
        shape = _parse_size(size, mean, scale)
        y = mean * self.standard_normal(shape) ** 2
        # the smaller root, without cancellation
        root = mean - 2 * mean * y / (y + elementwise.sqrt(4 * scale * y + y * y))
        root = elementwise.choose(y == 0, mean, root)
        return elementwise.choose(self.random(shape) * (mean + root) <= mean, root, mean * mean / root)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Array:
        """Return Poisson-distributed integers.

        Examples
        --------
        >>> vnp.random.default_rng(1).poisson(3, size=4)
        Array([2, 2, 5, 4], dtype=int64)
        """
        lam = _parameter(lam, "lam", 0, most=_MAX_MEAN)
        return self._draw(rejection.POISSON, _parse_size(size, lam), lam)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Return how many of `n` trials succeed, each with probability `p`.

        Examples
        --------
        >>> vnp.random.default_rng(1).binomial(10, 0.5, size=3)
        Array([5, 3, 5], dtype=int64)
        """
        n, p = _count(n, "n"), _probability(p, is_open=False)
        return self._draw(rejection.BINOMIAL, _parse_size(size, n, p), n, p)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Return how many trials of probability `p` fail before `n` have succeeded.

        Examples
        --------
        >>> vnp.random.default_rng(1).negative_binomial(3, 0.5, size=4)
        Array([2, 0, 5, 1], dtype=int64)
        """
        n, p = _parameter(n, "n", 0, is_open=True, most=math.inf), _probability(p, is_open=True)
        scale, shape = (1 - p) / p, _parse_size(size, n, p)
        bad = scale * (n + 10 * n**0.5) > _MAX_MEAN
        if isinstance(bad, Array):
            _check_later(bad, "n, p", "a mean that int64 holds")
        elif bad:
            raise ArgumentValueError(f"n, p: int64 does not hold the results of {n} and {p}")
        means = self._draw(rejection.GAMMA, shape, n) * scale
        return self._draw(rejection.POISSON, shape, means)

    def zipf(self, a: Any, size: Any = None) -> Array:
        """Return integers k of at least 1 with probabilities proportional to k**-a.

        Examples
        --------
        >>> vnp.random.default_rng(1).zipf(3, size=4)
        Array([1, 1, 1, 1], dtype=int64)
        """
        a = _parameter(a, "a", 1, is_open=True, most=math.inf)
        return self._draw(rejection.ZIPF, _parse_size(size, a), a)

    def logseries(self, p: Any, size: Any = None) -> Array:
        """Return integers k of at least 1 with probabilities proportional to p**k / k.

        Examples
        --------
        >>> vnp.random.default_rng(1).logseries(0.5, size=4)
        Array([2, 1, 1, 2], dtype=int64)
        """
        p = _probability(p, is_open=False, is_open_above=True)
        shape = _parse_size(size, p)
        # Kemp (1981): a geometric number whose own parameter is random
        rest = self._open(shape) * (elementwise.log1p(-p) if isinstance(p, Array) else math.log1p(-p))
        ratio = elementwise.choose(
            rest < -0.7, elementwise.log1p(-elementwise.exp(rest)), elementwise.log(-elementwise.expm1(rest))
        )
        return _whole(elementwise.floor(-self.standard_exponential(shape) / ratio) + 1)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Array:
        """Return how many of `nsample` drawn without replacement are of the `ngood`, not of the `nbad`.

        Raises ValueError for numbers of which the sample is larger than the whole.

        Examples
        --------
        >>> vnp.random.default_rng(1).hypergeometric(5, 5, 4, size=4)
        Array([0, 1, 2, 2], dtype=int64)
        """
        good, bad = _count(ngood, "ngood", _MAX_THINGS - 1), _count(nbad, "nbad", _MAX_THINGS - 1)
        sample = _count(nsample, "nsample")
        if any(isinstance(count, Array) for count in (good, bad, sample)):
            sample = _replace_bad(sample, good + bad < sample, 0, "nsample", "no more than ngood + nbad")
        elif good + bad < sample:
            raise ArgumentValueError(f"nsample: {nsample} of {ngood} + {nbad} were asked for")
        return self._draw(rejection.HYPERGEOMETRIC, _parse_size(size, good, bad, sample), good, bad, sample)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Array:
        """Return how often each outcome occurs in `n` trials, as the last axis.

        `n` may be an array, and `pvals` have axes before the last one.

        Examples
        --------
        >>> int(vnp.random.default_rng(1).multinomial(10, [0.5, 0.25, 0.25]).sum())
        10
        """
        p = _probabilities(pvals)
        trials = _count(n, "n")
        counts = asarray(trials, memory.int64)
        shape = _fit_size(size, broadcast_shapes([counts.shape, p.shape[:-1]], "pvals"))

        def halve(left: Array, first: Array, second: Array) -> Array:
            whole = first + second
            share = elementwise.choose(whole > 0, first / elementwise.choose(whole > 0, whole, 1), 0.0)
            return self._draw(rejection.BINOMIAL, left.shape, left, elementwise.clip(share, 0, 1))

        return _distribute(manipulation.broadcast_to(counts, shape), p, halve)

    def multivariate_hypergeometric(
        self, colors: Any, nsample: int, size: Any = None, method: str = "marginals"
    ) -> Array:
        """Return how many of each colour are among `nsample` drawn without replacement, as the last axis.

        Both methods of NumPy, "marginals" and "count", are computed by halves here.

        Raises
        ------
        ValueError
            `colors` is no vector of nonnegative integers, or has fewer than `nsample` in all.

        Examples
        --------
        >>> int(vnp.random.default_rng(1).multivariate_hypergeometric([3, 4, 5], 6).sum())
        6
        """
        require_choice(method, "method", "marginals", "count")
        own = asnumpy(colors)
        if own.ndim != 1 or own.dtype.kind not in "iu" or (own < 0).any():
            raise ArgumentValueError(f"colors: expected a vector of nonnegative integers, got {colors!r}")
        sample = parse_index(nsample, "nsample")
        if not 0 <= sample <= own.sum():
            raise ArgumentValueError(f"nsample: expected 0 to {own.sum()}, got {sample}")
        if own.sum() >= _MAX_THINGS:
            raise ArgumentValueError(f"colors: expected fewer than {_MAX_THINGS} in all, got {own.sum()}")

        def halve(left: Array, first: Array, second: Array) -> Array:
            return self._draw(rejection.HYPERGEOMETRIC, left.shape, first, second, left)

        start = full(_parse_size(size), sample, memory.int64)
        return _distribute(start, asarray(own.astype(np.int64)), halve)

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> Array:
        """Return normally distributed vectors with a mean and a covariance matrix.

        Parameters
        ----------
        check_valid
            What is done about a matrix that is not symmetric and positive semidefinite: "warn", "raise" or
            "ignore".
        tol
            How far it may be from that, relative to its largest element.
        method
            "cholesky" factors the matrix on the device; "svd" and "eigh" do so by LAPACK on the host.

        Raises
        ------
        ValueError
            The shapes do not fit, or the matrix is not valid and `check_valid` is "raise".
        LinAlgError
            The matrix is not positive definite, and the method "cholesky".

        Examples
        --------
        >>> vnp.random.default_rng(1).multivariate_normal([0, 0], [[1, 0], [0, 1]], size=3).shape
        (3, 2)
        """
        require_choice(method, "method", "svd", "eigh", "cholesky")
        require_choice(check_valid, "check_valid", "warn", "raise", "ignore")
        centre, kind = to_array(mean, "mean"), memory.default_real()
        matrix = asarray(cov) if not isinstance(cov, Array) else cov
        if centre.ndim != 1 or matrix.shape != (centre.size,) * 2:
            raise ArgumentValueError(
                "mean, cov: expected a vector and its matrix, got the shapes "
                f"{centre.shape} and {matrix.shape}"
            )
        if method != "cholesky" or check_valid != "ignore":
            host = matrix.numpy().astype(np.float64)
            values, vectors = np.linalg.eigh(host)
            limit = tol * max(1.0, float(np.abs(host).max(initial=0)))
            is_bad = values.min(initial=0) < -limit or np.abs(host - host.T).max(initial=0) > limit
            if check_valid != "ignore" and is_bad:
                text = "cov: the matrix is not symmetric and positive semidefinite"
                if check_valid == "raise":
                    raise ArgumentValueError(text)
                warnings.warn(text, RuntimeWarning, 2)
        if method == "cholesky":
            factor = matrix_transpose(cholesky(matrix.astype(kind)))
        else:
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

        Examples
        --------
        >>> vnp.random.default_rng(1).choice(vnp.asarray([10, 20, 30]), size=4)
        Array([20, 30, 30, 20], dtype=int64)
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
                places = elementwise.choose(places >= count, count - 1, places)
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
            logarithms = elementwise.log(-elementwise.log(self._open((count,), weights.dtype)))
            keys = elementwise.choose(weights > 0, elementwise.log(weights) - logarithms, -math.inf)
            places = reshape(topk(keys, wanted)[1], shape)
        places = places.astype(memory.int64, copy=False)
        return places if source is None else take(source, places, axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Return the numbers below an int in random order, or a copy of an array with its parts in such.

        Examples
        --------
        >>> vnp.random.default_rng(1).permutation(5)
        Array([4, 1, 0, 2, 3], dtype=int64)
        """
        if isinstance(x, (int, np.integer)):
            return array_from(self._source.permutation(int(x), dtype=memory.kernel_type(memory.int64)))
        array = to_array(x)
        order = self.permutation(array.shape[parse_axis(axis, array.ndim)])
        return take(array, order, axis=axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Bring the parts of an array along an axis into random order, in place.

        Examples
        --------
        >>> x = vnp.arange(5)
        >>> vnp.random.default_rng(1).shuffle(x)
        >>> vnp.sort(x)
        Array([0, 1, 2, 3, 4], dtype=int64)
        """
        if not isinstance(x, Array):
            raise ArgumentTypeError(f"x: expected an Array, which is written to, got {describe(x)}")
        x[...] = self.permutation(x, axis)

    def permuted(self, x: Any, axis: int | None = None, out: Any = None) -> Array:
        """Return a copy with the elements of each line along an axis in a random order of its own.

        Examples
        --------
        >>> x = vnp.random.default_rng(1).permuted(vnp.arange(6).reshape(2, 3), axis=1)
        >>> vnp.sort(x, axis=1)
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int64)
        """
        array = to_array(x)
        flat = reshape(array, -1) if axis is None else array
        place = 0 if axis is None else parse_axis(axis, array.ndim)
        # ties of 64 random bits are as good as impossible
        order = argsort(self.integers(0, 1 << 63, flat.shape), axis=place)
        return store_result(out, reshape(take_along_axis(flat, order, axis=place), array.shape))

    # -- helpers

    def _scale(
        self, draw: Callable[..., Array], low: Any, scale: Any, shape: memory.Shape, dtype: Any
    ) -> Array:
        kind = _real(dtype)
        low, scale = (bound.astype(kind) if isinstance(bound, Array) else bound for bound in (low, scale))
        return low + scale * draw(shape, kind)  # type: ignore[no-any-return]

    def _open(self, shape: memory.Shape, dtype: Any = None) -> Any:
        """Return uniformly distributed numbers of (0, 1)."""
        kind = _real(dtype)
        half = 2.0 ** (-54 if kind == memory.float64 else -12 if kind.itemsize == 2 else -25)
        drawn = self.random(shape, kind) + half
        return elementwise.choose(drawn >= 1, 1 - 2 * half, drawn)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"{name}: not implemented on devices; use vnp.asarray(numpy.random.default_rng(seed).{name}(...))"
        )


def _whole(x: Any) -> Array:
    """Return real numbers as integers, the largest one for those that int64 does not hold."""
    return elementwise.choose(x >= 2.0**63, np.iinfo(np.int64).max, x.astype(memory.int64))


def _shape_of_draw(size: Any, out: Any) -> memory.Shape:
    if out is None:
        return _parse_size(size)
    if not isinstance(out, Array):
        raise ArgumentTypeError(f"out: expected an Array, got {describe(out)}")
    if size is not None and _parse_size(size) != out.shape:
        raise ArgumentValueError(f"size: expected the shape of out, {out.shape}, got {size}")
    return out.shape  # type: ignore[no-any-return]


def _probabilities(p: Any, count: int | None = None) -> Array:
    """Return probabilities along the last axis, as many as `count`: they are waited for."""
    weights = asarray(p) if isinstance(p, np.ndarray) else to_array(p, "p")
    if (count is not None and weights.shape != (count,)) or not weights.ndim:
        raise ArgumentValueError(f"p: expected {count or ''} probabilities, got the shape {weights.shape}")
    if weights.dtype.kind != "f":
        weights = weights.astype(memory.default_real())
    values = weights.numpy()
    sums = values.sum(-1, dtype=np.float64)
    allowed = 1e-8 if weights.dtype == memory.float64 else 1e-4
    if not (values >= 0).all() or not (abs(sums - 1) < allowed).all():
        raise ArgumentValueError(f"p: expected probabilities with the sum 1, got the sum {sums}")
    return weights


def _distribute(counts: Array, weights: Array, halve: Callable[[Array, Array, Array], Array]) -> Array:
    """Distribute counts to as many places as weights have, by halves: as many kernels as halvings.

    `halve` returns how many of counts go to the first of two parts with sums of weights.
    """
    length = weights.shape[-1]
    size = 1 << max(length - 1, 0).bit_length()
    edge = zeros((*weights.shape[:-1], size - length), weights.dtype)
    level = concatenate([weights, edge], axis=-1)
    levels = []
    while level.shape[-1] > 1:
        levels.append(level)
        level = level[..., ::2] + level[..., 1::2]
    parts = manipulation.expand_dims(counts, -1)
    for level in reversed(levels):
        first = halve(parts, level[..., ::2], level[..., 1::2])
        parts = reshape(stack([first, parts - first], axis=-1), (*counts.shape, level.shape[-1]))
    return parts[..., :length]


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

    Examples
    --------
    >>> rng = vnp.random.default_rng(1)
    >>> rng.integers(0, 10, 5)
    Array([3, 7, 8, 3, 5], dtype=int64)
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, Stream) else Stream(seed, bit_generator))


# ---- the generator that all share ----------------------------------------------------------------

_shared: list[Generator] = []


class _Shared(Generator):
    """The generator of the functions."""

    _may_fall = True


def _common() -> Generator:
    if not _shared:
        _shared.append(_Shared(Stream(None)))
    return _shared[0]


def seed(seed: Any = None) -> None:
    """Reset the generator of the functions in this module. Prefer `default_rng`.

    Examples
    --------
    >>> vnp.random.seed(1)
    >>> x = vnp.random.rand(3)
    >>> vnp.random.seed(1)
    >>> vnp.array_equal(x, vnp.random.rand(3))
    True
    """
    _shared[:] = [_Shared(default_rng(seed).bit_generator)]


def rand(*shape: int) -> Array:
    """Return uniformly distributed numbers of [0, 1).

    Examples
    --------
    >>> vnp.random.seed(1)
    >>> vnp.random.rand(2, 3).shape
    (2, 3)
    """
    return _common().random(shape)


def randn(*shape: int) -> Array:
    """Return normally distributed numbers of mean 0 and standard deviation 1.

    Examples
    --------
    >>> vnp.random.seed(1)
    >>> vnp.random.randn(3).shape
    (3,)
    """
    return _common().standard_normal(shape)


def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = memory.int64) -> Array:
    """Return integers of [low, high); of [0, low) without `high`.

    Examples
    --------
    >>> vnp.random.seed(1)
    >>> int(vnp.random.randint(0, 10, 100).max()) < 10
    True
    """
    return _common().integers(low, high, size, dtype)


def random_sample(size: Any = None) -> Array:
    """Return uniformly distributed numbers of [0, 1).

    Examples
    --------
    >>> vnp.random.seed(1)
    >>> vnp.random.random_sample((2, 2)).shape
    (2, 2)
    """
    return _common().random(size)


ranf = sample = random_sample


def __getattr__(name: str) -> Any:
    """Return a method of the generator that all share, such as `normal`."""
    is_shared = not name.startswith("_") and name not in ("bit_generator", "integers", "spawn")
    if is_shared and hasattr(Generator, name):
        return getattr(_common(), name)
    if name in ("RandomState", "get_state", "set_state"):
        raise AttributeError(f"{name}: there is no legacy generator; use default_rng(seed) and its methods")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
