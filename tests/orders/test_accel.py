"""Asynchronous runs: order, waits, errors, and invalid calls."""

from __future__ import annotations

import gc
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.orders import Accel, Order, OrderRunError

# It waits for a flag, so that the tests do not depend on time.
WAITS = """
set_argnames("gate", ("log", "count"))
[cpp]
#include <unistd.h>
    const volatile int64_t *const flag = &gate(0);
    while (*flag <= ACCELPY_ACCEL_RUNID) usleep(200);
    log(count) = ACCELPY_ACCEL_RUNID;
    count++;
"""
RAISES = """
set_argnames("x", "y")
[cpp]
#include <stdexcept>
    y(0) = 5;
    if (x < 0) throw std::invalid_argument("x is below zero");
    if (x > 9) throw 3;
"""


class Gate:
    """An order that waits for `open`: run n continues once it exceeds n."""

    def __init__(self) -> None:
        self.gate = np.zeros(1, np.int64)
        self.log = np.full(8, -1)
        self.count = np.zeros((), np.int64)
        self.accel = Accel(self.gate, Order(WAITS), self.log, self.count, kind="cpp")


@pytest.fixture
def gate() -> Any:
    made = Gate()
    yield made
    made.gate[0] = 99
    made.accel.stop(timeout=60)


def test_runs_are_asynchronous_and_in_order(gate: Gate) -> None:
    ids = [gate.accel.run() for _ in range(3)]
    assert ids == [0, 1, 2]
    assert gate.accel.isbusy()
    assert gate.count == 0
    gate.gate[0] = 1
    gate.accel.wait(0, 60)
    assert gate.log.tolist()[:2] == [0, -1]
    with pytest.raises(vd.WaitTimeoutError, match="run 1 has not ended"):
        gate.accel.wait(1, 0.01)
    with pytest.raises(vd.WaitTimeoutError, match="it continues"):
        gate.accel.stop(timeout=0.01)
    assert gate.accel.isbusy()
    assert "busy" in repr(gate.accel)
    gate.gate[0] = 3
    gate.accel.stop()
    assert gate.log.tolist()[:4] == [0, 1, 2, -1]
    assert not gate.accel.isbusy()
    assert "idle" in repr(gate.accel)
    # ids continue after a stop, and earlier runs have ended
    assert gate.accel.run() == 3
    gate.accel.wait(0)
    with pytest.raises(vd.ArgumentValueError, match="there is no run 4; run returned 0 to 3"):
        gate.accel.wait(4)


def test_a_run_of_another_channel_overtakes() -> None:
    text = """
    set_argnames("gate", "log")
    [cpp]
    #include <unistd.h>
        const volatile int64_t *const flag = &gate(0);
        if (ACCELPY_ACCEL_RUNID == 0) while (*flag == 0) usleep(200);
        log(ACCELPY_ACCEL_RUNID) = 1;
    """
    gate, log = np.zeros(1, np.int64), np.zeros(3, np.int64)
    accel = Accel(gate, Order(text), log)
    slow, fast = accel.run(), accel.run(channel=7)
    accel.wait(fast, 60)
    assert log.tolist() == [0, 1, 0]
    gate[0] = 1
    accel.wait(slow, 60)
    accel.stop()
    assert log.tolist() == [1, 1, 0]


def test_the_timeout_of_a_run(gate: Gate) -> None:
    run_id = gate.accel.run(timeout=0.02)
    for call in (lambda: gate.accel.wait(run_id), gate.accel.stop, lambda: gate.accel.stop(timeout=10)):
        with pytest.raises(vd.WaitTimeoutError):
            call()
    gate.gate[0] = 1
    # its timeout has passed, but it has ended
    while gate.accel.isbusy():
        time.sleep(0.001)
    gate.accel.wait(run_id)
    gate.accel.stop()
    assert gate.count == 1


@pytest.mark.parametrize(
    "told",
    [lambda a: a.wait(0), lambda a: a.stop(), lambda a: a.output[0], lambda a: a.__exit__(None, None, None)],
)
def test_waits_raise_the_error_of_a_run(told: Callable[[Accel], object]) -> None:
    y = np.zeros(1)
    accel = Accel(-1.0, Order(RAISES), y)
    accel.run()
    with pytest.raises(OrderRunError, match="cpp: x is below zero"):
        told(accel)
    accel.stop()  # once
    assert y[0] == 5
    accel.run()
    with pytest.raises(OrderRunError):
        accel.stop()


def test_every_wait_for_a_failed_run_raises() -> None:
    accel = Accel(-1.0, Order(RAISES), np.zeros(1))
    run_id = accel.run()
    told = []

    def wait() -> None:
        with pytest.raises(OrderRunError, match="cpp: x is below zero"):
            accel.wait(run_id)
        told.append(run_id)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait()
    assert told == [run_id] * 5
    accel.stop()  # raises, as nobody has waited


@pytest.mark.parametrize("end", [lambda accel: accel.stop(), lambda accel: accel.output[0]])
def test_an_interrupt_keeps_the_outputs(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[Accel], object]
) -> None:
    y = np.zeros((4, 2))[:, 0]  # not contiguous: outputs are copied back
    accel = Accel(1.0, Order(RAISES), y, kind="cpp")
    accel.run()
    accel.wait(0)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(type(accel._placed.placement), "fetch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            end(accel)
    assert y[0] == 0
    end(accel)
    assert y[0] == 5


def test_any_thrown_object_is_an_error() -> None:
    accel = Accel(10.0, Order(RAISES), np.zeros(1))
    accel.run()
    with pytest.raises(OrderRunError, match="an exception of the body"):
        accel.stop()


@pytest.mark.parametrize(
    "body", ["throw std::bad_alloc();", "#pragma omp parallel\n{}\nthrow std::bad_alloc();"]
)
def test_exceptions_in_parallel_bodies(body: str) -> None:
    accel = Accel(Order(f"[openmp_cpp]\n#include <new>\n{body}\n"), np.zeros(1))
    for _ in range(2):
        accel.run(2)
        with pytest.raises(OrderRunError, match="openmp_cpp: std::bad_alloc"):
            accel.stop()


def test_numpy_scalars_as_arguments() -> None:
    y = np.zeros(3)
    accel = Accel(FINE, COPY, y, kind="cpp", verify=np.float32(0))
    run_id = accel.run(np.int64(2), device=np.int32(0), channel=np.uint8(1), timeout=np.float32(60))
    accel.wait(np.int64(run_id), timeout=np.int64(60))
    accel.stop(np.int64(run_id), np.True_, np.float64(60))
    accel.stop(timeout=np.float64(60))


def test_an_error_in_the_block_has_precedence() -> None:
    accel = Accel(-1.0, Order(RAISES), np.zeros(1))
    with pytest.raises(KeyError), accel:
        accel.run()
        raise KeyError
    assert not accel.isbusy()
    with accel as same:
        assert same is accel


ADD_ONE = 'set_argnames("x", "y")\n[cpp]\nfor (int i = 0; i < x.size; i++) y(i) += x(i);\n'


def test_outputs_between_runs() -> None:
    x, y = np.arange(5.0), np.zeros(10)[::2]
    accel = Accel(x, Order(ADD_ONE), y)
    accel.run()
    np.testing.assert_array_equal(accel.output, x)
    accel.run()
    accel.run()
    np.testing.assert_array_equal(accel.output, 3 * x)
    accel.stop()
    x += 1  # a later run uses the new input
    accel.run()
    accel.stop()
    np.testing.assert_array_equal(y, 4 * np.arange(5.0) + 1)


def test_any_number_of_outputs() -> None:
    a, b = np.zeros(2), np.zeros(3)
    order = Order("[cpp]\naccelpy_out0(0) = 1;\naccelpy_out1(2) = 2;\n")
    accel = Accel(order, a, b)
    accel.run()
    assert accel.output == (a, b)
    assert (a[0], b[2]) == (1, 2)
    nothing = Accel(1, Order("[cpp]\n"))
    nothing.run()
    assert nothing.output == ()
    assert nothing.stop() is None  # type: ignore[func-returns-value]


def test_inputs_can_be_outputs() -> None:
    x = np.arange(4)
    with Accel(x, Order(ADD_ONE), x) as accel:
        accel.run()
    assert x.tolist() == [0, 2, 4, 6]


def test_buffers_as_arguments() -> None:
    x, y = vd.asbuffer(np.arange(6, dtype=np.float32)), vd.asbuffer(np.ones(6, np.float32))
    pairs, sums = vd.Buffer((3,), vd.vec2), np.zeros(3, np.float32)
    pairs.write(np.arange(6, dtype=np.float32).reshape(3, 2))
    with Accel(x, Order(ADD_ONE), y, kind="cpp") as accel:
        accel.run()
        accel.run()
        np.testing.assert_array_equal(accel.output.read(0), y.read(0))
        assert isinstance(accel.output, vd.Buffer)
    assert y.read(0).tolist() == [1, 3, 5, 7, 9, 11]
    text = 'set_argnames("p", "s")\n[cpp]\nfor (int i = 0; i < p.shape[0]; i++) s(i) = p(i, 0) * p(i, 1);\n'
    with Accel(pairs, Order(text), sums) as accel:
        accel.run()
    assert sums.tolist() == [0, 6, 20]


def test_many_threads_share_one_accel() -> None:
    total = np.zeros(1, np.int64)
    accel = Accel(1, Order('set_argnames("x", "y")\n[cpp]\ny(0) += x;\n'), total)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                accel.run()
                accel.stop()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accel.stop()
    assert errors == []
    assert total[0] == 160


def test_a_deleted_accel_frees_its_arrays() -> None:
    y = np.zeros(100_000)
    for _ in range(20):
        Accel(np.ones(100_000), Order(ADD_ONE), y).run()
        gc.collect()
    last = Accel(np.ones(100_000), Order(ADD_ONE), y)
    last.run()
    last.stop()


def test_python_exits_after_unfinished_runs(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_python("""
import os, numpy as np
from vkdispatch.orders import Accel, Order
text = '''
set_argnames("gate", "y")
[cpp]
#include <unistd.h>
const volatile int64_t *const flag = &gate(0);
while (*flag == 0) usleep(200);
usleep(50000);
for (int i = 0; i < 100000; i++) y(i) = 1;
std::printf("made\\\\n");
std::fflush(stdout);
'''
gate = np.zeros(1, np.int64)
Accel(gate, Order(text), np.zeros(100000)).run()
print("ends", flush=True)
gate[0] = 1
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\nmade\n", "")


def test_a_child_of_a_fork_runs_orders(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python("""
import os, numpy as np
from vkdispatch.orders import Accel, Order
y = np.zeros(3)
accel = Accel(Order("[cpp]\\nfor (int i = 0; i < 3; i++) accelpy_out0(i) += 1;\\n"), y)
accel.run(); accel.stop()
child = os.fork()
accel.run(); accel.stop()
assert y.tolist() == [2, 2, 2]
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    os._exit(0)
print("both")
""")
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr


def test_a_child_of_a_fork_has_no_unfinished_runs(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_python("""
import os, numpy as np
from vkdispatch.orders import Accel, Order
text = '''
set_argnames("gate", "y")
[cpp]
#include <unistd.h>
const volatile int64_t *const flag = &gate(0);
while (*flag == 0) usleep(200);
y(0) += 1;
'''
gate, y = np.zeros(1, np.int64), np.zeros(3)
accel = Accel(gate, Order(text), y)
accel.run()
child = os.fork()
if child:
    gate[0] = 1
    accel.stop()
    assert y[0] == 1 and os.waitpid(child, 0)[1] == 0
else:
    try:
        accel.stop()
    except RuntimeError as error:
        assert "belongs to the parent" in str(error)
        os._exit(0)
    os._exit(1)
""")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


READ_ONLY = np.zeros(3)
READ_ONLY.flags.writeable = False
COPY = Order('set_argnames("x", "y")\n[cpp]\ny(0) = x(0);\n')
FINE = np.zeros(3)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: Accel(), TypeError, "expected one Order"),
        (lambda: Accel(FINE, "[cpp]\n", FINE), TypeError, "expected one Order.*got 0"),
        (lambda: Accel(COPY, COPY), TypeError, "expected one Order.*got 2"),
        (lambda: Accel(FINE, FINE, COPY, FINE), ValueError, r"names 1 inputs \(x\), got 2 before"),
        (lambda: Accel(FINE, COPY), ValueError, r"names 1 outputs \(y\), got 0 after"),
        (lambda: Accel(FINE, COPY, (0, 0)), TypeError, "output 'y' .* expected a NumPy array.*got tuple"),
        (lambda: Accel(FINE, COPY, 3), TypeError, "output 'y' .* expected a NumPy array"),
        (lambda: Accel(FINE, COPY, np.float64(1)), TypeError, "output 'y' .* expected a NumPy array"),
        (lambda: Accel(FINE, COPY, READ_ONLY), ValueError, "output 'y' .* read-only"),
        (lambda: Accel("text", COPY, FINE), TypeError, "input 'x' .* got the dtype <U4"),
        (lambda: Accel(None, COPY, FINE), TypeError, "input 'x' .* got the dtype object"),
        (lambda: Accel([[1], [1, 2]], COPY, FINE), TypeError, "input 'x' .* cannot convert it"),
        (lambda: Accel(np.zeros(3, np.longdouble), COPY, FINE), TypeError, "input 'x' .* float128"),
        (lambda: Accel(np.zeros(3, "M8[s]"), COPY, FINE), TypeError, "input 'x' .* datetime64"),
        (lambda: Accel(FINE, COPY, np.zeros(3, "i4,f4")), TypeError, "output 'y' .* got the dtype"),
        (lambda: Accel(FINE, COPY, FINE, kind="cp"), ValueError, "no model 'cp'; did you mean cpp"),
        (lambda: Accel(FINE, COPY, FINE, kind="vulkan3d"), ValueError, "no model 'vulkan3d'; there are cuda"),
        (lambda: Accel(FINE, COPY, FINE, kind="fortran"), ValueError, "fortran is not in the order"),
        (lambda: Accel(FINE, COPY, FINE, kind=[]), ValueError, "kind: expected the name of a model"),
        (lambda: Accel(FINE, COPY, FINE, kind=3), TypeError, "kind: expected the name"),
        (lambda: Accel(FINE, COPY, FINE, kind=[3]), TypeError, "kind: expected the name"),
        (lambda: Accel(FINE, COPY, FINE, compile=3), TypeError, "compile: expected a compiler command"),
        (lambda: Accel(FINE, COPY, FINE, compile=""), ValueError, "compile: expected a command"),
        (
            lambda: Accel(FINE, COPY, FINE, compile="g++ 'a"),
            ValueError,
            "compile: .* is not a valid command: no closing",
        ),
        (lambda: Accel(FINE, COPY, FINE, kind="CPP"), ValueError, "no model 'CPP'; did you mean cpp"),
        (lambda: Accel(FINE, COPY, FINE, debug=1), TypeError, "debug: expected True or False, got 1"),
        (lambda: Accel(FINE, COPY, FINE, verify=10**400), ValueError, "verify: expected a tolerance"),
        (lambda: Accel(FINE, COPY, FINE, verify="yes"), TypeError, "verify: expected True, False or"),
        (lambda: Accel(FINE, COPY, FINE, verify=-1), ValueError, "verify: expected a tolerance"),
        (lambda: Accel(FINE, COPY, FINE, verify=float("nan")), ValueError, "verify: expected a tolerance"),
        (lambda: Accel(Order("[cpp: enable=False]\n")), ValueError, "every section .* enable=False"),
        (
            lambda: Accel(Order("[cpp]\n[fortran: enable=0]\n"), kind="fortran"),
            ValueError,
            "fortran is disabled",
        ),
        (lambda: Accel(Order("[cpp: wide=1]\n")), ValueError, "<order>:1: there is no option 'wide'"),
    ],
)
def test_invalid_arguments_of_accel(make: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        make()
    assert isinstance(caught.value, vd.VkDispatchError)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda a: a.run(1, 2, 3, 4), TypeError, "members, teams and assignments at most, got 4"),
        (lambda a: a.run(2.5), TypeError, "members: expected an int or a tuple"),
        (lambda a: a.run(True), TypeError, "members: expected an int or a tuple"),
        (lambda a: a.run(1, "3"), TypeError, "teams: expected an int or a tuple"),
        (lambda a: a.run(1, 1, None), TypeError, "assignments: expected an int"),
        (lambda a: a.run(-1), ValueError, "members: expected 0 or more, got -1"),
        (lambda a: a.run(()), ValueError, "members: expected an int or a tuple of one to three"),
        (lambda a: a.run((1, 2, 3, 4)), ValueError, "members: expected an int or a tuple of one to three"),
        (lambda a: a.run(1, 2**31), ValueError, "teams: expected at most 2147483647"),
        (lambda a: a.run((2**16, 2**16)), ValueError, "members: expected at most"),
        (lambda a: a.run(device=-1), ValueError, "device: expected an int from 0"),
        (lambda a: a.run(device=1), ValueError, "device: cpp has 1 devices here, counted from 0, got 1"),
        (lambda a: a.run(device="0"), TypeError, "device: expected an int"),
        (lambda a: a.run(channel=-1), ValueError, "channel: expected an int"),
        (lambda a: a.run(channel=0.0), TypeError, "channel: expected an int"),
        (lambda a: a.run(timeout=-1), ValueError, "timeout: expected seconds"),
        (lambda a: a.run(timeout="1"), TypeError, "timeout: expected seconds"),
        (lambda a: a.stop(timeout="1"), TypeError, "timeout: expected seconds"),
        (lambda a: a.stop(timeout=float("nan")), ValueError, "timeout: expected seconds"),
        (lambda a: a.stop(60), ValueError, "run_id: there is no run 60; run returned none yet. .*timeout="),
        (lambda a: a.stop(0.5), TypeError, "run_id: expected an id returned by run"),
        (lambda a: a.stop(output=3), TypeError, "output: expected a list or tuple .* got int"),
        (lambda a: a.stop(output=[FINE, FINE]), ValueError, r"output: expected 1 \(y\), got 2"),
        (
            lambda a: a.stop(output=np.zeros(4)),
            ValueError,
            r"output\[0\], for 'y': expected the shape \(3,\)",
        ),
        (lambda a: a.stop(output=np.zeros(3, int)), TypeError, "int64 cannot hold all results of float64"),
        (lambda a: a.stop(output=READ_ONLY), ValueError, "output.*read-only"),
        (lambda a: a.wait(0), ValueError, "run_id: there is no run 0; run returned none yet"),
        (lambda a: a.wait("0"), TypeError, "run_id: expected an id returned by run.*'0'"),
        (lambda a: a.wait([]), ValueError, "run_id: expected an id, got an empty list"),
        (lambda a: a.wait([None, 0]), TypeError, "run_id: expected an id returned by run"),
        (lambda a: a.wait(False), TypeError, "run_id: expected an id returned by run.*False"),
        (lambda a: a.output(), ValueError, "run_id: there is no run 0"),
        (lambda a: a.output(None, force=2), TypeError, "force: expected True or False, got 2"),
        (lambda a: a.output(None, timeout="1"), TypeError, "timeout: expected seconds"),
        (lambda a: a.output(None, output=FINE.reshape(3, 1)), ValueError, "output.*expected the shape"),
        (lambda a: a.run(inputs=FINE), TypeError, "inputs: expected a list or tuple .* x, got ndarray"),
        (lambda a: a.run(inputs=[]), ValueError, r"inputs: expected 1 \(x\), got 0"),
        (lambda a: a.run(inputs=["text"]), TypeError, r"inputs\[0\], 'x': .* got the dtype"),
        (lambda a: a.run(outputs=[FINE, FINE]), ValueError, r"outputs: expected 1 \(y\), got 2"),
        (
            lambda a: a.run(outputs=[(0, 0)]),
            TypeError,
            r"outputs\[0\], 'y': expected a NumPy array or a list",
        ),
        (lambda a: a.run(outputs=[READ_ONLY]), ValueError, r"outputs\[0\], 'y': this array is read-only"),
        (lambda a: a.swap(None), TypeError, "kind: expected the name"),
        (lambda a: a.swap("fortran"), ValueError, "fortran is not in the order"),
        (lambda a: a.race(0), ValueError, "has no workers"),
        (lambda a: a.race(1, repeats=0), ValueError, "repeats: expected 1 or more"),
        (lambda a: a.race(1, repeats=1.5), TypeError, "repeats: expected an int"),
    ],
)
def test_invalid_arguments_of_methods(call: Any, kind: type[Exception], said: str) -> None:
    accel = Accel(FINE, COPY, np.zeros(3), kind="cpp")
    with pytest.raises(kind, match=said) as caught:
        call(accel)
    assert isinstance(caught.value, vd.VkDispatchError)
    assert not accel.isbusy()
    accel.run()
    accel.stop()
