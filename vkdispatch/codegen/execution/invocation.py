"""Which invocation this is, and other values that are simply there."""

import math
from _thread import _local
from collections.abc import Iterator
from contextlib import contextmanager

from vkdispatch.base.dtype import DType, float16, float32, float64, uint32, uvec3
from vkdispatch.base.errors import UsageError
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Builtin, Expr, Op
from vkdispatch.compiler.ir.expressions import literal
from vkdispatch.compiler.ir.location import here, located, within_library

__all__ = [
    "global_invocation_id",
    "inf_f16",
    "inf_f32",
    "inf_f64",
    "local_invocation_id",
    "local_invocation_index",
    "ninf_f16",
    "ninf_f32",
    "ninf_f64",
    "num_subgroups",
    "num_workgroups",
    "subgroup_id",
    "subgroup_invocation_id",
    "subgroup_size",
    "workgroup_id",
    "workgroup_size",
]


def _builtin(which: Builtin, kind: DType) -> ShaderVariable:
    current()  # outside of a kernel there is no invocation
    return ShaderVariable(Expr(Op.BUILTIN, kind, (), which, here()))


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
    return _builtin(Builtin.GLOBAL_INVOCATION_ID, uvec3)


def local_invocation_id() -> ShaderVariable:
    """Position of this invocation in its workgroup (uvec3)."""
    return _builtin(Builtin.LOCAL_INVOCATION_ID, uvec3)


def local_invocation_index() -> ShaderVariable:
    """Flat position of this invocation in its workgroup (uint32)."""
    return _builtin(Builtin.LOCAL_INVOCATION_INDEX, uint32)


def workgroup_id() -> ShaderVariable:
    """Position of this workgroup in the grid (uvec3)."""
    return _builtin(Builtin.WORKGROUP_ID, uvec3)


def workgroup_size() -> ShaderVariable:
    """Invocations of a workgroup along each axis (uvec3)."""
    return _builtin(Builtin.WORKGROUP_SIZE, uvec3)


def num_workgroups() -> ShaderVariable:
    """Workgroups of the grid along each axis (uvec3)."""
    return _builtin(Builtin.NUM_WORKGROUPS, uvec3)


def num_subgroups() -> ShaderVariable:
    """Count of subgroups in a workgroup (uint32). On Mesa's llvmpipe see `vc.subgroup_id`."""
    return _builtin(Builtin.NUM_SUBGROUPS, uint32)


def subgroup_id() -> ShaderVariable:
    """Position of this subgroup in its workgroup (uint32).

    On Mesa's llvmpipe it is `vc.local_invocation_index() // 8`, though subgroups end with each row along x:
    unless `local_size[0]` is a multiple of 8, it tells nothing, and may reach `vc.num_subgroups()`.
    """
    return _builtin(Builtin.SUBGROUP_ID, uint32)


def subgroup_size() -> ShaderVariable:
    """Count of invocations in a subgroup (uint32)."""
    return _builtin(Builtin.SUBGROUP_SIZE, uint32)


def subgroup_invocation_id() -> ShaderVariable:
    """Position of this invocation in its subgroup (uint32)."""
    return _builtin(Builtin.SUBGROUP_INVOCATION_ID, uint32)


def _infinity(kind: DType, value: float) -> ShaderVariable:
    return ShaderVariable(literal(value, kind))


def inf_f32() -> ShaderVariable:
    """Positive infinity (float32)."""
    return _infinity(float32, math.inf)


def ninf_f32() -> ShaderVariable:
    """Negative infinity (float32)."""
    return _infinity(float32, -math.inf)


def inf_f64() -> ShaderVariable:
    """Positive infinity (float64)."""
    return _infinity(float64, math.inf)


def ninf_f64() -> ShaderVariable:
    """Negative infinity (float64)."""
    return _infinity(float64, -math.inf)


def inf_f16() -> ShaderVariable:
    """Positive infinity (float16)."""
    return _infinity(float16, math.inf)


def ninf_f16() -> ShaderVariable:
    """Negative infinity (float16)."""
    return _infinity(float16, -math.inf)
