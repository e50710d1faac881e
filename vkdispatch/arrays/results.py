"""The buffers that functions on arrays return."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.maps.operand import Operand
from vkdispatch.arrays.maps.output import Output, OutputLike, parse_output
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.shader.arguments.parameters import describe


def prepare_result(
    out: object, shape: tuple[int, ...], kind: DType, context: Context | None = None, name: str = "out"
) -> Buffer[Any]:
    """Return the buffer of a result: a new one, or the one that the caller gave as `out`.

    The function has to write all of it.

    Raises
    ------
    TypeError
        `out` is not a buffer.
    ValueError
        `out` has another shape or dtype, or is read-only.
    """
    if out is None:
        return function_buffer(shape, kind, context=context)
    if not isinstance(out, Buffer):
        raise ArgumentTypeError(f"{name}: expected a vd.Buffer, got {describe(out)}")
    out.require_alive()
    if out.shape != shape or out.var_type is not kind:
        raise ArgumentValueError(
            f"{name}: expected a buffer of the shape {shape} of {kind.name}, got {out.shape} of "
            f"{out.var_type.name}"
        )
    if not out.is_writable:
        raise ArgumentValueError(f"{name}: the buffer is read-only memory of another library")
    out._native.announce()
    return out


def prepare_output(
    out: Buffer[Any] | None,
    output_map: OutputLike,
    shape: tuple[int, ...],
    kind: DType,
    context: Context | None = None,
    *,
    elsewhere: Sequence[Operand] = (),
    alongside: Sequence[Operand] = (),
    before: Sequence[Operand] = (),
) -> tuple[Output, Buffer[Any]]:
    """Return how a call stores its results, of a shape and a dtype, and their buffer.

    `elsewhere`, `alongside` and `before` are the arrays that the call reads; see `check_overlap`.

    Raises
    ------
    TypeError, ValueError
        `out` or `output_map` is invalid; see `prepare_result` and `parse_output`.
    OverlapError
        The call might overwrite what it still has to read.
    """
    target = parse_output(output_map, kind, shape)
    buffer = prepare_result(out, shape, target.out_type, context)
    check_overlap([("out", out)], target, elsewhere=elsewhere, alongside=alongside, before=before)
    return target, buffer


def parse_pair(out: object, names: str) -> tuple[Any, Any]:
    """Return the two buffers of `out`; None for new ones. Raises TypeError if it is not a pair.

    `names` says in messages what the buffers are for.
    """
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ArgumentTypeError(f"out: expected a pair, for {names}, got {describe(out)}")
    return out[0], out[1]
