"""Conversions between types, geometry of vectors, and matrices."""

from collections.abc import Callable
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.functions.trigonometry import (
    Operand,
    Value,
    all_integers,
    all_numbers,
    as_value,
    fold,
    operands,
)
from vkdispatch.codegen.trace.operands import check_dtype, mismatch, parse_components
from vkdispatch.codegen.trace.range_checks import check_conversion
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op, RawText
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located

__all__ = [
    "cross",
    "determinant",
    "distance",
    "dot",
    "faceforward",
    "inverse",
    "length",
    "matrix_comp_mult",
    "normalize",
    "outer_product",
    "reflect",
    "refract",
    "str_to_dtype",
    "to_dtype",
    "transpose",
]


# ---- Conversions between types, and raw GLSL as a value --------------------------------------------------


_SHORT_NAMES: dict[dt.DType, str] = {dt.float32: "float", dt.int32: "int", dt.uint32: "uint"}
_TYPES: tuple[dt.DType, ...] = (
    *(dt.float16, dt.float32, dt.float64, dt.int16, dt.int32, dt.int64, dt.uint16, dt.uint32, dt.uint64),
    *(dt.complex32, dt.complex64, dt.complex128, dt.mat2, dt.mat3, dt.mat4, dt.vec2, dt.vec3, dt.vec4),
    *(dt.hvec2, dt.hvec3, dt.hvec4, dt.dvec2, dt.dvec3, dt.dvec4, dt.ihvec2, dt.ihvec3, dt.ihvec4),
    *(dt.ivec2, dt.ivec3, dt.ivec4, dt.uhvec2, dt.uhvec3, dt.uhvec4, dt.uvec2, dt.uvec3, dt.uvec4),
)
# Types by their names in `vc.to_vec2`, `vc.new_vec2_register`...: `typed_names.pyi` lists these functions.
NAMED_TYPES = {_SHORT_NAMES.get(kind, kind.name): kind for kind in _TYPES}


def to_dtype(var_type: dt.DType, *args: Any) -> ShaderVariable:
    """Make a value of a type from GPU values and numbers: one to convert, or the components in order.

    Raises TypeError for arguments that are neither, ValueError for a wrong count of components.
    """
    check_dtype(var_type, "to_dtype")
    parts = parse_components(args, f"to_dtype({var_type.name})")
    for part in parts:
        if isinstance(part, Expr):
            check_conversion("to_dtype", part, var_type)
    return ShaderVariable(ex.construct(var_type, parts))


def str_to_dtype(
    var_type: dt.DType,
    value: str,
    parents: Any = None,
    lexical_unit: bool = False,
    settable: bool = False,
    register: bool = False,
) -> ShaderVariable:
    """Take GLSL text as a value of a type. `parents` are the GPU values that the text mentions."""
    check_dtype(var_type, "str_to_dtype")
    if not isinstance(value, str):
        raise located(ArgumentTypeError, f"str_to_dtype: expected GLSL text, got {value!r}")
    mentioned = tuple(parent.expr for parent in parents or () if isinstance(parent, ShaderVariable))
    raw = RawText(value, settable, register, lexical_unit)
    return ShaderVariable(Expr(Op.RAW, var_type, mentioned, raw, here()))


def _make_conversion(kind: dt.DType) -> Callable[..., ShaderVariable]:
    def convert(*args: Any) -> ShaderVariable:
        return to_dtype(kind, *args)

    convert.__doc__ = f"Convert to {kind.name}, or make one of its components."
    return convert


for _name, _kind in NAMED_TYPES.items():
    globals()[f"to_{_name}"] = _make_conversion(_kind)
__all__ += [f"to_{name}" for name in NAMED_TYPES]


# ---- Geometry of vectors, and matrices -------------------------------------------------------------------


def _scalar_result(name: str, values: tuple[Any, ...]) -> ShaderVariable:
    kind, parts = ex.meet(operands(name, values), name, floating=True)
    if dt.is_matrix(kind):
        raise located(ArgumentValueError, f"{name}: expected vectors, got {kind.name}")
    parts = [ex.cast(part, kind) for part in parts]
    if dt.is_scalar(kind) and not dt.is_complex(kind):
        # GLSL's function squares: |x| would be infinite where x * x is
        return ShaderVariable(ex.absolute(parts[0] if len(parts) == 1 else ex.add("-", *parts)))
    wide = _wider(kind)
    result = ex.call(name, dt.component_type(wide), *(ex.cast(part, wide) for part in parts))
    return ShaderVariable(ex.cast(result, dt.component_type(kind)))


def _wider(kind: dt.DType) -> dt.DType:
    """Return the type in which lengths are computed: squares of float16 beyond 255 are infinite."""
    is_half = dt.component_type(kind) is dt.float16 and not dt.is_complex(kind)
    return dt.to_vector(dt.float32, dt.component_count(kind)) if is_half else kind


def length(var: Operand) -> ShaderVariable:
    """Euclidean length of a vector, or |var|; a scalar.

    That of a float16 vector is computed in float32. Squares of float32 numbers beyond 1.8e19 are infinite,
    and so is the length of their vector: scale it first.
    """
    return fold(abs, (var,)) if all_numbers((var,)) else _scalar_result("length", (var,))


def distance(x: Operand, y: Operand) -> ShaderVariable:
    """Euclidean distance of two points; a scalar. See `length` for precision."""
    if all_numbers((x, y)):
        return fold(lambda x, y: abs(y - x), (x, y))
    return _scalar_result("distance", (x, y))


def dot(x: Operand, y: Operand) -> ShaderVariable:
    """Dot product of two vectors; a scalar of their component type."""
    left, right = operands("dot", (x, y))
    if all_integers((x, y)):
        return as_value(int(x) * int(y))
    if all_numbers((x, y)):
        return fold(lambda x, y: x * y, (x, y))
    _, (left, right) = ex.meet((left, right), "dot")
    for value in (left, right):
        if dt.is_matrix(value.dtype) or dt.is_complex(value.dtype):
            raise located(ArgumentValueError, f"dot: expected vectors, got {value.dtype.name}")
    return ShaderVariable(ex.dot(left, right))


def _variable(name: str, value: Operand) -> Expr:
    if not isinstance(value, ShaderVariable):
        raise mismatch(f"{name}: expected a GPU value", value, ArgumentValueError)
    return value._value()


def cross(x: Value, y: Value) -> ShaderVariable:
    """Cross product of two vectors of three components."""
    values = (_variable("cross", x), _variable("cross", y))
    for value in values:
        if not (dt.is_vector(value.dtype) and value.dtype.child_count == 3):
            raise located(ArgumentValueError, f"cross: expected 3 components, got {value.dtype.name}")
    kind, parts = ex.meet(values, "cross", floating=True)
    return ShaderVariable(ex.call("cross", kind, *(ex.cast(part, kind) for part in parts)))


def normalize(var: Operand) -> ShaderVariable:
    """Vector of length 1 in the direction of `var`. See `length` for precision."""
    value = _variable("normalize", var)
    if not dt.is_float_dtype(value.dtype) or dt.is_matrix(value.dtype):
        raise located(ArgumentValueError, f"normalize: expected a vector of floats, got {value.dtype.name}")
    wide = _wider(value.dtype)
    return ShaderVariable(ex.cast(ex.call("normalize", wide, ex.cast(value, wide)), value.dtype))


def _float_vectors(name: str, *values: Operand) -> tuple[dt.DType, list[Expr]]:
    exprs = [_variable(name, value) for value in values]
    for expr in exprs:
        if not dt.is_float_dtype(expr.dtype) or not (dt.is_vector(expr.dtype) or dt.is_scalar(expr.dtype)):
            raise located(ArgumentValueError, f"{name}: expected vectors of floats, got {expr.dtype.name}")
    kind, parts = ex.meet(exprs, name)
    return kind, [ex.cast(part, kind) for part in parts]


def reflect(direction: Operand, normal: Operand) -> ShaderVariable:
    """Direction of a ray after a mirror whose normal, of length 1, is given: d - 2 dot(n, d) n."""
    kind, parts = _float_vectors("reflect", direction, normal)
    return ShaderVariable(ex.call("reflect", kind, *parts))


def refract(direction: Operand, normal: Operand, ratio: Operand) -> ShaderVariable:
    """Direction of a ray behind a surface, by Snell's law; zero where all light is reflected.

    `direction` and `normal` have length 1, `ratio` is the quotient of the refractive indices, a scalar.
    """
    kind, parts = _float_vectors("refract", direction, normal)
    (eta,) = operands("refract", (ratio,))
    scalar = dt.component_type(kind)
    if isinstance(eta, Expr) and not dt.is_scalar(eta.dtype):
        raise located(ArgumentValueError, f"refract: the ratio must be a scalar, got {eta.dtype.name}")
    # GLSL has the ratio in single precision, or in that of the vectors
    parts.append(ex.cast(eta, scalar) if isinstance(eta, Expr) else ex.literal(float(eta), scalar))
    return ShaderVariable(ex.call("refract", kind, *parts))


def faceforward(normal: Operand, direction: Operand, reference: Operand) -> ShaderVariable:
    """Return the normal, turned so that it faces against a direction: n if dot(reference, d) < 0, else -n."""
    kind, parts = _float_vectors("faceforward", normal, direction, reference)
    return ShaderVariable(ex.call("faceforward", kind, *parts))


def _matrix(name: str, value: Operand) -> Expr:
    expr = _variable(name, value)
    if not dt.is_matrix(expr.dtype):
        raise located(ArgumentValueError, f"{name}: expected a matrix, got {expr.dtype.name}")
    return expr


def matrix_comp_mult(x: Value, y: Value) -> ShaderVariable:
    """Multiply two matrices component by component."""
    left, right = _matrix("matrix_comp_mult", x), _matrix("matrix_comp_mult", y)
    if left.dtype is not right.dtype:
        raise located(
            ArgumentValueError, f"matrix_comp_mult: {left.dtype.name} and {right.dtype.name} differ in size"
        )
    return ShaderVariable(ex.call("matrixCompMult", left.dtype, left, right))


def outer_product(x: Value, y: Value) -> ShaderVariable:
    """Matrix x * transpose(y) of two equal float32 vector types."""
    left, right = _variable("outer_product", x), _variable("outer_product", y)
    is_float_vector = dt.is_vector(left.dtype) and dt.component_type(left.dtype) is dt.float32
    if left.dtype is not right.dtype or not is_float_vector:
        raise located(
            ArgumentValueError,
            f"outer_product: expected two vec2, vec3 or vec4, got {left.dtype.name} and {right.dtype.name}",
        )
    return ShaderVariable(ex.call("outerProduct", dt.to_matrix(left.dtype.child_count), left, right))


def transpose(var: Value) -> ShaderVariable:
    """Transposed matrix."""
    value = _matrix("transpose", var)
    return ShaderVariable(ex.call("transpose", value.dtype, value))


def determinant(var: Value) -> ShaderVariable:
    """Return the determinant of a matrix."""
    return ShaderVariable(ex.call("determinant", dt.float32, _matrix("determinant", var)))


def inverse(var: Value) -> ShaderVariable:
    """Inverse of a matrix."""
    value = _matrix("inverse", var)
    return ShaderVariable(ex.call("inverse", value.dtype, value))
