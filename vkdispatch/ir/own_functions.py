"""Names of the helper functions that programs call by `Op.CALL`; `glsl.helpers` defines them."""

from vkdispatch.base.dtype import DType, component_type, float64

UMUL_HIGH = "umul_high"
WRAPPED = "wrapped"
INTEGER_POWER = "integer_power"
# The bits of a remainder, of the bits of two floats and of two doubles.
FLOAT_REMAINDER = "float_remainder"
DOUBLE_REMAINDER = "double_remainder"
HALF_OF_DOUBLE = "half_of_double"
HALF_OF_FLOAT = "half_of_float"

# Functions of `glsl.mathematics`, written in float32 and in float64.
SINGLE, DOUBLE = "f32_", "f64_"


def own_name(function: str, kind: DType) -> str:
    """Return the name of a mathematical function for float32 or float64, or vectors of these."""
    return (DOUBLE if component_type(kind) is float64 else SINGLE) + function
