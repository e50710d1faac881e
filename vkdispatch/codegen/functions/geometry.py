"""Geometry of vectors, and matrices."""

from typing import Any

from vkdispatch.base.dtype import (
    DType,
    component_count,
    component_type,
    float16,
    float32,
    is_complex,
    is_float_dtype,
    is_matrix,
    is_scalar,
    is_vector,
    to_matrix,
    to_vector,
)
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen.functions.elementwise import (
    Operand,
    Value,
    all_integers,
    all_numbers,
    fold,
    gives_value,
    operands,
)
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located

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
    "transpose",
]


def _scalar_result(name: str, values: tuple[Any, ...]) -> ShaderVariable:
    kind, parts = ex.meet(operands(name, values), name, floating=True)
    if is_matrix(kind):
        raise located(ArgumentValueError, f"{name}: expected vectors, got {kind.name}")
    parts = [ex.cast(part, kind) for part in parts]
    if is_scalar(kind) and not is_complex(kind):
        # GLSL's function squares: |x| would be infinite where x * x is
        return ShaderVariable(ex.absolute(parts[0] if len(parts) == 1 else ex.add("-", *parts)))
    found = ex.call(name, component_type(_wider(kind)), *(ex.cast(part, _wider(kind)) for part in parts))
    return ShaderVariable(ex.cast(found, component_type(kind)))


def _wider(kind: DType) -> DType:
    """Return the type in which lengths are computed: squares of float16 beyond 255 are infinite."""
    is_half = component_type(kind) is float16 and not is_complex(kind)
    return to_vector(float32, component_count(kind)) if is_half else kind


@gives_value
def length(var: Operand) -> Any:
    """Euclidean length of a vector, or |var|; a scalar.

    That of a float16 vector is computed in float32. Squares of float32 numbers beyond 1.8e19 are infinite,
    and so is the length of their vector: scale it first.
    """
    operands("length", (var,))
    return fold(abs, (var,)) if all_numbers((var,)) else _scalar_result("length", (var,))


@gives_value
def distance(x: Operand, y: Operand) -> Any:
    """Euclidean distance of two points; a scalar. See `length` for precision."""
    operands("distance", (x, y))
    return (
        fold(lambda x, y: abs(y - x), (x, y)) if all_numbers((x, y)) else _scalar_result("distance", (x, y))
    )


@gives_value
def dot(x: Operand, y: Operand) -> Any:
    """Dot product of two vectors; a scalar of their component type."""
    left, right = operands("dot", (x, y))
    if all_integers((x, y)):
        return int(x) * int(y)
    if all_numbers((x, y)):
        return fold(lambda x, y: x * y, (x, y))
    _, (left, right) = ex.meet((left, right), "dot")
    for value in (left, right):
        if is_matrix(value.dtype) or is_complex(value.dtype):
            raise located(ArgumentValueError, f"dot: expected vectors, got {value.dtype.name}")
    return ShaderVariable(ex.dot(left, right))


def _variable(name: str, value: Operand) -> Expr:
    if not isinstance(value, ShaderVariable):
        raise located(
            ArgumentValueError, f"{name}: expected a GPU value, got {value!r} ({type(value).__name__})"
        )
    return value._value()


def cross(x: Value, y: Value) -> ShaderVariable:
    """Cross product of two vectors of three components."""
    values = (_variable("cross", x), _variable("cross", y))
    for value in values:
        if not (is_vector(value.dtype) and value.dtype.child_count == 3):
            raise located(ArgumentValueError, f"cross: expected 3 components, got {value.dtype.name}")
    kind, parts = ex.meet(values, "cross", floating=True)
    return ShaderVariable(ex.call("cross", kind, *(ex.cast(part, kind) for part in parts)))


def normalize(var: Operand) -> ShaderVariable:
    """Vector of length 1 in the direction of `var`. See `length` for precision."""
    value = _variable("normalize", var)
    if not is_float_dtype(value.dtype) or is_matrix(value.dtype):
        raise located(ArgumentValueError, f"normalize: expected a vector of floats, got {value.dtype.name}")
    wide = _wider(value.dtype)
    return ShaderVariable(ex.cast(ex.call("normalize", wide, ex.cast(value, wide)), value.dtype))


def _float_vectors(name: str, *values: Operand) -> tuple[DType, list[Expr]]:
    exprs = [_variable(name, value) for value in values]
    for expr in exprs:
        if not is_float_dtype(expr.dtype) or not (is_vector(expr.dtype) or is_scalar(expr.dtype)):
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
    scalar = component_type(kind)
    if isinstance(eta, Expr) and not is_scalar(eta.dtype):
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
    if not is_matrix(expr.dtype):
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
    if left.dtype is not right.dtype or not _is_float_vector(left.dtype):
        raise located(
            ArgumentValueError,
            f"outer_product: expected two vec2, vec3 or vec4, got {left.dtype.name} and {right.dtype.name}",
        )
    return ShaderVariable(ex.call("outerProduct", to_matrix(left.dtype.child_count), left, right))


def _is_float_vector(kind: DType) -> bool:
    return is_vector(kind) and component_type(kind) is float32 and not is_scalar(kind)


def transpose(var: Value) -> ShaderVariable:
    """Transposed matrix."""
    value = _matrix("transpose", var)
    return ShaderVariable(ex.call("transpose", value.dtype, value))


def determinant(var: Value) -> ShaderVariable:
    """Return the determinant of a matrix."""
    return ShaderVariable(ex.call("determinant", float32, _matrix("determinant", var)))


def inverse(var: Value) -> ShaderVariable:
    """Inverse of a matrix."""
    value = _matrix("inverse", var)
    return ShaderVariable(ex.call("inverse", value.dtype, value))
