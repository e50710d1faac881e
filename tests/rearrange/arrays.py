"""Arrays that tests rearrange, and what they must be equal to: the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

import vkdispatch as vd
from vkdispatch.base.dtype import DType

KINDS: list[DType] = [
    vd.bool_,
    vd.int8,
    vd.uint8,
    vd.int16,
    vd.uint16,
    vd.int32,
    vd.uint32,
    vd.int64,
    vd.uint64,
    vd.float16,
    vd.bfloat16,
    vd.float32,
    vd.float64,
    vd.complex32,
    vd.complex64,
    vd.complex128,
    vd.vec2,
    vd.vec3,
    vd.vec4,
    vd.hvec3,
    vd.dvec3,
    vd.ivec4,
    vd.uhvec2,
    vd.mat2,
    vd.mat3,
    vd.mat4,
]
Array = np.ndarray[Any, Any]


def filled(shape: tuple[int, ...], kind: DType, seed: int = 0) -> tuple[vd.Buffer[Any], Array]:
    """Return a buffer of random bytes that make finite numbers, and what it holds, components last."""
    buffer: vd.Buffer[Any] = vd.Buffer(shape, kind)
    rng = np.random.default_rng(seed)
    octets = rng.integers(0, 2 if kind is vd.bool_ else 60, buffer.mem_size).astype(np.uint8)
    buffer.write(octets.tobytes())
    return buffer, buffer.read(0)


def same(got: vd.Buffer[Any], expected: Array | np.generic, *about: object) -> None:
    """Fail unless a buffer holds these bytes, in this shape and NumPy dtype."""
    found, wanted = got.read(0), np.asarray(expected)
    assert found.shape == wanted.shape, about
    assert found.dtype == wanted.dtype, about
    assert found.tobytes() == wanted.tobytes(), about
