"""From a call to a launch: the state of a kernel in a context, the fast path, measured sizes."""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from vkdispatch.base.buffer import renew_contents
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context, Handle
from vkdispatch.base.devices import identify_devices
from vkdispatch.base.errors import OutOfDeviceMemoryError, UsageError, VulkanError
from vkdispatch.base.image import Image
from vkdispatch.base.process import show_wait
from vkdispatch.base.record import field, record
from vkdispatch.base.synchronization import Timing
from vkdispatch.codegen.description import ShaderDescription, ShaderSource
from vkdispatch.compiler.forms import Variant
from vkdispatch.execution_pipeline.command_graph import CommandGraph, pause_recording
from vkdispatch.shader.building import BuiltKernel, Coarsening, GuardValues
from vkdispatch.shader.signature import BufferSlot, ImageSlot, Parameter, Slot
from vkdispatch.shader.size import Extent, LaunchSize, is_incomplete

if TYPE_CHECKING:
    from vkdispatch.execution_pipeline.diagnostics import Diagnostics

# ---- The fast path of a call: straight to the native launcher, which checks the arguments ----------------


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
        self.launch, *others = (built.launcher.launch for built in self._kernels)
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


# ---- The state of a kernel in a context: what was built there, and how calls reach it --------------------


@record(eq=False, frozen=False, slots=False)
class KernelState:
    """The state of a kernel in one context. The context holds it, so that kernels keep no context alive.

    Attributes
    ----------
    tuned
        The fastest workgroup size found by measurement, or None.
    is_searched
        Whether a measured size was looked up.
    built
        The compiled kernels, by workgroup size and variant.
    primary, show
        The compiled kernel, and what returns the source: the attributes `plan` and `source` of the kernel.
    fast_paths, fast
        The fast path for each option of the launch size, and that for the decorator's option.
    loop_guard
        What launches pass after the arguments, or None.
    """

    tuned: Extent | None = None
    is_searched: bool = False
    built: dict[tuple[Extent, Variant], BuiltKernel] = field(factory=dict)
    coarsening: Coarsening | None = None
    primary: BuiltKernel | None = None
    show: Callable[[], ShaderSource] | None = None
    fast: FastPath | None = None
    fast_paths: dict[str, FastPath] = field(factory=dict)
    diagnostics: Diagnostics | None = None
    loop_guard: GuardValues | None = None


# ---- Workgroup sizes by measurement ----------------------------------------------------------------------
#
# Each is timed on the device, on copies of what the kernel writes.


_SMALLEST = 32
_USUAL = 256
# The usual size is chosen if it takes at most this multiple of the fastest time.
_TIE = 1.02
_SECONDS = 0.5  # the target time of all measurements together
_MIN_ROUNDS, _MAX_ROUNDS = 3, 15


class Trial(Protocol):
    """A kernel with a certain workgroup size, and its compiled variants."""

    @property
    def _built(self) -> Mapping[Any, BuiltKernel]: ...

    def __call__(self, *args: Any) -> None:
        """Launch it."""


def list_candidates(context: Context) -> list[int]:
    """Return the powers of two from 32 to the most invocations that a workgroup may have along x."""
    most = context.max_invocations_along_x
    sizes = [1 << power for power in range(_SMALLEST.bit_length() - 1, most.bit_length())]
    return sizes or [most]


def find_fastest_size(
    context: Context, make: Callable[[int], Trial], parameters: Sequence[Parameter], values: Sequence[Any]
) -> int:
    """Return the workgroup size whose launches take the least time in the median; 256 in a tie.

    Parameters
    ----------
    make
        Makes the kernel of a workgroup size.
    parameters, values
        The arguments of a call, checked. What the kernel writes is copied first.
    """
    from statistics import median  # imported here: it takes time, and few programs need it

    copies: dict[int, Handle] = {}
    try:
        with pause_recording(), show_wait(f"measuring {len(list_candidates(context))} workgroup sizes"):
            for parameter, value in zip(parameters, values, strict=True):
                if _is_written(parameter) and id(value) not in copies:
                    copies[id(value)] = _copy_image(value) if isinstance(value, Image) else copy.copy(value)
            arguments = [copies.get(id(value), value) for value in values]
            trials = {size: make(size) for size in list_candidates(context)}
            # The first round compiles and touches memory. Its times tell how many rounds count.
            warm = _measure(context, trials, arguments, 1)
            once = sum(times[0] for times in warm.values())
            rounds = min(_MAX_ROUNDS, max(_MIN_ROUNDS, math.ceil(_SECONDS / max(once, 1e-9))))
            all_times = _measure(context, trials, arguments, rounds)
        medians = {size: median(times) for size, times in all_times.items()}
    finally:
        for duplicate in copies.values():
            duplicate.destroy()
    best = min(medians, key=lambda size: medians[size])
    if _USUAL in medians and medians[_USUAL] <= _TIE * medians[best]:
        return _USUAL
    return best


def _measure(
    context: Context, trials: dict[int, Trial], arguments: Sequence[Any], rounds: int
) -> dict[int, list[float]]:
    """Return the seconds of each launch of each trial. The trials take turns."""
    timing = Timing(context)
    try:
        for _ in range(rounds):
            for trial in trials.values():
                trial(*arguments)
        commands, _ = timing.finish()
    finally:
        timing.stop()
    plans = {
        kernel.plan._native.id: size for size, trial in trials.items() for kernel in trial._built.values()
    }
    times: dict[int, list[float]] = {size: [] for size in trials}
    for command in commands:
        if command.kind == 0 and command.plan in plans:
            times[plans[command.plan]].append(command.end - command.begin)
    return times


def _is_written(parameter: Parameter) -> bool:
    return any(isinstance(slot, (BufferSlot, ImageSlot)) and slot.writes for slot in parameter.slots)


def _copy_image(image: Image) -> Image:
    sizes = image.shape[1:] if image.layers > 1 else image.shape
    duplicate = Image(sizes, image.layers, image.dtype, image.channels, image.view_type, image.mip_levels > 1)
    for queue in range(image.context.queue_count):
        duplicate.write(image.read(queue), queue)
    return duplicate


# ---- memory


def _make_key(context: Context, description: ShaderDescription, extent: Extent) -> str:
    from hashlib import blake2b  # imported here: it takes time, and few programs need it

    code = blake2b(description.make_source(1, 1, 1).encode(), digest_size=16).hexdigest()
    size_class = (math.prod(extent) - 1).bit_length()
    return f"workgroup size 1\n{identify_devices(context.device_infos)}\n{code}\n{size_class}"


def store_size(context: Context, description: ShaderDescription, extent: Extent, size: int) -> None:
    """Store the best workgroup size for a launch on disk."""
    disk_cache.store("measured", _make_key(context, description, extent), str(size).encode())


def load_size(context: Context, description: ShaderDescription, extent: Extent) -> int | None:
    """Return the workgroup size that `store_size` stored for such a launch, or None."""
    stored = disk_cache.load("measured", _make_key(context, description, extent))
    # A damaged file gives None.
    return next((size for size in list_candidates(context) if str(size).encode() == stored), None)
