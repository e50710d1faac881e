"""Plans of real transforms by complex ones of half the length."""

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64, complex128
from vkdispatch.base.record import record
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.plan.memory import SharedLayout
from vkdispatch.fft.plan.passes import Pass, PassChoices, plan_pass
from vkdispatch.fft.plan.tuning import tuning


@record
class RealPlan:
    """The plan of a kernel of real transforms.

    Attributes
    ----------
    half
        The complex transform of half the length.
    staged
        Whether lines are copied to workgroup memory in the order of memory, and read there.
    linear
        Whether lines are written in the order of memory rather than line by line.
    """

    half: Pass
    staged: bool
    linear: bool

    @property
    def row(self) -> int:
        """Distance of two lines in workgroup memory: h + 1 values or more, or a piece of a line."""
        layout, values = self.half.layout, self.half.split.length + 1
        if layout is None:
            return values | 1  # an invocation for each line: an odd distance uses all banks in turn
        return layout.row if layout.chunks > 1 else max(layout.row, values)

    @property
    def layout(self) -> SharedLayout | None:
        """Layout of the lines in workgroup memory, or None if it is not used."""
        grid = self.half.grid
        if self.half.layout is None and (self.staged or self.linear):
            return SharedLayout(grid.length, grid.lines, 0, self.row)
        return self.half.layout


def plan_real(
    count: int,
    length: int,
    compute_type: DType,
    *,
    half: Pass | None = None,
    staged: bool | None = None,
    linear: bool | None = None,
) -> RealPlan | None:
    """Plan real transforms of `count` lines; None for an odd length or another type.

    Parameters
    ----------
    count, length
        Number of lines, and reals of a line.
    compute_type
        complex64 or complex128.
    half, staged, linear
        What is chosen already; see `RealPlan`.
    """
    if length % 2 or compute_type not in (complex64, complex128):
        return None
    if half is None:
        # separating the spectra gains more from long pieces of lines than from many invocations
        registers = tuning.registers_real_short if length <= tuning.real_short else None
        half = plan_pass((count, length // 2), 1, compute_type, PassChoices(registers=registers))
        if half is None:
            return None
        if (
            half.split.threads < tuning.real_few_threads
            and half.layout is not None
            and half.layout.parts == 2
        ):
            half = (
                plan_pass((count, length // 2), 1, compute_type, PassChoices(split=half.split, parts=1))
                or half
            )
    whole = half.layout is None or half.layout.parts == 1
    # writing short pieces of each line would waste parts of memory transactions
    short = half.split.threads < tuning.real_few_threads and not device_facts().is_cpu
    plan = RealPlan(half, whole and bool(staged), whole and (short if linear is None else linear))
    size = 0
    if plan.layout is not None:
        size = half.grid.lines * plan.row * compute_type.item_size // plan.layout.parts
    return plan if size <= get_context().max_shared_memory else None
