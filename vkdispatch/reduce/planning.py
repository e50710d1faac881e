"""How a reduction's work is laid out: which elements belong together, and who reduces them.

A buffer's shape and the axes to reduce become one of three layouts, each of `count` results of `length`
elements:

    rows      element k of result r lies at r * length + k
    columns   at (r / inner) * length * inner + r % inner + k * inner: neighbouring results are neighbours
    split     at (k / inner) * inner * count + r * inner + k % inner: rows in pieces of `inner` elements

`lanes` invocations reduce each result together. They go through its elements in chunks: lane t loads the
positions t, t + lanes, ... t + (unroll - 1) * lanes of a chunk, all before it uses any. A load takes several
elements where it can: neighbours in a row, or in "columns" those of neighbouring results, which the
invocation then has all:

    rows      lane 0  1  2  3  0  1  2  3       columns   lane 0   [0 0 0 0][1 1 1 1][2 2 2 2] results
              [0 0 0 0][1 1 1 1] elements                 lane 1   [0 0 0 0][1 1 1 1][2 2 2 2]

Where there are few results, `segments` workgroups share one, of which each takes every so many-th chunk, and
leaves a partial result; whichever of them is done last combines these, or a second launch does. Who combines
what is decided by shapes and device, and nothing by which invocation is the first: the same input gives the
same bits.
"""

import math
from dataclasses import astuple, dataclass

from vkdispatch.arrays.axes import as_tuple, parse_axes
from vkdispatch.arrays.facts import DeviceFacts, device_facts
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.numbers import floor_power_of_two, parse_int
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.reduce.accumulators import Accumulator
from vkdispatch.reduce.tuning import Tuning
from vkdispatch.shader.observation import checks_of

_MOST_NARROW = 0xFFFFFFFF
# Chunks that one workgroup adds up in a row, at most: what keeps the rounding errors of sums small.
MOST_ROUNDS = 256
# Rounds of loads in which the last workgroup of some columns combines what all have found: all wait for it.
_FINISHING_ROUNDS = 16
# Bytes of workgroup memory that tell which workgroup is the last; of the smallest load of several elements.
_TICKET = 16
_WORD = 4


tuning = Tuning()


@dataclass
class ReductionParams:
    """The numbers that a stage is given (uint32 each).

    Attributes
    ----------
    segments
        Workgroups that share a result.
    blocks, last
        Blocks of results that a workgroup does, and how many results the last of them has.
    full, rest
        Whole chunks of a result, and loads beyond them.
    tail
        Elements beyond the last load.
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

    def checked(self) -> tuple[int, ...]:
        """Return the numbers in order. Raises ValueError where one needs more than 32 bits."""
        values: tuple[int, ...] = astuple(self)
        if max(values) > _MOST_NARROW:
            raise ArgumentValueError(
                "axes: along these a reduction takes steps of more than 2**32 elements; reduce the whole "
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
    """What a stage's kernel is specialised for.

    Attributes
    ----------
    layout
        "rows", "columns" or "split".
    group, lanes
        Invocations of a workgroup, and those of them that reduce a result together.
    unroll
        Loads that an invocation has in flight, for each of its results.
    results
        Rows of an invocation, or groups of columns.
    together
        Elements of a load.
    many
        Whether there is more than one result.
    partial
        Whether what is reduced are partial results.
    segmented
        Whether several workgroups share a result, and leave partial ones.
    finishing
        Whether the last of them to be done combines these.
    across
        Whether neighbouring workgroups have neighbouring results, not parts of the same one.
    partials
        Partial results that an invocation loads at once, where it finishes.
    subgroup
        Invocations that exchange values without workgroup memory; 1: none do.
    arithmetic
        Whether the device combines a value over a subgroup by itself.
    runs
        Whether the chunks that a workgroup takes of a shared result lie one after the other.
    """

    layout: str
    group: int
    lanes: int
    unroll: int
    results: int
    together: int
    many: bool
    partial: bool
    segmented: bool
    finishing: bool
    across: bool
    partials: int
    subgroup: int
    arithmetic: bool
    runs: bool = False

    @property
    def vector(self) -> bool:
        """Whether several elements are loaded at once."""
        return self.together > 1

    @property
    def columns(self) -> int:
        """Results whose elements lie in one load."""
        return self.together if self.layout == "columns" else 1

    @property
    def results_too(self) -> bool:
        """Whether it leaves results, not only partial ones."""
        return self.finishing or not self.segmented


@record
class Pass:
    """A launch: its kernel's form, and its numbers."""

    form: KernelForm
    params: ReductionParams


@record
class Plan:
    """All launches of a reduction, one or two, and how many results and partial results there are."""

    first: Pass
    second: Pass | None
    count: int
    partials: int


def normalized_axes(axes: object) -> tuple[int, ...] | None:
    """Return axes as a tuple; None (all of them) stays.

    Raises
    ------
    TypeError
        They are neither an int nor ints.
    ValueError
        There are none.
    """
    if axes is None:
        return None
    result = tuple(parse_int(axis, "axes") for axis in as_tuple(axes))
    if not result:
        raise ArgumentValueError("axes: name at least one axis; None reduces all of them")
    return result


def shape_of(dimensions: tuple[int, ...], axes: tuple[int, ...] | None) -> Shape:
    """Return the layout for a buffer's shape and the axes to reduce.

    Raises
    ------
    AxisError
        An axis is not there, or named twice.
    """
    if axes is None:
        return Shape("rows", 1, math.prod(dimensions))
    chosen = set(parse_axes(axes, len(dimensions), "axes"))
    # neighbours that are both reduced, or both not, are one axis
    runs: list[tuple[bool, int]] = []
    for axis, size in enumerate(dimensions):
        reduced = axis in chosen
        if size == 1:
            continue
        if runs and runs[-1][0] == reduced:
            size *= runs.pop()[1]
        runs.append((reduced, size))
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


def _unroll_for(loads: int, most: int) -> int:
    """Return how many loads an invocation has in flight that does so many, and leaves few for the rest."""
    rounds = -(-loads // most) if loads < 4 * most else 1
    return min(most, floor_power_of_two(loads // max(rounds, 1)))


class Planner:
    """Plans reductions of one source by one accumulator on the devices of a context."""

    _runs = False

    def __init__(self, source: Source, accumulator: Accumulator, context: Context, group: int | None) -> None:
        """Look at the devices.

        Parameters
        ----------
        group
            Invocations of a workgroup; None chooses.

        Raises
        ------
        ValueError
            The device has no such workgroups.
        """
        facts = device_facts(context)
        exchanges = (
            facts.has_shuffle and facts.has_one_subgroup_size and accumulator.exchanges(facts.features)
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
        # workgroup memory holds a state of each invocation, and a little more
        held = (facts.shared_memory - _TICKET) // self._size
        self.group = self._group(facts, held)

    def _group(self, facts: DeviceFacts, held: int) -> int:
        """Return how many invocations a workgroup has, whose memory holds so many states."""
        return facts.power_group(min(tuning.group, held))

    @property
    def _finishing(self) -> bool:
        # a check that ends invocations early would leave the counters wrong for good
        return bool(tuning.finishing) and not checks_of(None)

    def plan(self, shape: Shape) -> Plan:
        """Return the launches for a shape."""
        first = self._columns(shape) if shape.layout == "columns" else self._rows(shape)
        if not first.form.segmented:
            return Plan(first, None, shape.count, 0)
        segments = first.params.segments
        second = None if first.form.finishing else self.second(shape, segments)
        return Plan(first, second, shape.count, segments * shape.count)

    def second(self, shape: Shape, segments: int) -> Pass:
        """Return the launch that reduces partial results, as the first lays them out."""
        if shape.layout == "columns":
            return self._columns(Shape("columns", shape.count, segments, shape.count), partial=True)
        return self._rows(Shape("rows", shape.count, segments), partial=True)

    def whole(self) -> tuple[KernelForm, KernelForm]:
        """Return the kernels of a reduction of a large buffer to one value."""
        shape = Shape("rows", 1, 1 << 28)
        first = self._rows(shape)
        return first.form, self.second(shape, first.params.segments).form

    def _unroll(self, item_size: int, together: int, plain: bool, flight: int) -> int:
        most = self._most_elements(plain)
        wanted = min(flight // (item_size * together), most // together, 16)
        return floor_power_of_two(wanted)

    def _most_elements(self, plain: bool) -> int:
        """Return how many elements an invocation has in flight, of a map or as they are."""
        return tuning.most_elements if plain else tuning.most_mapped

    def _rows(self, shape: Shape, *, partial: bool = False) -> Pass:
        """Return a launch over rows, or rows in pieces; those of partial results are not shared."""
        source = self._source
        together = 1 if partial else source.together
        many = shape.count > 1
        piece = shape.inner if shape.layout == "split" else shape.length
        whole_loads = piece % together == 0 if many or shape.layout == "split" else piece >= together
        together = together if whole_loads else 1
        loads = shape.length // together
        size = self._size if partial else source.item_size
        unroll = self._unroll(size, together, source.is_plain or partial, tuning.bytes_in_flight)
        group, lanes = self._team(shape.count, loads, unroll) if many else (self.group, self.group)
        in_use = _unroll_for(loads // lanes, unroll)
        short = lanes <= self._subgroup and many
        results = self._results(in_use * together * size, unroll // in_use) if short else 1
        chunk = lanes * in_use
        full = loads // chunk
        per_group = group // lanes * results
        blocks = -(-shape.count // per_group)
        segments = 1 if partial or lanes < group else self._segments(full, blocks)
        form = KernelForm(
            shape.layout,
            group,
            lanes,
            in_use,
            results,
            together,
            many,
            partial,
            segments > 1,
            segments > 1 and results == 1 and self._finishing,
            False,
            tuning.partials,
            self._subgroup,
            self._arithmetic,
            self._runs,
        )
        params = ReductionParams(
            segments,
            blocks,
            shape.count - (blocks - 1) * per_group,
            full,
            loads - full * chunk,
            shape.length - loads * together,
            shape.inner // together if shape.layout == "split" else 1,
            shape.count if shape.layout == "split" else 1,
        )
        return Pass(form, params)

    def _results(self, size: int, free: int) -> int:
        """Return how many results an invocation takes that has `size` bytes of each in flight.

        `free` is how many more times it may.
        """
        wanted = min(tuning.bytes_of_short // size, free, tuning.most_results)
        return 1 if self._source.is_writing else max(1, wanted)

    def _team(self, rows: int, loads: int, unroll: int) -> tuple[int, int]:
        """Return the invocations of a workgroup, and how many of them reduce a row of so many loads."""
        if loads > 2 * unroll * self._subgroup or self.group % self._subgroup:
            return self.group, self.group
        return self.group, min(self._subgroup, 1 << max(loads - 1, 0).bit_length())

    def _columns(self, shape: Shape, *, partial: bool = False) -> Pass:
        source = self._source
        together = 1 if partial else self._columns_together(shape)
        size = self._size if partial else source.item_size
        count, inner = shape.count // together, shape.inner // together
        unroll = self._unroll(size, together, source.is_plain or partial, tuning.column_flight)
        group, side = self._side(shape, count, inner, unroll, size * together)
        lanes = group // side
        in_use = _unroll_for(shape.length // lanes, unroll)
        results = self._results(in_use * size * together, unroll // in_use) if lanes == 1 else 1
        chunk = lanes * in_use
        full = shape.length // chunk
        per_group = side * results
        blocks = -(-count // per_group)
        segments = 1 if partial else self._segments(full, blocks, self._finished(lanes, together))
        form = KernelForm(
            "columns",
            group,
            lanes,
            in_use,
            results,
            together,
            True,
            partial,
            segments > 1,
            segments > 1 and results == 1 and self._finishing,
            segments > 1 and bool(tuning.across),
            tuning.partials,
            self._subgroup,
            False,
            self._runs,
        )
        params = ReductionParams(
            segments,
            blocks,
            count - (blocks - 1) * per_group,
            full,
            shape.length - full * chunk,
            0,
            inner,
            1,
        )
        return Pass(form, params)

    def _side(self, shape: Shape, count: int, inner: int, unroll: int, size: int) -> tuple[int, int]:
        """Return the invocations of a workgroup, and how many of them are side by side.

        Loads take `size` bytes; there are `count` to a row of all, and `inner` to one in memory.
        """
        # as many as fill a few lines of the cache
        side = self.group & -self.group
        wanted = floor_power_of_two(tuning.column_side // size)
        few = max(wanted, self._subgroup) if shape.length >= 4 * unroll else side
        side = min(side, few, 1 << max(count - 1, 0).bit_length())
        # short rows one below the other are neighbours in memory; those side by side are not
        while side > inner and shape.length * side >= 2 * self.group * tuning.column_least:
            side //= 2
        return self.group, side

    def _columns_together(self, shape: Shape) -> int:
        """Return how many neighbouring columns a load takes: a state of each is held, and in memory too."""
        source = self._source
        wanted = self._choose_columns(source.item_size)
        most = min(source.together, wanted, max(1, tuning.column_bytes // source.item_size))
        held = (self._memory - _TICKET) // (self._size * self.group)
        together = floor_power_of_two(min(most, held))
        # loads of fewer bytes than a word are none
        while together > 1 and (shape.inner % together or together * source.item_size < _WORD):
            together //= 2
        return together if together * source.item_size >= _WORD else 1

    def _choose_columns(self, size: int) -> int:
        """Return how many columns of elements of so many bytes a load takes, at most."""
        if self._most_columns is not None and size >= _WORD:
            return self._most_columns
        return tuning.most_columns if self._registers == 1 else tuning.most_columns_of_states

    def _finished(self, lanes: int, columns: int) -> int:
        """Return how many partial results of some columns one workgroup combines without taking long."""
        return _FINISHING_ROUNDS * lanes * max(1, tuning.partials // columns)

    def _segments(self, full: int, blocks: int, most: int = _MOST_NARROW) -> int:
        """Return how many workgroups share a result that has so many chunks."""
        if full <= tuning.single:
            return 1
        shared = 1 if blocks >= tuning.enough else -(-tuning.groups // blocks)
        return min(full, max(min(shared, most), -(-full // MOST_ROUNDS)))
