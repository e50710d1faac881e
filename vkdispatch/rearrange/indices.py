"""Indices in arrays: the place of each, and what happens to those out of bounds."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kernel_errors import Check, journal_of, read_note, take_ticket
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import kernels
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.kernels import note_error, raise_if_checked, trace_kernel
from vkdispatch.families.operands import Operand
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import INTEGERS, LONG_INTEGERS, SIGNED_INTEGERS
from vkdispatch.rearrange.moves import Numbers, pack_numbers
from vkdispatch.shader.shader_function import ShaderFunction

GROUP = 256
MODES = ("wrap", "clip", "raise")
_REMEDY = 'mode="wrap" and mode="clip" allow it'
_MAX_NARROW = (1 << 31) - 1


class BadIndexError(VkDispatchError, IndexError):
    """An index is out of bounds."""


def parse_mode(mode: object, graph: CommandGraph | None) -> str:
    """Return what happens to indices out of bounds; None becomes "raise", or "wrap" if the call is recorded.

    Raises
    ------
    ValueError
        There is no such mode, or it is "raise" and the call is recorded.
    """
    recorded = is_recorded(graph)
    if mode is None:
        return "wrap" if recorded else "raise"
    if mode not in MODES:
        raise ArgumentValueError(f"mode: expected one of {', '.join(map(repr, MODES))}, got {mode!r}")
    if mode == "raise" and recorded:
        raise ArgumentValueError('mode: "raise" cannot be recorded in a graph; pass "wrap" or "clip"')
    return str(mode)


def check_indices(indices: Operand, length: int, name: str = "indices") -> None:
    """Check what is known of indices before they are read.

    Raises
    ------
    TypeError
        They are not integers.
    IndexError
        There are indices, but no elements.
    """
    if indices.var_type not in INTEGERS:
        raise ArgumentTypeError(f"{name}: expected integers, got {indices.var_type.name}")
    if indices.size and not length:
        raise BadIndexError(f"{name}: cannot take elements from an empty array or an axis of length 0")


def is_long(indices: Operand, length: int) -> bool:
    """Whether places are computed in 64 bits."""
    return indices.var_type in LONG_INTEGERS or length > _MAX_NARROW


def resolve_index(index: Any, length: Callable[[DType], Any], *, mode: str, long: bool, big: bool) -> Any:
    """Return the place of an index, in a register.

    Parameters
    ----------
    length
        Returns the number of places as a GPU value of a type.
    mode
        "clip"; all others wrap.
    long
        Whether to compute in 64 bits.
    big
        Whether a place may need more than 32 bits.
    """
    kind = _choose_place_type(index.var_type, long)
    signed = kind in SIGNED_INTEGERS
    place = index.to_dtype(kind).to_register()
    count = length(kind).to_register()
    if mode == "clip":
        least = vc.max(place, 0) if signed else place
        place = vc.min(least, count - 1).to_register()
    else:
        if signed:
            with vc.if_block(place < 0):
                place += count
            with vc.if_block(vc.any(place < 0, place >= count)):
                place[:] = vc.floor_mod(place, count)
        else:
            with vc.if_block(place >= count):
                place[:] = place % count
    return place if big else place.to_dtype(dtype.uint32).to_register()


@record
class _IndexCheck(Check):
    """The check that indices are within bounds."""

    function: str
    name: str
    what: str
    remedy: str
    shape: tuple[int, ...]
    kind: DType
    queue_count: int

    def error(self, place: int, words: Any, queue: int, call: str) -> BadIndexError:
        # the first bad one, if there are fewer than 2**32 indices
        value = "one" if words is None else str(read_note(words, 0, self.kind))
        where = ", ".join(str(int(coordinate)) for coordinate in np.unravel_index(place, self.shape or (1,)))
        on = f" on queue {queue}" if self.queue_count > 1 else ""
        place_text = f"[{where if self.shape else ''}]{on}"
        return BadIndexError(
            f"{self.name}: {value} at {place_text} is out of bounds for {self.what}, in {call}; {self.remedy}"
        )


def note_bad_index(
    function: str,
    indices: Operand,
    length: int,
    what: str,
    name: str = "indices",
    remedy: str = _REMEDY,
    *,
    negative: bool = True,
) -> None:
    """Let the device check that all indices are in [-length, length), or in [0, length).

    If an index is not, the next wait for the device raises an IndexError that names the first such index and
    its position: this call does if checks are on (VKDISPATCH_CHECK).

    Parameters
    ----------
    function
        The name of the function that was called.
    what
        What has `length` elements, as the error message calls it.
    name
        The name of the argument.
    remedy
        What the error message advises.
    negative
        Whether negative indices are allowed.
    """
    if not indices.size:
        return
    long = is_long(indices, length)
    numbers, values = pack_numbers({"count": indices.size, "length": length})
    kernel = _make_check_kernel(indices.source, long, numbers, negative)
    journal, ticket = prepare_notes(function, indices, length, what, name, remedy)
    kernel(journal, *indices.arguments, *values, ticket)
    raise_if_checked(indices.context)


def prepare_notes(
    function: str, indices: Operand, length: int, what: str, name: str = "indices", remedy: str = _REMEDY
) -> tuple[Buffer[Any], int]:
    """Return the arguments of a kernel that calls `note_bad_places`; see `note_bad_index`.

    The caller calls `raise_if_checked` after the launch.
    """
    context = indices.context
    kind = _choose_place_type(indices.var_type, is_long(indices, length))
    what = f"{what} of {length} elements"
    check = _IndexCheck(function, name, what, remedy, indices.shape, kind, context.queue_count)
    return journal_of(context), take_ticket(context, check)


def _choose_place_type(index: DType, long: bool) -> DType:
    """Return the type in which the place of an index is computed, and compared with the length."""
    if index in SIGNED_INTEGERS:
        return dtype.int64 if long else dtype.int32
    return dtype.uint64 if long else dtype.uint32


def find_out_of_bounds(
    index: Any, length: Callable[[DType], Any], *, long: bool, negative: bool = True
) -> tuple[Any, Any]:
    """Return an index in a register, and whether it is out of bounds; the rest as of `resolve_index`."""
    kind = _choose_place_type(index.var_type, long)
    place = index.to_dtype(kind).to_register()
    if kind not in SIGNED_INTEGERS:
        return place, place >= length(kind)
    count = length(kind).to_register()
    return place, vc.any(place >= count, place < (-count if negative else 0))


def note_bad_places(
    journal: Any,
    ticket: Any,
    places: Sequence[tuple[Any, Any]],
    length: Callable[[DType], Any],
    *,
    long: bool,
) -> None:
    """Note, in a kernel being traced, which indices are out of bounds.

    `places` are pairs in registers: the position of an index, and the index. The rest as of `resolve_index`.
    """
    checked = []
    for position, index in places:
        place, bad = find_out_of_bounds(index, length, long=long)
        checked.append((position, place, bad.to_register()))
    # one branch for all, which is rarely taken
    with vc.if_block(vc.any(*(bad for _, _, bad in checked)) if len(checked) > 1 else checked[0][2]):
        for position, place, bad in checked:
            with vc.if_block(bad):
                note_error(journal, ticket, position, [place])


@store_results
def _make_check_kernel(source: Source, long: bool, numbers: Numbers, negative: bool) -> ShaderFunction:
    def body(journal: Any, indices: Any, variables: Any, ticket: Any) -> None:
        position = vc.global_invocation_id().x
        index = source.value(indices, position)
        length = functools.partial(numbers.value, variables, "length")
        place, bad = find_out_of_bounds(index, length, long=long, negative=negative)
        with vc.if_block(bad):
            note_error(journal, ticket, position, [place])

    journal, ticket = kernels.buffers(journal=dtype.uint32), kernels.numbers("ticket")
    arguments = [*journal, source.parameters, numbers.arguments, *ticket]
    return trace_kernel("check_indices", body, arguments, GROUP, exec_size=numbers.text("count"))
