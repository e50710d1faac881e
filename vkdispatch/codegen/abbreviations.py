"""Short names of dtypes and annotations, meant for `from vkdispatch.codegen.abbreviations import *`."""

from vkdispatch.base.dtype import bfloat16 as bf16
from vkdispatch.base.dtype import bool_ as b8
from vkdispatch.base.dtype import complex32 as c32
from vkdispatch.base.dtype import complex64 as c64
from vkdispatch.base.dtype import complex128 as c128
from vkdispatch.base.dtype import dvec2 as dv2
from vkdispatch.base.dtype import dvec3 as dv3
from vkdispatch.base.dtype import dvec4 as dv4
from vkdispatch.base.dtype import float16 as f16
from vkdispatch.base.dtype import float32 as f32
from vkdispatch.base.dtype import float64 as f64
from vkdispatch.base.dtype import hvec2 as hv2
from vkdispatch.base.dtype import hvec3 as hv3
from vkdispatch.base.dtype import hvec4 as hv4
from vkdispatch.base.dtype import ihvec2 as ihv2
from vkdispatch.base.dtype import ihvec3 as ihv3
from vkdispatch.base.dtype import ihvec4 as ihv4
from vkdispatch.base.dtype import int8 as i8
from vkdispatch.base.dtype import int16 as i16
from vkdispatch.base.dtype import int32 as i32
from vkdispatch.base.dtype import int64 as i64
from vkdispatch.base.dtype import ivec2 as iv2
from vkdispatch.base.dtype import ivec3 as iv3
from vkdispatch.base.dtype import ivec4 as iv4
from vkdispatch.base.dtype import mat2 as m2
from vkdispatch.base.dtype import mat3 as m3
from vkdispatch.base.dtype import mat4 as m4
from vkdispatch.base.dtype import uhvec2 as uhv2
from vkdispatch.base.dtype import uhvec3 as uhv3
from vkdispatch.base.dtype import uhvec4 as uhv4
from vkdispatch.base.dtype import uint8 as u8
from vkdispatch.base.dtype import uint16 as u16
from vkdispatch.base.dtype import uint32 as u32
from vkdispatch.base.dtype import uint64 as u64
from vkdispatch.base.dtype import uvec2 as uv2
from vkdispatch.base.dtype import uvec3 as uv3
from vkdispatch.base.dtype import uvec4 as uv4
from vkdispatch.base.dtype import vec2 as v2
from vkdispatch.base.dtype import vec3 as v3
from vkdispatch.base.dtype import vec4 as v4
from vkdispatch.codegen.arguments import Buffer as Buff
from vkdispatch.codegen.arguments import Constant as Const
from vkdispatch.codegen.arguments import Image1D as Img1
from vkdispatch.codegen.arguments import Image2D as Img2
from vkdispatch.codegen.arguments import Image3D as Img3
from vkdispatch.codegen.arguments import StorageImage1D as SImg1
from vkdispatch.codegen.arguments import StorageImage2D as SImg2
from vkdispatch.codegen.arguments import StorageImage3D as SImg3
from vkdispatch.codegen.arguments import Variable as Var

__all__ = [
    "Buff",
    "Const",
    "Img1",
    "Img2",
    "Img3",
    "SImg1",
    "SImg2",
    "SImg3",
    "Var",
    "b8",
    "bf16",
    "c32",
    "c64",
    "c128",
    "dv2",
    "dv3",
    "dv4",
    "f16",
    "f32",
    "f64",
    "hv2",
    "hv3",
    "hv4",
    "i8",
    "i16",
    "i32",
    "i64",
    "ihv2",
    "ihv3",
    "ihv4",
    "iv2",
    "iv3",
    "iv4",
    "m2",
    "m3",
    "m4",
    "u8",
    "u16",
    "u32",
    "u64",
    "uhv2",
    "uhv3",
    "uhv4",
    "uv2",
    "uv3",
    "uv4",
    "v2",
    "v3",
    "v4",
]
