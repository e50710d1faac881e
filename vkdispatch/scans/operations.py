"""What a scan combines two values with: any associative function, in the order of the elements."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.values.elements import integer_limits
from vkdispatch.arrays.values.operators import is_expression, parse_infinity
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
from vkdispatch.rewrite.functions import inlined


@record
class ScanOp:
    """A way to combine values: associative, but in the order of its operands.

    Attributes
    ----------
    name
        How it is called in names of kernels and in messages.
    function
        Combines two GPU values, the earlier one first.
    kind
        The type that it combines.
    identity
        Components of what changes nothing, as numbers; None if there is none.
    brief
        Whether the function is one expression of its operands.
    commutative
        Whether these may change places, but for the bits of floats.
    """

    name: str
    function: Callable[[Any, Any], Any]
    kind: DType
    identity: tuple[Any, ...] | None
    brief: bool
    commutative: bool = False

    def combined(self, x: Any, y: Any) -> Any:
        """Return two values combined, in a register."""
        if self.brief:
            return self._applied(x, y).to_register()
        register = vc.new_register(self.kind)
        with vc.scope_block():
            register[:] = self._applied(x.to_register(), y.to_register())
        return register

    def _applied(self, x: Any, y: Any) -> Any:
        result = inlined(self.function)(x, y)
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
    commutative: bool = False,
) -> ScanOp:
    """Make an operation. Tracing its function once finds out whether it is an expression.

    Raises
    ------
    TypeError, ValueError
        What the function does is wrong.
    """
    who = f"scan {getattr(function, '__name__', 'scan')!r}"
    return ScanOp(name, function, kind, identity, is_expression(function, kind, who), commutative)


def identity_parts(identity: Any, kind: DType) -> tuple[Any, ...] | None:
    """Return an identity as the numbers that a value of `kind` is made of.

    Parameters
    ----------
    identity
        A number, which every component is; "inf" or "-inf"; components as `Buffer.read` gives them; None.

    Raises
    ------
    TypeError, ValueError
        It is no such thing.
    """
    if identity is None:
        return None
    if isinstance(identity, str):
        identity = parse_infinity(identity, kind)
    count = component_count(kind)
    try:
        given = np.asarray(identity)
        numbers = np.asarray(given, np.complex128 if is_complex(kind) else np.result_type(given, np.int8))
    except (TypeError, ValueError):
        numbers = np.zeros(0, object)
    if numbers.dtype.kind not in "iufc" or not numbers.size:
        raise ArgumentTypeError(f"identity: expected a number, 'inf' or '-inf', got {identity!r}")
    if numbers.dtype.kind == "c" and not is_complex(kind):
        raise ArgumentValueError(f"identity: {identity!r} is no {kind.name}")
    if is_complex(kind):
        if numbers.size != 1:
            raise ArgumentValueError(f"identity: expected one number for {kind.name}, got {identity!r}")
        number = complex(numbers.reshape(-1)[0])
        return (number.real, number.imag)
    if is_matrix(kind) and numbers.size == 1 and numbers.reshape(-1)[0] != 0:
        raise ArgumentValueError(
            f"identity: of {kind.name} give all components, such as numpy.eye({kind.child_count}), "
            f"got {identity!r}"
        )
    if numbers.size not in (1, count):
        raise ArgumentValueError(
            f"identity: expected {count} components for {kind.name}, got {numbers.size} of them"
        )
    flat = np.broadcast_to(numbers.reshape(-1), count) if numbers.size == 1 else numbers.reshape(-1)
    return tuple(_number(value.item(), component_type(kind), identity) for value in flat)


def _number(value: Any, kind: DType, identity: Any) -> Any:
    if is_float_dtype(compute_type(kind)):
        return float(value)
    low, high = integer_limits(kind)
    if isinstance(value, float) and math.isinf(value):
        return high if value > 0 else low
    if value != int(value):
        raise ArgumentValueError(f"identity: {identity!r} is no {kind.name}; give a whole number")
    if not low <= int(value) <= high:
        raise ArgumentValueError(f"identity: {identity!r} does not fit in {kind.name}")
    return int(value)


def largest(a: Any, b: Any) -> Any:
    """Return the larger of two values; NaN if one is, and the first of equals, as `numpy.maximum`."""
    first = a >= b
    return vc.select(vc.any(first, vc.isnan(a)) if is_float_dtype(a.var_type) else first, a, b)


def smallest(a: Any, b: Any) -> Any:
    """Return the smaller of two values; NaN if one is, and the first of equals, as `numpy.minimum`."""
    first = a <= b
    return vc.select(vc.any(first, vc.isnan(a)) if is_float_dtype(a.var_type) else first, a, b)


OURS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "cumsum": (operator.add, 0),
    "cumprod": (operator.mul, 1),
    "cummax": (largest, "-inf"),
    "cummin": (smallest, "inf"),
}


def check_ours(name: str, kind: DType) -> None:
    """Raise ValueError where one of our scans makes no sense for a type."""
    if name in ("cummax", "cummin") and (is_complex(kind) or is_matrix(kind) or not is_scalar(kind)):
        raise ArgumentValueError(
            f"x: {kind.name} has no order, which {name} needs; map it to a number, such as its magnitude"
        )
    if name == "cumprod" and is_matrix(kind):
        raise ArgumentValueError(
            f"x: of {kind.name} say which product: @vd.scan() def product(a: ..., b: ...): return a @ b"
        )


@record
class Facts:
    """What a scan's kernels depend on, of devices: of several the least.

    Attributes
    ----------
    subgroup
        Invocations that exchange values; the whole workgroup, through its memory, without `shuffles`.
    shuffles
        Whether they do so by themselves.
    extended
        Whether that goes for integers of 64 bits.
    longs
        Whether words of 64 bits are loaded and stored at once.
    native
        Whether subgroups have sums and products of their own.
    """

    subgroup: int
    shuffles: bool
    extended: bool
    longs: bool
    native: bool
