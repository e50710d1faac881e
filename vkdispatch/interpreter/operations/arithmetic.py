"""Operators of GLSL on NumPy rows, in the precision of their operands."""

from collections.abc import Callable

import numpy as np

from vkdispatch.base.dtype import DType, is_matrix, is_vector
from vkdispatch.interpreter.values import Array, align


def divide_truncated(a: Array, b: Array) -> Array:
    """Return the quotient of integers, rounded towards zero. A division by zero gives an arbitrary number."""
    # the remainder has the sign of `a`, so this division is exact
    result: Array = np.floor_divide(a - np.fmod(a, b), b)
    return result


def _divide(a: Array, b: Array) -> Array:
    return np.divide(a, b) if a.dtype.kind == "f" else divide_truncated(a, b)


_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    # SPIR-V's OpSMod, which GLSL's % becomes: the sign of the divisor
    "%": np.mod,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
}
_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def apply_binary(symbol: str, kinds: tuple[DType, DType], a: Array, b: Array) -> Array:
    """Compute `a symbol b`."""
    if symbol == "*" and any(is_matrix(kind) for kind in kinds):
        product = _multiply_matrices(kinds, a, b)
        if product is not None:
            return product
    if symbol in ("<<", ">>"):
        b = b.astype(a.dtype)
    a, b = align(a, b)
    return _ARITHMETIC[symbol](a, b)


def _multiply_matrices(kinds: tuple[DType, DType], a: Array, b: Array) -> Array | None:
    # a row holds columns, so what NumPy sees is the transposed matrix
    left, right = kinds
    product: Array | None = None
    if is_matrix(left) and is_matrix(right):
        product = np.matmul(b, a)
    elif is_matrix(left) and is_vector(right):
        product = np.matmul(b[:, None, :], a)[:, 0, :]
    elif is_vector(left) and is_matrix(right):
        product = np.matmul(b, a[:, :, None])[:, :, 0]
    return product


def apply_unary(symbol: str, a: Array) -> Array:
    """Compute `symbol a`."""
    if symbol == "-":
        return np.negative(a)
    return np.logical_not(a) if a.dtype.kind == "b" else np.invert(a)


def apply_comparison(symbol: str, a: Array, b: Array) -> Array:
    """Compare scalars. Vectors and matrices are equal if all components are."""
    result = _COMPARISONS[symbol](a, b)
    if result.ndim == 1:
        return result
    axes = tuple(range(1, result.ndim))
    whole: Array = np.any(result, axis=axes) if symbol == "!=" else np.all(result, axis=axes)
    return whole
