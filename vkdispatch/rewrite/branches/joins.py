"""Values of variables after two paths: kept in registers where the paths differ."""

from collections.abc import Callable
from typing import Any

from vkdispatch.codegen.objects.structures import StructureValue
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Store, root_of, walk
from vkdispatch.compiler.ir.location import here
from vkdispatch.rewrite.branches.paths import Path, declare_register, make_register
from vkdispatch.rewrite.state.tracer import Tracer
from vkdispatch.rewrite.state.values import (
    UNBOUND,
    Kind,
    LocalValue,
    Mismatch,
    are_same,
    as_expr,
    describe,
    dtype_of,
    explain_unkept,
    flatten_kind,
    is_gpu,
    is_local,
    is_steady,
    iterate_leaves,
    join,
    kind_of,
    make_zero,
    rebuild,
)
from vkdispatch.rewrite.state.variables import State, Variable, write


def join_variables(
    tracer: Tracer,
    state: State,
    then: Path,
    orelse: Path,
    is_live: Callable[[Variable], bool],
    where: str,
    *,
    lenient: bool = False,
) -> None:
    """Set the variables to their values after either path; may add statements to the paths.

    A variable that has no value on one path has none afterwards, or zero if `lenient`.
    """
    for key in {**then.changed, **orelse.changed}:
        variable, before = state.variables[key], state.values[key]
        first, second = then.changed.get(key, before), orelse.changed.get(key, before)
        value: Any = UNBOUND
        if not is_live(variable):
            reason = f"{variable.name!r} is assigned on one path only through {where}"
        elif are_same((first, second)):
            value, reason = first, ""
        elif (first is UNBOUND or second is UNBOUND) and lenient and (kind := _kind_of_either(first, second)):
            filled = [_make_zeros(kind) if end is UNBOUND else end for end in (first, second)]
            value = join_values(tracer, variable.name, kind, before, (then, filled[0]), (orelse, filled[1]))
            reason = ""
        elif first is UNBOUND or second is UNBOUND:
            reason = (
                f"{variable.name!r} has a value only on one path through {where}, which the GPU decides; "
                "assign it before, or on every path"
            )
        else:
            value, reason = _meet_or_explain(
                tracer, variable.name, before, (then, first), (orelse, second), where
            )
        if before is UNBOUND and value is UNBOUND:
            # an earlier reason is more specific
            reason = variable.scope.reasons.get(variable.name, reason)
        if reason:
            variable.scope.reasons[variable.name] = reason
        if variable.name in variable.scope.aliases:
            value = unlock_components(value)
        write(variable.cell, value)


def unlock_components(value: Any) -> Any:
    """Return a value in the register of a variable as one whose components can be assigned to."""
    if isinstance(value, tuple):
        return tuple(map(unlock_components, value)) if type(value) is tuple else value
    shared = isinstance(value, LocalValue) and is_gpu(value) and value.can_index
    return ShaderVariable(value.expr) if shared else value


def _kind_of_either(first: object, second: object) -> Kind | None:
    """Return the type of the value that is bound."""
    return kind_of(second if first is UNBOUND else first)


def _make_zeros(kind: Kind) -> Any:
    return rebuild(kind, iter([0] * len(flatten_kind(kind))))


def _meet_or_explain(
    tracer: Tracer, name: str, before: Any, one: tuple[Path, Any], other: tuple[Path, Any], where: str
) -> tuple[Any, str]:
    """Return the value of a variable after two paths, or the reason why it has none."""
    kind, why = join_kinds(one[1], other[1])
    if kind is None:
        return UNBOUND, (
            f"{name!r} is {describe(one[1])} on one path through {where} and {describe(other[1])} on the "
            f"other; the GPU decides between them, and {why}"
        )
    return join_values(tracer, name, kind, before, one, other), ""


def join_kinds(first: object, second: object) -> tuple[Kind | None, str]:
    """Return the common type of two values, or None and the reason."""
    kinds = (kind_of(first), kind_of(second))
    for value, kind in zip((first, second), kinds, strict=True):
        if kind is None:
            why = explain_unkept(value)
            return None, why if isinstance(value, StructureValue) else f"{why}, not {describe(value)}"
    assert kinds[0] is not None
    assert kinds[1] is not None
    try:
        return join(kinds[0], kinds[1]), ""
    except Mismatch as error:
        return None, f"{error} have no common type"


def join_values(
    tracer: Tracer, name: str | None, kind: Kind, before: Any, one: tuple[Path, Any], other: tuple[Path, Any]
) -> Any:
    """Store the values of two paths in registers, initialized to `before` if a path does not change it."""
    parts = []
    columns = [[value for value, _ in iterate_leaves(path[1], kind)] for path in (one, other)]
    for first, second, leaf in zip(*columns, flatten_kind(kind), strict=True):
        if are_same((first, second)):
            parts.append(first)
            continue
        dtype = dtype_of(leaf)
        place = make_register(tracer, name, dtype)
        ends = ((one[0], first), (other[0], second))
        kept = [value for path, value in ends if value is before and _is_unchanged(value, path)]
        start = as_expr(kept[0], dtype) if kept else make_zero(dtype)
        tracer.recorder.emit(declare_register(place, start))
        for (path, _), value in ((one, first), (other, second)):
            if not (kept and value is kept[0]):
                path.statements.append(Store(place, as_expr(value, dtype), None, here()))
        parts.append(LocalValue(place))
    return rebuild(kind, iter(parts))


def _is_unchanged(value: object, path: Path) -> bool:
    """Whether a value from before an if is unchanged at the end of a branch."""
    if not is_gpu(value) or isinstance(value, LocalValue):
        return True
    assert isinstance(value, ShaderVariable)
    if is_local(value.expr):
        return not any(
            isinstance(statement, Store) and root_of(statement.place).value is value.expr.value
            for statement in walk(tuple(path.statements))
        )
    return is_steady(value.expr)
