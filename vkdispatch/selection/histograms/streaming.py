"""One pass over all elements of some arrays, in whatever order: what counting kernels are made of.

    elements    |. . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . .|. . .|.|
    chunks      |    0    |    1    |    2    |    3    |    4    |    5    |   6    | rest | tail
    workgroup        0         1         2         0         1         2        0       1     0

A chunk is what the invocations of a workgroup have under way at once: `unroll` loads of up to 16 bytes each.
Each workgroup takes every so many-th chunk; what does not fill a chunk, and then a load, comes last. Every
element is visited once, whoever visits it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.kernels import buffer, constant
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand
from vkdispatch.base import dtype
from vkdispatch.base.record import record

_CPU_GROUPS = 16
_FEW_TOGETHER = 4


@record(frozen=False)
class Tuning:
    """Numbers that were found by measurement, on GPUs.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    groups
        Workgroups of a launch that goes once over everything.
    unroll
        Loads that an invocation has in flight.
    """

    group: int = 512
    groups: int = 1056
    unroll: int = 4


tuning = Tuning()


def group_size(wanted: int) -> int:
    """Return the largest workgroup along x, a power of two, that is not above what is wanted."""
    return device_facts().power_group(wanted)


@record
class Streamed:
    """Some arrays of one size, as a kernel goes over them.

    Attributes
    ----------
    sources
        The arrays.
    group, unroll
        Invocations of a workgroup, and the loads that each has under way.
    """

    sources: tuple[Source, ...]
    group: int
    unroll: int

    @property
    def together(self) -> int:
        """How many elements of each array one load takes."""
        return self.sources[0].together

    @property
    def arguments(self) -> list[tuple[str, Any]]:
        """Names and annotations of the kernel's arguments for it: the arrays', their views, the numbers."""
        arrays = [pair for each in self.sources for pair in each.parameters]
        views = [
            (f"{each.names[position]}_{view.name}", buffer[view])
            for each in self.sources
            for position, view in each.views
        ]
        return [*arrays, *views, *((name, constant[dtype.uint32]) for name in NUMBERS)]


NUMBERS = ("stream_groups", "stream_full", "stream_rest", "stream_tail")


def streamed(*operands: Operand) -> Streamed:
    """Return how a kernel goes over arrays of one size: several elements at a time if all allow the same."""
    sources = [each.source for each in operands]
    if len({source.together for source in sources}) > 1:
        sources = [source.elementwise() for source in sources]
    together = sources[0].together
    unroll = tuning.unroll * (1 if together > 1 else 2)
    if device_facts().cpu:
        # a processor loads ahead by itself, and its compilers take long for long kernels
        unroll = 2 if together <= _FEW_TOGETHER else 1
    return Streamed(tuple(sources), group_size(tuning.group), unroll)


def stream_arguments(stream: Streamed, operands: Sequence[Operand]) -> tuple[int, tuple[Any, ...]]:
    """Return how many workgroups a launch has, and its arguments for `stream.arguments`."""
    size = operands[0].size
    loads = size // stream.together
    chunk = stream.group * stream.unroll
    full, rest = divmod(loads, chunk)
    groups = max(1, min(full + (rest > 0), _CPU_GROUPS if device_facts().cpu else tuning.groups))
    arrays = [argument for each in operands for argument in each.arguments]
    views = [
        each.arguments[position]
        for each, source in zip(operands, stream.sources, strict=True)
        for position, _ in source.views
    ]
    return groups, (*arrays, *views, groups, full, rest, size - loads * stream.together)


def visit(stream: Streamed, variables: Sequence[Any], act: Callable[..., None]) -> None:
    """Trace a pass: `act(index, *values)` for each element, with a value of each array.

    `variables` are those of `stream.arguments`. Invocations reach `act` in different rounds: no barriers.
    """
    count = sum(len(source.annotations) for source in stream.sources)
    arrays, views = variables[:count], variables[count : -len(NUMBERS)]
    groups, full, rest, tail = variables[-len(NUMBERS) :]
    lane = vc.local_invocation_id().x
    mine = vc.workgroup_id().x
    group, unroll, together = stream.group, stream.unroll, stream.together
    split = _split(stream, arrays)
    split_views = _split_views(stream, views)

    def loads(places: Sequence[Any]) -> list[list[list[Any]]]:
        words = [
            [source.loaded(own, place) for source, own in zip(stream.sources, split_views, strict=True)]
            for place in places
        ]
        if together > 1:
            return words
        # what is loaded element by element: all loads before anything is done with them
        return [
            [
                [source.value(own, place)] if source.plain else []
                for source, own in zip(stream.sources, split, strict=True)
            ]
            for place in places
        ]

    def consume(place: Any, words: Sequence[list[Any]]) -> None:
        values = [
            word if together == 1 and source.plain else source.values(own, place, word)
            for source, own, word in zip(stream.sources, split, words, strict=True)
        ]
        for i in range(together):
            act(place * together + i if together > 1 else place, *(each[i] for each in values))

    chunks = full + vc.select(rest > 0, 1, 0) if unroll == 1 else full
    rounds = ((chunks + (groups - 1) - mine) // groups).to_register()
    with vc.for_block(0, rounds) as number:
        chunk = mine + number * groups
        places = [chunk * (group * unroll) + (lane + u * group) for u in range(unroll)]
        if unroll == 1:
            # the last chunk may not be full
            place = places[0].to_register()
            with vc.if_block(place < full * group + rest):
                consume(place, loads([place])[0])
        else:
            for place, words in zip(places, loads(places), strict=True):
                consume(place, words)
    if unroll > 1:
        with vc.if_block(mine == full % groups), vc.for_block(lane, rest, group) as offset:
            place = full * (group * unroll) + offset
            consume(place, loads([place])[0])
    if together > 1:
        with vc.if_block(vc.all(mine == 0, lane < tail)):
            index = (full * (group * unroll) + rest) * together + lane
            singles = [source.elementwise() for source in stream.sources]
            values = [single.value(own, index) for single, own in zip(singles, split, strict=True)]
            act(index, *values)


def _split(stream: Streamed, arrays: Sequence[Any]) -> list[Sequence[Any]]:
    parts, start = [], 0
    for source in stream.sources:
        parts.append(arrays[start : start + len(source.annotations)])
        start += len(source.annotations)
    return parts


def _split_views(stream: Streamed, views: Sequence[Any]) -> list[Sequence[Any]]:
    parts, start = [], 0
    for source in stream.sources:
        parts.append(views[start : start + len(source.views)])
        start += len(source.views)
    return parts
