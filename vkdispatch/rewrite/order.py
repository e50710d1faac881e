"""Order of evaluation: an operand that reads memory, and a later one that calls what writes it.

An expression of the GPU is evaluated where a statement uses it, Python's operands one after the other. In
`state[i] + advance(state, i)` the left operand must be read before the call changes it.
"""

from collections.abc import Iterable
from typing import Any

from vkdispatch.codegen.analysis import nodes
from vkdispatch.codegen.ir import (
    Declare,
    Effect,
    Expr,
    ImageStore,
    MatrixLoad,
    MatrixStore,
    Op,
    RawStatement,
    Statement,
    Store,
    root_of,
    walk,
)
from vkdispatch.codegen.recording import current, is_tracing
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.rewrite.values import LocalValue, is_gpu

_MEMORY = (Op.ELEMENT, Op.IMAGE_LOAD, Op.SAMPLE, Op.RAW)


class Early:
    """An operand, and the place in the recording where Python evaluated it."""

    __slots__ = ("position", "statements", "value")

    def __init__(self, value: ShaderVariable, statements: list[Statement]) -> None:
        self.value = value
        self.statements = statements
        self.position = len(statements)


def early(value: Any) -> Any:
    """Note where an operand is evaluated, if that may matter."""
    if not is_gpu(value) or not is_tracing():
        return value
    return Early(value, current().innermost)


def settled(value: Any) -> Any:
    """Return the value of an operand, from before what has been recorded since if that changes it."""
    if type(value) is not Early:
        return value
    recorder = current()
    if value.statements is recorder.innermost and len(value.statements) == value.position:
        return value.value  # as mostly, nothing was recorded since
    later = recorder.recorded_since(value.statements, value.position)
    expr = value.value._value()
    if not later or not _writes(later, expr):
        return value.value
    place = recorder.declare_at(value.statements, value.position, expr)
    copy = LocalValue(place)
    copy.is_conjugate = value.value.is_conjugate
    return copy


def all_settled(*values: Any) -> list[Any]:
    """Return the values of operands: the last first, as each may put a statement before the others."""
    return [settled(value) for value in reversed(values)][::-1]


def _writes(statements: Iterable[Statement], expr: Expr) -> bool:
    """Whether statements may change what an expression reads."""
    read = {id(node.value) for node in nodes((expr,)) if node.op in _MEMORY or node.op is Op.REGISTER}
    memory = any(node.op in _MEMORY for node in nodes((expr,)))
    for statement in walk(tuple(statements)):
        if isinstance(statement, (Effect, ImageStore, MatrixLoad, MatrixStore, RawStatement)):
            if memory:
                return True
            continue
        if isinstance(statement, Store):
            place = statement.place
        elif isinstance(statement, Declare) and statement.value.op is Op.ATOMIC:
            place = statement.value.args[0]
        else:
            continue
        if id(root_of(place).value) in read:
            return True
    return False
