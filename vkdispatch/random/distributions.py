"""The distributions that generators draw from, given by their arguments."""

import math
import sys

from vkdispatch.base.dtype import (
    DType,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.families.arguments import parse_int, parse_number
from vkdispatch.families.tuning import memoize_numbers
from vkdispatch.families.values import integer_limits
from vkdispatch.random.checking import parse_known_dtype
from vkdispatch.random.launching import Distribution

INTEGERS = (int8, uint8, int16, uint16, int32, uint32, int64, uint64)
_FLOATS = (float32, float64, float16)
# bits of the stream for a number of [0, 1), and the largest of a type
_BITS: dict[DType, int] = {float16: 16, float32: 32, float64: 64}
_LARGEST: dict[DType, float] = {
    float16: 65504.0,
    float32: 0xFFFFFF * 2.0**104,
    float64: sys.float_info.max,
}


@memoize_numbers
def find_uniform(low: object, high: object, dtype: object) -> Distribution:
    """Return the distribution of `Generator.uniform`."""
    first, last = parse_number(low, "low"), parse_number(high, "high")
    kind = parse_known_dtype(dtype, _FLOATS)
    if not max(abs(first), abs(last), abs(last - first)) <= _LARGEST[kind]:
        raise ArgumentValueError(
            f"low, high: {first} and {last}, or their distance, are too large for {kind.name}"
        )
    numbers = () if (first, last) == (0.0, 1.0) else (first, last - first)
    return Distribution("uniform", kind, _BITS[kind], numbers)


@memoize_numbers
def find_normal(loc: object, scale: object, dtype: object) -> Distribution:
    """Return the distribution of `Generator.normal`."""
    kind = parse_known_dtype(dtype, _FLOATS)
    loc, scale = parse_number(loc, "loc"), parse_number(scale, "scale")
    if scale < 0 or math.copysign(1.0, scale) < 0:
        raise ArgumentValueError(f"scale: expected 0 or more, got {scale}")
    if max(abs(loc), scale) > _LARGEST[kind]:
        raise ArgumentValueError(f"loc, scale: {loc} and {scale} are too large for {kind.name}")
    numbers = () if (loc, scale) == (0.0, 1.0) else (loc, scale)
    return Distribution("normal", kind, 64 if kind is float64 else 32, numbers, has_pairs=True)


@memoize_numbers
def find_integers(low: object, high: object, dtype: object, endpoint: int) -> Distribution:
    """Return the distribution of `Generator.integers`."""
    kind = parse_known_dtype(dtype, INTEGERS)
    first, last = (0, low) if high is None else (low, high)
    first, last = parse_int(first, "low"), parse_int(last, "low" if high is None else "high")
    last -= not endpoint
    least, most = integer_limits(kind)
    if last < first:
        raise ArgumentValueError(f"low, high: there are no integers from {first} to {last}")
    if first < least or last > most:
        raise ArgumentValueError(
            f"low, high: {kind.name} cannot represent all integers from {first} to {last}; pass another dtype"
        )
    count = last - first + 1
    bits = 64 if count > 1 << 32 else 32
    surplus = (1 << bits) % count
    start = first & (1 << (64 if kind.item_size == 8 else 32)) - 1
    numbers = (start,) if count > (1 << bits) - 1 else (start, count, surplus)
    return Distribution("integers", kind, bits, numbers, is_rejecting=surplus > 0)
