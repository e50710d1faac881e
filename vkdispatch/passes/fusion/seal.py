"""Values that are kept from what compilers know of them."""

from vkdispatch.base.dtype import (
    component_count,
    component_type,
    float32,
    float64,
    is_scalar,
    to_vector,
    uint32,
    uvec2,
)
from vkdispatch.ir import (
    Argument,
    Expr,
    Op,
)
from vkdispatch.passes.builders import components


def seal(value: Expr, zero: Argument) -> Expr:
    """Return a value in a way that no compiler sees through: its bits, changed by an argument of zero."""
    kind = value.dtype
    mask = Expr(Op.ARGUMENT, uint32, (), zero)
    if component_type(kind) is float32:
        words = to_vector(uint32, component_count(kind))
        bits = Expr(Op.CALL, words, (value,), "floatBitsToUint")
        return Expr(Op.CALL, kind, (Expr(Op.BINARY, words, (bits, mask), "^"),), "uintBitsToFloat", value.loc)
    parts = tuple(
        Expr(
            Op.CALL,
            float64,
            (Expr(Op.BINARY, uvec2, (Expr(Op.CALL, uvec2, (part,), "unpackDouble2x32"), mask), "^"),),
            "packDouble2x32",
        )
        for part in components(value)
    )
    return parts[0] if is_scalar(kind) else Expr(Op.CONSTRUCT, kind, parts, None, value.loc)
