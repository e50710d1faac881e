"""Names of the functions of our own that programs call by `Op.CALL`; `glsl.helpers` has their texts."""

from vkdispatch.base.dtype import DType, component_type, float64

UMUL_HIGH = "umul_high"
WRAPPED = "wrapped"
HALF_MODULO = "half_modulo"
HALF_QUOTIENT = "half_quotient"

# Functions of `glsl.mathematics`, written in float32 and in float64.
SINGLE, DOUBLE = "f32_", "f64_"


def own_name(function: str, kind: DType) -> str:
    """Return what a function of mathematics is called for float32 or float64, or vectors of them."""
    return (DOUBLE if component_type(kind) is float64 else SINGLE) + function
