"""Maps whose arguments broadcast, as NumPy's arrays do, in every family of functions that takes maps."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import Buff, Const, b8, c64, f32, i32, u32, v2
from vkdispatch.families.operands import parse_operand

# Each way in which up to three axes are kept and broadcast, sizes of 1, primes, and more than a workgroup.
SHAPES: list[tuple[int, ...]] = [
    (),
    (1,),
    (7,),
    (1, 1),
    (5, 1),
    (1, 7),
    (5, 7),
    (1, 5, 1),
    (301, 1, 1),
    (301, 1, 7),
    (301, 5, 1),
    (1, 5, 7),
    (301, 5, 7),
]
EMPTY: list[tuple[int, ...]] = [(0,), (1, 0), (5, 0), (0, 7), (0, 1), (301, 0, 7)]


@vd.map
def combined(x: f32, y: f32) -> f32:
    return x * 3 + y


@vd.map
def squared(x: f32) -> f32:
    return x * x


@vd.map
def numbered(x: f32, table: Buff[f32]) -> f32:
    return x + table[vd.mapped_index()]


@vd.map
def added(value: f32, other: f32) -> f32:
    return value + other


def filled(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    """Return small whole numbers, so that sums are exact."""
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize("one", SHAPES, ids=str)
def test_two_arrays(one: tuple[int, ...]) -> None:
    for other in SHAPES:
        x, y = filled(one), filled(other, 1)
        expected = x * 3 + y
        mapped = combined(vd.asbuffer(x), vd.asbuffer(y))
        assert (mapped.shape, mapped.size) == (expected.shape, expected.size)
        np.testing.assert_array_equal(mapped.read(0), expected, err_msg=str(other))
        np.testing.assert_array_equal(vd.sum(mapped).read(0), expected.sum(dtype=np.float64))


def test_no_elements() -> None:
    for one, other in product(EMPTY, [*EMPTY, *SHAPES]):
        try:
            expected = np.broadcast_shapes(one, other)
        except ValueError:
            with pytest.raises(vd.ArgumentValueError, match="to broadcast with"):
                combined(vd.asbuffer(filled(one)), vd.asbuffer(filled(other)))
            continue
        mapped = combined(vd.asbuffer(filled(one)), vd.asbuffer(filled(other)))
        assert mapped.shape == mapped.read(0).shape == expected
        assert vd.sum(mapped).read(0) == 0


@pytest.mark.parametrize("one", SHAPES, ids=str)
def test_maps_of_maps(one: tuple[int, ...]) -> None:
    for other in SHAPES:
        x, y = filled(one), filled(other, 1)
        table = np.arange(x.size, dtype=np.float32) % 100  # of which all sums are exact
        a, b = vd.asbuffer(x), vd.asbuffer(y)
        inner = combined(b, squared(numbered(a, vd.asbuffer(table))))
        expected = (y * 3 + (x + table.reshape(one)) ** 2) * 3 + x
        np.testing.assert_array_equal(combined(inner, a).read(0), expected, err_msg=str(other))


def test_broadcast_map_uses_its_own_index() -> None:
    # the table is loaded ahead for the outer map, whose index is another
    table = vd.asbuffer(np.arange(5, 21, dtype=np.float32))
    one = vd.asbuffer(np.float32([1]))
    mapped = combined(table, numbered(one, table))
    assert vd.sum(mapped).read(0) == 3 * np.arange(5, 21).sum() + 16 * 6


def test_rows_and_columns_of_every_family() -> None:
    x, y = filled((61, 1)), filled((1, 67), 1)
    whole = x * 3 + y
    mapped = combined(vd.asbuffer(x), vd.asbuffer(y))
    for axis in (0, 1):
        np.testing.assert_array_equal(vd.sum(mapped, axis=axis).read(0), whole.sum(axis))
        np.testing.assert_array_equal(vd.argmax(mapped, axis=axis).read(0), whole.argmax(axis))
        np.testing.assert_array_equal(vd.cumsum(mapped, axis=axis).read(0), whole.cumsum(axis))
        np.testing.assert_array_equal(vd.sort(mapped, axis=axis).read(0), np.sort(whole, axis))
        order = vd.argsort(mapped, axis=axis, stable=True)
        np.testing.assert_array_equal(order.read(0), whole.argsort(axis, kind="stable"))
        largest, _ = vd.topk(mapped, 3, axis=axis)
        np.testing.assert_array_equal(
            largest.read(0), np.flip(np.sort(whole, axis), axis).take(range(3), axis)
        )
    np.testing.assert_array_equal(vd.cumsum(mapped).read(0), whole.cumsum())
    np.testing.assert_array_equal(vd.unique(mapped).read(0), np.unique(whole))
    np.testing.assert_array_equal(vd.transpose(mapped).read(0), whole.T)
    np.testing.assert_array_equal(vd.roll(mapped, 3, axis=1).read(0), np.roll(whole, 3, 1))
    np.testing.assert_array_equal(vd.concatenate([mapped, mapped]).read(0), np.concatenate([whole, whole]))
    np.testing.assert_array_equal(vd.pad(mapped, 2).read(0), np.pad(whole, 2))
    chosen = vd.take(mapped, vd.asbuffer(np.int32([60, 0, 7])), axis=0)
    np.testing.assert_array_equal(chosen.read(0), whole[[60, 0, 7]])
    columns = vd.nonzero(mapped)
    for got, expected in zip(columns, whole.nonzero(), strict=True):
        np.testing.assert_array_equal(got.read(0), expected)
    other = filled((67, 3), 2)
    np.testing.assert_array_equal(vd.matmul(mapped, vd.asbuffer(other)).read(0), whole @ other)
    counts, _ = vd.histogram(mapped, 10, (-40, 40))
    np.testing.assert_array_equal(counts.read(0), np.histogram(whole, 10, (-40, 40))[0])


def test_masks_that_are_maps() -> None:
    @vd.map
    def positive(x: f32) -> b8:
        return x > 0

    x, row = filled((61, 67)), filled((67,), 1)
    mask = positive(vd.asbuffer(row))
    expected = x.sum(0, where=row > 0)
    np.testing.assert_array_equal(vd.sum(vd.asbuffer(x), axis=0, where=mask).read(0), expected)


def test_arguments_of_output_maps() -> None:
    x = filled((61, 67))
    buffer = vd.asbuffer(x)
    for shape in [(67,), (1, 67), (61, 1), (61, 67), (1,), ()]:
        bias = filled(shape, 1)
        to = added(vd.asbuffer(bias))
        np.testing.assert_array_equal(vd.cumsum(buffer, axis=1, output_map=to).read(0), x.cumsum(1) + bias)
        np.testing.assert_array_equal(vd.sort(buffer, axis=1, output_map=to).read(0), np.sort(x, 1) + bias)
        np.testing.assert_array_equal(vd.flip(buffer, output_map=to).read(0), np.flip(x) + bias)
    for shape in [(61,), (1, 61), (61, 1)]:
        bias = filled(shape, 1)
        square = vd.matmul(buffer, buffer, transpose_b=True, output_map=added(vd.asbuffer(bias)))
        np.testing.assert_array_equal(square.read(0), x @ x.T + bias)
    outer = added(combined(vd.asbuffer(filled((61, 1), 2)), vd.asbuffer(filled((67,), 3))))
    expected = x + filled((61, 1), 2) * 3 + filled((67,), 3)
    np.testing.assert_array_equal(vd.flip(buffer, (), output_map=outer).read(0), expected)
    rows = vd.sum(buffer, axis=1, keepdims=True, output_map=added(vd.asbuffer(filled((61, 1), 4))))
    np.testing.assert_array_equal(rows.read(0), x.sum(1, keepdims=True) + filled((61, 1), 4))


@pytest.mark.parametrize("shape", [(67,), (61, 1), (1, 1)], ids=str)
def test_output_maps_of_every_family(shape: tuple[int, ...]) -> None:
    x, bias = filled((61, 67)), filled(shape, 1)
    buffer, to = vd.asbuffer(x), added(vd.asbuffer(bias))
    places = np.random.default_rng(2).integers(0, 61, 61)
    holds = x > filled((61, 1), 5)
    for got, expected in [
        (vd.transpose(buffer, (0, 1), output_map=to), x),
        (vd.roll(buffer, 5, axis=1, output_map=to), np.roll(x, 5, 1)),
        (vd.take(buffer, vd.asbuffer(places), axis=0, output_map=to), x[places]),
        (vd.pad(vd.asbuffer(x[1:-1]), ((1, 1), (0, 0)), output_map=to), np.pad(x[1:-1], ((1, 1), (0, 0)))),
        (vd.concatenate([buffer, buffer], axis=1, output_map=added(vd.asbuffer(bias[:, :1]))), [x, x])
        if bias.ndim == 2
        else (vd.repeat(buffer, 1, axis=0, output_map=to), x),
        (vd.where(vd.asbuffer(holds), buffer, 0.5, output_map=to), np.where(holds, x, np.float32(0.5))),
        (vd.topk(buffer, 67, axis=1, output_map=to)[0], np.flip(np.sort(x, 1), 1)),
        (vd.cumsum(buffer, axis=0, output_map=to), x.cumsum(0)),
        (vd.sort(buffer, axis=0, output_map=to), np.sort(x, 0)),
        (vd.argsort(buffer, axis=0, stable=True, output_map=to), x.argsort(0, kind="stable")),
        (vd.sum(buffer, axis=(), output_map=to), x),
        (vd.searchsorted(vd.asbuffer(np.arange(-9, 9, dtype=np.float32)), buffer, output_map=to), x + 9),
        (
            vd.random.Generator(3).random((61, 67), output_map=to),
            vd.random.Generator(3).random((61, 67)).read(0),
        ),
        (
            vd.random.Generator(3).permutation(buffer, output_map=to),
            vd.random.Generator(3).permutation(buffer).read(0),
        ),
    ]:
        values = np.concatenate(expected, 1) if isinstance(expected, list) else expected
        np.testing.assert_array_equal(got.read(0), (values + bias).astype(np.float32))


def test_wrong_arguments_of_output_maps_are_refused() -> None:
    x = vd.asbuffer(filled((6, 7)))
    wrong = added(vd.asbuffer(filled((6,))))
    larger = added(vd.asbuffer(filled((3, 6, 7))))
    for call in [
        lambda to: vd.cumsum(x, axis=0, output_map=to),
        lambda to: vd.sort(x, output_map=to),
        lambda to: vd.argsort(x, output_map=to),
        lambda to: vd.topk(x, 7, output_map=to),
        lambda to: vd.flip(x, output_map=to),
        lambda to: vd.transpose(x, (0, 1), output_map=to),
        lambda to: vd.take(x, vd.asbuffer(np.arange(6)), axis=0, output_map=to),
        lambda to: vd.pad(x, 0, output_map=to),
        lambda to: vd.concatenate([x], output_map=to),
        lambda to: vd.where(vd.asbuffer(np.ones((6, 7), np.bool_)), x, x, output_map=to),
        lambda to: vd.matmul(x, vd.asbuffer(filled((7, 7))), output_map=to),
        lambda to: vd.sum(x, axis=(), output_map=to),
        lambda to: vd.random.Generator(1).random((6, 7), output_map=to),
    ]:
        for to in (wrong, larger):
            with pytest.raises(
                vd.ArgumentValueError, match=r"output_map: 'added' .*does not broadcast .*\(6, 7\)"
            ):
                call(to)
    with pytest.raises(vd.ArgumentValueError, match="up to 42 elements"):
        vd.unique(x, output_map=wrong)
    with pytest.raises(vd.ArgumentValueError, match="up to 42 elements"):
        vd.compact(x, vd.asbuffer(np.ones(42, np.bool_)), output_map=wrong)
    kept = vd.compact(x, vd.asbuffer(np.arange(42) < 5), output_map=added(vd.asbuffer(filled((50,), 1))))
    np.testing.assert_array_equal(kept.read(0), filled((6, 7)).ravel()[:5] + filled((50,), 1)[:5])


def test_other_dtypes_and_numbers() -> None:
    @vd.map
    def scaled(x: v2, y: f32, factor: f32) -> v2:
        return x * y * factor

    @vd.map
    def rotated(x: c64, y: i32) -> c64:
        return x * y

    x, y = filled((5, 1, 2)), np.arange(7, dtype=np.int8)
    vectors = vd.Buffer((5, 1), v2)
    vectors.write(x)
    expected = x * y.astype(np.float32)[None, :, None] * 0.5
    np.testing.assert_array_equal(scaled(vectors, vd.asbuffer(y), 0.5).read(0), expected)
    z = (filled((5, 1)) + 1j * filled((5, 1), 1)).astype(np.complex64)
    np.testing.assert_array_equal(rotated(vd.asbuffer(z), vd.asbuffer(y)).read(0), z * y)


def test_kernels_do_not_depend_on_sizes() -> None:
    sources = {
        parse_operand(combined(vd.asbuffer(filled((rows, 1))), vd.asbuffer(filled((columns,))))).source
        for rows, columns in [(2, 3), (5, 7), (300, 11)]
    }
    assert len(sources) == 1
    same = parse_operand(combined(vd.asbuffer(filled((4, 4))), vd.asbuffer(filled((4, 4)))))
    assert not sources & {same.source}
    assert len(same.arguments) == 2


def test_map_that_uses_its_index() -> None:
    @vd.map
    def indexed(x: f32, y: f32, by: Const[u32]) -> f32:
        return (vd.mapped_index() + by).to_dtype(f32) + x * y

    x, y = filled((5, 1)), filled((7,), 1)
    expected = np.arange(35, dtype=np.float32).reshape(5, 7) + 4 + x * y
    np.testing.assert_array_equal(indexed(vd.asbuffer(x), vd.asbuffer(y), 4).read(0), expected)


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(
        vd.ArgumentValueError, match=r"'combined': argument 2: expected 'y' .*\(5, 7\).* \(5,\)"
    ):
        combined(vd.asbuffer(filled((5, 7))), vd.asbuffer(filled((5,))))
    with pytest.raises(vd.ArgumentValueError, match=r"expected 'y' .*\(5,\).* \(7,\)"):
        combined(squared(vd.asbuffer(filled((5,)))), squared(vd.asbuffer(filled((7,)))))

    @vd.map
    def three(value: f32, a: f32, b: f32) -> f32:
        return value + a + b

    with pytest.raises(vd.ArgumentValueError, match=r"argument 2: expected 'b' .*\(5,\).* \(7,\)"):
        three(vd.asbuffer(filled((5,))), vd.asbuffer(filled((7,))))
