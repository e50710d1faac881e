"""Components of vectors, complex numbers and matrices, as expressions."""

from typing import Any

from vkdispatch.base.dtype import int32, is_complex, is_matrix, is_scalar, is_vector
from vkdispatch.base.errors import ArgumentIndexError, ArgumentValueError, ComponentError
from vkdispatch.codegen.trace.operands import parse_index
from vkdispatch.compiler.ir import Expr, Op
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.ir.nodes import COMPONENTS


def select_component(value: Expr, letter: str) -> Expr:
    """Return a component of a vector: x, y, z or w."""
    position = COMPONENTS.index(letter)
    if not is_vector(value.dtype) or position >= value.dtype.child_count:
        raise located(ComponentError, f"{value.dtype.name} has no component .{letter}")
    return ex.component(value, position)


def select_part(value: Expr, index: int, name: str) -> Expr:
    """Return the real part (index 0) or the imaginary part (index 1) of a complex number."""
    if not is_complex(value.dtype):
        raise located(ComponentError, f"{value.dtype.name} has no .{name}; only complex values have")
    return ex.component(value, index)


def select_element(value: Expr, index: Any) -> Expr:
    """Return an element of a vector, complex number or matrix."""
    kind = value.dtype
    if is_scalar(kind):
        hint = "; an element of several axes is buf[i, j]" if value.op is Op.ELEMENT else ""
        raise located(ArgumentValueError, f"{kind.name} is a scalar and cannot be indexed{hint}")
    position = parse_index(index, kind.name, ArgumentValueError)
    if isinstance(position, Expr):
        return ex.index(value, position)
    if not 0 <= position < kind.child_count:
        raise located(
            ArgumentIndexError, f"index {position} is out of range for {kind.name} of {kind.child_count}"
        )
    if is_matrix(kind):
        return ex.index(value, ex.literal(position, int32))
    return ex.component(value, position)


def split_components(value: Expr) -> list[Expr]:
    """Return the scalar components of a value in order."""
    kind = value.dtype
    if is_scalar(kind):
        return [value]
    if is_matrix(kind):
        columns = (ex.index(value, ex.literal(i, int32)) for i in range(kind.child_count))
        return [part for column in columns for part in split_components(column)]
    return [ex.component(value, i) for i in range(kind.child_count)]


def is_whole_slice(index: object) -> bool:
    """Whether an index is `[:]`. Raises ValueError for another slice."""
    if not isinstance(index, slice):
        return False
    if index.start is not None or index.stop is not None or index.step is not None:
        raise located(ArgumentValueError, "the only valid slice of a GPU value is x[:]")
    return True
