"""Arguments of one call that are the same memory: right as NumPy has it, or refused by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc

pytestmark = pytest.mark.filterwarnings("ignore:this graph has no calls")

Array = np.ndarray[Any, Any]

# more than one workgroup, in one row, in rows and in columns
SHAPES = [(70_001,), (37, 1003), (3, 1500, 7)]


@vd.map
def plus(value: vc.f32, other: vc.f32) -> vc.f32:  # type: ignore[valid-type]
    return value + other


@vd.map
def plus_here(value: vc.f32, other: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    here = vd.mapped_index()
    return value + other[here]


@vd.map
def plus_next(value: vc.f32, other: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    return value + other[(vd.mapped_index() + 1) % other.shape.w]


@vd.map
def doubled(x: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    return x[vd.mapped_index()] * 2


@vd.map
def turned(x: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    return x[x.shape.w - 1 - vd.mapped_index()]


@vd.map
def logged(x: vc.f32, log: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    log[vd.mapped_index()] = x
    return x


@vd.map
def first(x: vc.f32, log: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    log[0] = x
    return x


@vd.map
def noted(value: vc.f32, log: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    log[0] = 1.0
    return value


@vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
def writing(x: vc.Buff[vc.f32], log: vc.Buff[vc.f32]) -> vc.f32:  # type: ignore[valid-type]
    log[0] = 1.0
    return x[vd.reduce.mapped_io_index()]


def floats(shape: Any, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


def buffer(shape: Any = 1000, seed: int = 0, kind: Any = np.float32) -> vd.Buffer[Any]:
    return vd.asbuffer(floats(shape, seed).astype(kind))


def view(of: vd.Buffer[Any], kind: Any = None, shape: Any = None) -> vd.Buffer[Any]:
    """Return another buffer of the same memory."""
    return vd.Buffer.of_memory(of.context, of._native, shape or of.shape, kind or of.var_type)


def same(got: vd.Buffer[Any], wanted: Array) -> None:
    np.testing.assert_array_equal(got.read(0), wanted)


# ---- what is right -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("way", ["eager", "view", "recorded"])
def test_scans_in_place(shape: tuple[int, ...], way: str) -> None:
    host = floats(shape)
    for axis in range(len(shape)):
        for reverse in (False, True):
            x = vd.asbuffer(host)
            out = view(x) if way == "view" else x
            graph = vd.CommandGraph() if way == "recorded" else None
            vd.cumsum(x, axis, out=out, reverse=reverse, graph=graph)
            if graph is not None:
                graph.submit()
            turn = [slice(None, None, -1 if reverse and k == axis else 1) for k in range(len(shape))]
            same(x, host[tuple(turn)].cumsum(axis)[tuple(turn)])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scans_of_maps_in_place(shape: tuple[int, ...]) -> None:
    host = floats(shape)
    for mapped in (plus, plus_here):
        x = vd.asbuffer(host)
        same(vd.cumsum(mapped(x, x), 0, out=x, exclusive=True), 2 * (host.cumsum(0) - host))
    x = vd.asbuffer(host)
    same(vd.cumsum(doubled(x), len(shape) - 1, out=x), 2 * host.cumsum(-1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_flags_of_segments_that_are_overwritten(shape: tuple[int, ...]) -> None:
    host, begins = floats(shape) > 4, np.random.default_rng(3).random(shape) < 0.05
    for axis in range(len(shape)):
        flags = vd.asbuffer(begins)
        wanted = vd.cummax(vd.asbuffer(host), axis, segments=vd.asbuffer(begins)).read(0)
        same(vd.cummax(vd.asbuffer(host), axis, segments=flags, out=flags), wanted)
    assert wanted.sum() not in (host.sum(), wanted.size)


def test_places_of_segments_that_are_overwritten() -> None:
    host, starts = np.random.default_rng(0).integers(0, 9, 5000), np.arange(5000) * 17
    parts = np.split(host, starts[1 : 5000 // 17 + 1])
    places = vd.asbuffer(starts)
    vd.cumsum(vd.asbuffer(host), out=places, segments=places)
    same(places, np.concatenate([part.cumsum() for part in parts]))
    places = vd.asbuffer(starts)
    vd.cumsum(vd.asbuffer(host), out=places, segments=view(places), reverse=True)
    same(places, np.concatenate([part[::-1].cumsum()[::-1] for part in parts]))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sorts_in_place(shape: tuple[int, ...]) -> None:
    host = floats(shape)
    for axis in range(len(shape)):
        for of in (lambda x: x, view):
            x = vd.asbuffer(host)
            same(vd.sort(x, axis, out=of(x)), np.sort(host, axis))
            whole = host.astype(np.int32)
            keys = vd.asbuffer(whole)
            same(vd.argsort(keys, axis, out=of(keys)), np.argsort(whole, axis, kind="stable"))
    x = vd.asbuffer(host)
    same(vd.sort(turned(x), out=x), np.sort(host.ravel()[::-1].reshape(shape)))


@pytest.mark.parametrize("length", [40, 3000, 70_001])
def test_sorts_of_segments_in_place(length: int) -> None:
    host, starts = floats(length), np.array([0, 7, 7, 11, 30, length])
    wanted = np.concatenate([np.sort(part) for part in np.split(host, starts[1:-1])])
    x = vd.asbuffer(host)
    same(vd.sort(view(x), segments=starts, out=x), wanted)
    # where segments begin is overwritten by the positions
    begins, keys = np.arange(length, dtype=np.int32) * 3, -np.arange(length, dtype=np.int32)
    places = vd.asbuffer(np.minimum(begins, length))
    wanted = np.lexsort((keys, np.searchsorted(begins, np.arange(length), side="right")))
    same(vd.argsort(vd.asbuffer(keys), segments=places, out=places), wanted)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sorts_by_key_in_place(shape: tuple[int, ...]) -> None:
    host, moved = floats(shape), floats(shape, 1)
    order = np.argsort(host, -1, kind="stable")
    sorted_, taken = np.take_along_axis(host, order, -1), np.take_along_axis(moved, order, -1)
    for exchanged in (False, True):
        for of in (lambda x: x, view):
            keys, values = vd.asbuffer(host), vd.asbuffer(moved)
            out = (of(values), of(keys)) if exchanged else (of(keys), of(values))
            got = vd.sort_by_key(keys, values, out=out)
            same(got[0], sorted_)
            same(got[1], taken)
    keys, values = vd.asbuffer(host), vd.asbuffer(moved)
    vd.sort_by_key(keys, [values, keys, values], out=(None, [keys, values, None]))
    same(keys, taken)
    same(values, sorted_)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_where_writes_to_an_array_that_it_reads(shape: tuple[int, ...]) -> None:
    host, other = floats(shape), floats(shape, 1)
    test = (host > 2).astype(np.float32)
    for which in range(3):
        arrays = vd.asbuffer(test), vd.asbuffer(host), vd.asbuffer(other)
        same(vd.where(*arrays, out=view(arrays[which])), np.where(host > 2, host, other))
        condition, x, y = arrays = vd.asbuffer(test), vd.asbuffer(host), vd.asbuffer(other)
        wanted = np.where(host > 2, 2 * host, host + other)
        same(vd.where(condition, doubled(x), plus(x, y), out=arrays[which]), wanted)


@pytest.mark.parametrize("shape", [(70_001,), (37, 1003), (1003, 37), (5, 1500, 7)], ids=str)
@pytest.mark.parametrize("add", [plus, plus_here], ids=lambda each: each.name)
def test_output_map_adds_to_previous_values(shape: tuple[int, ...], add: Any) -> None:
    host = floats(shape)
    x = vd.asbuffer(host)

    def adds(function: Any, wanted: Any) -> None:
        wanted = np.asarray(wanted, np.float32)
        for of in (lambda each: each, view):
            start = floats(wanted.shape, 7)
            out = vd.asbuffer(start)
            same(function(out=out, output_map=add(of(out))), start + wanted)

    for axis in (None, *range(len(shape))):
        adds(lambda axis=axis, **to: vd.sum(x, axis, **to), host.sum(axis))
    for axis in range(len(shape)):
        adds(lambda axis=axis, **to: vd.cumsum(x, axis, **to), host.cumsum(axis))
        adds(lambda axis=axis, **to: vd.sort(x, axis, **to), np.sort(host, axis))
        adds(lambda axis=axis, **to: vd.argsort(x, axis, **to), np.argsort(host, axis, kind="stable"))
        adds(
            lambda out, axis=axis, **to: vd.sort_by_key(x, x, axis, out=(out, None), **to)[0],
            np.sort(host, axis),
        )
        adds(lambda axis=axis, **to: vd.flip(x, axis, **to), np.flip(host, axis))
        adds(lambda axis=axis, **to: vd.concatenate([x, x], axis, **to), np.concatenate([host, host], axis))
        adds(lambda axis=axis, **to: vd.repeat(x, 2, axis, **to), np.repeat(host, 2, axis))
    adds(lambda **to: vd.transpose(x, **to), host.T)
    adds(lambda **to: vd.pad(x, 3, **to), np.pad(host, 3))
    places = np.random.default_rng(1).integers(0, host.size, 9000)
    adds(lambda **to: vd.take(x, vd.asbuffer(places), **to), host.ravel()[places])
    condition = vd.asbuffer(host > 0)
    adds(lambda **to: vd.where(condition, x, 1.0, **to), np.where(host > 0, host, np.float32(1)))
    order = np.argsort(-host, -1, kind="stable")[..., :5]
    indices = vd.Buffer(order.shape, vd.int64)
    adds(
        lambda out, output_map: vd.topk(x, 5, out=(out, indices), output_map=output_map)[0],
        np.take_along_axis(host, order, -1),
    )
    if len(shape) == 2:
        adds(lambda **to: vd.matmul(x, x, transpose_b=True, **to), host @ host.T)
        adds(lambda **to: vd.matmul(x, x, transpose_a=True, **to), host.T @ host)


def test_output_map_adds_to_previous_values_after_partial_results() -> None:
    host, long, start = floats((5, 70_000)), floats(3_000_000), floats((5, 5), 7)
    out = vd.asbuffer(start)
    x = vd.asbuffer(host)
    same(vd.matmul(x, x, transpose_b=True, out=out, output_map=plus(out)), start + host @ host.T)
    total = vd.asbuffer(np.float32([17]))
    same(
        vd.sum(view(vd.asbuffer(long), shape=(1, long.size)), 1, out=total, output_map=plus_here(total)),
        17 + long.sum(keepdims=True),
    )


@vd.map
def plus_byte(value: vc.i8, other: vc.i8) -> vc.i8:  # type: ignore[valid-type]
    return value + other


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_output_map_that_adds_to_bytes(shape: tuple[int, ...]) -> None:
    host, start = floats(shape).astype(np.int8), floats(shape, 7).astype(np.int8)
    x = vd.asbuffer(host)
    for axis in range(len(shape)):
        out = vd.asbuffer(start)
        wanted = np.maximum.accumulate(host, axis)
        same(vd.cummax(x, axis, out=out, output_map=plus_byte(out)), start + wanted)
        out = vd.asbuffer(start)
        same(vd.sort(x, axis, out=out, output_map=plus_byte(out)), start + np.sort(host, axis))
    out = vd.asbuffer(start)
    same(vd.flip(x, out=out, output_map=plus_byte(out)), start + np.flip(host))
    out = vd.asbuffer(start)
    same(vd.where(out, x, out, out=out, output_map=plus_byte(out)), np.where(start, start + host, 2 * start))


def test_output_map_of_permuted_rows_adds_to_previous_values() -> None:
    host, start = floats((3000, 7)), floats((3000, 7), 5)
    wanted = vd.random.Generator(4).permutation(vd.asbuffer(host)).read(0)
    out = vd.asbuffer(start)
    same(vd.random.Generator(4).permutation(vd.asbuffer(host), out=out, output_map=plus(out)), start + wanted)
    for count in (500, 3000):
        numbers = vd.random.Generator(4).permutation(count).read(0)
        out = vd.asbuffer(start.ravel()[:count])
        got = vd.random.Generator(4).permutation(count, out=out, output_map=plus(out))
        same(got, start.ravel()[:count] + numbers.astype(np.float32))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_in_one_buffer(shape: tuple[int, ...]) -> None:
    host = floats(shape)
    x = vd.asbuffer(host)
    same(vd.cumsum(x, 0, out=x, output_map=plus(x)), host.cumsum(0) + host)
    x = vd.asbuffer(host)
    same(vd.sort(x, out=x, output_map=plus(x)), np.sort(host) + host)
    x = vd.asbuffer(host)
    same(vd.where(x, x, x, out=x, output_map=plus(x)), 2 * host)


@pytest.mark.parametrize("length", [64, 15, 4096, 70_000])
def test_transforms_in_place(length: int) -> None:
    host = np.random.default_rng(0).standard_normal((3, length)).astype(np.float32)
    x = vd.asbuffer(host)
    wanted = vd.fft.dct(vd.asbuffer(host)).read(0)
    same(vd.fft.dct(x, out=view(x)), wanted)
    x = vd.asbuffer(host)
    if length % 2 == 0:
        same(vd.fft.fftshift(x, 1, out=view(x)), np.fft.fftshift(host, 1))


# ---- what is refused ---------------------------------------------------------------------------------


class Arrays:
    """Arrays for one call, of which some are the same memory."""

    def __init__(self) -> None:
        self.x, self.y = buffer((40, 40)), buffer((40, 40), 1)
        self.flat, self.column, self.row = view(self.x, shape=1600), view(self.x, shape=40), buffer(40)
        self.flags = buffer(1600, kind=np.bool_)
        self.whole = vd.asbuffer(np.arange(1600, dtype=np.int32))
        self.wide = vd.asbuffer(np.arange(1600))
        self.spectrum = vd.asbuffer(np.ones((40, 40), np.complex64))
        self.random = vd.random.Generator(1)


REFUSED: dict[str, tuple[str, Callable[..., Any]]] = {
    # results over what is read
    "sum": ("out: .* with x", lambda a, **to: vd.sum(a.x, 1, out=a.column, **to)),
    "sum of a map": ("out: .* 'other' of x", lambda a, **to: vd.sum(plus(a.y, a.x), 1, out=a.column, **to)),
    "mask of any": (
        "out: .* 'where' of x",
        lambda a, **to: vd.any(
            a.x, 1, where=view(a.flags, shape=(40, 40)), out=view(a.flags, shape=40), **to
        ),
    ),
    "dot": ("out: .* 'b' of dot", lambda a, **to: vd.dot(a.x, a.row, out=a.row, **to)),
    "cumsum of narrower elements": (
        "out: .* with x",
        lambda a, **to: vd.cumsum(view(a.wide, vd.int32, 1600), out=a.wide, **to),
    ),
    "cumsum of neighbours": (
        "out: .* 'other' of x",
        lambda a, **to: vd.cumsum(plus_next(a.flat, a.flat), out=a.flat, **to),
    ),
    "cumsum of one": (
        "out: .* 'other' of x",
        lambda a, **to: vd.cumsum(plus(a.flat, view(a.flat, shape=1)), out=a.flat, **to),
    ),
    "flags in reverse": (
        "out: .* with segments",
        lambda a, **to: vd.cummax(
            buffer(1600, kind=np.bool_), segments=a.flags, reverse=True, out=a.flags, **to
        ),
    ),
    "topk": (r"out\[0\]: .* with x", lambda a, **to: vd.topk(a.x, 40, out=(a.x, None), **to)),
    "outputs of topk": (
        r"out\[0\], out\[1\]: ",
        lambda a, **to: vd.topk(vd.asbuffer(np.arange(1600)), 1600, out=(a.wide, a.wide), **to),
    ),
    "outputs of sort_by_key": (
        r"out\[0\], out\[1\]: ",
        lambda a, **to: vd.sort_by_key(a.x, a.y, out=(a.x, a.x), **to),
    ),
    "outputs of two values": (
        r"out\[1\]\[0\], out\[1\]\[1\]: ",
        lambda a, **to: vd.sort_by_key(a.x, [a.y, a.y], out=(None, [a.y, view(a.y)]), **to),
    ),
    "transpose": ("out: .* with x", lambda a, **to: vd.transpose(a.x, out=a.x, **to)),
    "take": ("out: .* with x", lambda a, **to: vd.take(a.flat, a.whole, mode="wrap", out=a.flat, **to)),
    "indices of take": (
        "out: .* with indices",
        lambda a, **to: vd.take(vd.Buffer(9, vd.int32), a.whole, mode="wrap", out=view(a.whole), **to),
    ),
    "take_along_axis": (
        "out: .* with x",
        lambda a, **to: vd.take_along_axis(a.flat, a.whole, mode="wrap", out=a.flat, **to),
    ),
    "concatenate": (
        r"out: .* with arrays\[1\]",
        lambda a, **to: vd.concatenate([a.row, a.column], out=view(a.x, shape=80), **to),
    ),
    "stack": (
        r"out: .* with arrays\[0\]",
        lambda a, **to: vd.stack([a.flat], out=view(a.x, shape=(1, 1600)), **to),
    ),
    "roll": ("out: .* with x", lambda a, **to: vd.roll(a.x, 3, out=a.x, **to)),
    "flip of a map": ("out: .* 'x' of x", lambda a, **to: vd.flip(doubled(a.x), out=a.x, **to)),
    "tile": ("out: .* with x", lambda a, **to: vd.tile(a.x, 1, out=a.x, **to)),
    "repeat": ("out: .* with x", lambda a, **to: vd.repeat(a.flat, 1, out=a.flat, **to)),
    "pad": ("out: .* with x", lambda a, **to: vd.pad(a.x, 0, out=a.x, **to)),
    "where of a row": ("out: .* with x", lambda a, **to: vd.where(a.y, a.column, 0.0, out=a.x, **to)),
    "where of a map": (
        "out: .* 'x' of y",
        lambda a, **to: vd.where(a.flags, 0.0, turned(a.flat), out=a.flat, **to),
    ),
    "put": ("x: .* with values", lambda a, **to: vd.put(a.x, a.whole, a.flat, "wrap", **to)),
    "indices of put": ("x: .* with indices", lambda a, **to: vd.put(a.whole, a.whole, 1, "wrap", **to)),
    "matmul": ("out: .* with b", lambda a, **to: vd.matmul(a.x, a.y, out=view(a.y), **to)),
    "permutation": ("out: .* with x", lambda a, **to: a.random.permutation(a.x, out=a.x, **to)),
    "permutation of a map": (
        "out: .* 'x' of x",
        lambda a, **to: a.random.permutation(doubled(a.x), out=a.x, **to),
    ),
    "fftshift": (
        "out: .* with x, .* axis 0 has 5",
        lambda a, **to: vd.fft.fftshift(view(a.row, shape=(5, 8)), 0, out=view(a.row, shape=(5, 8)), **to),
    ),
    "convolve": (
        "kernel: .* with the signal",
        lambda a, **to: vd.fft.convolve(a.spectrum, view(a.spectrum), **to),
    ),
    "convolve2D": (
        "kernel: .* with the signal",
        lambda a, **to: vd.fft.convolve2D(a.spectrum, a.spectrum, **to),
    ),
    "transpose of a kernel": (
        "out_buffer: .* with in_buffer",
        lambda a, **to: vd.fft.transpose(a.spectrum, out_buffer=view(a.spectrum), **to),
    ),
    "vkfft.convolve2D": (
        "kernel: .* with buffer",
        lambda a, **to: vd.vkfft.convolve2D(a.spectrum, view(a.spectrum), **to),
    ),
    # arguments of output maps
    "neighbours by an output map": (
        "out: .* 'other', an argument of output_map",
        lambda a, **to: vd.cumsum(a.flat, out=a.flat, output_map=plus_next(a.flat), **to),
    ),
    "neighbours by the output map of a sum": (
        "out: .* 'other', an argument of output_map",
        lambda a, **to: vd.sum(a.y, 1, out=a.column, output_map=plus_next(a.x), **to),
    ),
    "an output map that reads another output": (
        r"out\[1\]: .* 'other', an argument of output_map",
        lambda a, **to: vd.sort_by_key(a.x, a.y, out=(None, a.y), output_map=plus(a.y), **to),
    ),
    "an output map of random numbers": (
        "out: .* 'other', an argument of output_map",
        lambda a, **to: a.random.normal(out=a.x, output_map=plus(a.x), **to),
    ),
    # maps that write
    "a map that writes to out": (
        "out: .* 'log' of x",
        lambda a, **to: vd.cumsum(logged(a.y, a.x), 0, out=a.x, **to),
    ),
    "a map that writes to another array": (
        "y: .* with 'log' of x, which the map writes",
        lambda a, **to: vd.where(a.y, logged(a.row, a.column), a.x, **to),
    ),
    "a map that writes to its own array": (
        "'x' of x: .* with 'log' of x, which the map writes",
        lambda a, **to: vd.sum(first(a.x, a.flat), 1, **to),
    ),
    "an output map that writes to the array": (
        "x: .* with 'log', an argument of output_map, which the map writes",
        lambda a, **to: vd.cumsum(a.x, 0, output_map=noted(a.flat), **to),
    ),
    "a mapping function that writes to its array": (
        "'x' of writing: .* with 'log' of writing, which the map writes",
        lambda a, **to: writing(a.x, a.flat, **to),
    ),
    "weights that write to the array": (
        "x: .* with 'log' of weights, which the map writes",
        lambda a, **to: vd.histogram(a.x, 4, (0, 1), weights=logged(a.y, a.flat), **to),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("recorded", [False, True])
def test_refused_arguments(name: str, recorded: bool) -> None:
    text, call = REFUSED[name]
    arrays = Arrays()
    graph = vd.CommandGraph() if recorded else None
    before = [each.read(0) for each in (arrays.x, arrays.y, arrays.wide, arrays.flags, arrays.whole)]
    with pytest.raises(vd.OverlapError, match=text) as caught:
        call(arrays, graph=graph)
    assert isinstance(caught.value, ValueError)
    assert "pass " in str(caught.value)
    if graph is not None:
        graph.submit()
    for each, was in zip((arrays.x, arrays.y, arrays.wide, arrays.flags, arrays.whole), before, strict=True):
        same(each, was)


def test_a_map_may_write_where_it_reads() -> None:
    host = floats((40, 40))
    x = vd.asbuffer(host)
    same(vd.sum(logged(x, x), 1), host.sum(1))
    same(x, host)
