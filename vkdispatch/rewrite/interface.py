"""The functions that rewritten code calls."""

from collections.abc import Callable
from typing import Any

from vkdispatch.rewrite.branches.conditions import (
    and_,
    bind,
    both,
    chain,
    check_assert,
    choose,
    contains,
    either,
    freeze,
    items,
    not_,
    or_,
    require_known,
)
from vkdispatch.rewrite.calls.frame import enter
from vkdispatch.rewrite.state.tracer import Retry

# Set by the module `functions`, which imports this one.
callee: Callable[[Any], Any]

__all__ = [
    "Retry",
    "and_",
    "bind",
    "both",
    "chain",
    "check_assert",
    "choose",
    "contains",
    "either",
    "enter",
    "freeze",
    "items",
    "not_",
    "or_",
    "require_known",
]
