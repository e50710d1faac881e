"""Layouts of reductions: which elements make each result, and what that means for kernels and launches.

A buffer's shape and the axes to reduce become one of three layouts, each of `count` results of `length`
elements:

    rows      element k of result r lies at r * length + k
    columns   at (r / inner) * length * inner + r % inner + k * inner: neighbouring results are neighbours
    split     at (k / inner) * inner * count + r * inner + k % inner: rows in pieces of `inner` elements
"""

import math
from dataclasses import astuple, dataclass

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.families.arguments import as_tuple, parse_axes, parse_int

MOST_NARROW = 0xFFFFFFFF


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
        if max(values) > MOST_NARROW:
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
