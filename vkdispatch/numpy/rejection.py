"""Distributions that take an unknown number of random words: by rejection, from a stream for each element.

An operation gets a seed, the index of the element, which is its stream, and parameters.
"""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.numpy.core.application import make_operation
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.dtypes import Kind, default_real, int64
from vkdispatch.numpy.core.expressions import INDEX, Operation, evaluate
from vkdispatch.numpy.core.memory import Shape

__all__: list[str] = []

_SEED = np.dtype(np.uint64)


def _number(like: Any, value: float) -> Any:
    return vc.to_dtype(like.var_type, value)


def _uniform(stream: Any, like: Any) -> Any:
    """Return a number of (0, 1]."""
    return (_number(like, 1) - stream.uniform(dtype=like.var_type)).to_register()


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
        rate, level = vc.log(mean).to_register(), vc.log(scale).to_register()
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
            density = place * rate - mean - vc.lgamma(place + _number(mean, 1))
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
        highest = (vc.lgamma(mode + one) + vc.lgamma(n - mode + one)).to_register()
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
            density = highest - vc.lgamma(place + one) - vc.lgamma(n - place + one) + (place - mode) * odds
            with vc.if_block(vc.logical_and(possible, vc.logical_or(inside, height <= density))):
                result[:] = k
                waits[:] = 0
    return vc.to_dtype(dt.int64, vc.select(p > half, n - result, result))


_GAMMA = Operation("gamma", _gamma)
_POISSON = Operation("poisson", _poisson)
_BINOMIAL = Operation("binomial", _binomial)


def _draw(operation: Operation, seed: Array, parameters: tuple[Any, ...], shape: Shape, kind: Kind) -> Array:
    real = default_real()
    values = [value_of(each.astype(real)) if isinstance(each, Array) else each for each in parameters]
    kinds = (_SEED, _SEED, *(real for _ in values))
    node = make_operation(operation, (value_of(seed), INDEX, *values), kinds, shape, kind)
    return array_of(evaluate(node))


def draw_gamma(seed: Array, a: Any, shape: Shape) -> Array:
    """Return gamma-distributed numbers of shape parameters `a` and scale one, from one seed, a uint64."""
    return _draw(_GAMMA, seed, (a,), shape, default_real())


def draw_poisson(seed: Array, mean: Any, shape: Shape) -> Array:
    """Return Poisson-distributed integers."""
    return _draw(_POISSON, seed, (mean,), shape, int64)


def draw_binomial(seed: Array, n: Any, p: Any, shape: Shape) -> Array:
    """Return how many of `n` trials of probability `p` succeed."""
    return _draw(_BINOMIAL, seed, (n, p), shape, int64)
