"""What a kernel of one pass looks like: the plan that FFTs of a shape along an axis share."""

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record, replace
from vkdispatch.fft.plan.grids import LineGrid, make_grid
from vkdispatch.fft.plan.memory import SharedLayout, plan_layout
from vkdispatch.fft.plan.stages import Split, choose_split, fewest_stages


@record
class Pass:
    """Everything about a kernel but its data.

    Attributes
    ----------
    split
        Radices and invocations of a line.
    grid
        Which lines a workgroup works on.
    layout
        Workgroup memory; None where there is but one stage.
    compute_type
        Complex type of the registers.
    """

    split: Split
    grid: LineGrid
    layout: SharedLayout | None
    compute_type: DType


_WORKGROUP = 64  # invocations that a workgroup has at least if its lines are short
_LARGEST = 128 << 10  # bytes of a line that the registers of a workgroup hold
_ALONE = 64  # on a CPU, one invocation does a line of this length, as it does lines of up to 32
_CPU_REGISTERS = (16, 20, 25, 27, 32)
_COLUMNS = 16  # neighbouring lines that a workgroup takes: 128 bytes of complex64


def choose_registers(length: int, strided: bool, on_cpu: bool = False) -> int:
    """Return how many complex64 values an invocation should hold, as measured on an H200.

    Few values make many invocations, which hide the latency of memory; many make few exchanges.
    """
    if on_cpu:
        return _choose_registers_on_cpu(length)
    if strided:
        return 16 if length <= 256 else 32
    if length & (length - 1):
        return 5 if length <= 32 else 16 if length <= 512 else 25
    limits = ((64, 4), (512, 8), (2048, 16))
    return next((registers for most, registers in limits if length <= most), 32)


def _choose_registers_on_cpu(length: int) -> int:
    """Return how many values make as few exchanges as any: more take a driver's compiler long."""
    if length == _ALONE:
        return length
    return min(_CPU_REGISTERS, key=lambda registers: (fewest_stages(length, registers), registers))


def plan_pass(
    shape: tuple[int, ...],
    axis: int,
    compute_type: DType,
    *,
    registers: int | None = None,
    split: Split | None = None,
    lines: int | None = None,
    parts: int | None = None,
    length: int | None = None,
    whole: bool = False,
) -> Pass | None:
    """Plan one pass along an axis; None where one workgroup cannot hold a line.

    Parameters
    ----------
    shape, axis, compute_type
        The data and what it is computed in.
    registers
        Complex values that an invocation may hold.
    split, lines, parts
        Radices, lines of a workgroup, and `SharedLayout.parts`, where they are chosen already.
    length
        Of the transform, where it is another than the line's own.
    whole
        Whether workgroup memory must hold the workgroup's lines, or their real parts, all at once.
    """
    context = get_context()
    most_threads = context.max_invocations_along_x
    length = length or shape[axis]
    on_cpu = device_facts().cpu
    # on a CPU, exchanges in pieces take far longer than one more pass over memory
    largest = context.max_shared_memory if on_cpu else _LARGEST
    if length * compute_type.item_size > largest:
        return None
    if split is None:
        wanted = registers or choose_registers(length, axis < len(shape) - 1, on_cpu)
        wanted = max(wanted * 8 // compute_type.item_size, 4)
        room = context.max_shared_memory // compute_type.item_size if on_cpu else None
        split = choose_split(length, wanted, most_threads, room)
    if split is None:
        return None
    vector = context.subgroup_size if on_cpu else None
    grid = make_grid(shape, axis, split.threads, 1, vector)
    if lines is None:
        # what does not fill subgroups leaves most of them less idle in small workgroups
        wanted = _WORKGROUP if split.threads & (split.threads - 1) == 0 else _WORKGROUP // 2
        lines = max(wanted // split.threads, 1)
        if grid.is_interleaved:
            lines = max(lines, 2 * _COLUMNS if length <= 128 else _COLUMNS)
    lines = max(min(lines, grid.inner if grid.is_interleaved else grid.outer), 1)
    while lines >= 1:
        grid = make_grid(shape, axis, split.threads, lines, vector)
        if len(split.radices) == 1 and not whole:
            return Pass(split, grid, None, compute_type)
        if lines * split.threads <= most_threads and lines * length * compute_type.item_size <= largest:
            layout = plan_layout(
                split,
                lines,
                grid.is_interleaved,
                compute_type.item_size,
                context.max_shared_memory,
                parts,
                whole,
            )
            if layout is not None:
                return Pass(split, grid, layout, compute_type)
        lines //= 2
    return None


def reverse_radices(plan: Pass, whole: bool = False) -> Pass | None:
    """Return a pass with the radices in reverse order; None where workgroup memory has no room for it.

    `whole` is that of `plan_layout`.
    """
    assert plan.layout is not None
    split, grid = plan.split.reverse(), plan.grid
    size, most = plan.compute_type.item_size, get_context().max_shared_memory
    layout = plan_layout(split, grid.lines, grid.is_interleaved, size, most, plan.layout.parts, whole)
    return None if layout is None else replace(plan, split=split, layout=layout)
