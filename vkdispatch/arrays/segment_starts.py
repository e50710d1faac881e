"""Checks, on the device, of the integers that say where segments begin."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.deferred_errors import note_error, raise_if_checked
from vkdispatch.arrays.kernels import buffer, constant, trace_kernel
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kernel_errors import Check, journal_of, read_note, take_ticket
from vkdispatch.base.dtype import DType, int32, int64, is_signed_dtype, uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256


@record
class _StartsCheck(Check):
    """The check that segments begin where they may."""

    function: str
    kind: DType
    length: int | None
    queue_count: int
    name: str
    wanted: str | None

    def error(self, place: int, words: Any, queue: int, call: str) -> ArgumentValueError:
        ascending = self.length is not None
        wanted = f"ints from 0 to {self.length} in ascending order" if ascending else "ints from 0 on"
        value: int | str = "another" if words is None else read_note(words, 0, self.kind)
        behind = (
            f", behind {read_note(words, 1, self.kind)}" if ascending and place and words is not None else ""
        )
        on = f" on queue {queue}" if self.queue_count > 1 else ""
        if self.wanted is not None:
            return ArgumentValueError(
                f"{self.name}: expected {self.wanted}, got another at [{place}]{on}, in {call}"
            )
        return ArgumentValueError(
            f"{self.name}: expected {wanted}, got {value} at [{place}]{behind}{on}, in {call}"
        )


def note_bad_starts(
    function: str,
    starts: Buffer[Any],
    length: int | None = None,
    name: str = "segments",
    wanted: str | None = None,
) -> None:
    """Let the device check that segments begin where they may, or that other integers are not negative.

    If one does not, the next wait for the device raises a ValueError that names the first such start
    and its position: this call does if checks are on (VKDISPATCH_CHECK).

    Parameters
    ----------
    function
        The name of the function that was called.
    starts
        The argument `segments`, a buffer of (u)int32 or (u)int64.
    length
        The largest start, if starts have to ascend; None if they only have to be nonnegative.
    name
        What messages call the argument.
    wanted
        What messages say was expected, of numbers that are negative where the argument is wrong.
    """
    kind = starts.var_type
    if not starts.size or (length is None and not is_signed_dtype(kind)):
        return
    context = starts.context
    most = (1 << 8 * kind.item_size - (kind in (int32, int64))) - 1
    numbers = () if length is None else (min(length, most),)
    check = _StartsCheck(function, kind, length, context.queue_count, name, wanted)
    _make_check_kernel(kind, length is not None)(
        journal_of(context), starts, *numbers, take_ticket(context, check)
    )
    raise_if_checked(context)


@memoize
def _make_check_kernel(kind: DType, ascending: bool) -> ShaderFunction:
    def body(journal: vc.BufferVariable, starts: vc.BufferVariable, *numbers: vc.ShaderVariable) -> None:
        position = vc.global_invocation_id().x
        start = starts[position].to_register()
        values = [start]
        bad = [start < 0] if is_signed_dtype(kind) else []
        if ascending:
            before = starts[vc.select(position == 0, 0, position - 1)].to_register()
            bad += [start > numbers[0], start < before]
            values.append(before)
        with vc.if_block(vc.any(*bad)):
            note_error(journal, numbers[-1], position, values)

    arguments = [("journal", buffer[uint32]), ("starts", buffer[kind])]
    if ascending:
        arguments.append(("most", constant[kind]))
    arguments.append(("ticket", constant[uint32]))
    return trace_kernel("check_segments", body, arguments, _GROUP, exec_size="starts.size")
