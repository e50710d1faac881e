"""Arguments that the reductions share."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, component_type, is_complex, is_matrix, is_vector
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_axes
from vkdispatch.families.operands import ArrayLike, Operand, OutputLike, parse_operand
from vkdispatch.reduce.accumulators.accumulator import Accumulator
from vkdispatch.reduce.accumulators.masks import Mask, fill_masked, parse_mask
from vkdispatch.reduce.accumulators.sums import add_initial
from vkdispatch.reduce.launching import Call, reduce_array

# Elements of a result from which on places and counts need more than 32 bits.
_MANY = 1 << 32


def parse_call(
    x: ArrayLike,
    axis: int | Sequence[int] | None,
    out: Buffer[Any] | None,
    keepdims: bool,
    output_map: OutputLike,
    graph: CommandGraph | None,
) -> tuple[Operand, Call]:
    """Return the array and the other arguments of a call."""
    array = parse_operand(x)
    axes = parse_axes(axis, len(array.shape))
    return array, Call(axes, bool(keepdims), out, output_map, graph)


def apply_mask(array: Operand, x: ArrayLike, where: Mask, otherwise: Any) -> Operand:
    """Return an array in which the number `otherwise` replaces the elements that do not count."""
    mask = parse_mask(where, x)
    return array if mask is None else parse_operand(fill_masked(x, mask, otherwise))


def reduce_from(
    array: Operand, accumulator: Accumulator, call: Call, initial: Any, kind: DType
) -> Buffer[Any]:
    """Reduce an array, starting with the number `initial`, of the type `kind`, if it is not None."""
    if initial is None:
        return reduce_array(array, accumulator, call)
    first = _parse_initial(initial, kind)
    return reduce_array(
        array, add_initial(accumulator, dtype.uint32 if kind is dtype.bool_ else kind), call, (first,)
    )


def _parse_initial(value: Any, kind: DType) -> Any:
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
    """Raise ValueError if there are results but no elements for them."""
    if call.length(array.shape) == 0 and _count_results(array, call):
        raise ArgumentValueError(f"x: {message}")


def _count_results(array: Operand, call: Call) -> int:
    return math.prod(call.shape(array.shape))


def count_or_warn(array: Operand, call: Call, warning: str, most: float) -> int:
    """Return how many elements make a result, and warn if they are `most` or fewer.

    To be called by the decorated function itself: the warning names the line that called that.
    """
    count = call.length(array.shape)
    if count <= most and _count_results(array, call):
        native.forbid_repeating()  # each call warns
        # the caller of `vd.mean` and the like
        warnings.warn(warning, RuntimeWarning, stacklevel=7)
    return count


def choose_index_type(array: Operand, call: Call) -> DType:
    """Return the type that holds the place of an element among those of a result."""
    return dtype.uint32 if call.length(array.shape) < _MANY else dtype.uint64
