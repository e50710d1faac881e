"""`vd.compact` and `vd.nonzero`: the elements that are kept, and where they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.calls import array_function, is_recorded
from vkdispatch.arrays.kernels import traced
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand, operand, plain_source
from vkdispatch.arrays.output import Output, Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.results import result
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.selection.compaction import Flags, Writer, compacted, filled, flagged, is_countable
from vkdispatch.selection.sizes import checked_size
from vkdispatch.shader.map import MappedArray, MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.moving import moved_type

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
    values, deciding = operand(x, "x"), _deciding(condition)
    if deciding.size > values.size:
        raise ArgumentValueError(
            f"condition: expected at most {values.size} elements, as x has, got {deciding.size}"
        )
    most = deciding.size if size is None else min(deciding.size, checked_size(size))
    sink = output(output_map, values.var_type, most=most)
    check_overlap((), sink, elsewhere=[values, deciding])
    writer = _moving(values, sink)
    given = (*values.arguments, *sink.arguments)
    if deciding.size == 0:
        return _nothing((sink.out_type,), values, size, fill_value, graph, counted=True)
    flags = flagged(deciding, _refused(size, graph))
    (kept,) = _kept(flags, writer, given, (sink.out_type,), values, size, fill_value, graph, "condition")
    return kept if size is None else (kept, total(flags, graph))


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
    values = _deciding(x, "x")
    if not values.shape:
        raise ArgumentValueError("x: an array of no axes has no indices")
    kinds = (dtype.int64,) * len(values.shape)
    if values.size == 0:
        found: tuple[Buffer[Any], ...] = _nothing(kinds, values, size, fill_value, graph, counted=False)
        return found
    flags = flagged(values, _refused(size, graph))
    writer = Indices(len(values.shape))
    return _kept(flags, writer, values.shape[1:], kinds, values, size, fill_value, graph, "x")


def _moving(x: Operand, to: Output) -> "Values":
    """Return a writer of elements, which moves bits as they are where no map asks for numbers."""
    if x.source.plain and to.sink.mapping is None:
        kind = moved_type(x.var_type)
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


def _refused(size: int | None, graph: CommandGraph | None) -> CommandGraph | None:
    """Raise where a size is needed, or none; return the graph."""
    if size is not None:
        checked_size(size)
    elif is_recorded(graph):
        raise UsageError("size: how many elements are kept is not known in a graph; give size=")
    return graph


def _kept(
    flags: Flags,
    writer: Writer,
    arguments: Sequence[Any],
    kinds: Sequence[dtype.DType],
    x: Operand,
    size: int | None,
    fill_value: Any,
    graph: CommandGraph | None,
    name: str,
) -> tuple[Buffer[Any], ...]:
    """Return buffers with what is kept, which the writer takes as its first arguments.

    `name` is the argument that decides what is kept.
    """
    count = flags.total(name) if size is None else checked_size(size)
    results = tuple(result(None, (count,), kind, x.context) for kind in kinds)
    if count == 0:
        return results
    compacted(flags, writer, (*results, *arguments), count, graph)
    if size is not None:
        for each in results:
            filled(each, flags.starts, fill_value, graph)
    return results


def _nothing(
    kinds: Sequence[dtype.DType],
    x: Operand,
    size: int | None,
    fill_value: Any,
    graph: CommandGraph | None,
    *,
    counted: bool,
) -> Any:
    """Return what there is of an array of no elements."""
    _refused(size, graph)
    count = 0 if size is None else checked_size(size)
    results = tuple(result(None, (count,), kind, x.context) for kind in kinds)
    none = asbuffer(_ZERO, context=x.context)
    if count:
        for each in results:
            filled(each, none, fill_value, graph)
    if not counted:
        return results
    return results[0] if size is None else (results[0], _total_of(none, x, graph))


def total(flags: Flags, graph: CommandGraph | None) -> Buffer[Any]:
    """Return how many elements are kept, an int64."""
    found: Buffer[Any] = function_buffer(1, dtype.int64, context=flags.starts.context)
    _totalling()(flags.starts, found, graph=graph)
    return found


def _total_of(starts: Buffer[Any], x: Operand, graph: CommandGraph | None) -> Buffer[Any]:
    found: Buffer[Any] = function_buffer(1, dtype.int64, context=x.context)
    _totalling()(starts, found, graph=graph)
    return found


@remembered
def _totalling() -> ShaderFunction:
    buffer: Any = vc.Buff

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
        buffer: Any = vc.Buff
        return [
            ("kept", buffer[self.sink.out_type]),
            *zip(self.source.names, self.source.annotations, strict=True),
            *zip(self.sink.names, self.sink.annotations, strict=True),
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
        buffer: Any = vc.Buff
        constant: Any = vc.Const
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
