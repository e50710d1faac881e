"""Contexts, as programs import them, and the base class of objects of a context."""

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING

from vkdispatch.base import names_elsewhere
from vkdispatch.base.contexts.context import Context as Context
from vkdispatch.base.contexts.context import parse_queue as parse_queue
from vkdispatch.base.contexts.context import wrong_context as wrong_context
from vkdispatch.base.contexts.current import destroy_context as destroy_context
from vkdispatch.base.contexts.current import get_context as get_context
from vkdispatch.base.contexts.current import get_context_handle as get_context_handle
from vkdispatch.base.contexts.current import get_context_on as get_context_on
from vkdispatch.base.contexts.current import is_context_initialized as is_context_initialized
from vkdispatch.base.contexts.current import is_current as is_current
from vkdispatch.base.contexts.current import make_context as make_context
from vkdispatch.base.contexts.current import make_context_from_handles as make_context_from_handles
from vkdispatch.base.contexts.current import new_context as new_context
from vkdispatch.base.contexts.current import queue_wait_idle as queue_wait_idle
from vkdispatch.base.contexts.current import stop_threads as stop_threads
from vkdispatch.base.contexts.current import use_context as use_context
from vkdispatch.base.errors import UsageError
from vkdispatch.base.native_module import native
from vkdispatch.base.process import Listed, Unshared, internal

if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(
        __name__,
        {
            "base.contexts.current": "set_dummy_context_params",
            "base.contexts.selection": "select_queue_families",
            "base.synchronization": "Signal",
        },
    )


# ---- The base class of objects of a context: buffers, images, plans and graphs ---------------------------


class Handle(Unshared, Listed):
    """An object of a context. Children keep their parents alive; destroying a parent destroys them first.

    An unreferenced object has no children, and its native part frees itself, so `__del__` is not needed.

    Attributes
    ----------
    context
        The context that the object belongs to.
    destroyed
        Whether its device memory was released.
    """

    context: Context
    _handle: int
    destroyed: bool = True
    parents: dict[int, "Handle"]
    # made on first use: most buffers have no children
    _children: "weakref.WeakValueDictionary[int, Handle] | None" = None

    def __init__(self, context: Context | None = None) -> None:
        if context is None:
            context = get_context()
        self.context = context
        self._handle = native.take_number()
        self.parents = {}
        self.destroyed = False
        context._handles.add(weakref.ref(self, context._forget))

    @property
    @internal
    def children_dict(self) -> "weakref.WeakValueDictionary[int, Handle]":
        """The objects that are destroyed with this one, by number."""
        if self._children is None:
            self._children = weakref.WeakValueDictionary()
        return self._children

    @internal
    def register_parent(self, parent: "Handle") -> None:
        """Destroy this object with `parent`, and keep `parent` alive until then."""
        if parent._handle not in self.parents:
            self.parents[parent._handle] = parent
            parent.children_dict[self._handle] = self

    @internal
    def clear_parents(self) -> None:
        """Undo every `register_parent`."""
        for parent in self.parents.values():
            parent.children_dict.pop(self._handle, None)
        self.parents = {}

    def destroy(self) -> None:
        """Free the device memory as soon as the device has finished with it. Never blocks. Idempotent."""
        if self.destroyed:
            return
        self.destroyed = True
        if self._children:
            for child in list(self._children.values()):
                child.destroy()
        self.clear_parents()
        self._release()

    @property
    def _memory_handle(self) -> int:
        """The number of the object that owns the memory."""
        return self._handle

    def _release(self) -> None:
        """Destroy the native object."""

    def _describe(self, what: str) -> str:
        """Return the text for `repr`: class, number, the description `what`, and the device."""
        state = "destroyed" if self.destroyed else f"on {self.context._devices}"
        if self.context.closed:
            state = "its context is closed"
        return f"<vd.{type(self).__name__} {self._handle}: {what}, {state}>"

    @internal
    def require_alive(self) -> None:
        """Raise UsageError if this object was destroyed, or DeviceLostError if its device was lost."""
        if self.destroyed and self.context.lost and not self.context._interrupted:
            raise self.context._lost_error(f"make this {type(self).__name__} again in another one")
        if self.destroyed:
            raise UsageError(f"this {type(self).__name__} was destroyed; make a new one")


def context_of(values: Iterable[object]) -> Context | None:
    """Return the context of the first buffer, image or graph among these."""
    return next((value.context for value in values if isinstance(value, Handle)), None)
