"""The functions that rewritten code calls, under the name `_vd_rt`."""

from collections.abc import Callable
from types import CellType
from typing import Any, NamedTuple

from vkdispatch.compiler.ir.location import warn
from vkdispatch.control_flow.conditions import (
    and_,
    check_assert,
    choose,
    compare_chain,
    contains,
    invert,
    not_,
    or_,
    require_known,
    test_and,
    test_or,
)
from vkdispatch.control_flow.frame import Frame
from vkdispatch.control_flow.tracer import Retry, find_tracer
from vkdispatch.control_flow.variables import LocalScope

__all__ = [
    "Retry",
    "and_",
    "begin_try",
    "bind",
    "check_assert",
    "choose",
    "compare_chain",
    "contains",
    "end_try",
    "enter",
    "freeze",
    "freeze_items",
    "invert",
    "not_",
    "or_",
    "require_known",
    "test_and",
    "test_or",
]


Names = tuple[str, ...]

# Set by the module `replacement`, which imports this one.
choose_callee: Callable[[Any], Any]


def bind(value: Any, label: str | None, fresh: bool) -> Any:
    """Return the value for a local variable that an expression binds."""
    active = find_tracer()
    return value if active is None else active.bind(value, label, fresh)


def freeze_items(*values: Any) -> list[Any]:
    """Return frozen values for a list, dict, set or object."""
    active = find_tracer()
    return list(values) if active is None else [active.freeze(value) for value in values]


def freeze(value: Any) -> Any:
    """Return a frozen value for a list, dict or object."""
    active = find_tracer()
    return value if active is None else active.freeze(value)


def begin_try(line: int) -> None:
    """Note what has been recorded before a `try` that catches an error of an operation."""
    active = find_tracer()
    if active is not None:
        active.tries[line] = active.recorder.recorded


def end_try(line: int, caught: str) -> None:
    """Warn if the `try` recorded operations of the GPU, which raise no exceptions."""
    active = find_tracer()
    if active is not None and active.recorder.recorded > active.tries.pop(line, active.recorder.recorded):
        warn(
            f"except {caught}: the GPU raises no exceptions, so this never runs for its values: test them by "
            "an `if` before the operation"
        )


class FunctionNames(NamedTuple):
    """What the rewriter knows of a function. Rewritten code has it as a constant, a plain tuple.

    Attributes
    ----------
    name
        The function's name.
    early
        Whether it may return before its end.
    parameters
        Names of its parameters.
    free, rebound, aliases, parts, shared, mentioned
        As in `LocalScope`.
    """

    name: str
    early: bool
    parameters: Names
    free: Names
    rebound: Names
    aliases: Names
    parts: Names
    shared: Names
    mentioned: Names


def enter(cells: Callable[[], Any], constants: tuple[Any, ...]) -> Frame:
    """Begin a call of a rewritten function.

    Parameters
    ----------
    cells
        A function that mentions the local variables; it is never called.
    constants
        The fields of a `FunctionNames`.
    """
    names = FunctionNames(*constants)
    code, closure = cells.__code__, cells.__closure__ or ()
    by_name: dict[str, CellType] = dict(zip(code.co_freevars, closure, strict=True))
    scope = LocalScope(
        by_name,
        frozenset(names.free),
        frozenset(names.rebound),
        frozenset(names.aliases),
        frozenset(names.parts),
        cells.__globals__,
        names.shared,
        names.mentioned,
    )
    return Frame(find_tracer(), names.name, names.early, names.parameters, scope)
