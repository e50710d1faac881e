"""Arguments that the functions on arrays share."""

import math
import warnings
from typing import Any

from vkdispatch.arrays.axes import checked_axes
from vkdispatch.arrays.operand import Operand, operand
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, component_type, is_complex, is_matrix, is_vector
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.reduce.accumulators import Accumulator
from vkdispatch.reduce.masks import checked_mask, masked
from vkdispatch.reduce.measures import initially
from vkdispatch.reduce.reducing import Call, reduced

_FEW = 1 << 32  # elements of a result whose places and counts fit 32 bits


def asked(
    x: Any, axis: Any, out: Any, keepdims: bool, output_map: Any, graph: CommandGraph | None
) -> tuple[Operand, Call]:
    """Return the array and what is asked for."""
    array = operand(x)
    axes = checked_axes(axis, len(array.shape))
    return array, Call(axes, bool(keepdims), out, output_map, graph)


def counting_where(array: Operand, x: Any, where: Any, otherwise: Any) -> Operand:
    """Return an array with numbers that change nothing in place of what does not count."""
    mask = checked_mask(where, x)
    return array if mask is None else operand(masked(x, mask, otherwise))


def started(array: Operand, accumulator: Accumulator, call: Call, initial: Any, kind: DType) -> Buffer[Any]:
    """Reduce an array, from a number on if one is given, which is of the type `kind`."""
    if initial is None:
        return reduced(array, accumulator, call)
    first = _number(initial, kind)
    return reduced(
        array, initially(accumulator, dtype.uint32 if kind is dtype.bool_ else kind), call, (first,)
    )


def _number(value: Any, kind: DType) -> Any:
    if hasattr(value, "item") and not isinstance(value, Buffer):
        value = value.item()
    plain = is_vector(kind) or is_matrix(kind)
    if plain or not isinstance(value, (bool, int, float, complex)):
        raise ArgumentTypeError(f"initial: expected a number for {kind.name}, got {value!r}")
    if is_complex(kind):
        return complex(value)
    if isinstance(value, complex):
        raise ArgumentTypeError(f"initial: expected a real number for {kind.name}, got {value!r}")
    if component_type(kind) in (dtype.float32, dtype.float64):
        return float(value)
    if int(value) != value:
        raise ArgumentValueError(f"initial: expected a whole number for {kind.name}, got {value!r}")
    return int(value)


def check_not_empty(array: Operand, call: Call, message: str) -> None:
    """Raise ValueError where there are results, and no elements for them."""
    if call.length(array.shape) == 0 and _results(array, call):
        raise ArgumentValueError(f"x: {message}")


def _results(array: Operand, call: Call) -> int:
    return math.prod(call.shape(array.shape))


def counted_or_warned(array: Operand, call: Call, warning: str, most: float) -> int:
    """Return how many elements a result has, and warn where these are no more than `most`."""
    count = call.length(array.shape)
    if count <= most and _results(array, call):
        native.forbid_repeating()  # each call warns
        warnings.warn(warning, RuntimeWarning, stacklevel=7)
    return count


def place_type(array: Operand, call: Call) -> DType:
    """Return the type that holds the place of an element of a result."""
    return dtype.uint32 if call.length(array.shape) < _FEW else dtype.uint64
