"""Atomics: change an element of a buffer or of shared memory in one step, and return what was there before.

They take int32, uint32 and float32 everywhere: where a device has no atomic of float32, one of its bits does.
Those of int64, uint64, float64 and float16 depend on the device: building a kernel for one that has none
raises UnsupportedError and names the Vulkan feature. `mem` is a scalar element such as `buf[i]`, or a
component such as `buf[i].x`; y is a number, or a GPU value that is converted to its type. The result is a
register.
"""

from collections.abc import Callable
from typing import Any, Protocol

from vkdispatch.base.dtype import (
    DType,
    float16,
    float32,
    float64,
    int32,
    int64,
    is_buffer_only,
    is_float_dtype,
    is_integer_dtype,
    is_scalar,
    uint32,
    uint64,
)
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.analyses.contents import stored_to
from vkdispatch.compiler.ir import Expr, Op, SharedArray, Storage, is_constant, is_encoded, root_of
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.passes.lowering import can_be_bits

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_compare_exchange",
    "atomic_exchange",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "atomic_sub",
    "atomic_xor",
]

_INTEGERS = (int32, uint32, int64, uint64)
_FLOATS = (float16, float32, float64)


class AtomicFunction(Protocol):
    """An atomic of an element and one operand."""

    def __call__(self, mem: Any, y: Any) -> ShaderVariable:
        """Change `mem`; returns a register with the value before."""
        ...


def _target(name: str, mem: Any, kinds: tuple[DType, ...]) -> Expr:
    place = mem._value() if isinstance(mem, ShaderVariable) else None
    if place is None or not stored_to(place) or place.dtype not in kinds:
        given = place.dtype.name if place is not None else f"{mem!r} ({type(mem).__name__})"
        if place is not None and is_encoded(root_of(place)):
            kind = _memory_type(place)
            raise located(
                ArgumentTypeError,
                f"{name}: elements of {kind.name} have no atomics; use a buffer of {place.dtype.name}",
            )
        if place is not None and not stored_to(place):
            given += ", " + (
                "whose array is constant"
                if is_constant(root_of(place))
                else "which is no element of a buffer"
            )
        wanted = " or ".join((", ".join(kind.name for kind in kinds[:-1]), kinds[-1].name))
        raise located(
            ArgumentTypeError,
            f"{name}: mem must be an {wanted} element of a buffer or of shared memory, got {given}",
        )
    kind = _memory_type(place)
    if is_buffer_only(kind):
        raise located(
            ArgumentTypeError,
            f"{name}: elements of {kind.name} have no atomics; use a buffer of {place.dtype.name}",
        )
    return place


def _memory_type(place: Expr) -> DType:
    """Type in which the elements lie in memory."""
    root = root_of(place)
    return root.value.dtype if isinstance(root.value, (Storage, SharedArray)) else root.dtype


# Operators whose rules for numbers the functions follow.
_SYMBOLS = {"atomic_add": "+", "atomic_sub": "-", "atomic_and": "&", "atomic_or": "|", "atomic_xor": "^"}


def _operand(name: str, label: str, value: Any, kind: DType) -> Expr:
    if isinstance(value, ShaderVariable):
        expr = value._value()
        fits = is_integer_dtype(expr.dtype) or (is_float_dtype(kind) and is_float_dtype(expr.dtype))
        if is_scalar(expr.dtype) and fits:
            return ex.cast(expr, kind)
        given = expr.dtype.name
    elif ex.is_integer_number(value) or (is_float_dtype(kind) and ex.is_number(value)):
        if name in _SYMBOLS and is_integer_dtype(kind):
            value = ex.changed_number(_SYMBOLS[name], int(value), kind)
        return ex.literal(value, kind, name)
    else:
        given = f"{value!r} ({type(value).__name__})"
    wanted = "a scalar" if is_float_dtype(kind) else "an integer scalar"
    raise located(
        ArgumentTypeError, f"{name}: {label} must be {wanted} where mem is {kind.name}, got {given}"
    )


def _atomic(glsl: str, place: Expr, *operands: Expr) -> ShaderVariable:
    value = Expr(Op.ATOMIC, place.dtype, (place, *operands), glsl, here())
    return ShaderVariable(current().declare(place.dtype, value, local=True))


def _function(
    name: str,
    glsl: str,
    doc: str,
    *,
    kinds: tuple[DType, ...] = _INTEGERS,
    change: Callable[[Expr], Expr] | None = None,
) -> AtomicFunction:
    def function(mem: Any, y: Any) -> ShaderVariable:
        place = _target(name, mem, kinds)
        operand = _operand(name, "y", y, place.dtype)
        return _atomic(glsl, place, operand if change is None else change(operand))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc}

    Takes {", ".join(kind.name for kind in kinds)}. Raises TypeError if `mem` is no such element, or y
    is of another kind.
    """
    return function


_ALL = (*_INTEGERS, *_FLOATS)
atomic_add = _function("atomic_add", "atomicAdd", "Add y to `mem`; integers wrap around.", kinds=_ALL)
atomic_sub = _function(
    "atomic_sub",
    "atomicAdd",
    "Subtract y from `mem`; integers wrap around.",
    kinds=_ALL,
    change=ex.negate,
)
atomic_min = _function("atomic_min", "atomicMin", "Set `mem` to y if that is smaller.", kinds=_ALL)
atomic_max = _function("atomic_max", "atomicMax", "Set `mem` to y if that is larger.", kinds=_ALL)
atomic_and = _function("atomic_and", "atomicAnd", "Keep the bits of `mem` that are also set in y.")
atomic_or = _function("atomic_or", "atomicOr", "Set the bits of `mem` that are set in y.")
atomic_xor = _function("atomic_xor", "atomicXor", "Flip the bits of `mem` that are set in y.")
atomic_exchange = _function("atomic_exchange", "atomicExchange", "Set `mem` to y.", kinds=_ALL)


def atomic_load(mem: Any, *, relaxed: bool = False) -> ShaderVariable:
    """Read `mem` as it is now for all workgroups; a register.

    What an invocation that stored the value by `vc.atomic_store` had written to buffers before is seen by
    what this one reads after; not if `relaxed`: then the value is as fresh, and nothing is said of others.
    On Mesa's llvmpipe only a relaxed one belongs into a loop: the documentation on workgroups says why.
    Takes int32, uint32, int64, uint64. Raises TypeError for other places.
    """
    place = _target("atomic_load", mem, _INTEGERS)
    return _atomic("atomicLoadRelaxed" if relaxed else "atomicLoad", place)


def atomic_store(mem: Any, y: Any, *, relaxed: bool = False) -> None:
    """Set `mem` to y, for all workgroups: see `vc.atomic_load`.

    What this invocation wrote to buffers before is seen by those who load the value; not if `relaxed`. Takes
    int32, uint32, int64, uint64. Raises TypeError if `mem` is no such element, or y is of another kind.
    """
    place = _target("atomic_store", mem, _INTEGERS)
    value = _operand("atomic_store", "y", y, place.dtype)
    _atomic("atomicStoreRelaxed" if relaxed else "atomicStore", place, value)


def atomic_compare_exchange(mem: Any, expected: Any, desired: Any) -> ShaderVariable:
    """Set `mem` to `desired` if it is `expected`; returns a register with the value before.

    It was changed if and only if the result is `expected`. Takes int32, uint32, int64, uint64, float32,
    float64. Floats are compared by their bits: 0.0 is not -0.0, and a NaN is itself. Raises TypeError for
    other places or operands.
    """
    name = "atomic_compare_exchange"
    place = _target(name, mem, (*_INTEGERS, float32, float64))
    if is_float_dtype(place.dtype) and not can_be_bits(place):
        raise located(
            ArgumentTypeError,
            f"{name}: mem must be an element of a buffer of floats, not of structures or matrices",
        )
    compared = _operand(name, "expected", expected, place.dtype)
    return _atomic("atomicCompSwap", place, compared, _operand(name, "desired", desired, place.dtype))
