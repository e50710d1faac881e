"""How a reduction's work is divided: which invocations reduce which elements. See `layouts`.

`lanes` invocations reduce each result together. They go through its elements in chunks: lane t loads the
positions t, t + lanes, ... t + (unroll - 1) * lanes of a chunk before it uses any. A load takes several
elements where it can: neighbours in a row, or in "columns" those of neighbouring results, all of which belong
to the invocation:

    rows      lane 0  1  2  3  0  1  2  3       columns   lane 0   [0 0 0 0][1 1 1 1][2 2 2 2] results
              [0 0 0 0][1 1 1 1] elements                 lane 1   [0 0 0 0][1 1 1 1][2 2 2 2]

Where there are few results, `segments` workgroups share one: each takes every `segments`-th chunk and leaves
a partial result. The workgroup that finishes last combines the partial results, or a second launch does. The
order in which values are combined depends on shapes and devices only, never on timing: the same input gives
the same bits.
"""

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.families.arguments import floor_power_of_two
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import DeviceFacts, device_facts
from vkdispatch.reduce.accumulators.accumulator import Accumulator
from vkdispatch.reduce.layouts import MOST_NARROW, KernelForm, Pass, Plan, ReductionParams, Shape
from vkdispatch.reduce.tuning import tuning as tuning
from vkdispatch.shader.program import parse_check

# Most chunks that one workgroup adds up one after the other, which bounds the rounding errors of sums.
MOST_ROUNDS = 256
# Most rounds of loads in which the last workgroup of some columns combines the partial results of all.
_FINISHING_ROUNDS = 16
# Bytes of workgroup memory for the number that says which workgroup finishes last.
_TICKET = 16
# Bytes of the smallest load of several elements.
_WORD = 4


def _choose_unroll(loads: int, most: int) -> int:
    """Return the number of loads that an invocation has in flight, chosen so that few loads remain."""
    rounds = -(-loads // most) if loads < 4 * most else 1
    return min(most, floor_power_of_two(loads // max(rounds, 1)))


class Planner:
    """Plans reductions of one source by one accumulator on the devices of a context."""

    # Whether the chunks that a workgroup takes of a shared result lie one after the other.
    _has_runs = False

    def __init__(self, source: Source, accumulator: Accumulator, context: Context, group: int | None) -> None:
        """Read the facts of the devices.

        Parameters
        ----------
        group
            Invocations of a workgroup; None chooses.

        Raises
        ------
        ValueError
            The device does not support workgroups of this size.
        """
        facts = device_facts(context)
        exchanges = (
            facts.has_shuffle and facts.has_one_subgroup_size and accumulator.can_exchange(facts.features)
        )
        self._subgroup = facts.subgroup_size if exchanges else 1
        self._arithmetic = self._subgroup > 1 and facts.has_arithmetic and accumulator.subgroup is not None
        self._source = source
        self._size = accumulator.size
        self._registers = len(accumulator.kinds)
        self._most_columns = accumulator.most_columns
        self._memory = facts.shared_memory
        if group is not None:
            if group % facts.subgroup_size or not 0 < group <= facts.max_group:
                raise ArgumentValueError(
                    f"group_size: expected a multiple of the subgroup size {facts.subgroup_size} of at most "
                    f"{facts.max_group}, got {group}"
                )
            self.group = group
            return
        # workgroup memory holds a state of each invocation, and the ticket
        held = (facts.shared_memory - _TICKET) // self._size
        self.group = self._choose_group(facts, held)

    def _choose_group(self, facts: DeviceFacts, held: int) -> int:
        """Return the invocations of a workgroup whose memory holds `held` states."""
        return facts.power_group(min(tuning.group, held))

    @property
    def _is_finishing(self) -> bool:
        # checked kernels may end invocations early, which would leave the counters wrong for good
        return bool(tuning.finishing) and not parse_check(None)

    def plan(self, shape: Shape) -> Plan:
        """Return the launches for a shape."""
        first = self._plan_columns(shape) if shape.layout == "columns" else self._plan_rows(shape)
        if not first.form.is_segmented:
            return Plan(first, None, shape.count, 0)
        segments = first.params.segments
        second = None if first.form.is_finishing else self.plan_second(shape, segments)
        return Plan(first, second, shape.count, segments * shape.count)

    def plan_second(self, shape: Shape, segments: int) -> Pass:
        """Return the launch that reduces the partial results of the first one."""
        if shape.layout == "columns":
            return self._plan_columns(Shape("columns", shape.count, segments, shape.count), partial=True)
        return self._plan_rows(Shape("rows", shape.count, segments), partial=True)

    def plan_large_forms(self) -> tuple[KernelForm, KernelForm]:
        """Return the forms of both kernels of the reduction of a large buffer to one value."""
        shape = Shape("rows", 1, 1 << 28)
        first = self._plan_rows(shape)
        return first.form, self.plan_second(shape, first.params.segments).form

    def _choose_unroll(self, item_size: int, together: int, plain: bool, flight: int) -> int:
        most = self._limit_elements(plain)
        wanted = min(flight // (item_size * together), most // together, 16)
        return floor_power_of_two(wanted)

    def _limit_elements(self, plain: bool) -> int:
        """Return the most elements that an invocation has in flight, mapped or plain."""
        return tuning.most_elements if plain else tuning.most_mapped

    def _plan_rows(self, shape: Shape, *, partial: bool = False) -> Pass:
        """Return a launch over rows, whole or in pieces; workgroups do not share rows of partial results."""
        source = self._source
        together = 1 if partial else source.together
        many = shape.count > 1
        piece = shape.inner if shape.layout == "split" else shape.length
        whole_loads = piece % together == 0 if many or shape.layout == "split" else piece >= together
        together = together if whole_loads else 1
        loads = shape.length // together
        size = self._size if partial else source.item_size
        unroll = self._choose_unroll(size, together, source.is_plain or partial, tuning.bytes_in_flight)
        group, lanes = self._choose_team(shape.count, loads, unroll) if many else (self.group, self.group)
        in_use = _choose_unroll(loads // lanes, unroll)
        short = lanes <= self._subgroup and many
        results = self._choose_results(in_use * together * size, unroll // in_use) if short else 1
        chunk = lanes * in_use
        full = loads // chunk
        per_group = group // lanes * results
        blocks = -(-shape.count // per_group)
        segments = 1 if partial or lanes < group else self._choose_segments(full, blocks)
        form = KernelForm(
            layout=shape.layout,
            group=group,
            lanes=lanes,
            unroll=in_use,
            results=results,
            together=together,
            is_many=many,
            is_partial=partial,
            is_segmented=segments > 1,
            is_finishing=segments > 1 and results == 1 and self._is_finishing,
            is_interleaved=False,
            partials=tuning.partials,
            subgroup=self._subgroup,
            has_arithmetic=self._arithmetic,
            has_runs=self._has_runs,
        )
        params = ReductionParams(
            segments=segments,
            blocks=blocks,
            last=shape.count - (blocks - 1) * per_group,
            full=full,
            rest=loads - full * chunk,
            tail=shape.length - loads * together,
            inner=shape.inner // together if shape.layout == "split" else 1,
            outer=shape.count if shape.layout == "split" else 1,
        )
        return Pass(form, params)

    def _choose_results(self, size: int, free: int) -> int:
        """Return how many results an invocation reduces.

        Parameters
        ----------
        size
            Bytes of each result that it has in flight.
        free
            The most results that leave its registers room.
        """
        wanted = min(tuning.bytes_of_short // size, free, tuning.most_results)
        return 1 if self._source.is_writing else max(1, wanted)

    def _choose_team(self, rows: int, loads: int, unroll: int) -> tuple[int, int]:
        """Return the invocations of a workgroup, and how many of them reduce a row of `loads` loads."""
        if loads > 2 * unroll * self._subgroup or self.group % self._subgroup:
            return self.group, self.group
        return self.group, min(self._subgroup, 1 << max(loads - 1, 0).bit_length())

    def _plan_columns(self, shape: Shape, *, partial: bool = False) -> Pass:
        source = self._source
        together = 1 if partial else self._choose_columns_per_load(shape)
        size = self._size if partial else source.item_size
        count, inner = shape.count // together, shape.inner // together
        unroll = self._choose_unroll(size, together, source.is_plain or partial, tuning.column_flight)
        group, side = self._choose_side(shape, count, inner, unroll, size * together)
        lanes = group // side
        in_use = _choose_unroll(shape.length // lanes, unroll)
        results = self._choose_results(in_use * size * together, unroll // in_use) if lanes == 1 else 1
        chunk = lanes * in_use
        full = shape.length // chunk
        per_group = side * results
        blocks = -(-count // per_group)
        segments = (
            1 if partial else self._choose_segments(full, blocks, self._limit_finishing(lanes, together))
        )
        form = KernelForm(
            layout="columns",
            group=group,
            lanes=lanes,
            unroll=in_use,
            results=results,
            together=together,
            is_many=True,
            is_partial=partial,
            is_segmented=segments > 1,
            is_finishing=segments > 1 and results == 1 and self._is_finishing,
            is_interleaved=segments > 1 and bool(tuning.interleave),
            partials=tuning.partials,
            subgroup=self._subgroup,
            has_arithmetic=False,
            has_runs=self._has_runs,
        )
        params = ReductionParams(
            segments=segments,
            blocks=blocks,
            last=count - (blocks - 1) * per_group,
            full=full,
            rest=shape.length - full * chunk,
            inner=inner,
        )
        return Pass(form, params)

    def _choose_side(self, shape: Shape, count: int, inner: int, unroll: int, size: int) -> tuple[int, int]:
        """Return the invocations of a workgroup, and how many of them lie side by side.

        A load takes `size` bytes. A row of all columns has `count` loads, a row in memory `inner`.
        """
        # as many as fill a few cache lines
        side = self.group & -self.group
        wanted = floor_power_of_two(tuning.column_side // size)
        few = max(wanted, self._subgroup) if shape.length >= 4 * unroll else side
        side = min(side, few, 1 << max(count - 1, 0).bit_length())
        # short rows one below the other are neighbours in memory; those side by side are not
        while side > inner and shape.length * side >= 2 * self.group * tuning.column_least:
            side //= 2
        return self.group, side

    def _choose_columns_per_load(self, shape: Shape) -> int:
        """Return how many neighbouring columns a load takes; registers and memory hold a state of each."""
        source = self._source
        wanted = self._choose_columns(source.item_size)
        most = min(source.together, wanted, max(1, tuning.column_bytes // source.item_size))
        held = (self._memory - _TICKET) // (self._size * self.group)
        together = floor_power_of_two(min(most, held))
        # a load has at least the bytes of a word
        while together > 1 and (shape.inner % together or together * source.item_size < _WORD):
            together //= 2
        return together if together * source.item_size >= _WORD else 1

    def _choose_columns(self, size: int) -> int:
        """Return the most columns, of elements of `size` bytes, that a load takes."""
        if self._most_columns is not None and size >= _WORD:
            return self._most_columns
        return tuning.most_columns if self._registers == 1 else tuning.most_columns_of_states

    def _limit_finishing(self, lanes: int, columns: int) -> int:
        """Return how many partial results of some columns one workgroup combines in little time."""
        return _FINISHING_ROUNDS * lanes * max(1, tuning.partials // columns)

    def _choose_segments(self, full: int, blocks: int, most: int = MOST_NARROW) -> int:
        """Return how many workgroups share a result of `full` chunks."""
        if full <= tuning.single:
            return 1
        shared = 1 if blocks >= tuning.enough else -(-tuning.groups // blocks)
        return min(full, max(min(shared, most), -(-full // MOST_ROUNDS)))
