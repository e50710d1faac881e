"""The fast path of a call: straight to the native launcher, which checks the arguments."""

import bisect
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from vkdispatch.base.buffer import renew_contents
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.errors import OutOfDeviceMemoryError, UsageError, VulkanError
from vkdispatch.compiler.ir.statements import Variant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.shader.arguments.slots import BufferSlot, ImageSlot, Slot
from vkdispatch.shader.launch.launcher import BuiltKernel
from vkdispatch.shader.launch.size import Extent, LaunchSize, is_incomplete


class FastPath:
    """Launches calls without checking their arguments in Python: the native launchers check them.

    There is one launcher for each variant that was built. A launcher refuses what is not for its variant.

    Attributes
    ----------
    launch
        The launcher that is tried first.
    constants
        What launches pass after the arguments.
    """

    __slots__ = (
        "__weakref__",
        "_count",
        "_in_groups",
        "_kernels",
        "_others",
        "_ranks",
        "_resources",
        "constants",
        "launch",
    )

    def __init__(self, slots: Sequence[Slot], in_groups: bool, constants: tuple[Any, ...] = ()) -> None:
        """Prepare for launchers with these slots, the last of which get the `constants`."""
        self._count = len(slots)
        self.constants = constants
        self._ranks: list[int] = []
        self._kernels: tuple[BuiltKernel, ...] = ()
        self.launch: Callable[[tuple[Any, ...], Any, bool, int], bool] = _refuse
        self._others: tuple[Callable[[tuple[Any, ...], Any, bool, int], bool], ...] = ()
        self._in_groups = in_groups
        self._resources = _make_picker(
            [index for index, slot in enumerate(slots) if isinstance(slot, (BufferSlot, ImageSlot))]
        )

    def add(self, kernel: BuiltKernel, variant: Variant) -> None:
        """Add a variant. Variants for large buffers accept small ones too, so they are tried last."""
        rank = variant.addressed + variant.wide
        place = bisect.bisect(self._ranks, rank)
        self._ranks.insert(place, rank)
        self._kernels = (*self._kernels[:place], kernel, *self._kernels[place:])
        self.launch, *others = (each.launcher.launch for each in self._kernels)
        self._others = tuple(others)

    def run(self, values: tuple[Any, ...], size: LaunchSize, graph: object, queue: int = ALL_QUEUES) -> bool:
        """Launch, or record into a graph. Return False if all launchers refused; nothing happened then.

        Raises
        ------
        VulkanError
            The launch failed and the context is still usable.
        """
        limit: Any = size.fixed
        if limit is None:
            try:
                limit = size.compute(*values)  # type: ignore[misc]
            except Exception:
                # the checking path reports which argument is at fault
                return False
        if self.constants:
            values += self.constants
        try:
            if graph is None:
                if self.launch(values, limit, self._in_groups, queue):
                    return True
                return any(launch(values, limit, self._in_groups, queue) for launch in self._others)
            if queue != ALL_QUEUES or not isinstance(graph, CommandGraph) or graph.destroyed:
                return False
            if len(values) != self._count:
                return False
            resources = self._resources(values)
            for kernel in self._kernels:
                if graph._append_dispatch(kernel, values, limit, self._in_groups, resources):
                    return True
            return False
        except (VulkanError, UsageError, OutOfDeviceMemoryError):
            # The checking path says what happened to the context, and writes constants that a failure took.
            if sum(map(renew_contents, self.constants)):
                return False
            if self._kernels[0].plan.context.usable:
                raise
            return False


class TiledFastPath(FastPath):
    """Refuses the first launch that leaves a workgroup incomplete: the checking path warns of it."""

    __slots__ = ("_group", "_has_refused")

    def __init__(
        self, slots: Sequence[Slot], in_groups: bool, constants: tuple[Any, ...], group: Extent
    ) -> None:
        """Prepare for workgroups of the size `group`."""
        super().__init__(slots, in_groups, constants)
        self._group = group
        self._has_refused = False

    def run(self, values: tuple[Any, ...], size: LaunchSize, graph: object, queue: int = ALL_QUEUES) -> bool:
        """Launch, or record into a graph; see `FastPath.run`."""
        if not self._has_refused:
            try:
                extent = size.extent(values)
            except Exception:
                return False
            if is_incomplete(extent, self._group):
                self._has_refused = True
                return False
        return super().run(values, size, graph, queue)


def _refuse(*_: object) -> bool:
    """Refuse every call, as there is no launcher yet."""
    return False


def _make_picker(positions: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that selects values as a tuple, which `itemgetter` returns for two or more only."""
    if len(positions) > 1:
        return itemgetter(*positions)
    start = positions[0] if positions else 0
    return itemgetter(slice(start, start + len(positions)))
