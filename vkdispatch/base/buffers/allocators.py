"""Short ways to allocate: `vd.buffer_f32(shape)` is `vd.Buffer(shape, vd.float32)`."""

from collections.abc import Callable
from typing import TypeVar

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, Shape

_D = TypeVar("_D", bound=dtype.dtype)


def _allocator(kind: type[_D]) -> Callable[[Shape], Buffer[_D]]:
    def allocate(shape: Shape) -> Buffer[_D]:
        return Buffer(shape, kind)

    allocate.__name__ = allocate.__qualname__ = f"buffer of {kind.name}"
    allocate.__doc__ = f"Allocate a buffer of {kind.name}; see `Buffer`."
    return allocate


buffer_u32 = _allocator(dtype.uint32)
buffer_uv2 = _allocator(dtype.uvec2)
buffer_uv3 = _allocator(dtype.uvec3)
buffer_uv4 = _allocator(dtype.uvec4)
buffer_i32 = _allocator(dtype.int32)
buffer_iv2 = _allocator(dtype.ivec2)
buffer_iv3 = _allocator(dtype.ivec3)
buffer_iv4 = _allocator(dtype.ivec4)
buffer_f32 = _allocator(dtype.float32)
buffer_v2 = _allocator(dtype.vec2)
buffer_v3 = _allocator(dtype.vec3)
buffer_v4 = _allocator(dtype.vec4)
buffer_c64 = _allocator(dtype.complex64)
buffer_u16 = _allocator(dtype.uint16)
buffer_uhv2 = _allocator(dtype.uhvec2)
buffer_uhv3 = _allocator(dtype.uhvec3)
buffer_uhv4 = _allocator(dtype.uhvec4)
buffer_i16 = _allocator(dtype.int16)
buffer_ihv2 = _allocator(dtype.ihvec2)
buffer_ihv3 = _allocator(dtype.ihvec3)
buffer_ihv4 = _allocator(dtype.ihvec4)
buffer_f16 = _allocator(dtype.float16)
buffer_hv2 = _allocator(dtype.hvec2)
buffer_hv3 = _allocator(dtype.hvec3)
buffer_hv4 = _allocator(dtype.hvec4)
buffer_f64 = _allocator(dtype.float64)
buffer_dv2 = _allocator(dtype.dvec2)
buffer_dv3 = _allocator(dtype.dvec3)
buffer_dv4 = _allocator(dtype.dvec4)
