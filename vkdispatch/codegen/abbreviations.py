"""Short names of dtypes and annotations, meant for `from vkdispatch.codegen.abbreviations import *`."""

import vkdispatch.codegen.arguments as _arguments
from vkdispatch.base import dtype as _dtype

bf16 = _dtype.bfloat16
b8 = _dtype.bool_
c32 = _dtype.complex32
c64 = _dtype.complex64
c128 = _dtype.complex128
dv2 = _dtype.dvec2
dv3 = _dtype.dvec3
dv4 = _dtype.dvec4
f16 = _dtype.float16
f32 = _dtype.float32
f64 = _dtype.float64
hv2 = _dtype.hvec2
hv3 = _dtype.hvec3
hv4 = _dtype.hvec4
ihv2 = _dtype.ihvec2
ihv3 = _dtype.ihvec3
ihv4 = _dtype.ihvec4
i8 = _dtype.int8
i16 = _dtype.int16
i32 = _dtype.int32
i64 = _dtype.int64
iv2 = _dtype.ivec2
iv3 = _dtype.ivec3
iv4 = _dtype.ivec4
m2 = _dtype.mat2
m3 = _dtype.mat3
m4 = _dtype.mat4
uhv2 = _dtype.uhvec2
uhv3 = _dtype.uhvec3
uhv4 = _dtype.uhvec4
u8 = _dtype.uint8
u16 = _dtype.uint16
u32 = _dtype.uint32
u64 = _dtype.uint64
uv2 = _dtype.uvec2
uv3 = _dtype.uvec3
uv4 = _dtype.uvec4
v2 = _dtype.vec2
v3 = _dtype.vec3
v4 = _dtype.vec4
Buff = _arguments.Buffer
Const = _arguments.Constant
Img1 = _arguments.Image1D
Img2 = _arguments.Image2D
Img3 = _arguments.Image3D
SImg1 = _arguments.StorageImage1D
SImg2 = _arguments.StorageImage2D
SImg3 = _arguments.StorageImage3D
Var = _arguments.Variable
