"""How a reduction's work is divided: layouts, which invocations reduce which elements, and tuning."""

import math
from dataclasses import astuple, dataclass

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.families.operands import Operand, as_tuple, parse_axes, parse_int, stride_operand
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import LLVMPIPE, DeviceFacts, Number, Table, device_facts, floor_power_of_two
from vkdispatch.reduce.accumulators import Accumulator
from vkdispatch.shader.program import is_checking

# ---- Numbers found by measurement ------------------------------------------------------------------------
#
# The plans of reductions depend on them, besides shapes and devices.
#
# Most of them decide which elements an invocation adds up, and so the last bits of floating-point sums.


class Tuning(Table, family="reduce"):
    """Numbers for GPUs."""

    # Invocations of a workgroup. A power of two.
    group = Number(256, (64, 128, 256, 512, 1024), changes_rounding=True)
    # Bytes that an invocation loads before it uses any.
    bytes_in_flight = Number(128, (32, 64, 128, 256), changes_rounding=True)
    # Elements that an invocation combines in one round.
    most_elements = Number(64)
    # The same where elements are mapped.
    most_mapped = Number(32, (8, 16, 32, 64), changes_rounding=True)
    # Bytes that an invocation loads of several short results.
    bytes_of_short = Number(64, (16, 32, 64, 128), changes_rounding=True)
    # The most short results that an invocation has.
    most_results = Number(8, (1, 2, 4, 8, 16))
    # Workgroups that share the work if there are fewer results.
    groups = Number(2112, (128, 256, 528, 1056, 2112, 4224), changes_rounding=True)
    # Number of results from which on no workgroups share a result.
    enough = Number(512, (64, 128, 256, 512, 1024), changes_rounding=True)
    # Chunks that one workgroup takes alone.
    single = Number(2, (1, 2, 4, 8), changes_rounding=True)
    # Whether the workgroup that finishes last combines the partial results of a result, in place of a second
    # launch (0 or 1).
    finishing = Number(1, (0, 1), changes_rounding=True)
    # Bytes of a load in "columns".
    column_bytes = Number(16, (4, 8, 16), changes_rounding=True)
    # The most columns of such a load.
    most_columns = Number(4, (1, 2, 4), changes_rounding=True)
    # The same for states of several registers.
    most_columns_of_states = Number(2, (1, 2, 4), changes_rounding=True)
    # Partial results that an invocation has in flight.
    partials = Number(8, (4, 8, 16), changes_rounding=True)
    # Bytes that an invocation has in flight in "columns".
    column_flight = Number(128, (32, 64, 128, 256), changes_rounding=True)
    # Bytes of a row that the invocations of a workgroup take side by side if columns are long.
    column_side = Number(512, (128, 256, 512, 1024), changes_rounding=True)
    # Least loads of an invocation if a workgroup takes short rows one below the other.
    column_least = Number(4, (1, 2, 4, 8), changes_rounding=True)
    # Whether neighbouring workgroups have neighbouring columns if several share each (0 or 1).
    interleave = Number(1, (0, 1))


class CpuTuning(Table, family="reduce.cpu", found_on=LLVMPIPE):
    """Numbers for CPU drivers.

    If all lanes together load more than a cache line of columns, few lines of each row stay in the cache.
    """

    # Elements that an invocation combines in one round.
    most_elements = Number(16, (8, 16, 32), changes_rounding=True)
    # The most columns of a load in "columns".
    most_columns = Number(4, (1, 2, 4), changes_rounding=True)
    # Bytes of such a load.
    column_bytes = Number(8, (4, 8, 16), changes_rounding=True)
    # Loads of the longest rows that an invocation reduces alone.
    lane_loads = Number(64, (16, 64, 256), changes_rounding=True)
    # The largest workgroup of rows or columns side by side. A power of two.
    group = Number(256, (64, 128, 256))
    # The least loads that such a workgroup makes.
    group_loads = Number(4096, (1024, 4096, 16384))
    # The least workgroups that share the work.
    groups = Number(16, (4, 8, 16, 32, 64, 128), changes_rounding=True)
    # Chunks that one workgroup takes alone.
    single = Number(128, (32, 128, 512), changes_rounding=True)


tuning = Tuning()
cpu_tuning = CpuTuning()


# ---- Layouts of reductions -------------------------------------------------------------------------------
#
# Which elements make each result, and what that means for kernels and launches.
#
# A buffer's shape and the axes to reduce become one of three layouts, each of `count` results of `length`
# elements:
#
#     rows      element k of result r lies at r * length + k
#     columns   at (r / inner) * length * inner + r % inner + k * inner: neighbouring results are neighbours
#     split     at (k / inner) * inner * count + r * inner + k % inner: rows in pieces of `inner` elements


MAX_NARROW = 0xFFFFFFFF


@dataclass
class ReductionParams:
    """The numbers that a stage is launched with (uint32 each).

    Attributes
    ----------
    segments
        Workgroups that share a result.
    blocks, last
        Blocks of results, one for each workgroup, and the results of the last block.
    full, rest
        Whole chunks of a result, and the loads after them.
    tail
        The elements after the last load.
    inner, outer
        See the layouts.
    """

    segments: int = 1
    blocks: int = 1
    last: int = 1
    full: int = 0
    rest: int = 0
    tail: int = 0
    inner: int = 1
    outer: int = 1

    def as_arguments(self) -> tuple[int, ...]:
        """Return the numbers in order. Raises ValueError where one needs more than 32 bits."""
        values: tuple[int, ...] = astuple(self)
        if max(values) > MAX_NARROW:
            raise ArgumentValueError(
                "axes: a reduction along these has strides of more than 2**32 elements; reduce the whole "
                "buffer, or another axis first"
            )
        return values


@record
class Shape:
    """`count` results of `length` elements each in one of the layouts; see above."""

    layout: str
    count: int
    length: int
    inner: int = 1


@record
class KernelForm:
    """What the kernel of a stage is specialised for.

    Attributes
    ----------
    layout
        "rows", "columns" or "split".
    group, lanes
        Invocations of a workgroup, and those of them that reduce a result together.
    unroll
        Loads that an invocation has in flight for each of its results.
    results
        Rows of an invocation, or groups of columns.
    together
        Elements of a load.
    is_many
        Whether there is more than one result.
    is_partial
        Whether the kernel reduces partial results.
    is_segmented
        Whether several workgroups share a result and leave partial results.
    is_finishing
        Whether the workgroup that finishes last combines the partial results.
    is_interleaved
        Whether neighbouring workgroups have neighbouring results, not parts of one result.
    partials
        Partial results that an invocation loads at once where it combines them.
    subgroup
        Invocations that exchange values without workgroup memory; 1 if none do.
    has_arithmetic
        Whether the device has subgroup operations that combine the values.
    has_runs
        Whether the chunks that a workgroup takes of a shared result lie one after the other.
    """

    layout: str
    group: int
    lanes: int
    unroll: int
    results: int
    together: int
    is_many: bool
    is_partial: bool
    is_segmented: bool
    is_finishing: bool
    is_interleaved: bool
    partials: int
    subgroup: int
    has_arithmetic: bool
    has_runs: bool = False

    @property
    def is_vector(self) -> bool:
        """Whether several elements are loaded at once."""
        return self.together > 1

    @property
    def columns(self) -> int:
        """Results whose elements lie in one load."""
        return self.together if self.layout == "columns" else 1

    @property
    def has_results(self) -> bool:
        """Whether the kernel stores results, and not only partial results."""
        return self.is_finishing or not self.is_segmented


@record
class Pass:
    """A launch: the form of its kernel, and its numbers."""

    form: KernelForm
    params: ReductionParams


@record
class Plan:
    """The one or two launches of a reduction, and the counts of results and partial results."""

    first: Pass
    second: Pass | None
    count: int
    partials: int


def read_axes(axes: object) -> tuple[int, ...] | None:
    """Return axes as a tuple; None (all of them) stays.

    Raises
    ------
    TypeError
        An axis is not an int.
    ValueError
        There are no axes.
    """
    if axes is None:
        return None
    result = tuple(parse_int(axis, "axes") for axis in as_tuple(axes))
    if not result:
        raise ArgumentValueError("axes: name at least one axis; None reduces all of them")
    return result


def find_shape(dimensions: tuple[int, ...], axes: tuple[int, ...] | None) -> Shape:
    """Return the layout for a buffer's shape and the axes to reduce.

    Raises
    ------
    AxisError
        An axis is out of range or repeated.
    """
    if axes is None:
        return Shape("rows", 1, math.prod(dimensions))
    runs = _join_runs(dimensions, set(parse_axes(axes, len(dimensions), "axes")))
    sizes = [size for _, size in runs]
    match [reduced for reduced, _ in runs]:
        case []:
            return Shape("rows", 1, 1)
        case [True]:
            return Shape("rows", 1, sizes[0])
        case [False]:
            return Shape("rows", sizes[0], 1)
        case [False, True]:
            return Shape("rows", sizes[0], sizes[1])
        case [True, False]:
            return Shape("columns", sizes[1], sizes[0], sizes[1])
        case [False, True, False]:
            return Shape("columns", sizes[0] * sizes[2], sizes[1], sizes[2])
    return Shape("split", sizes[1], sizes[0] * sizes[2], sizes[2])


_MOST_RUNS = 3


def gather_axes(x: Operand, axes: tuple[int, ...] | None) -> tuple[Operand, tuple[int, ...] | None]:
    """Return an array with its reduced axes side by side where no layout has them apart, and the axes."""
    runs = [] if axes is None else _join_runs(x.shape, set(parse_axes(axes, len(x.shape), "axes")))
    if len(runs) <= _MOST_RUNS:
        return x, axes
    steps = [math.prod(size for _, size in runs[k + 1 :]) for k in range(len(runs))]
    # the last run stays where it is: its elements are neighbours
    order = sorted(range(len(runs) - 1), key=lambda k: runs[k][0])
    order.append(len(runs) - 1)
    moved = stride_operand(x, [runs[k][1] for k in order], [steps[k] for k in order])
    return moved, tuple(place for place, k in enumerate(order) if runs[k][0])


def _join_runs(shape: tuple[int, ...], reduced: set[int]) -> list[tuple[bool, int]]:
    """Return runs of neighbouring axes that are all reduced, or all not: whether they are, and elements."""
    runs: list[tuple[bool, int]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        is_reduced = axis in reduced
        if runs and runs[-1][0] == is_reduced:
            size *= runs.pop()[1]
        runs.append((is_reduced, size))
    return runs


# ---- How a reduction's work is divided: which invocations reduce which elements --------------------------
#
# `lanes` invocations reduce each result together. They go through its elements in chunks: lane t loads the
# positions t, t + lanes, ... t + (unroll - 1) * lanes of a chunk before it uses any. A load takes several
# elements where it can: neighbours in a row, or in "columns" those of neighbouring results, all of which
# belong to the invocation:
#
#     rows      lane 0  1  2  3  0  1  2  3       columns   lane 0   [0 0 0 0][1 1 1 1][2 2 2 2] results
#               [0 0 0 0][1 1 1 1] elements                 lane 1   [0 0 0 0][1 1 1 1][2 2 2 2]
#
# Where there are few results, `segments` workgroups share one: each takes every `segments`-th chunk and
# leaves a partial result. The workgroup that finishes last combines the partial results, or a second launch
# does. The order in which values are combined depends on shapes and devices only, never on timing: the same
# input gives the same bits.


# Most chunks that one workgroup adds up one after the other, which bounds the rounding errors of sums.
MAX_ROUNDS = 256
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
        return bool(tuning.finishing) and not is_checking()

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

    def _choose_segments(self, full: int, blocks: int, most: int = MAX_NARROW) -> int:
        """Return how many workgroups share a result of `full` chunks."""
        if full <= tuning.single:
            return 1
        shared = 1 if blocks >= tuning.enough else -(-tuning.groups // blocks)
        return min(full, max(min(shared, most), -(-full // MAX_ROUNDS)))


# ---- How a reduction's work is divided on CPU drivers ----------------------------------------------------
#
# CPU drivers run a workgroup on one thread, one subgroup after the other, and save the registers of every
# subgroup at a barrier. So the kernels planned here have no barriers, and no workgroup waits for another.
# An invocation reduces a row or a column alone, or a workgroup of one subgroup goes through long runs of a
# row and exchanges its states. A second launch combines partial results.


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
        if side < self.group or shape.length > MAX_ROUNDS:
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
        return min(full, max(-(-cpu_tuning.groups // blocks), -(-full // MAX_ROUNDS)))


def make_planner(source: Source, accumulator: Accumulator, context: Context, group: int | None) -> Planner:
    """Return the planner for the devices of a context.

    `group` is the size of a workgroup that the user asks for, or None. Kernels of such a size may have
    barriers on CPU drivers, too.
    """
    planner = CpuPlanner if group is None and device_facts(context).is_cpu else Planner
    return planner(source, accumulator, context, group)
