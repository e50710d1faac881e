"""Indices that arrays hold: which place each means, and what is done about those that mean none."""

from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.calls import is_recorded
from vkdispatch.arrays.kernels import traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.waiting import on_queue, read_queues
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.rearrange.words import Numbers, numbers_of
from vkdispatch.shader.shader_function import ShaderFunction

GROUP = 256
MODES = ("wrap", "clip", "raise")
_NONE = 0xFFFFFFFF
_MOST_NARROW = (1 << 31) - 1
_LONG = (dtype.int64, dtype.uint64)
_INTEGERS = (
    dtype.int8,
    dtype.uint8,
    dtype.int16,
    dtype.uint16,
    dtype.int32,
    dtype.uint32,
    *_LONG,
)


class BadIndexError(VkDispatchError, IndexError):
    """An index means no element of the array."""


def checked_mode(mode: object, graph: CommandGraph | None) -> str:
    """Return what is done about indices beyond the ends; None: "raise" where that is possible.

    Raises
    ------
    ValueError
        There is no such mode, or it is "raise" and the call is being recorded: who replays a graph does not
        wait.
    """
    recorded = is_recorded(graph)
    if mode is None:
        return "wrap" if recorded else "raise"
    if mode not in MODES:
        raise ArgumentValueError(f"mode: expected one of {', '.join(map(repr, MODES))}, got {mode!r}")
    if mode == "raise" and recorded:
        raise ArgumentValueError(
            'mode: "raise" has to wait for the indices, which a graph that is being recorded cannot; "wrap" '
            'and "clip" can'
        )
    return str(mode)


def check_indices(indices: Operand, length: int, name: str = "indices") -> None:
    """Check what can be known of indices before they are looked at.

    Raises
    ------
    TypeError
        They are no integers.
    IndexError
        There are some, and there is nothing that they could mean.
    """
    if indices.var_type not in _INTEGERS:
        raise ArgumentTypeError(f"{name}: expected integers, got {indices.var_type.name}")
    if indices.size and not length:
        raise BadIndexError(f"{name}: there is no element to be found in an array, or along an axis, of none")


def is_long(indices: Operand, length: int) -> bool:
    """Whether places are computed in 64 bits."""
    return indices.var_type in _LONG or length > _MOST_NARROW


def resolved(index: Any, length: Callable[[DType], Any], *, mode: str, long: bool, big: bool) -> Any:
    """Return the place that an index means, as a register.

    Parameters
    ----------
    length
        Gives the count of places, as a GPU value of a type.
    mode
        "wrap" or "clip".
    long
        Whether to compute in 64 bits.
    big
        Whether a place may need more than 32 of them.
    """
    signed = index.var_type in (dtype.int16, dtype.int32, dtype.int64)
    kind: DType = (dtype.int64 if long else dtype.int32) if signed else dtype.uint64 if long else dtype.uint32
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


def raise_bad_index(
    indices: Operand, length: int, what: str, name: str = "indices", *, negative: bool = True
) -> None:
    """Wait for the indices, and raise if one is not in [-length, length), or in [0, length).

    `what` has so many elements, `name` is what messages call the indices, and `negative` says whether these
    may be.

    Raises
    ------
    IndexError
        It names the first such index, and where it is.
    """
    if not indices.size:
        return
    found: Buffer[Any] = function_buffer(2, dtype.uint32, context=indices.context)
    found.write(np.full(2, _NONE, np.uint32))
    long = is_long(indices, length)
    numbers, values = numbers_of({"count": indices.size, "length": length})
    _checking(indices.source, long, numbers, negative)(found, *indices.arguments, *values)
    for queue, (first,) in enumerate(read_queues(found, 1)):
        if first != _NONE:
            raise _bad_index(indices, int(first), queue, f"{what} of {length} elements", name)


def _bad_index(indices: Operand, first: int, queue: int, what: str, name: str) -> BadIndexError:
    # what was found is the first bad one, if there are fewer than 2**32 indices
    argument = indices.arguments[0]
    plain = indices.source.plain
    value = f"{argument.read_range(first, first + 1, queue)[0]}" if plain else "the one"
    place = np.unravel_index(first, indices.shape) if indices.shape else ()
    where = ", ".join(str(int(each)) for each in place)
    on = on_queue(queue, indices.context)
    return BadIndexError(f"{name}: {value} at [{where}]{on} is out of bounds for {what}")


@remembered
def _checking(source: Source, long: bool, numbers: Numbers, negative: bool) -> ShaderFunction:
    buffer: Any = vc.Buff
    own = 1 + len(source.names)

    def body(*variables: Any) -> None:
        position = vc.global_invocation_id().x
        index = source.value(variables[1:own], position)
        signed = index.var_type in (dtype.int16, dtype.int32, dtype.int64)
        if signed:
            kind: DType = dtype.int64 if long else dtype.int32
            place = index.to_dtype(kind).to_register()
            count = numbers.value(variables[own:], "length", kind).to_register()
            bad = vc.any(place >= count, place < (-count if negative else 0))
        else:
            kind = dtype.uint64 if long else dtype.uint32
            place = index.to_dtype(kind).to_register()
            bad = place >= numbers.value(variables[own:], "length", kind)
        with vc.if_block(bad):
            vc.atomic_min(variables[0][1], position)

    return traced(
        "check_indices",
        body,
        [
            ("found", buffer[dtype.uint32]),
            *zip(source.names, source.annotations, strict=True),
            *numbers.arguments,
        ],
        GROUP,
        exec_size=numbers.text("count"),
    )
