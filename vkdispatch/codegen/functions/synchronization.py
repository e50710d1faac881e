"""Barriers, subgroup operations and atomics."""

from typing import Any

from vkdispatch.base.dtype import (
    bool_,
    int32,
    is_complex,
    is_float_dtype,
    is_integer_dtype,
    is_matrix,
    is_scalar,
    uint32,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError
from vkdispatch.codegen import expressions as ex
from vkdispatch.codegen.analysis import stored_to
from vkdispatch.codegen.ir import Effect, Expr, Op
from vkdispatch.codegen.location import here, located
from vkdispatch.codegen.recording import current
from vkdispatch.codegen.variables import ShaderVariable


def _effect(function: str) -> None:
    current().emit(Effect(function, here()))


def barrier() -> None:
    """Wait until every invocation of the workgroup is here.

    Its writes to shared memory are then visible to all.
    """
    _effect("barrier")


def memory_barrier() -> None:
    """Order this invocation's memory accesses before and after."""
    _effect("memoryBarrier")


def memory_barrier_buffer() -> None:
    """Order this invocation's buffer accesses before and after."""
    _effect("memoryBarrierBuffer")


def memory_barrier_shared() -> None:
    """Order this invocation's accesses to shared memory before and after."""
    _effect("memoryBarrierShared")


def memory_barrier_image() -> None:
    """Order this invocation's image accesses before and after."""
    _effect("memoryBarrierImage")


def group_memory_barrier() -> None:
    """Order memory accesses before and after, as the workgroup sees them."""
    _effect("groupMemoryBarrier")


def subgroup_barrier() -> None:
    """Wait until every invocation of the subgroup is here."""
    _effect("subgroupBarrier")


def _subgroup(name: str, glsl: str, x: Any, *, integers_only: bool = False) -> ShaderVariable:
    if not isinstance(x, ShaderVariable):
        # an AttributeError by contract
        raise located(ComponentError, f"{name}: expected a GPU value, got {x!r} ({type(x).__name__})")
    value = x._value()
    kind = value.dtype
    if integers_only and not is_integer_dtype(kind):
        raise located(ArgumentValueError, f"{name}: expected integers, got {kind.name}")
    if is_matrix(kind) or kind is bool_ or not (is_float_dtype(kind) or is_integer_dtype(kind)):
        raise located(ArgumentValueError, f"{name}: not defined for {kind.name}")
    if is_complex(kind) and name != "subgroup_add":
        raise located(ArgumentValueError, f"{name}: not defined for {kind.name}")
    return ShaderVariable(ex.subgroup(glsl, kind, value))


def subgroup_add(x: ShaderVariable) -> ShaderVariable:
    """Sum over the active invocations of the subgroup."""
    return _subgroup("subgroup_add", "subgroupAdd", x)


def subgroup_mul(x: ShaderVariable) -> ShaderVariable:
    """Product over the active invocations of the subgroup."""
    return _subgroup("subgroup_mul", "subgroupMul", x)


def subgroup_min(x: ShaderVariable) -> ShaderVariable:
    """Minimum over the active invocations of the subgroup."""
    return _subgroup("subgroup_min", "subgroupMin", x)


def subgroup_max(x: ShaderVariable) -> ShaderVariable:
    """Maximum over the active invocations of the subgroup."""
    return _subgroup("subgroup_max", "subgroupMax", x)


def subgroup_and(x: ShaderVariable) -> ShaderVariable:
    """Bitwise and over the active invocations of the subgroup."""
    return _subgroup("subgroup_and", "subgroupAnd", x, integers_only=True)


def subgroup_or(x: ShaderVariable) -> ShaderVariable:
    """Bitwise or over the active invocations of the subgroup."""
    return _subgroup("subgroup_or", "subgroupOr", x, integers_only=True)


def subgroup_xor(x: ShaderVariable) -> ShaderVariable:
    """Bitwise exclusive or over the active invocations of the subgroup."""
    return _subgroup("subgroup_xor", "subgroupXor", x, integers_only=True)


def subgroup_elect() -> ShaderVariable:
    """Whether this is the one invocation that the subgroup elects."""
    return ShaderVariable(ex.subgroup("subgroupElect", bool_))


def atomic_add(target: Any, y: Any) -> ShaderVariable:
    """Add y to an int32 or uint32 element of a buffer in one step; returns a register with the value before.

    Raises TypeError if the target is none, or y is no integer.
    """
    place = target._value() if isinstance(target, ShaderVariable) else None
    if place is None or not stored_to(place) or place.dtype not in (int32, uint32):
        given = place.dtype.name if place is not None else repr(target)
        raise located(
            ArgumentTypeError,
            f"atomic_add: target must be an int32 or uint32 element of a buffer, got {given}",
        )
    if isinstance(y, ShaderVariable):
        operand = y._value()
        if not (is_scalar(operand.dtype) and is_integer_dtype(operand.dtype)):
            raise located(
                ArgumentTypeError, f"atomic_add: y must be an integer scalar, got {operand.dtype.name}"
            )
        operand = ex.cast(operand, place.dtype)
    elif ex.is_integer_number(y):
        operand = ex.storable(y, place.dtype)
    else:
        raise located(ArgumentTypeError, f"atomic_add: y must be an integer, got {y!r}")
    added = Expr(Op.ATOMIC, place.dtype, (place, operand), "atomicAdd", here())
    return ShaderVariable(current().declare(place.dtype, added))
