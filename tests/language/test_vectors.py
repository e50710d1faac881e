"""Vectors on the device: operators, components, swizzles, indices, stores, geometry."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
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
    ihv2,
    ihv3,
    ihv4,
    iv2,
    iv3,
    iv4,
    m2,
    u16,
    u32,
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

from .running import SIZES, buffer_of, close, evaluate, filled, host, need, result_types, same, wrapped

FLOAT_VECTORS: list[DType] = [v2, v3, v4, dv2, dv3, dv4, hv2, hv3, hv4]
INTEGER_VECTORS: list[DType] = [iv2, iv3, iv4, uv2, uv3, uv4, ihv2, ihv3, ihv4, uhv2, uhv3, uhv4]
TOLERANCE = {f16: 4e-3, f32: 2e-6, f64: 1e-14}


def vectors(kind: DType, count: int, seed: int, low: float = 1, high: float = 100) -> Any:
    drawn = np.random.default_rng(seed).uniform(low, high, (count, kind.child_count))
    return drawn.astype(host(kind))


def tolerance(kind: DType) -> float:
    return TOLERANCE[dt.component_type(dt.make_floating_dtype(kind))]


@pytest.mark.parametrize("kind", FLOAT_VECTORS, ids=lambda kind: kind.name)
def test_arithmetic_of_floats(kind: DType) -> None:
    need(kind)
    scalar = dt.component_type(kind)
    a, b, s = vectors(kind, 64, 1), vectors(kind, 64, 2), vectors(kind, 64, 3)[:, 0].copy()
    rules = [operator.add, operator.sub, operator.mul, operator.truediv]

    def forms(x: Any, y: Any, z: Any) -> list[Any]:
        pairs = ((x, y), (x, z), (z, x), (x, 2), (0.5, x))
        in_place = x.to_register()
        in_place += y
        in_place *= z
        in_place /= 2
        return [rule(*pair) for rule in rules for pair in pairs] + [-x, abs(-x), in_place]

    assert set(result_types(forms, [kind, kind, scalar])) == {kind}
    column = s[:, None]
    half = host(kind).type(0.5)
    pairs = ((a, b), (a, column), (column, a), (a, host(kind).type(2)), (half, a))
    expected = [rule(*pair) for rule in rules for pair in pairs] + [-a, a, (a + b) * column / 2]
    for place, (actual, values) in enumerate(
        zip(evaluate(forms, (kind, a), (kind, b), (scalar, s)), expected, strict=True)
    ):
        close(actual, values, tolerance(kind), tolerance(kind), f"result {place}")


@pytest.mark.parametrize("kind", INTEGER_VECTORS, ids=lambda kind: kind.name)
def test_operators_of_integers(kind: DType) -> None:
    need(kind)
    scalar = dt.component_type(kind)
    a, b = vectors(kind, 64, 1), vectors(kind, 64, 2)
    s = vectors(kind, 64, 3, 1, 7)[:, 0].copy()
    wrapping = [operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor]
    rules = [*wrapping, operator.floordiv, operator.mod]
    shifts = [operator.lshift, operator.rshift]

    def forms(x: Any, y: Any, z: Any) -> list[Any]:
        pairs = ((x, y), (x, z), (z, x), (x, 3), (100, x))
        in_place = x.to_register()
        in_place += y
        in_place <<= 1
        in_place ^= z
        return [
            *(rule(*pair) for rule in rules for pair in pairs),
            *(rule(x, amount) for rule in shifts for amount in (z, 2)),
            -x, ~x, in_place,
        ]  # fmt: skip

    assert set(result_types(forms, [kind, kind, scalar])) == {kind}
    wide_a, wide_b, column = (values.astype(np.int64) for values in (a, b, s[:, None]))
    pairs = ((wide_a, wide_b), (wide_a, column), (column, wide_a), (wide_a, 3), (100, wide_a))
    expected = [rule(*pair) for rule in rules for pair in pairs]
    expected += [rule(wide_a, amount) for rule in shifts for amount in (column, 2)]
    expected += [-wide_a, ~wide_a, ((wide_a + wide_b) << 1) ^ column]
    for place, (actual, values) in enumerate(
        zip(evaluate(forms, (kind, a), (kind, b), (scalar, s)), expected, strict=True)
    ):
        exact = wrapped(np.broadcast_to(values, a.shape).ravel(), kind).reshape(a.shape)
        same(actual, exact, f"result {place}")


@pytest.mark.parametrize("kind", [iv3, uv2, ihv4], ids=lambda kind: kind.name)
def test_true_division_of_integers(kind: DType) -> None:
    real = dt.make_floating_dtype(kind)
    need(kind, real)
    a, b = vectors(kind, 64, 1), vectors(kind, 64, 2)
    assert result_types(lambda x, y: [x / y, x / 4], [kind, kind]) == [real, real]
    by_vector, by_number = evaluate(lambda x, y: [x / y, x / 4], (kind, a), (kind, b))
    close(by_vector, a / b, tolerance(kind))
    close(by_number, a / 4, tolerance(kind))


def test_mixed_components() -> None:
    need(f64)
    a, b, s = vectors(iv3, 64, 1), vectors(v3, 64, 2), vectors(dv2, 64, 3)[:, 0].copy()

    def forms(x: Any, y: Any, z: Any) -> list[Any]:
        return [x + y, y * x, x * z, x + 1.5, x.to_dtype(uv3), y.to_dtype(iv3)]

    assert result_types(forms, [iv3, v3, f64]) == [v3, v3, dv3, v3, uv3, iv3]
    found = evaluate(forms, (iv3, a), (v3, b), (f64, s))
    for actual, values in zip(found, [a + b, a * b, a * s[:, None], a + 1.5, a, b.astype(int)], strict=True):
        close(actual, values, 2e-6)


@pytest.mark.parametrize("kind", [*FLOAT_VECTORS, *INTEGER_VECTORS], ids=lambda kind: kind.name)
def test_components(kind: DType) -> None:
    need(kind)
    size = kind.child_count
    a = vectors(kind, 64, 1)

    def forms(x: Any) -> list[Any]:
        by_name = [getattr(x, letter) for letter in "xyzw"[:size]]
        return [*by_name, *(x[i] for i in range(size)), *x, *(x[(i,)] for i in range(size))]

    assert len(result_types(forms, [kind])) == 4 * size
    assert set(result_types(forms, [kind])) == {dt.component_type(kind)}
    for place, actual in enumerate(evaluate(forms, (kind, a))):
        same(actual, a[:, place % size])


@pytest.mark.parametrize("kind", [v2, v3, v4, iv4, dv3, uhv4], ids=lambda kind: kind.name)
def test_swizzles(kind: DType) -> None:
    need(kind)
    size = kind.child_count
    names = ["".join(letters) for n in (1, 2, 3) for letters in itertools.product("xyzw"[:size], repeat=n)]
    names = [*names[:: max(1, len(names) // 16)], "xyzw"[:size][::-1], "xxxx"]
    a = vectors(kind, 32, 1)

    def forms(x: Any) -> list[Any]:
        return [x.swizzle(name) for name in names]

    for name, actual in zip(names, evaluate(forms, (kind, a)), strict=True):
        places = ["xyzw".index(letter) for letter in name]
        same(actual, a[:, places[0]] if len(name) == 1 else a[:, places], name)


def test_swizzles_of_scalars() -> None:
    found = evaluate(lambda x: [x.swizzle("x"), x.swizzle("xx"), x.swizzle("xxxx")], (f32, [1.0, 2.0]))
    same(found[0], [1, 2])
    same(found[1], [[1, 1], [2, 2]])
    same(found[2], [[1] * 4, [2] * 4])


@pytest.mark.parametrize("kind", [v3, iv4, uv2, dv4], ids=lambda kind: kind.name)
def test_dynamic_indices(kind: DType) -> None:
    need(kind)
    size = kind.child_count
    a = vectors(kind, 64, 1)
    at = np.arange(64, dtype=np.uint32) % size

    def forms(x: Any, i: Any) -> list[Any]:
        changed = x.to_register()
        changed[i] = 5
        changed[(i + 1) % size] += changed[i]
        return [x[i], x[i.to_dtype(i32)], changed]

    picked, again, changed = evaluate(forms, (kind, a), (u32, at))
    rows = np.arange(64)
    same(picked, a[rows, at])
    same(again, picked)
    expected = a.copy()
    expected[rows, at] = 5
    expected[rows, (at + 1) % size] += 5
    same(changed, expected)


@pytest.mark.parametrize("kind", [*FLOAT_VECTORS, *INTEGER_VECTORS], ids=lambda kind: kind.name)
@pytest.mark.parametrize("count", [1, 257])
def test_stores_of_components(kind: DType, count: int) -> None:
    need(kind)
    size = kind.child_count

    @vd.shader("out.size")
    def body(out: Buff[kind], source: Buff[kind]) -> None:
        i = vc.global_invocation_id().x
        v = source[i].to_register()
        v.x = 2
        v[1] = v.x + 1
        v[:] = v + 1
        out[i] = v
        out[i].y = source[i].x
        out[i].x += 4
        out[i][size - 1] *= 2

    a = vectors(kind, count, 1, 1, 50)
    out = filled(count, kind, 1)
    body(out, buffer_of(kind, a))
    expected = a + 1
    expected[:, 0], expected[:, 1] = 3 + 4, a[:, 0]
    expected[:, -1] *= 2
    close(out.read(0), expected, tolerance(kind))


@pytest.mark.parametrize("count", SIZES)
def test_neighbours_of_unpadded_elements_are_unchanged(count: int) -> None:
    @vd.shader("out.size // 2 + 1")
    def body(out: Buff[v3]) -> None:
        i = vc.global_invocation_id().x * 2
        with vc.if_block(i < out.shape.x.to_dtype(u32)):
            out[i] = vc.to_vec3(1, 2, 3)

    out = filled(count, v3, 9)
    body(out)
    expected = np.full((count, 3), 9)
    expected[::2] = [1, 2, 3]
    same(out.read(0), expected)


def test_broadcast_stores_and_constructors() -> None:
    def forms(x: Any) -> list[Any]:
        register = vc.new_vec4_register(1, 2, 3, 4)
        register[:] = 7
        xy = vc.to_vec2(x, 1)
        return [
            register, vc.to_vec3(xy, 2), vc.to_vec3(2, xy), vc.to_vec4(xy, xy), vc.to_vec3(x),
            vc.new_vec2_register(), vc.new_ivec3_register(5), vc.new_uvec4_register(1, 2, 3, 4),
            vc.to_ivec2(x * 2.6, -2.6), vc.new_register(v3, x, x, 0), vc.to_dtype(v2, register),
        ]  # fmt: skip

    found = evaluate(forms, (f32, [1.0, 3.0]))
    expected = [
        [[7] * 4] * 2, [[1, 1, 2], [3, 1, 2]], [[2, 1, 1], [2, 3, 1]], [[1, 1, 1, 1], [3, 1, 3, 1]],
        [[1] * 3, [3] * 3], [[0, 0]] * 2, [[5] * 3] * 2, [[1, 2, 3, 4]] * 2, [[2, -2], [7, -2]],
        [[1, 1, 0], [3, 3, 0]], [[7, 7]] * 2,
    ]  # fmt: skip
    for actual, values in zip(found, expected, strict=True):
        same(actual, values)


@pytest.mark.parametrize("kind", [v2, v3, v4, dv3, iv3, uv4], ids=lambda kind: kind.name)
def test_equality(kind: DType) -> None:
    need(kind)
    a, b = vectors(kind, 64, 1), vectors(kind, 64, 2)
    b[::2] = a[::2]
    b[2::4, 0] += 1
    equal, unequal = evaluate(lambda x, y: [x == y, x != y], (kind, a), (kind, b))
    same(equal, (a == b).all(1))
    same(unequal, (a != b).any(1))


@pytest.mark.parametrize("kind", FLOAT_VECTORS, ids=lambda kind: kind.name)
def test_geometry(kind: DType) -> None:
    need(kind)
    scalar = dt.component_type(kind)
    a, b = vectors(kind, 257, 1, -5, 5), vectors(kind, 257, 2, -5, 5)

    def forms(x: Any, y: Any) -> list[Any]:
        return [vc.length(x), vc.distance(x, y), vc.dot(x, y), x @ y, vc.normalize(x)]

    assert result_types(forms, [kind, kind]) == [scalar] * 4 + [kind]
    p, q = a.astype(float), b.astype(float)
    inner = (p * q).sum(1)
    norm = np.linalg.norm(p, axis=1)
    expected = [norm, np.linalg.norm(p - q, axis=1), inner, inner, p / norm[:, None]]
    for actual, values in zip(evaluate(forms, (kind, a), (kind, b)), expected, strict=True):
        close(actual, values, 2 * tolerance(kind), 50 * tolerance(kind))


@pytest.mark.parametrize("kind", [hv2, hv3, hv4], ids=lambda kind: kind.name)
def test_lengths_of_float16_vectors_have_squares_beyond_float16(kind: DType) -> None:
    need(kind)
    count = dt.component_count(kind)
    a = np.full((3, count), [[300], [30000], [1e-3]], np.float16)
    found = evaluate(lambda x: [vc.length(x), vc.distance(x, -x), vc.normalize(x)], (kind, a))
    norm = np.linalg.norm(a.astype(float), axis=1)
    with np.errstate(over="ignore"):
        wanted = [norm.astype(np.float16), (2 * norm).astype(np.float16), a / norm[:, None]]
    for actual, values in zip(found, wanted, strict=True):
        np.testing.assert_allclose(actual, values, rtol=2e-3)


@pytest.mark.parametrize("kind", [v3, dv3, hv3], ids=lambda kind: kind.name)
def test_cross_product(kind: DType) -> None:
    need(kind)
    a, b = vectors(kind, 257, 1, -5, 5), vectors(kind, 257, 2, -5, 5)
    (found,) = evaluate(vc.cross, (kind, a), (kind, b))
    close(found, np.cross(a.astype(float), b.astype(float)), 0, 50 * tolerance(kind))


def test_geometry_of_integers() -> None:
    a, b = vectors(iv3, 64, 1), vectors(iv3, 64, 2)
    found = evaluate(lambda x, y: [vc.dot(x, y), vc.length(x), vc.cross(x, y)], (iv3, a), (iv3, b))
    same(found[0], (a * b).sum(1))
    close(found[1], np.linalg.norm(a, axis=1))
    close(found[2], np.cross(a, b), 1e-5, 1e-3)


def test_geometry_of_scalars() -> None:
    # the squares of 1e20 and 1e-30 leave float32
    x, y = np.float32([1.5, -2, 0, 1e20, -1e-30]), np.float32([2, 3, -1, -1e18, 1])
    found = evaluate(lambda a, b: [vc.length(a), vc.distance(a, b), vc.dot(a, b)], (f32, x), (f32, y))
    for actual, values in zip(found, [abs(x), abs(y - x), x * y], strict=True):
        close(actual, values)


@pytest.mark.parametrize("kind", [v2, v3, v4, dv2], ids=lambda kind: kind.name)
def test_functions_apply_to_components(kind: DType) -> None:
    need(kind)
    a, b = vectors(kind, 64, 1, -2, 2), vectors(kind, 64, 2, -2, 2)

    def forms(x: Any, y: Any) -> list[Any]:
        return [
            vc.exp2(x), vc.floor(x), vc.sqrt(abs(x)), vc.min(x, y), vc.max(x, 0.5), vc.clip(x, -1, 1),
            vc.mix(x, y, 0.25), vc.abs(x), vc.step(0, x), vc.fma(x, y, 1), vc.atan2(y, x), abs(x) ** 1.5,
        ]  # fmt: skip

    assert set(result_types(forms, [kind, kind])) == {kind}
    p, q = a.astype(float), b.astype(float)
    expected = [
        2**p, np.floor(p), np.sqrt(abs(p)), np.minimum(p, q), np.maximum(p, 0.5), np.clip(p, -1, 1),
        p * 0.75 + q * 0.25, abs(p), p >= 0, p * q + 1, np.arctan2(q, p), abs(p) ** 1.5,
    ]  # fmt: skip
    for place, (actual, values) in enumerate(
        zip(evaluate(forms, (kind, a), (kind, b)), expected, strict=True)
    ):
        close(actual, values, 2e-5, 2e-6, f"result {place}")


@pytest.mark.parametrize(
    ("kind", "part"), [(v2, f32), (iv3, i32), (uv4, u32), (ihv2, i16), (uhv3, u16), (hv4, f16), (dv2, f64)]
)
def test_buffers_of_vectors_seen_as_scalars(kind: DType, part: DType) -> None:
    need(kind)

    @vd.shader("out.size")
    def body(out: Buff[part]) -> None:
        i = vc.global_invocation_id().x
        out[i] = out[i] * 2

    a = vectors(kind, 65, 1, 1, 50)
    out = buffer_of(kind, a)
    body(out.view(part))
    same(out.read(0), a * 2)


def test_a_component_changes_however_often_the_rest_is_read() -> None:
    @vd.shader("out.size")
    def body(out: Buff[v4], counts: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        out[i].y = out[i].x + out[i].y + out[i].z + out[i].w
        vc.atomic_add(counts[i], counts[i] * counts[i] + counts[i] * counts[i] + counts[i])

    @vd.shader("out.size")
    def update(out: Buff[v4]) -> None:
        i = vc.global_invocation_id().x
        out[i][2] = out[i].x + out[i].y + out[i].z + out[i].w

    a = vectors(v4, 65, 1, 1, 50)
    out, counts = buffer_of(v4, a), buffer_of(i32, np.arange(65))
    body(out, counts)
    update(out)
    a[:, 1] = a.sum(axis=1)
    a[:, 2] = a.sum(axis=1)
    same(out.read(0), a)
    n = np.arange(65)
    same(counts.read(0), (2 * n * n + 2 * n).astype(np.int32))


def test_a_column_changes_however_often_the_rest_is_read() -> None:
    @vd.shader("out.size")
    def body(out: Buff[m2]) -> None:
        i = vc.global_invocation_id().x
        out[i][0].x = out[i][0].x + out[i][0].y + out[i][1].x + out[i][1].y

    a = np.arange(65 * 4, dtype=np.float32).reshape(65, 2, 2)
    out = buffer_of(m2, a)
    body(out)
    a[:, 0, 0] = a.sum(axis=(1, 2))
    same(out.read(0), a)


def test_functions_change_vectors_where_all_invocations_run() -> None:
    def touch(vector: Any) -> None:
        vector.x += 5

    def after_a_loop(x: Buff[i32], y: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        pair = vc.to_ivec2(1, 1)
        k = 0
        while k < 5 and k < x[i]:
            k += 1
        else:  # no break leaves the loop
            touch(pair)
            y[i] = pair[k % 2] + k

    def in_a_branch(x: Buff[i32], y: Buff[i32]) -> None:
        pair = vc.to_ivec2(1, 1)
        if x[0] > 0:
            touch(pair)
        y[0] = pair.x

    x, y = vd.asbuffer(np.arange(7, dtype=np.int32)), vd.Buffer(7, vd.int32)
    vd.shader("x.size")(after_a_loop)(x, y)
    assert y.read(0).tolist() == [6, 2, 8, 4, 10, 6, 6]
    with pytest.raises(vd.UsageError, match="make it a register"):
        vd.shader("x.size")(in_a_branch)(x, y)
