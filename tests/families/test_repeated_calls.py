"""A call that is like one before gives what it would give as the first one: of its own data and options."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.calls.running import context_of

Array = np.ndarray[Any, Any]
SIZES = (513, 70_001)  # one workgroup or a few, and many
ROWS = {513: (27, 19), 70_001: (7, 10_000)}


@vd.map
def product(x: vc.f32, y: vc.f32) -> vc.f32:  # type: ignore[valid-type]
    return x * y


@vd.map
def shifted(x: vc.f32, by: vc.Const[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    return x + by


@vd.map
def plus_here(value: vc.f32, other: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    return value + other[vd.mapped_index()]


@vd.scan(identity=0)
def latest(a: vc.i32, b: vc.i32) -> vc.i32:  # type: ignore[valid-type]
    return vc.select(b != 0, b, a)


@vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
def squares(x: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    value = x[vd.reduce.mapped_io_index()]
    return value * value


# ---- the functions: how each is called, what NumPy makes of it, and of what arrays -------------------------


def floats(size: int, rng: np.random.Generator) -> Array:
    return rng.integers(-9, 9, size).astype(np.float32)


def ints(size: int, rng: np.random.Generator) -> Array:
    return rng.integers(0, 100, size).astype(np.int32)


def flags(size: int, rng: np.random.Generator) -> Array:
    return rng.random(size) < rng.random()


def places(size: int, rng: np.random.Generator) -> Array:
    return rng.integers(0, size, size).astype(np.int32)


def rows(size: int, rng: np.random.Generator) -> Array:
    return floats(size, rng)[: np.prod(ROWS[size])].reshape(ROWS[size])


def ordered(size: int, rng: np.random.Generator) -> Array:
    return np.sort(ints(size, rng))


def square(size: int, rng: np.random.Generator) -> Array:
    side = 40 if size < 1000 else 130
    return floats(side * side, rng).reshape(side, side)


def waves(size: int, rng: np.random.Generator) -> Array:
    length = 512 if size < 1000 else 8192
    return (floats(length, rng) + 1j * floats(length, rng)).astype(np.complex64)


def table(size: int, rng: np.random.Generator) -> Array:
    return square(size, rng).astype(np.complex64)


@dataclass(frozen=True)
class Function:
    """A function: `call` and `truth` take arrays of such, and may take `out`."""

    call: Callable[..., Any]
    truth: Callable[..., Any]
    arrays: tuple[Callable[[int, np.random.Generator], Array], ...]

    def hosts(self, size: int, seed: int) -> list[Array]:
        rng = np.random.default_rng([size, seed])
        return [make(size, rng) for make in self.arrays]

    def check(self, results: Any, hosts: list[Array], queue: int = 0) -> None:
        found = results if isinstance(results, tuple) else (results,)
        right = self.truth(*hosts)
        wanted = right if isinstance(right, tuple) else (right,)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            value, truth = one.read(queue), np.asarray(other)
            assert value.shape == truth.shape
            exact = truth.dtype.kind not in "fc"
            np.testing.assert_allclose(value, truth, 0 if exact else 1e-4, 0 if exact else 1e-2)


def stable(x: Array, axis: int = -1) -> Array:
    return np.argsort(x, axis, kind="stable")


def in_place(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that transforms a copy."""

    def call(x: Any) -> Any:
        copy = vd.flip(x, ())
        transform(copy)
        return copy

    return call


def joined(*arrays: Any, out: Any = None) -> Any:
    return vd.concatenate(arrays, out=out)


def fill(x: Any, where: Any, values: Any) -> Any:
    """Put into a copy of an array."""
    copy = vd.flip(x, ())
    vd.put(copy, where, values)
    return copy


def filled(x: Array, where: Array, values: Array) -> Array:
    found = x.copy()
    np.put(found, where, values)
    return found


def newest(x: Array) -> Array:
    last = np.maximum.accumulate(np.where(x != 0, np.arange(x.size), -1))
    return np.where(last < 0, 0, x[last]).astype(x.dtype)


def lengthened(x: Array, size: int) -> Array:
    return np.pad(x, (0, size - x.size), constant_values=x[0])


def counts(x: Array, bins: Any, range: Any = None) -> tuple[Array, Array]:
    found, edges = np.histogram(x, bins, range)
    return found, edges.astype(np.float32)


def best(x: Array) -> tuple[Array, Array]:
    found = np.argsort(-x, kind="stable")[:9]
    return x[found], found


def sort_pairs(keys: Any, values: Any) -> Any:
    return vd.sort_by_key(keys, values)


FUNCTIONS = {
    "sum": Function(vd.sum, np.sum, (floats,)),
    "sum of rows": Function(lambda x, **o: vd.sum(x, 1, **o), lambda x: x.sum(1), (rows,)),
    "sum of columns": Function(lambda x, **o: vd.sum(x, 0, **o), lambda x: x.sum(0), (rows,)),
    "mean": Function(vd.mean, np.mean, (floats,)),
    "median": Function(vd.median, np.median, (floats,)),
    "median of columns": Function(lambda x, **o: vd.median(x, 0, **o), lambda x: np.median(x, 0), (rows,)),
    "mean where": Function(lambda x, w: vd.mean(x, where=w), lambda x, w: x.mean(where=w), (floats, flags)),
    "std": Function(vd.std, np.std, (floats,)),
    "argmax": Function(vd.argmax, np.argmax, (ints,)),
    "max of rows": Function(lambda x, **o: vd.max(x, 1, **o), lambda x: x.max(1), (rows,)),
    "any": Function(vd.any, np.any, (flags,)),
    "count_nonzero": Function(vd.count_nonzero, np.count_nonzero, (ints,)),
    "norm": Function(vd.norm, np.linalg.norm, (floats,)),
    "dot": Function(vd.dot, np.dot, (floats, floats)),
    "own reduction": Function(lambda x: squares(x), lambda x: np.array([(x * x).sum()]), (floats,)),
    "cumsum": Function(vd.cumsum, np.cumsum, (ints,)),
    "cumsum of columns": Function(lambda x, **o: vd.cumsum(x, 0, **o), lambda x: x.cumsum(0), (rows,)),
    "cummax": Function(vd.cummax, np.maximum.accumulate, (ints,)),
    "own scan": Function(lambda x, **o: latest(x, **o), newest, (ints,)),
    "sort": Function(vd.sort, np.sort, (ints,)),
    "sort of rows": Function(lambda x, **o: vd.sort(x, **o), np.sort, (rows,)),
    "argsort": Function(vd.argsort, stable, (ints,)),
    "sort_by_key": Function(sort_pairs, lambda k, v: (np.sort(k), v[stable(k)]), (ints, floats)),
    "topk": Function(lambda x, **o: vd.topk(x, 9, **o), best, (ints,)),
    "unique": Function(vd.unique, np.unique, (ints,)),
    "unique of a size": Function(
        lambda x: vd.unique(x, size=120), lambda x: lengthened(np.unique(x), 120), (ints,)
    ),
    "compact": Function(vd.compact, lambda x, w: x[w], (floats, flags)),
    "nonzero": Function(vd.nonzero, np.nonzero, (flags,)),
    "searchsorted": Function(vd.searchsorted, np.searchsorted, (ordered, ints)),
    "histogram": Function(lambda x: vd.histogram(x, 8, (-9, 9)), lambda x: counts(x, 8, (-9, 9)), (floats,)),
    "histogram of a range": Function(vd.histogram, lambda x: counts(x, 10), (floats,)),
    "bincount": Function(vd.bincount, np.bincount, (ints,)),
    "bincount of a size": Function(
        lambda x, w: vd.bincount(x, w, size=100), lambda x, w: np.bincount(x, w, 100), (ints, ints)
    ),
    "transpose": Function(vd.transpose, np.transpose, (rows,)),
    "take": Function(vd.take, np.take, (floats, places)),
    "take_along_axis": Function(
        vd.take_along_axis, lambda x, i: np.take_along_axis(x, i, -1), (floats, places)
    ),
    "put": Function(fill, filled, (floats, lambda size, rng: rng.permutation(size), floats)),
    "where": Function(vd.where, np.where, (flags, floats, floats)),
    "concatenate": Function(joined, lambda *x: np.concatenate(x), (floats, floats)),
    "stack": Function(lambda *x, **o: vd.stack(x, 1, **o), lambda *x: np.stack(x, 1), (floats, floats)),
    "roll": Function(lambda x, **o: vd.roll(x, 7, **o), lambda x: np.roll(x, 7), (floats,)),
    "flip": Function(vd.flip, np.flip, (rows,)),
    "tile": Function(lambda x, **o: vd.tile(x, 3, **o), lambda x: np.tile(x, 3), (floats,)),
    "repeat": Function(lambda x, **o: vd.repeat(x, 3, **o), lambda x: np.repeat(x, 3), (floats,)),
    "pad": Function(lambda x, **o: vd.pad(x, 3, "edge", **o), lambda x: np.pad(x, 3, "edge"), (rows,)),
    "matmul": Function(vd.matmul, np.matmul, (square, square)),
    "fft": Function(in_place(vd.fft.fft), np.fft.fft, (waves,)),
    "fft2": Function(in_place(vd.fft.fft2), np.fft.fft2, (table,)),
    "fftshift": Function(vd.fft.fftshift, np.fft.fftshift, (floats,)),
    "map": Function(lambda x, y: vd.asbuffer(product(x, y)), np.multiply, (floats, floats)),
    "sum of a map": Function(lambda x, y: vd.sum(product(x, y)), np.dot, (floats, floats)),
    "output map": Function(
        lambda x, y: vd.roll(x, 1, output_map=plus_here(y)), lambda x, y: np.roll(x, 1) + y, (floats, floats)
    ),
    "several": Function(
        lambda x, i: vd.cumsum(vd.take(vd.sort(vd.where(product(x, x), x, 1)), i)),
        lambda x, i: np.cumsum(np.sort(np.where(x * x != 0, x, 1))[i]),
        (floats, places),
    ),
}  # fmt: skip
WITH_OUT = (
    "sum", "sum of rows", "mean", "median", "std", "argmax", "any", "norm", "dot", "cumsum",
    "cumsum of columns", "cummax", "own scan", "sort", "sort of rows", "argsort", "transpose", "take",
    "take_along_axis", "where", "concatenate", "stack", "roll", "flip", "tile", "repeat", "pad", "matmul",
)  # fmt: skip
# that may be computed in the memory of their input
IN_PLACE = ("cumsum", "cumsum of columns", "cummax", "own scan", "sort", "sort of rows", "argsort", "where")

every_function = pytest.mark.parametrize("name", FUNCTIONS)


def asbuffers(hosts: list[Array]) -> list[Any]:
    return [vd.asbuffer(each) for each in hosts]


def dirty() -> None:
    """Leave memory behind that holds no zeros."""
    for size in (64, 1 << 12, 1 << 16, 1 << 19):
        vd.asbuffer(np.full(size, 0xA5A5A5A5, np.uint32))


# ---- data -----------------------------------------------------------------------------------------------


@every_function
def test_other_values_in_other_buffers(name: str) -> None:
    function = FUNCTIONS[name]
    made = []
    for seed, size in enumerate(SIZES * 3):
        hosts = function.hosts(size, seed)
        buffers = asbuffers(hosts)
        made.append((function.call(*buffers), hosts, buffers))
    for results, hosts, buffers in made:
        function.check(results, hosts)
        for buffer, host in zip(buffers, hosts, strict=True):
            assert np.array_equal(buffer.read(0), host)


@every_function
def test_other_values_in_the_same_buffers(name: str) -> None:
    function = FUNCTIONS[name]
    made = []
    buffers = asbuffers(function.hosts(513, 0))
    for seed in range(4):
        hosts = function.hosts(513, seed)
        for buffer, host in zip(buffers, hosts, strict=True):
            buffer.write(host)
        made.append((function.call(*buffers), hosts))
    for results, hosts in made:
        function.check(results, hosts)


@every_function
def test_results_that_are_dropped(name: str) -> None:
    """Scratch and results get the memory of others, which holds their numbers still."""
    function = FUNCTIONS[name]
    for seed in range(4):
        hosts = function.hosts(SIZES[seed % 2], seed)
        dirty()
        function.call(*asbuffers(hosts))
        kept = function.call(*asbuffers(hosts))
        function.call(*asbuffers(function.hosts(SIZES[seed % 2], seed + 100)))
        dirty()
        function.check(kept, hosts)


@every_function
def test_queues_have_values_of_their_own(name: str) -> None:
    function = FUNCTIONS[name]
    if name in ("unique", "compact", "nonzero"):
        pytest.skip("the size depends on the values, and must be the same on all queues")
    for seed, queues in enumerate((1, 2, 2, 1, 2)):
        hosts = [function.hosts(513, 10 * seed + queue) for queue in range(queues)]
        with vd.use_context(context_of(queues)):
            buffers = asbuffers(hosts[0])
            for queue in range(1, queues):
                for buffer, host in zip(buffers, hosts[queue], strict=True):
                    buffer.write(host, queue)
            if name in ("histogram of a range", "bincount") and queues == 2:
                # NumPy's edges and lengths differ, the result's do not
                continue
            results = function.call(*buffers)
            for queue in range(queues):
                function.check(results, hosts[queue], queue)


@every_function
def test_threads(name: str) -> None:
    """Threads make equal calls at once: of the first, too."""
    function, start = FUNCTIONS[name], threading.Barrier(3)

    def work(number: int) -> None:
        start.wait()
        for seed in range(3):
            hosts = function.hosts(513, 10 * number + seed)
            function.check(function.call(*asbuffers(hosts)), hosts)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))


def test_a_new_context_after_a_closed_one() -> None:
    device = vd.get_context().device_infos[0].sorted_index
    for seed in range(3):
        context = vd.Context([device], [vd.select_queue_families(device, 1)])
        with vd.use_context(context):
            for name in ("sum", "cumsum", "sort", "take", "matmul", "fft"):
                for turn in range(2):
                    hosts = FUNCTIONS[name].hosts(513, 10 * seed + turn)
                    FUNCTIONS[name].check(FUNCTIONS[name].call(*asbuffers(hosts)), hosts)
        context.close()


# ---- graphs -----------------------------------------------------------------------------------------------

RECORDED = [name for name in WITH_OUT if name not in ("own scan", "concatenate")]


@pytest.mark.parametrize("name", RECORDED)
def test_graphs_between_calls(name: str) -> None:
    """Calls go into the graph that is given, or into the thread's, and no other."""
    function = FUNCTIONS[name]
    options: dict[str, Any] = {"mode": "wrap"} if name.startswith("take") else {}
    made = []
    buffers = asbuffers(function.hosts(513, 0))

    def write(seed: int) -> list[Array]:
        hosts = function.hosts(513, seed)
        for buffer, host in zip(buffers, hosts, strict=True):
            buffer.write(host)
        return hosts

    for seed, own in ((1, True), (2, False), (3, True)):
        hosts = write(seed)
        made.append((function.call(*buffers), hosts))
        graph = vd.CommandGraph()
        if own:
            recorded = function.call(*buffers, graph=graph, **options)
        else:
            before = vd.set_global_graph(graph)
            try:
                recorded = function.call(*buffers, **options)
            finally:
                vd.set_global_graph(before)
        for more in (0, 1):
            hosts = write(10 * seed + more)
            graph.submit()
            made.append((function.call(*buffers), hosts))
            function.check(recorded, hosts)
    for results, hosts in made:
        function.check(results, hosts)


# ---- results ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_OUT)
def test_out_given_or_not(name: str) -> None:
    function = FUNCTIONS[name]
    made = []
    first = function.call(*asbuffers(function.hosts(513, 0)))
    out = vd.Buffer(first.shape, first.var_type)
    for seed, target in enumerate((None, out, None, vd.Buffer(first.shape, first.var_type), out, None)):
        hosts = function.hosts(513, seed)
        result = function.call(*asbuffers(hosts), **({} if target is None else {"out": target}))
        if target is None:
            assert result is not out
        else:
            assert result is target
        made.append((result, hosts))
    for at, (result, hosts) in enumerate(made):
        if at != 1:  # overwritten by a later call
            function.check(result, hosts)


@pytest.mark.parametrize("name", IN_PLACE)
def test_out_that_is_the_input(name: str) -> None:
    function = FUNCTIONS[name]
    for seed, way in enumerate(("new", "same", "view", "other", "same", "new")):
        hosts = function.hosts(513, seed)
        buffers = asbuffers(hosts)
        x = buffers[-1]
        view = vd.Buffer.of_memory(x.context, x._native, x.shape, x.var_type)
        other = vd.Buffer(x.shape, x.var_type)
        out = {"same": x, "view": view, "other": other}.get(way)
        kind = {"dtype": vd.int32} if name in ("argsort", "cumsum") else {}
        result = function.call(*buffers, **kind, **({} if out is None else {"out": out}))
        function.check(result, hosts)
        if out is None or out is other:
            assert np.array_equal(x.read(0), hosts[-1])
        else:
            function.check(x, hosts)


def test_one_array_for_two_arguments() -> None:
    """Two arguments are one buffer in some calls, and two in others."""
    calls: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (vd.dot, np.dot),
        (lambda a, b: vd.where(a, a, b), lambda a, b: np.where(a != 0, a, b)),
        (lambda a, b: vd.concatenate([a, b, a]), lambda a, b: np.concatenate([a, b, a])),
        (vd.compact, lambda a, b: a[b != 0]),
        (lambda a, b: vd.sum(product(a, b)), np.dot),
        (lambda a, b: vd.cumsum(product(a, b)), lambda a, b: np.cumsum(a * b)),
        (lambda a, b: vd.flip(a, output_map=plus_here(b)), lambda a, b: a[::-1] + b),
        (lambda a, b: vd.sort_by_key(a, b)[1], lambda a, b: b[stable(a)]),
        (
            lambda a, b: vd.histogram(a, 4, (0, 8), weights=b)[0],
            lambda a, b: np.histogram(a, 4, (0, 8), weights=b)[0],
        ),
    ]  # fmt: skip
    # each of the first ones begins for one of the sizes
    ways = ("two", "one", "view", "two", "one", "two", "turned")
    orders = [(610 + at, seed, way) for at in range(3) for seed, way in enumerate(ways[at:] + ways[:at])]
    for call, truth in calls:
        for size, seed, way in orders:
            rng = np.random.default_rng(seed)
            first, second = floats(size, rng), floats(size, rng)
            a, b = vd.asbuffer(first), vd.asbuffer(second)
            if way == "one":
                b, second = a, first
            elif way == "view":
                b, second = vd.Buffer.of_memory(a.context, a._native, a.shape, a.var_type), first
            elif way == "turned":
                a, b, first, second = b, a, second, first
            assert np.array_equal(call(a, b).read(0), truth(first, second)), (way, truth)


def test_views_of_one_memory_as_other_types() -> None:
    for seed in range(3):
        host = ints(600, np.random.default_rng(seed))
        x = vd.asbuffer(host)
        for kind in (np.int32, np.float32, np.uint32, np.int16, np.int32):
            assert np.array_equal(vd.sort(x.view(kind)).read(0), np.sort(host.view(kind)))
            assert np.array_equal(vd.flip(x.view(kind)).read(0), host.view(kind)[::-1])
            same = vd.Buffer.of_memory(x.context, x._native, (host.view(kind).size // 3, 3), kind)
            if kind is not np.float32:  # devices may flush subnormal numbers to zero, or not
                assert np.array_equal(vd.max(same, 0).read(0), host.view(kind).reshape(-1, 3).max(0))


def test_shapes_of_one_size() -> None:
    for seed in range(2):
        host = ints(360, np.random.default_rng(seed))
        for shape in ((360,), (18, 20), (20, 18), (360, 1), (1, 360), (3, 6, 20), (18, 20), (0,), (360,), ()):
            array = host[: np.prod(shape, dtype=int)].reshape(shape)
            x = vd.asbuffer(array)
            assert vd.sum(x, dtype=vd.int64).read(0) == array.sum()
            assert np.array_equal(vd.transpose(x).read(0), array.T)
            assert np.array_equal(vd.flip(x).read(0), np.flip(array))
            if shape:
                assert np.array_equal(vd.cumsum(x, 0).read(0), array.cumsum(0))
                assert np.array_equal(vd.sort(x).read(0), np.sort(array))


def test_more_calls_than_are_kept() -> None:
    """Of so many shapes; the first ones are called again."""
    host = np.arange(1500, dtype=np.int32)
    whole = vd.asbuffer(host)
    made = []
    for size in [*range(1, 1500), *range(1, 20)]:
        x = vd.Buffer.of_memory(whole.context, whole._native, (size,), vd.int32)
        made.append((size, vd.sum(x), vd.flip(x) if size % 10 == 0 else None))
    for size, total, turned in made:
        assert total.read(0) == size * (size - 1) // 2
        assert turned is None or np.array_equal(turned.read(0), host[:size][::-1])


# ---- options ----------------------------------------------------------------------------------------------

NAN = float("nan")


def bits(x: Any) -> tuple[Any, ...]:
    """Return an array's dtype and bytes: zeros have signs, and all NaNs are one."""
    array = np.asarray(x.read(0) if isinstance(x, vd.Buffer) else x)
    array = np.where(array != array, array.dtype.type(np.nan), array) if array.dtype.kind == "f" else array
    return array.dtype, array.shape, array.tobytes()


def test_equal_numbers_of_different_types() -> None:
    """As keys of a dict 1, 1.0 and True are one; 0.0 and -0.0 too; and a NaN is not what it is."""
    host = np.array([-5, -3, -2], np.float32)
    x, whole = vd.asbuffer(host), vd.asbuffer(host.astype(np.int32))
    mask, test = vd.asbuffer(np.array([True, False, True])), np.array([True, False, True])
    numbers = (
        1,
        1.0,
        True,
        0.0,
        -0.0,
        0,
        False,
        NAN,
        np.float32(0.1),
        0.1,
        1 + 0j,
        1.0,
        1,
        -0.0,
        0.0,
        NAN,
        True,
    )
    for number in numbers:
        assert bits(vd.where(mask, whole, number)) == bits(np.where(test, host.astype(np.int32), number))
        assert bits(vd.where(mask, x, number)) == bits(np.where(test, host, number))
        if isinstance(number, complex):
            continue
        assert bits(vd.pad(x, 1, constant_values=number)) == bits(np.pad(host, 1, constant_values=number))
        wanted = np.array([-5, -2, number, number], np.float32)
        assert bits(vd.compact(x, mask, size=4, fill_value=number)[0]) == bits(wanted)
        assert bits(vd.max(x, initial=number)) == bits(np.max(host, initial=number))
        assert bits(vd.flip(shifted(x, number))) == bits(np.flip(host + np.float32(number)))
        target = vd.asbuffer(host)
        vd.put(target, vd.asbuffer(np.array([1])), number)
        assert bits(target) == bits(np.array([-5, number, -2], np.float32))
    for kind in (np.int64(1), np.int8(1), 1, np.float64(1), np.float16(1), 1.0, np.bool_(True)):
        wanted = np.where(test, host.astype(np.int32), kind)
        assert bits(vd.where(mask, whole, kind)) == bits(wanted)


def test_equal_numbers_of_wrong_types_are_refused() -> None:
    x = vd.asbuffer(np.arange(12, dtype=np.int32).reshape(3, 4))
    calls: list[tuple[Callable[[Any], Any], tuple[Any, ...], tuple[Any, ...]]] = [
        (lambda n: vd.sum(x, n), (1, np.int64(1), (1,)), (True, 1.0, np.bool_(True), 2, "1")),
        (lambda n: vd.cumsum(x, n), (1, np.int8(1)), (True, 1.0, (1,), -3)),
        (lambda n: vd.sort(x, n), (0, -2), (False, 0.0, 2)),
        (lambda n: vd.topk(x, n), (1, np.uint8(1)), (True, 1.0, 5, -1)),
        (lambda n: vd.roll(x, n), (1, np.int64(1)), (True, 1.0, None)),
        (lambda n: vd.tile(x, n), (1, (1, 1)), (True, 1.0, -1)),
        (lambda n: vd.repeat(x, n), (1,), (True, 1.0, -1)),
        (lambda n: vd.histogram(x, n), (1,), (True, 1.0, 0)),
        (lambda n: vd.norm(x, n), (None,), (True, "no")),
        (lambda n: vd.var(x, ddof=n), (1, 1.0), (True, "1")),
        (lambda n: vd.transpose(x, n), ((1, 0), [1, 0]), ((True, False), (1.0, 0.0), (1, 1))),
        (lambda n: vd.sum(x, dtype=n), (vd.int32, "int32", np.int32), ("no", 3, object)),
        (lambda n: vd.matmul(x, x, transpose_b=n), (True,), (1, False)),
        (lambda n: vd.sort(x, descending=n), (True, False), (1, 0)),
    ]
    for call, right, wrong in calls:
        told: dict[int, tuple[str, str]] = {}
        known: dict[int, Any] = {}
        for turn in range(3):
            pairs = [
                *((True, n, at) for at, n in enumerate(right)),
                *((False, n, at) for at, n in enumerate(wrong)),
            ]
            for fits, number, at in pairs if turn else pairs[::-1]:  # first those that are refused
                if fits:
                    result = call(number)
                    found = bits(result[0] if isinstance(result, tuple) else result)
                    assert known.setdefault(at, found) == found
                    continue
                with pytest.raises((TypeError, ValueError, IndexError)) as error:
                    call(number)
                message = (type(error.value).__name__, str(error.value))
                assert told.setdefault(at, message) == message


def test_spellings_of_one_call() -> None:
    host = np.arange(12, dtype=np.int32).reshape(3, 4)
    for seed in range(3):
        array = host * (seed + 1)
        x = vd.asbuffer(array)
        for kind in (vd.float64, "float64", np.float64, np.dtype("float64"), float):
            assert (
                bits(vd.sum(x, 1, kind))
                == bits(vd.sum(x, axis=1, dtype=kind))
                == bits(array.sum(1, np.float64))
            )
        assert (
            bits(vd.sum(x, 0))
            == bits(vd.sum(x, -2))
            == bits(vd.sum(x, axis=(0,)))
            == bits(array.sum(0, np.int64))
        )
        assert bits(vd.sum(x, None, None, None, True)) == bits(array.sum(keepdims=True, dtype=np.int64))
        assert bits(vd.sum(x, None, keepdims=False)) == bits(array.sum(dtype=np.int64))
        assert bits(vd.cumsum(x, 1, exclusive=True)) == bits(array.cumsum(1, np.int64) - array)
        assert bits(vd.cumsum(x, 1, reverse=True)) == bits(array[:, ::-1].cumsum(1, np.int64)[:, ::-1])


def test_host_arrays_and_lists_that_change() -> None:
    """An option is what it holds at the call, though it is the same object."""
    x = vd.asbuffer(np.arange(24, dtype=np.float32).reshape(4, 6))
    line = vd.asbuffer(np.arange(24, dtype=np.float32))
    host, flat = x.read(0), line.read(0)
    edges, axes, shifts, starts = np.array([0.0, 5.0, 9.0]), [0, 1], [1, 2], np.array([0, 5])
    widths, source, first = np.array([[1, 0], [0, 2]]), np.zeros((4, 6), np.float32), np.array(3)
    listed = [0, 5, 9]
    for turn in range(4):
        assert bits(vd.histogram(line, edges)[0]) == bits(np.histogram(flat, edges)[0])
        assert bits(vd.histogram(line, listed)[0]) == bits(np.histogram(flat, listed)[0])
        assert bits(vd.transpose(x, axes)) == bits(np.transpose(host, axes))
        assert bits(vd.roll(x, shifts, [0, 1])) == bits(np.roll(host, shifts, [0, 1]))
        assert bits(vd.pad(x, widths)) == bits(np.pad(host, widths))
        parts = [np.sort(part)[::-1] for part in np.split(flat, starts[1:])]
        assert bits(vd.sort(line, segments=starts, descending=True)) == bits(np.concatenate(parts))
        assert vd.sum(x, initial=first).read(0) == host.sum() + first
        target = vd.asbuffer(host)
        vd.copyto(target, source)
        source[...] = turn + 5  # at once: the copy has what it was
        assert (target.read(0) == (turn + 4 if turn else 0)).all()
        edges += 1.5
        listed[1] += 1
        axes.reverse()
        shifts[0] -= 3
        starts[1] += 4
        widths[0, 1] += 1
        first += 2


# ---- what is raised and told ------------------------------------------------------------------------------


def test_each_call_warns() -> None:
    empty, one = vd.asbuffer(np.zeros((0, 3), np.float32)), vd.asbuffer(np.ones((1, 3), np.float32))
    for _ in range(3):
        for call, message in (
            (lambda: vd.mean(empty, 0), "Mean of empty slice"),
            (lambda: vd.std(empty, 0), "Degrees of freedom"),
            (lambda: vd.var(one, 0, ddof=1), "Degrees of freedom"),
        ):
            with pytest.warns(RuntimeWarning, match=message) as told:
                assert np.isnan(call().read(0)).all()
            assert [each.filename for each in told] == [__file__]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(RuntimeWarning):
                    call()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.array_equal(vd.mean(one, 0).read(0), [1, 1, 1])


@pytest.mark.parametrize("name", ["sum", "cumsum", "sort", "take", "where", "matmul", "roll", "dot"])
def test_buffers_that_are_refused(name: str) -> None:
    """Destroyed ones, of another context or dtype or shape: refused each time, and between right calls."""
    function = FUNCTIONS[name]

    def right(seed: int) -> None:
        hosts = function.hosts(513, seed)
        function.check(function.call(*asbuffers(hosts)), hosts)

    first = function.call(*asbuffers(function.hosts(513, 0)))
    for turn in range(3):
        buffers = asbuffers(function.hosts(513, 1))
        buffers[-1].destroy()
        gone = vd.Buffer(first.shape, first.var_type)
        gone.destroy()
        whole = asbuffers(function.hosts(513, 2))
        wrong: list[tuple[list[Any], Any]] = [
            (buffers, None),
            (whole, gone),
            (whole, vd.Buffer((*first.shape, 2)[:3], first.var_type)),
            (whole, vd.Buffer(first.shape, vd.int8)),
            (whole, 3),
            ([*whole[:-1], np.asfortranarray(np.stack([function.hosts(513, 1)[-1]] * 2))[1]], None),
            ([*whole[:-1], None], None),
        ]
        if len(whole) > 1:
            other = vd.asbuffer(function.hosts(513, 1)[-1], context=context_of(2))
            wrong.append(([*whole[:-1], other], None))
        for given, out in wrong:
            with pytest.raises((TypeError, ValueError, RuntimeError)):
                function.call(*given, **({} if out is None else {"out": out}))
        right(turn + 5)


def test_calls_in_kernels_are_refused() -> None:
    x = vd.asbuffer(np.ones(5, np.float32))
    assert vd.sum(x).read(0) == 5

    def kernel(out: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
        out[vc.global_invocation_id().x] = 1.0
        vd.sum(x)

    for _ in range(2):
        with pytest.raises(RuntimeError, match="a kernel cannot call"):
            vd.shader("out.size")(kernel)(x)
    assert vd.sum(x).read(0) == 5


class Axis:
    """An index that does something when it is asked for its number."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work

    def __index__(self) -> int:
        self.work()
        return 0


@pytest.mark.parametrize("name", ["sum", "cumsum", "sort", "roll", "argmax"])
def test_calls_within_calls(name: str) -> None:
    """A call that is made while another one is, belongs to none but its caller."""
    call = getattr(vd, name)
    truth = {"roll": lambda x: np.roll(x, 0)}.get(name) or getattr(np, name)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        host, other = ints(513, rng), ints(513, rng)
        within: list[Any] = []
        x, y = vd.asbuffer(host), vd.asbuffer(other)
        result = call(x, Axis(lambda y=y, within=within: within.append(vd.cumsum(y))))
        y.write(np.zeros(513, np.int32))
        assert np.array_equal(result.read(0), truth(host))
        assert len(within) >= 1
        for each in within:
            assert np.array_equal(each.read(0), other.cumsum())


def test_interrupted_calls_are_not_repeated() -> None:
    """What a call has begun when it fails is not repeated by the next one."""
    host = np.arange(1, 600, dtype=np.float32)
    x = vd.asbuffer(host)
    fail = [True]

    def interrupt() -> None:
        if fail[0]:
            raise KeyboardInterrupt

    def failing(value: Any) -> Any:
        interrupt()
        return value * 2

    failing.__annotations__ = {"value": vc.f32, "return": vc.f32}
    twice = vd.map(failing)
    calls: list[tuple[Callable[[], Any], Any]] = [
        (lambda: vd.sort(x, Axis(interrupt), descending=True), host[::-1]),
        (lambda: vd.cumsum(x, Axis(interrupt)), host.cumsum()),
        (lambda: vd.max(twice(x)), host.max() * 2),
        (lambda: vd.sort(twice(x)), host * 2),
        (lambda: vd.flip(x, output_map=twice), host[::-1] * 2),
    ]
    for call, right in calls:
        fail[0] = True
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                call()
        fail[0] = False
        for _ in range(2):
            assert np.array_equal(call().read(0), right)


def test_checks_switched_on_and_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map that is called first where checks are on is checked, whatever was called before."""

    def made() -> Any:
        @vd.map
        def small(value: vc.f32) -> vc.f32:  # type: ignore[valid-type]
            assert value < 100
            return value

        return small

    right = np.arange(99, dtype=np.float32)
    wrong = right + 7
    for check in ("", "1", "0", "1"):
        monkeypatch.setenv("VKDISPATCH_CHECK", check)
        small = made()
        for call, truth in ((vd.sum, np.sum), (vd.cumsum, np.cumsum), (vd.sort, np.sort)):
            assert np.array_equal(call(vd.asbuffer(wrong)).read(0), truth(wrong))
            assert np.array_equal(call(small(vd.asbuffer(right))).read(0), truth(right))
            if check != "1":
                assert np.array_equal(call(small(vd.asbuffer(wrong))).read(0), truth(wrong))
                continue
            for _ in range(2):
                with pytest.raises(vd.CheckError):
                    call(small(vd.asbuffer(wrong))).read(0)


# ---- maps and functions of one's own ----------------------------------------------------------------------


def scaled(by: Any) -> Any:
    """Return a map that closes over a number: they have one code, and one name."""

    @vd.map
    def scaled(x: vc.f32) -> vc.f32:  # type: ignore[valid-type]
        return x * by

    return scaled


@pytest.mark.parametrize("name", ["sum", "cumsum", "sort"])
def test_maps_that_close_over_numbers(name: str) -> None:
    host = np.arange(-20, 30, dtype=np.float32)
    x = vd.asbuffer(host)
    call, truth = getattr(vd, name), getattr(np, name)
    kept = [(by, call(scaled(by)(x)), call(x, output_map=None)) for by in (2.0, -2.0, 2)]
    for by in range(-2, 2):  # maps that end, so that later ones lie where they lay
        kept.append((by, call(scaled(float(by))(x)), call(x)))
        gc.collect()
    for by, result, plain in kept:
        np.testing.assert_allclose(result.read(0), truth(host * np.float32(by)), 1e-5)
        np.testing.assert_allclose(plain.read(0), truth(host), 1e-5)


def test_maps_of_maps_and_output_maps() -> None:
    host = np.arange(50, dtype=np.float32)
    x = vd.asbuffer(host)
    double, triple = scaled(2.0), scaled(3.0)
    for inner, outer, factor in ((double, triple, 6), (double, double, 4), (triple, double, 6)):
        for output, after in ((None, 1), (double, 2), (None, 1)):
            found = vd.cumsum(outer(inner(x)), output_map=output)
            assert np.array_equal(found.read(0), np.cumsum(host * factor) * after)
    for seed in range(4):
        other = floats(50, np.random.default_rng(seed))
        found = vd.flip(x, output_map=plus_here(vd.asbuffer(other)))
        assert np.array_equal(found.read(0), host[::-1] + other)
        found = vd.cumsum(shifted(product(x, vd.asbuffer(other)), seed))
        assert np.array_equal(found.read(0), np.cumsum(host * other + seed))


def test_scans_and_reductions_that_close_over_numbers() -> None:
    host = np.arange(1, 40, dtype=np.int32)
    x = vd.asbuffer(host)

    def made(most: int) -> tuple[Any, Any]:
        def bounded(a: vc.i32, b: vc.i32) -> vc.i32:  # type: ignore[valid-type]
            return vc.min(a + b, most)

        return vd.scan(bounded, identity=0), vd.reduce.reduce(0)(bounded)

    for most in (50, 100, 50):
        scan, reduction = made(most)
        for _ in range(2):
            assert np.array_equal(scan(x).read(0), np.minimum(host.cumsum(), most))
            assert reduction(x).read(0)[0] == min(host.sum(), most)
        del scan, reduction
        gc.collect()


@pytest.fixture
def small_tuning(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Give other plans to what is called from now on."""
    import vkdispatch.reduce.planning as reductions
    import vkdispatch.scans.planning as scans
    from vkdispatch.base.record import replace

    def change() -> None:
        monkeypatch.setattr(reductions, "tuning", replace(reductions.tuning, group=64))
        monkeypatch.setattr(scans.tuning, "group", 64)

    yield change


def test_other_plans(small_tuning: Callable[[], None]) -> None:
    for turn in range(4):
        for name in ("sum", "sum of rows", "std", "argmax", "cumsum", "cumsum of columns"):
            hosts = FUNCTIONS[name].hosts(70_001, turn)
            FUNCTIONS[name].check(FUNCTIONS[name].call(*asbuffers(hosts)), hosts)
        if turn == 1:
            small_tuning()


# ---- random numbers ---------------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[Any, int], Any]] = {
    "raw": lambda g, n: g.raw(n),
    "random": lambda g, n: g.random(n),
    "random of 64 bits": lambda g, n: g.random(n, vd.float64),
    "uniform": lambda g, n: g.uniform(-2, 5, n),
    "normal": lambda g, n: g.normal(1, 2, n),
    "integers": lambda g, n: g.integers(0, 64, n),
    "integers of a range": lambda g, n: g.integers(-5, 7, n),
}


@pytest.mark.parametrize("bit_generator", ["philox4x32", "philox4x64"])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_continue_the_stream(name: str, bit_generator: str) -> None:
    """Equal draws give other numbers each time: together those of one draw."""
    draw = DRAWS[name]
    for seed in (3, 4, 3):
        sizes = [100, 100, 100, 1000, 100, 6, 100, 1000]
        generator = vd.random.Generator(seed, bit_generator)
        found = [draw(generator, size) for size in sizes]
        whole = draw(vd.random.Generator(seed, bit_generator), sum(sizes)).read(0)
        assert np.array_equal(np.concatenate([each.read(0) for each in found]), whole)


def test_draws_are_numpys() -> None:
    ours, numpys = vd.random.Generator(7, "philox4x64"), np.random.Generator(np.random.Philox(7))
    out = vd.Buffer(50, vd.float32)
    for _ in range(5):
        assert np.array_equal(ours.random(50, out=out).read(0), numpys.random(50, np.float32))
        assert np.array_equal(ours.random(50, vd.float64).read(0), numpys.random(50))
        assert np.array_equal(ours.random(50).read(0), numpys.random(50, np.float32))
        assert np.array_equal(ours.uniform(-1, 3, 20, vd.float64).read(0), numpys.uniform(-1, 3, 20))
        assert np.array_equal(ours.uniform(-1, 4, 20, vd.float64).read(0), numpys.uniform(-1, 4, 20))


def test_generators_that_alternate() -> None:
    """Each has a stream of its own, of its own seed, state and kind."""
    made = {
        (seed, kind): vd.random.Generator(seed, kind)
        for seed in (1, 2)
        for kind in ("philox4x32", "philox4x64")
    }
    found: dict[Any, list[Any]] = {key: [] for key in made}
    for _ in range(4):
        for key, generator in made.items():
            found[key].append(generator.random(64))
    for key, results in found.items():
        whole = vd.random.Generator(*key).random(256).read(0)
        assert np.array_equal(np.concatenate([each.read(0) for each in results]), whole)
    generator = vd.random.Generator(5)
    state = generator.state
    first = generator.normal(size=64).read(0)
    assert not np.array_equal(generator.normal(size=64).read(0), first)
    generator.state = state
    assert np.array_equal(generator.normal(size=64).read(0), first)


def test_permutations_and_shuffles_differ_each_time() -> None:
    host = np.arange(2000, dtype=np.float32)
    drawn = []
    for _ in range(2):
        generator, x = vd.random.Generator(9), vd.asbuffer(host)
        orders = [generator.permutation(2000) for _ in range(3)]
        moved = [generator.permutation(x) for _ in range(3)]
        shuffled = vd.asbuffer(host)
        for _ in range(2):
            generator.shuffle(shuffled)
        found = [each.read(0) for each in (*orders, *moved, shuffled)]
        for one, other in pairwise(found):
            assert np.array_equal(np.sort(one), host)
            assert not np.array_equal(one, other)
        drawn.append(found)
    assert all(map(np.array_equal, *drawn))


def test_threads_draw_numbers_of_their_own() -> None:
    generator = vd.random.Generator(11)
    with ThreadPoolExecutor(3) as pool:
        drawn = list(pool.map(lambda _: [generator.raw(128) for _ in range(8)], range(3)))
    found = [each.read(0) for part in drawn for each in part]
    whole = vd.random.Generator(11).raw(128 * 24).read(0).reshape(24, 128)
    assert sorted(each.tobytes() for each in found) == sorted(each.tobytes() for each in whole)
