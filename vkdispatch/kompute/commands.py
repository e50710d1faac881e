"""The commands of a sequence: dispatches, copies and barriers, in order."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.process import read_switch
from vkdispatch.base.spirv.repeat import MAX_REPEATS
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.kompute.algorithm import NO_CONSTANTS, Algorithm, Dispatchable, check_algorithm
from vkdispatch.kompute.enums import KomputeError
from vkdispatch.kompute.memory import Image, Memory, Tensor

# ---- Merging of repeated dispatches ----------------------------------------------------------------------


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
        replacement: list[Step] = []
        if isinstance(step, Dispatch):
            while end < len(steps) and step.is_repeat_of(steps[end]):
                end += 1
            if end - position > 1:
                replacement = _merge_repeats(step, end - position)
        merged += replacement or steps[position:end]
        position = end
    return merged if len(merged) < len(steps) else None


def _merge_repeats(step: Dispatch, count: int) -> list[Step]:
    """Return the fewest dispatches that are equivalent to `count`, or an empty list if that is impossible."""
    rounds = [min(MAX_REPEATS, count - done) for done in range(0, count, MAX_REPEATS)]
    merged = {length: step.built.repeat(length) for length in set(rounds)}
    if None in merged.values():
        return []
    return [Dispatch(merged[length], step.constants) for length in rounds]  # type: ignore[arg-type]


# Repeated dispatches run before they are merged: the merged pipeline takes some 20 ms to build.
_WORTH_MERGING = 1000


class Commands:
    """A sequence's commands while they are recorded: the argument of an operation's `record`.

    Barriers are inserted where two commands need one. Effects are in the order of the calls.

    Attributes
    ----------
    graph
        The `vd.CommandGraph` with the commands.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.graph = CommandGraph(context=context)
        self._steps: list[Step] = []
        self._step_length = 0  # commands recorded by the steps; operations may add others to the graph
        # Algorithms whose push constants changed since the last operation, with their previous values.
        self._replaced_constants: list[tuple[Algorithm, Array]] = []
        # The number of dispatches that merging would save in each run; -1: not counted yet.
        self._repeats = -1
        self._missed_merges = 0  # the number that merging would have saved so far

    # -- for operations

    def dispatch(self, algorithm: Algorithm, push_consts: Any = NO_CONSTANTS) -> None:
        """Dispatch an algorithm. `push_consts`, if given, become its current ones.

        Raises
        ------
        TypeError, RuntimeError
            The algorithm is empty, its memory was destroyed, or the push constants do not match.
        """
        built = check_algorithm(algorithm)._require_built()
        if algorithm._context is not self._context:
            raise KomputeError("algorithm: it belongs to a Manager of another device or queues")
        constants = (
            algorithm._push if push_consts is NO_CONSTANTS else algorithm._parse_push_consts(push_consts)
        )
        for image in built.images:
            if image._is_host_mirrored:
                self._copy_image(image, to_image=True)
        self._add(Dispatch(built, constants))
        if constants is not algorithm._push:
            self._replaced_constants.append((algorithm, algorithm._push))
            algorithm._push = constants
        for image in built.stored_images:
            if image._is_host_mirrored:
                self._copy_image(image, to_image=False)

    def copy_to_device(self, memory: Memory) -> None:
        """Copy the host view of memory of type `device` to the device. No effect for other types."""
        self._copy_view(memory, to_device=True)

    def copy_to_host(self, memory: Memory) -> None:
        """Copy memory of type `device` to its host view. No effect for other types."""
        self._copy_view(memory, to_device=False)

    def copy(self, source: Memory, target: Memory) -> None:
        """Copy from one tensor or image to another, on the device.

        Raises
        ------
        RuntimeError
            Their types or numbers of elements differ.
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
            if isinstance(image, Image) and image._is_host_mirrored:
                self._copy_image(image, to_image=True)
        origin, destination, size = source._native, target._native, source._byte_size
        if not isinstance(source, Image) and not isinstance(target, Image):
            self._add(lambda graph: graph.record_copy(origin, destination, size))
        elif not isinstance(source, Image):
            self._add(lambda graph: graph.record_texel_copy(destination, origin, to_image=True))
        elif not isinstance(target, Image):
            self._add(lambda graph: graph.record_texel_copy(origin, destination, to_image=False))
        elif source._extent == target._extent and source._channels == target._channels:
            self._add(lambda graph: graph.record_image_copy(origin, destination))
        else:
            raise KomputeError(
                f"OpCopy: from {source._extent} texels of {source._channels} channels to {target._extent} of "
                f"{target._channels}"
            )
        if isinstance(target, Image) and target._is_host_mirrored:
            self._copy_image(target, to_image=False)

    def fill(self, tensor: Tensor, block: Any) -> None:
        """Copy host memory of the same size to a tensor."""
        self._check(tensor)
        buffer, size = tensor._native, tensor._byte_size
        self._add(lambda graph: graph.record_copy(block, buffer, size))

    def barrier(self) -> None:
        """Make all preceding commands finish, with visible effects, before any command that follows."""
        self._add(lambda graph: graph.record_barrier())

    def timestamp(self) -> None:
        """Record a timestamp when all preceding commands are done."""
        self._add(lambda graph: graph.record_timestamp())

    def _check(self, memory: Memory) -> None:
        memory._require()
        if memory._context is not self._context:
            raise KomputeError(f"{memory!r} belongs to a Manager of another device or queues")

    def _copy_view(self, memory: Memory, *, to_device: bool) -> None:
        self._check(memory)
        if not memory._is_staged:
            return
        if isinstance(memory, Image):
            self._copy_image(memory, to_image=to_device)
            return
        source_target = (memory._block, memory._native) if to_device else (memory._native, memory._block)
        size = memory._byte_size
        self._add(lambda graph: graph.record_copy(*source_target, size))

    def _copy_image(self, image: Image, to_image: bool) -> None:
        texels, block = image._native, image._block
        assert block is not None
        self._add(lambda graph: graph.record_texel_copy(texels, block, to_image=to_image))

    def _add(self, step: Step) -> None:
        before = self.graph.length
        try:
            step(self.graph)
        except (ValueError, TypeError) as error:
            raise KomputeError(str(error)) from error
        self._step_length += self.graph.length - before
        self._steps.append(step)

    # -- for sequences

    def mark(self) -> tuple[int, int, int, int]:
        """Return the present position of the recording, for `rewind`."""
        return (self.graph.length, len(self._steps), self._step_length, len(self._replaced_constants))

    def rewind(self, mark: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
        """Remove all commands recorded since `mark`, including those that operations added to the graph."""
        length, steps, self._step_length, constants = mark
        if self.graph.length > length:
            self.graph.truncate(length)
        del self._steps[steps:]
        while len(self._replaced_constants) > constants:
            algorithm, before = self._replaced_constants.pop()
            algorithm._push = before

    def keep_push_constants(self) -> None:
        """Keep the push constants set so far, even if later commands are removed."""
        if self._replaced_constants:
            self._replaced_constants = []

    def restart(self) -> None:
        """Remove all commands."""
        if self._steps or self.graph.length:
            self.graph.reset()
        self._steps = []
        self._step_length = 0
        self._replaced_constants = []
        self._repeats, self._missed_merges = -1, 0

    def evaluate(self, queue: int) -> None:
        """Run the commands on a queue, and wait."""
        if self._repeats:
            self._merge_if_worthwhile()
        try:
            self.graph.run(queue)
        except RuntimeError:
            self._require_open()
            raise

    def submit(self, queue: int) -> int:
        """Run the commands on a queue; return the number of the batch to wait for."""
        if self._repeats:
            self._merge_if_worthwhile()
        try:
            value = self.graph.start(queue)
            self._context._native.flush(queue, value)  # in this thread, without waking the submitter
        except RuntimeError:
            self._require_open()
            raise
        return value

    def _require_open(self) -> None:
        if self._context.closed:
            raise KomputeError("the context of this sequence was closed; make a new kp.Manager")

    def _merge_if_worthwhile(self) -> None:
        """Merge repeated dispatches once this pays off."""
        if self._repeats < 0:
            self._repeats = count_repeats(self._steps)
        self._missed_merges += self._repeats
        if self._missed_merges >= _WORTH_MERGING:
            self._repeats = 0
            merged = merge(self._steps) if self._step_length == self.graph.length else None
            if merged is not None:
                graph = CommandGraph(context=self._context)
                for step in merged:
                    step(graph)
                self.graph = graph
