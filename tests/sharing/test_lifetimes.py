"""Shared memory lives as long as anyone uses it: after buffers and contexts, until the process ends."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch_native as native
from tests.native.gates import Gate

from .arrays import add, address, aligned, double


class Owner:
    """What a capsule refers to; it says when, and in which thread, it was released."""

    def __init__(self, released: list[int]) -> None:
        self.released = released

    def __del__(self) -> None:
        self.released.append(threading.get_ident())


def make(released: list[int], versioned: bool = True) -> Any:
    data = np.arange(4, dtype=np.float32)
    owner = Owner(released)
    owner.data = data  # type: ignore[attr-defined]
    return native.make_dlpack(owner, address(data), (1, 0), (2, 32, 1), (4,), (1,), versioned=versioned)


@pytest.mark.parametrize("versioned", [False, True])
def test_deleters_are_called_once(versioned: bool) -> None:
    released: list[int] = []
    capsule = make(released, versioned)
    del capsule  # never taken
    assert len(released) == 1
    capsule = make(released, versioned)
    tensor = native.ForeignTensor(capsule)
    assert ("used" in repr(capsule)) and tensor.shape == (4,)
    del capsule
    assert len(released) == 1  # the tensor outlives its capsule
    tensor.release()
    tensor.release()
    del tensor
    assert len(released) == 2
    with pytest.raises(ValueError, match="capsule"):
        native.ForeignTensor("none")


def test_any_thread_may_release(on_host: None) -> None:
    released: list[int] = []
    tensors = [native.ForeignTensor(make(released)) for _ in range(8)]
    threads = [threading.Thread(target=tensor.release) for tensor in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(released) == 8
    buffer = vd.asbuffer(np.arange(4, dtype=np.float32))
    views = [np.from_dlpack(buffer)]
    thread = threading.Thread(target=views.clear)
    thread.start()
    thread.join()
    assert not buffer._native.lent


def test_memory_outlives_buffer_and_context(on_host: None, run_python: Any) -> None:
    buffer = vd.asbuffer(np.arange(4, dtype=np.float32))
    view, shared = np.from_dlpack(buffer), vd.share(buffer)
    buffer.destroy()
    gc.collect()
    others = [vd.asbuffer(np.full(4, 9, np.float32)) for _ in range(8)]  # do not get this memory
    assert view.tolist() == np.asarray(shared).tolist() == [0, 1, 2, 3]
    view[:] = 5
    assert all(other.read(0).tolist() == [9] * 4 for other in others)
    with pytest.raises(RuntimeError, match="destroyed"):
        np.from_dlpack(buffer)


def test_dropped_buffers_go_back_to_the_pool_after_the_last_view(on_host: None) -> None:
    buffer = vd.asbuffer(np.arange(1 << 12, dtype=np.float32))
    view = np.from_dlpack(buffer)
    part = view[5:]
    place = address(view)
    del buffer, view
    gc.collect()
    others = [vd.Buffer(1 << 12, vd.float32) for _ in range(4)]
    assert all(address(np.from_dlpack(other)) != place for other in others)
    del part, others
    gc.collect()
    again = [vd.Buffer(1 << 12, vd.float32) for _ in range(8)]
    assert any(address(np.from_dlpack(other)) == place for other in again)


AFTER_CLOSE = """
import gc, mmap, threading
import numpy as np
import vkdispatch as vd, vkdispatch.numpy as vnp
context = vd.make_context()
buffer = vd.asbuffer(np.arange(1000, dtype=np.float32))
x = vnp.arange(10)
host = np.frombuffer(mmap.mmap(-1, 16384), np.float32)
host[:] = 1
imported = vd.from_dlpack(host)
views = [np.from_dlpack(buffer), np.from_dlpack(x), np.asarray(vd.share(buffer)), np.from_dlpack(imported)]
context.close()
del buffer, x, context, imported
gc.collect()
assert views[0][999] == 999 and views[1].tolist() == list(range(10))
for view in views:
    view[:] = 3
assert (host == 3).all()
{end}
print("done")
"""


@pytest.mark.parametrize(
    "end",
    [
        "",  # the views live until the interpreter ends
        "views.clear()",
        "t = threading.Thread(target=views.clear); t.start(); t.join()",
        "import sys; sys.kept = views",
        "import atexit; atexit.register(views.clear)",
        "class Late:\\n    def __del__(self): views.clear()\\nlate = Late()",
        "vd.make_context(); views.append(np.from_dlpack(vd.asbuffer(np.ones(4, np.float32))))",
    ],
)
def test_memory_outlives_the_context_and_the_interpreter_ends(
    on_host: None, run_python: Any, end: str
) -> None:
    done = run_python(AFTER_CLOSE.replace("{end}", end.replace("\\n", "\n")))
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")


AT_EXIT = """
import threading
import numpy as np
import vkdispatch as vd, vkdispatch_native as native
kept = [np.from_dlpack(vd.asbuffer(np.ones(4, np.float32))), vd.from_dlpack(np.ones(4096, np.float32))]
cycle = [kept]; cycle.append(cycle)
capsule = vd.asbuffer(np.ones(4, np.float32)).__dlpack__()
tensor = native.ForeignTensor(vd.asbuffer(np.ones(4, np.float32)).__dlpack__())
def work():
    try:
        while True:
            view = np.from_dlpack(kept[1]); view[:] = 1; del view
    except RuntimeError:
        pass  # the context was destroyed
threading.Thread(target=work, daemon=True).start()
print("done")
"""


def test_the_interpreter_ends_with_live_consumers(on_host: None, run_python: Any) -> None:
    for _ in range(3):
        done = run_python(AT_EXIT)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")


FORKED = """
import mmap, os
import numpy as np
import vkdispatch as vd
buffer = vd.asbuffer(np.arange(4, dtype=np.float32))
view = np.from_dlpack(buffer)
host = np.frombuffer(mmap.mmap(-1, 16384), np.float32)
host[:] = 1
imported = vd.from_dlpack(host)
child = os.fork()
if child == 0:
    ok = view.tolist() == [0, 1, 2, 3] and host.sum() == 4096
    del view, imported
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
view[0] = 5
imported.write(np.full(4096, 2, np.float32))
assert buffer.read(0)[0] == 5 and host.sum() == 8192
print("done")
"""


def test_forked_children_leave_the_memory_to_the_parent(on_host: None, run_python: Any) -> None:
    done = run_python(FORKED)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


def _wait_until(condition: Any) -> bool:
    patience = time.monotonic() + 60
    while not condition() and time.monotonic() < patience:
        vd.queue_wait_idle()
        gc.collect()
        time.sleep(0.001)
    return bool(condition())


def test_imported_memory_is_released_when_the_device_is_done(takes_host: None) -> None:
    data = aligned(np.zeros(64, np.float32))
    before = sys.getrefcount(data)
    buffer = vd.from_dlpack(data, copy=False)
    view = buffer.view(vd.vec4)
    assert sys.getrefcount(data) > before
    del buffer
    assert sys.getrefcount(data) > before
    del view
    assert _wait_until(lambda: sys.getrefcount(data) == before)
    for _ in range(50):
        double(data)
    assert _wait_until(lambda: sys.getrefcount(data) == before)
    with Gate(vd.get_context()._native) as gate:
        unordered = vd.from_dlpack(data, copy=False, ordered=False)
        held = np.ones(1, np.uint32)
        gate.hold()
        double(unordered)
        del unordered, held
        gc.collect()
        assert sys.getrefcount(data) > before  # the device will use it
    assert _wait_until(lambda: sys.getrefcount(data) == before)


def test_closing_a_context_releases_what_it_imported(takes_host: None, run_python: Any) -> None:
    done = run_python(
        "import mmap, sys, numpy as np, vkdispatch as vd\n"
        "data = np.frombuffer(mmap.mmap(-1, 16384), np.float32)\n"
        "before = sys.getrefcount(data)\n"
        "buffer = vd.from_dlpack(data)\n"
        "assert sys.getrefcount(data) > before\n"
        "vd.get_context().close()\n"
        "assert sys.getrefcount(data) == before\n"
        "print('done')"
    )
    assert done.stdout.strip() == "done", done.stderr


def test_no_growth() -> None:
    data = aligned(np.ones(1024, np.float32))
    before = sys.getrefcount(data)
    own = vd.asbuffer(data)
    statistics = vd.get_context()._native.statistics
    live: list[int] = []
    for _ in range(3):
        for _ in range(200):
            add(own, vd.from_dlpack(data))
            np.from_dlpack(own, device="cpu")[:] = 1
        assert _wait_until(lambda: sys.getrefcount(data) == before)
        live.append(statistics()["live_objects"])
    assert live[1] == live[2]


# ---- order


def test_calls_finish_while_memory_is_shared(on_host: None) -> None:
    buffer = vd.asbuffer(np.ones(64, np.float32))
    shared = vd.share(buffer)
    view = np.asarray(shared)
    found: list[float] = []

    def launch(view: Any = view) -> None:
        double(buffer)
        found.append(float(view[0]))

    with Gate(vd.get_context()._native) as gate:
        gate.hold()
        thread = threading.Thread(target=launch)
        thread.start()
        gate.open()
        thread.join()
    assert found == [2]
    del shared, view, launch, thread
    with Gate(vd.get_context()._native) as gate:
        gate.hold()
        double(buffer)  # nobody shares it any more: this returns at once
        assert gate.is_holding()
    np.testing.assert_array_equal(buffer.read(0), 4)


def test_order_can_be_left_to_the_user(on_host: None) -> None:
    buffer = vd.asbuffer(np.ones(64, np.float32))
    shared = vd.share(buffer, ordered=False)
    view = np.asarray(shared)
    with Gate(vd.get_context()._native) as gate:
        gate.hold()
        double(buffer)
        assert gate.is_holding() and view[0] == 1
        gate.open()
        vd.queue_wait_idle()
        assert view[0] == 2
    also = np.from_dlpack(buffer)  # in order: now all calls are
    double(buffer)
    assert also[0] == 4


def test_threads(takes_host: None) -> None:
    data = [aligned(np.zeros(4096, np.float32)) for _ in range(4)]
    one = vd.asbuffer(np.ones(4096, np.float32))
    failures: list[BaseException] = []

    def work(mine: Any) -> None:
        try:
            for count in range(1, 60):
                buffer = vd.from_dlpack(mine, copy=False)
                add(buffer, one)
                assert (mine == count).all()
                view = np.from_dlpack(buffer)
                assert view[7] == count
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in data]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_shared_memory_keeps_its_source_alive(on_host: None) -> None:
    buffer = vd.asbuffer(np.ones(4, np.float32))
    known = weakref.ref(buffer)
    shared = vd.share(buffer)
    del buffer
    assert known() is not None
    del shared
    gc.collect()
    assert known() is None
