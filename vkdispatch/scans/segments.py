"""Where segments begin: flags, or the positions of their first elements."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, bool_, int32, int64, uint32, uint64
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.arguments import buffer
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import is_recorded
from vkdispatch.families.kernels import clear_buffer, note_bad_starts, trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe

_POSITION_TYPES = (int32, uint32, int64, uint64)


def make_flags(
    function: str,
    segments: object,
    shape: tuple[int, ...],
    around: tuple[int, int, int],
    context: Context,
    graph: CommandGraph | None,
) -> Buffer[Any] | None:
    """Return a buffer of booleans that are true where segments begin; None without segments.

    Parameters
    ----------
    function
        Name of the function that was called.
    segments
        Such a buffer, of `shape`; or, for one row, a buffer of integers: the positions of first elements.
    around
        Elements before, along and after the axis that is scanned.

    Raises
    ------
    TypeError
        `segments` is neither.
    ValueError
        Its shape does not fit, or it has positions and there are several rows.
    """
    if segments is None:
        return None
    if not isinstance(segments, Buffer) or segments.var_type not in (bool_, *_POSITION_TYPES):
        what = f"a buffer of {segments.var_type.name}" if isinstance(segments, Buffer) else describe(segments)
        raise ArgumentTypeError(
            "segments: expected a vd.Buffer of bool (true where a segment begins) or of int32, uint32, int64 "
            f"or uint64 (where they begin), got {what}"
        )
    segments.require_alive()
    if segments.var_type is bool_:
        if segments.shape != shape and not (segments.size == around[1] and around[0] == around[2] == 1):
            raise ArgumentValueError(
                f"segments: expected flags of the shape {shape}, as x has, got {segments.shape}"
            )
        return segments
    if around[0] != 1 or around[2] != 1:
        raise ArgumentValueError(
            "segments: indices are for one row only; for several rows, pass flags (a buffer of bool) of "
            f"the shape {shape}"
        )
    if not is_recorded(graph):
        note_bad_starts(function, segments)
    if not around[1]:
        return None
    flags: Buffer[Any] = function_buffer(around[1], bool_, context=context)
    clear_buffer(flags, graph)
    if segments.size:
        _make_mark_kernel(segments.var_type)(flags, segments, graph=graph)
    return flags


@memoize
def _make_mark_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that sets flags at positions; it ignores those beyond the end."""

    def mark(flags: Any, places: Any) -> None:
        place = places[vc.global_invocation_id().x].to_register()
        size = flags.shape.w.to_dtype(kind)
        with vc.if_block(vc.all(place >= 0, place < size)):
            flags[place] = place >= 0

    arguments = [("flags", buffer[bool_]), ("places", buffer[kind])]
    return trace_kernel(f"mark_{kind.name}", mark, arguments, 256, exec_size="places.size")
