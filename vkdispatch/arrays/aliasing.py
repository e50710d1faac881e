"""Arguments of a call that share memory.

A call reads some arrays and writes others, in an unspecified order. It may read the same memory several
times. It may read memory that it writes only if each element is read before it is overwritten:

before       arrays that are read as a whole before anything is written, as by sorts
alongside    arrays whose elements are each read only for the result with the same index, as by `cumsum`; and
             the arguments of an output map, which is called right before its result is stored
elsewhere    all other arrays

A map that reads only the mapped index counts as the array that it reads. Everything else is refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vkdispatch.arrays.maps.accesses import Access, find_accesses
from vkdispatch.arrays.maps.operand import Operand
from vkdispatch.arrays.maps.output import Output, accesses_of_sink
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.memoize import memoize
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import OverlapError
from vkdispatch.base.record import record


def is_same_memory(a: object, b: object) -> bool:
    """Whether two arguments are buffers of the same memory: the same buffer, or views of it."""
    if not isinstance(a, Buffer) or not isinstance(b, Buffer):
        return False
    # a destroyed buffer has no memory
    memory = getattr(a, "_native", None)
    return memory is not None and memory is getattr(b, "_native", None)


def share_memory(a: object, b: object) -> bool:
    """Whether two arguments are buffers that have memory in common, as slices of a shared array may."""
    if is_same_memory(a, b):
        return True
    if not isinstance(a, Buffer) or not isinstance(b, Buffer) or a.destroyed or b.destroyed:
        return False
    return a._native.overlaps(b._native)


def check_apart(name: str, buffer: object, other_name: str, other: object) -> None:
    """Raise OverlapError if two arguments are the same memory: one is written while the other is read."""
    if share_memory(buffer, other):
        raise OverlapError(
            f"{name}: it shares memory with {other_name}, and one is written while the other is read; "
            "pass another buffer"
        )


def check_same_or_apart(name: str, buffer: object, other_name: str, other: object) -> None:
    """Raise OverlapError if two arguments share memory and are not the same memory, of a call in place."""
    if not is_same_memory(buffer, other):
        check_apart(name, buffer, other_name, other)


def check_overlap(
    outputs: Sequence[tuple[str, Any]],
    target: Output | None = None,
    *,
    elsewhere: Sequence[Operand] = (),
    alongside: Sequence[Operand] = (),
    before: Sequence[Operand] = (),
    map_once: bool = True,
) -> None:
    """Check that a call does not overwrite what it still has to read.

    Parameters
    ----------
    outputs
        Names of the results and the buffers that the caller gave for them, or None.
    target
        How the first result is stored.
    elsewhere, alongside, before
        The arrays that are read, by when they are read.
    map_once
        Whether the output map is called once for each result.

    Raises
    ------
    OverlapError
        The call might overwrite something.
    """
    written = [each for each in outputs if each[1] is not None]
    if written:
        _check_outputs(written)
        for array in elsewhere:
            _check_array(written, array, apart=True)
        for array in alongside:
            _check_array(written, array, apart=False)
        if target is not None and target.arguments:
            _check_target(written, target, written[0] is outputs[0] and map_once)
    arrays = (*elsewhere, *alongside, *before)
    if any(array.source.is_writing for array in arrays) or (target is not None and target.sink.is_writing):
        _check_maps_that_write(written, arrays, target)


def _check_outputs(written: Sequence[tuple[str, Any]]) -> None:
    for number, (name, buffer) in enumerate(written):
        for other, same in written[:number]:
            if share_memory(buffer, same):
                raise OverlapError(
                    f"{other}, {name}: they share memory, and both are written; pass two buffers"
                )


def _check_array(written: Sequence[tuple[str, Any]], array: Operand, *, apart: bool) -> None:
    for position, argument in enumerate(array.arguments):
        for name, buffer in written:
            if not share_memory(argument, buffer):
                continue
            together = not apart and array.size == buffer.size
            if not together or not _is_safe(argument, buffer, accesses_of(array.source)[position]):
                raise _make_overlap_error(name, _name_of(array, position))


def _check_target(written: Sequence[tuple[str, Any]], target: Output, first: bool) -> None:
    for position, argument in enumerate(target.arguments):
        for number, (name, buffer) in enumerate(written):
            if not share_memory(argument, buffer):
                continue
            together = first and number == 0
            if not together or not _is_safe(argument, buffer, accesses_of_sink(target.sink)[position]):
                raise _make_overlap_error(name, _name_of(target, position))


def _is_safe(argument: Any, buffer: Any, access: Access) -> bool:
    """Whether a map reads, of the buffer of a result, only the element that the result overwrites."""
    here = access.here or argument.size == buffer.size == 1
    return here and not access.written and _is_aligned(argument, buffer)


def _is_aligned(argument: Any, buffer: Any) -> bool:
    """Whether elements with the same index are the same bytes."""
    same: bool = argument.var_type.item_size == buffer.var_type.item_size
    return same and is_same_memory(argument, buffer)


def _make_overlap_error(name: str, other: str) -> OverlapError:
    return OverlapError(
        f"{name}: it shares memory with {other}, which is read while {name} is written; pass another buffer"
    )


def _name_of(part: Operand | Output, position: int) -> str:
    if isinstance(part, Output):
        return f"{str(part.names[position])!r}, an argument of output_map"
    return part.name if part.source.is_plain else f"{str(part.source.names[position])!r} of {part.name}"


@memoize
def accesses_of(source: Source) -> tuple[Access, ...]:
    """Return how a map uses its arguments."""
    return (Access(),) if source.is_plain else find_accesses(source.names, source.annotations, source.trace)


# ---- maps that write -----------------------------------------------------------------------------------


@record(eq=False)
class _Part:
    """A buffer of a call: its name in messages, the buffer, how it is used, and what it is an argument of."""

    name: str
    buffer: Any
    access: Access
    owner: object


def _check_maps_that_write(
    written: Sequence[tuple[str, Any]], arrays: Sequence[Operand], target: Output | None
) -> None:
    """Raise OverlapError if a map writes to a buffer that the rest of the call uses."""
    parts = [_Part(name, buffer, Access(), written) for name, buffer in written]
    parts += _list_parts(arrays, target)
    for part in parts:
        if not part.access.written:
            continue
        for other in parts:
            if other is part or not share_memory(part.buffer, other.buffer):
                continue
            both_here = part.access.here and other.access.here and _is_aligned(part.buffer, other.buffer)
            if part.owner is not other.owner or not both_here:
                raise OverlapError(
                    f"{other.name}: it shares memory with {part.name}, which the map writes; pass another "
                    "buffer"
                )


def _list_parts(arrays: Iterable[Operand], target: Output | None) -> Iterator[_Part]:
    for array in arrays:
        yield from _list_parts_of(array, accesses_of(array.source))
    if target is not None:
        yield from _list_parts_of(target, accesses_of_sink(target.sink))


def _list_parts_of(owner: Operand | Output, accesses: Sequence[Access]) -> Iterator[_Part]:
    for position, (argument, access) in enumerate(zip(owner.arguments, accesses, strict=True)):
        if isinstance(argument, Buffer):
            yield _Part(_name_of(owner, position), argument, access, owner)
