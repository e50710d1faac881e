"""The functions that rewritten code calls."""

from collections.abc import Callable
from typing import Any

from vkdispatch.rewrite.branches.conditions import (
    and_,
    check_assert,
    choose,
    compare_chain,
    contains,
    not_,
    or_,
    require_known,
    test_and,
    test_or,
)
from vkdispatch.rewrite.calls.frame import enter
from vkdispatch.rewrite.state.tracer import Retry, tracer

# Set by the module `callees`, which imports this one.
choose_callee: Callable[[Any], Any]

__all__ = [
    "Retry",
    "and_",
    "bind",
    "check_assert",
    "choose",
    "compare_chain",
    "contains",
    "enter",
    "freeze",
    "freeze_items",
    "not_",
    "or_",
    "require_known",
    "test_and",
    "test_or",
]


def bind(value: Any, label: str | None, fresh: bool) -> Any:
    """Return the value for a local variable that an expression binds."""
    active = tracer()
    return value if active is None else active.bind(value, label, fresh)


def freeze_items(*values: Any) -> list[Any]:
    """Return frozen values for a list, dict, set or object."""
    active = tracer()
    return list(values) if active is None else [active.freeze(value) for value in values]


def freeze(value: Any) -> Any:
    """Return a frozen value for a list, dict or object."""
    active = tracer()
    return value if active is None else active.freeze(value)
