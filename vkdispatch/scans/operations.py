"""The operations of scans: any associative function, applied in the order of the elements."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import (
    DType,
    component_count,
    component_type,
    compute_type,
    is_complex,
    is_float_dtype,
    is_matrix,
    is_scalar,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.control_flow.replacement import prepare_function
from vkdispatch.families.values import integer_limits, is_expression, parse_infinity


@record
class ScanOp:
    """An associative operation, which keeps the order of its operands.

    Attributes
    ----------
    name
        Its name in names of kernels and in messages.
    function
        Combines two GPU values, the earlier one first.
    kind
        The dtype that it combines.
    identity
        Components of the identity, as numbers; None if there is none.
    is_expression
        Whether the function is one expression of its operands.
    is_commutative
        Whether the operands may be exchanged, apart from rounding.
    edition
        The version of the function, by what it reads from outside.
    """

    name: str
    function: Callable[[Any, Any], Any]
    kind: DType
    identity: tuple[Any, ...] | None
    is_expression: bool
    is_commutative: bool = False
    edition: Any = None

    def combine(self, x: Any, y: Any) -> Any:
        """Return two values combined, in a register."""
        if self.is_expression:
            return self._apply(x, y).to_register()
        register = vc.new_register(self.kind)
        with vc.scope_block():
            register[:] = self._apply(x.to_register(), y.to_register())
        return register

    def _apply(self, x: Any, y: Any) -> Any:
        result = prepare_function(self.function)(x, y)
        if isinstance(result, ShaderVariable) and result.var_type is not self.kind:
            return result.to_dtype(self.kind)
        return result

    def neutral(self) -> Any:
        """Return the identity as a GPU value."""
        assert self.identity is not None
        return vc.to_dtype(self.kind, *self.identity)


def make_operation(
    name: str,
    function: Callable[[Any, Any], Any],
    kind: DType,
    identity: tuple[Any, ...] | None,
    *,
    is_commutative: bool = False,
    edition: Any = None,
) -> ScanOp:
    """Make an operation. It traces the function once, to find out whether it is an expression.

    Raises
    ------
    TypeError, ValueError
        Tracing the function fails.
    """
    who = f"scan {getattr(function, '__name__', 'scan')!r}"
    is_single = is_expression(function, kind, who)
    return ScanOp(name, function, kind, identity, is_single, is_commutative, edition)


def parse_identity(identity: Any, kind: DType) -> tuple[Any, ...] | None:
    """Return the components of an identity of dtype `kind`.

    Parameters
    ----------
    identity
        A number for all components; "inf" or "-inf"; components as `Buffer.read` gives them; or None.

    Raises
    ------
    TypeError, ValueError
        It is none of these.
    """
    if identity is None:
        return None
    if isinstance(identity, str):
        identity = parse_infinity(identity, kind)
    count = component_count(kind)
    try:
        array = np.asarray(identity)
        numbers = np.asarray(array, np.complex128 if is_complex(kind) else np.result_type(array, np.int8))
    except (TypeError, ValueError):
        numbers = np.zeros(0, object)
    if numbers.dtype.kind not in "iufc" or not numbers.size:
        raise ArgumentTypeError(f"identity: expected a number, 'inf' or '-inf', got {identity!r}")
    if numbers.dtype.kind == "c" and not is_complex(kind):
        raise ArgumentValueError(f"identity: {identity!r} is not a {kind.name}; pass a real number")
    if is_complex(kind):
        if numbers.size != 1:
            raise ArgumentValueError(f"identity: expected one number for {kind.name}, got {identity!r}")
        number = complex(numbers.reshape(-1)[0])
        return (number.real, number.imag)
    if is_matrix(kind) and numbers.size == 1 and numbers.reshape(-1)[0] != 0:
        raise ArgumentValueError(
            f"identity: expected all components of a {kind.name}, such as numpy.eye({kind.child_count}), "
            f"got {identity!r}"
        )
    if numbers.size not in (1, count):
        raise ArgumentValueError(
            f"identity: expected {count} components for {kind.name}, got {numbers.size} of them"
        )
    flat = np.broadcast_to(numbers.reshape(-1), count) if numbers.size == 1 else numbers.reshape(-1)
    return tuple(_convert_number(value.item(), component_type(kind), identity) for value in flat)


def _convert_number(value: Any, kind: DType, identity: Any) -> Any:
    if is_float_dtype(compute_type(kind)):
        return float(value)
    low, high = integer_limits(kind)
    if isinstance(value, float) and math.isinf(value):
        return high if value > 0 else low
    if value != int(value):
        raise ArgumentValueError(f"identity: {identity!r} is not a {kind.name}; pass an integer")
    if not low <= int(value) <= high:
        raise ArgumentValueError(f"identity: {identity!r} does not fit in {kind.name}")
    return int(value)


def largest(a: Any, b: Any) -> Any:
    """Return the larger of two values as `numpy.maximum`: NaN if one is NaN, the first of equal ones."""
    first = a >= b
    return vc.select(vc.any(first, vc.isnan(a)) if is_float_dtype(a.var_type) else first, a, b)


def smallest(a: Any, b: Any) -> Any:
    """Return the smaller of two values as `numpy.minimum`: NaN if one is NaN, the first of equal ones."""
    first = a <= b
    return vc.select(vc.any(first, vc.isnan(a)) if is_float_dtype(a.var_type) else first, a, b)


# The function and the identity of each.
ACCUMULATIONS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "cumsum": (operator.add, 0),
    "cumprod": (operator.mul, 1),
    "cummax": (largest, "-inf"),
    "cummin": (smallest, "inf"),
}


def check_dtype(name: str, kind: DType) -> None:
    """Raise ValueError if one of `ACCUMULATIONS` is not defined for a dtype."""
    if name in ("cummax", "cummin") and (is_complex(kind) or is_matrix(kind) or not is_scalar(kind)):
        raise ArgumentValueError(
            f"x: {kind.name} has no order, which {name} needs; map it to a number, such as its magnitude"
        )
    if name == "cumprod" and is_matrix(kind):
        raise ArgumentValueError(
            f"x: the product of {kind.name} is ambiguous; define it: @vd.scan() def product(a: ..., b: ...): "
            "return a @ b"
        )
