"""Plans to fuse neighbouring dispatches of a recording into one kernel."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from vkdispatch.base.context import Handle
from vkdispatch.base.record import record

if TYPE_CHECKING:
    from vkdispatch.compiler.forms import ArgumentLayout


class Fusible(Protocol):
    """The properties of a recorded kernel that fusing its launches needs."""

    @property
    def layout(self) -> "ArgumentLayout":
        """The layout of its arguments."""

    def fuse(
        self, launches: "Sequence[Launch]", uses: Mapping[int, int], discarded: frozenset[int]
    ) -> "list[Fusion]":
        """Find chains among launches in a row that one kernel each can replace. All are of this class.

        Parameters
        ----------
        uses
            The number of dispatches of the graph that bind each resource, by handle.
        discarded
            Handles of the buffers whose contents are not read afterwards.
        """


# A dispatch: its kernel, or None if it cannot be fused; the buffers, images and samplers that it binds, in
# the order of the kernel's slots; the offset of its arguments in an instance.
Recorded = tuple[Fusible | None, Sequence[Handle], int]


class Recording:
    """The dispatches of a graph.

    They are kept in flat lists, as the garbage collector would traverse an object per dispatch repeatedly.
    """

    __slots__ = ("bound", "ends", "kernels", "offsets")

    def __init__(self, dispatches: Iterable[Recorded] = ()) -> None:
        self.kernels: list[Fusible | None] = []
        self.bound: list[Handle] = []
        self.ends: list[int] = []  # of each dispatch's part of `bound`
        self.offsets: list[int] = []
        for dispatch in dispatches:
            self.add(*dispatch)

    def add(self, kernel: Fusible | None, resources: Sequence[Handle], offset: int) -> None:
        """Append a dispatch."""
        bound = self.bound
        bound += resources
        self.kernels.append(kernel)
        self.ends.append(len(bound))
        self.offsets.append(offset)

    def dispatches(self) -> list[Recorded]:
        """Return all of them, in order."""
        starts = (0, *self.ends)
        spans = zip(starts, self.ends, strict=False)
        return [
            (kernel, self.bound[start:end], offset)
            for kernel, (start, end), offset in zip(self.kernels, spans, self.offsets, strict=True)
        ]

    def truncate(self, count: int) -> None:
        """Keep the first `count` only."""
        del self.kernels[count:], self.ends[count:], self.offsets[count:]
        del self.bound[self.ends[-1] if self.ends else 0 :]


@record(eq=False)
class Launch:
    """A recorded dispatch that can be fused with others.

    Attributes
    ----------
    kernel
        The kernel.
    resources
        Buffers and samplers that it binds, in the order of the kernel's slots.
    block
        Its argument bytes.
    bound
        Offsets of the arguments that variables of the graph are bound to.
    """

    kernel: Any
    resources: Sequence[Handle]
    block: bytes
    bound: frozenset[int]


@record(eq=False)
class Fusion:
    """A chain of launches that one kernel can replace.

    Attributes
    ----------
    first, count
        The launches that it replaces.
    record
        Records the kernel in a graph. Its arguments are copied afterwards, as `values` says.
    values
        For each argument: the position of its launch in the chain, offset and size of its bytes there, and
        the name of the fused kernel's member.
    """

    first: int
    count: int
    record: Callable[[Any], None]
    values: Sequence[tuple[int, int, int, str]]


@record(eq=False)
class Move:
    """A move of `size` bytes of a recording's arguments."""

    source: int
    target: int
    size: int


@record(eq=False)
class Plan:
    """The steps of a shortened recording, in order.

    A step is the number of a dispatch that stays, or a fusion with the number of its first dispatch.
    """

    steps: "list[int | tuple[int, Fusion]]"

    @property
    def saved(self) -> int:
        """The number of dispatches saved."""
        return sum(step[1].count - 1 for step in self.steps if not isinstance(step, int))

    def record(self, graph: Any, count: int) -> list[int]:
        """Record the fused kernels behind the `count` dispatches of a graph; return the final order."""
        order = []
        for step in self.steps:
            if isinstance(step, int):
                order.append(step)
                continue
            step[1].record(graph)
            order.append(count)
            count += 1
        return order

    def find_moves(self, recorded: Sequence[Recorded], order: Sequence[int]) -> "Moves":
        """Return the moves of the arguments of fused dispatches."""
        moves: list[Move] = []
        for step, number in zip(self.steps, order, strict=True):
            if isinstance(step, int):
                continue
            first, fusion = step
            kernel, _, target = recorded[number]
            assert kernel is not None
            for position, offset, size, member in fusion.values:
                source = recorded[first + position][2] + offset
                moves.append(Move(source, target + kernel.layout.offset_of(member), size))
        return Moves(moves)


def plan_fusions(
    recorded: Sequence[Recorded], instance: bytes | bytearray, bound: Sequence[int], discarded: frozenset[int]
) -> Plan:
    """Find the dispatches that can be fused.

    Parameters
    ----------
    recorded
        All dispatches.
    instance
        The argument bytes of one instance.
    bound
        Offsets into it of bound variables, ascending.
    discarded
        Handles of the buffers whose contents are not read afterwards.
    """
    uses = Counter(
        handle
        for _, resources, _ in recorded
        for handle in {resource._memory_handle for resource in resources}
    )
    plan = Plan([])
    start = 0
    while start < len(recorded):
        kernel = recorded[start][0]
        end = start + 1
        if kernel is None:
            plan.steps.append(start)
            start = end
            continue
        while end < len(recorded) and recorded[end][0] is not None:
            end += 1
        launches = [_make_launch(dispatch, instance, bound) for dispatch in recorded[start:end]]
        position = 0
        for fusion in kernel.fuse(launches, uses, discarded):
            plan.steps.extend(range(start + position, start + fusion.first))
            plan.steps.append((start + fusion.first, fusion))
            position = fusion.first + fusion.count
        plan.steps.extend(range(start + position, end))
        start = end
    return plan


def _make_launch(recorded: Recorded, instance: bytes | bytearray, bound: Sequence[int]) -> Launch:
    kernel, resources, begin = recorded
    assert kernel is not None
    end = begin + kernel.layout.size
    offsets = bound[bisect_left(bound, begin) : bisect_left(bound, end)]
    return Launch(
        kernel, resources, bytes(instance[begin:end]), frozenset(offset - begin for offset in offsets)
    )


class Moves:
    """Moves of byte ranges that do not overlap."""

    def __init__(self, moves: Sequence[Move]) -> None:
        self._moves = sorted((move for move in moves if move.size), key=lambda move: move.source)
        self._sources = [move.source for move in self._moves]

    @classmethod
    def pack(cls, stretches: Sequence[tuple[int, int]]) -> "Moves":
        """Return the moves that put (offset, size) ranges one after another."""
        moves, end = [], 0
        for offset, size in stretches:
            moves.append(Move(offset, end, size))
            end += size
        return cls(moves)

    def follow(self, offset: int) -> int:
        """Return the new offset of a byte; bytes outside the ranges stay."""
        position = bisect_right(self._sources, offset) - 1
        if position < 0:
            return offset
        move = self._moves[position]
        return move.target + offset - move.source if offset < move.source + move.size else offset

    def copy(self, source: bytes | bytearray, target: bytearray) -> None:
        """Copy the bytes."""
        for move in self._moves:
            target[move.target : move.target + move.size] = source[move.source : move.source + move.size]
