"""Arguments of the language's functions as expressions: GPU values, numbers, indices, dtypes."""

from typing import Any

from vkdispatch.base.derived_dtypes import is_structure
from vkdispatch.base.dtype import (
    DType,
    array_shape,
    bool_,
    compute_type,
    is_array,
    is_buffer_only,
    is_dtype,
    is_integer_dtype,
    is_scalar,
    is_vector,
    item_of,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.host_numpy import np
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located


class GpuValue:
    """A GPU value: an expression, and what it is to the functions that take it."""

    __slots__ = ("expr",)

    expr: Expr

    def _value(self) -> Expr:
        """Return the expression to compute with.

        Raises TypeError where there is no value, as for a whole buffer.
        """
        return self.expr

    def _as_stored(self, kind: DType) -> Expr:
        """Return the expression that a store in a place of type `kind` writes."""
        return ex.storable(self._value(), kind)

    def _extremes(self) -> tuple[int, ...]:
        """Return the least and greatest of the Python integers that this stands for; () for a GPU value."""
        return ()

    def _pending_update(self) -> tuple[Expr, str] | None:
        """Return the place and the operator of `place op= x`, if this is its result, not yet stored."""
        return None


def check_dtype(kind: object, what: str) -> None:
    """Raise TypeError unless `kind` is the dtype of a value."""
    if not isinstance(kind, type) or not is_dtype(kind):
        raise located(ArgumentTypeError, f"{what}: expected a dtype such as vd.float32, got {kind!r}")
    if is_array(kind):
        raise located(
            ArgumentTypeError,
            f"{what}: {kind.__name__} is an array; vc.local_array(vd.{item_of(kind).__name__}, "
            f"{array_shape(kind)}) makes one",
        )
    if is_structure(kind):
        raise located(
            ArgumentTypeError, f"{what}: {kind.name} is no number; its fields are, which a map can give"
        )
    if is_buffer_only(kind):
        raise located(
            ArgumentValueError,
            f"{what}: {kind.__name__} is only for buffers; kernels compute with {compute_type(kind).name}",
        )


def parse_operand(value: object, what: str, error: type[VkDispatchError] = ArgumentValueError) -> Expr:
    """Return the expression of a GPU value or number. Raises `error` for anything else."""
    if isinstance(value, GpuValue):
        return value._value()
    if ex.is_number(value):
        return ex.literal(value, ex.literal_dtype(value))
    raise located(error, f"{what}: expected a GPU value or a number, got {value!r} ({type(value).__name__})")


def parse_components(values: tuple[object, ...], what: str) -> list[Expr | int | float | complex]:
    """Check the arguments of a constructor. Raises TypeError for what is neither a GPU value nor a number."""
    parts: list[Expr | int | float | complex] = []
    for value in values:
        if isinstance(value, GpuValue):
            parts.append(value._value())
        elif ex.is_number(value) or isinstance(value, complex):
            parts.append(value)
        else:
            raise located(
                ArgumentTypeError,
                f"{what}: expected GPU values or numbers, got {value!r} ({type(value).__name__})",
            )
    return parts


def parse_stored_value(value: object, kind: DType) -> Expr:
    """Return what a store of `value` in a place of type `kind` writes.

    Raises TypeError or ValueError if it cannot.
    """
    if isinstance(value, GpuValue):
        return value._as_stored(kind)
    if kind is bool_ and isinstance(value, (bool, np.bool_)):
        return ex.literal(bool(value), kind)
    if ex.is_number(value) or isinstance(value, complex):
        return ex.storable(value, kind)
    given, hint = f"{value!r} ({type(value).__name__})", _hint(value, kind)
    raise located(ArgumentTypeError, f"cannot store {given}; expected a GPU value or a number{hint}")


def _hint(value: object, kind: DType) -> str:
    if not isinstance(value, (tuple, list)) or is_scalar(kind):
        return ""
    maker = f"vc.to_{kind.name}(...)" if is_vector(kind) else f"vc.to_dtype(vd.{kind.__name__}, ...)"
    return f"; {maker} makes a {kind.name} of components"


def parse_index(index: Any, what: str, error: type[VkDispatchError]) -> int | Expr:
    """Return an index as an int or an integer scalar. Raises `error` for anything else."""
    if isinstance(index, tuple):
        if len(index) != 1:
            raise located(ArgumentValueError, f"{what} takes one index, got {len(index)}")
        (index,) = index
    if isinstance(index, GpuValue):
        expr = index._value()
        if is_scalar(expr.dtype) and is_integer_dtype(expr.dtype):
            return expr
        raise located(error, f"the index of {what} must be an integer scalar, got {expr.dtype.name}")
    if ex.is_integer_number(index):
        return int(index)
    raise located(error, f"the index of {what} must be an integer, got {index!r} ({type(index).__name__})")
