"""Merging of repeated dispatches."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from vkdispatch.base.process import read_switch
from vkdispatch.base.spirv.repeat import MOST
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.kompute.algorithms.building import Dispatchable

Array = np.ndarray[Any, Any]


class Dispatch:
    """A recorded dispatch with its push constants."""

    __slots__ = ("built", "constants")

    def __init__(self, built: Dispatchable, constants: Array) -> None:
        self.built = built
        self.constants = constants

    def __call__(self, graph: CommandGraph) -> None:
        """Record it."""
        self.built.record(graph, self.constants)

    def is_repeat_of(self, other: object) -> bool:
        """Whether another command is the same dispatch."""
        return (
            isinstance(other, Dispatch)
            and other.built is self.built
            and (other.constants is self.constants or other.constants.tobytes() == self.constants.tobytes())
        )


Step = Callable[[CommandGraph], None]


def count_repeats(steps: list[Step]) -> int:
    """Return the number of dispatches that merging would save, or 0 if it is switched off."""
    if len(steps) < 2 or not read_switch("VKDISPATCH_KOMPUTE_MERGE", True):
        return 0
    return sum(isinstance(step, Dispatch) and step.is_repeat_of(before) for before, step in pairwise(steps))


def merge(steps: list[Step]) -> list[Step] | None:
    """Return the commands with repeated dispatches merged, or None if there are none to merge."""
    merged: list[Step] = []
    position = 0
    while position < len(steps):
        step, end = steps[position], position + 1
        if isinstance(step, Dispatch):
            while end < len(steps) and step.is_repeat_of(steps[end]):
                end += 1
            if end - position > 1:
                replacement = _merge_repeats(step, end - position)
                if replacement:
                    merged += replacement
                    position = end
                    continue
        merged += steps[position:end]
        position = end
    return merged if len(merged) < len(steps) else None


def _merge_repeats(step: Dispatch, count: int) -> list[Step]:
    """Return the fewest dispatches that are equivalent to `count`, or an empty list if that is impossible."""
    rounds = [min(MOST, count - done) for done in range(0, count, MOST)]
    merged = {each: step.built.repeat(each) for each in set(rounds)}
    ready = [built for each in rounds if (built := merged[each]) is not None]
    return [Dispatch(built, step.constants) for built in ready] if len(ready) == len(rounds) else []
