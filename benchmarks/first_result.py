"""The program that `fresh.py` times: ``first_result.py LIBRARY`` makes a first result and prints its times.

NumPy is imported before the clock starts.
"""

import json
import sys
import time
from collections.abc import Callable

ELEMENTS = 64


class Clock:
    """Milliseconds since the last look, by name."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Note the time since the last lap."""
        now = time.perf_counter()
        self.times[name] = (now - self.last) * 1e3
        self.last = now


def start_vulkan(clock: Clock) -> bool:
    """Run one kernel with vkdispatch, ours or 0.1.0."""
    import numpy as np

    clock.last = time.perf_counter()
    import vkdispatch as vd

    # A name may bring its module along only when it is first asked for.
    _ = vd.shader, vd.make_context, vd.asbuffer
    clock.lap("import_ms")
    import vkdispatch.codegen as vc
    from vkdispatch.codegen.abbreviations import Buff, f32

    clock.lap("codegen_ms")
    vd.make_context(use_cpu=True)
    clock.lap("context_ms")
    data = vd.asbuffer(np.zeros(ELEMENTS, np.float32))
    clock.lap("buffer_ms")

    @vd.shader("data.size")
    def increment(data: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = data[tid] * 2 + 1

    increment(data)
    result = data.read(0)
    clock.lap("first_kernel_ms")
    return bool((result == 1).all())


def start_torch(clock: Clock) -> bool:
    """Run one operation with torch; its kernels come compiled."""
    import numpy  # noqa: F401

    clock.last = time.perf_counter()
    import torch

    clock.lap("import_ms")
    torch.cuda.init()
    torch.cuda.synchronize()
    clock.lap("context_ms")
    data = torch.zeros(ELEMENTS, device="cuda")
    torch.cuda.synchronize()
    clock.lap("buffer_ms")
    data.mul_(2).add_(1)
    result = data.cpu()
    clock.lap("first_kernel_ms")
    return bool((result == 1).all())


def start_cupy(clock: Clock) -> bool:
    """Run one kernel with CuPy, compiled by NVRTC."""
    import numpy  # noqa: F401

    clock.last = time.perf_counter()
    import cupy

    clock.lap("import_ms")
    cupy.cuda.runtime.free(0)
    clock.lap("context_ms")
    data = cupy.zeros(ELEMENTS, cupy.float32)
    cupy.cuda.runtime.deviceSynchronize()
    clock.lap("buffer_ms")
    increment = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * 2 + 1", "increment")
    increment(data, data)
    result = data.get()
    clock.lap("first_kernel_ms")
    return bool((result == 1).all())


PROGRAMS: dict[str, Callable[[Clock], bool]] = {
    "vkdispatch": start_vulkan,
    "torch": start_torch,
    "cupy": start_cupy,
}


def main(library: str) -> None:
    """Be the program."""
    clock = Clock()
    correct = PROGRAMS[library](clock)
    print(json.dumps({**clock.times, "correct": correct}))


if __name__ == "__main__":
    # this folder has modules of its own, which are not to hide others
    sys.path.pop(0)
    main(sys.argv[1])
