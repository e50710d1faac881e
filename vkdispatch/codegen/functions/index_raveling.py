"""Between flat and multi-dimensional indices, in row-major order.

The names are the reverse of NumPy's.
"""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen.functions.trigonometry import as_value
from vkdispatch.codegen.trace.operands import is_integer_scalar
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located

__all__ = ["ravel_index", "unravel_index"]


def ravel_index(index: Any, shape: Any) -> ShaderVariable:
    """Flat index to position: uvec2 or uvec3 for a shape of 2 or 3 axes; of a buffer's `.shape` always uvec3.

    Raises ValueError for anything but integers.
    """
    flat = _entry("index", index, dt.uint32)
    sizes = [_as(size, dt.uint32) for size in _axes("shape", shape, 2)]
    position: list[Expr] = []
    for axis in reversed(range(1, len(sizes))):
        position.append(ex.modulo(flat, sizes[axis]))
        flat = ex.floor_divide(flat, sizes[axis])
    position.append(flat)
    return ShaderVariable(ex.construct(dt.to_vector(dt.uint32, len(sizes)), position[::-1]))


def unravel_index(index: Any, shape: Any) -> ShaderVariable:
    """Position to flat index: i * s1 + j, or i * (s1 * s2) + j * s2 + k.

    A position of one entry is returned as it is, and one of Python ints in a shape of ints gives an int.
    Raises ValueError for anything but integers, and for a position with more entries than the shape.
    """
    if isinstance(index, ShaderVariable) and is_integer_scalar(index.var_type):
        return index
    first = index[0] if isinstance(index, (tuple, list)) and len(index) == 1 else index
    if ex.is_integer_number(first):
        return as_value(index)
    entries = _axes("index", index, 1)
    sizes = _axes("shape", shape, 1)
    if len(entries) > len(sizes):
        raise located(
            ArgumentValueError, f"index: {len(entries)} entries do not fit a shape of {len(sizes)} axes"
        )
    if all(ex.is_integer_number(value) for value in (*entries, *sizes)):
        return as_value(_flat_int(entries, sizes))
    kinds = [value.dtype for value in (*entries, *sizes) if isinstance(value, Expr)]
    flat = _as(entries[0], kinds[0])
    for axis in range(1, len(entries)):
        flat = ex.add("+", ex.multiply(flat, _as(sizes[axis], kinds[0])), _as(entries[axis], kinds[0]))
    return ShaderVariable(flat)


def _flat_int(entries: Sequence[int], sizes: Sequence[int]) -> int:
    flat = int(entries[0])
    for axis in range(1, len(entries)):
        flat = flat * int(sizes[axis]) + int(entries[axis])
    return flat


def _as(value: Any, kind: dt.DType) -> Expr:
    return ex.cast(value, kind) if isinstance(value, Expr) else ex.literal(int(value), kind)


def _entry(what: str, value: Any, kind: dt.DType) -> Expr:
    if isinstance(value, ShaderVariable) and is_integer_scalar(value.var_type):
        return ex.cast(value._value(), kind)
    if ex.is_integer_number(value):
        return ex.literal(value, kind)
    raise located(ArgumentValueError, f"{what}: expected an integer, got {value!r}")


def _axes(what: str, value: Any, fewest: int) -> list[Any]:
    """Entries of a tuple of ints or of an integer vector, whose fourth component is left out."""
    if isinstance(value, ShaderVariable):
        if not (dt.is_vector(value.var_type) and dt.is_integer_dtype(value.var_type)):
            raise located(
                ArgumentValueError, f"{what}: expected an integer vector, got {value.var_type.name}"
            )
        expr = value._value()
        return [ex.component(expr, axis) for axis in range(min(3, expr.dtype.child_count))]
    entries = [value] if ex.is_integer_number(value) else value
    if not isinstance(entries, (tuple, list)) or not fewest <= len(entries) <= 3:
        raise located(
            ArgumentValueError, f"{what}: expected {fewest} to 3 ints or an integer vector, got {value!r}"
        )
    if not all(ex.is_integer_number(entry) for entry in entries):
        raise located(ArgumentValueError, f"{what}: every entry must be an int, got {value!r}")
    return list(entries)
