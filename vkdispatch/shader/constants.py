"""The constant arrays of kernels in device memory: one copy in each context, however many kernels use it."""

import threading
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.record import replace
from vkdispatch.codegen.constants import ConstantArray
from vkdispatch.shader.parameters import CheckedCall

# Launchers and recordings hold the buffers that they use: one whose array is gone ends with the last of them.
_lock = threading.Lock()


def upload_constants(constants: Sequence[ConstantArray], context: Context) -> tuple[Buffer[Any], ...]:
    """Return the buffers of constant arrays, made and written where there are none yet. Any thread may ask.

    Raises
    ------
    MemoryError
        The device has no room.
    """
    return tuple(_buffer_of(constant, context) for constant in constants)


def _buffer_of(constant: ConstantArray, context: Context) -> Buffer[Any]:
    with _lock:
        known: Buffer[Any] | None = context._states.get(constant)
        if known is not None and not known.destroyed:
            return known
        made: Buffer[Any] = Buffer(constant.shape, constant.var_type, context=context)
        made.write(constant.array)
        context._states[constant] = made
        return made


def add_constants(call: CheckedCall, constants: Sequence[ConstantArray], context: Context) -> CheckedCall:
    """Add what the caller of a kernel did not give: its constant arrays."""
    if not constants:
        return call
    buffers = upload_constants(constants, context)
    return replace(call, slots=(*call.slots, *buffers), resources=(*call.resources, *buffers))
