"""Matrices on the device. A host array's first axis counts the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32, m2, m3, m4, u32, v2, v3, v4

from .running import SIZES, buffer_of, close, evaluate, filled, result_types, same

SQUARE: list[tuple[DType, DType]] = [(m2, v2), (m3, v3), (m4, v4)]
PAIRS = pytest.mark.parametrize(("kind", "vector"), SQUARE, ids=["mat2", "mat3", "mat4"])


def matrices(kind: DType, count: int, seed: int) -> Any:
    size = kind.child_count
    return np.random.default_rng(seed).uniform(-2, 2, (count, size, size)).astype(np.float32)


def vectors(kind: DType, count: int, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, (count, kind.child_count)).astype(np.float32)


def math(values: Any) -> Any:
    """The matrices as mathematics write them: rows first."""
    return values.astype(float).transpose(0, 2, 1)


def test_the_documented_example() -> None:
    @vd.shader(exec_size=1)
    def body(out: Buff[v2], m: Const[m2], v: Const[v2]) -> None:
        out[0] = m * v
        out[1] = v * m

    out = filled(2, v2)
    body(out, [[1, 2], [3, 4]], (5, 6))
    same(out.read(0), [[23, 34], [17, 39]])


@PAIRS
def test_products(kind: DType, vector: DType) -> None:
    a, b, v = matrices(kind, 257, 1), matrices(kind, 257, 2), vectors(vector, 257, 3)

    def forms(m: Any, n: Any, x: Any) -> list[Any]:
        in_place = m.to_register()
        in_place *= n
        row = x.to_register()
        row *= m
        return [m * n, m @ n, in_place, m * x, m @ x, x * m, x @ m, row, vc.matrix_comp_mult(m, n)]

    assert result_types(forms, [kind, kind, vector]) == [kind] * 3 + [vector] * 5 + [kind]
    p, q, x = math(a), math(b), v.astype(float)
    product = (p @ q).transpose(0, 2, 1)
    column = np.einsum("nij,nj->ni", p, x)
    row = np.einsum("ni,nij->nj", x, p)
    expected = [product, product, product, column, column, row, row, row, a * b]
    for place, (actual, values) in enumerate(
        zip(evaluate(forms, (kind, a), (kind, b), (vector, v)), expected, strict=True)
    ):
        close(actual, values, 1e-5, 1e-5, f"result {place}")


@PAIRS
def test_sums_and_scaling(kind: DType, vector: DType) -> None:
    a, b = matrices(kind, 64, 1), matrices(kind, 64, 2)
    s = np.linspace(0.5, 2, 64, dtype=np.float32)

    def forms(m: Any, n: Any, x: Any) -> list[Any]:
        total = m.to_register()
        total += n
        total *= 2
        total -= m
        return [m + n, m - n, m + 1, 1 - m, m * x, x * m, m * 3, 0.5 * m, m / x, m / 2, -m, total]

    assert set(result_types(forms, [kind, kind, f32])) == {kind}
    x = s[:, None, None]
    expected = [
        a + b, a - b, a + 1, 1 - a, a * x, a * x, a * 3, a * 0.5, a / x, a / 2, -a, (a + b) * 2 - a,
    ]  # fmt: skip
    for place, (actual, values) in enumerate(
        zip(evaluate(forms, (kind, a), (kind, b), (f32, s)), expected, strict=True)
    ):
        close(actual, values, 1e-5, 1e-5, f"result {place}")


@PAIRS
def test_columns_and_elements(kind: DType, vector: DType) -> None:
    size = kind.child_count
    a = matrices(kind, 64, 1)

    def forms(m: Any) -> list[Any]:
        return [*(m[c] for c in range(size)), *(m[c][r] for c in range(size) for r in range(size)), *m]

    assert result_types(forms, [kind]) == [vector] * size + [f32] * size**2 + [vector] * size
    expected = [a[:, c] for c in range(size)]
    elements = [a[:, c, r] for c in range(size) for r in range(size)]
    for actual, values in zip(evaluate(forms, (kind, a)), [*expected, *elements, *expected], strict=True):
        same(actual, values)


@PAIRS
def test_dynamic_indices(kind: DType, vector: DType) -> None:
    size = kind.child_count
    a, v = matrices(kind, 64, 1), vectors(vector, 64, 2)
    at = (np.arange(64) % size).astype(np.int32)

    def forms(m: Any, x: Any, i: Any) -> list[Any]:
        changed = m.to_register()
        changed[i] = x
        changed[i][i] = 9
        changed[0].y += 1
        return [m[i], m[i][i], m[0][i], changed]

    column, diagonal, first, changed = evaluate(forms, (kind, a), (vector, v), (i32, at))
    rows = np.arange(64)
    same(column, a[rows, at])
    same(diagonal, a[rows, at, at])
    same(first, a[rows, 0, at])
    expected = a.copy()
    expected[rows, at] = v
    expected[rows, at, at] = 9
    expected[:, 0, 1] += 1
    same(changed, expected)


@PAIRS
def test_matrix_functions(kind: DType, vector: DType) -> None:
    a = matrices(kind, 257, 1) + 3 * np.eye(kind.child_count, dtype=np.float32)
    u, v = vectors(vector, 257, 2), vectors(vector, 257, 3)

    def forms(m: Any, x: Any, y: Any) -> list[Any]:
        return [vc.transpose(m), vc.determinant(m), vc.outer_product(x, y), vc.inverse(m) * m]

    assert result_types(forms, [kind, vector, vector]) == [kind, f32, kind, kind]
    transposed, determinant, outer, identity = evaluate(forms, (kind, a), (vector, u), (vector, v))
    same(transposed, a.transpose(0, 2, 1))
    close(determinant, np.linalg.det(a.astype(float)), 2e-4, 1e-3)
    # column c of the outer product is x * y[c]
    close(outer, v[:, :, None] * u[:, None, :], 1e-6)
    conditioned = np.linalg.cond(a.astype(float)) < 50
    assert conditioned.sum() > 100
    close(identity[conditioned], np.broadcast_to(np.eye(kind.child_count), a.shape)[conditioned], 0, 1e-4)


def test_transposing_twice_as_product() -> None:
    a, v = matrices(m3, 64, 1), vectors(v3, 64, 2)
    left, right = evaluate(lambda m, x: [vc.transpose(m) * x, x * m], (m3, a), (v3, v))
    close(left, right, 1e-5, 1e-5)


@PAIRS
def test_constructors(kind: DType, vector: DType) -> None:
    size = kind.child_count
    v = vectors(vector, 16, 1)
    makers = {m2: (vc.to_mat2, vc.new_mat2_register), m3: (vc.to_mat3, vc.new_mat3_register),
              m4: (vc.to_mat4, vc.new_mat4_register)}  # fmt: skip
    to_matrix, new_matrix = makers[kind]

    def forms(x: Any) -> list[Any]:
        broadcast = new_matrix()
        broadcast[:] = 3
        return [
            to_matrix(*[x] * size), to_matrix(*range(size * size)), to_matrix(2), new_matrix(x.x),
            new_matrix(), broadcast, vc.new_register(kind, *[x] * size),
        ]  # fmt: skip

    copies = np.repeat(v[:, None], size, axis=1)
    counted = np.broadcast_to(np.arange(size * size).reshape(size, size), copies.shape)
    eye = np.eye(size)
    expected = [
        copies, counted, np.broadcast_to(2 * eye, copies.shape), v[:, :1, None] * eye, copies * 0,
        copies * 0 + 3, copies,
    ]  # fmt: skip
    for actual, values in zip(evaluate(forms, (vector, v)), expected, strict=True):
        same(actual, values)


def test_sizes_convert() -> None:
    a = matrices(m3, 16, 1)
    wider, narrower = evaluate(lambda m: [vc.to_mat4(m), vc.to_mat2(m)], (m3, a))
    same(narrower, a[:, :2, :2])
    padded = np.broadcast_to(np.eye(4, dtype=np.float32), (16, 4, 4)).copy()
    padded[:, :3, :3] = a
    same(wider, padded)


@pytest.mark.parametrize("exponent", [1, 2, 3, 5])
def test_whole_powers(exponent: int) -> None:
    a = matrices(m2, 64, 1) / 2
    (found,) = evaluate(lambda m: m**exponent, (m2, a))
    expected = np.stack([np.linalg.matrix_power(m, exponent) for m in math(a)])
    close(found, expected.transpose(0, 2, 1), 1e-5, 1e-5)


def test_equality() -> None:
    a = matrices(m2, 64, 1)
    b = a.copy()
    b[::3, 1, 0] += 1
    equal, unequal = evaluate(lambda m, n: [m == n, m != n], (m2, a), (m2, b))
    same(equal, (a == b).all((1, 2)))
    same(unequal, (a != b).any((1, 2)))


@PAIRS
@pytest.mark.parametrize("count", SIZES)
def test_memory_has_no_padding(kind: DType, vector: DType, count: int) -> None:
    @vd.shader("out.size")
    def body(out: Buff[kind], source: Buff[kind]) -> None:
        i = vc.global_invocation_id().x
        last = source.shape.w.to_dtype(u32) - 1
        out[i] = source[last - i]
        out[i][1].x += 1
        out[i][0][1] = 5

    a = matrices(kind, count, 1)
    out = filled(count, kind)
    body(out, buffer_of(kind, a))
    expected = a[::-1].copy()
    expected[:, 1, 0] += 1
    expected[:, 0, 1] = 5
    same(out.read(0), expected)
