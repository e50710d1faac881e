"""Plans of passes of columns, for CPU drivers."""

import functools

from vkdispatch.arrays.facts import DeviceFacts, device_facts
from vkdispatch.base.dtype import DType, complex64, dvec2, dvec4
from vkdispatch.base.record import record
from vkdispatch.fft.plan.lengths import LARGEST_PRIME, prime_factors

VECTORS: dict[int, DType] = {4: dvec4, 2: dvec2}
GROUP = 64  # invocations of a workgroup, so that there are several for each core
_LANES = (8, 4, 2)
# Values of a column that one invocation holds; more take a driver's compiler long.
_ROWS, _MOST_ROWS = 16, 25
_MOST_PASSES = 4
# Instructions of an access, and of each value that it moves; of its transform, and of a step across lanes.
_ACCESS, _MOVE, _TRANSFORM, _ACROSS = 14, 9, 6, 2
# What each launch is worth, and each value more that an invocation holds.
_LAUNCH, _HELD = 4, 0.25


@record
class Columns:
    """A pass over lines that are matrices of radix x rest x near values.

    Attributes
    ----------
    outer
        Lines that are transformed at once.
    radix
        Values of a column.
    rest, near
        What later passes transform, and what earlier ones did.
    first, last
        Whether values come from the caller's buffer, and whether they go there.
    lanes
        Invocations that share columns.
    width
        Columns of an invocation.
    words
        Values that it stores at once.
    """

    outer: int
    radix: int
    rest: int
    near: int
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
        moved = _ACCESS / self.width + _ACCESS / self.words + 2 * _MOVE
        steps = (self.lanes.bit_length() - 1) * _ACROSS
        return _LAUNCH + moved + _TRANSFORM + steps + _HELD * max(0, self.rows - _ROWS)

    @property
    def groups(self) -> int:
        """Groups of columns of a line."""
        return self.rest * self.near // self.width


def plan_columns(
    outer: int, radix: int, rest: int, near: int, ends: tuple[bool, bool], compute_type: DType
) -> Columns | None:
    """Plan a pass, as `Columns` has it; None where columns do not make vectors, or this is no CPU."""
    facts = device_facts()
    if not suits_columns(facts, compute_type):
        return None
    first, last = ends
    columns = rest * near
    lanes = choose_lanes(facts, radix)
    rows = radix // lanes
    for width in VECTORS:
        if columns % width:
            continue
        if last or near % width == 0:
            return Columns(outer, radix, rest, near, first, last, lanes, width, width)
        if near == 1:
            # columns become rows, one after another
            run = rows if lanes > 1 else rows * width
            words = next((words for words in VECTORS if run % words == 0), 0)
            if words:
                return Columns(outer, radix, rest, near, first, last, lanes, width, words)
    return None


def choose_radices(length: int, inner: int, compute_type: DType) -> tuple[int, ...] | None:
    """Return the radices of the passes of lines, `inner` of them side by side; None where there are none."""
    if not suits_columns(device_facts(), compute_type) or prime_factors(length)[-1:] > (LARGEST_PRIME,):
        return None
    # of passes that cost the same, the largest comes first: later ones take rows that are farther apart
    divisors = [each for each in range(_LANES[0] * _MOST_ROWS, 1, -1) if length % each == 0]

    @functools.cache
    def best(done: int, passes: int) -> tuple[float, tuple[int, ...]] | None:
        """Return the cheapest passes that transform the rest, and what they cost."""
        if done == length:
            return 0.0, ()
        found: tuple[float, tuple[int, ...]] | None = None
        for radix in divisors if passes else ():
            rest, odd = divmod(length // done, radix)
            if odd or radix == length:
                continue
            plan = plan_columns(1, radix, rest, done * inner, (done == 1, rest == 1), compute_type)
            tail = None if plan is None or plan.rows > _MOST_ROWS else best(done * radix, passes - 1)
            if plan is None or tail is None:
                continue
            cost = round(plan.cost + tail[0], 3)
            if found is None or cost < found[0]:
                found = cost, (radix, *tail[1])
        return found

    found = best(1, _MOST_PASSES)
    return None if found is None else found[1]


def suits_columns(facts: DeviceFacts, compute_type: DType) -> bool:
    """Whether there are passes of columns on a device."""
    return facts.cpu and compute_type is complex64 and "shaderFloat64" in facts.features


def choose_lanes(facts: DeviceFacts, radix: int) -> int:
    """Return how many invocations share columns of so many values."""
    if radix <= _ROWS or not (facts.shuffles and facts.whole):
        return 1
    usable = (lanes for lanes in _LANES if radix % lanes == 0 and facts.subgroup % lanes == 0)
    # no more than it takes: each costs a step across the subgroup
    found = [lanes for lanes in usable if GROUP % facts.subgroup == 0]
    return next((lanes for lanes in reversed(found) if radix // lanes <= _ROWS), max(found, default=1))
