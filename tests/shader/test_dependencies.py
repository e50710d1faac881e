"""A kernel is traced again when something that it read from outside has another value at a later call."""

import functools
import gc
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.errors import KernelWarning
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32, i32

SCALE: Any = 2.0
COUNT = 0
KIND: Any = f32
TABLE: Any = [1.0, 2.0, 3.0]
CONFIG = types.ModuleType("config")
HELPER: Any = None


def call(kernel: Any, value: float = 1.0) -> float:
    """Return what a kernel makes of a number."""
    x = vd.asbuffer(np.full(3, value, np.float32))
    kernel(x)
    found = x.read(0)
    assert (found == found[0]).all()
    return float(found[0])


def index() -> Any:
    return vc.global_invocation_id().x


def make(function: Callable[[Any], Any]) -> Any:
    """Make a kernel that applies a function to each element."""

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] = function(x[index()])

    return kernel


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCALE", "COUNT", "KIND", "HELPER"):
        monkeypatch.setattr(sys.modules[__name__], name, globals()[name])
    monkeypatch.setattr(sys.modules[__name__], "TABLE", [1.0, 2.0, 3.0])
    CONFIG.__dict__.update(ALPHA=2.0, inner=types.SimpleNamespace(beta=3.0))


def test_a_global_variable() -> None:
    global SCALE

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] *= SCALE

    for SCALE in (2.0, 3, np.float32(4), 2.0):
        assert call(kernel) == SCALE
        assert call(kernel, 3.0) == 3 * SCALE
        x = np.full(2, 5, np.float32)
        kernel.interpret(x)
        assert (x == 5 * SCALE).all()
    SCALE = 0.25
    assert "0.25" in kernel.get_src().code


def test_equal_states_are_not_traced_twice() -> None:
    global SCALE
    traces: list[float] = []

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        traces.append(SCALE)
        x[index()] *= SCALE

    for SCALE in (2.0, 3.0, 2.0, float("2"), 3.0, 2.0):
        assert call(kernel) == SCALE
        assert call(kernel) == SCALE
    assert traces == [2.0, 3.0]


def test_a_closure() -> None:
    scale = 2.0

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        def inner(value: Any) -> Any:
            return value * scale

        x[index()] = inner(x[index()])

    assert call(kernel) == 2
    scale = 3.0
    assert call(kernel) == 3


def test_helpers_with_their_globals_closures_and_defaults() -> None:
    global SCALE
    offset = 1.0

    def third(value: Any, *, more: Any = 10.0) -> Any:
        return value * SCALE + offset + more

    def second(value: Any, factor: Any = 4.0) -> Any:
        return third(value) * factor

    kernel = make(lambda value: second(value))
    assert call(kernel) == (2 + 1 + 10) * 4
    SCALE = 3.0
    assert call(kernel) == (3 + 1 + 10) * 4
    offset = 2.0
    assert call(kernel) == (3 + 2 + 10) * 4
    second.__defaults__ = (8.0,)
    assert call(kernel) == (3 + 2 + 10) * 8
    assert third.__kwdefaults__
    third.__kwdefaults__["more"] = 20.0
    assert call(kernel) == (3 + 2 + 20) * 8
    third.__kwdefaults__ = {"more": 30.0}
    assert call(kernel) == (3 + 2 + 30) * 8


def test_a_helper_that_is_defined_again() -> None:
    globals()["HELPER"] = lambda value: value + 1

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] = HELPER(x[index()])

    assert call(kernel) == 2
    globals()["HELPER"] = lambda value: value + 2
    assert call(kernel) == 3
    # as autoreload does
    HELPER.__code__ = (lambda value: value + 4).__code__
    assert call(kernel) == 5


def test_attributes_of_modules() -> None:
    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] *= CONFIG.ALPHA * CONFIG.inner.beta

    assert call(kernel) == 6
    CONFIG.ALPHA = 4.0  # type: ignore[attr-defined]
    assert call(kernel) == 12
    CONFIG.inner.beta = 5.0  # type: ignore[attr-defined]
    assert call(kernel) == 20
    CONFIG.inner = types.SimpleNamespace(beta=0.5)  # type: ignore[attr-defined]
    assert call(kernel) == 2


def test_dtypes() -> None:
    global KIND

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] = (x[index()] * 1.5).to_dtype(KIND).to_dtype(f32)

    assert call(kernel) == 1.5
    KIND = i32
    assert call(kernel) == 1


@dataclass
class Parameters:
    gain: float = 2.0
    parts: list[float] = field(default_factory=lambda: [1.0, 2.0])

    def apply(self, value: Any) -> Any:
        return value * self.gain + SCALE

    @property
    def twice(self) -> float:
        return 2 * self.gain


class Slotted:
    __slots__ = ("gain",)
    shared = 3.0

    def __init__(self) -> None:
        self.gain = 2.0


class Pair(NamedTuple):
    first: float
    rest: list[float]


class Settings:
    gain = 2.0

    @staticmethod
    def bias() -> float:
        return float(SCALE)

    @classmethod
    def both(cls) -> float:
        return cls.gain


def test_objects_and_classes() -> None:
    global SCALE
    parameters, slotted = Parameters(), Slotted()

    def helper(value: Any, p: Any) -> Any:
        return value * p.gain

    cases: list[tuple[Any, Callable[[], None], float, float]] = [
        (lambda v: v * parameters.gain, lambda: setattr(parameters, "gain", 3.0), 2, 3),
        (lambda v: helper(v, parameters), lambda: setattr(parameters, "gain", 4.0), 3, 4),
        (lambda v: parameters.apply(v), lambda: setattr(parameters, "gain", 5.0), 6, 7),
        (lambda v: v * parameters.twice, lambda: setattr(parameters, "gain", 6.0), 10, 12),
        (
            lambda v: v * parameters.parts[1],
            lambda: parameters.parts.append(0) or parameters.parts.reverse(),
            2,
            2,
        ),
        (lambda v: v * parameters.parts[0], lambda: parameters.parts.insert(0, 9.0), 0, 9),
        (lambda v: v * slotted.gain, lambda: setattr(slotted, "gain", 3.0), 2, 3),
        (lambda v: helper(v, slotted), lambda: setattr(slotted, "gain", 4.0), 3, 4),
        (lambda v: v * slotted.shared, lambda: setattr(Slotted, "shared", 7.0), 3, 7),
        (lambda v: v * Settings.gain, lambda: setattr(Settings, "gain", 7.0), 2, 7),
        (lambda v: v * Settings.both(), lambda: setattr(Settings, "gain", 8.0), 7, 8),
        (lambda v: v * Settings().gain, lambda: setattr(Settings, "gain", 9.0), 8, 9),
    ]
    for function, change, before, after in cases:
        kernel = make(function)
        assert call(kernel) == before
        change()
        assert call(kernel) == after
    for function in (lambda v: parameters.apply(v) - v * parameters.gain, lambda v: v * Settings.bias()):
        SCALE = 2.0
        kernel = make(function)
        assert call(kernel) == 2
        SCALE = 3.0
        assert call(kernel) == 3


CONTAINERS: list[tuple[Any, Callable[[Any], Any], Callable[[Any], Any], float, float]] = [
    ([1.0, 2.0], lambda c: c[0] + c[1], lambda c: c.__setitem__(1, 5.0), 3, 6),
    ([1.0, 2.0], lambda c: sum(c), lambda c: c.append(4.0), 3, 7),
    ({"a": 1.0}, lambda c: c["a"], lambda c: c.__setitem__("a", 5.0), 1, 5),
    ({"a": 1.0}, lambda c: sum(c.values()), lambda c: c.update(b=5.0), 1, 6),
    ({"a": lambda v: v + 1.0}, lambda c: c["a"](1.0), lambda c: c.update(a=lambda v: v + 2.0), 2, 3),
    (({"a": [1.0]},), lambda c: c[0]["a"][0], lambda c: c[0]["a"].__setitem__(0, 5.0), 1, 5),
    (Pair(1.0, [2.0]), lambda c: c.first + c.rest[0], lambda c: c.rest.insert(0, 5.0), 3, 6),
    ({1.0, 2.0}, lambda c: sum(c), lambda c: c.add(4.0), 3, 7),
    (deque([1.0]), lambda c: c[0], lambda c: c.appendleft(4.0), 1, 4),
    (np.array([1.0, 2.0]), lambda c: float(c.sum()), lambda c: c.__setitem__(0, 5.0), 3, 7),
    (np.ones((4, 4), np.int8)[::2, 1::2], lambda c: int(c.sum()), lambda c: c.fill(2), 4, 8),
    (functools.partial(sum, [1.0, 2.0]), lambda c: c(), lambda c: c.args[0].append(3.0), 3, 6),
]


@pytest.mark.parametrize("case", CONTAINERS, ids=range(len(CONTAINERS)))
def test_contents(case: Any) -> None:
    values, read, change, before, after = case
    kernel = make(lambda value: value * read(values))
    assert call(kernel) == before
    change(values)
    assert call(kernel) == after
    assert call(kernel, 2.0) == 2 * after


def test_what_tracing_changes_is_left_out() -> None:
    global COUNT
    log: list[int] = []
    state = types.SimpleNamespace(traces=0)
    calls = 0

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        global COUNT
        nonlocal calls
        COUNT, calls = COUNT + 1, calls + 1
        log.append(COUNT)
        state.traces += 1
        x[index()] *= SCALE

    for _ in range(3):
        assert call(kernel) == 2
    assert (COUNT, calls, log, state.traces) == (1, 1, [1], 1)
    globals()["SCALE"] = 3.0
    for _ in range(3):
        assert call(kernel) == 3
    assert (COUNT, calls, log, state.traces) == (2, 2, [1, 2], 2)


def test_a_recorded_kernel_is_kept_and_a_later_recording_is_not() -> None:
    global SCALE

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] *= SCALE

    x = vd.asbuffer(np.ones(3, np.float32))
    graph = vd.CommandGraph()
    kernel(x, graph=graph)
    SCALE = 3.0
    kernel(x, graph=graph)
    graph.submit()
    assert (x.read(0) == 6).all()
    SCALE = 5.0
    graph.submit()
    assert (x.read(0) == 36).all()


def test_kernels_with_all_ways_to_call() -> None:
    global SCALE

    @vd.shader("x.size", check="bounds")
    def checked(x: Buff[f32], n: Const[f32] = 1.0) -> None:
        x[index()] *= SCALE * n

    @vd.shader(workgroups=1, local_size=3)
    def grouped(x: Buff[f32], n: Const[f32] = 1.0) -> None:
        x[index()] *= SCALE * n

    for SCALE in (2.0, 3.0, 4.0):
        for kernel in (checked, grouped):
            assert call(lambda x, kernel=kernel: kernel(x, n=2.0)) == 2 * SCALE
            assert call(lambda x, kernel=kernel: kernel(x, 3.0, exec_size=3)) == 3 * SCALE
            assert call(kernel) == SCALE


def test_kernels_of_a_loop_keep_their_values() -> None:
    # as in version 0.1.0, each was traced with the values of its round
    kernels = []
    for factor in (2.0, 3.0, 4.0):

        def helper(value: Any) -> Any:
            return value * factor  # noqa: B023

        @vd.shader("x.size")
        def kernel(x: Buff[f32]) -> None:
            x[index()] = helper(x[index()]) + SCALE

        kernels.append(kernel)
    for _ in range(2):
        assert [call(each) for each in kernels] == [4, 5, 6]
    globals()["SCALE"] = 10.0
    with pytest.warns(KernelWarning, match="as another kernel was made of the same function"):
        assert call(kernels[0]) == 4
    assert call(kernels[0]) == 4
    assert call(kernels[2]) == 14


def test_kernels_of_a_factory_follow_their_closures() -> None:
    def make_scaled(factor: float) -> tuple[Any, Callable[[float], None]]:
        @vd.shader("x.size")
        def kernel(x: Buff[f32]) -> None:
            x[index()] *= factor * SCALE

        def change(new: float) -> None:
            nonlocal factor
            factor = new

        return kernel, change

    def make_with(table: Any) -> Any:
        @vd.shader("x.size")
        def kernel(x: Buff[f32]) -> None:
            x[index()] *= table[0] * SCALE

        return kernel

    for values in ([2.0, 3.0], np.array([2.0, 3.0])):
        globals()["SCALE"] = 2.0
        first = make_with(values)
        globals()["SCALE"] = 3.0
        assert (call(make_with(values)), call(first)) == (6, 6)
    globals()["SCALE"] = 2.0
    (first, change), (second, _) = make_scaled(2.0), make_scaled(3.0)
    assert (call(first), call(second)) == (4, 6)
    change(5.0)
    assert (call(first), call(second)) == (10, 6)
    globals()["SCALE"] = 1.0
    assert (call(first), call(second)) == (5, 3)


class Filter:
    def __init__(self, gain: float) -> None:
        self.gain = gain

    def combined(self, value: Any) -> Any:
        return value * self.gain * SCALE

    @vd.shader("x.size")
    def apply(self, x: Buff[f32]) -> None:
        x[vc.global_invocation_id().x] = self.combined(x[vc.global_invocation_id().x])


def test_methods_follow_globals_too() -> None:
    global SCALE
    first, second = Filter(2.0), Filter(3.0)
    kept = first.apply
    assert (call(first.apply), call(second.apply), call(kept)) == (4, 6, 4)
    SCALE = 5.0
    assert (call(first.apply), call(second.apply), call(kept)) == (10, 15, 10)
    first.gain = 1.0
    assert call(first.apply) == 5
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
    assert call(kept) == 10
    SCALE = 6.0
    with pytest.raises(RuntimeError, match="the instance that it is a method of is gone"):
        call(kept)


def test_an_error_of_a_later_trace_is_raised_at_the_call() -> None:
    global SCALE

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] *= SCALE

    assert call(kernel) == 2
    SCALE = "text"
    with pytest.raises(TypeError, match="test_dependencies"):
        call(kernel)
    SCALE = 4.0
    assert call(kernel) == 4


def test_what_cannot_be_compared_warns_once() -> None:
    large, many, raw = np.zeros(100_000, np.float32), [0.0] * 2000, bytearray(3)
    for function, message in (
        (lambda v: v + float(large[3]), r"changes of large \(an array of 400000 bytes"),
        (lambda v: v + many[5], r"changes of many \(a list of 2000 items"),
        (lambda v: v + raw[2], r"changes of raw \(bytearray\)"),
    ):
        with pytest.warns(KernelWarning, match=message) as caught:
            kernel = make(function)
        assert [str(each.filename).endswith("test_dependencies.py") for each in caught] == [True]
        assert call(kernel) == 1
    large.flags.writeable = False
    make(lambda v: v + float(large[3]))
    values = tuple(many)
    make(lambda v: v + values[5])


def test_many_traces_warn() -> None:
    global SCALE

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] *= SCALE

    with pytest.warns(KernelWarning, match="was traced 32 times as what it reads from outside changes"):
        for number in range(32):
            SCALE = float(number)
            assert call(kernel) == number


def test_threads_that_call_while_a_global_changes() -> None:
    global SCALE
    scales = [2.0, 3.0, 4.0]
    failures: list[Any] = []

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        x[index()] *= SCALE

    def work() -> None:
        try:
            for _ in range(40):
                found = call(kernel)
                if found not in scales:
                    failures.append(found)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for number in scales:
            SCALE = number
    for thread in threads:
        thread.join()
    assert not failures
    SCALE = 7.0
    assert call(kernel) == 7


# ---- maps that are made anew


def apply(function: Any) -> float:
    """Return what a new map of a function makes of 1, in a transform of one value."""
    x: Any = vd.Buffer((1,), vd.complex64)
    y: Any = vd.asbuffer(np.ones(1, np.complex64))

    def read(source: Buff[c64]) -> None:
        op = vd.fft.read_op()
        op.read_from_buffer(source)
        op.register[:] = op.register * float(function())

    vd.fft.fft(x, y, input_map=vd.map(read))
    return float(x.read(0).real[0])


def count_kernels(values: list[Any], wrap: Callable[[Any], Callable[[], Any]]) -> int:
    """Return how many kernels new maps for some values take, whose results must be right."""
    vd.fft.cache_clear()
    for value in values:
        assert apply(wrap(value)) == value
    return int(vd.fft.get_cache_info().currsize)


def attribute(value: float) -> Callable[[], Any]:
    parameters = Parameters(value)
    return lambda: parameters.gain


def size(value: float) -> Callable[[], Any]:
    buffer = vd.Buffer((int(value), 2), vd.float32)
    return lambda: buffer.shape[0]


def module(value: float) -> Callable[[], Any]:
    CONFIG.ALPHA = value  # type: ignore[attr-defined]
    return lambda: CONFIG.ALPHA  # type: ignore[attr-defined]


def nested(value: float) -> Callable[[], Any]:
    return (lambda inner: lambda: sum(inner["a"]))({"a": [value - 1.0, 1.0]})


WAYS = [lambda value: lambda: value, lambda value: functools.partial(abs, -value), attribute, size, module]


@pytest.mark.parametrize("way", [*WAYS, nested])
def test_maps_that_are_made_anew_share_kernels(way: Any) -> None:
    assert count_kernels([2.0, 3.0, 2.0, 2.0, 3.0], way) == 2


def test_equal_maps_have_equal_annotations() -> None:
    def anew(kind: Any, precise: bool = False) -> Any:
        return vd.map(lambda x: x, vd.float32, [kind], precise_math=precise)

    assert anew(f32) == anew(f32) and hash(anew(f32)) == hash(anew(f32))
    assert anew(f32) != anew(i32) and anew(f32) != anew(f32, precise=True)
    assert anew(f32) != vd.map(lambda x: x, vd.float32, [f32])


class Hidden:
    """An object of another package: its parts are not looked into."""

    __module__ = "pytest"

    def __init__(self, value: float) -> None:
        self.value = value


HIDDEN = Hidden(0.0)
MANY: Any = [0.0] * 2000


def hidden(value: float) -> Callable[[], Any]:
    HIDDEN.value = value
    return lambda: HIDDEN.value


def many(value: float) -> Callable[[], Any]:
    MANY[-1] = value
    return lambda: MANY[-1]


def imported(value: float) -> Callable[[], Any]:
    CONFIG.ALPHA = value  # type: ignore[attr-defined]

    def find() -> Any:
        import sys

        return sys.modules[__name__].CONFIG.ALPHA

    return find


def keyword(value: float) -> Callable[[], Any]:
    def find(*, found: Any = value) -> Any:
        return found

    return find


def note(value: float) -> Callable[[], Any]:
    keyword.found = value  # type: ignore[attr-defined]
    return lambda: keyword.found  # type: ignore[attr-defined]


def memory(value: float) -> Callable[[], Any]:
    BUFFERS[0].write(np.array([value], np.float32))
    return lambda: BUFFERS[0].read(0)[0]


BUFFERS: list[Any] = []


@pytest.mark.filterwarnings("ignore:.*are not noticed")
@pytest.mark.parametrize("way", [hidden, many, imported, keyword, note, memory])
def test_maps_that_read_what_is_not_compared_share_none(way: Any) -> None:
    BUFFERS[:] = [vd.asbuffer(np.zeros(1, np.float32))]
    count_kernels([2.0, 3.0, 2.0, 4.0], way)


def test_one_list_twice_and_two_lists() -> None:
    a, b = [1.0], [2.0]
    for last in (a, b, a):
        lists = [a, b, last]
        assert apply(lambda: lists[2][0]) == last[0]  # noqa: B023
