"""Distributions that take an unknown number of random words: by rejection, from a stream for each element.

An operation gets a seed, the index of the element, which is its stream, and parameters.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.numpy.core.application import make_operation
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.expressions import INDEX, Operation, evaluate
from vkdispatch.numpy.core.memory import Kind, Shape, int64

_SEED = np.dtype(np.uint64)


def _number(like: Any, value: float) -> Any:
    return vc.to_dtype(like.var_type, value)


def _uniform(stream: Any, like: Any) -> Any:
    """Return a number of (0, 1]."""
    return (_number(like, 1) - stream.uniform(dtype=like.var_type)).to_register()


def _log_ratio(x: Any, y: Any) -> Any:
    """Return lgamma(x) - lgamma(y) by Stirling's series, which keeps the digits of the difference."""
    apart = (x - y).to_register()
    large = vc.min(x, y) >= 20
    high, low = vc.select(large, x, _number(x, 20)), vc.select(large, y, _number(x, 20))
    high, low = high.to_register(), low.to_register()
    near = vc.select(large, apart, _number(x, 0)).to_register()
    series = (low - _number(x, 0.5)) * vc.log1p(near / low) + near * vc.log(high) - near
    first, third = _number(x, 1 / 12), _number(x, 1 / 360)
    a, b = (_number(x, 1) / high).to_register(), (_number(x, 1) / low).to_register()
    rest = (a - b) * (first - third * (a * a + a * b + b * b))
    return vc.select(large, series + rest, vc.lgamma(x) - vc.lgamma(y)).to_register()


def _gamma(seed: Any, index: Any, a: Any, kind: Kind) -> Any:
    """Marsaglia and Tsang (2000); for shapes below one from the next larger one."""
    stream = vc.random.Philox(seed, index)
    small = a < 1
    d = (vc.select(small, a + _number(a, 1), a) - _number(a, 1 / 3)).to_register()
    c = (_number(a, 1) / vc.sqrt(_number(a, 9) * d)).to_register()
    result = vc.new_register(a.var_type, 0)
    # nothing is taken of a shape that is no number
    usable = vc.logical_and(a > 0, vc.isfinite(a))
    waits = vc.new_register(dt.int32, vc.to_dtype(dt.int32, usable))
    with vc.while_block(waits == 1):
        x = stream.normal(dtype=a.var_type)
        u = _uniform(stream, a)
        v = (_number(a, 1) + c * x).to_register()
        cube = (v * v * v).to_register()
        safe = vc.select(v > 0, cube, _number(a, 1)).to_register()
        limit = _number(a, 0.5) * x * x + d - d * safe + d * vc.log(safe)
        with vc.if_block(vc.logical_and(v > 0, vc.log(u) < limit)):
            result[:] = d * cube
            waits[:] = 0
    safe_shape = vc.select(a > 0, a, _number(a, 1)).to_register()
    boost = vc.select(small, vc.pow(_uniform(stream, a), _number(a, 1) / safe_shape), _number(a, 1))
    return vc.select(a > 0, result * boost, _number(a, 0))


def _poisson(seed: Any, index: Any, mean: Any, kind: Kind) -> Any:
    """By products of uniform numbers for small means; else Hoermann's transformed rejection (1993)."""
    stream = vc.random.Philox(seed, index)
    result = vc.new_register(mean.var_type, 0)
    with vc.if_block(mean < 10):
        limit = vc.exp(-mean).to_register()
        product = vc.new_register(mean.var_type, _uniform(stream, mean))
        with vc.while_block(product > limit):
            product[:] = product * _uniform(stream, mean)
            result[:] = result + _number(mean, 1)
    with vc.if_block(vc.logical_and(mean >= 10, vc.isfinite(mean))):
        b = (_number(mean, 0.931) + _number(mean, 2.53) * vc.sqrt(mean)).to_register()
        a = (_number(mean, -0.059) + _number(mean, 0.02483) * b).to_register()
        scale = _number(mean, 1.1239) + _number(mean, 1.1328) / (b - _number(mean, 3.4))
        edge = (_number(mean, 0.9277) - _number(mean, 3.6224) / (b - _number(mean, 2))).to_register()
        level = vc.log(scale).to_register()
        mode = vc.floor(mean).to_register()
        rate, one = vc.log(mean).to_register(), _number(mean, 1)
        # the logarithm of the probability of the mode, by Stirling's series
        off = (mode - mean).to_register()
        highest = off - mode * vc.log1p(off / mean)
        highest = highest - _number(mean, 0.5) * vc.log(_number(mean, 2 * np.pi) * mode)
        highest = highest - _number(mean, 1 / 12) / mode + _number(mean, 1 / 360) / (mode * mode * mode)
        highest = highest.to_register()
        waits = vc.new_register(dt.int32, 1)
        with vc.while_block(waits == 1):
            u = (_uniform(stream, mean) - _number(mean, 0.5)).to_register()
            v = _uniform(stream, mean)
            s = vc.max(_number(mean, 0.5) - vc.abs(u), _number(mean, 1e-30)).to_register()
            k = vc.floor((_number(mean, 2) * a / s + b) * u + mean + _number(mean, 0.43)).to_register()
            inside = vc.logical_and(s >= 0.07, v <= edge)
            possible = vc.logical_and(k >= 0, vc.logical_or(s >= 0.013, v <= s))
            height = vc.log(v) + level - vc.log(a / (s * s) + b)
            place = vc.max(k, _number(mean, 0)).to_register()
            density = highest + (place - mode) * rate - _log_ratio(place + one, mode + one)
            taken = vc.logical_or(inside, vc.logical_and(possible, height <= density))
            with vc.if_block(taken):
                result[:] = k
                waits[:] = 0
    return vc.to_dtype(dt.int64, result)


def _binomial(seed: Any, index: Any, n: Any, p: Any, kind: Kind) -> Any:
    """By inversion for small means; else Hoermann's transformed rejection (1993)."""
    stream = vc.random.Philox(seed, index)
    one, half = _number(p, 1), _number(p, 0.5)
    small = vc.min(p, one - p).to_register()
    rest = (one - small).to_register()
    result = vc.new_register(p.var_type, 0)
    mean = (n * small).to_register()
    with vc.if_block(vc.logical_and(mean < 10, mean > 0)):
        ratio = (small / rest).to_register()
        share = vc.new_register(p.var_type, vc.exp(n * vc.log1p(-small)))
        left = vc.new_register(p.var_type, one - _uniform(stream, p))
        # what is left may exceed the sum of all shares, rounded
        with vc.while_block(vc.logical_and(left > share, vc.logical_and(share > 0, result < n))):
            left[:] = left - share
            result[:] = result + one
            share[:] = share * ratio * (n - result + one) / result
    with vc.if_block(vc.logical_and(mean >= 10, vc.isfinite(mean))):
        spread = vc.sqrt(mean * rest).to_register()
        b = (_number(p, 1.15) + _number(p, 2.53) * spread).to_register()
        a = (_number(p, -0.0873) + _number(p, 0.0248) * b + _number(p, 0.01) * small).to_register()
        edge = (_number(p, 0.92) - _number(p, 4.2) / b).to_register()
        level = ((_number(p, 2.83) + _number(p, 5.1) / b) * spread).to_register()
        odds = vc.log(small / rest).to_register()
        mode = vc.floor((n + one) * small).to_register()
        waits = vc.new_register(dt.int32, 1)
        with vc.while_block(waits == 1):
            u = (_uniform(stream, p) - half).to_register()
            v = _uniform(stream, p)
            s = vc.max(half - vc.abs(u), _number(p, 1e-30)).to_register()
            k = vc.floor((_number(p, 2) * a / s + b) * u + mean + half).to_register()
            possible = vc.logical_and(k >= 0, k <= n)
            inside = vc.logical_and(s >= 0.07, v <= edge)
            place = vc.clamp(k, _number(p, 0), n).to_register()
            height = vc.log(v * level / (a / (s * s) + b))
            density = (place - mode) * odds - _log_ratio(place + one, mode + one)
            density -= _log_ratio(n - place + one, n - mode + one)
            with vc.if_block(vc.logical_and(possible, vc.logical_or(inside, height <= density))):
                result[:] = k
                waits[:] = 0
    return vc.to_dtype(dt.int64, vc.select(p > half, n - result, result))


def _hypergeometric(seed: Any, index: Any, good: Any, bad: Any, sample: Any, kind: Kind) -> Any:
    """One draw after the other for small samples; else Stadlober's ratio of uniforms (1990)."""
    stream = vc.random.Philox(seed, index)
    one, half = _number(good, 1), _number(good, 0.5)
    whole = (good + bad).to_register()
    # what is drawn, or what is left: the smaller part
    drawn = vc.min(sample, whole - sample).to_register()
    result = vc.new_register(good.var_type, 0)
    usable = vc.logical_and(vc.logical_and(good >= 0, bad >= 0), vc.isfinite(whole))
    with vc.if_block(vc.logical_and(usable, vc.logical_and(drawn > 0, drawn <= 10))):
        left = vc.new_register(good.var_type, drawn)
        with vc.while_block(left > 0):
            rest = (whole - drawn + left).to_register()
            taken = stream.uniform(dtype=good.var_type) * rest < good - result
            result[:] = result + vc.select(taken, one, _number(good, 0))
            left[:] = left - one
    with vc.if_block(vc.logical_and(usable, drawn > 10)):
        less, more = vc.min(good, bad).to_register(), vc.max(good, bad).to_register()
        share = (less / whole).to_register()
        centre = (drawn * share + half).to_register()
        spread = vc.sqrt((whole - drawn) * drawn / (whole - one) * share * (one - share) + half)
        spread = spread.to_register()
        width = (_number(good, 1.7155277699214135) * spread + _number(good, 0.8989161620588988)).to_register()
        mode = vc.floor((drawn + one) * (less + one) / (whole + _number(good, 2))).to_register()
        end = vc.min(vc.min(drawn, less) + one, vc.floor(centre + _number(good, 16) * spread)).to_register()

        def places(k: Any) -> tuple[Any, ...]:
            return k + one, less - k + one, drawn - k + one, more - drawn + k + one

        waits = vc.new_register(dt.int32, 1)
        with vc.while_block(waits == 1):
            u, v = _uniform(stream, good), _uniform(stream, good)
            place = (centre + width * (v - half) / u).to_register()
            inside = vc.logical_and(place >= 0, place < end)
            k = vc.clamp(vc.floor(place), _number(good, 0), vc.min(drawn, less)).to_register()
            height = -sum(map(_log_ratio, places(k), places(mode)))
            with vc.if_block(vc.logical_and(inside, _number(good, 2) * vc.log(u) <= height)):
                result[:] = k
                waits[:] = 0
        result[:] = vc.select(good > bad, drawn - result, result)
    return vc.to_dtype(dt.int64, vc.select(drawn < sample, good - result, result))


def _zipf(seed: Any, index: Any, a: Any, kind: Kind) -> Any:
    """By rejection from a rounded Pareto distribution (Devroye 1986, X.6.1)."""
    stream = vc.random.Philox(seed, index)
    one = _number(a, 1)
    # numbers that int64 does not hold are as if they had not been drawn
    most = _number(a, 2.0**62)
    power = (a - one).to_register()
    scale = vc.pow(_number(a, 2), power).to_register()
    least = vc.pow(most, -power).to_register()
    result = vc.new_register(a.var_type, 1)
    usable = vc.logical_and(a > 1, a < 60)  # of larger ones all but one in 2**59 are 1
    waits = vc.new_register(dt.int32, vc.to_dtype(dt.int32, usable))
    with vc.while_block(waits == 1):
        u, v = _uniform(stream, a), _uniform(stream, a)
        k = vc.floor(vc.pow(least + (one - least) * u, -one / power)).to_register()
        safe = vc.clamp(k, one, most).to_register()
        # (1 + 1/k)**power - 1, also for large k
        step = vc.expm1(power * vc.log1p(one / safe)).to_register()
        with vc.if_block(vc.logical_and(k <= most, v * safe * step * scale <= (step + one) * (scale - one))):
            result[:] = safe
            waits[:] = 0
    return vc.to_dtype(dt.int64, result)


def _vonmises(seed: Any, index: Any, mu: Any, kappa: Any, kind: Kind) -> Any:
    """By rejection from a wrapped Cauchy distribution (Best and Fisher 1979), written for half angles.

    Half angles keep their digits where the distribution is narrow.
    """
    stream = vc.random.Philox(seed, index)
    one, two, pi = _number(kappa, 1), _number(kappa, 2), _number(kappa, np.pi)
    usable = vc.logical_and(kappa > 1e-8, vc.isfinite(kappa))
    safe = vc.select(usable, kappa, one).to_register()
    twice = (two * safe).to_register()
    inverse = (one / vc.max(twice, one)).to_register()
    root = vc.select(twice > 1, twice * vc.sqrt(one + inverse * inverse), vc.sqrt(one + twice * twice))
    root = root.to_register()
    tau = (one + root).to_register()
    slope = vc.sqrt(two * tau).to_register()
    rho = (twice / (tau + slope)).to_register()
    # 1 - rho and what follows from it, without differences of near numbers
    apart = ((one + one / (root + twice) + slope) / (tau + slope)).to_register()
    excess = (apart * apart / (two * rho)).to_register()
    # the angle's half has this sine
    sine = vc.new_register(kappa.var_type, 0)
    waits = vc.new_register(dt.int32, vc.to_dtype(dt.int32, usable))
    with vc.while_block(waits == 1):
        turn = vc.sin(_uniform(stream, kappa) * pi / two).to_register()
        depth = (two * turn * turn).to_register()
        off = (excess * depth / (excess + two - depth)).to_register()
        c = (safe * (excess + off)).to_register()
        v = _uniform(stream, kappa)
        taken = vc.logical_or(c * (two - c) > v, vc.log(c / v) + one >= c)
        with vc.if_block(taken):
            sine[:] = vc.sqrt(off / two)
            waits[:] = 0
    angle = (two * vc.asin(vc.min(sine, one))).to_register()
    u = stream.uniform(dtype=kappa.var_type)
    signed = vc.select(u < 0.5, -angle, angle)
    around = vc.select(kappa <= 1e-8, (two * u - one) * pi, signed)
    turned = (mu + around).to_register()
    wrapped = (turned - two * pi * vc.floor((turned + pi) / (two * pi))).to_register()
    # infinite kappa is a constant, what is no number stays so
    return vc.select(vc.isnan(kappa), kappa, wrapped)


def _integers(seed: Any, index: Any, low: Any, high: Any, kind: Kind) -> Any:
    """By Lemire's method (2019); `high` is included."""
    stream = vc.random.Philox(seed, index)
    unsigned = dt.uint64
    start = vc.to_dtype(unsigned, low).to_register()
    span = (vc.to_dtype(unsigned, high) - start).to_register()
    is_all = (span + 1 == 0).to_register()
    count = vc.select(is_all, vc.to_dtype(unsigned, 1), span + 1).to_register()
    offset = stream.integers(vc.to_dtype(unsigned, 0).to_register(), count, dtype=unsigned)
    offset = vc.select(is_all, stream.uint64(), offset)
    return vc.to_dtype(low.var_type, start + offset)


GAMMA = Operation("gamma", _gamma)
POISSON = Operation("poisson", _poisson)
BINOMIAL = Operation("binomial", _binomial)
HYPERGEOMETRIC = Operation("hypergeometric", _hypergeometric)
ZIPF = Operation("zipf", _zipf)
VONMISES = Operation("vonmises", _vonmises)
INTEGERS = Operation("integers", _integers)


def draw(operation: Operation, seed: Array, parameters: Sequence[Any], shape: Shape, kind: Kind) -> Array:
    """Return numbers of a distribution: integers, or real numbers of the default dtype.

    `seed` is a uint64, with which all elements have streams of their own. `kind` is the dtype of the
    parameters, and also of the results of `INTEGERS`.
    """
    values = [value_of(each.astype(kind)) if isinstance(each, Array) else each for each in parameters]
    kinds = (_SEED, _SEED, *(kind for _ in values))
    result = kind if operation in (GAMMA, VONMISES, INTEGERS) else int64
    operands = (value_of(seed), INDEX, *values)
    return array_of(evaluate(make_operation(operation, operands, kinds, shape, result)))
