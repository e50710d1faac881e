"""Plans of passes of columns, for CPU drivers."""

import functools

from vkdispatch.base.dtype import DType, complex64, dvec2, dvec4
from vkdispatch.base.record import record
from vkdispatch.families.tuning import DeviceFacts, device_facts
from vkdispatch.fft.plan.lengths import LARGEST_PRIME, find_prime_factors
from vkdispatch.fft.plan.tuning import tuning

VECTORS: dict[int, DType] = {4: dvec4, 2: dvec2}


@record
class Columns:
    """A pass over lines that are matrices of radix x rest x stride values.

    Attributes
    ----------
    outer
        Lines that are transformed at once.
    radix
        Values of a column.
    rest, stride
        Values that later passes transform; distance of the values that earlier passes transformed.
    first, last
        Whether the pass reads from the caller's buffer, and whether it writes to it.
    lanes
        Invocations that share columns.
    width
        Columns of an invocation.
    words
        Values of a store.
    """

    outer: int
    radix: int
    rest: int
    stride: int
    first: bool
    last: bool
    lanes: int
    width: int
    words: int

    @property
    def rows(self) -> int:
        """Values of a column that an invocation holds."""
        return self.radix // self.lanes

    @property
    def cost(self) -> float:
        """Instructions for each value."""
        moved = tuning.column_access / self.width + tuning.column_access / self.words + 2 * tuning.column_move
        steps = (self.lanes.bit_length() - 1) * tuning.column_step
        return (
            tuning.column_launch
            + moved
            + tuning.column_transform
            + steps
            + tuning.column_held * max(0, self.rows - tuning.column_rows)
        )

    @property
    def groups(self) -> int:
        """Groups of columns of a line."""
        return self.rest * self.stride // self.width


def plan_columns(
    outer: int, radix: int, rest: int, stride: int, ends: tuple[bool, bool], compute_type: DType
) -> Columns | None:
    """Plan a pass, or None if columns do not form vectors, or kernels do not run on a CPU."""
    facts = device_facts()
    if not suits_columns(facts, compute_type):
        return None
    first, last = ends
    columns = rest * stride
    lanes = choose_lanes(facts, radix)
    rows = radix // lanes
    for width in VECTORS:
        if columns % width:
            continue
        if last or stride % width == 0:
            return Columns(outer, radix, rest, stride, first, last, lanes, width, width)
        if stride == 1:
            # columns are written as rows, one after another
            run = rows if lanes > 1 else rows * width
            words = next((words for words in VECTORS if run % words == 0), 0)
            if words:
                return Columns(outer, radix, rest, stride, first, last, lanes, width, words)
    return None


def choose_radices(length: int, inner: int, compute_type: DType) -> tuple[int, ...] | None:
    """Return the radices of the passes over lines, `inner` of them interleaved, or None if there are none."""
    if not suits_columns(device_facts(), compute_type) or find_prime_factors(length)[-1:] > (LARGEST_PRIME,):
        return None
    # of equal costs, the largest radix comes first: the rows of later passes are farther apart
    divisors = [
        each for each in range(tuning.column_lanes[0] * tuning.column_most_rows, 1, -1) if length % each == 0
    ]

    @functools.cache
    def best(done: int, passes: int) -> tuple[float, tuple[int, ...]] | None:
        """Return the cheapest passes for the rest, and their cost."""
        if done == length:
            return 0.0, ()
        found: tuple[float, tuple[int, ...]] | None = None
        for radix in divisors if passes else ():
            rest, odd = divmod(length // done, radix)
            if odd or radix == length:
                continue
            plan = plan_columns(1, radix, rest, done * inner, (done == 1, rest == 1), compute_type)
            tail = (
                None
                if plan is None or plan.rows > tuning.column_most_rows
                else best(done * radix, passes - 1)
            )
            if plan is None or tail is None:
                continue
            cost = round(plan.cost + tail[0], 3)
            if found is None or cost < found[0]:
                found = cost, (radix, *tail[1])
        return found

    found = best(1, tuning.column_most_passes)
    return None if found is None else found[1]


def suits_columns(facts: DeviceFacts, compute_type: DType) -> bool:
    """Whether a device transforms by passes of columns."""
    return facts.is_cpu and compute_type is complex64 and "shaderFloat64" in facts.features


def choose_lanes(facts: DeviceFacts, radix: int) -> int:
    """Return how many invocations share columns of so many values."""
    if radix <= tuning.column_rows or not (facts.has_shuffle and facts.has_full_subgroups):
        return 1
    usable = (
        lanes for lanes in tuning.column_lanes if radix % lanes == 0 and facts.subgroup_size % lanes == 0
    )
    # no more than necessary: each doubling costs a step across the subgroup
    found = [lanes for lanes in usable if tuning.column_group % facts.subgroup_size == 0]
    return next(
        (lanes for lanes in reversed(found) if radix // lanes <= tuning.column_rows), max(found, default=1)
    )
