"""Plans of kernels that transform lines in one pass."""

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record, replace
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.plan.grids import LineGrid, make_grid
from vkdispatch.fft.plan.memory import SharedLayout, plan_layout
from vkdispatch.fft.plan.stages import Split, choose_split, fewest_stages
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.plan.tuning import look_up, tuning


@record
class Pass:
    """The plan of a kernel that transforms lines in one pass.

    Attributes
    ----------
    split
        Radices and invocations of a line.
    grid
        The lines of a workgroup.
    layout
        Workgroup memory, or None if it is not needed.
    compute_type
        Complex type of the registers.
    """

    split: Split
    grid: LineGrid
    layout: SharedLayout | None
    compute_type: DType


@record
class PassChoices:
    """What is chosen before a pass is planned, or None if the plan chooses.

    Attributes
    ----------
    registers
        Complex values that an invocation may hold.
    split, lines, parts
        Radices and invocations, lines of a workgroup, and `SharedLayout.parts`.
    length
        Length of the transform, where it is not that of the lines.
    whole
        Whether workgroup memory must hold the workgroup's lines, or their real parts, all at once.
    group
        Least invocations of a workgroup, where it has several lines.
    """

    registers: int | None = None
    split: Split | None = None
    lines: int | None = None
    parts: int | None = None
    length: int | None = None
    whole: bool = False
    group: int | None = None


_FREE = PassChoices()


def choose_registers(length: int, strided: bool, on_cpu: bool = False) -> int:
    """Return how many complex64 values an invocation should hold."""
    if not on_cpu:
        power_of_two = length & (length - 1) == 0
        table = tuning.registers_power_of_two if power_of_two else tuning.registers_other_length
        return look_up(tuning.registers_strided if strided else table, length)
    if length == tuning.cpu_whole_line:
        return length
    return _choose_fewest(length, tuning.cpu_registers)


def _choose_fewest(length: int, candidates: tuple[int, ...]) -> int:
    """Return the least number of registers with the fewest exchanges."""
    return min(candidates, key=lambda registers: (fewest_stages(length, registers), registers))


def plan_for_long_maps(plan: Pass, transform: Transform) -> Pass:
    """Return a pass whose invocations hold fewer values, so that a long map is written out less often.

    It is the same one if it holds no more.
    """
    shape, axis = transform.shape, transform.axis
    registers = _choose_fewest(shape[axis], tuning.registers_long_map)
    if plan.split.registers <= registers:
        return plan
    fewer = plan_pass(shape, axis, plan.compute_type, PassChoices(registers=registers))
    return plan if fewer is None or fewer.split.registers >= plan.split.registers else fewer


def plan_pass(
    shape: tuple[int, ...], axis: int, compute_type: DType, choices: PassChoices = _FREE
) -> Pass | None:
    """Plan one pass along an axis, or None if one workgroup cannot hold a line.

    Parameters
    ----------
    shape, axis
        Shape of the data, and the axis from 0 on.
    compute_type
        Complex type of the registers.
    choices
        What is chosen already.
    """
    split, lines = choices.split, choices.lines
    context = get_context()
    most_threads = context.max_invocations_along_x
    length = choices.length or shape[axis]
    on_cpu = device_facts().is_cpu
    # on a CPU, exchanges in pieces take far longer than another pass over memory
    largest = context.max_shared_memory if on_cpu else tuning.largest_line
    if length * compute_type.item_size > largest:
        return None
    if split is None:
        wanted = choices.registers or choose_registers(length, axis < len(shape) - 1, on_cpu)
        wanted = max(wanted * 8 // compute_type.item_size, 4)
        room = context.max_shared_memory // compute_type.item_size if on_cpu else None
        split = choose_split(length, wanted, most_threads, room)
    if split is None:
        return None
    vector = context.subgroup_size if on_cpu else None
    grid = make_grid(shape, axis, split.threads, 1, vector)
    if lines is None:
        # where invocations do not fill subgroups, small workgroups leave fewer of them idle
        wanted = choices.group or tuning.group
        wanted = wanted if split.threads & (split.threads - 1) == 0 else wanted // 2
        lines = max(wanted // split.threads, 1)
        if grid.is_interleaved:
            lines = max(lines, tuning.neighbours * (2 if length <= tuning.neighbours_short else 1))
    lines = max(min(lines, grid.inner if grid.is_interleaved else grid.outer), 1)
    while lines >= 1:
        grid = make_grid(shape, axis, split.threads, lines, vector)
        if len(split.radices) == 1 and not choices.whole:
            return Pass(split, grid, None, compute_type)
        if lines * split.threads <= most_threads and lines * length * compute_type.item_size <= largest:
            layout = plan_layout(
                split,
                lines,
                grid.is_interleaved,
                compute_type.item_size,
                context.max_shared_memory,
                choices.parts,
                choices.whole,
            )
            if layout is not None:
                return Pass(split, grid, layout, compute_type)
        lines //= 2
    return None


def reverse_radices(plan: Pass, whole: bool = False) -> Pass | None:
    """Return a pass with the radices in reverse order, or None if workgroup memory has no room for it.

    `whole` is that of `plan_layout`.
    """
    assert plan.layout is not None
    split, grid = plan.split.reverse(), plan.grid
    size, most = plan.compute_type.item_size, get_context().max_shared_memory
    layout = plan_layout(split, grid.lines, grid.is_interleaved, size, most, plan.layout.parts, whole)
    return None if layout is None else replace(plan, split=split, layout=layout)
