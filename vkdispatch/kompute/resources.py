"""The objects of a Manager."""

import contextlib
import weakref
from typing import TYPE_CHECKING, Any

from vkdispatch.base.context import Context
from vkdispatch.kompute import log
from vkdispatch.kompute.devices import release_context

if TYPE_CHECKING:
    from vkdispatch.kompute.sequences.sequence import Sequence


class Resources:
    """The objects of a Manager, separate from it so that its finalizer can free them.

    Attributes
    ----------
    objects
        Sequences, algorithms, tensors and images.
    named_sequences
        Sequences by name, as in Kompute 0.5 and 0.6.
    """

    def __init__(self, context: Context, owns_context: bool) -> None:
        self.context = context
        self.owns_context = owns_context
        self.objects: weakref.WeakSet[Any] = weakref.WeakSet()
        self.named_sequences: dict[str, Sequence] = {}

    def free(self) -> None:
        """Destroy sequences, algorithms, memory, and then the context if no other Manager uses it."""
        objects = sorted(self.objects, key=_find_rank)
        log.debug("manager destroyed: number of its objects %d", len(objects))
        self.objects = weakref.WeakSet()
        self.named_sequences = {}
        with contextlib.ExitStack() as stack:  # destroys all of them even if one raises
            if self.owns_context:
                stack.callback(release_context, self.context)
            for each in reversed(objects):
                stack.callback(each.destroy)


_ORDER = ("Sequence", "Algorithm", "Tensor", "Image")


def _find_rank(each: object) -> int:
    """Return the position in the order of destruction, by class name: not every class is imported."""
    return next(_ORDER.index(kind.__name__) for kind in type(each).__mro__ if kind.__name__ in _ORDER)
