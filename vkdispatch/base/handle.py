"""What every device object has in common: a number, parents, children, and an end."""

import itertools
import weakref

from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import DeviceLostError, UsageError

_numbers = itertools.count(1)


class Handle:
    """A device object. Children hold their parents alive; destroying a parent destroys its children first.

    An object that nobody holds any more has no children, and its native part frees itself: there is no need
    of a `__del__`.
    """

    context: Context
    _handle: int
    destroyed: bool = True
    parents: dict[int, "Handle"]

    def __init__(self, context: Context | None = None) -> None:
        self.context = context if context is not None else get_context()
        self._handle = next(_numbers)
        self.parents = {}
        # Made on first use: most buffers never have children.
        self._children: weakref.WeakValueDictionary[int, Handle] | None = None
        self.destroyed = False
        self.context.handles_dict[self._handle] = self

    @property
    def children_dict(self) -> "weakref.WeakValueDictionary[int, Handle]":
        """The objects that cannot outlive this one, by number."""
        if self._children is None:
            self._children = weakref.WeakValueDictionary()
        return self._children

    def register_parent(self, parent: "Handle") -> None:
        """Make this object end with `parent`, and keep `parent` alive until then."""
        if parent._handle not in self.parents:
            self.parents[parent._handle] = parent
            parent.children_dict[self._handle] = self

    def clear_parents(self) -> None:
        """Undo every `register_parent`."""
        for parent in self.parents.values():
            parent.children_dict.pop(self._handle, None)
        self.parents = {}

    def destroy(self) -> None:
        """Give the device memory back as soon as the device is done with it. Never blocks. Idempotent."""
        if self.destroyed:
            return
        self.destroyed = True
        if self._children:
            for child in list(self._children.values()):
                child.destroy()
        self.clear_parents()
        self._release()

    def _release(self) -> None:
        """Destroy the native object."""

    def require_alive(self) -> None:
        """Raise UsageError, or DeviceLostError where that is why, when this object was destroyed."""
        if self.destroyed and self.context.lost:
            raise DeviceLostError(f"the device of this {type(self).__name__} was lost; make a new one")
        if self.destroyed:
            raise UsageError(f"this {type(self).__name__} was destroyed; make a new one")
