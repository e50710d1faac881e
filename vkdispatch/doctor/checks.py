"""Kernels whose results are known: whether a device computes right, and how fast it is."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as types
from vkdispatch.base.buffer import Buffer, asbuffer
from vkdispatch.base.context import Context, queue_wait_idle
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32
from vkdispatch.shader.decorator import shader
from vkdispatch.shader.measurement.devices import measure_copy_bandwidth

_COUNT = 10_000
_GROUP = 64
_BINS = 16
_CALLS = 100
_BYTES = 64 << 20  # of the copies from and to the host
_MIN_BYTES = 1 << 20
_COPIES = 4
_TOLERANCE = 1e-4  # of float32 results that are sums of many products
_DOUBLE_TOLERANCE = 1e-12  # what float32 would compute is wrong

Pair = tuple[Any, Any]
"""What the device computed, and what is right."""


def time_kernel() -> dict[str, float]:
    """Return the seconds of a kernel's first call, with all that is compiled for it, and of a later call."""

    @shader("data.size", check=False)
    def first_kernel(data: Buff[f32], scale: Const[f32]) -> None:
        i = vc.global_invocation_id().x
        data[i] = data[i] * scale + 1

    data = asbuffer(np.zeros(_COUNT, np.float32))
    queue_wait_idle()
    begin = time.perf_counter()
    first_kernel(data, 2)
    queue_wait_idle()
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(_CALLS):
        first_kernel(data, 0.5)
    queue_wait_idle()
    return {"first_call": first, "later_call": (time.perf_counter() - begin) / _CALLS}


def names_of(info: DeviceInfo) -> list[str]:
    """Return the names of the checks that a device can run."""
    return [name for name in _CHECKS if name != "float64" or info.float_64_support]


def find_fault(name: str) -> str | None:
    """Run a check. Return what is wrong with its results, or the error that it raised, or None."""
    try:
        got, right = _CHECKS[name]()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return compare(np.asarray(got), np.asarray(right))


def compare(got: "np.ndarray[Any, Any]", right: "np.ndarray[Any, Any]") -> str | None:
    """Return the first difference of two arrays, or None. Integers must be equal, floats nearly so."""
    if got.shape != right.shape:
        return f"the result has shape {got.shape}, expected {right.shape}"
    if got.dtype.kind in "fc":
        # a NaN is no right result of any check
        tolerance = _DOUBLE_TOLERANCE if got.dtype == np.float64 else _TOLERANCE
        wrong = ~(np.abs(got - right) <= tolerance * max(1.0, float(np.abs(right).max())))
    else:
        wrong = got != right
    if not wrong.any():
        return None
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {got.size} elements are wrong; the first, at {list(place)}, is {got[place]}, "
        f"expected {right[place]}"
    )


def measure_bandwidth(context: Context) -> dict[str, float | None]:
    """Return bytes per second: of a copy on the device (read and written together), uploads and downloads.

    None if there is no memory for the measurement.
    """
    rates: dict[str, float | None] = {"copy": measure_copy_bandwidth(context, 0)}
    size = _BYTES
    while size >= _MIN_BYTES:
        try:
            return rates | _measure_host_copies(size)
        except MemoryError:
            size //= 2
    return rates | {"upload": None, "download": None}


def _measure_host_copies(size: int) -> dict[str, float | None]:
    host = np.ones(size, np.uint8)
    buffer = Buffer((size // 4,), types.uint32)
    times: dict[str, list[float]] = {"upload": [], "download": []}
    try:
        for _ in range(_COPIES):  # the first of each touches memory that is new
            begin = time.perf_counter()
            buffer.write(host.view(np.uint32))
            queue_wait_idle()
            middle = time.perf_counter()
            buffer.read(0, out=host.view(np.uint32))
            times["upload"].append(middle - begin)
            times["download"].append(time.perf_counter() - middle)
    finally:
        buffer.destroy()
    return {name: size / min(seconds) for name, seconds in times.items()}


# -- the checks


def _check_floats() -> Pair:
    @shader("y.size", check=False)
    def check_floats(y: Buff[f32], x: Buff[f32], a: Const[f32]) -> None:
        i = vc.global_invocation_id().x
        y[i] = a * x[i] + vc.sqrt(y[i])

    x, y = (np.linspace(low, 3, _COUNT, dtype=np.float32) for low in (-2, 1))
    result = asbuffer(y)
    check_floats(result, asbuffer(x), 2.5)
    return result.read(0), np.float32(2.5) * x + np.sqrt(y)


def _check_elements(kind: types.DType, x: "np.ndarray[Any, Any]", rule: Callable[[Any], Any]) -> Pair:
    """Check a function of each element, which NumPy computes as well."""

    @shader("x.size", arg_type_annotations=[vc.Buffer[kind]], arg_names=["x"], check=False)  # type: ignore[valid-type]
    def check_elements(x: Any) -> None:
        i = vc.global_invocation_id().x
        x[i] = rule(x[i])

    result = asbuffer(x)
    check_elements(result)
    return result.read(0), rule(x)


def _check_integers() -> Pair:
    x = np.arange(_COUNT, dtype=np.uint32) * np.uint32(429_493)
    return _check_elements(types.uint32, x, lambda x: (x * 1664525 + 1013904223) ^ (x >> 7))


def _check_loops() -> Pair:
    @shader("steps.size", check=False)
    def check_loops(steps: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        n = vc.new_register(types.int32, vc.to_dtype(types.int32, i + 1))
        count = vc.new_register(types.int32, 0)
        with vc.while_block(n != 1):
            with vc.if_block(n % 2 == 0):
                n[:] = n // 2
            with vc.else_block():
                n[:] = 3 * n + 1
            count += 1
        steps[i] = count

    result = asbuffer(np.zeros(1000, np.int32))
    check_loops(result)
    right = []
    for n in range(1, 1001):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        right.append(count)
    return result.read(0), np.array(right, np.int32)


def _check_shared_memory() -> Pair:
    @shader("x.size", local_size=_GROUP, check=False)
    def check_shared_memory(x: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        lane = vc.local_invocation_id().x
        shared = vc.shared_buffer(types.int32, _GROUP)
        shared[lane] = x[i]
        vc.barrier()
        x[i] = shared[_GROUP - 1 - lane]

    x = np.arange(100 * _GROUP, dtype=np.int32)
    result = asbuffer(x)
    check_shared_memory(result)
    return result.read(0), x.reshape(-1, _GROUP)[:, ::-1].reshape(-1)


def _check_atomics() -> Pair:
    @shader("x.size", check=False)
    def check_atomics(counts: Buff[i32], x: Buff[i32]) -> None:
        vc.atomic_add(counts[x[vc.global_invocation_id().x]], 1)

    x = (np.arange(_COUNT, dtype=np.int32) ** 2) % _BINS
    counts = asbuffer(np.zeros(_BINS, np.int32))
    check_atomics(counts, asbuffer(x))
    return counts.read(0), np.bincount(x, minlength=_BINS).astype(np.int32)


def _check_float_atomics() -> Pair:
    @shader("x.size", local_size=_GROUP, check=False)
    def check_float_atomics(sums: Buff[f32], most: Buff[f32], locked: Buff[f32], x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        lane = vc.local_invocation_id().x
        shared = vc.shared_buffer(types.float32, _BINS)
        with vc.if_block(lane < _BINS):
            shared[lane] = 0
        vc.barrier()
        vc.atomic_add(sums[i % 3], x[i])
        vc.atomic_max(most[i % 3], x[i])
        vc.atomic_add(shared[i % _BINS], x[i])
        vc.barrier()
        with vc.if_block(lane < _BINS):
            vc.atomic_sub(sums[3 + lane], shared[lane])
        seen = locked[0].to_register()
        with vc.while_block(seen < x[i]):
            before = vc.atomic_compare_exchange(locked[0], seen, x[i])
            with vc.if_block(before == seen):
                vc.break_statement()
            seen[:] = before

    # sums of few whole numbers, exact in any order
    size = 40 * _GROUP
    x = (np.arange(size) * 7 % 64).astype(np.float32)
    place = np.arange(size)
    sums, most, locked = (asbuffer(np.zeros(count, np.float32)) for count in (3 + _BINS, 3, 1))
    check_float_atomics(sums, most, locked, asbuffer(x))
    right = [*np.bincount(place % 3, x), *-np.bincount(place % _BINS, x), *[63.0] * 4]
    got = np.concatenate([sums.read(0), most.read(0), locked.read(0)])
    # as integers: each lost addition counts
    return got.astype(np.int64), np.array(right, np.int64)


def _check_doubles() -> Pair:
    return _check_elements(types.float64, np.linspace(0, 1, _COUNT), lambda x: x * x + 1e-9)


def _check_long_integers() -> Pair:
    x = np.arange(_COUNT, dtype=np.int64) * 12_345_678_901
    return _check_elements(types.int64, x, lambda x: x * 3 - (x >> 5))


def _check_halves() -> Pair:
    return _check_elements(types.float16, np.arange(1000, dtype=np.float16), lambda x: x * 2)


def _check_sums() -> Pair:
    from vkdispatch.reduce.functions import sum as device_sum

    x = np.arange(_COUNT, dtype=np.int32).reshape(100, -1)
    return device_sum(asbuffer(x), 1).read(0), x.sum(1)


def _check_sorts() -> Pair:
    from vkdispatch.sorting.functions import sort

    x = (np.arange(_COUNT, dtype=np.uint32) * np.uint32(2654435761)).astype(np.uint32)
    return sort(asbuffer(x)).read(0), np.sort(x)


def _check_products() -> Pair:
    from vkdispatch.matrices.product import matmul

    a, b = (np.sin(np.arange(96 * 96, dtype=np.float32) * step).reshape(96, 96) for step in (0.3, 0.7))
    return matmul(asbuffer(a), asbuffer(b)).read(0), a @ b


def _check_transforms() -> Pair:
    from vkdispatch.fft import fft

    x = np.exp(1j * np.arange(1024) ** 2 / 100).astype(np.complex64)
    result = asbuffer(x)
    fft(result)
    return result.read(0), np.fft.fft(x)


_CHECKS: dict[str, Callable[[], Pair]] = {
    "float32": _check_floats,
    "integers": _check_integers,
    "loops": _check_loops,
    "shared memory": _check_shared_memory,
    "atomics": _check_atomics,
    "atomics of floats": _check_float_atomics,
    "int64": _check_long_integers,
    "float16": _check_halves,
    "float64": _check_doubles,
    "sum": _check_sums,
    "sort": _check_sorts,
    "matmul": _check_products,
    "fft": _check_transforms,
}
