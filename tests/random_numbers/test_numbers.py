"""Numbers made of the words: exact where that can be said, else by statistics with fixed seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .philox import blocks, words

FLOATS = {vd.float16: np.float16, vd.float32: np.float32, vd.float64: np.float64}
INTEGERS = {
    vd.int8: np.int8,
    vd.uint8: np.uint8,
    vd.int16: np.int16,
    vd.uint16: np.uint16,
    vd.int32: np.int32,
    vd.uint32: np.uint32,
    vd.int64: np.int64,
    vd.uint64: np.uint64,
}
COUNT = 40_001


def _uniforms(key: tuple[int, int], kind: Any, count: int) -> Any:
    """Numbers of [0, 1), as the documentation defines them."""
    if kind is vd.float16:
        return words(key, 0, count).view(np.uint16)[:count] // 32 / 2048
    if kind is vd.float32:
        return (words(key, 0, count) >> 8) / 2.0**24
    return (words(key, 0, 2 * count).view(np.uint64) >> 11) / 2.0**53


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_uniform_is_as_documented(kind: Any) -> None:
    generator = vd.random.Generator(21)
    drawn = generator.random(COUNT, kind).read(0)
    exact = _uniforms(generator.key, kind, COUNT)
    assert drawn.dtype == FLOATS[kind]
    assert np.array_equal(drawn.astype(np.float64), exact)
    assert (
        stats.kstest(drawn.astype(np.float64) + (2.0**-12 if kind is vd.float16 else 0), "uniform").pvalue
        > 1e-3
    )
    wide = np.float64 if kind is vd.float64 else np.float32
    moved = vd.random.Generator(21).uniform(-2.5, 4.25, COUNT, kind).read(0)
    rounded = wide(-2.5) + (exact.astype(wide) * wide(6.75))
    assert np.array_equal(moved, rounded.astype(FLOATS[kind]))
    assert np.array_equal(vd.random.Generator(21).uniform(size=COUNT, dtype=FLOATS[kind]).read(0), drawn)


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_normal_is_box_and_mullers(kind: Any) -> None:
    generator = vd.random.Generator(22)
    drawn = generator.normal(size=COUNT, dtype=kind).read(0)
    if kind is vd.float64:
        first, second = words(generator.key, 0, 2 * COUNT + 2).view(np.uint64).reshape(-1, 2).T
        distance, turn = ((first >> 11) | 1) / 2.0**53, second / 2.0**64
    else:
        first, second = words(generator.key, 0, COUNT + 1).reshape(-1, 2).T
        distance, turn = (first | 1) / 2.0**32, second / 2.0**32
    radius = np.sqrt(-2 * np.log(distance))
    exact = np.stack([radius * np.cos(2 * np.pi * turn), radius * np.sin(2 * np.pi * turn)], 1).reshape(-1)
    error = {vd.float16: 2.0**-9, vd.float32: 2e-6, vd.float64: 4e-15}[kind]
    assert np.abs(drawn - exact[:COUNT]).max() < error
    assert stats.kstest(drawn.astype(np.float64), "norm").pvalue > 1e-3
    moved = vd.random.Generator(22).normal(-3, 0.5, COUNT, kind).read(0)
    assert np.abs(moved - (exact[:COUNT] / 2 - 3)).max() < error * 4
    assert np.array_equal(vd.random.Generator(22).standard_normal(COUNT, kind).read(0), drawn)


def test_normal_of_philox4x64() -> None:
    generator = vd.random.Generator(23, "philox4x64")
    parts = [generator.normal(size=count).read(0) for count in (2000, 2001)]
    assert stats.kstest(np.concatenate(parts), "norm").pvalue > 1e-3
    # where it goes on: NumPy's has passed as many words
    numpys = np.random.Philox(23)
    numpys.random_raw(2001)
    assert np.array_equal(generator.raw(3).read(0), numpys.random_raw(3))


def test_variances_and_tails() -> None:
    drawn = vd.random.Generator(24).normal(size=1 << 20).read(0).astype(np.float64)
    n = drawn.size
    assert abs(drawn.mean()) < 4 / n**0.5
    assert abs((drawn**2).mean() - 1) < 4 * (2 / n) ** 0.5
    assert abs((drawn**3).mean()) < 4 * (15 / n) ** 0.5
    assert abs((drawn**4).mean() - 3) < 4 * (96 / n) ** 0.5
    beyond = (np.abs(drawn) > 4).sum()
    assert abs(beyond - n * 6.334e-5) < 5 * (n * 6.334e-5) ** 0.5
    # neighbours, which are one pair's two numbers, are not correlated, nor are their squares
    for a in (drawn, drawn**2):
        assert abs(np.corrcoef(a[::2], a[1::2])[0, 1]) < 4 / (n / 2) ** 0.5


def _lemire(key: tuple[int, int], low: int, count: int, numbers: int, bits: int) -> list[int]:
    """Integers as the documentation defines them, in Python's."""
    surplus = (1 << bits) % count
    found = []
    for place, word in enumerate(words(key, 0, numbers * bits // 32).view(f"u{bits // 8}")):
        product, turn = int(word) * count, 0
        while product % (1 << bits) < surplus:
            turn += 1
            block, inside = divmod(place * bits // 32, 4)
            other = (key[0] ^ 0x5851F42D, (key[1] + 0x14057B7E + 8 * turn + inside) % 2**32)
            a, b = (int(each) for each in blocks(np.array([[block, 0, 0, 0]], np.uint64), other)[0, :2])
            product = (a if bits == 32 else a | b << 32) * count
        found.append(low + (product >> bits))
    return found


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (0, 3 * 2**30, vd.uint32),
        (-5, 6, vd.int32),
        (-(2**31), 2**31 - 1, vd.int32),
        (0, 3 * 2**62, vd.uint64),
        (-(2**63), 2**63 - 1, vd.int64),
        (7, 7 + 2**40, vd.int64),
        (-100, 101, vd.int8),
    ],
    ids=str,
)
def test_integers_are_as_documented(low: int, high: int, kind: Any) -> None:
    generator = vd.random.Generator(25)
    drawn = generator.integers(low, high, 203, kind).read(0)
    bits = 64 if high - low > 1 << 32 else 32
    assert drawn.dtype == INTEGERS[kind]
    assert [int(each) for each in drawn] == _lemire(generator.key, low, high - low, 203, bits)


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_integers_of_whole_types(kind: Any) -> None:
    info = np.iinfo(INTEGERS[kind])
    drawn = vd.random.Generator(26).integers(info.min, info.max, COUNT, kind, endpoint=True).read(0)
    assert drawn.dtype == INTEGERS[kind]
    scaled = (drawn.astype(np.float64) - info.min + 0.5) / 2.0**info.bits
    edges = np.linspace(0, 1, 17)
    assert stats.chisquare(np.histogram(scaled, edges)[0]).pvalue > 1e-3


@pytest.mark.parametrize("count", [3, 7, 10, 96, 255])
def test_integers_are_unbiased(count: int) -> None:
    drawn = vd.random.Generator(count).integers(count, size=1 << 18).read(0)
    assert (drawn.min(), drawn.max()) == (0, count - 1)
    assert stats.chisquare(np.bincount(drawn, minlength=count)).pvalue > 1e-3


def test_integers_that_need_rejection_are_unbiased() -> None:
    """Of 3 * 2**30 values, without rejection every third would come twice as often."""
    drawn = vd.random.Generator(27).integers(3 << 30, size=1 << 18, dtype=vd.uint32).read(0)
    assert stats.chisquare(np.bincount(drawn % 3, minlength=3)).pvalue > 1e-3


def test_shapes_and_places() -> None:
    generator = vd.random.Generator(28)
    assert generator.random().read(0).shape == ()
    assert generator.random(5).shape == (5,)
    assert generator.random((2, 3, 4)).shape == (2, 3, 4)
    out = vd.Buffer((3, 5), vd.float64)
    assert generator.random(dtype=vd.float64, out=out) is out
    drawn = vd.random.Generator(29).random(15, vd.float64).read(0)
    vd.random.Generator(29).random(dtype=vd.float64, out=out)
    assert np.array_equal(out.read(0).reshape(-1), drawn)
    before = generator.state
    for shape in (0, (0,), (3, 0), (0, 2, 5)):
        for empty in (generator.raw(shape), generator.normal(size=shape), generator.integers(4, size=shape)):
            assert empty.read(0).size == 0
    assert str(generator.state) == str(before)


@vd.map
def _half_and_place(value: f32, place: Buff[f32]) -> f16:  # noqa: F405
    return (value / 2 + place[vd.mapped_index() % place.shape.w]).to_dtype(vd.float16)


@vd.map
def _above(value: f32) -> c64:  # noqa: F405
    return vc.to_complex(value, -value)


@vd.map
def _square(value: u32) -> u64:  # noqa: F405
    return value.to_dtype(vd.uint64) * value.to_dtype(vd.uint64)


def test_output_maps() -> None:
    places = np.arange(8, dtype=np.float32)
    plain = vd.random.Generator(30).random(1003).read(0)
    mapped = vd.random.Generator(30).random(1003, output_map=_half_and_place(vd.asbuffer(places)))
    assert mapped.var_type is vd.float16
    expected = plain / 2 + places[np.arange(1003) % 8]
    assert np.abs(mapped.read(0) - expected).max() < 2.0**-8
    drawn = vd.random.Generator(30).random(1003, output_map=_above).read(0)
    assert np.array_equal(drawn, plain - 1j * plain)
    whole = vd.random.Generator(30).raw(1003, output_map=_square).read(0)
    assert np.array_equal(whole, words(vd.random.Generator(30).key, 0, 1003).astype(np.uint64) ** 2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.random(-1), ValueError, "size: expected ints of 0 or more, got -1"),
        (lambda g: g.random(2.0), TypeError, "size: expected an int"),
        (lambda g: g.random("3"), TypeError, "size: expected an int"),
        (
            lambda g: g.random(3, vd.int32),
            TypeError,
            "dtype: expected one of float32, float64, float16, got int32",
        ),
        (lambda g: g.random(3, "int8"), TypeError, "dtype: expected"),
        (lambda g: g.random(3, out=vd.Buffer(4, vd.float32)), ValueError, "out: expected"),
        (lambda g: g.random(3, out=[0.0]), TypeError, "out: expected a vd.Buffer"),
        (lambda g: g.random(3, graph=1), TypeError, "graph: expected a CommandGraph"),
        (lambda g: g.random(3, output_map=abs), TypeError, "output_map: expected a vd.map"),
        (lambda g: g.uniform("a"), TypeError, "low: expected a number"),
        (lambda g: g.uniform(0, np.inf), ValueError, "high: expected a finite"),
        (lambda g: g.uniform(-3e38, 3e38), ValueError, "too large for float32"),
        (lambda g: g.uniform(-1e308, 1e308, dtype=vd.float64), ValueError, "too large for float64"),
        (lambda g: g.normal(0, -1), ValueError, "scale: expected 0 or more"),
        (lambda g: g.normal(0, -0.0), ValueError, "scale: expected 0 or more"),
        (lambda g: g.normal(1e5, dtype=vd.float16), ValueError, "too large for float16"),
        (lambda g: g.integers(0), ValueError, "there are no integers from 0 to -1"),
        (lambda g: g.integers(5, 5), ValueError, "there are no integers"),
        (lambda g: g.integers(1.5), TypeError, "low: expected an int"),
        (lambda g: g.integers(True), TypeError, "low: expected an int"),
        (lambda g: g.integers(0, 256, dtype=vd.int8), ValueError, "int8 cannot represent all"),
        (lambda g: g.integers(-1, 5, dtype=vd.uint32), ValueError, "uint32 cannot represent all"),
        (lambda g: g.integers(5, dtype=vd.float32), TypeError, "dtype: expected one of int8"),
        (lambda g: g.permutation(-1), ValueError, "x: expected an int from 0 on"),
        (lambda g: g.permutation([0, 1]), TypeError, "x: expected a vd.Buffer"),
        (
            lambda g: g.permutation(1000, dtype=vd.int8),
            ValueError,
            "int8 does not hold all numbers below 1000",
        ),
        (lambda g: g.permutation(vd.Buffer((2, 2), vd.float32), axis=2), ValueError, "axis: 2 is out"),
        (lambda g: g.permutation(g.random()), ValueError, "no dimensions"),
        (lambda g: g.shuffle([1, 2]), TypeError, "x: expected a vd.Buffer"),
    ],
)
def test_wrong_calls(call: Any, error: type[Exception], message: str) -> None:
    generator = vd.random.Generator(1)
    before = str(generator.state)
    with pytest.raises(error, match=message):
        call(generator)
    assert "random()" in message or message == "no dimensions" or str(generator.state) == before


def test_calls_inside_kernels_are_refused() -> None:
    generator = vd.random.Generator(1)
    with pytest.raises(RuntimeError, match="a kernel cannot call"):

        @vd.shader(exec_size=1)
        def wrong(x: Buff[f32]) -> None:  # noqa: F405
            generator.random(4)
