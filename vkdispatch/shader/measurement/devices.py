"""Measurements of devices: their copy bandwidth, and the accuracy of their own functions."""

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.devices import DeviceInfo, identify_devices
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.abbreviations import Buff, f32, v4
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.timings import Recording
from vkdispatch.shader.decorator import shader
from vkdispatch.shader.shader_function import ShaderFunction

if TYPE_CHECKING:
    import numpy.typing as npt


# ---- The copy bandwidth of a device, by measurement. Profiles compare kernels with it --------------------


_GPU_BYTES = 256 << 20
_CPU_BYTES = 64 << 20
_MIN_BYTES = 16 << 20  # smaller copies would measure caches
_RUNS = 8
_BANDWIDTH_FORMAT = struct.Struct("<d")
_measured_bandwidth: dict[str, float] = {}


def measure_copy_bandwidth(context: Context, queue: int) -> float | None:
    """Return bytes per second, read and written together, that a copy kernel moves on a queue's device.

    It is measured once for each device and driver (256 MiB to 256 MiB; on CPUs 64; the fastest of eight
    runs), then stored in this process and on disk. None if there is no memory for a measurement.
    """
    info = context.device_infos[_find_device(context, queue)]
    key = f"copy bandwidth 1\n{identify_devices((info,))}"
    known = _measured_bandwidth.get(key)
    if known is None:
        stored = disk_cache.load("measured", key)
        if stored is not None and len(stored) == _BANDWIDTH_FORMAT.size:
            known = _BANDWIDTH_FORMAT.unpack(stored)[0]
    if known is None:
        known = _measure_bandwidth(context, queue, _CPU_BYTES if info.is_cpu() else _GPU_BYTES)
        if known is None:
            return None
        disk_cache.store("measured", key, _BANDWIDTH_FORMAT.pack(known))
    _measured_bandwidth[key] = known
    return known


def _find_device(context: Context, queue: int) -> int:
    for device, families in enumerate(context.queue_families):
        if queue < len(families):
            return device
        queue -= len(families)
    raise IndexError(queue)


def _measure_bandwidth(context: Context, queue: int, size: int) -> float | None:
    size = min(size, context.max_storage_buffer_range)
    while size >= _MIN_BYTES:
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

    @shader("target.size", check=False, rewrite=False)
    def fill_for_measurement(target: Buff[v4]) -> None:
        index = vc.global_invocation_id().x
        target[index] = vc.to_dtype(dtype.vec4, index)

    @shader("target.size", check=False, rewrite=False)
    def copy_for_measurement(target: Buff[v4], source: Buff[v4]) -> None:
        index = vc.global_invocation_id().x
        target[index] = source[index]

    fill_for_measurement.internal = copy_for_measurement.internal = True
    return fill_for_measurement, copy_for_measurement


# ---- The accuracy of a device's own mathematical functions, by measurement -------------------------------
#
# Vulkan requires little of it.


_COUNT = 8192  # arguments of each function
_PRECISION = 24
_MIN_EXPONENT = -126  # the exponent of the smallest normal number


@record
class Accuracy:
    """The largest errors of a function of float32, as a device computes it.

    Attributes
    ----------
    low, high
        The interval of its arguments. Beyond it, errors may be larger.
    ulp
        In units in the last place of the true result. 0.5 is a correctly rounded result.
    absolute
        The largest difference from the true result.
    """

    low: float
    high: float
    ulp: float
    absolute: float


@record
class _Function:
    """A function of one or two numbers: on GPU values, in NumPy with float64, and the range of arguments."""

    rule: Callable[..., Any]
    truth: Callable[..., Any]
    low: float = 0.001
    high: float = 10.0


def _make_function(
    name: str, twin: str = "", low: float = 0.001, high: float = 10.0, *, pair: bool = False
) -> _Function:
    """Return a function of the kernel language, and NumPy's of the same name or another one."""

    def rule(x: Any, y: Any) -> Any:
        return getattr(vc, name)(x, y) if pair else getattr(vc, name)(x)

    def truth(x: Any, y: Any) -> Any:
        import numpy as np

        function = getattr(np, twin or name)
        return function(x, y) if pair else function(x)

    return _Function(rule, truth, low, high)


_FUNCTIONS = {
    "sin": _make_function("sin", low=-3.1, high=3.1),
    "cos": _make_function("cos", low=-1.5, high=1.5),
    "tan": _make_function("tan", low=-1.5, high=1.5),
    "asin": _make_function("asin", "arcsin", -0.99, 0.99),
    "acos": _make_function("acos", "arccos", -0.99, 0.99),
    "atan": _make_function("atan", "arctan"),
    "atan2": _make_function("atan2", "arctan2", pair=True),
    "sinh": _make_function("sinh"),
    "cosh": _make_function("cosh"),
    "tanh": _make_function("tanh"),
    "asinh": _make_function("asinh", "arcsinh"),
    "acosh": _make_function("acosh", "arccosh", 1.1),
    "atanh": _make_function("atanh", "arctanh", 0.001, 0.99),
    "exp": _make_function("exp"),
    "exp2": _make_function("exp2"),
    "log": _make_function("log"),
    "log2": _make_function("log2"),
    "pow": _make_function("pow", "float_power", pair=True),
    "sqrt": _make_function("sqrt"),
    "inversesqrt": _Function(lambda x, y: vc.inversesqrt(x), lambda x, y: x**-0.5),
    "division": _Function(lambda x, y: x / y, lambda x, y: x / y),
}
_FORMAT = struct.Struct(f"<{2 * len(_FUNCTIONS)}d")
_measured: dict[str, dict[str, Accuracy]] = {}


def measure_accuracy(context: Context | None = None, *, device: int = 0) -> dict[str, Accuracy]:
    """Return the accuracy of a device's own functions of float32: those of kernels without `precise_math`.

    It is measured once for each device and driver, in a few milliseconds, then stored in this process and on
    disk.

    Parameters
    ----------
    context
        None: the current one.
    device
        The index of the device in `context.device_infos`.

    Returns
    -------
    dict
        An `Accuracy` for each of "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh",
        "tanh", "asinh", "acosh", "atanh", "exp", "exp2", "log", "log2", "pow", "sqrt", "inversesqrt" and
        "division".

    Raises
    ------
    ValueError
        The context has no such device.
    RuntimeError
        The backend runs nothing.

    Examples
    --------
    >>> accuracy = vd.measure_accuracy()
    >>> sorted(accuracy)[:3]
    ['acos', 'acosh', 'asin']
    """
    context = get_context() if context is None else context
    count = len(context.device_infos)
    if isinstance(device, bool) or device not in range(count):
        raise ArgumentValueError(f"device: expected a number from 0 to {count - 1}, got {device!r}")
    known = load_accuracy(context.device_infos[device])
    if known is None:
        known = _measure(context, sum(map(len, context.queue_families[:device])))
        numbers = [number for accuracy in known.values() for number in (accuracy.ulp, accuracy.absolute)]
        key = _make_key(context.device_infos[device])
        disk_cache.store("measured", key, _FORMAT.pack(*numbers))
        _measured[key] = known
    return dict(known)


def load_accuracy(info: DeviceInfo) -> dict[str, Accuracy] | None:
    """Return the accuracy measured on a device, in this process or before, or None."""
    key = _make_key(info)
    known = _measured.get(key)
    if known is None:
        stored = disk_cache.load("measured", key)
        if stored is None or len(stored) != _FORMAT.size:
            return None
        numbers = iter(_FORMAT.unpack(stored))
        known = {
            name: Accuracy(function.low, function.high, next(numbers), next(numbers))
            for name, function in _FUNCTIONS.items()
        }
        _measured[key] = known
    return known


def _make_key(info: DeviceInfo) -> str:
    return f"accuracy 1\n{identify_devices((info,))}"


def _measure(context: Context, queue: int) -> dict[str, Accuracy]:
    import numpy as np

    draw = np.random.default_rng(0)
    sides = np.array(
        [draw.uniform(rule.low, rule.high, (2, _COUNT)) for rule in _FUNCTIONS.values()], np.float32
    )
    # All first arguments, one row after another, and all second ones.
    first, second = (asbuffer(np.ascontiguousarray(sides[:, i]), context=context) for i in range(2))
    results = asbuffer(np.zeros(sides[:, 0].shape, np.float32), context=context)
    graph = CommandGraph(context=context)
    try:
        _make_kernel()(results, first, second, graph=graph)
        graph.submit(1, queue)
        values = results.read(queue)
    finally:
        for thing in (graph, first, second, results):
            thing.destroy()
    return {
        name: Accuracy(rule.low, rule.high, *_find_errors(row, rule.truth(*pair.astype(np.float64))))
        for (name, rule), row, pair in zip(_FUNCTIONS.items(), values, sides, strict=True)
    }


def _find_errors(values: "npt.NDArray[Any]", true: "npt.NDArray[Any]") -> tuple[float, float]:
    """Return the largest error in units in the last place, and the largest difference."""
    import numpy as np

    differences = np.abs(values.astype(np.float64) - true)
    _, exponents = np.frexp(true)
    units = np.ldexp(1.0, np.maximum(exponents, _MIN_EXPONENT + 1) - _PRECISION)
    # max() propagates NaN, which counts as an infinite error.
    both = (differences / units).max(), differences.max()
    return tuple(float("inf") if number != number else float(number) for number in both)  # type: ignore[return-value]


@functools.cache
def _make_kernel() -> ShaderFunction:
    """Return the kernel that computes all functions. It is traced on first use."""

    @shader(_COUNT, check=False, rewrite=False)
    def measure_functions(results: Buff[f32], first: Buff[f32], second: Buff[f32]) -> None:
        index = vc.global_invocation_id().x
        for number, function in enumerate(_FUNCTIONS.values()):
            place = index + number * _COUNT
            results[place] = function.rule(first[place].to_register(), second[place].to_register())

    measure_functions.internal = True
    return measure_functions
