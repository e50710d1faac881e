"""Contexts whose device was lost or that were given up: what they say, and what takes their place."""

from __future__ import annotations

import math
import subprocess
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.base import context as contexts
from vkdispatch.base.context import destroy_context, is_context_initialized
from vkdispatch.base.process import LogLevel, set_log_level
from vkdispatch.codegen.abbreviations import Buff, f32

RunPython = Callable[..., subprocess.CompletedProcess[str]]


@vd.shader("b.size")
def add_one(b: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    b[i] = b[i] + 1


class Stopped:
    """An engine whose device was lost or, with `abandoned`, which was given up."""

    def __init__(self, engine: Any, abandoned: bool) -> None:
        self.engine = engine
        self.lost = True
        self.abandoned = abandoned

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


class Interrupted:
    """An engine whose close is interrupted by Ctrl-C, so that it is given up."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.lost = self.abandoned = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def close(self) -> None:
        if not self.lost:
            self.engine.close()
            self.lost = self.abandoned = True
            raise KeyboardInterrupt


def lose(context: vd.Context, *, abandoned: bool = False) -> None:
    context._engine = Stopped(context._engine, abandoned)  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def _no_global_context(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a test begin without a global context, and put that of the other tests back."""
    with monkeypatch.context() as changed:
        changed.setattr(contexts.Context, "_global", None)
        changed.delenv("VKDISPATCH_TIMEOUT", raising=False)
        yield
        if contexts.Context._global is not None:
            contexts.Context._global._end()


def extra_extensions() -> list[str]:
    """Return names of extensions that are not used anyway."""
    usual = vd.get_context().handles.devices[0].extensions
    destroy_context()
    candidates = ("VK_KHR_shader_clock", "VK_EXT_scalar_block_layout", "VK_KHR_8bit_storage")
    return [name for name in candidates if name in vd.get_devices()[0].extensions and name not in usual]


def facts(context: vd.Context) -> tuple[Any, ...]:
    return (
        context.device_ids,
        context.queue_families,
        context.timeout,
        set(context.handles.devices[0].extensions),
    )


# ---- what takes their place


@pytest.mark.parametrize("make", [vd.get_context, vd.make_context, lambda: vd.Buffer(3, f32).context])
@pytest.mark.parametrize("closed", [False, True])
def test_next_context_has_the_arguments_of_the_lost_one(make: Callable[[], vd.Context], closed: bool) -> None:
    extra = extra_extensions()
    context = vd.make_context(queue_counts=2, extensions=extra, timeout=600)
    wanted = facts(context)
    assert context.queue_count == 2 and context.timeout == 600 and set(extra) <= wanted[3]
    for _ in range(2):
        before = context
        lose(context)
        if closed:
            context.close()
        context = make()
        assert context is not before and before.closed
        assert facts(context) == wanted
        assert vd.get_context() is context
        buffer = vd.asbuffer(np.zeros(5, np.float32))
        add_one(buffer)
        np.testing.assert_array_equal(buffer.read(), np.ones((2, 5)))


def test_later_environment_variables_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    context = vd.make_context()
    wanted = facts(context)
    monkeypatch.setenv("VKDISPATCH_TIMEOUT", "500")
    monkeypatch.setenv("VKDISPATCH_DEVICE", "no device is called so")
    lose(context)
    assert facts(vd.get_context()) == wanted


def test_a_lost_context_that_was_made_current_is_recreated() -> None:
    context = vd.Context([0], [[0, 0, 0]], timeout=300)
    context.make_current()
    wanted = facts(context)
    lose(context, abandoned=True)
    assert facts(vd.get_context()) == wanted


@pytest.mark.parametrize(
    ("arguments", "queues", "timeout"),
    [
        ({}, 2, 600),
        ({"queue_counts": 3}, 3, 600),
        ({"queue_counts": 1}, 1, 600),
        ({"multi_queue": True}, len(vd.select_queue_families(0)), 600),
        ({"device_ids": 0, "queue_families": [[0]]}, 1, 600),
        ({"device_ids": 0}, 2, 600),
        ({"timeout": 7}, 2, 7),
        ({"timeout": math.inf}, 2, None),
        ({"device_count": 1}, 2, 600),
    ],
)
def test_arguments_override_the_settings_of_the_lost_context(
    arguments: dict[str, Any], queues: int, timeout: float | None
) -> None:
    context = vd.make_context(device_ids=0, queue_counts=2, timeout=600)
    lose(context)
    context = vd.make_context(**arguments)
    assert (context.queue_count, context.timeout) == (queues, timeout)


def test_extensions_are_added_to_earlier_ones() -> None:
    extra = extra_extensions()
    context = vd.make_context(extensions=extra[:1])
    lose(context)
    assert {*extra} <= set(vd.make_context(extensions=extra[1:]).handles.devices[0].extensions)


def test_failed_recreation_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    context = vd.make_context(queue_counts=2, timeout=600)
    wanted = facts(context)
    lose(context)

    def refuse(*_: object, **__: object) -> None:
        raise vd.OutOfDeviceMemoryError("not now")

    with monkeypatch.context() as changed:
        changed.setattr(native, "Engine", refuse)
        for _ in range(2):
            with pytest.raises(vd.OutOfDeviceMemoryError, match="not now"):
                vd.get_context()
    assert facts(vd.get_context()) == wanted


@pytest.mark.parametrize("end", [destroy_context, lambda: vd.get_context().close()])
def test_closed_context_is_not_recreated(end: Callable[[], None]) -> None:
    vd.make_context(queue_counts=2, timeout=600)
    end()
    assert (vd.get_context().queue_count, vd.get_context().timeout) == (1, None)


def test_destroyed_lost_context_is_not_recreated() -> None:
    lose(vd.make_context(queue_counts=2, timeout=600))
    destroy_context()
    assert not is_context_initialized()
    assert (vd.get_context().queue_count, vd.get_context().timeout) == (1, None)


def test_threads_recreate_one_context() -> None:
    lose(vd.make_context(queue_counts=2))
    barrier = threading.Barrier(8)
    found = []

    def look() -> None:
        barrier.wait()
        found.append(vd.get_context())

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len({id(context) for context in found}) == 1
    assert found[0].queue_count == 2


@pytest.mark.parametrize(
    ("abandoned", "said"),
    [
        (False, "the device of this context was lost; "),
        (True, "longer than the timeout of its context, 9 se"),
    ],
)
def test_the_loss_is_logged(capsys: pytest.CaptureFixture[str], abandoned: bool, said: str) -> None:
    set_log_level(LogLevel.WARNING)
    lose(vd.make_context(timeout=9), abandoned=abandoned)
    vd.get_context()
    told = capsys.readouterr()
    assert said in told.out + told.err and "a new context replaces it" in told.out + told.err


# ---- what they say

OBJECTS: list[tuple[str, Callable[[Any], object]]] = [
    ("buffer", lambda buffer: add_one(buffer)),
    ("event", vd.wait_event),
    ("future", vd.wait_event),
    ("context", lambda context: vd.use_context(context).__enter__()),
    ("context", lambda context: context.make_current()),
    ("graph", lambda graph: add_one(vd.asbuffer(np.zeros(3, np.float32)), graph=graph)),
    ("graph", lambda graph: graph.submit()),
]


@pytest.mark.parametrize(("kind", "use"), OBJECTS)
@pytest.mark.parametrize(
    ("timeout", "abandoned", "error"),
    [(None, False, vd.DeviceLostError), (600, False, vd.DeviceLostError), (600, True, vd.DeviceTimeoutError)],
)
def test_objects_of_a_lost_context_raise(
    kind: str, use: Callable[[Any], object], timeout: float | None, abandoned: bool, error: type[Exception]
) -> None:
    context = vd.make_context(timeout=timeout)
    buffer, graph = vd.asbuffer(np.zeros(3, np.float32)), vd.CommandGraph()
    add_one(buffer)
    add_one(buffer, graph=graph)
    things: dict[str, Any] = {"context": context, "buffer": buffer, "graph": graph}
    things |= {"event": vd.record_event(), "future": buffer.read_async()}
    vd.queue_wait_idle()
    lose(context, abandoned=abandoned)
    vd.get_context()  # another one takes its place: native objects know of this loss only when they end
    for _ in range(2):
        with pytest.raises(error) as raised:
            use(things[kind])
        assert type(raised.value) is error


@pytest.mark.parametrize("abandoned", [False, True])
def test_the_context_of_a_thread_is_not_replaced(abandoned: bool) -> None:
    own = vd.Context([0], [[0]], timeout=600)
    before = vd.get_context()
    error = vd.DeviceTimeoutError if abandoned else vd.DeviceLostError
    with vd.use_context(own):
        lose(own, abandoned=abandoned)
        for _ in range(2):
            with pytest.raises(error):
                vd.get_context()
            with pytest.raises(error):
                vd.asbuffer(np.zeros(3))
    assert vd.get_context() is before
    own.close()


def test_unfinished_work_is_not_reported_as_done() -> None:
    context = vd.Context([0], [[0]], timeout=600)
    with vd.use_context(context):
        buffer = vd.asbuffer(np.zeros(3, np.float32))
        event, future = vd.record_event(), buffer.read_async()
    lose(context, abandoned=True)
    context.close()
    for _ in range(2):
        for wait in (event.wait, event.done, future.result, future.done):
            with pytest.raises(vd.DeviceTimeoutError):
                wait()


def test_possibly_failed_work_is_not_reported_as_done() -> None:
    class Failed(Stopped):
        failures = 1

    context = vd.Context([0], [[0]])
    with vd.use_context(context):
        buffer = vd.asbuffer(np.zeros(3, np.float32))
        event, future = vd.record_event(), buffer.read_async()
        known = vd.record_event()
    known.wait()
    engine = Failed(context._engine, False)
    engine.lost = False
    context._engine = engine  # type: ignore[assignment]
    context.close()
    for _ in range(2):
        for wait in (event.wait, event.done, future.result, future.done):
            with pytest.raises(vd.VulkanError, match="failed before it was closed"):
                wait()
    assert "failed" in repr(future)
    assert known.done() and known.wait()


def test_the_types_of_the_error() -> None:
    error = vd.DeviceTimeoutError("late")
    for kind in (vd.VkDispatchError, vd.DeviceLostError, vd.VulkanError, TimeoutError, RuntimeError):
        assert isinstance(error, kind)
    assert not isinstance(error, vd.WaitTimeoutError)
    assert str(error) == "late" and error.args == ("late",)


# ---- another library's device


def borrowed(owner: vd.Context) -> vd.Context:
    handles = owner.handles
    (device,) = handles.devices
    queues = [(queue.family, queue.handle) for queue in device.queues]
    return vd.make_context_from_handles(
        handles.instance,
        device.physical_device,
        device.device,
        queues,
        device.extensions,
        device.features,
        make_current=True,
        timeout=600,
    )


@pytest.mark.parametrize("abandoned", [False, True])
def test_borrowed_context_is_not_recreated(abandoned: bool) -> None:
    owner = vd.Context([0], [[0]])
    context = borrowed(owner)
    assert vd.get_context() is context and context.timeout == 600
    lose(context, abandoned=abandoned)
    error = vd.DeviceTimeoutError if abandoned else vd.DeviceLostError
    for make in (vd.get_context, vd.make_context, lambda: vd.make_context(timeout=3)):
        with pytest.raises(error, match=r"another library.*make_context_from_handles") as raised:
            make()
        assert type(raised.value) is error
    context.close()
    assert not vd.get_context().borrowed and vd.get_context().timeout is None
    owner.close()


def test_a_named_device_replaces_a_borrowed_one() -> None:
    owner = vd.Context([0], [[0]])
    context = borrowed(owner)
    lose(context)
    assert not vd.make_context(device_ids=0).borrowed and context.closed
    owner.close()


# ---- the close that is interrupted


def test_an_interrupted_close_closes() -> None:
    context = vd.make_context(queue_counts=2)
    buffer, event = vd.asbuffer(np.zeros(3, np.float32)), vd.record_event()
    context._engine = Interrupted(context._engine)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        context.close()
    assert context.closed and not context.kept and buffer.destroyed
    context.close()
    with pytest.raises(vd.UsageError, match="was closed"):
        context.make_current()
    with pytest.raises(vd.UsageError, match="destroyed"):
        buffer.read(0)
    for wait in (event.wait, event.done):
        with pytest.raises(vd.UsageError, match="interrupted before the work was done"):
            wait()
    # it was not lost: the next one has the defaults
    assert vd.get_context().queue_count == 1
    with pytest.raises(vd.UsageError, match="gone"):
        vd.wait_event(event)


def test_a_close_that_is_interrupted_at_its_start_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    context = vd.make_context()
    buffer = vd.asbuffer(np.zeros(3, np.float32))

    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(buffer, "destroy", interrupt)
        with pytest.raises(KeyboardInterrupt):
            context.close()
    assert context.usable and vd.get_context() is context
    context.close()
    assert context.closed and buffer.destroyed


# ---- timeout=


class _Made(Exception):
    """Nothing is made: the arguments are looked at."""


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Return a function that returns the limit, in nanoseconds, of the engine that would be made."""

    def make(*_: object, timeout_ns: int, **__: object) -> None:
        raise _Made(timeout_ns)

    def asked(use: Callable[[], object]) -> int:
        owner = vd.Context([0], [[0]])  # what can be borrowed is there before
        with monkeypatch.context() as changed:
            changed.setattr(native, "Engine", type("Engine", (), {"__new__": make, "on_handles": make}))
            with pytest.raises(_Made) as raised:
                use() if use is not _BORROW else borrowed(owner)
        owner.close()
        number = raised.value.args[0]
        assert isinstance(number, int)
        return number

    return asked


def _BORROW() -> None:  # noqa: N802
    """Stand for a context on another one's handles."""


@pytest.mark.parametrize(
    ("seconds", "nanoseconds"),
    [
        (None, 0),
        (1, 10**9),
        (0.25, 250_000_000),
        (np.float32(0.5), 500_000_000),
        (np.int8(3), 3 * 10**9),
        (Fraction(1, 4), 250_000_000),
        (1e-12, 1),
        (math.inf, 0),
        (10**400, 0),
        (1e9, 10**18),
        (1e10, 0),
    ],
)
def test_limits_reach_the_engine(limit: Callable[..., int], seconds: Any, nanoseconds: int) -> None:
    assert limit(lambda: vd.make_context(timeout=seconds)) == nanoseconds
    assert limit(lambda: vd.Context([0], [[0]], timeout=seconds)) == nanoseconds


def test_the_limit_of_a_borrowed_device_reaches_the_engine(limit: Callable[..., int]) -> None:
    assert limit(_BORROW) == 600 * 10**9


@pytest.mark.parametrize(
    ("timeout", "error"),
    [
        (0, ValueError),
        (0.0, ValueError),
        (-1, ValueError),
        (-(10**400), ValueError),
        (-math.inf, ValueError),
        (math.nan, ValueError),
        (np.float32("nan"), ValueError),
        ("3", TypeError),
        (True, TypeError),
        (np.bool_(True), TypeError),
        (1j, TypeError),
        ([1], TypeError),
        (np.ones(2), TypeError),
    ],
)
def test_invalid_limits_are_refused(timeout: Any, error: type[Exception]) -> None:
    owner = vd.Context([0], [[0]])
    handles = owner.handles
    (device,) = handles.devices
    for make in (
        lambda: vd.make_context(timeout=timeout),
        lambda: vd.Context([0], [[0]], timeout=timeout),
        lambda: vd.make_context_from_handles(
            handles.instance, device.physical_device, device.device, [(0, 0)], timeout=timeout
        ),
    ):
        with pytest.raises(error, match="timeout: expected seconds") as raised:
            make()
        assert isinstance(raised.value, vd.VkDispatchError)
    assert not is_context_initialized()
    owner.close()


@pytest.mark.parametrize(
    ("text", "seconds"), [("", None), (" ", None), ("2", 2.0), (" 0.5 ", 0.5), ("1e3", 1000.0), ("inf", None)]
)
def test_timeout_variable(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float | None) -> None:
    monkeypatch.setenv("VKDISPATCH_TIMEOUT", text)
    assert vd.make_context().timeout == seconds
    assert vd.Context([0], [[0]]).timeout == seconds
    assert vd.Context([0], [[0]], timeout=77).timeout == 77
    assert vd.Context([0], [[0]], timeout=math.inf).timeout is None


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon", "1 s", "0x10", "1,5", "-inf"])
def test_invalid_timeout_variable_is_refused(run_python: RunPython, text: str) -> None:
    done = run_python(
        "import vkdispatch as vd\n"
        "try: vd.get_context()\n"
        "except ValueError as error: print(type(error) is vd.ArgumentValueError, error)\n"
        "print(vd.make_context(timeout=3).timeout)",
        VKDISPATCH_TIMEOUT=text,
    )
    first, second = done.stdout.splitlines()
    assert first == f"True VKDISPATCH_TIMEOUT: expected seconds, more than 0 (inf: no limit), got {text!r}"
    assert second == "3.0" and done.returncode == 0


def test_dummy_backend_checks_the_timeout(run_python: RunPython) -> None:
    done = run_python(
        "import vkdispatch as vd\n"
        "try: vd.make_context(timeout=-3)\n"
        "except ValueError as error: print(error)\n"
        "print(vd.make_context(timeout=3).timeout)",
        VKDISPATCH_BACKEND="dummy",
    )
    assert done.stdout.splitlines() == ["timeout: expected seconds, more than 0, or None; got -3", "3.0"]
