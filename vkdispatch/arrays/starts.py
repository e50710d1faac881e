"""Where segments begin, as integers in device memory: looked at before they are used."""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.waiting import on_queue, read_queues
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, int32, int64, is_signed_dtype, uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.shader.shader_function import ShaderFunction

_NONE = 0xFFFFFFFF
_GROUP = 256


def raise_bad_starts(starts: Buffer[Any], length: int | None = None) -> None:
    """Wait for where segments begin, and raise if they make no sense on a queue.

    Parameters
    ----------
    starts
        A buffer of (u)int32 or (u)int64, the argument `segments`.
    length
        The largest that there may be, where they have to ascend; None: they only must not be negative.

    Raises
    ------
    ValueError
        It names the first such place, and where it is.
    """
    kind = starts.var_type
    if not starts.size or (length is None and not is_signed_dtype(kind)):
        return
    found: Buffer[Any] = function_buffer(1, uint32, context=starts.context)
    found.write(np.full(1, _NONE, np.uint32))
    most = (1 << 8 * kind.item_size - (kind in (int32, int64))) - 1
    numbers = () if length is None else (min(length, most),)
    _checking(kind, length is not None)(found, starts, *numbers)
    for queue, (first,) in enumerate(read_queues(found)):
        if first == _NONE:
            continue
        place = int(first)
        *before, value = starts.read_range(max(place - 1, 0), place + 1, queue)
        wanted = "ints from 0 on" if length is None else f"ints from 0 to {length} in ascending order"
        behind = f", behind {before[0]}" if length is not None and before else ""
        on = on_queue(queue, starts.context)
        raise ArgumentValueError(f"segments: expected {wanted}, got {value} at [{place}]{behind}{on}")


@remembered
def _checking(kind: DType, ascending: bool) -> ShaderFunction:
    buffer: Any = vc.Buff
    constant: Any = vc.Const

    def body(found: Any, starts: Any, *numbers: Any) -> None:
        position = vc.global_invocation_id().x
        start = starts[position].to_register()
        bad = [start < 0] if is_signed_dtype(kind) else []
        if ascending:
            before = starts[vc.select(position == 0, 0, position - 1)].to_register()
            bad += [start > numbers[0], start < before]
        with vc.if_block(vc.any(*bad)):
            vc.atomic_min(found[0], position)

    arguments = [("found", buffer[uint32]), ("starts", buffer[kind])]
    if ascending:
        arguments.append(("most", constant[kind]))
    return traced("check_segments", body, arguments, _GROUP, exec_size="starts.size")
