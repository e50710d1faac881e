"""Which invocation this is, and how invocations work together: atomics and barriers.

Atomics change an element of a buffer or of shared memory in one step, and return what was there before.
They take int32, uint32 and float32 everywhere: where a device has no atomic of float32, one of its bits
does. Those of int64, uint64, float64 and float16 depend on the device: building a kernel for one that has
none raises UnsupportedError and names the Vulkan feature. `mem` is a scalar element such as `buf[i]`, or a
component such as `buf[i].x`; y is a number, or a GPU value that is converted to its type. The result is a
register.
"""

import math
from _thread import _local
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, cast

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError, UsageError
from vkdispatch.codegen.functions.trigonometry import describe
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import mismatch
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import stored_to
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.expressions import literal
from vkdispatch.compiler.ir.location import here, located, within_library
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
    "barrier",
    "global_invocation_id",
    "group_memory_barrier",
    "inf_f16",
    "inf_f32",
    "inf_f64",
    "local_invocation_id",
    "local_invocation_index",
    "memory_barrier",
    "memory_barrier_buffer",
    "memory_barrier_image",
    "memory_barrier_shared",
    "ninf_f16",
    "ninf_f32",
    "ninf_f64",
    "num_subgroups",
    "num_workgroups",
    "subgroup_barrier",
    "subgroup_id",
    "subgroup_invocation_id",
    "subgroup_memory_barrier",
    "subgroup_memory_barrier_buffer",
    "subgroup_memory_barrier_image",
    "subgroup_memory_barrier_shared",
    "subgroup_size",
    "workgroup_id",
    "workgroup_size",
]


# ---- Which invocation this is, and other values that are simply there ------------------------------------


def builtin_value(which: ir.Builtin, kind: dt.DType) -> ShaderVariable:
    """Return a value that the device gives each invocation. Raises RuntimeError outside tracing."""
    current()  # outside of a kernel there is no invocation
    return ShaderVariable(ir.Expr(ir.Op.BUILTIN, kind, (), which, here()))


class _State(_local):
    instead: str | None = None


_state = _State()


@contextmanager
def without_invocation(instead: str | None) -> Iterator[None]:
    """Refuse `global_invocation_id` in a map, whose kernel is the library's; `instead` says what to use."""
    outer, _state.instead = _state.instead, instead
    try:
        yield
    finally:
        _state.instead = outer


def global_invocation_id() -> ShaderVariable:
    """Position of this invocation in the whole grid (uvec3). Raises RuntimeError in a map of an array."""
    if _state.instead is not None and not within_library():
        raise located(
            UsageError,
            "global_invocation_id: a map is part of a kernel whose invocations do not correspond to its "
            f"elements; {_state.instead}",
        )
    return builtin_value(ir.Builtin.GLOBAL_INVOCATION_ID, dt.uvec3)


def local_invocation_id() -> ShaderVariable:
    """Position of this invocation in its workgroup (uvec3)."""
    return builtin_value(ir.Builtin.LOCAL_INVOCATION_ID, dt.uvec3)


def local_invocation_index() -> ShaderVariable:
    """Flat position of this invocation in its workgroup (uint32)."""
    return builtin_value(ir.Builtin.LOCAL_INVOCATION_INDEX, dt.uint32)


def workgroup_id() -> ShaderVariable:
    """Position of this workgroup in the grid (uvec3)."""
    return builtin_value(ir.Builtin.WORKGROUP_ID, dt.uvec3)


def workgroup_size() -> ShaderVariable:
    """Invocations of a workgroup along each axis (uvec3)."""
    return builtin_value(ir.Builtin.WORKGROUP_SIZE, dt.uvec3)


def num_workgroups() -> ShaderVariable:
    """Workgroups of the grid along each axis (uvec3)."""
    return builtin_value(ir.Builtin.NUM_WORKGROUPS, dt.uvec3)


def num_subgroups() -> ShaderVariable:
    """Count of subgroups in a workgroup (uint32). On Mesa's llvmpipe see `vc.subgroup_id`."""
    return builtin_value(ir.Builtin.NUM_SUBGROUPS, dt.uint32)


def subgroup_id() -> ShaderVariable:
    """Position of this subgroup in its workgroup (uint32).

    On Mesa's llvmpipe it is `vc.local_invocation_index() // 8`, though subgroups end with each row along x:
    unless `local_size[0]` is a multiple of 8, it tells nothing, and may reach `vc.num_subgroups()`.
    """
    return builtin_value(ir.Builtin.SUBGROUP_ID, dt.uint32)


def subgroup_size() -> ShaderVariable:
    """Count of invocations in a subgroup (uint32)."""
    return builtin_value(ir.Builtin.SUBGROUP_SIZE, dt.uint32)


def subgroup_invocation_id() -> ShaderVariable:
    """Position of this invocation in its subgroup (uint32)."""
    return builtin_value(ir.Builtin.SUBGROUP_INVOCATION_ID, dt.uint32)


def _infinity(kind: dt.DType, value: float) -> ShaderVariable:
    return ShaderVariable(literal(value, kind))


def inf_f32() -> ShaderVariable:
    """Positive infinity (float32)."""
    return _infinity(dt.float32, math.inf)


def ninf_f32() -> ShaderVariable:
    """Negative infinity (float32)."""
    return _infinity(dt.float32, -math.inf)


def inf_f64() -> ShaderVariable:
    """Positive infinity (float64)."""
    return _infinity(dt.float64, math.inf)


def ninf_f64() -> ShaderVariable:
    """Negative infinity (float64)."""
    return _infinity(dt.float64, -math.inf)


def inf_f16() -> ShaderVariable:
    """Positive infinity (float16)."""
    return _infinity(dt.float16, math.inf)


def ninf_f16() -> ShaderVariable:
    """Negative infinity (float16)."""
    return _infinity(dt.float16, -math.inf)


# ---- Barriers of workgroups and subgroups ----------------------------------------------------------------


def _effect(function: str) -> None:
    current().emit(ir.Effect(function, here()))


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


def subgroup_memory_barrier() -> None:
    """Order this invocation's memory accesses before and after, as the subgroup sees them."""
    _effect("subgroupMemoryBarrier")


def subgroup_memory_barrier_buffer() -> None:
    """Order this invocation's buffer accesses before and after, as the subgroup sees them."""
    _effect("subgroupMemoryBarrierBuffer")


def subgroup_memory_barrier_shared() -> None:
    """Order this invocation's accesses to shared memory before and after, as the subgroup sees them."""
    _effect("subgroupMemoryBarrierShared")


def subgroup_memory_barrier_image() -> None:
    """Order this invocation's image accesses before and after, as the subgroup sees them."""
    _effect("subgroupMemoryBarrierImage")


# ---- Atomics ---------------------------------------------------------------------------------------------


_INTEGERS = (dt.int32, dt.uint32, dt.int64, dt.uint64)
_FLOATS = (dt.float16, dt.float32, dt.float64)


class AtomicFunction(Protocol):
    """An atomic of an element and one operand."""

    def __call__(self, mem: Any, y: Any) -> ShaderVariable:
        """Change `mem`; returns a register with the value before."""
        ...


def _target(name: str, mem: Any, kinds: tuple[dt.DType, ...]) -> ir.Expr:
    place = mem._value() if isinstance(mem, ShaderVariable) else None
    given = f"{mem!r} ({type(mem).__name__})"
    if place is not None:
        kind, root, is_stored = _memory_type(place), ir.root_of(place), stored_to(place)
        is_target = is_stored and place.dtype in kinds
        if dt.is_buffer_only(kind) if is_target else ir.is_encoded(root):
            raise located(
                ArgumentTypeError,
                f"{name}: elements of {kind.name} have no atomics; use a buffer of {place.dtype.name}",
            )
        if is_target:
            return place
        what = "whose array is constant" if ir.is_constant(root) else "which is no element of a buffer"
        given = place.dtype.name if is_stored else f"{place.dtype.name}, {what}"
    wanted = " or ".join((", ".join(kind.name for kind in kinds[:-1]), kinds[-1].name))
    raise located(
        ArgumentTypeError,
        f"{name}: mem must be an {wanted} element of a buffer or of shared memory, got {given}",
    )


def _memory_type(place: ir.Expr) -> dt.DType:
    """Type in which the elements lie in memory."""
    root = ir.root_of(place)
    return root.value.dtype if isinstance(root.value, (ir.Storage, ir.SharedArray)) else root.dtype


# Operators whose rules for numbers the functions follow.
_SYMBOLS = {"atomic_add": "+", "atomic_sub": "-", "atomic_and": "&", "atomic_or": "|", "atomic_xor": "^"}


def _operand(name: str, label: str, value: Any, kind: dt.DType) -> ir.Expr:
    if isinstance(value, ShaderVariable):
        expr = value._value()
        fits = dt.is_integer_dtype(expr.dtype) or (dt.is_float_dtype(kind) and dt.is_float_dtype(expr.dtype))
        if dt.is_scalar(expr.dtype) and fits:
            return ex.cast(expr, kind)
    elif ex.is_integer_number(value) or (dt.is_float_dtype(kind) and ex.is_number(value)):
        if name in _SYMBOLS and dt.is_integer_dtype(kind):
            value = ex.changed_number(_SYMBOLS[name], int(value), kind)
        return ex.literal(value, kind, name)
    wanted = "a scalar" if dt.is_float_dtype(kind) else "an integer scalar"
    raise mismatch(f"{name}: {label} must be {wanted} where mem is {kind.name}", value)


def _atomic(glsl: str, place: ir.Expr, *operands: ir.Expr) -> ShaderVariable:
    value = ir.Expr(ir.Op.ATOMIC, place.dtype, (place, *operands), glsl, here())
    return ShaderVariable(current().declare(place.dtype, value, local=True))


def _function(
    name: str,
    glsl: str,
    doc: str,
    *,
    kinds: tuple[dt.DType, ...] = _INTEGERS,
    change: Callable[[ir.Expr], ir.Expr] | None = None,
) -> AtomicFunction:
    def function(mem: Any, y: Any) -> ShaderVariable:
        place = _target(name, mem, kinds)
        operand = _operand(name, "y", y, place.dtype)
        return _atomic(glsl, place, operand if change is None else change(operand))

    doc = f"""{doc}

    Takes {", ".join(kind.name for kind in kinds)}. Raises TypeError if `mem` is no such element, or y
    is of another kind.
    """
    return cast(AtomicFunction, describe(function, name, doc))


_ALL = (*_INTEGERS, *_FLOATS)
atomic_add = _function("atomic_add", "atomicAdd", "Add y to `mem`; integers wrap around.", kinds=_ALL)
atomic_sub = _function(
    "atomic_sub", "atomicAdd", "Subtract y from `mem`; integers wrap around.", kinds=_ALL, change=ex.negate
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
    place = _target(name, mem, (*_INTEGERS, dt.float32, dt.float64))
    if dt.is_float_dtype(place.dtype) and not can_be_bits(place):
        raise located(
            ArgumentTypeError,
            f"{name}: mem must be an element of a buffer of floats, not of structures or matrices",
        )
    compared = _operand(name, "expected", expected, place.dtype)
    return _atomic("atomicCompSwap", place, compared, _operand(name, "desired", desired, place.dtype))
