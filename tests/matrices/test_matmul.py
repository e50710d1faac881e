"""`vd.matmul` against NumPy: shapes, types, transposed operands, and what it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.record import replace
from vkdispatch.codegen.abbreviations import Buff, c64, f16, f32, f64, i32

from .products import check, numbers, plan_for

FLAGS = (False, True)
# Around the edges of tiles, of loads of 4 elements, and of one another.
SIDES = (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65)
TYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
TYPES += [np.float16, np.float32, np.float64, np.complex64, np.complex128]


def test_sizes() -> None:
    rng = np.random.default_rng(5)
    sizes = {tuple(rng.choice(SIDES, 3)) for _ in range(80)}
    sizes |= {(1, 1, 1), (16, 16, 16), (17, 16, 15), (64, 64, 64), (5, 300, 4), (129, 12, 70), (40, 1, 40)}
    for m, k, n in sorted(sizes):
        check((m, k), (k, n))


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, True), (True, False), (True, True)])
def test_transposed(transpose_a: bool, transpose_b: bool) -> None:
    for m, k, n in [(33, 40, 35), (31, 15, 18), (1, 30, 40), (70, 17, 1), (1, 1, 1), (3, 4, 5), (17, 300, 2)]:
        check((m, k), (k, n), transpose_a=transpose_a, transpose_b=transpose_b)
    for m, k, n in [(36, 32, 20), (12, 28, 16)]:
        check((m, k), (k, n), transpose_a=transpose_a, transpose_b=transpose_b)


@pytest.mark.parametrize("kind", TYPES)
def test_types(kind: Any) -> None:
    check((33, 40), (40, 35), kind)
    check((5, 3, 4), (5, 4, 2), kind)
    if kind in (np.bool_, np.int8, np.float16, np.complex128):
        check((1, 64), (64, 48), kind)
        check((37, 64), (64,), kind)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (np.float16, np.float32),
        (np.int8, np.float32),
        (np.uint16, np.int16),
        (np.uint64, np.int64),
        (np.float64, np.complex64),
        (np.bool_, np.int8),
        (np.int32, np.float32),
    ],
)
def test_promotion_of_types(kind: Any, other: Any) -> None:
    check((18, 20), (20, 17), kind, other)
    check((20,), (20, 17), other, kind)


def test_integers_wrap_around() -> None:
    rng = np.random.default_rng(3)
    for kind in (np.int8, np.uint16, np.int32, np.uint64):
        info = np.iinfo(kind)
        a, b = (rng.integers(info.min, info.max, shape, kind) for shape in ((20, 33), (33, 18)))
        assert np.array_equal(vd.matmul(vd.asbuffer(a), vd.asbuffer(b)).read(0), np.matmul(a, b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4, 5), (3, 5, 6)),
        ((3, 20, 15), (15, 16)),
        ((20, 15), (3, 15, 16)),
        ((1, 20, 15), (3, 15, 16)),
        ((3, 20, 15), (1, 15, 16)),
        ((1, 20, 15), (1, 15, 16)),
        ((5,), (5,)),
        ((5,), (5, 6)),
        ((7, 5), (5,)),
        ((3, 4, 5), (5,)),
        ((5,), (3, 5, 4)),
        ((3, 40, 50), (50,)),
        ((50,), (3, 50, 40)),
        ((2, 30, 51), (2, 51, 1)),
        ((2, 1, 50), (2, 50, 31)),
        ((700, 2, 3), (700, 3, 2)),
        ((70, 20, 17), (70, 17, 18)),
    ],
)
def test_batches(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(a, b)
    if len(a) > 1:
        check(a, b, transpose_a=True)
    if len(b) > 1:
        check(a, b, transpose_b=True)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((0, 5), (5, 3)),
        ((4, 5), (5, 0)),
        ((4, 0), (0, 3)),
        ((0,), (0,)),
        ((0,), (0, 3)),
        ((4, 0), (0,)),
        ((0, 4, 5), (5, 2)),
        ((0, 4, 5), (1, 5, 2)),
        ((3, 4, 0), (0, 2)),
        ((0, 0), (0, 0)),
    ],
)
def test_empty_arrays(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    for kind in (np.float32, np.bool_, np.complex128):
        check(a, b, kind)
    if a.count(0) and a[-1] == 0:
        # the buffer holds what was there before
        want = np.matmul(np.zeros(a), np.zeros(b))
        out = vd.asbuffer(np.full(want.shape, 7, np.float32))
        vd.matmul(vd.Buffer(a, f32), vd.Buffer(b, f32), out)
        assert np.array_equal(out.read(0), want)


def test_long_sums_have_parts() -> None:
    """The length is dealt to workgroups, or lanes, whose sums are added up."""
    for a, b in [
        ((3, 9001), (9001, 5)),
        ((1, 20000), (20000, 3)),
        ((2, 70001), (70001,)),
        ((30011,), (30011,)),
    ]:
        check(a, b, np.int32)
        check(a, b, np.int32, transpose_a=len(a) > 1, transpose_b=len(b) > 1)


def test_infinities_and_nan() -> None:
    a, b = numbers((20, 18), np.float32, 1), numbers((18, 21), np.float32, 2)
    a[3, 4], a[5, 6], b[7, 8], b[9, 20] = np.inf, np.nan, -np.inf, np.nan
    for m, k, n in [(20, 18, 21), (20, 17, 21), (19, 9, 20), (20, 18, 1), (1, 18, 21)]:
        with np.errstate(invalid="ignore"):
            want = np.matmul(a[:m, :k], b[:k, :n])
        left, right = (vd.asbuffer(np.ascontiguousarray(part)) for part in (a[:m, :k], b[:k, :n]))
        assert np.array_equal(vd.matmul(left, right).read(0), want, equal_nan=True)


def test_neighbouring_memory_is_not_used() -> None:
    """What lies beyond the edges of a matrix, NaN here, is not seen: the sides are no multiples of tiles."""
    whole = np.full((3, 19, 21), np.nan, np.float32)
    whole[1] = numbers((19, 21), np.float32)
    b = numbers((21, 5), np.float32)
    got = vd.matmul(vd.asbuffer(whole), vd.asbuffer(b)).read(0)
    assert np.array_equal(got[1], whole[1] @ b) and np.isnan(got[[0, 2]]).all()


def test_accuracy() -> None:
    rng = np.random.default_rng(4)
    for kind, bound in ((np.float32, 5e-6), (np.float64, 1e-14)):
        a, b = rng.standard_normal((40, 3000)).astype(kind), rng.standard_normal((3000, 50)).astype(kind)
        want = a.astype(np.longdouble) @ b.astype(np.longdouble)
        got = vd.matmul(vd.asbuffer(a), vd.asbuffer(b)).read(0)
        assert np.abs(got - want).max() < bound * np.abs(want).max()


def test_halves_are_added_up_in_floats() -> None:
    ones = vd.asbuffer(np.ones((3, 5000), np.float16))
    assert (vd.matmul(ones, ones, transpose_b=True).read(0) == 5000).all()  # float16 stops at 2048
    many = vd.asbuffer(np.full((3, 80000), 1, np.float16))
    assert np.isinf(vd.matmul(many, many, transpose_b=True).read(0)).all()
    whole = vd.matmul(many, many, transpose_b=True, dtype=f32)
    assert whole.var_type is f32 and (whole.read(0) == 80000).all()


def test_bfloat16() -> None:
    a, b = numbers((20, 40), np.float32, 1), numbers((40, 24), np.float32, 2)
    left, right = vd.Buffer((20, 40), vd.bfloat16), vd.Buffer((40, 24), vd.bfloat16)
    left.write((a.view(np.uint32) >> 16).astype(np.uint16))
    right.write((b.view(np.uint32) >> 16).astype(np.uint16))
    assert np.array_equal(vd.matmul(left, right, dtype=f32).read(0), a @ b)
    short = vd.matmul(left, right)
    assert short.var_type is vd.bfloat16
    mixed = vd.matmul(left, vd.asbuffer(b.astype(np.float16)))
    assert mixed.var_type is f32 and np.array_equal(mixed.read(0), a @ b)


def test_dtype() -> None:
    a, b = np.full((5, 20), 100, np.int8), np.full((20, 6), 100, np.int8)
    got = vd.matmul(vd.asbuffer(a), vd.asbuffer(b), dtype=i32)
    assert got.var_type is i32 and (got.read(0) == 200_000).all()
    assert (vd.matmul(vd.asbuffer(a), vd.asbuffer(b), dtype=f64).read(0) == 200_000).all()
    assert (vd.matmul(vd.asbuffer(a), vd.asbuffer(b), dtype=c64).read(0) == 200_000).all()


def test_the_same_bits_every_time() -> None:
    rng = np.random.default_rng(6)
    for a, b in [((70, 5000), (5000, 40)), ((5000,), (5000, 30)), ((50, 40), (40, 60))]:
        x, y = (vd.asbuffer(rng.standard_normal(shape).astype(np.float32)) for shape in (a, b))
        first = vd.matmul(x, y).read(0)
        assert all(np.array_equal(vd.matmul(x, y).read(0), first) for _ in range(3))


# ---- maps ----------------------------------------------------------------------------------------


@vd.map
def scaled(x: f32, factor: f32) -> f32:
    return x * factor


@vd.map
def relu(value: f32, bias: Buff[f32]) -> f16:  # type: ignore[valid-type]
    return vc.max(value + bias[vd.mapped_index() % bias.shape.w], 0).to_dtype(f16)  # type: ignore[no-any-return]


@vd.map
def squared(value: f32) -> f32:
    return value * value


@pytest.mark.parametrize(
    ("m", "k", "n"), [(20, 24, 28), (19, 23, 27), (1, 40, 30), (30, 40, 1), (3, 4, 5), (4, 9000, 4)]
)
def test_maps(m: int, k: int, n: int) -> None:
    a, b = numbers((m, k), np.float32, 1), numbers((k, n), np.float32, 2)
    bias = numbers((n,), np.float32, 3)
    left, right = vd.asbuffer(a), vd.asbuffer(b)
    assert np.array_equal(vd.matmul(scaled(left, 2.0), right).read(0), 2 * (a @ b))
    assert np.array_equal(vd.matmul(left, scaled(right, right)).read(0), a @ (b * b))
    got = vd.matmul(left, right, output_map=relu(vd.asbuffer(bias)))
    assert got.var_type is f16
    assert np.array_equal(got.read(0), np.maximum(a @ b + bias, 0).astype(np.float16))
    assert np.array_equal(vd.matmul(left, right, output_map=squared).read(0), (a @ b) ** 2)


def test_maps_of_empty_arrays() -> None:
    bias = np.array([1, -2, 3], np.float32)
    a, b = vd.Buffer((2, 0), f32), vd.Buffer((0, 3), f32)
    got = vd.matmul(a, b, output_map=relu(vd.asbuffer(bias))).read(0)
    assert np.array_equal(got, [[1, 0, 3]] * 2)


def test_a_map_that_writes_runs_once_for_each_element() -> None:
    @vd.map
    def counted(x: Buff[f32], seen: Buff[i32]) -> f32:  # type: ignore[valid-type]
        i = vd.mapped_index()
        seen[i] = seen[i] + 1
        return x[i]  # type: ignore[no-any-return]

    a, b = numbers((40, 20), np.float32, 1), numbers((20, 70), np.float32, 2)
    seen = vd.asbuffer(np.zeros((40, 20), np.int32))
    got = vd.matmul(counted(vd.asbuffer(a), seen), vd.asbuffer(b)).read(0)
    assert np.array_equal(got, a @ b) and (seen.read(0) == 1).all()


def test_graphs() -> None:
    a, b = numbers((20, 30), np.float32, 1), numbers((30, 25), np.float32, 2)
    left, right = vd.asbuffer(a), vd.asbuffer(b)
    graph = vd.CommandGraph()
    out = vd.matmul(left, right, graph=graph)
    long = vd.matmul(left, left, transpose_b=True, graph=graph)
    vd.matmul(*(vd.asbuffer(numbers((4, 3, 3), np.float32)) for _ in "ab"), graph=graph)
    graph.submit(instance_count=1)
    assert np.array_equal(out.read(0), a @ b) and np.array_equal(long.read(0), a @ a.T)
    left.write(2 * a)
    graph.submit(instance_count=1)
    assert np.array_equal(out.read(0), 2 * (a @ b))


def test_out_and_one_buffer_twice() -> None:
    a = numbers((24, 24), np.float32, 1)
    left = vd.asbuffer(a)
    out = vd.Buffer((24, 24), f32)
    assert vd.matmul(left, left, out) is out
    assert np.array_equal(out.read(0), a @ a)
    assert np.array_equal(vd.matmul(left, left, out=out, transpose_a=True).read(0), a.T @ a)


# ---- what is refused -----------------------------------------------------------------------------


def test_refusals() -> None:
    square = vd.asbuffer(np.zeros((4, 4), np.float32))
    row = vd.asbuffer(np.zeros(4, np.float32))
    number = vd.Buffer((), f32)
    three = vd.asbuffer(np.zeros((3, 4, 4), np.float32))
    two = vd.asbuffer(np.zeros((2, 4, 4), np.float32))
    cases: list[tuple[type[Exception], str, Any]] = [
        (ArgumentTypeError, "a: expected", lambda: vd.matmul([[0.0]], square)),  # type: ignore[arg-type]
        (ArgumentTypeError, "b: matmul multiplies", lambda: vd.matmul(square, vd.Buffer((4, 4), vd.vec2))),
        (ArgumentValueError, "a: expected a matrix or a vector", lambda: vd.matmul(number, square)),
        (ArgumentValueError, "transpose_a: a has one axis", lambda: vd.matmul(row, square, transpose_a=True)),
        (ArgumentTypeError, "transpose_b: expected", lambda: vd.matmul(row, square, transpose_b=1)),  # type: ignore[arg-type]
        (ArgumentValueError, "rows of 4", lambda: vd.matmul(square, vd.Buffer((5, 4), f32))),
        (ArgumentValueError, "3 matrices", lambda: vd.matmul(three, two)),
        (
            ArgumentValueError,
            "out: it shares memory with a,",
            lambda: vd.matmul(square, row_square(), out=square),
        ),
        (
            ArgumentValueError,
            "out: it shares memory with .* of b,",
            lambda: vd.matmul(row_square(), scaled(square, 1.0), square),
        ),
        (ArgumentValueError, "out: expected a buffer", lambda: vd.matmul(square, square, out=row)),
        (ArgumentTypeError, "out: expected a vd.Buffer", lambda: vd.matmul(square, square, out=3)),  # type: ignore[arg-type]
        (ArgumentTypeError, "dtype: expected", lambda: vd.matmul(square, square, dtype=vd.vec2)),
        (ArgumentTypeError, "dtype: expected", lambda: vd.matmul(square, square, dtype=3)),  # type: ignore[arg-type]
        (ArgumentTypeError, "dtype: products", lambda: vd.matmul(square, vd.Buffer((4, 4), c64), dtype=f32)),
        (ArgumentTypeError, "output_map", lambda: vd.matmul(square, square, output_map=3)),
        (ArgumentTypeError, "output_map", lambda: vd.matmul(square, square, output_map=relu)),
    ]
    for kind, text, call in cases:
        with pytest.raises(kind, match=text):
            call()


def row_square() -> Any:
    """Return another square buffer."""
    return vd.asbuffer(np.zeros((4, 4), np.float32))


def test_calls_in_a_kernel_are_refused() -> None:
    square = row_square()

    with pytest.raises(UsageError, match="matmul: a kernel cannot call"):

        @vd.shader(exec_size=1)
        def body(x: Buff[f32]) -> None:  # type: ignore[valid-type]
            vd.matmul(square, square)


# ---- the kernels that GPUs use -------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), list(itertools.product(FLAGS, FLAGS))[:3])
def test_large_tiles(a: bool, b: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_for(monkeypatch, cpu=False, tiles_4=(_SQUARE,))
    check((70, 100), (100, 130), transpose_a=a, transpose_b=b)
    check((65, 33), (33, 67), transpose_a=a, transpose_b=b)
    check((2, 64, 40), (2, 40, 66), transpose_a=a, transpose_b=b)


def _tiles() -> list[Any]:
    from vkdispatch.matrices.plans import tuning

    return [(item, tile) for item in (4, 8, 16) for tile in getattr(tuning, f"tiles_{item}")]


@pytest.mark.parametrize(("item", "tile"), _tiles(), ids=str)
def test_bytes_in_every_tile(item: int, tile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load takes 16 of them, which may be more than a tile is deep."""
    plan_for(monkeypatch, cpu=False, **{f"tiles_{item}": (replace(tile, unroll=2),)})
    kind = {4: np.float32, 8: np.float64, 16: np.complex128}[item]
    rng = np.random.default_rng(item)
    octets = rng.integers(0, 9, (24, 32)).astype(np.uint8)
    others = rng.integers(-9, 9, (24, 32)).astype(kind)
    for a, b in ((octets, others), (others, octets)):
        for flip_a, flip_b in ((False, True), (True, False)):
            found = vd.matmul(vd.asbuffer(a), vd.asbuffer(b), transpose_a=flip_a, transpose_b=flip_b)
            expected = (a.T if flip_a else a).astype(kind) @ (b.T if flip_b else b).astype(kind)
            np.testing.assert_array_equal(found.read(0), expected)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.float64, np.int64, np.complex64])
def test_two_steps_per_turn(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that are written out whole: an odd or even number of them, and less than one, at an end."""
    from vkdispatch.matrices.plans import Tile

    tiles = (Tile(32, 32, 4, 4, 4, 4, 1.0),)
    plan_for(monkeypatch, cpu=False, tiles_4=tiles, tiles_8=tiles)
    for length in (4, 8, 12, 16, 20, 3, 5, 11, 14):
        check((33, length), (length, 36), kind)
    check((32, 12), (12, 32), kind, transpose_a=True, transpose_b=True)


def _square() -> Any:
    from vkdispatch.matrices.plans import Tile

    return Tile(64, 32, 16, 8, 4, 2, 1.0)


_SQUARE = _square()
