"""Calls that were checked once: the next one with buffers and options of the same kind launches at once."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import get_context, is_context_initialized
from vkdispatch.base.record import record
from vkdispatch.base.rfft_buffer import RFFTBuffer

_MOST = 4096
_READY = "fft.ready"


@record(eq=False)
class Ready:
    """What a call comes to: kernels to launch in order, and the layout that a transposed kernel must have."""

    kernels: tuple[Any, ...]
    layout: object = None


def find(key: Any) -> Ready | None:
    """Return what an equal call came to in this context; None if there was none, or it cannot be told."""
    if not is_context_initialized():
        return None
    calls: dict[Any, Ready] = get_context()._keep(_READY, dict)
    try:
        return calls.get(key)
    except TypeError:
        # a list somewhere
        return None


def remember(key: Any, kernels: Sequence[Any], layout: object = None) -> None:
    """Keep what a call came to."""
    calls: dict[Any, Ready] = get_context()._keep(_READY, dict)
    if len(calls) >= _MOST:
        calls.clear()
    try:
        calls[key] = Ready(tuple(kernels), layout)
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
    """Forget all of this context."""
    if is_context_initialized():
        get_context().kept.pop(_READY, None)
