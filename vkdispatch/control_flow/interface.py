"""The functions that rewritten code calls, under the name `_vd_rt`."""

from collections.abc import Callable
from types import CellType
from typing import Any

from vkdispatch.compiler.ir.location import warn
from vkdispatch.control_flow.conditions import and_ as and_
from vkdispatch.control_flow.conditions import check_assert as check_assert
from vkdispatch.control_flow.conditions import choose as choose
from vkdispatch.control_flow.conditions import compare_chain as compare_chain
from vkdispatch.control_flow.conditions import contains as contains
from vkdispatch.control_flow.conditions import invert as invert
from vkdispatch.control_flow.conditions import not_ as not_
from vkdispatch.control_flow.conditions import or_ as or_
from vkdispatch.control_flow.conditions import require_known as require_known
from vkdispatch.control_flow.conditions import test_and as test_and
from vkdispatch.control_flow.conditions import test_or as test_or
from vkdispatch.control_flow.frame import Frame
from vkdispatch.control_flow.tracer import Retry as Retry
from vkdispatch.control_flow.tracer import find_tracer
from vkdispatch.control_flow.variables import LocalScope

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


def enter(cells: Callable[[], Any], constants: tuple[Any, ...]) -> Frame:
    """Begin a call of a rewritten function.

    Parameters
    ----------
    cells
        A function that mentions the local variables; it is never called.
    constants
        The function's name, whether it may return before its end, its parameters, and the names `free`,
        `rebound`, `aliases`, `parts`, `shared` and `mentioned` of `LocalScope`.
    """
    name, early, parameters, *sets, shared, mentioned = constants
    free, rebound, aliases, parts = map(frozenset, sets)
    code, closure = cells.__code__, cells.__closure__ or ()
    by_name: dict[str, CellType] = dict(zip(code.co_freevars, closure, strict=True))
    scope = LocalScope(by_name, free, rebound, aliases, parts, cells.__globals__, shared, mentioned)
    return Frame(find_tracer(), name, early, parameters, scope)
