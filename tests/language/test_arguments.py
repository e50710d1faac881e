"""Host values on their way into a kernel: Const and Var of every type, in every mixture."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Var,
    c32,
    c64,
    c128,
    dv2,
    dv3,
    dv4,
    f16,
    f32,
    f64,
    hv2,
    hv3,
    hv4,
    i16,
    i32,
    i64,
    ihv2,
    ihv3,
    ihv4,
    iv2,
    iv3,
    iv4,
    m2,
    m3,
    m4,
    u16,
    u32,
    u64,
    uhv2,
    uhv3,
    uhv4,
    uv2,
    uv3,
    uv4,
    v2,
    v3,
    v4,
)

from .running import filled, host, need, same

RunPython = Callable[..., subprocess.CompletedProcess[str]]

ALL: list[DType] = [
    f16, f32, f64, i16, i32, i64, u16, u32, u64, c64, c128, v2, v3, v4, dv2, dv3, dv4, hv2, hv3, hv4, iv2,
    iv3, iv4, uv2, uv3, uv4, ihv2, ihv3, ihv4, uhv2, uhv3, uhv4, m2, m3, m4,
]  # fmt: skip


def value_of(kind: DType, seed: int) -> Any:
    """A value that `kind` holds exactly, with every component another one."""
    generator = np.random.default_rng(seed)
    shape = kind.true_numpy_shape
    drawn = generator.integers(1, 120, shape)
    if dt.is_complex(kind):
        return complex(int(generator.integers(1, 99)), -int(generator.integers(1, 99)))
    if dt.is_float_dtype(kind) or dt.is_matrix(kind):
        drawn = drawn / 4 - 10
    elif dt.is_signed_dtype(kind):
        drawn = drawn - 60
    return drawn if shape else drawn.item() if hasattr(drawn, "item") else drawn


def echo(annotations: list[Any], values: list[Any]) -> list[Any]:
    """Pass the values to a kernel of three invocations and return what each one saw."""
    kinds = [annotation.__args__[0] for annotation in annotations]
    # values of one type share a buffer: devices bind only so many
    distinct = list(dict.fromkeys(kinds))

    def body(*args: Any) -> None:
        sources, targets = args[: len(kinds)], args[len(kinds) :]
        i = vc.global_invocation_id().x
        places = dict.fromkeys(distinct, 0)
        for kind, source in zip(kinds, sources, strict=True):
            targets[distinct.index(kind)][i + 3 * places[kind]] = source
            places[kind] += 1

    everything = [*annotations, *(Buff[kind] for kind in distinct)]
    run = vd.shader(exec_size=3, arg_type_annotations=everything)(body)
    targets = [filled(3 * kinds.count(kind), kind) for kind in distinct]
    run(*values, *targets)
    pieces = {
        kind: list(np.split(target.read(0), kinds.count(kind)))
        for kind, target in zip(distinct, targets, strict=True)
    }
    return [pieces[kind].pop(0) for kind in kinds]


def check(annotations: list[Any], values: list[Any]) -> None:
    for annotation, value, found in zip(annotations, values, echo(annotations, values), strict=True):
        (kind,) = annotation.__args__
        expected = np.asarray(value).astype(host(kind))
        same(found, np.broadcast_to(expected, found.shape), kind.name)


@pytest.mark.parametrize("how", [Const, Var], ids=["Const", "Var"])
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_every_type(kind: DType, how: Any) -> None:
    need(kind)
    check([how[kind]], [value_of(kind, 1)])


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_values_between_buffers(kind: DType) -> None:
    need(kind)
    annotations = [Const[f32], Var[kind], Const[v3], Const[kind], Var[u32], Const[kind]]
    check(annotations, [value_of(a.__args__[0], seed) for seed, a in enumerate(annotations)])


@pytest.mark.parametrize("others", list(itertools.combinations([f64, i64, u16, hv3, iv4], 2)))
def test_vec3_and_wide_values_in_every_order(others: tuple[DType, DType]) -> None:
    need(*others)
    for order in itertools.permutations([v3, *others]):
        annotations = [(Const if place % 2 else Var)[kind] for place, kind in enumerate(order)]
        check(annotations, [value_of(kind, seed) for seed, kind in enumerate(order)])


@pytest.mark.parametrize("count", [1, 3, 9])
def test_many_matrices_exceed_push_constants(count: int) -> None:
    need(f64)
    annotations: list[Any] = [Const[f64], Const[v3], Var[i32]]
    annotations += [Const[m4], Const[m3]] * count
    check(annotations, [value_of(a.__args__[0], seed) for seed, a in enumerate(annotations)])


@pytest.mark.parametrize("size", [112, 116, 120, 128, 132, 200])
def test_sizes_around_the_limit_of_push_constants(size: int) -> None:
    annotations = [Const[i32]] * (size // 4)
    check(annotations, list(range(100, 100 + size // 4)))


def test_all_types_at_once() -> None:
    need(*ALL)
    # four calls of nine types: devices bind only so many buffers
    for start in range(4):
        kinds = ALL[start::4]
        check([Const[kind] for kind in kinds], [value_of(kind, seed) for seed, kind in enumerate(kinds)])


def test_too_many_buffers_raise(run_python: RunPython) -> None:
    code = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
count = 100
def body(*buffers):
    i = vc.global_invocation_id().x
    for number, buffer in enumerate(buffers):
        buffer[i] = number
kernel = vd.shader(exec_size=3, arg_type_annotations=[vc.Buff[vd.int32]] * count)(body)
buffers = [vd.asbuffer(np.full(3, -1, np.int32)) for _ in range(count)]
try:
    kernel(*buffers)
    print([int(buffer.read(0)[2]) for buffer in buffers] == list(range(count)))
except (ValueError, NotImplementedError) as error:
    print("buffers" in str(error))
"""
    done = run_python(code)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_extreme_values() -> None:
    need(i64, u64, f64, i16)
    kinds = [i64, u64, f64, i32, u32, i16, u16, f32]
    for choose in ("min", "max"):
        values = [
            getattr(np.finfo(host(k)) if dt.is_float_dtype(k) else np.iinfo(host(k)), choose) for k in kinds
        ]
        check([Const[kind] for kind in kinds], values)
    check([Const[f32], Const[f64], Var[f32]], [np.inf, np.nan, -np.inf])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (i32, 2.0, 2),
        (u32, np.float64(7), 7),
        (f32, True, 1),
        (i32, np.bool_(True), 1),
        (f32, np.int8(-3), -3),
        (f32, np.array(2.5), 2.5),
        (f32, np.array([2.5]), 2.5),
        (i32, np.uint8(200), 200),
        (c64, 3, 3),
        (c64, np.complex128(1 - 2j), 1 - 2j),
        (c64, 2.5, 2.5),
    ],
)
@pytest.mark.parametrize("how", [Const, Var], ids=["Const", "Var"])
def test_host_values_convert(kind: DType, value: Any, expected: Any, how: Any) -> None:
    (found,) = echo([how[kind]], [value])
    same(found, np.full(3, expected, host(kind)))


@pytest.mark.parametrize("value", [(1, 2, 3), [1, 2, 3], np.arange(1, 4), np.float64([1, 2, 3]), range(1, 4)])
@pytest.mark.parametrize("how", [Const, Var], ids=["Const", "Var"])
def test_sequences_become_vectors(value: Any, how: Any) -> None:
    for kind in (v3, iv3, uv3):
        (found,) = echo([how[kind]], [value])
        same(found, [[1, 2, 3]] * 3)


def test_matrices_from_lists_and_views() -> None:
    rows = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    (found,) = echo([Const[m3]], [rows])
    same(found[0], rows)
    (found,) = echo([Const[m3]], [np.array(rows).T])
    same(found[0], np.array(rows).T)


def test_short_complex_values() -> None:
    need(f16)

    @vd.shader(exec_size=1)
    def body(out: Buff[f32], z: Const[c32]) -> None:
        out[0] = z.real.to_dtype(f32)
        out[1] = z.imag.to_dtype(f32)

    out = filled(2, f32)
    body(out, 1.5 - 2j)
    same(out.read(0), [1.5, -2])


@dataclasses.dataclass
class Camera:
    """A mixture whose alignments differ."""

    origin: v3
    exposure: f32
    pose: m3
    frame: i32
    focus: v2


@dataclasses.dataclass
class Limits:
    low: f64
    direction: v3
    count: i64


def test_dataclasses() -> None:
    @vd.shader("out.size")
    def body(out: Buff[v3], camera: Camera, scale: Const[f32]) -> None:
        i = vc.global_invocation_id().x
        out[i] = (camera.pose * camera.origin + camera.exposure) * scale
        out[i].x += camera.frame
        out[i].y += camera.focus.y

    pose = np.arange(9, dtype=np.float32).reshape(3, 3)
    out = filled(7, v3)
    for frame in (1, 2):
        body(out, Camera((1, 2, 3), 0.5, pose, frame, (7, 8)), 2.0)
        expected = (pose.T @ [1, 2, 3] + 0.5) * 2 + [frame, 8, 0]
        same(out.read(0), np.tile(expected, (7, 1)))


@dataclasses.dataclass
class Scene:
    """Dataclasses within a dataclass, one of them two deep."""

    camera: Camera
    gain: f32

    @dataclasses.dataclass
    class Pair:
        first: v2
        second: i32

    pair: Pair
    camera_gain: f32 = 0.0


def test_nested_dataclasses() -> None:
    @vd.shader("out.size")
    def body(out: Buff[f32], scene: Scene, scale: Const[f32], again: Scene.Pair) -> None:
        camera = scene.camera
        out[0] = (camera.pose * camera.origin).y + camera.exposure * scene.gain
        out[1] = vc.to_float(camera.frame) + camera.focus.y * scale
        out[2] = scene.pair.first.x * 10 + scene.pair.second + scene.camera_gain
        out[3] = again.first.y * 10 + again.second

    pose = np.arange(9, dtype=np.float32).reshape(3, 3)
    for gain in (2.0, 3.0):
        scene = Scene(Camera((1, 2, 3), 0.5, pose, 4, (7, 8)), gain, Scene.Pair((5, 6), -7), 0.25)
        again = Scene.Pair((8, 9), 11)
        out, seen = filled(4, f32), np.zeros(4, np.float32)
        body(out, scene, 2.0, again)
        body.interpret(seen, scene, 2.0, again)
        expected = [(pose.T @ [1, 2, 3])[1] + 0.5 * gain, 20, 43.25, 101]
        same(out.read(0), expected)
        same(seen, expected)
    graph = vd.CommandGraph()
    body(out, scene, scale=0.0, again=again, graph=graph)
    graph.submit()
    assert out.read(0)[1] == 4


def test_nested_dataclasses_that_do_not_fit() -> None:
    @vd.shader("out.size")
    def body(out: Buff[f32], scene: Scene.Pair, pair: Outer) -> None:
        out[0] = pair.inner.second + scene.first.x

    out = filled(4, f32)
    pair = Scene.Pair((1, 2), 3)
    body(out, pair, Outer(pair))
    assert out.read(0)[0] == 4
    with pytest.raises(ValueError, match=r"argument 'pair': 5 has no field 'first'"):
        body(out, pair, Outer(5))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"argument 'pair', field 'inner.first'.*shape \(2,\)"):
        body(out, pair, Outer(Scene.Pair((1, 2, 3), 4)))
    with pytest.raises(TypeError, match=r"inner\.first, inner\.second"):
        body(out, pair, 3)


@dataclasses.dataclass
class Outer:
    inner: Scene.Pair


@dataclasses.dataclass
class Endless:
    inner: Endless


def test_recursive_dataclasses_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'inner' of Endless must be a dtype .* or a dataclass of such"):

        @vd.shader("out.size")
        def body(out: Buff[f32], endless: Endless) -> None:
            out[0] = 1


def test_dataclasses_of_wide_fields_twice() -> None:
    need(f64, i64)

    @vd.shader(exec_size=1)
    def body(out: Buff[f64], a: Limits, gain: Const[f32], b: Limits) -> None:
        for place, limits in enumerate((a, b)):
            out[place * 5] = limits.low
            out[place * 5 + 1] = limits.count.to_dtype(f64)
            for axis in range(3):
                out[place * 5 + 2 + axis] = limits.direction[axis].to_dtype(f64)
        out[10] = gain.to_dtype(f64)

    out = filled(11, f64)
    body(out, Limits(0.1, (1, 2, 3), -5), 4, Limits(1e300, (4, 5, 6), 1 << 40))
    same(out.read(0), [0.1, -5, 1, 2, 3, 1e300, 1 << 40, 4, 5, 6, 4])


def test_values_may_differ_between_calls_and_in_graphs() -> None:
    @vd.shader("out.size")
    def body(out: Buff[f32], place: Const[u32], a: Var[f32], m: Const[m4], b: Var[v3]) -> None:
        i = vc.global_invocation_id().x
        with vc.if_block(i == place):
            out[i] = a * 100 + b.y + m[3][2]

    def expected(count: int) -> Any:
        return [k * 100 + 2 * k + 9 * k for k in range(count)]

    def matrix(k: int) -> Any:
        return np.full((4, 4), 9 * k)

    out = filled(50, f32)
    for k in range(50):
        body(out, k, k, matrix(k), (k, 2 * k, 3 * k))
    same(out.read(0), expected(50))

    out, graph = filled(20, f32), vd.CommandGraph()
    for k in range(20):
        body(out, k, k, matrix(k), (k, 2 * k, 3 * k), graph=graph)
    for _ in range(3):
        graph.submit()
    same(out.read(0), expected(20))


def test_aliased_buffers() -> None:
    @vd.shader("a.size")
    def body(a: Buff[i32], b: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        a[i] = b[i] + 1
        b[i] = a[i] * 2

    data = filled(100, i32, 5)
    body(data, data)
    same(data.read(0), 12)
