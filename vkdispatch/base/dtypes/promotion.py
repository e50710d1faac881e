"""The promotion of dtypes: in which dtype two values meet, in `+` and `-` and in products."""

from vkdispatch.base.dtype import (
    RANKS,
    DType,
    bool_,
    cache,
    complex_from_float,
    component_type,
    int32,
    is_complex,
    is_matrix,
    is_scalar,
    is_vector,
    make_floating_dtype,
    to_vector,
)
from vkdispatch.base.errors import ArgumentValueError


def cross_scalar_scalar(dtype1: DType, dtype2: DType) -> DType:
    """Promoted type of two scalar types. bool_ counts as int32."""
    if not is_scalar(dtype1) or not is_scalar(dtype2):
        raise ArgumentValueError(
            f"cross_scalar_scalar: {dtype1.name} and {dtype2.name} are not both scalar types"
        )
    first, second = (int32 if kind is bool_ else kind for kind in (dtype1, dtype2))
    return first if RANKS[first] >= RANKS[second] else second


def cross_vector_scalar(dtype1: DType, dtype2: DType) -> DType:
    """Promoted type of a vector and a scalar type."""
    if not is_vector(dtype1) or not is_scalar(dtype2):
        raise ArgumentValueError(
            f"cross_vector_scalar: expected a vector and a scalar type, got {dtype1.name} and {dtype2.name}"
        )
    return to_vector(cross_scalar_scalar(component_type(dtype1), dtype2), dtype1.child_count)


def cross_vector_vector(dtype1: DType, dtype2: DType) -> DType:
    """Promoted type of two vector types of equal length. Raises ValueError if the lengths differ."""
    if not is_vector(dtype1) or not is_vector(dtype2) or dtype1.child_count != dtype2.child_count:
        raise ArgumentValueError(
            f"{dtype1.name} and {dtype2.name} cannot be combined: vectors must have the same length"
        )
    return to_vector(cross_scalar_scalar(component_type(dtype1), component_type(dtype2)), dtype1.child_count)


def cross_vector(dtype1: DType, dtype2: DType) -> DType:
    """Promoted type of a vector type and a vector or scalar type."""
    if is_vector(dtype2):
        return cross_vector_vector(dtype1, dtype2)
    if is_scalar(dtype2):
        return cross_vector_scalar(dtype1, dtype2)
    raise ArgumentValueError(
        f"{dtype1.name} and {dtype2.name} cannot be combined: a vector needs a vector or a scalar"
    )


def cross_matrix(dtype1: DType, dtype2: DType) -> DType:
    """Promoted type of a matrix type and the same matrix type or a scalar type."""
    if dtype1 is dtype2 or is_scalar(dtype2):
        return dtype1
    raise ArgumentValueError(
        f"{dtype1.name} and {dtype2.name} cannot be combined: a matrix needs an equal matrix or a scalar"
    )


def _cross_complex(a: DType, b: DType) -> DType:
    if is_vector(b) or is_matrix(b):
        raise ArgumentValueError(f"{a.name} and {b.name} cannot be combined: a complex number needs a number")
    real = make_floating_dtype(component_type(b))
    return complex_from_float(cross_scalar_scalar(component_type(a), real))


@cache
def cross_type(dtype1: DType, dtype2: DType) -> DType:
    """Promoted type of two types in `+` and `-`. Raises ValueError if there is none.

    Examples
    --------
    >>> from vkdispatch.base.dtype import cross_type
    >>> cross_type(vd.int32, vd.float32)
    <class 'vkdispatch.base.dtype.float32'>
    """
    for first, second in ((dtype1, dtype2), (dtype2, dtype1)):
        if is_complex(first):
            return _cross_complex(first, second)
        if is_matrix(first):
            return cross_matrix(first, second)
    if is_vector(dtype1):
        return cross_vector(dtype1, dtype2)
    if is_vector(dtype2):
        return cross_vector(dtype2, dtype1)
    return cross_scalar_scalar(dtype1, dtype2)


def cross_multiply_type(dtype1: DType, dtype2: DType) -> DType:
    """Type of a product: that of `cross_type`, but the vector if a matrix meets a vector of its size.

    Examples
    --------
    >>> from vkdispatch.base.dtype import cross_multiply_type
    >>> cross_multiply_type(vd.float32, vd.vec2)
    <class 'vkdispatch.base.dtype.vec2'>
    """
    for matrix, vector in ((dtype1, dtype2), (dtype2, dtype1)):
        if is_matrix(matrix) and is_vector(vector):
            if vector is not matrix.child_type:
                raise ArgumentValueError(
                    f"{dtype1.name} * {dtype2.name}: the matrix needs a float32 vector of its own size"
                )
            return vector
    return cross_type(dtype1, dtype2)
