"""Operations across a subgroup: the invocations that run in step (usually 8 to 64 of them).

Each is computed where it is called, by the invocations that are active there, and its value stays the same;
only the condition of a while loop computes it anew each round. The device decides how large a subgroup is:
see `vc.subgroup_size`. A class of operations that a device lacks is done by ballots and shuffles. Building a
kernel for a device that lacks these too raises UnsupportedError.
"""

from collections.abc import Callable
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError
from vkdispatch.codegen.execution.invocation import builtin_value
from vkdispatch.codegen.functions.bits import reinterpret
from vkdispatch.codegen.functions.trigonometry import Operand, Value, describe
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import is_integer_scalar, mismatch
from vkdispatch.codegen.trace.operators import split_components
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Builtin, Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located

__all__ = [
    "subgroup_all",
    "subgroup_all_equal",
    "subgroup_any",
    "subgroup_ballot",
    "subgroup_ballot_bit_count",
    "subgroup_ballot_bit_extract",
    "subgroup_ballot_exclusive_bit_count",
    "subgroup_ballot_find_lsb",
    "subgroup_ballot_find_msb",
    "subgroup_ballot_inclusive_bit_count",
    "subgroup_broadcast",
    "subgroup_broadcast_first",
    "subgroup_elect",
    "subgroup_eq_mask",
    "subgroup_ge_mask",
    "subgroup_gt_mask",
    "subgroup_inverse_ballot",
    "subgroup_le_mask",
    "subgroup_lt_mask",
    "subgroup_quad_broadcast",
    "subgroup_quad_swap_diagonal",
    "subgroup_quad_swap_horizontal",
    "subgroup_quad_swap_vertical",
    "subgroup_shuffle",
    "subgroup_shuffle_down",
    "subgroup_shuffle_up",
    "subgroup_shuffle_xor",
]

_INTEGER_OPERATIONS = frozenset(("and", "or", "xor"))


def _compute(function: str, kind: dt.DType, *args: Expr) -> ShaderVariable:
    """Compute a value here, not wherever it is used: other invocations may be active there."""
    return ShaderVariable(current().declare(kind, ex.subgroup(function, kind, *args), fixed=True))


def _parse_exchanged(name: str, x: Any) -> Expr:
    """Return a value that invocations can exchange. A number is an AttributeError, by contract."""
    if not isinstance(x, ShaderVariable):
        raise located(ComponentError, f"{name}: expected a GPU value, got {x!r} ({type(x).__name__})")
    value = x._value()
    if dt.is_matrix(value.dtype):
        raise located(ArgumentValueError, f"{name}: not defined for {value.dtype.name}; take its columns")
    return value


def _parse_combined(name: str, operation: str, x: Any) -> Expr:
    """Return a value that the operation can combine."""
    value = _parse_exchanged(name, x)
    kind = value.dtype
    if operation in _INTEGER_OPERATIONS:
        if not (dt.is_integer_dtype(kind) or kind is dt.bool_):
            raise located(ArgumentValueError, f"{name}: expected integers or booleans, got {kind.name}")
        return value
    if kind is dt.bool_ or not (dt.is_float_dtype(kind) or dt.is_integer_dtype(kind)):
        raise located(ArgumentValueError, f"{name}: not defined for {kind.name}")
    if dt.is_complex(kind) and operation != "add":
        raise located(ArgumentValueError, f"{name}: not defined for {kind.name}")
    return value


_SUBJECTS = {
    "add": "Sum",
    "mul": "Product",
    "min": "Minimum",
    "max": "Maximum",
    "and": "Bitwise (or logical) and",
    "or": "Bitwise (or logical) or",
    "xor": "Bitwise (or logical) exclusive or",
}
_RANGES = {
    "": "over the active invocations of the subgroup.",
    "inclusive": "over the active invocations up to this one, itself included.",
    "exclusive": "over the active invocations before this one; for the first the neutral value.",
}


def _define_reduction(operation: str, over: str) -> None:
    name = f"subgroup_{over}_{operation}" if over else f"subgroup_{operation}"
    glsl = f"subgroup{over.title()}{operation.title()}"

    def function(arg1: Operand) -> ShaderVariable:
        value = _parse_combined(name, operation, arg1)
        return _compute(glsl, value.dtype, value)

    _define(name, f"{_SUBJECTS[operation]} {_RANGES[over]}", function)


def _define_clustered(operation: str) -> None:
    name = f"subgroup_clustered_{operation}"
    glsl = f"subgroupClustered{operation.title()}"

    def function(x: Operand, size: int) -> ShaderVariable:
        value = _parse_combined(name, operation, x)
        if not ex.is_integer_number(size) or size < 1 or size & (size - 1):
            raise located(
                ArgumentValueError, f"{name}: size must be a power of two as a Python int, got {size!r}"
            )
        return _compute(glsl, value.dtype, value, ex.literal(size, dt.uint32))

    doc = f"""{_SUBJECTS[operation]} over the active invocations of each cluster of `size` neighbours.

    `size` is a power of two, a Python int of at most the subgroup's size.
    """
    _define(name, doc, function)


def _define(name: str, doc: str, function: Callable[..., ShaderVariable]) -> None:
    globals()[name] = describe(function, name, doc)
    __all__.append(name)


# `typed_names.pyi` shows these to type checkers.
for _operation in _SUBJECTS:
    for _over in _RANGES:
        _define_reduction(_operation, _over)
    _define_clustered(_operation)


# ---- votes ---------------------------------------------------------------------------------------


def subgroup_elect() -> ShaderVariable:
    """Whether this is the one invocation that the subgroup elects: the first active one."""
    return _compute("subgroupElect", dt.bool_)


def _parse_truth(name: str, condition: Any) -> Expr:
    if isinstance(condition, ShaderVariable):
        return ex.condition(condition._value())
    if isinstance(condition, bool):
        return ex.literal(condition, dt.bool_)
    raise located(ArgumentTypeError, f"{name}: expected a GPU value or a bool, got {condition!r}")


def subgroup_all(condition: Value | bool) -> ShaderVariable:
    """Whether the condition holds in every active invocation. Raises TypeError for what is no condition."""
    return _compute("subgroupAll", dt.bool_, _parse_truth("subgroup_all", condition))


def subgroup_any(condition: Value | bool) -> ShaderVariable:
    """Whether the condition holds in an active invocation. Raises TypeError for what is no condition."""
    return _compute("subgroupAny", dt.bool_, _parse_truth("subgroup_any", condition))


def subgroup_all_equal(x: Operand) -> ShaderVariable:
    """Whether the value is the same in every active invocation."""
    return _compute("subgroupAllEqual", dt.bool_, _widen_halves(_parse_exchanged("subgroup_all_equal", x)))


def _widen_halves(value: Expr) -> Expr:
    """Make floats of halves, whose comparison ends the process on llvmpipe."""
    kind = value.dtype
    if dt.component_type(kind) is not dt.float16:
        return value
    return ex.cast(
        value, dt.complex64 if dt.is_complex(kind) else dt.to_vector(dt.float32, kind.child_count or 1)
    )


# ---- exchange ------------------------------------------------------------------------------------


def _parse_lane(name: str, value: Any) -> Expr:
    if ex.is_integer_number(value):
        if not 0 <= value < 128:
            raise located(ArgumentValueError, f"{name}: no subgroup has an invocation {value}")
        return ex.literal(value, dt.uint32)
    if isinstance(value, ShaderVariable) and is_integer_scalar(value._value().dtype):
        return ex.cast(value._value(), dt.uint32)
    raise mismatch(f"{name}: expected an integer", value)


def _move(name: str, glsl: str, x: Any, *lanes: Any) -> ShaderVariable:
    value = _parse_exchanged(name, x)
    args = [_parse_lane(name, lane) for lane in lanes]
    if dt.component_type(value.dtype).item_size == 8:
        return _move_words(glsl, value, args)
    if dt.component_type(value.dtype) is not dt.float16:
        return _compute(glsl, value.dtype, value, *args)
    # drivers mix halves up here (NVIDIA 580) or end the process (llvmpipe): move their bits
    count = value.dtype.child_count or 1
    bits = dt.to_vector(dt.uint16, count)
    halves = ex.call("float16BitsToUint16", bits, _as_vector(value, count))
    moved = _compute(glsl, bits, halves, *args)._value()
    return ShaderVariable(
        _restore_type(ex.call("uint16BitsToFloat16", dt.to_vector(dt.float16, count), moved), value.dtype)
    )


def _move_words(glsl: str, value: Expr, lanes: list[Expr]) -> ShaderVariable:
    """Move 64 bits as two words: LLVM 15 under llvmpipe ends the process for more of them than AVX2 has."""
    scalar = dt.component_type(value.dtype)
    moved = []
    for part in split_components(value):
        words = reinterpret(dt.uvec2, ShaderVariable(part).to_register())._value()
        moved.append(reinterpret(scalar, _compute(glsl, dt.uvec2, words, *lanes))._value())
    return ShaderVariable(ex.construct(value.dtype, moved) if len(moved) > 1 else moved[0])


def _as_vector(value: Expr, count: int) -> Expr:
    """See a complex number as a vector."""
    return _restore_type(value, dt.to_vector(dt.component_type(value.dtype), count))


def _restore_type(value: Expr, kind: dt.DType) -> Expr:
    """See a vector as a complex number of the same components, or the other way."""
    if value.dtype is kind:
        return value
    return ex.construct(
        kind, (ex.index(value, ex.literal(0, dt.uint32)), ex.index(value, ex.literal(1, dt.uint32)))
    )


def subgroup_broadcast(x: Operand, lane: Value | int) -> ShaderVariable:
    """Value of the invocation `lane`, which is the same number in all of them."""
    # GLSL's own takes a variable lane only with one more feature; a shuffle does as well
    glsl = "subgroupBroadcast" if ex.is_integer_number(lane) else "subgroupShuffle"
    return _move("subgroup_broadcast", glsl, x, lane)


def subgroup_broadcast_first(x: Operand) -> ShaderVariable:
    """Value of the first active invocation."""
    return _move("subgroup_broadcast_first", "subgroupBroadcastFirst", x)


def subgroup_shuffle(x: Operand, lane: Value | int) -> ShaderVariable:
    """Value of the invocation `lane`; undefined if that one is not active."""
    return _move("subgroup_shuffle", "subgroupShuffle", x, lane)


def subgroup_shuffle_xor(x: Operand, mask: Value | int) -> ShaderVariable:
    """Value of the invocation whose number is this one's xor `mask`; undefined if it is not active."""
    return _move("subgroup_shuffle_xor", "subgroupShuffleXor", x, mask)


def subgroup_shuffle_up(x: Operand, delta: Value | int) -> ShaderVariable:
    """Value of the invocation `delta` before this one; undefined if there is none."""
    return _move("subgroup_shuffle_up", "subgroupShuffleUp", x, delta)


def subgroup_shuffle_down(x: Operand, delta: Value | int) -> ShaderVariable:
    """Value of the invocation `delta` after this one; undefined if there is none."""
    return _move("subgroup_shuffle_down", "subgroupShuffleDown", x, delta)


def subgroup_quad_broadcast(x: Operand, lane: int) -> ShaderVariable:
    """Value of the invocation `lane`, a Python int of 0 to 3, of this group of four neighbours."""
    if not ex.is_integer_number(lane) or not 0 <= lane < 4:
        raise located(
            ArgumentValueError, f"subgroup_quad_broadcast: lane must be a Python int of 0 to 3, got {lane!r}"
        )
    return _move("subgroup_quad_broadcast", "subgroupQuadBroadcast", x, lane)


def subgroup_quad_swap_horizontal(x: Operand) -> ShaderVariable:
    """Exchange values between the invocations 0 and 1, and 2 and 3, of each four neighbours."""
    return _move("subgroup_quad_swap_horizontal", "subgroupQuadSwapHorizontal", x)


def subgroup_quad_swap_vertical(x: Operand) -> ShaderVariable:
    """Exchange values between the invocations 0 and 2, and 1 and 3, of each four neighbours."""
    return _move("subgroup_quad_swap_vertical", "subgroupQuadSwapVertical", x)


def subgroup_quad_swap_diagonal(x: Operand) -> ShaderVariable:
    """Exchange values between the invocations 0 and 3, and 1 and 2, of each four neighbours."""
    return _move("subgroup_quad_swap_diagonal", "subgroupQuadSwapDiagonal", x)


# ---- ballots -------------------------------------------------------------------------------------


def subgroup_ballot(condition: Value | bool) -> ShaderVariable:
    """Bits of the active invocations in which the condition holds: a uvec4, the first invocation lowest."""
    return _compute("subgroupBallot", dt.uvec4, _parse_truth("subgroup_ballot", condition))


def _parse_ballot(name: str, value: Any) -> Expr:
    if not isinstance(value, ShaderVariable) or value._value().dtype is not dt.uvec4:
        given = value.var_type.name if isinstance(value, ShaderVariable) else repr(value)
        raise located(ArgumentTypeError, f"{name}: expected a uvec4 as subgroup_ballot gives, got {given}")
    return value._value()


def subgroup_inverse_ballot(ballot: ShaderVariable) -> ShaderVariable:
    """Whether this invocation's bit is set in a ballot."""
    return _compute("subgroupInverseBallot", dt.bool_, _parse_ballot("subgroup_inverse_ballot", ballot))


def subgroup_ballot_bit_extract(ballot: ShaderVariable, lane: Value | int) -> ShaderVariable:
    """Whether the bit of the invocation `lane` is set in a ballot."""
    name = "subgroup_ballot_bit_extract"
    return _compute(
        "subgroupBallotBitExtract", dt.bool_, _parse_ballot(name, ballot), _parse_lane(name, lane)
    )


def subgroup_ballot_bit_count(ballot: ShaderVariable) -> ShaderVariable:
    """Count of the bits that are set in a ballot (uint32)."""
    return _compute("subgroupBallotBitCount", dt.uint32, _parse_ballot("subgroup_ballot_bit_count", ballot))


def subgroup_ballot_inclusive_bit_count(ballot: ShaderVariable) -> ShaderVariable:
    """Count of the bits that are set in a ballot up to this invocation's, itself included (uint32)."""
    value = _parse_ballot("subgroup_ballot_inclusive_bit_count", ballot)
    return _compute("subgroupBallotInclusiveBitCount", dt.uint32, value)


def subgroup_ballot_exclusive_bit_count(ballot: ShaderVariable) -> ShaderVariable:
    """Count of the bits that are set in a ballot before this invocation's (uint32)."""
    value = _parse_ballot("subgroup_ballot_exclusive_bit_count", ballot)
    return _compute("subgroupBallotExclusiveBitCount", dt.uint32, value)


def subgroup_ballot_find_lsb(ballot: ShaderVariable) -> ShaderVariable:
    """Return the first invocation whose bit is set in a ballot (uint32); undefined if there is none."""
    return _compute("subgroupBallotFindLSB", dt.uint32, _parse_ballot("subgroup_ballot_find_lsb", ballot))


def subgroup_ballot_find_msb(ballot: ShaderVariable) -> ShaderVariable:
    """Return the last invocation whose bit is set in a ballot (uint32); undefined if there is none."""
    return _compute("subgroupBallotFindMSB", dt.uint32, _parse_ballot("subgroup_ballot_find_msb", ballot))


def subgroup_eq_mask() -> ShaderVariable:
    """Ballot in which this invocation's bit alone is set (uvec4)."""
    return builtin_value(Builtin.SUBGROUP_EQ_MASK, dt.uvec4)


def subgroup_ge_mask() -> ShaderVariable:
    """Ballot in which this invocation's bit and those after it are set (uvec4)."""
    return builtin_value(Builtin.SUBGROUP_GE_MASK, dt.uvec4)


def subgroup_gt_mask() -> ShaderVariable:
    """Ballot in which the bits after this invocation's are set (uvec4)."""
    return builtin_value(Builtin.SUBGROUP_GT_MASK, dt.uvec4)


def subgroup_le_mask() -> ShaderVariable:
    """Ballot in which this invocation's bit and those before it are set (uvec4)."""
    return builtin_value(Builtin.SUBGROUP_LE_MASK, dt.uvec4)


def subgroup_lt_mask() -> ShaderVariable:
    """Ballot in which the bits before this invocation's are set (uvec4)."""
    return builtin_value(Builtin.SUBGROUP_LT_MASK, dt.uvec4)
