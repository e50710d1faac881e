"""The `repr` of buffers: some elements at the ends of each axis, as NumPy prints them, and the device."""

import itertools
import math
from typing import Any, Protocol

from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.host_numpy import np
from vkdispatch.base.structures import is_structure

Array = np.ndarray[Any, Any]


class _Shown(Protocol):
    """What `describe_buffer` needs of a buffer."""

    shape: tuple[int, ...]
    size: int
    var_type: DType
    context: Context
    destroyed: bool

    def _read(
        self,
        start: int,
        elements: tuple[int, ...],
        index: int | None,
        out: Array | None = None,
        raise_findings: bool = True,
    ) -> Array: ...

    def _describe_shape(self) -> tuple[str, ...]: ...


# Elements to show at either end of an axis that is not shown in full, by the number of axes.
_ENDS = (3, 3, 3, 2)


def describe_buffer(buffer: _Shown) -> str:
    """Return the `repr` of a buffer. Reads from queue 0; errors of reads are shown, not raised."""
    start = f"{type(buffer).__name__}("
    contents, facts = _describe_contents(buffer, start), _describe_facts(buffer)
    line = f"{start}{contents}, {facts})"
    if "\n" not in contents and len(line) <= np.get_printoptions()["linewidth"]:
        return line
    return f"{start}{contents},\n{' ' * len(start)}{facts})"


def _describe_contents(buffer: _Shown, start: str) -> str:
    if buffer.destroyed:
        return "<device lost>" if buffer.context.lost else "<destroyed>"
    ends = _ENDS[len(buffer.shape)]
    try:
        return np.array2string(
            _read_ends(buffer, ends), separator=", ", prefix=start, threshold=0, edgeitems=ends
        )
    except Exception as error:
        # The text may be shown while another error is handled.
        return f"<{type(error).__name__} when read>"


def _read_ends(buffer: _Shown, ends: int) -> Array:
    """Return the contents, with one undefined entry for the omitted part of each axis."""
    shape = buffer.shape
    if not shape or not buffer.size:
        return _read(buffer, 0, shape)
    tail = _read(buffer, 0, (0,))
    seen = np.zeros((*(min(length, 2 * ends + 1) for length in shape), *tail.shape[1:]), tail.dtype)
    leading = [_list_shown(length, ends) for length in shape[:-1]]
    for row in itertools.product(*leading):
        start = _flatten(row, shape) * shape[-1]
        line: Array = seen[
            tuple(_move_place(at, length, ends) for at, length in zip(row, shape, strict=False))
        ]
        if shape[-1] <= 2 * ends:
            line[:] = _read(buffer, start, shape[-1:])
        else:
            line[:ends] = _read(buffer, start, (ends,))
            line[-ends:] = _read(buffer, start + shape[-1] - ends, (ends,))
    return seen


def _read(buffer: _Shown, start: int, elements: tuple[int, ...]) -> Array:
    # Errors that the device has found are raised by waits, not here.
    return buffer._read(start, elements, 0, None, False)


def _list_shown(length: int, ends: int) -> list[int]:
    """Return the indices along an axis that are shown."""
    places = range(length)
    return [*places] if length <= 2 * ends else [*places[:ends], *places[-ends:]]


def _move_place(place: int, length: int, ends: int) -> int:
    """Return the position of an index among those that are shown, with one omitted entry in the middle."""
    return place if place < ends or length <= 2 * ends else place - length + 2 * ends + 1


def _flatten(row: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the flat index of a row, from its indices along all axes but the last."""
    return sum(at * math.prod(shape[axis + 1 : -1]) for axis, at in enumerate(row))


def _describe_facts(buffer: _Shown) -> str:
    kind = buffer.var_type
    name = kind.name if is_structure(kind) else f"vd.{kind.__name__}"
    facts = [*buffer._describe_shape(), f"dtype={name}", f"device={_describe_device(buffer)!r}"]
    queues = buffer.context.queue_count
    return ", ".join([*facts, f"queues={queues}"] if queues > 1 else facts)


def _describe_device(buffer: _Shown) -> str:
    first, *others = (info.device_name for info in buffer.context.device_infos)
    return f"{first} and {len(others)} more" if others else first
