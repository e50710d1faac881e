"""Calls that were checked once: the next one with buffers and options of the same kind launches at once."""

from collections.abc import Sequence
from typing import Any
from weakref import ref

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.record import record
from vkdispatch.base.rfft_buffer import RFFTBuffer

_MOST = 4096


@record(eq=False)
class Ready:
    """What a call comes to: kernels to launch in order, and the layout that a transposed kernel must have."""

    context: "ref[Context]"
    kernels: tuple[Any, ...]
    layout: object = None


_ready: dict[Any, Ready] = {}


def find(key: Any) -> Ready | None:
    """Return what an equal call came to in this context; None if there was none, or it cannot be told."""
    try:
        found = _ready.get(key)
    except TypeError:
        # a list somewhere
        return None
    return found if found is not None and found.context() is get_context() else None


def remember(key: Any, kernels: Sequence[Any], layout: object = None) -> None:
    """Keep what a call came to."""
    if len(_ready) >= _MOST:
        _ready.clear()
    try:
        _ready[key] = Ready(ref(get_context()), tuple(kernels), layout)
    except TypeError:
        return


def kinds(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return all that checks look at in the arguments of a call."""
    return tuple(
        [
            (given.shape, given.var_type, given.real_shape if isinstance(given, RFFTBuffer) else None)
            if isinstance(given, Buffer)
            else given.__class__
            for given in arguments
        ]
    )


def forget() -> None:
    """Forget all."""
    _ready.clear()
