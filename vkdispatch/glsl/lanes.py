"""Emulation of subgroup operations that a device lacks, by ballots and shuffles.

A reduction loops over the invocations of the subgroup. All invocations run the same number of rounds, and
skip the values of inactive invocations.
"""

import math
import re
from collections.abc import Callable

from vkdispatch.analyses.contents import Usage, find_operations
from vkdispatch.base.dtype import DType, bool_, component_type, int64, is_float_dtype
from vkdispatch.base.record import replace
from vkdispatch.glsl import emulation
from vkdispatch.glsl.extensions import subgroup_class
from vkdispatch.ir import Expr, Kernel, Op
from vkdispatch.ir.numbers import bounds
from vkdispatch.ir.variant import emulates

# Classes of operations that can be written with those of the classes "ballot" and "shuffle".
REPLACED = frozenset(("arithmetic", "clustered", "quad", "shuffle_relative", "vote"))
_MADE_OF = frozenset(("subgroupBallot", "subgroupShuffle"))
_SHUFFLES = {
    "subgroupQuadBroadcast": "(gl_SubgroupInvocationID & ~3u) + {}",
    "subgroupQuadSwapHorizontal": "gl_SubgroupInvocationID ^ 1u",
    "subgroupQuadSwapVertical": "gl_SubgroupInvocationID ^ 2u",
    "subgroupQuadSwapDiagonal": "gl_SubgroupInvocationID ^ 3u",
    "subgroupShuffleUp": "gl_SubgroupInvocationID - {}",
    "subgroupShuffleDown": "gl_SubgroupInvocationID + {}",
}
_VOTES = {
    "subgroupAll": "(subgroupBallot(!({0})) == uvec4(0u))",
    "subgroupAny": "(subgroupBallot({0}) != uvec4(0u))",
    "subgroupAllEqual": "(subgroupBallot({0} != subgroupBroadcastFirst({0})) == uvec4(0u))",
}
_RULES = {
    "Add": "result + other",
    "Mul": "result * other",
    "Min": "min(result, other)",
    "Max": "max(result, other)",
    "And": "result & other",
    "Or": "result | other",
    "Xor": "result ^ other",
}
_TRUTH_RULES = {"And": "result && other", "Or": "result || other", "Xor": "result != other"}
_LONG_RULES = {
    "Add": "long_add(result, other)",
    "Mul": "long_multiply(result, other)",
    "Min": "long_{}min(result, other)",
    "Max": "long_{}max(result, other)",
}


def goes_by_lanes(expr: Expr, lacks: frozenset[str]) -> bool:
    """Whether a subgroup operation is emulated in a form of a kernel that does without features."""
    function = str(expr.value)
    return subgroup_class(function) in lacks or (
        emulation.is_emulated_long(expr.dtype, lacks) and not emulation.has_long_operation(function)
    )


def usage_by_lanes(used: Usage, kernel: Kernel, lacks: frozenset[str]) -> Usage:
    """Return what a form of a kernel uses, with the subgroup operations that it calls instead of others."""
    operations = find_operations(kernel, Op.SUBGROUP)
    replaced = [expr for expr in operations if goes_by_lanes(expr, lacks)]
    if not replaced:
        return used
    others = {str(expr.value) for expr in operations if not goes_by_lanes(expr, lacks)}
    gone = {str(expr.value) for expr in replaced} - others
    return replace(used, subgroup_functions=(used.subgroup_functions - gone) | _MADE_OF)


def write_by_lanes(expr: Expr, texts: list[str], lacks: frozenset[str]) -> str:
    """Write a subgroup operation, with the texts of its arguments."""
    function = str(expr.value)
    if function in _VOTES:
        return _VOTES[function].format(f"({texts[0]})")
    if function in _SHUFFLES:
        return (
            f"subgroupShuffle({texts[0]}, {_SHUFFLES[function].format(*(f'({text})' for text in texts[1:]))})"
        )
    text = f"{_name(expr)}({', '.join(texts)})"
    return emulation.back(text, expr.dtype) if emulates(expr.dtype, lacks) else text


def lane_functions(
    kernel: Kernel, lacks: frozenset[str], literal: Callable[[float, DType], str]
) -> list[str]:
    """Return the definitions of the functions that a kernel's subgroup operations call.

    `literal` writes literals of native types.
    """
    found = {
        _name(expr): expr
        for expr in find_operations(kernel, Op.SUBGROUP)
        if goes_by_lanes(expr, lacks) and str(expr.value) not in _SHUFFLES | _VOTES
    }
    lines: list[str] = []
    for name in sorted(found):
        kind = found[name].dtype
        over, operation = _parts(found[name])
        neutral = _neutral(operation, component_type(kind))
        write = emulation.literal if emulates(kind, lacks) else _write_plainly
        text = write(neutral, component_type(kind), literal)
        lines += _function(
            name, kind.glsl_type, over, f"{kind.glsl_type}({text})", _rule(operation, kind, lacks)
        )
    return lines


def _write_plainly(value: float, kind: DType, literal: Callable[[float, DType], str]) -> str:
    return literal(value, kind)


def _name(expr: Expr) -> str:
    return f"lanes_{str(expr.value).removeprefix('subgroup')}_{expr.dtype.name}"


def _parts(expr: Expr) -> tuple[str, str]:
    """Return what a reduction is over, such as "Inclusive", and its operation."""
    match = re.fullmatch(r"subgroup(|Inclusive|Exclusive|Clustered)([A-Z][a-z]+)", str(expr.value))
    assert match is not None
    return match[1], match[2]


def _neutral(operation: str, kind: DType) -> float:
    """Return the neutral element of an operation."""
    if operation not in ("Min", "Max"):
        return {"Mul": 1, "And": 1 if kind is bool_ else -1}.get(operation, 0)
    if is_float_dtype(kind):
        return math.inf if operation == "Min" else -math.inf
    low, high = bounds(kind)
    return high if operation == "Min" else low


def _rule(operation: str, kind: DType, lacks: frozenset[str]) -> str:
    """Return GLSL that combines a result with another value."""
    if kind is bool_:
        return _TRUTH_RULES[operation]
    if emulation.is_emulated_long(kind, lacks) and operation in _LONG_RULES:
        return _LONG_RULES[operation].format("signed_" if kind is int64 else "")
    return _RULES[operation]


def _function(name: str, kind: str, over: str, neutral: str, rule: str) -> list[str]:
    count, lane, condition = "gl_SubgroupSize", "k", ""
    if over == "Clustered":
        count, lane = "size", "(gl_SubgroupInvocationID & ~(size - 1u)) + k"
    elif over:
        condition = f" && k {'<' if over == 'Exclusive' else '<='} gl_SubgroupInvocationID"
    return [
        f"{kind} {name}({kind} value{', uint size' if over == 'Clustered' else ''}) {{",
        "    uvec4 here = subgroupBallot(true);",
        f"    {kind} result = {neutral};",
        "    bool begun = false;",
        f"    for (uint k = 0u; k < {count}; ++k) {{",
        f"        {kind} other = subgroupShuffle(value, {lane});",
        f"        if (subgroupBallotBitExtract(here, {lane}){condition}) {{",
        f"            result = begun ? {rule} : other;",
        "            begun = true;",
        "        }",
        "    }",
        "    return result;",
        "}",
        "",
    ]
