"""How a reduction's work is laid out on CPU drivers.

They run a workgroup on one thread, subgroup after subgroup, and a barrier makes them keep all registers of
each. So no kernel here has barriers, and none waits for another: an invocation reduces a row or a column by
itself, or one subgroup, which is the workgroup then, goes through long runs of one and exchanges what it has
found. Partial results are left to a second launch.
"""

from vkdispatch.arrays.facts import DeviceFacts, device_facts
from vkdispatch.arrays.maps.source import Source
from vkdispatch.base.context import Context
from vkdispatch.reduce.accumulators import Accumulator
from vkdispatch.reduce.planning import MOST_ROUNDS, Planner, Shape
from vkdispatch.reduce.tuning import CpuTuning

# Invocations of a workgroup that cannot exchange values but by its memory.
_GROUP = 8

cpu_tuning = CpuTuning()


class CpuPlanner(Planner):
    """Plans reductions on CPU drivers."""

    _runs = True

    def _group(self, facts: DeviceFacts, held: int) -> int:
        self._most = facts.power_group(min(cpu_tuning.group, held))
        return facts.power_group(min(self._subgroup if self._subgroup > 1 else _GROUP, held))

    @property
    def _finishing(self) -> bool:
        return False

    def _most_elements(self, plain: bool) -> int:
        return cpu_tuning.most_elements

    def _results(self, size: int, free: int) -> int:
        return 1

    def _team(self, rows: int, loads: int, unroll: int) -> tuple[int, int]:
        lanes = 1 if loads <= cpu_tuning.lane_loads else self.group
        return self._widen(rows, lanes, loads), lanes

    def _side(self, shape: Shape, count: int, inner: int, unroll: int, size: int) -> tuple[int, int]:
        side = min(self.group, 1 << max(count - 1, 0).bit_length())
        if side < self.group or shape.length > MOST_ROUNDS:
            return self.group, side
        group = self._widen(count, 1, shape.length)
        return group, group

    def _widen(self, rows: int, lanes: int, loads: int) -> int:
        """Return the invocations of a workgroup, more than a subgroup where each has little to do."""
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

    def _segments(self, full: int, blocks: int, most: int = 0) -> int:
        if blocks * full <= cpu_tuning.single:
            return 1
        return min(full, max(-(-cpu_tuning.groups // blocks), -(-full // MOST_ROUNDS)))


def planner_for(source: Source, accumulator: Accumulator, context: Context, group: int | None) -> Planner:
    """Return what plans on the devices of a context; see `Planner`.

    A workgroup of a size that was asked for has barriers, on CPU drivers too.
    """
    kind = CpuPlanner if group is None and device_facts(context).is_cpu else Planner
    return kind(source, accumulator, context, group)
