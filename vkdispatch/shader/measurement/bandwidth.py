"""The copy bandwidth of a device, by measurement. Profiles compare kernels with it."""

import functools
import struct
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.timings import Recording
from vkdispatch.shader.decorator import shader
from vkdispatch.shader.shader_function import ShaderFunction

_GPU_BYTES = 256 << 20
_CPU_BYTES = 64 << 20
_LEAST_BYTES = 16 << 20  # smaller copies would measure caches
_RUNS = 8
_FORMAT = struct.Struct("<d")
_measured: dict[str, float] = {}


def measure_copy_bandwidth(context: Context, queue: int) -> float | None:
    """Return bytes per second, read and written together, that a copy kernel moves on a queue's device.

    It is measured once for each device and driver (256 MiB to 256 MiB; on CPUs 64; the fastest of eight
    runs), then stored in this process and on disk. None if there is no memory for a measurement.
    """
    info = context.device_infos[_find_device(context, queue)]
    uuid = info.uuid.hex() if info.uuid else ""
    key = f"copy bandwidth 1\n{uuid}\n{info.device_name}\n{info.driver_version}"
    known = _measured.get(key)
    if known is None:
        stored = disk_cache.load("measured", key)
        if stored is not None and len(stored) == _FORMAT.size:
            known = _FORMAT.unpack(stored)[0]
    if known is None:
        known = _measure(context, queue, _CPU_BYTES if info.is_cpu() else _GPU_BYTES)
        if known is None:
            return None
        disk_cache.store("measured", key, _FORMAT.pack(known))
    _measured[key] = known
    return known


def _find_device(context: Context, queue: int) -> int:
    for device, families in enumerate(context.queue_families):
        if queue < len(families):
            return device
        queue -= len(families)
    raise IndexError(queue)


def _measure(context: Context, queue: int, size: int) -> float | None:
    size = min(size, context.max_storage_buffer_range)
    while size >= _LEAST_BYTES:
        try:
            return 2 * size / _time_fastest_copy(context, queue, size // 16)
        except MemoryError:
            size //= 2
    return None


def _time_fastest_copy(context: Context, queue: int, count: int) -> float:
    """Return the time of a copy of `count` elements of 16 bytes, in seconds."""
    fill, copy = _make_kernels()
    source, target = Buffer(count, dtype.vec4), Buffer(count, dtype.vec4)
    warm, timed = CommandGraph(), CommandGraph()
    try:
        # Memory that was never written may not be allocated yet, or share one page of zeros.
        fill(source, graph=warm)
        fill(target, graph=warm)
        copy(target, source, graph=warm)
        copy(target, source, graph=timed)
        warm.submit(1, queue)
        recording = Recording(context)
        try:
            timed.submit(_RUNS, queue)
            records, _ = recording.finish(internal=True)
        finally:
            recording.stop()
        name = copy.name
        return min(record.duration for record in records if record.name == name)
    finally:
        for thing in (warm, timed, source, target):
            thing.destroy()


@functools.cache
def _make_kernels() -> tuple[ShaderFunction, ShaderFunction]:
    """Return the kernels that fill and copy. They are traced on first use."""

    def fill_for_measurement(target: Any) -> None:
        index = vc.global_invocation_id().x
        target[index] = vc.to_dtype(dtype.vec4, index)

    def copy_for_measurement(target: Any, source: Any) -> None:
        index = vc.global_invocation_id().x
        target[index] = source[index]

    kernels = []
    for function in (fill_for_measurement, copy_for_measurement):
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        kernel = shader(
            "target.size",
            arg_type_annotations=[vc.Buff[dtype.vec4]] * len(names),
            arg_names=names,
            check=False,
            rewrite=False,
        )(function)
        kernel.internal = True
        kernels.append(kernel)
    return kernels[0], kernels[1]
