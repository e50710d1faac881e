"""What `vd.sort`, `vd.argsort` and `vd.sort_by_key` are called with, checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_axis, parse_dtype, split_shape
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.kernels import note_bad_starts
from vkdispatch.families.operands import ArrayLike, Operand, parse_operand, parse_pair
from vkdispatch.shader.signature import describe
from vkdispatch.sorting.keys import Order, is_sortable
from vkdispatch.sorting.rearranging import Along

Segments = Buffer[Any] | np.ndarray[Any, Any] | Sequence[int]
_POSITION_TYPES = (dtype.int64, dtype.uint64, dtype.int32, dtype.uint32)


@record(eq=False)
class SortOptions:
    """The options that all sorts have; see `vd.sort`."""

    axis: int | None
    descending: bool
    stable: bool | None
    segments: "Segments | None"
    graph: CommandGraph | None


@record(eq=False)
class SortKeys:
    """Keys to be sorted.

    Attributes
    ----------
    x, shape
        The array, and the shape of the result.
    along
        The array as rows.
    order
        The order of the keys.
    starts
        Where segments begin, in device memory; None without segments.
    graph
        The graph to record into.
    """

    x: Operand
    shape: tuple[int, ...]
    along: Along
    order: Order
    starts: Buffer[Any] | None
    graph: CommandGraph | None


def parse_keys(function: str, x: ArrayLike, options: SortOptions, name: str = "x") -> SortKeys:
    """Check the keys and the options of a sort. See `vd.sort` for what it raises."""
    keys = parse_operand(x, name)
    shape: tuple[int, ...]
    if not is_sortable(keys.var_type):
        raise ArgumentTypeError(
            f"{name}: {keys.var_type.name} has no order; sort by a component of it, or by its length"
        )
    flags: list[tuple[object, str]] = [(options.descending, "descending"), (options.stable, "stable")]
    for flag, what in flags:
        if not isinstance(flag, (bool, np.bool_)) and not (flag is None and what == "stable"):
            raise ArgumentTypeError(f"{what}: expected True or False, got {describe(flag)}")
    if options.axis is None:
        shape, along = (keys.size,), Along(1, keys.size, 1)
    else:
        shape = keys.shape
        along = Along(*split_shape(shape, parse_axis(options.axis, len(shape))))
    segments, graph = options.segments, options.graph
    starts = None if segments is None else _parse_segments(function, segments, along.length, graph)
    return SortKeys(keys, shape, along, Order(keys.var_type, bool(options.descending)), starts, graph)


def _parse_segments(
    function: str, segments: Segments, length: int, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return where segments begin, in device memory. The device checks those in a buffer."""
    if isinstance(segments, Buffer):
        segments.require_alive()
        if segments.var_type not in _POSITION_TYPES:
            raise ArgumentTypeError(
                f"segments: expected a buffer of (u)int32 or (u)int64, got {segments.var_type.name}"
            )
        if len(segments.shape) != 1:
            raise ArgumentValueError(f"segments: expected one axis, got the shape {segments.shape}")
        if not is_recorded(graph):
            note_bad_starts(function, segments, length)
        return segments
    try:
        starts = np.asarray(segments)
    except ValueError:
        starts = np.empty((0, 0))
    if starts.ndim == 1 and not starts.size:
        starts = starts.astype(np.int64)
    if starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"segments: expected where segments begin, as ints in ascending order, got {describe(segments)}"
        )
    if starts.size and (np.any(starts[1:] < starts[:-1]) or starts[0] < 0 or int(starts[-1]) > length):
        raise ArgumentValueError(
            f"segments: expected ints from 0 to {length} in ascending order, got {segments!r}"
        )
    narrow = starts.astype(np.uint32 if length <= 0xFFFFFFFF else np.uint64)
    return asbuffer(narrow)


def parse_position_type(kind: object, out: object, length: int) -> DType:
    """Return the dtype of positions in rows of a length. By default it is that of `out`, or int64."""
    if kind is None:
        kind = out.var_type if isinstance(out, Buffer) else dtype.int64
    try:
        parsed = parse_dtype(kind)
    except (ArgumentTypeError, ArgumentValueError):
        raise ArgumentTypeError(f"dtype: expected (u)int32 or (u)int64, got {describe(kind)}") from None
    if parsed not in _POSITION_TYPES:
        raise ArgumentTypeError(f"dtype: expected (u)int32 or (u)int64 for positions, got {parsed.name}")
    most = {dtype.int32: 1 << 31, dtype.uint32: 1 << 32}.get(parsed)
    if most is not None and length > most:
        raise ArgumentValueError(f"dtype: positions up to {length - 1} do not fit {parsed.name}")
    return parsed


def parse_outputs(out: object, has_several: bool, count: int) -> tuple[Any, list[Any]]:
    """Return the buffers for the keys and for each of the values; None for new ones."""
    keys, values = parse_pair(out, "the keys and for the values")
    if not has_several:
        return keys, [values]
    if values is None:
        return keys, [None] * count
    if not isinstance(values, (tuple, list)) or len(values) != count:
        raise ArgumentTypeError(f"out: expected {count} buffers for the values, got {describe(values)}")
    return keys, list(values)
