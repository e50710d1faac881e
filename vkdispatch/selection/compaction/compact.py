"""`vd.compact` and `vd.nonzero`: the elements that are kept, and where they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.calls import array_function, is_recorded
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand, operand, plain_source
from vkdispatch.arrays.output import Output, Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.repeating import repeatable
from vkdispatch.arrays.results import result
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.selection.compaction.flags import Writer, compacted, filled, flagged, flags_of, is_countable
from vkdispatch.selection.sizes import checked_size
from vkdispatch.shader.map import MappedArray, MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.rearranging import copied_type

_ZERO = np.zeros(1, np.uint32)


@array_function
def compact(
    x: Any,
    condition: Any,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Any:
    """Keep the elements for which a condition holds, in their order: `np.compress`, `x[condition]`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments. All of its axes are taken as one.
    condition
        An array of numbers, or truth values, of which those that are not 0 keep; or a `vd.map` of one value,
        which is asked for each element of `x`. One that is shorter than `x` keeps nothing beyond its end.
    size
        How many elements the result has; None: as many as are kept, for which the call waits. Graphs need it.
    fill_value
        With `size`: the number behind all that is kept.
    output_map
        A map that is given each element that is kept; `mapped_index()` is its place.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of one axis. With `size` a tuple: that buffer, and one of an int64: how many elements were kept,
    in the buffer or beyond its end.

    Raises
    ------
    TypeError
        An argument is no array, or the condition one of vectors.
    ValueError
        The condition has more elements than `x`, or 2**32 or more; `size` is negative.
    RuntimeError
        Without `size` in a graph.
    """
    if isinstance(condition, MappingFunction):
        condition = _asked(condition, x)
    size = _wanted(size, graph)
    bits, starts = _count_kept(x, condition, size, output_map, graph)
    count = _total(condition, bits, starts, "condition") if size is None else size
    kept = _keep(x, condition, bits, starts, count, output_map, graph)
    if size is None:
        return kept
    if size:
        filled(kept, starts, fill_value, graph)
    return kept, total(starts, graph)


@repeatable
def _count_kept(
    x: Any, condition: Any, size: int | None, output_map: Any, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Check the arguments of `compact`, and return `bits` and `starts` of `Flags`; waits for nothing."""
    values, deciding = operand(x, "x"), _deciding(condition)
    if deciding.size > values.size:
        raise ArgumentValueError(
            f"condition: expected at most {values.size} elements, as x has, got {deciding.size}"
        )
    most = deciding.size if size is None else min(deciding.size, size)
    sink = output(output_map, values.var_type, most=most)
    check_overlap((), sink, elsewhere=[values, deciding])
    return _decided(deciding, size, graph)


@repeatable
def _keep(
    x: Any,
    condition: Any,
    bits: Buffer[Any],
    starts: Buffer[Any],
    count: int,
    output_map: Any,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return the first so many elements that are kept; waits for nothing."""
    values = operand(x, "x")
    sink = output(output_map, values.var_type, most=min(condition.size, count))
    kept = result(None, (count,), sink.out_type, values.context)
    if count and condition.size:
        arguments = (kept, *values.arguments, *sink.arguments)
        compacted(flags_of(bits, starts, condition.size), _moving(values, sink), arguments, count, graph)
    return kept


@array_function
def nonzero(
    x: Any, *, size: int | None = None, fill_value: int = 0, graph: CommandGraph | None = None
) -> tuple[Buffer[Any], ...]:
    """Find the elements that are not 0: `np.nonzero`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments, of one to three axes. NaN is not 0.
    size
        How many indices there are to be; None: as many as elements that are not 0, for which the call waits.
        Graphs need it.
    fill_value
        With `size`: the index behind all others.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    A tuple of buffers of one axis, int64: for each axis of `x` the indices along it, in the order of the
    elements.

    Raises
    ------
    TypeError
        `x` is no array of numbers or truth values.
    ValueError
        It has no axes, or 2**32 elements or more; `size` is negative.
    RuntimeError
        Without `size` in a graph.
    """
    size = _wanted(size, graph)
    bits, starts = _count_nonzero(x, size, graph)
    count = _total(x, bits, starts, "x") if size is None else size
    found = _indices(x, bits, starts, count, graph)
    if size:
        for each in found:
            filled(each, starts, fill_value, graph)
    return found


@repeatable
def _count_nonzero(x: Any, size: int | None, graph: CommandGraph | None) -> tuple[Buffer[Any], Buffer[Any]]:
    """Check the argument of `nonzero`, and return `bits` and `starts` of `Flags`; waits for nothing."""
    values = _deciding(x, "x")
    if not values.shape:
        raise ArgumentValueError("x: an array of no axes has no indices")
    return _decided(values, size, graph)


@repeatable
def _indices(
    x: Any, bits: Buffer[Any], starts: Buffer[Any], count: int, graph: CommandGraph | None
) -> tuple[Buffer[Any], ...]:
    """Return the first so many indices along each axis; waits for nothing."""
    found = tuple(result(None, (count,), dtype.int64, x.context) for _ in x.shape)
    if count and x.size:
        arguments = (*found, *x.shape[1:])
        compacted(flags_of(bits, starts, x.size), Indices(len(x.shape)), arguments, count, graph)
    return found


def _moving(x: Operand, to: Output) -> "Values":
    """Return a writer of elements, which moves bits as they are where no map asks for numbers."""
    if x.source.plain and to.sink.mapping is None:
        kind = copied_type(x.var_type)
        return Values(plain_source(kind).elementwise(), output(None, kind).sink)
    return Values(x.source.elementwise(), to.sink)


def _asked(condition: MappingFunction, x: Any) -> MappedArray:
    """Return a predicate that is called with the array whose elements it is asked for."""
    called = condition(x) if len(condition.buffer_types) == 1 else None
    if not isinstance(called, MappedArray):
        raise ArgumentTypeError(
            f"condition: {condition.name!r} takes more than an element; call it: {condition.name}(x, ...)"
        )
    return called


def _deciding(array: Any, name: str = "condition") -> Operand:
    found = operand(array, name)
    if not is_countable(found):
        raise ArgumentTypeError(f"{name}: expected numbers or truth values, got {found.var_type.name}")
    return found


def _wanted(size: object, graph: CommandGraph | None) -> int | None:
    """Return how many elements are wanted, None for all; raise where all cannot be waited for."""
    if size is not None:
        return checked_size(size)
    if is_recorded(graph):
        raise UsageError("size: how many elements are kept is not known in a graph; give size=")
    return None


def _decided(
    deciding: Operand, size: int | None, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any]]:
    if deciding.size == 0:
        none = asbuffer(_ZERO, context=deciding.context)
        return none, none
    flags = flagged(deciding, graph, summed=size is not None)
    return flags.bits, flags.starts


def _total(deciding: Any, bits: Buffer[Any], starts: Buffer[Any], name: str) -> int:
    """Wait for the number of elements that are kept."""
    return flags_of(bits, starts, deciding.size).total(name) if deciding.size else 0


def total(starts: Buffer[Any], graph: CommandGraph | None) -> Buffer[Any]:
    """Return the last of the starts of `Flags`, how many elements are kept, as an int64."""
    found: Buffer[Any] = function_buffer(1, dtype.int64, context=starts.context)
    _totalling()(starts, found, graph=graph)
    return found


@remembered
def _totalling() -> ShaderFunction:
    def trace(starts: Any, found: Any) -> None:
        found[0] = starts[starts.shape.w - 1].to_dtype(dtype.int64)

    return traced("total", trace, [("starts", buffer[dtype.uint32]), ("found", buffer[dtype.int64])], 1, 1)


@dataclass(frozen=True)
class Values(Writer):
    """Writes elements of an array through a map."""

    source: Source
    sink: Sink
    name = "compact"

    def arguments(self) -> list[tuple[str, Any]]:
        """See `Writer`."""
        return [
            ("kept", buffer[self.sink.out_type]),
            *self.source.parameters,
            *self.sink.parameters,
        ]

    @property
    def reads(self) -> bool:  # type: ignore[override]
        """See `Writer`."""
        # a map may look where only elements that are kept say
        return self.source.plain

    def value(self, variables: Sequence[Any], index: Any) -> Any:
        """See `Writer`."""
        return self.source.value(variables[1 : 1 + len(self.source.annotations)], index)

    def write(self, variables: Sequence[Any], place: Any, index: Any, value: Any) -> None:
        """See `Writer`."""
        count = 1 + len(self.source.annotations)
        self.sink.store(variables[0], variables[count:], place, value)


@dataclass(frozen=True)
class Indices(Writer):
    """Writes indices along each axis."""

    axes: int
    name = "nonzero"

    def arguments(self) -> list[tuple[str, Any]]:
        """See `Writer`."""
        results = [(f"indices{axis}", buffer[dtype.int64]) for axis in range(self.axes)]
        return [*results, *((f"length{axis}", constant[dtype.uint32]) for axis in range(1, self.axes))]

    def write(self, variables: Sequence[Any], place: Any, index: Any, value: Any) -> None:
        """See `Writer`."""
        results, lengths = variables[: self.axes], variables[self.axes :]
        left = index.to_register("flat_index")
        for axis in range(self.axes - 1, 0, -1):
            quotient = (left // lengths[axis - 1]).to_register()
            results[axis][place] = (left - quotient * lengths[axis - 1]).to_dtype(dtype.int64)
            left = quotient
        results[0][place] = left.to_dtype(dtype.int64)
