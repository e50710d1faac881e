"""Element types, and host arrays of them with all sorts of values."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import vkdispatch as vd
from vkdispatch.base.dtype import DType, component_count, component_type, is_vector, to_numpy_dtype

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

INTEGERS = ("int32", "uint8", "int64", "uint32", "int8", "uint16", "int16", "uint64")
FLOATS = ("float32", "float64", "float16")
COMPLEX = ("complex64", "complex128")
REALS = (
    "float32",
    "int32",
    "uint8",
    "int64",
    "float64",
    "uint32",
    "float16",
    "int16",
    "bool_",
    "int8",
    "uint64",
    "uint16",
)
NUMBERS = (*REALS, *COMPLEX)
VECTORS = ("vec2", "ivec3", "uvec4", "vec3", "dvec2", "hvec3", "uhvec2")
KINDS = (*NUMBERS, *VECTORS)


def kind_of(name: str) -> DType:
    """Return the dtype of a name."""
    kind: DType = getattr(vd, name)
    return kind


def host_of(name: str) -> np.dtype[Any]:
    """Return NumPy's type of the components of a dtype, or of a complex number."""
    kind = kind_of(name)
    return np.dtype(to_numpy_dtype(component_type(kind) if is_vector(kind) else kind))


def name_of(host: Any) -> str:
    """Return the name of the dtype of a type of NumPy's."""
    name = np.dtype(host).name
    return "bool_" if name == "bool" else name


def parts_of(name: str) -> tuple[int, ...]:
    """Return the axes that an element has in host memory."""
    kind = kind_of(name)
    return (component_count(kind),) if is_vector(kind) else ()


def values(kind: str, shape: Shape, fill: str, seed: int, limit: int = 0) -> Array:
    """Return an array of a type, filled in one of many ways.

    "small": whole numbers below 10; "normal": normally distributed, integers below 100; "wild": extremes,
    infinities, NaN, zeros of both signs; "few": three different numbers; "bits": any bits; "rising": sorted;
    "index": from -limit to limit - 1; "beyond": three times as far; "below": from 0 to limit - 1; "order": a
    permutation of these; "flags": mostly zeros; "flat": all the same; "starts": "below", sorted;
    "near": close to 1000.
    """
    rng = np.random.default_rng([seed, zlib.crc32(fill.encode())])
    host = host_of(kind)
    whole = (*shape, *parts_of(kind))
    if fill == "bits":
        if host == np.bool_:
            return rng.integers(0, 2, whole).astype(bool)
        count = int(np.prod(whole, dtype=int)) * host.itemsize
        return rng.integers(0, 256, count, np.uint8).view(host).reshape(whole)
    if host.kind == "c":
        part = "float32" if host.itemsize == 8 else "float64"
        real = values(part, shape, fill, seed, limit)
        imaginary = values(part, shape, fill, seed + 1, limit)
        found = np.empty(shape, host)
        found.real, found.imag = real, imaginary
        return found
    return np.asarray(_filled(rng, host, whole, fill, limit), host)


def _filled(rng: np.random.Generator, host: np.dtype[Any], shape: Shape, fill: str, limit: int) -> Array:
    count = int(np.prod(shape, dtype=int))
    unsigned = host.kind in "ub"
    if fill in ("index", "beyond"):
        reach = limit * (3 if fill == "beyond" else 1)
        low = 0 if unsigned else max(-reach, int(np.iinfo(host).min))
        high = min(reach, int(np.iinfo(host).max) + 1)
        return np.asarray(rng.integers(low, max(high, low + 1), shape)).astype(host)
    if fill in ("below", "starts"):
        found = np.asarray(rng.integers(0, max(limit, 1), shape))
        return (np.sort(found, axis=None) if fill == "starts" else found).reshape(shape).astype(host)
    if fill == "order":
        return np.asarray(rng.permutation(count)).reshape(shape).astype(host)
    if fill == "flat":
        return np.full(shape, 3).astype(host)
    if fill == "flags":
        return np.asarray(rng.integers(0, 5, shape) == 0).astype(host)
    if fill == "few":
        return np.asarray(rng.choice(np.array([0, 1, 3] if unsigned else [0, -2, 3]), shape)).astype(host)
    if fill == "wild":
        return np.asarray(rng.choice(_extremes(host), shape)).astype(host)
    if fill == "rising":
        return np.sort(_filled(rng, host, shape, "normal", 0), axis=None).reshape(shape)
    if fill == "near":
        return np.asarray(1000 + rng.integers(-8, 8, shape)).astype(host)
    if fill == "normal":
        if host.kind == "f":
            return np.asarray(rng.standard_normal(shape)).astype(host)
        return np.asarray(rng.integers(0 if unsigned else -100, 100, shape)).astype(host)
    return np.asarray(rng.integers(0 if unsigned else -9, 2 if host.kind == "b" else 10, shape)).astype(host)


def _extremes(host: np.dtype[Any]) -> Array:
    if host.kind == "b":
        return np.array([False, True])
    if host.kind in "iu":
        info = np.iinfo(host)
        numbers = {0, 1, int(info.min), int(info.max), int(info.max) - 1, int(info.max) // 2 + 1}
        return np.array(sorted(numbers), host)
    large = float(np.finfo(host).max)
    # on a few of many, so that most results are no NaN
    rare = [np.nan, np.inf, -np.inf, large, -large]
    return np.array([0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 0.1, 1e-3, 100.0] * 2 + rare, host)
