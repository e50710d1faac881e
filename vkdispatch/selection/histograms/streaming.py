"""One pass over all elements of some arrays, in any order: the frame of kernels that count and sum.

    elements    |. . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . .|. . .|.|
    chunks      |    0    |    1    |    2    |    3    |    4    |    5    |   6    | rest | tail
    workgroup        0         1         2         0         1         2        0       1     0

A chunk is what a workgroup has in flight at once: `unroll` loads of up to 16 bytes for each invocation. Each
workgroup visits every n-th chunk. Loads that do not fill a chunk, and elements that do not fill a load, come
last. Every element is visited once.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.families.operands import Operand
from vkdispatch.families.sources import Source
from vkdispatch.families.tuning import device_facts
from vkdispatch.selection.tuning import choose_group, choose_loads, tuning


@record
class Stream:
    """Arrays of one size, as a kernel visits them.

    Attributes
    ----------
    sources
        The arrays.
    group, unroll
        Invocations of a workgroup, and the loads that each has in flight.
    """

    sources: tuple[Source, ...]
    group: int
    unroll: int

    @property
    def together(self) -> int:
        """Elements of each array that one load takes."""
        return self.sources[0].together

    @property
    def arguments(self) -> list[tuple[str, Any]]:
        """Names and annotations of the kernel's arguments: those of arrays, their views, the numbers."""
        arrays = [pair for each in self.sources for pair in each.parameters]
        views = [
            (f"{each.names[position]}_{view.name}", buffer[view])
            for each in self.sources
            for position, view in each.views
        ]
        return [*arrays, *views, *((name, constant[dtype.uint32]) for name in NUMBERS)]


NUMBERS = ("stream_groups", "stream_full", "stream_rest", "stream_tail")


def make_stream(*operands: Operand) -> Stream:
    """Return how a kernel visits arrays of one size. A load takes several elements if all arrays agree."""
    sources = [each.source for each in operands]
    if len({source.together for source in sources}) > 1:
        sources = [source.elementwise() for source in sources]
    together = sources[0].together
    unroll = choose_loads(
        on_gpu=tuning.stream_loads * (1 if together > 1 else 2),
        on_cpu=2 if together <= tuning.stream_few_cpu else 1,
    )
    return Stream(tuple(sources), choose_group(tuning.stream_group), unroll)


def stream_values(stream: Stream, operands: Sequence[Operand]) -> tuple[Any, ...]:
    """Return what a kernel is launched with for `stream.arguments`."""
    size = operands[0].size
    loads = size // stream.together
    chunk = stream.group * stream.unroll
    full, rest = divmod(loads, chunk)
    most = tuning.stream_groups_cpu if device_facts().is_cpu else tuning.stream_groups
    groups = max(1, min(full + (rest > 0), most))
    arrays = [argument for each in operands for argument in each.arguments]
    views = [
        each.arguments[position]
        for each, source in zip(operands, stream.sources, strict=True)
        for position, _ in source.views
    ]
    return (*arrays, *views, groups, full, rest, size - loads * stream.together)


def visit(stream: Stream, variables: Sequence[Any], act: Callable[..., None]) -> None:
    """Trace a pass: `act(index, *values)` for each element, with a value of each array.

    `variables` are those of `stream.arguments`. `act` must not have barriers: invocations reach it in
    different rounds.
    """
    count = sum(len(source.annotations) for source in stream.sources)
    arrays, views = variables[:count], variables[count : -len(NUMBERS)]
    groups, full, rest, tail = variables[-len(NUMBERS) :]
    lane = vc.local_invocation_id().x
    mine = vc.workgroup_id().x
    group, unroll, together = stream.group, stream.unroll, stream.together
    split = _split(arrays, [len(source.annotations) for source in stream.sources])
    split_views = _split(views, [len(source.views) for source in stream.sources])

    def loads(places: Sequence[Any]) -> list[list[list[Any]]]:
        words = [
            [source.load(own, place) for source, own in zip(stream.sources, split_views, strict=True)]
            for place in places
        ]
        if together > 1:
            return words
        # without vector loads: all loads come before the first use
        return [
            [
                [source.value(own, place)] if source.is_plain else []
                for source, own in zip(stream.sources, split, strict=True)
            ]
            for place in places
        ]

    def consume(place: Any, words: Sequence[list[Any]]) -> None:
        values = [
            word if together == 1 and source.is_plain else source.values(own, place, word)
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
            # the last chunk may be short
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


def _split(variables: Sequence[Any], counts: Sequence[int]) -> list[Sequence[Any]]:
    """Return consecutive parts of some variables."""
    ends = list(accumulate(counts, initial=0))
    return [variables[start:end] for start, end in pairwise(ends)]
