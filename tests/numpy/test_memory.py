"""Memory that programs over arrays need: inputs, results, and little more; loops need no more over time."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.numpy.both import check_evaluations
from vkdispatch.base.buffer import Buffer
from vkdispatch.numpy.core import expressions

# Elements of an array, and its bytes: none that other tests use, so that no recorded call allocates unseen.
SIDE = 500
COUNT = SIDE * SIDE
UNIT = 4 * COUNT
SLACK = UNIT // 8


def in_use() -> int:
    return vd.get_context()._native.statistics()["device_memory"]


def real(*shape: int) -> Any:
    return vnp.asarray(np.random.default_rng(len(shape)).random(shape or COUNT, np.float32) + np.float32(0.5))


@pytest.fixture
def peak(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., float]]:
    """Return the most memory that a program takes beyond its arguments at any time, in arrays."""
    check_evaluations(monkeypatch)
    most = [0]
    allocate = Buffer._allocate
    (compute,) = expressions._computing

    def count(self: Any, for_device: bool) -> None:
        allocate(self, for_device)
        most[0] = max(most[0], in_use())

    def count_computed(*arguments: Any) -> Any:
        view = compute(*arguments)
        most[0] = max(most[0], in_use())
        return view

    def measure(program: Callable[..., Any], *arguments: Any) -> float:
        # once before: what a context keeps for all calls, such as staging memory, depends on the device
        vnp.eval(program(*arguments))
        vd.get_context().calls.clear()  # recorded calls allocate unseen
        vd.queue_wait_idle()
        gc.collect()
        before = most[0] = in_use()
        result = program(*arguments)
        vnp.eval(result)
        most[0] = max(most[0], in_use())
        del result
        vd.queue_wait_idle()
        gc.collect()
        assert in_use() - before < SLACK, "a call keeps memory each time"
        return (most[0] - before) / UNIT

    monkeypatch.setattr(Buffer, "_allocate", count)
    expressions.compute_with(count_computed)
    yield measure
    expressions.compute_with(compute)


def chain(length: int) -> Callable[[Any], Any]:
    def compute(x: Any) -> Any:
        for i in range(length):
            x = x * 1.0001 + i
        return x

    return compute


def fan(x: Any) -> Any:
    y = vnp.exp(x)
    return (y + 1) * (y * 2) + (y - 3) / y


def deep(x: Any) -> Any:
    y = x
    for _ in range(40):
        y = y * y + x * y - 0.5 * y
    return y


def tree(x: Any) -> Any:
    values = [x + i for i in range(64)]
    while len(values) > 1:
        values = [a * b for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def loop(x: Any, a: Any, b: Any) -> Any:
    for _ in range(1000):
        x = x * a + b
    return x


def overwrite(x: Any, a: Any, b: Any) -> Any:
    for _ in range(100):
        x *= a
        x += b
        x[1:] = x[1:] - b[1:]
    return x


def softmax(x: Any) -> Any:
    e = vnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def black_scholes(price: Any, strike: Any, years: Any) -> Any:
    root = vnp.sqrt(years)
    d1 = (vnp.log(price / strike) + 0.065 * years) / (0.3 * root)
    d2 = d1 - 0.3 * root

    def normal(d: Any) -> Any:
        k = 1 / (1 + 0.2316419 * abs(d))
        upper = vnp.exp(-0.5 * d * d) * k * (0.127 + k * (-0.142 + k * (0.71 + k * (-0.727 + k * 0.53))))
        return vnp.where(d > 0, 1 - upper, upper)

    return price * normal(d1) - strike * vnp.exp(-0.02 * years) * normal(d2)


def heat(u: Any) -> Any:
    for _ in range(10):
        inner = u[1:-1, 1:-1]
        u[1:-1, 1:-1] = inner + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner)
    return u


def nearest(x: Any, centres: Any) -> Any:
    return ((x[:, None] - centres[None]) ** 2).sum(-1)


def solve(x: Any, y: Any) -> Any:
    return vnp.linalg.solve(x + SIDE * vnp.eye(SIDE, dtype=vnp.float32), y)


# What a program may take: its result, what it must keep at once, and scratch memory of functions.
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], float]] = {
    "ten operations": (chain(5), [()], 1),
    "hundred operations": (chain(50), [()], 2),
    "operations used several times": (fan, [()], 1),
    "a deep graph": (deep, [()], 2),
    "a tree": (tree, [()], 2),
    "thirty inputs": (lambda *xs: sum(x * 2 for x in xs), [()] * 30, 2),
    "a loop": (loop, [()] * 3, 2),
    "a loop in place": (overwrite, [()] * 3, 1),
    "softmax": (softmax, [(SIDE, SIDE)], 1),
    "Black-Scholes": (black_scholes, [()] * 3, 1),
    "a stencil in place": (heat, [(SIDE, SIDE)], 1),
    "k-means": (nearest, [(COUNT // 10, 10), (10, 10)], 1),
    "columns": (lambda x: ((x - x.mean(0)) / x.std(0)).sum(0), [(SIDE, SIDE)], 0),
    "cumsum of an expression": (lambda x: vnp.cumsum(x * 2 + 1), [()], 1),
    "sort": (vnp.sort, [()], 2.5),
    "unique": (vnp.unique, [()], 2.5),
    "argsort": (vnp.argsort, [()], 6.5),  # the result, of int64, is two of it
    "fft": (vnp.fft.fft2, [(SIDE, SIDE)], 4.5),  # the result, of complex64, is two of it
    "solve": (solve, [(SIDE, SIDE), (SIDE,)], 3.5),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_needs_little_more_than_its_result(name: str, peak: Callable[..., float]) -> None:
    program, shapes, most = PROGRAMS[name]
    assert peak(program, *(real(*shape) for shape in shapes)) <= most + SLACK / UNIT


def test_a_dropped_expression_frees_what_it_read() -> None:
    gc.collect()
    before = in_use()
    y = real() * 2
    z = y + 1
    del y
    assert in_use() - before >= UNIT  # the expression keeps its input
    del z
    assert in_use() - before < SLACK


def test_readers_that_are_gone_are_forgotten() -> None:
    x = real(10) + 0
    y = x * 2  # not computed
    for i in range(5000):
        _ = y + i
    assert isinstance(y._value, expressions.Node)
    assert len(y._value.readers) <= 128


_LOOP = """
import gc
import numpy as np, vkdispatch as vd, vkdispatch.numpy as vnp

x = vnp.asarray(np.ones(1000, np.float32))
a, b = x + 1, x * 0.5
engine = vd.get_context()._native
state = {"x": x + 0}

def step(i):
    state["x"] = state["x"] * 0.5 + b
    x[...] = x * 0.5 + i % 7
    x[i % 1000] = i
    state["dropped"] = x * i + a
    state["sum"] = (a * (i % 10)).sum()
    state["part"] = a[: i % 100 + 1] * 2 + state["sum"]

def measure():
    vd.queue_wait_idle()
    gc.collect()
    found = engine.statistics()
    memory = found["device_memory"] + found["idle_memory"]
    resident = int(open("/proc/self/statm").read().split()[1]) * 4096
    return memory, found["live_objects"], resident

for i in range(3000):
    step(i)
before = measure()
for i in range(10_000):
    step(i)
print(*(now - was for now, was in zip(measure(), before)))
"""


def test_a_loop_of_ten_thousand_rounds_grows_nothing(run_python: Any) -> None:
    device, objects, host = map(int, run_python(_LOOP).stdout.split())
    # an array has 4000 bytes; beside them, the engine and the driver have memory for what is queued
    assert device <= 1 << 20
    assert objects <= 2
    assert host < 16 << 20
