"""What type checkers know of a `ShaderVariable`'s dtype: nothing. Nothing imports this at run time.

A dtype is known once a kernel is traced, so that a value may go wherever a value of any dtype may. It also
takes the place of Python's numbers, as in `total = 0.0` and `total += x[i]`.
"""

from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.codegen.variables import ShaderVariable

# Of these mypy takes the first: in `2 * x` it asks a subclass of int before int. Pyright takes the second: it
# would ask int first, and be content.
class OfAnyDtype(int, float, Any):  # type: ignore[misc]
    # a method of the dataclass whose structure this is
    def __call__(self, *args: Any, **kwargs: Any) -> ShaderVariable: ...

class OfAnyDtype(  # type: ignore[no-redef]  # noqa: F811
    dt.bool_,
    dt.int8,
    dt.int16,
    dt.int32,
    dt.int64,
    dt.uint8,
    dt.uint16,
    dt.uint32,
    dt.uint64,
    dt.bfloat16,
    dt.float16,
    dt.float32,
    dt.float64,
    dt.complex32,
    dt.complex64,
    dt.complex128,
    dt.vec2,
    dt.vec3,
    dt.vec4,
    dt.ivec2,
    dt.ivec3,
    dt.ivec4,
    dt.uvec2,
    dt.uvec3,
    dt.uvec4,
    dt.hvec2,
    dt.hvec3,
    dt.hvec4,
    dt.ihvec2,
    dt.ihvec3,
    dt.ihvec4,
    dt.uhvec2,
    dt.uhvec3,
    dt.uhvec4,
    dt.dvec2,
    dt.dvec3,
    dt.dvec4,
    dt.mat2,
    dt.mat3,
    dt.mat4,
):
    def __call__(self, *args: Any, **kwargs: Any) -> ShaderVariable: ...
