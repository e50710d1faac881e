"""How a reduction's work is divided on CPU drivers.

CPU drivers run a workgroup on one thread, one subgroup after the other, and save the registers of every
subgroup at a barrier. So the kernels planned here have no barriers, and no workgroup waits for another. An
invocation reduces a row or a column alone, or a workgroup of one subgroup goes through long runs of a row and
exchanges its states. A second launch combines partial results.
"""

from vkdispatch.base.context import Context
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import DeviceFacts, device_facts
from vkdispatch.reduce.accumulators.accumulator import Accumulator
from vkdispatch.reduce.layouts import Shape
from vkdispatch.reduce.planning import MOST_ROUNDS, Planner
from vkdispatch.reduce.tuning import cpu_tuning as cpu_tuning

# Invocations of a workgroup that exchanges values through its memory only.
_GROUP = 8


class CpuPlanner(Planner):
    """Plans reductions on CPU drivers."""

    _has_runs = True

    def _choose_group(self, facts: DeviceFacts, held: int) -> int:
        self._most = facts.power_group(min(cpu_tuning.group, held))
        return facts.power_group(min(self._subgroup if self._subgroup > 1 else _GROUP, held))

    @property
    def _is_finishing(self) -> bool:
        return False

    def _limit_elements(self, plain: bool) -> int:
        return cpu_tuning.most_elements

    def _choose_results(self, size: int, free: int) -> int:
        return 1

    def _choose_team(self, rows: int, loads: int, unroll: int) -> tuple[int, int]:
        lanes = 1 if loads <= cpu_tuning.lane_loads else self.group
        return self._widen(rows, lanes, loads), lanes

    def _choose_side(self, shape: Shape, count: int, inner: int, unroll: int, size: int) -> tuple[int, int]:
        side = min(self.group, 1 << max(count - 1, 0).bit_length())
        if side < self.group or shape.length > MOST_ROUNDS:
            return self.group, side
        group = self._widen(count, 1, shape.length)
        return group, group

    def _widen(self, rows: int, lanes: int, loads: int) -> int:
        """Return the invocations of a workgroup: more than a subgroup where each has little work."""
        group = self.group
        while (
            2 * group <= self._most
            and group // lanes * loads < cpu_tuning.group_loads
            and rows * lanes > cpu_tuning.groups * group
        ):
            group *= 2
        return group

    def _choose_columns(self, size: int) -> int:
        return min(cpu_tuning.most_columns, max(1, cpu_tuning.column_bytes // size))

    def _choose_segments(self, full: int, blocks: int, most: int = 0) -> int:
        if blocks * full <= cpu_tuning.single:
            return 1
        return min(full, max(-(-cpu_tuning.groups // blocks), -(-full // MOST_ROUNDS)))


def make_planner(source: Source, accumulator: Accumulator, context: Context, group: int | None) -> Planner:
    """Return the planner for the devices of a context.

    `group` is the size of a workgroup that the user asks for, or None. Kernels of such a size may have
    barriers on CPU drivers, too.
    """
    planner = CpuPlanner if group is None and device_facts(context).is_cpu else Planner
    return planner(source, accumulator, context, group)
