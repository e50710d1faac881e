"""Short names to allocate buffers: `vd.buffer_f32(shape)` is `vd.Buffer(shape, vd.float32)`."""

from collections.abc import Callable
from typing import TypeVar

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, Shape

_D = TypeVar("_D", bound=dtype.dtype)


def _make_allocator(kind: type[_D]) -> Callable[[Shape], Buffer[_D]]:
    def allocate(shape: Shape) -> Buffer[_D]:
        return Buffer(shape, kind)

    allocate.__name__ = allocate.__qualname__ = f"buffer of {kind.name}"
    allocate.__doc__ = f"Allocate a buffer of {kind.name}; see `Buffer`."
    return allocate


buffer_u32 = _make_allocator(dtype.uint32)
buffer_uv2 = _make_allocator(dtype.uvec2)
buffer_uv3 = _make_allocator(dtype.uvec3)
buffer_uv4 = _make_allocator(dtype.uvec4)
buffer_i32 = _make_allocator(dtype.int32)
buffer_iv2 = _make_allocator(dtype.ivec2)
buffer_iv3 = _make_allocator(dtype.ivec3)
buffer_iv4 = _make_allocator(dtype.ivec4)
buffer_f32 = _make_allocator(dtype.float32)
buffer_v2 = _make_allocator(dtype.vec2)
buffer_v3 = _make_allocator(dtype.vec3)
buffer_v4 = _make_allocator(dtype.vec4)
buffer_c64 = _make_allocator(dtype.complex64)
buffer_u16 = _make_allocator(dtype.uint16)
buffer_uhv2 = _make_allocator(dtype.uhvec2)
buffer_uhv3 = _make_allocator(dtype.uhvec3)
buffer_uhv4 = _make_allocator(dtype.uhvec4)
buffer_i16 = _make_allocator(dtype.int16)
buffer_ihv2 = _make_allocator(dtype.ihvec2)
buffer_ihv3 = _make_allocator(dtype.ihvec3)
buffer_ihv4 = _make_allocator(dtype.ihvec4)
buffer_f16 = _make_allocator(dtype.float16)
buffer_hv2 = _make_allocator(dtype.hvec2)
buffer_hv3 = _make_allocator(dtype.hvec3)
buffer_hv4 = _make_allocator(dtype.hvec4)
buffer_f64 = _make_allocator(dtype.float64)
buffer_dv2 = _make_allocator(dtype.dvec2)
buffer_dv3 = _make_allocator(dtype.dvec3)
buffer_dv4 = _make_allocator(dtype.dvec4)
