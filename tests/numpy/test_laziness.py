"""Laziness that nobody notices: values are those of the moment of the operation, whoever writes and when."""

import gc
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from tests.numpy.both import check_evaluations
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.base.native_module import native
from vkdispatch.numpy.core import expressions, kernels

HOST = np.arange(6, dtype=np.float32)


@vd.shader("data.size")
def negate(data: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
    i = vc.global_invocation_id().x
    data[i] = -data[i]


@vd.shader("data.size")
def copy_out(data: vc.Buff[vc.f32], out: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
    i = vc.global_invocation_id().x
    out[i] = data[i]


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Sizes of the expressions that are computed, in nodes."""
    check_evaluations(monkeypatch)
    found: list[int] = []
    (compute,) = expressions._computing

    def count(program: Any, *others: Any) -> Any:
        found.append(len(program.steps))
        return compute(program, *others)

    expressions.compute_with(count)
    yield found
    expressions.compute_with(compute)


def array(data: Any = HOST) -> Any:
    return vnp.asarray(np.asarray(data))


def is_pending(x: Any) -> bool:
    value = x._value
    return isinstance(value, expressions.Node) and value.result is None


# ---- writes to arrays


def test_expressions_keep_their_values_when_arrays_are_written() -> None:
    x = array()
    y, z = x + 1, x * 2
    w = y + z
    x[...] = y
    x[1:3] = 50
    x += 1
    for found, expected in ((y, HOST + 1), (z, HOST * 2), (w, HOST * 3 + 1)):
        np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(x.numpy(), [2, 51, 51, 5, 6, 7])


def test_what_was_assigned_is_not_bound_to_its_target() -> None:
    x = array()
    y = x * 2
    x[...] = y
    more = y + 1
    x[0] = 100
    assert y.tolist() == [0, 2, 4, 6, 8, 10]
    assert more.tolist() == [1, 3, 5, 7, 9, 11]
    assert x.tolist() == [100, 2, 4, 6, 8, 10]


def test_expressions_of_expressions_keep_their_values() -> None:
    x = array() + 0
    y = x * 2
    x[0] = 7
    z = x * 3
    x.fill(0)
    assert y.tolist() == [0, 2, 4, 6, 8, 10]
    assert z.tolist() == [21, 3, 6, 9, 12, 15]


def test_in_place_operations_are_one_kernel_and_keep_what_others_show(launches: list[int]) -> None:
    x = array()
    y = x * 2
    z = y + 1
    del y
    launches.clear()
    x += z
    assert len(launches) == 2
    assert z.tolist() == [1, 3, 5, 7, 9, 11]
    assert x.tolist() == [1, 4, 7, 10, 13, 16]
    x[::-1] = x
    assert x.tolist() == [16, 13, 10, 7, 4, 1]


def test_views_of_lazy_arrays_show_writes() -> None:
    x = array() * 1
    part = x[1:3]
    whole = x + 0
    part[...] = -1
    assert x.tolist() == [0, -1, -1, 3, 4, 5]
    assert whole.tolist() == HOST.tolist()


# ---- writes to shared memory


def _record(buffer: Any) -> Callable[[], object]:
    graph = vd.CommandGraph()
    negate(buffer, graph=graph)
    return graph.submit


def _thread(buffer: Any) -> None:
    other = threading.Thread(target=lambda: buffer.write(-HOST))
    other.start()
    other.join()


WRITES: dict[str, Callable[[Any], Callable[[], object]]] = {
    "write": lambda b: lambda: b.write(-HOST),
    "write_async": lambda b: lambda: b.write_async(-HOST).wait(),
    "write_range": lambda b: lambda: b.write_range(-HOST[2:], 2),
    "kernel": lambda b: lambda: negate(b),
    "kernel by name": lambda b: lambda: negate(data=b, queue_index=0),
    "kernel on a view": lambda b: lambda: negate(b.view(vd.float32)),
    "graph": _record,
    "copyto": lambda b: lambda: vd.copyto(b, vd.asbuffer(-HOST)),
    "out": lambda b: lambda: vd.sort(vd.asbuffer(-HOST), out=b),
    "another array": lambda b: lambda: vnp.asarray(b).fill(-1),
    "in place": lambda b: lambda: vd.random.Generator(1).shuffle(b),
    "another thread": lambda b: lambda: _thread(b),
}


@pytest.mark.parametrize("name", WRITES)
def test_expressions_on_buffers_are_lazy_and_keep_their_values(name: str) -> None:
    buffer = vd.asbuffer(HOST)
    write = WRITES[name](buffer)
    for _ in range(3):  # functions on arrays are repeated from the second time on
        before = buffer.read(0)
        y = vnp.asarray(buffer) + 1
        total = vnp.asarray(buffer.view(vd.float32)) * 2
        assert is_pending(y)
        write()
        assert not is_pending(y)
        np.testing.assert_array_equal(y.numpy(), before + 1)
        np.testing.assert_array_equal(total.numpy(), before * 2)
    assert not is_pending(y)
    np.testing.assert_array_equal((vnp.asarray(buffer) * 1).numpy(), buffer.read(0))


def test_transforms_in_place_compute_what_waits() -> None:
    buffer = vd.asbuffer(HOST.astype(np.complex64))
    y = vnp.asarray(buffer) * 2
    vd.fft.fft(buffer)
    np.testing.assert_array_equal(y.numpy(), HOST * 2)


def test_reading_a_buffer_computes_nothing() -> None:
    buffer, out = vd.asbuffer(HOST), vd.asbuffer(HOST)
    y = vnp.asarray(buffer) + 1
    graph = vd.CommandGraph()
    copy_out(buffer, out, graph=graph)
    copy_out(buffer, out)
    vd.sum(buffer)
    buffer.read(0)
    assert is_pending(y)
    out.write(HOST)
    assert is_pending(y)


def test_the_memory_of_an_array_is_lazy_once_it_is_given_away() -> None:
    x = array()
    y = x + 1
    buffer = vnp.asbuffer(x)
    z = x + 2
    assert is_pending(y)
    buffer.write(-HOST)
    assert y.tolist() == (HOST + 1).tolist()
    assert z.tolist() == (HOST + 2).tolist()
    assert x.tolist() == (-HOST).tolist()


def test_an_expression_on_a_buffer_that_is_gone_keeps_it() -> None:
    y = vnp.asarray(vd.asbuffer(HOST)) + 1
    gc.collect()
    assert y.tolist() == (HOST + 1).tolist()
    buffer = vd.asbuffer(HOST)
    z = vnp.asarray(buffer) + 1
    buffer.destroy()
    assert z.tolist() == (HOST + 1).tolist()
    with pytest.raises(RuntimeError, match="destroyed"):
        (vnp.asarray(z) + vnp.asarray(buffer)).numpy()


# ---- threads


def test_threads_share_expressions() -> None:
    x = array(np.arange(1000, dtype=np.float32))
    shared = [x + i for i in range(20)]
    failures: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            barrier.wait()
            for i, each in enumerate(shared):
                own = each * 2 + number
                if number % 2:
                    assert float(own[3]) == (3 + i) * 2 + number
                np.testing.assert_array_equal(own.numpy()[:4], (np.arange(4) + i) * 2 + number)
                assert float(each.sum()) == 1000 * 999 / 2 + 1000 * i
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_threads_write_what_others_wait_to_read() -> None:
    buffer = vd.asbuffer(np.zeros(64, np.float32))
    x = vnp.asarray(buffer)
    turn = threading.Lock()
    written = [0]
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with turn:
                written[0] += 1
                buffer.write(np.full(64, written[0], np.float32))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            with turn:
                pair, value = (x + 1, x * 2), written[0]
            # computed while the other thread writes
            assert float(pair[0].sum()) == 64 * (value + 1)
            np.testing.assert_array_equal(pair[1].numpy(), np.full(64, value * 2))
    finally:
        stop.set()
        writer.join()


_READS: tuple[Callable[[Any], Any], ...] = (
    lambda y: y.numpy(),
    lambda y: np.full(64, float(y.sum()) / 64),
    lambda y: np.full(64, float((y + 1).max()) - 1),
    lambda y: vnp.cumsum(y).numpy() / np.arange(1, 65),
    lambda y: vnp.sort(y).numpy(),
    lambda y: vnp.concatenate([y, y])[32:96].numpy(),
    lambda y: (y * 3 - y - y)[::-1].numpy(),
    lambda y: vd.sort(y, descending=True).numpy(),
)
_STORES: tuple[Callable[[Any, Any, float], object], ...] = (
    lambda x, buffer, value: x.fill(value),
    lambda x, buffer, value: x.__iadd__(value - float(x[0])),
    lambda x, buffer, value: x.__setitem__(slice(None), vnp.full(64, value, dtype=vnp.float32)),
    lambda x, buffer, value: x.__setitem__(vnp.arange(64), vnp.full(64, value, dtype=vnp.float32)),
    lambda x, buffer, value: buffer.write(np.full(64, value, np.float32)),
    lambda x, buffer, value: x.fill(value),
)


@pytest.mark.parametrize("is_shared", [False, True])
def test_values_given_to_other_threads_never_see_later_writes(is_shared: bool) -> None:
    failures: list[Any] = []
    inboxes: list[queue.Queue[Any]] = [queue.Queue(4) for _ in range(3)]

    def read(inbox: queue.Queue[Any], turn: int) -> None:
        while (item := inbox.get()) is not None:
            try:
                turn += 1
                way = turn % len(_READS)
                y, expected = item
                found = _READS[way](y)
                del item, y
                if not np.array_equal(found, np.full(64, expected, np.float32)):
                    failures.append((way, found, expected))
            except BaseException as error:
                failures.append(error)

    def compute(seed: int) -> None:
        try:
            buffer = vd.asbuffer(np.zeros(64, np.float32))
            x = vnp.asarray(buffer) if is_shared else vnp.asarray(np.zeros(64, np.float32))
            value = 0
            for i in range(60):
                y = x * 2
                for inbox in inboxes:
                    inbox.put((y, 2 * value))
                if i % 3 == 0:
                    float(y.sum())
                value = (i * 7 + seed) % 100
                ways = len(_STORES) - (not is_shared) * 2
                _STORES[(i + seed) % ways](x, buffer, value)
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        readers = [threading.Thread(target=read, args=each) for each in zip(inboxes, (0, 2, 5), strict=True)]
        writers = [threading.Thread(target=compute, args=(seed,)) for seed in range(3)]
        for thread in (*readers, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        for inbox in inboxes:
            inbox.put(None)
        for thread in readers:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures, failures[0]


def _in_thread(function: Callable[[], object]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_thread_may_write_while_another_gives_an_expression_to_a_function() -> None:
    x = array()
    operand = kernels.as_operand((x * 2)._value, (6,))
    _in_thread(lambda: x.fill(100))
    assert float(vd.sum(operand).read(0)) == HOST.sum() * 2
    assert x.tolist() == [100] * 6


def test_a_thread_that_gave_the_memory_to_a_function_too_may_write_it() -> None:
    x = array()
    operand = kernels.as_operand((x * 2)._value, (6,))

    def work() -> None:
        kernels.as_operand((x * 3)._value, (6,))
        x.fill(100)

    _in_thread(work)
    assert float(vd.sum(operand).read(0)) == HOST.sum() * 2
    assert x.tolist() == [100] * 6


def test_a_thread_may_write_a_buffer_while_another_gives_an_expression_to_a_function() -> None:
    buffer = vd.asbuffer(HOST)
    go = threading.Event()

    def write() -> None:
        go.wait()
        buffer.write(-HOST)

    writer = threading.Thread(target=write)
    writer.start()
    operand = kernels.as_operand((vnp.asarray(buffer) * 2)._value, (6,))
    go.set()
    writer.join()
    assert float(vd.sum(operand).read(0)) == HOST.sum() * 2


# ---- errors


def _fails(x: Any) -> Any:
    def compute(value: Any, kind: Any) -> Any:
        raise UnsupportedError("the device has none")

    loop = expressions.Loop(expressions.Operation("broken", compute), (x.dtype,), x.dtype)
    from vkdispatch.numpy.core.array import array_of

    return array_of(expressions.make_node(loop, (x._value,), x.shape, x.size))


def test_errors_name_the_operation_and_its_line_each_time() -> None:
    x = array()
    y = x * 2
    broken = _fails(y)
    line = sys._getframe().f_lineno - 1
    z = broken + 1
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=rf"none, in broken\(\) at test_laziness.py:{line}$"):
            z.numpy()
    with pytest.raises(UnsupportedError, match=r"in broken\(\) at test_laziness.py"):
        x += z
    assert y.tolist() == (HOST * 2).tolist()
    assert x.tolist() == HOST.tolist()


def test_errors_of_what_waits_come_to_its_user_and_not_to_the_writer() -> None:
    buffer = vd.asbuffer(HOST)
    y = _fails(vnp.asarray(buffer))
    z = y + 1
    buffer.write(-HOST)
    for each in (y, z, z, y):
        with pytest.raises(UnsupportedError, match=r"none, in broken\(\)"):
            each.numpy()


def test_too_large_results_name_their_line() -> None:
    x = vnp.broadcast_to(array()[0], (1 << 45,)) * 2
    line = sys._getframe().f_lineno - 1
    with pytest.raises(MemoryError, match=rf"in multiply\(\) at test_laziness.py:{line}"):
        x.numpy()


def test_a_failed_evaluation_succeeds_later(monkeypatch: pytest.MonkeyPatch) -> None:
    y = array() + 1
    check_evaluations(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(expressions, "_computing", [lambda *_: (_ for _ in ()).throw(MemoryError("no room"))])
        with pytest.raises(MemoryError, match=r"no room, in add\(\) at"):
            y.numpy()
    assert y.tolist() == (HOST + 1).tolist()


# ---- bounds


def test_long_chains_are_computed_in_parts() -> None:
    x = vnp.zeros(3, dtype=np.float32)
    for _ in range(10_000):
        x = x + 1
    assert x.tolist() == [10_000] * 3
    for _ in range(2_000):
        x += 1
    y = vnp.zeros(3, dtype=np.float32)
    for _ in range(2_000):
        y += 1  # nothing shows its memory, so it stays an expression
    assert x.tolist() == [12_000] * 3
    assert y.tolist() == [2_000] * 3


def test_dropped_inputs_are_not_kept(request: pytest.FixtureRequest) -> None:
    bounds = native.bound_expressions(96, 12, 4000)
    request.addfinalizer(lambda: native.bound_expressions(*bounds))
    kept = [array(np.ones(1000, np.float32)) for _ in range(9)]
    total = kept[0]
    for each in kept[1:]:
        total = total + each
    assert is_pending(total)  # all of them are alive anyway
    del kept, each
    total = array(np.ones(1000, np.float32))
    computed = 0
    for _ in range(9):
        total = total + array(np.ones(1000, np.float32))
        computed += not is_pending(total)
    assert computed >= 2
    assert total.tolist() == [10] * 1000


# ---- looking at it


def test_eval_computes_arrays_and_nothing_else() -> None:
    x = array()
    y, z, w = x + 1, x + 2, x + 3
    vnp.eval(y, [z])
    assert (is_pending(y), is_pending(z), is_pending(w)) == (False, False, True)
    with pytest.raises(TypeError, match="expected Arrays"):
        vnp.eval(HOST)


def test_explain_tells_kernels_bytes_and_lines() -> None:
    x = array(np.ones((100, 4), np.float32))
    row = array(np.ones(4, np.float32)) * 2
    y = (x[:, ::-1] - row) / x
    line = sys._getframe().f_lineno - 1
    mask = y > 0.5
    text = vnp.explain(mask)
    assert text.splitlines() == [
        "2 kernels: 3.16 KiB read, 416 B written",
        "kernel 1: float32 (4,), 16 B read, 16 B written",
        "    x0: float32 (4,)",
        f"    v0 = multiply(x0, 2.0)  test_laziness.py:{line - 1}",
        "kernel 2: bool (100, 4), 3.14 KiB read, 400 B written",
        "    x0: float32 (100, 4), strides (4, -1)",
        "    x1: float32 (100, 4)",
        f"    v0 = subtract(x0, the result of kernel 1)  test_laziness.py:{line}",
        f"    v1 = divide(v0, x1)                        test_laziness.py:{line}",
        f"    v2 = greater(v1, 0.5): bool                test_laziness.py:{line + 2}",
    ]
    assert is_pending(mask)
    vnp.eval(mask)
    assert vnp.explain(mask) == "nothing will run: bool (100, 4) is computed"
    with pytest.raises(TypeError, match="expected an Array"):
        vnp.explain(3)


def test_profiles_name_expressions_by_their_lines() -> None:
    x = array()
    with vd.profile() as profile:
        vnp.eval(x - 17)
        vnp.eval(x - 17)
        x[...] = x * 19
    line = sys._getframe().f_lineno - 3
    found = {row.name: row.source for row in profile.rows()}
    assert found["subtract"] == f"test_laziness.py:{line}, test_laziness.py:{line + 1}"
    assert found["multiply"] == f"test_laziness.py:{line + 2}"


def test_a_loop_that_reads_what_it_computes_needs_few_kernels() -> None:
    x, expected = array(), HOST.astype(np.float64)
    before = native.compile_count()
    for step in range(12):
        x, expected = vnp.cos(x) + 1, np.cos(expected) + 1
        np.testing.assert_allclose(float(x.sum()), expected.sum(), rtol=1e-5)
        if step == 5:
            before = native.compile_count()
    assert native.compile_count() == before
    cheap, dear = array() * 2, array()
    for _ in range(5):
        dear = dear * 2 + 1
    assert float(cheap.max()) == HOST.max() * 2 and float(cheap.min()) == HOST.min() * 2
    assert float(dear.max()) == HOST.max() * 32 + 31 and float(dear.min()) == HOST.min() * 32 + 31
    assert is_pending(cheap) and not is_pending(dear)  # what costs little is computed again where it is read


def test_a_warm_process_compiles_no_expression(run_python: Any, tmp_path: Path) -> None:
    code = """
import numpy as np, vkdispatch.numpy as vnp
from vkdispatch.base.native_module import native
x = vnp.asarray(np.arange(12, dtype='f4').reshape(3, 4))
y = (x * 2 + 1) / (x.T[0, 0] + 3)
vnp.eval(y, vnp.vectorize(lambda a: a * a + 1)(x))
x[:, ::2] = 5
x += y
print(x.numpy().sum() + (y > 1).sum().numpy(), native.compile_count())
"""
    first, second = (
        run_python(code, VKDISPATCH_CACHE=str(tmp_path / "cache")).stdout.split() for _ in range(2)
    )
    assert first[0] == second[0]
    assert int(first[1]) > 3
    assert int(second[1]) == 0
