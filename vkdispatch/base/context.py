"""Contexts, as programs import them; the modules of `vkdispatch.base.contexts` define them."""

from typing import TYPE_CHECKING

from vkdispatch.base import names_elsewhere
from vkdispatch.base.contexts.context import Context, parse_queue, wrong_context
from vkdispatch.base.contexts.current import (
    destroy_context,
    get_context,
    get_context_handle,
    get_context_on,
    is_context_initialized,
    is_current,
    make_context,
    make_context_from_handles,
    new_context,
    queue_wait_idle,
    stop_threads,
    use_context,
)

__all__ = [
    "Context",
    "destroy_context",
    "get_context",
    "get_context_handle",
    "get_context_on",
    "is_context_initialized",
    "is_current",
    "make_context",
    "make_context_from_handles",
    "new_context",
    "parse_queue",
    "queue_wait_idle",
    "stop_threads",
    "use_context",
    "wrong_context",
]

if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(
        __name__,
        {
            "base.contexts.dummy_limits": "set_dummy_context_params",
            "base.contexts.selection": "select_queue_families",
            "base.handle": "Handle",
            "base.synchronization.signal": "Signal",
        },
    )
