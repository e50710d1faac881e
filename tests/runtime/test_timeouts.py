"""Work that takes longer than a context allows: here, behind a queue that stands still."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

RunPython = Callable[..., subprocess.CompletedProcess[str]]
ROOT = str(Path(__file__).resolve().parents[2])

# The limit is passed by far, as the queue never goes on; how soon after that is not looked at.
BEGIN = """
import gc, numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, u32
from tests.runtime.holds import Hold
LIMIT = 0.5

@vd.shader("b.size")
def add_one(b: Buff[u32]) -> None:
    i = vc.global_invocation_id().x
    b[i] = b[i] + 1

def zeros():
    return vd.asbuffer(np.zeros(100, np.uint32))

def works():
    data = zeros()
    add_one(data)
    assert (data.read() == 1).all()

def expect(use, kind=vd.DeviceTimeoutError):
    for _ in range(2):
        try:
            use()
        except vd.VkDispatchError as error:
            assert type(error) is kind, (use, error)
        else:
            raise AssertionError(use)
"""


def _run(run_python: RunPython, code: str, **environment: str) -> None:
    path = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
    done = run_python(BEGIN + code + "\nprint('good')", timeout=600, PYTHONPATH=path, **environment)
    assert (done.stdout.splitlines()[-1:], done.returncode) == (["good"], 0), (done.stdout, done.stderr)


WAITS = {
    "idle": "vd.queue_wait_idle()",
    "event": "vd.record_event().wait()",
    "patient": "vd.record_event().wait(1e6)",
    "looks": "(event := vd.record_event(), [0 for _ in iter(event.done, True)])",
    "signal": "data.signals[0].wait()",
    "read": "data.read(0)",
    "future": "data.read_async().result()",
    "graph": "graph.run(0)",
    "far ahead": "[add_one(data) for _ in range(80_000)]",
    "write": "(data.write(np.ones(100, np.uint32)), data.read(0))",
    "size": "vd.unique(vd.asbuffer(np.zeros(100, np.int32)))",
    "nobody": "[0 for _ in iter(lambda: context.lost, True)] + [vd.queue_wait_idle(context=context)]",
    "profile": "vd.profile().__enter__().__exit__(None, None, None)",
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("queues", [1, 2])
def test_a_wait_ends_and_another_context_works(run_python: RunPython, wait: str, queues: int) -> None:
    _run(
        run_python,
        f"""
context = vd.make_context(queue_counts={queues}, timeout=LIMIT)
works()
graph, data = vd.CommandGraph(), zeros()
add_one(data, graph=graph)
with vd.use_context(context):  # where no other one takes its place at once
    hold = Hold(context)
    try:
        add_one(data)
        event, future, image = vd.record_event(), data.read_async(), vd.Image2D((8, 8), vd.float32)
        {wait}
    except vd.DeviceTimeoutError as error:
        print(error)
        assert isinstance(error, vd.DeviceLostError) and isinstance(error, TimeoutError)
    else:
        raise AssertionError("it did not end")
assert context.lost and not context.usable
with_it = (event.wait, event.done, future.result, lambda: data.read(0), lambda: graph.submit())
for use in with_it:
    expect(use)
expect(context.make_current)
other = vd.get_context()
assert other is not context and context.closed
assert (other.queue_count, other.timeout) == ({queues}, LIMIT)
works()
for use in with_it:
    expect(use)
expect(lambda: add_one(data))
hold.open()  # the device goes on in the end: nobody minds
for _ in range(10):
    works()
context.close()
del context, data, graph, event, future, image, with_it, use
gc.collect()
works()
""",
    )


def test_the_process_ends_while_the_work_goes_on(run_python: RunPython) -> None:
    _run(
        run_python,
        """
hold, data = Hold(vd.get_context()), zeros()
assert vd.get_context().timeout == LIMIT
add_one(data)
expect(lambda: data.read(0))
""",
        VKDISPATCH_TIMEOUT="0.5",
    )


def test_work_within_the_limit_is_not_disturbed(run_python: RunPython) -> None:
    """However long all of it takes, and however long the program does nothing."""
    _run(
        run_python,
        """
import time
vd.make_context(timeout=5)
data = zeros()
for count in range(1, 40):
    add_one(data)
    if count % 4 == 0:
        time.sleep(0.6)  # longer than the limit, together
    if count % 10 == 0:
        assert (data.read(0) == count).all()
works()
""",
    )


def test_the_context_of_a_thread_does_not_end_others(run_python: RunPython) -> None:
    _run(
        run_python,
        """
own = vd.Context([0], [[0]], timeout=LIMIT)
works()
with vd.use_context(own):
    hold, data = Hold(own), zeros()
    add_one(data)
    expect(vd.queue_wait_idle)
    expect(vd.get_context)
works()
assert vd.get_context().timeout is None
""",
    )


def test_a_borrowed_device_is_not_destroyed(run_python: RunPython) -> None:
    _run(
        run_python,
        """
from tests.runtime.by_hand import Foreign
maker = Foreign()
context = vd.make_context_from_handles(**maker.handles, make_current=True, timeout=LIMIT)
works()
hold, data = Hold(context), zeros()
add_one(data)
expect(vd.queue_wait_idle)
expect(vd.get_context)
expect(vd.make_context)
context.close()
assert not vd.get_context().borrowed
works()
""",
    )
