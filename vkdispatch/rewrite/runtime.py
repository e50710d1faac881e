"""What rewritten code calls."""

from collections.abc import Callable
from typing import Any

from vkdispatch.rewrite.frames import enter
from vkdispatch.rewrite.operators import (
    and_,
    asserted,
    bind,
    both,
    chain,
    choose,
    contains,
    either,
    items,
    kept,
    known,
    not_,
    or_,
)
from vkdispatch.rewrite.tracing import Retry

# `functions`, which makes the code that calls this, puts the function here.
callee: Callable[[Any], Any]

__all__ = [
    "Retry",
    "and_",
    "asserted",
    "bind",
    "both",
    "chain",
    "choose",
    "contains",
    "either",
    "enter",
    "items",
    "kept",
    "known",
    "not_",
    "or_",
]
