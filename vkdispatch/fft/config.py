"""What a kernel of one pass looks like: the plan that FFTs of a shape along an axis share."""

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.fft.grid import LineGrid, line_grid
from vkdispatch.fft.shared import SharedLayout, plan_layout
from vkdispatch.fft.stages import Split, choose_split


@record
class Pass:
    """Everything about a kernel but its data: radices, lines of a workgroup, workgroup memory."""

    split: Split
    grid: LineGrid
    layout: SharedLayout | None
    compute_type: DType


_WORKGROUP = 256  # invocations that a workgroup has if its lines are short
_COLUMNS = 8  # neighbouring lines that a workgroup takes: 64 bytes of complex64


def plan_pass(
    shape: tuple[int, ...],
    axis: int,
    compute_type: DType,
    *,
    registers: int | None = None,
    split: Split | None = None,
    lines: int | None = None,
    parts: int | None = None,
) -> Pass | None:
    """Plan one pass along an axis; None where one workgroup cannot hold a line."""
    context = get_context()
    most_threads = min(context.max_workgroup_invocations, context.max_workgroup_size[0])
    length = shape[axis]
    if split is None:
        split = choose_split(length, registers or 16, most_threads)
    if split is None:
        return None
    grid = line_grid(shape, axis, split.threads, 1)
    if lines is None:
        if grid.interleaved:
            lines = (
                min(_COLUMNS, grid.inner)
                if split.threads * _COLUMNS > _WORKGROUP
                else max(_WORKGROUP // split.threads, 1)
            )
            lines = min(lines, grid.inner)
        else:
            lines = min(max(_WORKGROUP // split.threads, 1), grid.outer)
    while lines >= 1:
        grid = line_grid(shape, axis, split.threads, lines)
        if len(split.radices) == 1:
            return Pass(split, grid, None, compute_type)
        if lines * split.threads <= most_threads:
            layout = plan_layout(
                split, lines, grid.interleaved, compute_type.item_size, context.max_shared_memory, parts
            )
            if layout is not None:
                return Pass(split, grid, layout, compute_type)
        lines = lines // 2
    return None
