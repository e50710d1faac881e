"""Errors that the device finds: who is told, when and how often, and what holds meanwhile."""

import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.buffers import kernel_errors
from vkdispatch.base.process import RunningTask
from vkdispatch.rearrange.taking import BadIndexError

HERE = "test_deferred.py"


@pytest.fixture(autouse=True)
def own_context() -> Iterator[vd.Context]:
    """Have each test work in a context of its own."""
    old = vd.get_context()
    context = vd.Context(old.device_ids, old.queue_families[:1])
    with vd.use_context(context):
        yield context
        if not context.closed:
            vd.queue_wait_idle()
    context.close()


def ints(*values: int) -> Any:
    return vd.asbuffer(np.array(values, np.int32))


def floats(*values: float) -> Any:
    return vd.asbuffer(np.array(values, np.float32))


def in_thread(call: Callable[[], Any]) -> Any:
    """Return what a call returns or raises in another thread."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


X = (3.0, 1.0, 2.0)
CALLS: dict[str, tuple[Callable[[], Any], type[Exception], str, list[float]]] = {
    "take": (lambda: vd.take(floats(*X), ints(0, 4, 1)), IndexError, r"indices: 4 at \[1\]", [3, 1, 1]),
    "take_along_axis": (
        lambda: vd.take_along_axis(floats(*X), ints(2, -5, 1)),
        IndexError,
        r"indices: -5 at \[1\]",
        [2, 1, 1],
    ),
    "searchsorted": (
        lambda: vd.searchsorted(floats(1, 2, 3), floats(*X), sorter=ints(0, 1, 9)),
        IndexError,
        r"sorter: 9 at \[2\]",
        [2, 0, 1],
    ),
    "cumsum": (
        lambda: vd.cumsum(floats(*X), segments=ints(1, -1)),
        ValueError,
        r"segments: expected ints from 0 on, got -1 at \[1\]",
        [3, 1, 3],
    ),
    "sort": (
        lambda: vd.sort(floats(*X), segments=ints(1, 7)),
        ValueError,
        r"segments: expected ints from 0 to 3 in ascending order, got 7 at \[1\], behind 1",
        [3, 1, 2],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_read_raises_once_and_names_the_call(name: str) -> None:
    call, kind, message, values = CALLS[name]
    result = call()
    with pytest.raises(kind, match=f"^{message}.* in {name}\\(\\) at {HERE}:\\d+"):
        result.read(0)
    np.testing.assert_array_equal(result.read(0), values)
    vd.queue_wait_idle()


def test_the_line_is_that_of_the_call() -> None:
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    vd.take(floats(*X), ints(3))
    with pytest.raises(IndexError, match=f"in take\\(\\) at {HERE}:{line}; mode="):
        vd.queue_wait_idle()


def test_put_skips_indices_out_of_bounds() -> None:
    for unique in (False, True):
        x = floats(*X)
        vd.put(x, ints(2, 3, 0, -4), floats(5, 6, 7, 8), unique=unique)
        with pytest.raises(IndexError, match=rf"indices: 3 at \[1\].* in put\(\) at {HERE}"):
            x.read(0)
        assert x.read(0).tolist() == [7, 1, 5]


def wait_for_event() -> None:
    event = vd.record_event()
    while not event.done():
        pass
    event.wait()


@pytest.mark.parametrize(
    "wait",
    [
        lambda y: vd.queue_wait_idle(),
        lambda y: vd.queue_wait_idle(0),
        lambda y: y.read(0),
        lambda y: y.read_range(0, 1, 0),
        lambda y: y.read_async().result(),
        lambda y: wait_for_event(),
        lambda y: y.signals[0].wait(),
        lambda y: vd.Signal().wait(),
        lambda y: vd.sum(y).read(0),
        lambda y: vd.nonzero(y),
    ],
)
def test_every_wait_raises(wait: Callable[[Any], Any]) -> None:
    y = vd.take(floats(*X), ints(3))
    with pytest.raises(IndexError, match=r"3 at \[0\]"):
        wait(y)
    wait(y)


def test_polls_raise_nothing() -> None:
    y = vd.take(floats(*X), ints(3))
    event, future = vd.record_event(), y.read_async()
    while not (event.done() and future.done()):
        pass
    assert "done" in repr(event) + repr(future)
    assert "3." in repr(y)
    with pytest.raises(IndexError):
        future.result()
    assert future.result().tolist() == [3]


def test_a_wait_for_earlier_work_raises_nothing() -> None:
    x = floats(*X)
    vd.queue_wait_idle()
    before = vd.record_event()
    before.wait()
    y = vd.take(x, ints(3))
    before.wait()
    with pytest.raises(IndexError):
        y.read(0)


def test_a_correct_call_after_a_wrong_one_raises_nothing() -> None:
    x, good, bad = floats(*X), ints(0, -1), ints(0, 3)
    for _ in range(3):
        vd.take(x, bad)
        with pytest.raises(IndexError, match=r"3 at \[1\]"):
            vd.queue_wait_idle()
        assert vd.take(x, good).read(0).tolist() == [3, 2]
        vd.queue_wait_idle()


def test_equal_calls_name_their_own_lines() -> None:
    x, y = floats(*X), ints(1, 5)
    for _ in range(4):
        vd.take(x, y)
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        with pytest.raises(IndexError, match=rf"5 at \[1\].* in take\(\) at {HERE}:{line};"):
            vd.queue_wait_idle()
        vd.take(x, y)
        with pytest.raises(IndexError, match=rf"5 at \[1\].* in take\(\) at {HERE}:{line + 4};"):
            vd.queue_wait_idle()


def test_several_errors_are_raised_as_one() -> None:
    x = floats(*X)
    vd.take(x, ints(4))
    vd.sort(x, segments=ints(2, 1))
    with pytest.raises(IndexError, match=rf"4 at \[0\].* found as well by sort\(\) at {HERE}:\d+"):
        vd.queue_wait_idle()
    vd.queue_wait_idle()


def test_errors_are_raised_once_in_each_thread() -> None:
    y = vd.take(floats(*X), ints(4))
    for _ in range(3):
        twice = in_thread(lambda: [in_turn(y) for _ in range(2)])
        assert isinstance(twice[0], IndexError), twice
        assert isinstance(twice[1], np.ndarray), twice
    assert isinstance(in_turn(y), IndexError)
    assert isinstance(in_turn(y), np.ndarray)


def in_turn(y: Any) -> Any:
    try:
        return y.read(0)
    except IndexError as error:
        return error


def test_errors_are_raised_in_threads_that_ran_but_not_in_later_ones() -> None:
    y = vd.take(floats(*X), ints(4))
    told, found = threading.Event(), []

    def early() -> None:
        told.wait()
        found.extend(in_turn(y) for _ in range(2))

    thread = threading.Thread(target=early)
    thread.start()
    assert isinstance(in_turn(y), IndexError)
    told.set()
    thread.join()
    assert isinstance(found[0], IndexError)
    assert isinstance(found[1], np.ndarray)
    assert isinstance(in_thread(lambda: y.read(0)), np.ndarray)


def test_errors_are_not_kept_for_ended_threads() -> None:
    y = in_thread(lambda: vd.take(floats(*X), ints(4)))
    assert isinstance(in_turn(y), IndexError)
    assert isinstance(in_turn(y), np.ndarray)
    assert isinstance(in_thread(lambda: y.read(0)), np.ndarray)


def test_close_raises_and_closes(own_context: vd.Context) -> None:
    vd.take(floats(*X), ints(4))
    with pytest.raises(IndexError, match=rf"4 at \[0\].* in take\(\) at {HERE}"):
        own_context.close()
    assert own_context.closed
    own_context.close()


def test_more_calls_than_tickets() -> None:
    x, good, bad = floats(*X), ints(1), ints(7)
    for number in range(1300):
        vd.take(x, bad if number in (3, 700) else good)
    with pytest.raises(IndexError, match=r"7 at \[0\].* found as well by take"):
        vd.queue_wait_idle()
    for _ in range(1100):
        y = vd.take(x, good)
    assert y.read(0).tolist() == [1]
    vd.queue_wait_idle()


def test_the_first_of_many_is_named() -> None:
    where = np.arange(200_000, dtype=np.int64)
    where[1234:] += 1 << 40
    vd.take(vd.asbuffer(np.zeros(200_000, np.uint8)), vd.asbuffer(where))
    with pytest.raises(IndexError, match=rf"indices: (one|{1234 + (1 << 40)}) at \[1234\]"):
        vd.queue_wait_idle()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int8", -7),
        ("uint8", 200),
        ("int16", -30_000),
        ("uint32", 2**32 - 1),
        ("int64", -(2**40)),
        ("uint64", 2**63),
    ],
)
def test_values_of_all_types(kind: str, value: int) -> None:
    vd.take(floats(*X), vd.asbuffer(np.array([0, value], kind)))
    with pytest.raises(IndexError, match=rf"indices: {value} at \[1\]"):
        vd.queue_wait_idle()


def test_checks_raise_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_CHECK", "1")
    for call, kind, message, _ in CALLS.values():
        with pytest.raises(kind, match=message):
            call()
    x = floats(*X)
    with pytest.raises(IndexError, match=r"indices: 3 at \[1\]"):
        vd.put(x, ints(0, 3), 9.0)
    assert x.read(0).tolist() == list(X)


def test_a_call_looks_up_where_it_was_made_without_formatting() -> None:
    x, y = floats(*X), ints(1)
    vd.take(x, y)
    engine = vd.get_context()._native

    class _Check(kernel_errors.Check):
        function = "test"

    ticket = kernel_errors.take_ticket(vd.get_context(), _Check())
    (check, code, _, thread, _), _ = engine.note_of(ticket, 0)
    assert isinstance(check, _Check)
    assert code.co_filename == __file__
    assert thread == threading.get_ident()


def test_an_error_in_a_task_is_raised_in_its_thread_alone() -> None:
    tasks = [threading.Barrier(2) for _ in range(3)]
    found: dict[str, list[Any]] = {"wrong": [], "other": []}

    def run(name: str, index: int) -> None:
        for barrier in tasks:
            with RunningTask():
                y = vd.take(floats(*X), ints(index))
                barrier.wait()
                found[name].append(in_turn(y))

    threads = [threading.Thread(target=run, args=each) for each in (("wrong", 4), ("other", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(each) for each in found["wrong"]] == [BadIndexError] * 3
    assert [each.tolist() for each in found["other"]] == [[1]] * 3
    vd.queue_wait_idle()  # nobody else gets it


def test_a_task_raises_errors_of_what_it_was_given() -> None:
    y = vd.take(floats(*X), ints(4))

    def run() -> Any:
        with RunningTask():
            return in_turn(y)

    assert isinstance(in_thread(run), IndexError)
    assert isinstance(in_turn(y), IndexError)


def test_tasks_do_not_raise_errors_that_are_known_already() -> None:
    started, known = threading.Event(), threading.Event()
    found: list[Any] = []

    def run() -> None:
        started.set()
        known.wait()
        with RunningTask():
            found.append(in_turn(vd.take(floats(*X), ints(1))))

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    assert isinstance(in_turn(vd.take(floats(*X), ints(4))), IndexError)
    known.set()
    thread.join()
    assert found[0].tolist() == [1]


def test_errors_of_tasks_are_not_kept_for_ended_threads(own_context: vd.Context) -> None:
    def run() -> Any:
        with RunningTask():
            return vd.take(floats(*X), ints(4))

    y = in_thread(run)
    assert in_turn(y).shape == (1,)
    assert not kernel_errors._find_state(own_context).findings._open
