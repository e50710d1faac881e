"""Complex numbers: making and multiplying them."""

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import cross_type
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.functions.trigonometry import Operand
from vkdispatch.codegen.trace.current import has_flag
from vkdispatch.codegen.trace.operands import parse_components
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op, ShaderFlags
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located

__all__ = ["complex_from_euler_angle", "mult_complex", "to_complex"]


def complex_from_euler_angle(angle: Operand) -> ShaderVariable:
    """(cos(angle), sin(angle)) as a complex number of the angle's width.

    Raises TypeError for no GPU scalar.
    """
    if not isinstance(angle, ShaderVariable) or not dt.is_scalar(angle.var_type):
        raise located(ArgumentTypeError, f"complex_from_euler_angle: expected a GPU scalar, got {angle!r}")
    kind = dt.make_floating_dtype(angle.var_type)
    value = ex.cast(angle._value(), kind)
    exact = has_flag(ShaderFlags.PRECISE_MATH)
    parts = tuple(
        ex.elementary(function, kind, (value,), glsl=function, precise=exact) for function in ("cos", "sin")
    )
    return ShaderVariable(Expr(Op.CONSTRUCT, dt.complex_from_float(kind), parts, None, here()))


def mult_complex(arg1: Operand | complex, arg2: Operand | complex) -> ShaderVariable:
    """Product of two complex values; numbers count as complex. Raises TypeError for other GPU values."""
    kind: dt.DType | None = None
    for value in (arg1, arg2):
        if isinstance(value, ShaderVariable):
            if not dt.is_complex(value.var_type):
                raise located(
                    ArgumentTypeError, f"mult_complex: expected complex values, got {value.var_type.name}"
                )
            kind = cross_type(kind, value.var_type) if kind else value.var_type
    left, right = (
        ex.as_complex(value, kind or dt.complex64) for value in parse_components((arg1, arg2), "mult_complex")
    )
    return ShaderVariable(ex.complex_product(left, right))


def complex_type(args: list[Expr | int | float | complex], what: str) -> dt.DType:
    """Complex type that holds real or complex arguments. Raises TypeError for vectors and matrices."""
    kind: dt.DType | None = None
    for arg in args:
        if not isinstance(arg, Expr):
            continue
        if not (dt.is_scalar(arg.dtype) or dt.is_complex(arg.dtype)):
            raise located(ArgumentTypeError, f"{what}: expected real or complex values, got {arg.dtype.name}")
        wide = dt.complex_from_float(dt.make_floating_dtype(dt.component_type(arg.dtype)))
        kind = cross_type(kind, wide) if kind else wide
    return kind or dt.complex64


def to_complex(*args: Operand | complex) -> ShaderVariable:
    """Complex number of (value) or (real, imaginary), as wide as its parts.

    Raises IndexError without arguments, ValueError for more than two, TypeError for vectors.
    """
    if not args:
        raise located(ArgumentIndexError, "to_complex: expected a value, or a real and an imaginary part")
    if len(args) > 2:
        raise located(ArgumentValueError, f"to_complex: expected one or two values, got {len(args)}")
    parts = parse_components(args, "to_complex")
    return ShaderVariable(ex.construct(complex_type(parts, "to_complex"), parts))
