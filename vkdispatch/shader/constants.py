"""The constant arrays of kernels in device memory: one copy in each context, however many kernels use it."""

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.record import replace
from vkdispatch.codegen.constants import ConstantArray
from vkdispatch.shader.parameters import CheckedCall

# Launchers and recordings hold the buffers that they use: one whose array is gone ends with the last of them.
_uploaded: "WeakKeyDictionary[ConstantArray, list[Buffer[Any]]]" = WeakKeyDictionary()
_lock = threading.Lock()


def uploaded(constants: Sequence[ConstantArray], context: Context) -> tuple[Buffer[Any], ...]:
    """Return the buffers of constant arrays, made and written where there are none yet. Any thread may ask.

    Raises
    ------
    MemoryError
        The device has no room.
    """
    return tuple(_buffer_of(constant, context) for constant in constants)


def _buffer_of(constant: ConstantArray, context: Context) -> Buffer[Any]:
    with _lock:
        buffers = _uploaded.get(constant, ())
        for buffer in buffers:
            if buffer.context is context and not buffer.destroyed:
                return buffer
        made: Buffer[Any] = Buffer(constant.shape, constant.var_type, context=context)
        made.write(constant.array)
        _uploaded[constant] = [made, *(other for other in buffers if not other.destroyed)]
        return made


def with_constants(call: CheckedCall, constants: Sequence[ConstantArray], context: Context) -> CheckedCall:
    """Add what the caller of a kernel did not give: its constant arrays."""
    if not constants:
        return call
    buffers = uploaded(constants, context)
    return replace(call, slots=(*call.slots, *buffers), resources=(*call.resources, *buffers))
