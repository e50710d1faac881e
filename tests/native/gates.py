"""Work on a device that lasts until the test releases it, so that tests depend on events, never on time."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import vkdispatch_native as native

from .kernels import Array

# Each workgroup polls until the gate is open, at most as often as llvmpipe iterates a loop. There the loop
# continues in lanes without an invocation, so workgroups fill all lanes.
_HOLD = """#version 450
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) volatile readonly buffer Gate { uint open; } gate;
layout(set = 0, binding = 1) buffer Data { uint data[]; };
void main() {
    for (uint i = 0; i < 60000 && gate.open == 0; ++i) {}
    if (gl_GlobalInvocationID == uvec3(0)) data[0] += 1;
}
"""
# A few workgroups run at a time: for seconds on a GPU, minutes on a CPU. Once the gate is open, each ends at
# once.
_GROUPS = (1000, 500, 1)

# Lets a separate process import this module.
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(
        [*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).resolve().parents[2])]
    )
}


class _Host:
    """A number shared by the host and kernels, in the form that a launcher takes."""

    def __init__(self, engine: native.Engine) -> None:
        self.block = native.HostBlock(engine, 0, 4, "host")
        self.view = np.frombuffer(self.block, np.uint32)
        self.view[:] = 0
        self.shader_shape = (1, 1, 1, 1)
        self._native = native.Buffer.over(self.block)


class Gate:
    """Work on queue 0 of an engine that runs until `open` is called; used in a `with` statement.

    What waits for it is done after `open` and not before, however busy the machine is. (It ends by itself in
    the end, so that a test fails in place of hanging.)
    """

    def __init__(self, engine: native.Engine) -> None:
        self.engine = engine
        self.done = Array(engine, np.zeros(1, np.uint32))
        self._host = _Host(engine)
        self._plan = native.Plan(engine, native.compile_glsl(_HOLD), [1, 1], 0, "hold")
        slots = [native.BufferSlot(binding=0, writes=False), native.BufferSlot(binding=1)]
        limits = ((32, 1, 1), (65535,) * 3, None)
        self._launcher = native.Launcher(engine, self._plan, slots, 0, -1, -1, -1, *limits)
        self._point = 0

    def hold(self, data: Any = None) -> Any:
        """Submit the work to the queue.

        Returns the array that it writes: it adds 1 to the first uint32 of it in the end.
        """
        data = self.done if data is None else data
        assert self._launcher.launch((self._host, data), _GROUPS, True, 0)
        self._point = self.engine.last_value(0)
        self.engine.flush(0, self._point)
        return data

    def open(self) -> None:
        """Let the work end, and all work of the gate appended later."""
        self._host.view[0] = 1

    def is_open(self) -> bool:
        """Whether `open` was called."""
        return bool(self._host.view[0])

    def is_holding(self) -> bool:
        """Whether the work is still running."""
        return not self.engine.wait_until([(0, self._point)], 0)

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open()


@contextmanager
def disable_forced_switches() -> Iterator[None]:
    """Switch threads only when the holder of the GIL releases it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def releases_the_lock(gate: Gate, wait: Callable[[], object]) -> bool:
    """Whether `wait`, which waits for the gate's work, releases the GIL: another thread opens the gate."""
    begun = threading.Event()

    def open_gate() -> None:
        begun.wait()  # set by the waiting thread, which holds the GIL until it waits
        time.sleep(0.002)
        gate.open()

    thread = threading.Thread(target=open_gate)
    with disable_forced_switches():
        thread.start()
        begun.set()
        wait()
        opened = gate.is_open()
    thread.join()
    return opened
