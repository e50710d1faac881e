"""Workgroup sizes by measurement: each is timed on the device, on copies of what the kernel writes."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Protocol

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context, Handle
from vkdispatch.base.image import Image
from vkdispatch.base.process import show_wait
from vkdispatch.base.synchronization import Timing
from vkdispatch.codegen import ShaderDescription
from vkdispatch.execution_pipeline.command_graph import pause_recording
from vkdispatch.shader.arguments.parameters import Parameter
from vkdispatch.shader.arguments.slots import BufferSlot, ImageSlot
from vkdispatch.shader.launch.launcher import BuiltKernel
from vkdispatch.shader.launch.size import Extent

_SMALLEST = 32
_USUAL = 256
# The usual size is chosen if it takes at most this multiple of the fastest time.
_TIE = 1.02
_SECONDS = 0.5  # the target time of all measurements together
_FEWEST, _MOST = 3, 15


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
    context: Context,
    make_trial: Callable[[int], Trial],
    parameters: Sequence[Parameter],
    values: Sequence[Any],
) -> int:
    """Return the workgroup size whose launches take the least time in the median; 256 in a tie.

    Parameters
    ----------
    make_trial
        Makes the kernel of a workgroup size.
    parameters, values
        The arguments of a call, checked. What the kernel writes is copied first.
    """
    copies: dict[int, Handle] = {}
    try:
        with pause_recording(), show_wait(f"measuring {len(list_candidates(context))} workgroup sizes"):
            for parameter, value in zip(parameters, values, strict=True):
                if _is_written(parameter) and id(value) not in copies:
                    is_image = isinstance(value, Image)
                    copies[id(value)] = _copy_image(value) if is_image else _copy_buffer(value)
            arguments = [copies.get(id(value), value) for value in values]
            trials = {size: make_trial(size) for size in list_candidates(context)}
            # The first round compiles and touches memory. Its times tell how many rounds count.
            warm = _measure(context, trials, arguments, 1)
            once = sum(times[0] for times in warm.values())
            rounds = min(_MOST, max(_FEWEST, math.ceil(_SECONDS / max(once, 1e-9))))
            all_times = _measure(context, trials, arguments, rounds)
        found = {size: median(times) for size, times in all_times.items()}
    finally:
        for copy in copies.values():
            copy.destroy()
    best = min(found, key=lambda size: found[size])
    if _USUAL in found and found[_USUAL] <= _TIE * found[best]:
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


def _copy_buffer(buffer: Buffer[Any]) -> Buffer[Any]:
    copy = Buffer(buffer.size, buffer.var_type)
    copy.shader_shape = buffer.shader_shape
    data = bytearray(buffer.mem_size)
    for queue in range(buffer.context.queue_count):
        buffer._native.read_into(queue, data)
        copy._native.write(queue, data)
    return copy


def _copy_image(image: Image) -> Image:
    sizes = image.shape[1:] if image.layers > 1 else image.shape
    copy = Image(sizes, image.layers, image.dtype, image.channels, image.view_type, image.mip_levels > 1)
    for queue in range(image.context.queue_count):
        copy.write(image.read(queue), queue)
    return copy


# ---- memory


def _make_key(context: Context, description: ShaderDescription, extent: Extent) -> str:
    devices = [
        f"{info.uuid.hex() if info.uuid else ''} {info.device_name} {info.driver_version}"
        for info in context.device_infos
    ]
    code = hashlib.blake2b(description.make_source(1, 1, 1).encode(), digest_size=16).hexdigest()
    size_class = (math.prod(extent) - 1).bit_length()
    return "\n".join(("workgroup size 1", *devices, code, str(size_class)))


def store_size(context: Context, description: ShaderDescription, extent: Extent, size: int) -> None:
    """Store the best workgroup size for a launch on disk."""
    disk_cache.store("measured", _make_key(context, description, extent), str(size).encode())


def load_size(context: Context, description: ShaderDescription, extent: Extent) -> int | None:
    """Return the workgroup size that `store_size` stored for such a launch, or None."""
    stored = disk_cache.load("measured", _make_key(context, description, extent))
    # A damaged file gives None.
    return next((size for size in list_candidates(context) if str(size).encode() == stored), None)
