"""Kompute's Python module, kp. Without a compiler of its own it gets the SPIR-V of `benchmarks.floor build`.

A sequence waits for the device when it is evaluated, and does not queue behind another: there are no eager
calls to time. It puts no barrier between its dispatches; a device that runs them in turn gets them right.
"""

from collections.abc import Callable
from typing import Any

import kp
import numpy as np

from benchmarks.floor import BUILD
from benchmarks.timing import Sizes, SkipCase, Trial, pattern, time_bytes, time_each, time_recording

ELEMENTS = 64
# One Vulkan object or more for each recorded operation, and Python objects: enough to see the trend.
LONGEST_GRAPH = 10_000

# Their names in 0.9.0 and after it.
SyncDevice = getattr(kp, "OpTensorSyncDevice", None) or kp.OpSyncDevice
SyncLocal = getattr(kp, "OpTensorSyncLocal", None) or kp.OpSyncLocal

manager = kp.Manager()


def describe() -> dict[str, Any]:
    device = manager.get_device_properties()["device_name"]
    # a build with plain CMake calls itself "dev"
    return {"version": kp.__version__, "device": device}


def spirv(name: str) -> bytes:
    path = BUILD / f"{name}.spv"
    if not path.exists():
        raise SkipCase("kp has no compiler: run `python -m benchmarks.floor build` for the SPIR-V")
    return path.read_bytes()


def algorithm(
    kernel: str, tensors: list[Any], factor: float, count: int, invocations: int, group: int
) -> Any:
    groups = (invocations + group - 1) // group
    numbers = np.array([np.float32(factor).view(np.uint32), count], np.uint32)
    return manager.algorithm(tensors, spirv(kernel), (groups, 1, 1), np.array([group], np.uint32), numbers)


class Tiny:
    """A small tensor on the device and the kernel that adds one to it."""

    def __init__(self) -> None:
        self.tensor = manager.tensor(np.zeros(ELEMENTS, np.float32))
        self.kernel = algorithm("tiny", [self.tensor], 1.0, ELEMENTS, ELEMENTS, ELEMENTS)
        manager.sequence().record(SyncDevice([self.tensor])).eval()

    def holds(self, count: int) -> bool:
        manager.sequence().record(SyncLocal([self.tensor])).eval()
        return bool((self.tensor.data() == np.float32(count)).all())


def launch_wait(sizes: Sizes) -> Trial:
    tiny = Tiny()
    sequence = manager.sequence().record(kp.OpAlgoDispatch(tiny.kernel))
    return time_each(lambda: sequence.eval(), tiny.holds, sizes)


def launch_read(sizes: Sizes) -> Trial:
    tiny = Tiny()
    sequence = manager.sequence()
    sequence.record(kp.OpAlgoDispatch(tiny.kernel)).record(SyncLocal([tiny.tensor]))

    def work() -> None:
        sequence.eval()
        tiny.tensor.data().copy()

    return time_each(work, tiny.holds, sizes)


def graph_dependent(sizes: Sizes) -> Trial:
    length = int(sizes["length"])
    if length > LONGEST_GRAPH:
        raise SkipCase("recording and freeing so many operations takes minutes")
    tiny = Tiny()

    def make() -> tuple[Callable[[], None], Callable[[], None]]:
        sequence = manager.sequence()
        operation = kp.OpAlgoDispatch(tiny.kernel)

        def record() -> None:
            for _ in range(length):
                sequence.record(operation)

        return record, sequence.eval

    return time_recording(make, lambda: None, lambda ran: tiny.holds(ran * length), sizes)


def upload(sizes: Sizes) -> Trial:
    array = pattern(int(sizes["bytes"]) // 4)
    tensor = manager.tensor(np.zeros_like(array))
    sequence = manager.sequence().record(SyncDevice([tensor]))

    def work() -> None:
        tensor.data()[:] = array
        sequence.eval()

    def right(_: int) -> bool:
        tensor.data()[:] = 0
        manager.sequence().record(SyncLocal([tensor])).eval()
        return np.array_equal(tensor.data(), array)

    return time_bytes(work, lambda: None, array.nbytes, right, sizes)


def download(sizes: Sizes) -> Trial:
    array = pattern(int(sizes["bytes"]) // 4)
    tensor = manager.tensor(array)
    manager.sequence().record(SyncDevice([tensor])).eval()
    sequence = manager.sequence().record(SyncLocal([tensor]))

    def work() -> Any:
        sequence.eval()
        return tensor.data().copy()

    return time_bytes(work, lambda: None, array.nbytes, lambda _: np.array_equal(work(), array), sizes)


def saxpy(sizes: Sizes) -> Trial:
    host = pattern(int(sizes["elements"]))
    y, x = manager.tensor(np.zeros_like(host)), manager.tensor(host)
    kernel = algorithm("saxpy", [y, x], 0.5, host.size, host.size, 256)
    manager.sequence().record(SyncDevice([y, x])).eval()
    sequence = manager.sequence().record(kp.OpAlgoDispatch(kernel))

    def right(ran: int) -> bool:
        manager.sequence().record(SyncLocal([y])).eval()
        return np.array_equal(y.data(), host * np.float32(0.5 * ran))

    return time_bytes(lambda: sequence.eval(), lambda: None, 3 * host.nbytes, right, sizes)


def create_buffer(sizes: Sizes) -> Trial:
    zeros = np.zeros(256, np.float32)

    def work() -> None:
        manager.tensor(zeros)

    return time_each(work, lambda _: True, sizes)


CASES = {
    "launch-wait": launch_wait,
    "launch-read": launch_read,
    "graph-dependent": graph_dependent,
    "upload": upload,
    "download": download,
    "saxpy": saxpy,
    "create-buffer": create_buffer,
}
SKIPS = dict.fromkeys(
    ("call-buffer", "call-const", "call-var", "call-many", "threads"),
    "an evaluation waits, or must be waited for before the next: see launch-wait",
)
