"""The buffers that functions on arrays return."""

from typing import Any

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
