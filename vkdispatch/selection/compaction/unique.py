"""`vd.unique`: the elements that there are, each once.

elements   3 1 3 2 1          sorted, with where they were:    1 1 2 3 3    positions  1 4 3 0 2
heads      elements that differ from the one before            1 0 1 1 0    flags
unique     what is flagged, put together                       1   2 3      (see `compaction`)
index      positions of the heads: the first of each, for      1   3 0
sorts are stable
counts     from each head to the next                          2   1 2
inverse    number of heads up to an element, less one,         2 0 2 1 0
stored where the element was
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.calls import array_function, is_recorded
from vkdispatch.arrays.clearing import cleared
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.operand import Operand, operand
from vkdispatch.arrays.output import Output, Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.repeating import repeatable
from vkdispatch.arrays.results import result
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.selection.compaction.flags import (
    Writer,
    compacted,
    fill_groups,
    filled,
    flagged,
    flags_of,
    rest,
)
from vkdispatch.selection.sizes import checked_size
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order, is_sortable, raw_type
from vkdispatch.sorting.launching import position_type, sort_rows
from vkdispatch.sorting.rearranging import Along, copied_type, into_rows

_GROUP = 256
# `bits` and `starts` of `Flags` of the heads; all elements in their order, and where they were.
_Runs = tuple[Buffer[Any], Buffer[Any], Buffer[Any], Buffer[Any] | None]


@array_function
def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Any:
    """Find the elements that there are, sorted, each once: `np.unique`.

    Parameters
    ----------
    x
        A buffer of scalars or complex numbers, or a map called with its arguments. All of its axes are taken
        as one.
    return_index
        Whether to return where in `x` each is found first.
    return_inverse
        Whether to return which of them each element of `x` is.
    return_counts
        Whether to return how often each is there.
    equal_nan
        Whether all NaNs are one element, the last; else each is one of its own.
    size
        How many elements the result has, of more the first ones; None: as many as there are, for which the
        call waits. Graphs need it.
    fill_value
        With `size`: the number behind all elements; None: the smallest element. Indices there are that one's,
        and counts 0.
    output_map
        A map that is given each of the elements found.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of one axis. If anything else is asked for a tuple: that buffer, indices, inverse (of the shape
    of `x`), counts, those that are; int64.

    Raises
    ------
    TypeError
        `x` is no array of numbers or truth values.
    ValueError
        `size` is negative, or not 0 for an array of no elements without a `fill_value`; `x` has 2**32
        elements or more.
    RuntimeError
        Without `size` in a graph.
    """
    if size is not None:
        size = checked_size(size)
    elif is_recorded(graph):
        raise UsageError("size: how many elements there are is not known in a graph; give size=")
    asks = (bool(return_index), bool(return_inverse), bool(return_counts))
    if getattr(x, "size", None) == 0:
        return _of_nothing(x, _Asked(*asks), size, fill_value, output_map, graph)
    placed = bool(return_index or return_inverse)
    runs = _count_runs(x, placed, bool(equal_nan), size, output_map, graph)
    count = flags_of(runs[0], runs[1], x.size).total("x") if size is None else size
    found = _Found(*_heads(x, asks, runs, count, size is not None, output_map, graph))
    if size:
        _pad(found, runs[1], fill_value, graph)
    return found.returned()


def _checked(x: Any, size: int | None, output_map: Any) -> tuple[Operand, Output]:
    values = operand(x, "x")
    if not is_sortable(values.var_type):
        raise ArgumentTypeError(f"x: expected numbers or truth values, got {values.var_type.name}")
    sink = output(output_map, values.var_type, most=values.size if size is None else min(values.size, size))
    check_overlap((), sink, elsewhere=[values])
    return values, sink


@repeatable
def _count_runs(
    x: Any, placed: bool, equal_nan: bool, size: int | None, output_map: Any, graph: CommandGraph | None
) -> _Runs:
    """Check the arguments of `unique`, sort, `placed` with places, and find the heads of runs.

    Waits for nothing.
    """
    values, _ = _checked(x, size, output_map)
    keys, positions = _sorted(values, placed, graph)
    flags = flagged(operand(keys), graph, summed=size is not None, differs=True, equal_nan=equal_nan)
    return flags.bits, flags.starts, keys, positions


@repeatable
def _heads(
    x: Any,
    asks: tuple[bool, bool, bool],
    runs: _Runs,
    count: int,
    fixed: bool,
    output_map: Any,
    graph: CommandGraph | None,
) -> tuple[Buffer[Any], Buffer[Any] | None, Buffer[Any] | None, Buffer[Any] | None]:
    """Return the first so many elements, and the index, inverse and counts that are asked for.

    Waits for nothing. `fixed`: there may be more elements, or fewer.
    """
    values, asked = operand(x, "x"), _Asked(*asks)
    bits, starts, keys, positions = runs
    sink = output(output_map, values.var_type, most=min(values.size, count))
    found = _results(values, asked, sink.out_type, count)
    # one more place than elements, for the counts of the last
    heads: Buffer[Any] | None = (
        function_buffer(count + 1, dtype.int64, context=x.context) if asked.counts else None
    )
    if count or asked.inverse:
        kind = None if positions is None else positions.var_type
        plain = sink.sink.mapping is None
        # bits are moved as they are
        moved = raw_type(keys.var_type) if plain else keys.var_type
        writer = Heads(moved, output(None, moved).sink if plain else sink.sink, asked, kind)
        given = [each for each in (positions, found.index, heads, found.inverse) if each is not None]
        flags = flags_of(bits, starts, values.size)
        compacted(flags, writer, (found.values, keys, *given, *sink.arguments), count + 1, graph)
    if count and found.counts is not None:
        known = (starts,) if fixed else ()
        _counting(keys.var_type, fixed)(found.counts, heads, keys, *known, graph=graph)
    return found.values, found.index, found.inverse, found.counts


@record
class _Asked:
    """What is to be returned beside the elements."""

    index: bool
    inverse: bool
    counts: bool


@record(eq=False)
class _Found:
    """Where it goes."""

    values: Buffer[Any]
    index: Buffer[Any] | None
    inverse: Buffer[Any] | None
    counts: Buffer[Any] | None

    def returned(self) -> Any:
        """Return what `unique` does."""
        others = [each for each in (self.index, self.inverse, self.counts) if each is not None]
        return (self.values, *others) if others else self.values


def _results(x: Operand, asked: _Asked, kind: DType, count: int) -> _Found:
    def integers(is_asked: bool, shape: tuple[int, ...]) -> Buffer[Any] | None:
        return result(None, shape, dtype.int64, x.context) if is_asked else None

    return _Found(
        result(None, (count,), kind, x.context),
        integers(asked.index, (count,)),
        integers(asked.inverse, x.shape),
        integers(asked.counts, (count,)),
    )


def _of_nothing(
    x: Any, asked: _Asked, size: int | None, fill_value: Any, output_map: Any, graph: CommandGraph | None
) -> Any:
    values, sink = _checked(x, size, output_map)
    count = size or 0
    if count and fill_value is None:
        raise ArgumentValueError(
            "fill_value: needed, for an array of no elements has none to fill a size with"
        )
    found = _results(values, asked, sink.out_type, count)
    if count:
        none = asbuffer(np.zeros(1, np.uint32), context=x.context)
        filled(found.values, none, fill_value, graph)
        for each in (found.index, found.counts):
            if each is not None:
                cleared(each, graph)
    return found.returned()


def _sorted(
    x: Operand, with_positions: bool, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any] | None]:
    """Return all elements in their order, and where they were."""
    rows = Along(1, x.size, 1)
    source = x.arguments[0] if x.source.plain else into_rows(x, rows, graph)
    keys: Buffer[Any] = function_buffer(x.size, x.var_type, context=x.context)
    positions: Buffer[Any] | None = None
    if with_positions:
        positions = function_buffer(x.size, position_type(x.size), context=x.context)
    sort_rows(source, Order(x.var_type), rows.rows, keys_to=keys, positions_to=positions, graph=graph)
    return keys, positions


@dataclass(frozen=True)
class Heads(Writer):
    """Writes the first of each run, where it was, where the run begins; and which run an element is of."""

    kind: DType
    sink: Sink
    asked: _Asked
    position: DType | None
    name = "unique"

    @property
    def numbers(self) -> bool:  # type: ignore[override]
        """See `Writer`."""
        return self.asked.inverse

    def arguments(self) -> list[tuple[str, Any]]:
        """See `Writer`."""
        asked = self.asked
        there = [
            ("unique_values", self.sink.out_type),
            ("unique_keys", self.kind),
            *([("unique_positions", self.position)] if self.position else []),
            *([("unique_index", dtype.int64)] if asked.index else []),
            *([("unique_heads", dtype.int64)] if asked.counts else []),
            *([("unique_inverse", dtype.int64)] if asked.inverse else []),
        ]
        own = [(name, buffer[kind]) for name, kind in there]
        return [*own, *self.sink.parameters]

    def _split(self, variables: Sequence[Any]) -> tuple[dict[str, Any], Sequence[Any]]:
        names = [name for name, _ in self.arguments()]
        count = len(names) - len(self.sink.names)
        return dict(zip(names[:count], variables, strict=False)), variables[count:]

    def _position(self, own: dict[str, Any], index: Any) -> Any:
        found = own["unique_positions"][index].to_register()
        return found if self.position is dtype.uint32 else vc.pack_uint2x32(found).to_register()

    def value(self, variables: Sequence[Any], index: Any) -> Any:
        """See `Writer`."""
        own, _ = self._split(variables)
        return own["unique_keys"][index].to_register()

    def write(self, variables: Sequence[Any], place: Any, index: Any, value: Any) -> None:
        """See `Writer`."""
        own, rest = self._split(variables)
        values = own["unique_values"]
        with vc.if_block(place.to_dtype(dtype.int32) < values.shape.w):
            self.sink.store(values, rest, place, value)
            if self.asked.index:
                own["unique_index"][place] = self._position(own, index).to_dtype(dtype.int64)
        if self.asked.counts:
            own["unique_heads"][place] = index.to_dtype(dtype.int64)

    def number(self, variables: Sequence[Any], rank: Any, index: Any) -> None:
        """See `Writer`."""
        own, _ = self._split(variables)
        own["unique_inverse"][self._position(own, index)] = (rank - 1).to_dtype(dtype.int64)


@remembered
def _counting(kind: DType, fixed: bool) -> ShaderFunction:
    """Return the kernel that makes counts of heads.

    `fixed`: there may be more counts than heads, or fewer; `starts` has the number of heads.
    """

    def trace(counts: Any, heads: Any, keys: Any, *starts: Any) -> None:
        index = vc.global_invocation_id().x
        runs = (starts[0][starts[0].shape.w - 1] if fixed else counts.shape.w).to_register()
        count = vc.new_int64_register(0)
        with vc.if_block(index < runs):
            end = vc.new_int64_register(0)
            with vc.if_block(index + 1 < runs):
                end[:] = heads[index + 1]
            with vc.else_block():
                end[:] = keys.shape.w.to_dtype(dtype.int64)
            count[:] = end - heads[index]
        counts[index] = count

    arguments = [
        ("counts", buffer[dtype.int64]),
        ("heads", buffer[dtype.int64]),
        ("keys", buffer[kind]),
        *([("starts", buffer[dtype.uint32])] if fixed else []),
    ]
    return traced("unique_counts", trace, arguments, _GROUP, exec_size="counts.size")


def _pad(found: _Found, starts: Buffer[Any], fill_value: Any, graph: CommandGraph | None) -> None:
    """Fill the places behind all elements."""
    if fill_value is not None:
        filled(found.values, starts, fill_value, graph)
    for each in (found.values if fill_value is None else None, found.index):
        if each is not None:
            _padding(copied_type(each.var_type))(each, starts, fill_groups(each.size), graph=graph)


@remembered
def _padding(kind: DType) -> ShaderFunction:
    """Return the kernel that fills places with the first element."""

    def trace(values: Any, starts: Any, groups: Any) -> None:
        first = values[0].to_register()
        with rest(values, starts, groups) as index:
            values[index] = first

    arguments = [
        ("values", buffer[kind]),
        ("starts", buffer[dtype.uint32]),
        ("fill_groups", constant[dtype.uint32]),
    ]
    return traced("unique_rest", trace, arguments, 256, "fill_groups")
