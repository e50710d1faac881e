"""`vd.compact` and `vd.nonzero`: elements that a condition keeps, and their indices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function, repeatable
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import (
    ArrayLike,
    Operand,
    ResultMap,
    Sink,
    check_overlap,
    parse_operand,
    parse_output,
    prepare_result,
)
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import memoize
from vkdispatch.selection.compaction.filling import fill_rest
from vkdispatch.selection.compaction.flags import flag_elements, flags_from, is_countable
from vkdispatch.selection.compaction.writing import Writer, write_elements
from vkdispatch.selection.sizes import parse_size
from vkdispatch.shader.map import MappedArray, MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.rearranging import choose_copy

_ZERO = np.zeros(1, np.uint32)
_UNKNOWN = "how many elements are kept"


@array_function
def compact(
    x: ArrayLike,
    condition: ArrayLike | MappingFunction,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    output_map: ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> Any:
    """Return the elements for which a condition is true, in their order, like `numpy.compress`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments. Several axes are flattened.
    condition
        An array of numbers or booleans; nonzero ones are true. Or a `vd.map` with one parameter, which is
        applied to each element of `x`. A condition shorter than `x` keeps no elements beyond its end.
    size
        The size of the result. None: the number of elements that are kept, for which the call waits. Graphs
        need a size.
    fill_value
        With `size`: the number that fills the result after the last element.
    output_map
        A `vd.map` that is applied to each element that is kept; `mapped_index()` is its index in the result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of one axis. With `size`, a tuple of that buffer and a buffer of one int64: the number of
    elements that the condition keeps, which may be larger than `size`.

    Raises
    ------
    TypeError
        An argument is not an array, or the condition has vectors.
    ValueError
        The condition has more elements than `x`, or 2**32 or more; `size` is negative.
    RuntimeError
        `size` is None in a graph.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([5, -1, 4, -2], np.float32))
    >>> mask = vd.asbuffer(np.array([True, False, True, False]))
    >>> vd.compact(x, mask).read(0)
    array([5., 4.], dtype=float32)
    """
    if isinstance(condition, MappingFunction):
        condition = _call_condition(condition, x)
    size = parse_size(size, graph, _UNKNOWN)
    bits, starts = _flag_kept(x, condition, size, output_map, graph)
    count = _read_total(condition, bits, starts, "condition") if size is None else size
    kept = _write_elements(x, condition, bits, starts, count, output_map, graph)
    if size is None:
        return kept
    if size:
        fill_rest(kept, starts, fill_value, graph)
    return kept, make_total(starts, graph)


@repeatable
def _flag_kept(
    x: ArrayLike, condition: Any, size: int | None, output_map: ResultMap | None, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Check the arguments of `compact`, and return `bits` and `starts` of `Flags`. It does not wait."""
    values, parsed = parse_operand(x, "x"), _parse_condition(condition)
    if parsed.size > values.size:
        raise ArgumentValueError(
            f"condition: expected at most {values.size} elements, as x has, got {parsed.size}"
        )
    most = parsed.size if size is None else min(parsed.size, size)
    sink = parse_output(output_map, values.var_type, most=most)
    check_overlap((), sink, elsewhere=[values, parsed])
    return _flag_where(parsed, size, graph)


@repeatable
def _write_elements(
    x: ArrayLike,
    condition: Any,
    bits: Buffer[Any],
    starts: Buffer[Any],
    count: int,
    output_map: ResultMap | None,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return the first `count` elements that are kept. It does not wait."""
    values = parse_operand(x, "x")
    sink = parse_output(output_map, values.var_type, most=min(condition.size, count))
    kept = prepare_result(None, (count,), sink.out_type, values.context)
    if count and condition.size:
        arguments = (kept, *values.arguments, *sink.arguments)
        writer = Values(*choose_copy(values, sink))
        write_elements(flags_from(bits, starts, condition.size), writer, arguments, count, graph)
    return kept


@array_function
def nonzero(
    x: ArrayLike, *, size: int | None = None, fill_value: int = 0, graph: CommandGraph | None = None
) -> tuple[Buffer[Any], ...]:
    """Return the indices of the nonzero elements, like `numpy.nonzero`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments, of one to three axes. NaN is nonzero.
    size
        The number of indices. None: the number of nonzero elements, for which the call waits. Graphs need a
        size.
    fill_value
        With `size`: the index that fills the results after the last one.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A tuple of buffers of one axis, int64: for each axis of `x`, the indices along it, in the order of the
    elements.

    Raises
    ------
    TypeError
        `x` is not an array of numbers or booleans.
    ValueError
        It has no axes, or 2**32 elements or more; `size` is negative.
    RuntimeError
        `size` is None in a graph.

    Examples
    --------
    >>> (places,) = vd.nonzero(vd.asbuffer(np.array([0, 3, 0, 5], np.int32)))
    >>> places.read(0)
    array([1, 3])
    """
    size = parse_size(size, graph, _UNKNOWN)
    bits, starts = _flag_nonzero(x, size, graph)
    count = _read_total(x, bits, starts, "x") if size is None else size
    indices = _write_indices(x, bits, starts, count, graph)
    if size:
        for each in indices:
            fill_rest(each, starts, fill_value, graph)
    return indices


@repeatable
def _flag_nonzero(
    x: ArrayLike, size: int | None, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Check the argument of `nonzero`, and return `bits` and `starts` of `Flags`. It does not wait."""
    values = _parse_condition(x, "x")
    if not values.shape:
        raise ArgumentValueError("x: an array of no axes has no indices")
    return _flag_where(values, size, graph)


@repeatable
def _write_indices(
    x: ArrayLike, bits: Buffer[Any], starts: Buffer[Any], count: int, graph: CommandGraph | None
) -> tuple[Buffer[Any], ...]:
    """Return the first `count` indices along each axis. It does not wait."""
    indices = tuple(prepare_result(None, (count,), dtype.int64, x.context) for _ in x.shape)
    if count and x.size:
        arguments = (*indices, *x.shape[1:])
        write_elements(flags_from(bits, starts, x.size), Indices(len(x.shape)), arguments, count, graph)
    return indices


def _call_condition(condition: MappingFunction, x: ArrayLike) -> MappedArray:
    """Return a condition, given as a map, called with the array."""
    called = condition(x) if len(condition.buffer_types) == 1 else None
    if not isinstance(called, MappedArray):
        raise ArgumentTypeError(
            f"condition: {condition.name!r} has more than one parameter; call it: {condition.name}(x, ...)"
        )
    return called


def _parse_condition(array: Any, name: str = "condition") -> Operand:
    parsed = parse_operand(array, name)
    if not is_countable(parsed):
        raise ArgumentTypeError(f"{name}: expected numbers or booleans, got {parsed.var_type.name}")
    return parsed


def _flag_where(
    condition: Operand, size: int | None, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any]]:
    if condition.size == 0:
        none = asbuffer(_ZERO, context=condition.context)
        return none, none
    flags = flag_elements(condition, graph, needs_sums=size is not None)
    return flags.bits, flags.starts


def _read_total(condition: Any, bits: Buffer[Any], starts: Buffer[Any], name: str) -> int:
    """Wait for the number of elements that are kept."""
    return flags_from(bits, starts, condition.size).read_total(name) if condition.size else 0


def make_total(starts: Buffer[Any], graph: CommandGraph | None) -> Buffer[Any]:
    """Return the number of elements that are kept, the last of the starts of `Flags`, as an int64."""
    total: Buffer[Any] = function_buffer(1, dtype.int64, context=starts.context)
    _make_total_kernel()(starts, total, graph=graph)
    return total


@memoize
def _make_total_kernel() -> ShaderFunction:
    def trace(starts: Any, total: Any) -> None:
        total[0] = starts[starts.shape.w - 1].to_dtype(dtype.int64)

    return trace_kernel(
        "total", trace, [("starts", buffer[dtype.uint32]), ("total", buffer[dtype.int64])], 1, 1
    )


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
    def reads_all(self) -> bool:  # type: ignore[override]
        """See `Writer`."""
        # the condition may guard a map against indices that it must not read
        return self.source.is_plain

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
