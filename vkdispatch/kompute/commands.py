"""What operations record into: dispatches, copies and barriers of a sequence, in order."""

import os
from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Any

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.spirv_repeat import MOST
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.kompute.algorithm import NO_CONSTANTS, Algorithm
from vkdispatch.kompute.building import Dispatchable
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory import Image, Memory

Array = np.ndarray[Any, Any]
# A command, and what tells that two of them in a row are the same dispatch (None: they are not).
Step = tuple[Callable[[CommandGraph], None], "Repetition | None"]

# Dispatches that are run one by one, though they could be one, before they are made one: the pipeline for
# that takes some 20 ms to be made.
_WORTH_MERGING = 1000


class Repetition:
    """A dispatch that does, a number of times in a row, what one dispatch of some workgroups would do."""

    __slots__ = ("built", "constants", "key")

    def __init__(self, built: Dispatchable, constants: Array) -> None:
        self.built = built
        self.constants = constants
        self.key: Hashable = (id(built), constants.tobytes())


class Commands:
    """A sequence's commands while they are recorded: the argument of an operation's `record`.

    Barriers stand wherever two commands need one; the order of the calls is the order of the effects.

    Attributes
    ----------
    graph
        The `vd.CommandGraph` that the commands go into.
    """

    __slots__ = ("_context", "_idle_repeats", "_memories", "_repeats", "_steps", "graph")

    def __init__(self, context: Context) -> None:
        self._context = context
        self.graph = CommandGraph(context=context)
        self._steps: list[Step] = []
        self._memories: dict[int, Memory] = {}
        # Dispatches that merging would save at each run; -1: not counted yet; 0 also for one who wants none.
        self._repeats = -1 if os.environ.get("VKDISPATCH_KOMPUTE_MERGE") != "0" else 0
        self._idle_repeats = 0  # that it would have saved so far

    # -- for operations

    def dispatch(self, algorithm: Algorithm, push_consts: Any = NO_CONSTANTS) -> None:
        """Dispatch an algorithm; `push_consts` become its current ones, none leave those that it has.

        Raises
        ------
        TypeError, RuntimeError
            The algorithm is empty or its memory is gone, or the push constants do not fit.
        """
        if not isinstance(algorithm, Algorithm):
            raise KomputeError(f"algorithm: expected one that a Manager made, got {algorithm!r}")
        built = algorithm._dispatched()
        if algorithm._context is not self._context:
            raise KomputeError("algorithm: it belongs to a Manager of another device or queues")
        constants = algorithm._push if push_consts is NO_CONSTANTS else algorithm._constants(push_consts)
        followers = [
            memory for memory in built.memories if isinstance(memory, Image) and memory._follows_host
        ]
        for image in followers:
            self._copy_image(image, to_image=True)
        self._add(
            lambda graph: built.record(graph, constants), None if followers else Repetition(built, constants)
        )
        algorithm._push = constants
        for image in followers:
            if image in built.stored_images:
                self._copy_image(image, to_image=False)
        self._note(*built.memories)

    def copy_to_device(self, memory: Memory) -> None:
        """Copy the host's view of memory of type `device` to the device; nothing for the other types."""
        self._check(memory)
        if not memory._is_staged:
            return
        if isinstance(memory, Image):
            self._copy_image(memory, to_image=True)
        else:
            block, buffer, size = memory._block, memory._native, memory._byte_size
            self._add(lambda graph: graph.record_copy(block, buffer, size))
        self._note(memory)

    def copy_to_host(self, memory: Memory) -> None:
        """Copy what the device has of memory of type `device` to the host's view; nothing for the others."""
        self._check(memory)
        if not memory._is_staged:
            return
        if isinstance(memory, Image):
            self._copy_image(memory, to_image=False)
        else:
            block, buffer, size = memory._block, memory._native, memory._byte_size
            self._add(lambda graph: graph.record_copy(buffer, block, size))
        self._note(memory)

    def copy(self, source: Memory, target: Memory) -> None:
        """Copy from one tensor or image to another, on the device.

        Raises
        ------
        RuntimeError
            They have other types or numbers of elements.
        """
        self._check(source)
        self._check(target)
        if source._data_type is not target._data_type:
            raise KomputeError(
                f"OpCopy: from elements of {source._data_type.name} to elements of {target._data_type.name}"
            )
        if source._size != target._size:
            raise KomputeError(f"OpCopy: from {source._size} elements to {target._size}")
        if source is target:
            return
        for image in (source, target):
            if isinstance(image, Image) and image._follows_host:
                self._copy_image(image, to_image=True)
        one, other, size = source._native, target._native, source._byte_size
        if not isinstance(source, Image) and not isinstance(target, Image):
            self._add(lambda graph: graph.record_copy(one, other, size))
        elif not isinstance(source, Image):
            self._add(lambda graph: graph.record_texel_copy(other, one, to_image=True))
        elif not isinstance(target, Image):
            self._add(lambda graph: graph.record_texel_copy(one, other, to_image=False))
        elif source._extent == target._extent and source._channels == target._channels:
            self._add(lambda graph: graph.record_image_copy(one, other))
        else:
            raise KomputeError(
                f"OpCopy: from {source._extent} texels of {source._channels} channels to {target._extent} of "
                f"{target._channels}"
            )
        if isinstance(target, Image) and target._follows_host:
            self._copy_image(target, to_image=False)
        self._note(source, target)

    def barrier(self) -> None:
        """Let all commands so far finish, and be seen, before any that follows."""
        self._add(lambda graph: graph.record_barrier())

    def timestamp(self) -> None:
        """Note the device's time when all commands so far are done."""
        self._add(lambda graph: graph.record_timestamp())

    def _check(self, memory: Memory) -> None:
        memory._require()
        if memory._context is not self._context:
            raise KomputeError(f"{memory!r} belongs to a Manager of another device or queues")

    def _copy_image(self, image: Image, to_image: bool) -> None:
        texels, block = image._native, image._block
        assert block is not None
        self._add(lambda graph: graph.record_texel_copy(texels, block, to_image=to_image))

    def _add(self, record: Callable[[CommandGraph], None], repetition: Repetition | None = None) -> None:
        try:
            record(self.graph)
        except (ValueError, TypeError) as error:
            raise KomputeError(str(error)) from error
        self._steps.append((record, repetition))

    def _note(self, *memories: Memory) -> None:
        for memory in memories:
            self._memories[id(memory)] = memory

    # -- for sequences

    @property
    def length(self) -> int:
        """How many commands there are."""
        return len(self._steps)

    def cut(self, length: int) -> None:
        """Take back all but the first `length` commands."""
        if len(self._steps) > length:
            del self._steps[length:]
            self.graph.reset()
            for record, _ in self._steps:
                record(self.graph)

    def evaluate(self, queue: int) -> None:
        """Run all of it on a queue, and wait."""
        self._prepare(queue)
        self.graph.run(queue)

    def submit(self, queue: int) -> int:
        """Run all of it on a queue; return the number of the batch to be waited for."""
        self._prepare(queue)
        self.graph.submit(None, queue)
        return self._context._native.last_value(queue)

    def _prepare(self, queue: int) -> None:
        if self._context.queue_count > 1:
            self._follow(queue)
        if self._repeats:
            self._consider_merging()

    def _follow(self, queue: int) -> None:
        """Have the queue wait, on the device, for what others were given that uses the same memory."""
        engine = self._context._native
        points = {
            (other, value)
            for memory in self._memories.values()
            for other, value in memory._uses.items()
            if other != queue
        }
        if points:
            engine.follow(sorted(points), queue)
        value = engine.last_value(queue) + 1
        for memory in self._memories.values():
            memory._uses[queue] = value

    def _consider_merging(self) -> None:
        """Once it is worth it, make one dispatch of those that repeat one another."""
        if self._repeats < 0:
            keys = [repetition.key if repetition is not None else None for _, repetition in self._steps]
            self._repeats = sum(key is not None and key == before for before, key in pairwise(keys))
        self._idle_repeats += self._repeats
        if self._idle_repeats >= _WORTH_MERGING:
            self._repeats = 0
            merged = merge(self._steps)
            if merged is not None:
                graph = CommandGraph(context=self._context)
                for record in merged:
                    record(graph)
                self.graph = graph


def merge(steps: list[Step]) -> list[Callable[[CommandGraph], None]] | None:
    """Return the commands with each run of one dispatch as one command; None where no run can be merged."""
    merged: list[Callable[[CommandGraph], None]] = []
    position = 0
    while position < len(steps):
        repetition = steps[position][1]
        end = position + 1
        if repetition is not None:
            while end < len(steps) and (other := steps[end][1]) is not None and other.key == repetition.key:
                end += 1
            if end - position > 1:
                together = _together(repetition, end - position)
                if together:
                    merged += together
                    position = end
                    continue
        merged += [each for each, _ in steps[position:end]]
        position = end
    return merged if len(merged) < len(steps) else None


def _together(repetition: Repetition, count: int) -> list[Callable[[CommandGraph], None]]:
    """Return as few dispatches as do what `count` do; none where that is not possible."""
    rounds = [min(MOST, count - done) for done in range(0, count, MOST)]
    made = {each: repetition.built.repeated(each) for each in set(rounds)}
    ready = [built for each in rounds if (built := made[each]) is not None]
    return [_recording(built, repetition.constants) for built in ready] if len(ready) == len(rounds) else []


def _recording(built: Dispatchable, constants: Array) -> Callable[[CommandGraph], None]:
    return lambda graph: built.record(graph, constants)
