"""Kernels traced from functions with any number of arguments, and those that all families launch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch import control_flow
from vkdispatch.base.buffer import Buffer, cached_buffer, renew_contents
from vkdispatch.base.buffers.kernel_errors import NOTES, Check, journal_of, read_note, take_ticket
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, int32, int64, is_signed_dtype, to_numpy_dtype, uint32, uint64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.codegen.annotations import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.sources import make_distinct
from vkdispatch.families.stored import store_results
from vkdispatch.shader.program import is_checking
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Kernels traced from Python functions with any number of arguments -----------------------------------
#
# A family lists the arguments of a kernel in the order of launches:
#
#     [*buffers(result=float32, mask=uint32 if has_mask else None), source.parameters, *numbers("length")]
#     def body(result, mask, elements, length): ...
#
# The body gets a variable for each argument, None for one that is left out, and a tuple for a list of them.


Argument = tuple[str, Any]
Extent = int | Sequence[int]


def buffers(**kinds: DType | None) -> list[Argument]:
    """Declare a buffer for each name with a dtype. A name with None has no buffer."""
    return [(name, None if kind is None else buffer[kind]) for name, kind in kinds.items()]


def numbers(*names: str, kind: DType = uint32) -> list[Argument]:
    """Declare numbers that are the same for all invocations."""
    return [(name, constant[kind]) for name in names]


def trace_kernel(
    name: str,
    body: Callable[..., None],
    arguments: Sequence[Any],
    local_size: Extent,
    workgroups: Any = None,
    exec_size: Any = None,
    *,
    origin: str | None = None,
    unsigned: bool = False,
) -> ShaderFunction:
    """Trace a kernel.

    Parameters
    ----------
    name
        The name of the kernel in messages, profiles and generated code.
    body
        Records the statements; it is called once, with what `arguments` say. Its control flow may use GPU
        values.
    arguments
        In the order of calls: names with annotations, and lists of them; see above.
    local_size
        Invocations of a workgroup.
    workgroups, exec_size
        The workgroups or the invocations of a launch, as `vd.shader` takes them; one of the two. Invocations
        beyond `exec_size` do nothing, and no barrier may wait for them.
    origin
        Where the user's part of the kernel is defined, such as "kernel.py:12".
    unsigned
        Whether all indices are uint32 that do not overflow for buffers of up to 2**32 - 2**16 elements:
        such buffers then need no indices of 64 bits.

    Raises
    ------
    TypeError, ValueError
        Tracing the body raises it.
    """
    extent = (local_size, 1, 1) if isinstance(local_size, int) else tuple(local_size)
    flags = vc.ShaderFlags.NONE if exec_size is not None else vc.ShaderFlags.NO_EXEC_BOUNDS
    flat = [pair for item in arguments for pair in (item if isinstance(item, list) else [item])]
    names = make_distinct([name for name, kind in flat if kind is not None])
    with vc.shader_context(flags) as context:
        kinds = [kind for _, kind in flat if kind is not None]
        variables = iter(context.declare_input_arguments(kinds, names))

        def variable_of(item: Argument | list[Argument]) -> Any:
            if isinstance(item, list):
                return tuple(map(variable_of, item))
            return None if item[1] is None else next(variables)

        control_flow.prepare_kernel(body, rewrite=True)(*map(variable_of, arguments))
    # buffers of any dtype are moved as words; maps check the buffers that they are called with
    description = context.get_description(_make_identifier(name)).reinterpreting()
    if unsigned:
        description = description.counting_unsigned()
    return ShaderFunction(description, extent, workgroups, exec_size, origin=origin)


def _make_identifier(text: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in text)


# ---- Zeros written to buffers on the device --------------------------------------------------------------


_GROUP = 256


def clear_buffer(buffer: Buffer[Any], graph: CommandGraph | None) -> None:
    """Fill a buffer of numbers with zeros: as words of 32 bits unless elements are smaller."""
    size = buffer.var_type.item_size
    if size % 4 == 0:
        _make_clear_kernel(uint32)(buffer, graph=graph, exec_size=buffer.size * size // 4)
    else:
        _make_clear_kernel(buffer.var_type)(buffer, graph=graph, exec_size=buffer.size)


@store_results
def _make_clear_kernel(kind: DType) -> ShaderFunction:
    def clear(words: vc.BufferVariable) -> None:
        words[vc.global_invocation_id().x] = vc.to_dtype(kind, 0)

    return trace_kernel(f"clear_{kind.name}", clear, buffers(words=kind), _GROUP, exec_size="words.size")


# ---- Scratch memory that is zeros when it is made: counters, and the boards of look-backs ----------------


_SCRATCH = "families.scratch"
_MIN_ZEROS = 64


class _Scratch:
    """The buffers of a context, by their owner, dtype and size."""

    def __init__(self) -> None:
        self.buffers: dict[tuple[str, DType, int], deque[Buffer[Any]]] = {}
        self.lock = Lock()


def take_zeros(
    context: Context, owner: str, count: int, kind: DType = uint32, *, turns: int = 1
) -> Buffer[Any]:
    """Return a buffer of at least `count` numbers, zeros or what earlier launches of its owner left there.

    Buffers may take turns, so that launches that follow one another need not wait for each other.
    """
    scratch = context._keep(_SCRATCH, _Scratch)
    size = max(_MIN_ZEROS, 1 << (count - 1).bit_length())
    with scratch.lock:
        known = scratch.buffers.get((owner, kind, size))
        if known is None:
            zeros = partial(np.zeros, size, to_numpy_dtype(kind))
            known = deque(cached_buffer(size, kind, zeros, context, steady=True) for _ in range(turns))
            scratch.buffers[owner, kind, size] = known
            if turns > 1:
                native.take_turns([buffer._native for buffer in known])
        known.rotate(-1)
        renew_contents(known[-1])
        return known[-1]


# ---- Errors in kernels of functions on buffers: see `base.buffers.kernel_errors` -------------------------


def raise_if_checked(context: Context) -> None:
    """Wait for the device and raise errors, if checks are on (VKDISPATCH_CHECK)."""
    if is_checking():
        context._native.wait_idle()


def note_error(
    journal: vc.BufferVariable,
    ticket: vc.ShaderVariable,
    place: vc.ShaderVariable,
    values: list[vc.ShaderVariable],
) -> None:
    """Note, in a kernel being traced, a wrong place with up to three integers in registers."""
    position = place.to_dtype(uint32).to_register()
    with vc.if_block(position < journal[ticket]):
        before = vc.atomic_min(journal[ticket], position).to_register()
        # the first place counts, whose note is written last
        with vc.if_block(position < before):
            number = vc.atomic_add(journal[0], 1).to_register()
            at = ((number & (len(NOTES) - 1)) * NOTES.step + NOTES.start).to_register()
            journal[at] = ticket
            journal[at + 1] = position
            for index, value in enumerate(values):
                journal[at + 2 + 2 * index] = value.to_dtype(uint32)
                if value.var_type in (int64, uint64):
                    journal[at + 3 + 2 * index] = (value >> 32).to_dtype(uint32)


# ---- Checks, on the device, of the integers that say where segments begin --------------------------------


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
    limits = () if length is None else (min(length, most),)
    check = _StartsCheck(function, kind, length, context.queue_count, name, wanted)
    _make_check_kernel(kind, length is not None)(
        journal_of(context), starts, *limits, take_ticket(context, check)
    )
    raise_if_checked(context)


@store_results
def _make_check_kernel(kind: DType, ascending: bool) -> ShaderFunction:
    def body(journal: vc.BufferVariable, starts: vc.BufferVariable, *limits: vc.ShaderVariable) -> None:
        position = vc.global_invocation_id().x
        start = starts[position].to_register()
        values = [start]
        bad = [start < 0] if is_signed_dtype(kind) else []
        if ascending:
            before = starts[vc.select(position == 0, 0, position - 1)].to_register()
            bad += [start > limits[0], start < before]
            values.append(before)
        with vc.if_block(vc.any(*bad)):
            note_error(journal, limits[-1], position, values)

    most = numbers("most", kind=kind) if ascending else []
    arguments = [*buffers(journal=uint32, starts=kind), *most, *numbers("ticket")]
    return trace_kernel("check_segments", body, arguments, _GROUP, exec_size="starts.size")
