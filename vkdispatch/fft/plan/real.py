"""Plans of real transforms by complex ones of half the length."""

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64, complex128
from vkdispatch.base.record import record
from vkdispatch.fft.plan.memory import SharedLayout
from vkdispatch.fft.plan.passes import Pass, plan_pass

_SHORT = 8  # invocations of a line below which a workgroup's lines are written in the order of memory


@record
class RealPlan:
    """What a kernel of real transforms looks like.

    Attributes
    ----------
    half
        The complex transform of half the length.
    staged
        Whether lines are brought into workgroup memory in the order of memory, and taken from there.
    linear
        Whether they are written in the order of memory, else line by line.
    """

    half: Pass
    staged: bool
    linear: bool

    @property
    def row(self) -> int:
        """Distance of two lines in workgroup memory: room for h + 1 values, or for a piece of a line."""
        layout, values = self.half.layout, self.half.split.length + 1
        if layout is None:
            return values | 1  # each line has its own invocation: an odd distance takes all banks in turn
        return layout.row if layout.chunks > 1 else max(layout.row, values)

    @property
    def layout(self) -> SharedLayout | None:
        """The lines in workgroup memory; None where it is not used."""
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
    """Plan real transforms of `count` lines; None where they are not for this way.

    Parameters
    ----------
    count, length
        Number of lines, and reals of a line.
    compute_type
        complex64 or complex128.
    half, staged, linear
        What is not to be chosen.
    """
    if length % 2 or compute_type not in (complex64, complex128):
        return None
    if half is None:
        # the unpacking wants whole pieces of lines more than many invocations
        registers = 8 if length <= 64 else None
        half = plan_pass((count, length // 2), 1, compute_type, registers=registers)
        if half is None:
            return None
        if half.split.threads < _SHORT and half.layout is not None and half.layout.parts == 2:
            half = plan_pass((count, length // 2), 1, compute_type, split=half.split, parts=1) or half
    whole = half.layout is None or half.layout.parts == 1
    # short pieces of lines, one for each line of a workgroup, would waste parts of memory transactions
    short = half.split.threads < _SHORT and not device_facts().cpu
    plan = RealPlan(half, whole and bool(staged), whole and (short if linear is None else linear))
    size = 0
    if plan.layout is not None:
        size = half.grid.lines * plan.row * compute_type.item_size // plan.layout.parts
    return plan if size <= get_context().max_shared_memory else None
