"""The constant arrays of kernels in device memory: one copy in each context, which all kernels share."""

import threading
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer, cached_buffer, renew_contents
from vkdispatch.base.context import Context
from vkdispatch.base.record import replace
from vkdispatch.codegen.arguments import ConstantArray
from vkdispatch.shader.arguments.values import CheckedCall

# Launchers and recordings hold the buffers that they use, which may outlive the arrays.
_lock = threading.Lock()


def upload_constants(constants: Sequence[ConstantArray], context: Context) -> tuple[Buffer[Any], ...]:
    """Return the buffers of constant arrays; make and write those that do not exist yet. Thread-safe.

    Raises
    ------
    MemoryError
        The device is out of memory.
    """
    return tuple(_upload(constant, context) for constant in constants)


def _upload(constant: ConstantArray, context: Context) -> Buffer[Any]:
    with _lock:
        known: Buffer[Any] | None = context._states.get(constant)
        if known is not None and not known.destroyed:
            renew_contents(known)
            return known
        array = constant.array  # the buffer must not refer to the constant, its key
        buffer = cached_buffer(constant.shape, constant.var_type, lambda: array, context)
        context._states[constant] = buffer
        return buffer


def add_constants(call: CheckedCall, constants: Sequence[ConstantArray], context: Context) -> CheckedCall:
    """Append a kernel's constant arrays to the arguments of a call."""
    if not constants:
        return call
    buffers = upload_constants(constants, context)
    return replace(call, slots=(*call.slots, *buffers), resources=(*call.resources, *buffers))
