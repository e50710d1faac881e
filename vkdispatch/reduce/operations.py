"""Operations: how a reduction combines two values, and the numbers that change nothing."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.families.values import integer_limits, parse_infinity, wide_type


@dataclass
class ReduceOp:
    """A way to combine values.

    The library chooses the order of operands, so the operation has to be associative and commutative.

    Attributes
    ----------
    name
        The name of the operation in names of kernels and in messages.
    reduction
        Combines two GPU values.
    identity
        The number that does not change others: `reduction(x, identity)` is x. "inf" and "-inf" are
        infinities; for integers, the largest and the smallest number.
    subgroup_reduction
        Combines a value over the subgroup, such as `vc.subgroup_add`; None if there is no such function.
    """

    name: str
    reduction: Callable[[Any, Any], Any]
    identity: Any
    subgroup_reduction: Callable[[Any], Any] | None = None

    def __reduce__(self) -> str | tuple[Any, ...]:
        # copies and other processes get the predefined operation itself, so that `is_predefined` knows it
        global_name = next((name for name, value in globals().items() if value is self), None)
        return global_name or (ReduceOp, (self.name, self.reduction, self.identity, self.subgroup_reduction))


class _PredefinedOp(ReduceOp):
    """An operation whose functions are those of the kernel language, which is imported when they are used."""

    __match_args__ = ("name",)

    def __init__(self, name: str, reduction: Callable[..., Any] | str, identity: Any) -> None:
        self.name, self.identity, self._reduction = name, identity, reduction

    @property
    def reduction(self) -> Callable[..., Any]:  # type: ignore[override]
        """Combines two GPU values."""
        reduction = self._reduction
        return getattr(vc, reduction) if isinstance(reduction, str) else reduction

    @property
    def subgroup_reduction(self) -> Callable[..., Any]:  # type: ignore[override]
        """Combines a value over the subgroup."""
        return getattr(vc, f"subgroup_{self.name}")  # type: ignore[no-any-return]


_PredefinedOp.__qualname__ = "ReduceOp"  # in its `repr`

SubgroupAdd = _PredefinedOp("add", operator.add, 0)
SubgroupMul = _PredefinedOp("mul", operator.mul, 1)
SubgroupMin = _PredefinedOp("min", "min", "inf")
SubgroupMax = _PredefinedOp("max", "max", "-inf")
SubgroupAnd = _PredefinedOp("and", operator.and_, -1)
SubgroupOr = _PredefinedOp("or", operator.or_, 0)
SubgroupXor = _PredefinedOp("xor", operator.xor, 0)

_ORDERING = (SubgroupMin, SubgroupMax)
_BITWISE = (SubgroupAnd, SubgroupOr, SubgroupXor)
_OURS = (SubgroupAdd, SubgroupMul, *_ORDERING, *_BITWISE)


def is_predefined(operation: ReduceOp) -> bool:
    """Whether an operation is predefined: a single expression that has each operand once."""
    return any(operation is known for known in _OURS)


def check_operation(operation: ReduceOp, kind: dtype.DType) -> None:
    """Raise ValueError if an operation is not defined for values of a type."""
    if kind is dtype.bool_:
        raise ArgumentValueError(
            f"reduction {operation.name!r}: results of booleans are not stored; map them to vd.uint32"
        )
    if any(operation is known for known in _BITWISE) and not dtype.is_integer_dtype(wide_type(kind)):
        raise ArgumentValueError(
            f"reduction {operation.name!r}: expected integers, got {kind.name}; and, or, xor combine bits"
        )
    if any(operation is known for known in _ORDERING) and (dtype.is_complex(kind) or dtype.is_matrix(kind)):
        raise ArgumentValueError(
            f"reduction {operation.name!r}: {kind.name} has no order; reduce its magnitude, or its components"
        )
    if operation is SubgroupMul and dtype.is_matrix(kind):
        raise ArgumentValueError(
            f"reduction 'mul': products of {kind.name} depend on their order, which a reduction does not keep"
        )


def check_identity(identity: object, kind: dtype.DType) -> None:
    """Raise TypeError or ValueError if a value cannot be the identity for a type."""
    if isinstance(identity, str):
        parse_infinity(identity, kind)
        return
    try:
        number = complex(identity)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"identity: expected a number, 'inf' or '-inf', got {identity!r}") from None
    if number.imag and not dtype.is_complex(kind):
        raise ArgumentValueError(f"identity: {identity!r} is not a {kind.name}; pass a real number")
    whole = dtype.is_integer_dtype(wide_type(kind))
    if whole and not math.isinf(number.real) and number.real != int(number.real):
        raise ArgumentValueError(f"identity: {identity!r} is not a {kind.name}; pass an integer")


def find_identity(operation: ReduceOp, kind: dtype.DType) -> Any:
    """Return the identity as a number that `wide_type(kind)`, in which values are combined, holds."""
    number: Any = operation.identity
    if isinstance(number, str):
        number = float(number)
    if hasattr(number, "item"):
        number = number.item()
    wide = dtype.component_type(wide_type(kind))
    if dtype.is_float_dtype(wide):
        return number if isinstance(number, complex) else float(number)
    low, high = integer_limits(dtype.component_type(kind))
    if isinstance(number, float) and math.isinf(number):
        return high if number > 0 else low
    # -1 has all bits set, also in unsigned types
    return (int(number) - low) % (high - low + 1) + low


def find_extreme_identity(kind: dtype.DType, largest: bool) -> Any:
    """Return the number that changes no maximum (or minimum) of components of a type."""
    if kind is dtype.bool_:
        return 0 if largest else 1
    return find_identity(SubgroupMax if largest else SubgroupMin, kind)


def make_number(number: Any, kind: dtype.DType) -> Any:
    """Return a number as a GPU value: for all components, or as a real number of a complex type."""
    if dtype.is_matrix(kind) and number == 0:
        return vc.to_dtype(kind, *(0.0,) * (kind.child_count**2))
    return vc.to_dtype(kind, number)


def can_combine_in_subgroups(operation: ReduceOp, kind: dtype.DType, features: frozenset[str]) -> bool:
    """Whether the device has a subgroup operation that combines values of a type."""
    if not (dtype.is_scalar(kind) or dtype.is_vector(kind)):
        return False
    if not is_predefined(operation) and operation.subgroup_reduction is None:
        return False
    return can_exchange(kind, features)


def can_exchange(kind: dtype.DType, features: frozenset[str]) -> bool:
    """Whether invocations of a subgroup can exchange values of a type."""
    if dtype.is_matrix(kind):
        return False
    plain = dtype.component_type(kind) in (dtype.float32, dtype.float64, dtype.int32, dtype.uint32)
    return plain or "shaderSubgroupExtendedTypes" in features
