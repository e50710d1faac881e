"""`vc.random` in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403

from .philox import blocks, words

LANES, DRAWS = 37, 24
FULL = 0xFFFFFFFF
# counter, key and result, as published with the reference implementation (Random123)
KNOWN_32 = [
    ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([FULL] * 4, [FULL] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]
KNOWN_64 = [
    ([0] * 4, [0] * 2, [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]),
    (
        [2**64 - 1] * 4,
        [2**64 - 1] * 2,
        [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0],
    ),
    (
        [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89],
        [0x452821E638D01377, 0xBE5466CF34E90C6C],
        [0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6],
    ),
]


def test_known_answers_of_philox4x32() -> None:
    @vd.shader(exec_size=3)
    def known(result: Buff[u32], given: Buff[u32]) -> None:  # noqa: F405
        i = vc.global_invocation_id().x
        counter = [given[6 * i + k] for k in (0, 1, 2, 3)]
        found = vc.random.philox4x32(counter, (given[6 * i + 4], given[6 * i + 5]))
        for k in (0, 1, 2, 3):
            result[8 * i + k] = found[k]
        # vectors as well
        found = vc.random.philox4x32(vc.to_uvec4(*counter), vc.to_uvec2(given[6 * i + 4], given[6 * i + 5]))
        for k in (0, 1, 2, 3):
            result[8 * i + 4 + k] = found[k]

    given = np.array([[*counter, *key] for counter, key, _ in KNOWN_32], np.uint32)
    result = vd.Buffer((3, 2, 4), vd.uint32)
    known(result, vd.asbuffer(given))
    expected = np.array([answer for *_, answer in KNOWN_32], np.uint32)
    assert np.array_equal(result.read(0)[:, 0], expected)
    assert np.array_equal(result.read(0)[:, 1], expected)
    # the tests' own, from which other tests take their truth
    assert all(
        np.array_equal(blocks(np.array([counter], np.uint64), (key[0], key[1]))[0], answer)
        for counter, key, answer in KNOWN_32
    )


def test_known_answers_of_philox4x64() -> None:
    @vd.shader(exec_size=3)
    def known(result: Buff[u64], given: Buff[u64]) -> None:  # noqa: F405
        i = vc.global_invocation_id().x
        counter = [given[6 * i + k] for k in (0, 1, 2, 3)]
        found = vc.random.philox4x64(counter, [given[6 * i + 4], given[6 * i + 5]])
        for k in (0, 1, 2, 3):
            result[4 * i + k] = found[k]

    given = np.array([[*counter, *key] for counter, key, _ in KNOWN_64], np.uint64)
    result = vd.Buffer((3, 4), vd.uint64)
    known(result, vd.asbuffer(given))
    assert np.array_equal(result.read(0), np.array([answer for *_, answer in KNOWN_64], np.uint64))


@pytest.mark.parametrize(
    ("seed", "offset"), [(5, 0), (2**64 - 1, 1), (2**40 + 3, 2**34 + 2), (0, 2**34 - 1)], ids=str
)
def test_words_of_streams(seed: int, offset: int) -> None:
    @vd.shader(exec_size=LANES)
    def draw(result: Buff[u32], start: Const[u64], passed: Const[u64]) -> None:  # noqa: F405
        lane = vc.global_invocation_id().x
        constant = vc.random.Philox(seed, sequence=lane, offset=offset)
        given = vc.random.Philox(start, sequence=lane, offset=passed)
        # in a loop, with a branch that some leave out
        for i in vc.range(DRAWS):
            result[lane * DRAWS + i] = constant.uint32()
            if i % 3 == 0:
                result[(LANES + lane) * DRAWS + i] = given.uint32()
        for i in vc.range(DRAWS):
            if i % 3 != 0:
                result[(LANES + lane) * DRAWS + i] = given.uint32()

    result = vd.Buffer((2, LANES, DRAWS), vd.uint32)
    draw(result, seed, offset)
    drawn = result.read(0)
    key = (seed & FULL, seed >> 32)
    for lane in range(LANES):
        expected = words(key, offset, DRAWS, lane << 64)
        assert np.array_equal(drawn[0, lane], expected)
        order = [*range(0, DRAWS, 3), *(i for i in range(DRAWS) if i % 3)]
        assert np.array_equal(drawn[1, lane, order], expected)


def test_numbers_of_streams() -> None:
    @vd.shader(exec_size=LANES)
    def draw(
        floats: Buff[f32],  # noqa: F405
        longs: Buff[u64],  # noqa: F405
        doubles: Buff[f64],  # noqa: F405
        vectors: Buff[v4],  # noqa: F405
    ) -> None:
        lane = vc.global_invocation_id().x
        stream = vc.random.Philox(9, lane)
        floats[4 * lane] = stream.uniform()
        floats[4 * lane + 1] = stream.uniform(-1, 3)
        longs[2 * lane] = stream.uint64()
        # one of two words is passed over: numbers of 64 bits begin at even places
        floats[4 * lane + 2] = stream.uniform()
        longs[2 * lane + 1] = stream.uint64()
        doubles[lane] = stream.uniform(dtype=vd.float64)
        floats[4 * lane + 3] = stream.uniform()
        vectors[2 * lane] = stream.uniform4()
        vectors[2 * lane + 1] = vc.to_vec4(stream.uvec4() >> 8)

    floats, longs = vd.Buffer((LANES, 4), vd.float32), vd.Buffer((LANES, 2), vd.uint64)
    doubles, vectors = vd.Buffer(LANES, vd.float64), vd.Buffer((LANES, 2), vd.vec4)
    draw(floats, longs, doubles, vectors)
    for lane in range(LANES):
        w = words((9, 0), 0, 24, lane << 64)
        unit = (w >> 8) / np.float32(2**24)
        pairs = w.view(np.uint64)
        expected = [unit[0], np.float32(-1) + unit[1] * np.float32(4), unit[4], unit[10]]
        assert np.array_equal(floats.read(0)[lane], np.array(expected, np.float32))
        assert np.array_equal(longs.read(0)[lane], pairs[[1, 3]])
        assert doubles.read(0)[lane] == (pairs[4] >> 11) / 2.0**53
        assert np.array_equal(vectors.read(0)[lane, 0], unit[12:16])
        assert np.array_equal(vectors.read(0)[lane, 1], (w[16:20] >> 8).astype(np.float32))


def test_normals_and_integers_of_streams() -> None:
    @vd.shader(exec_size="normals.size // 64")
    def draw(
        normals: Buff[f32],  # noqa: F405
        four: Buff[v4],  # noqa: F405
        ints: Buff[i32],  # noqa: F405
        longs: Buff[i64],  # noqa: F405
        doubles: Buff[f64],  # noqa: F405
        low: Const[i32],  # noqa: F405
        high: Const[i32],  # noqa: F405
    ) -> None:
        lane = vc.global_invocation_id().x
        stream = vc.random.Philox(77, lane)
        for i in vc.range(64):
            normals[lane * 64 + i] = stream.normal(2, 3)
            ints[lane * 64 + i] = stream.integers(-3, 8)
        for i in vc.range(16):
            four[lane * 16 + i] = stream.normal4()
            doubles[lane * 16 + i] = stream.normal(-1, 0.5, vd.float64)
            ints[(1024 + lane) * 64 + i] = stream.integers(low, high)
            longs[lane * 16 + i] = stream.integers(-(2**40), 2**41, dtype=vd.int64)

    normals, four = vd.Buffer(1024 * 64, vd.float32), vd.Buffer(1024 * 16, vd.vec4)
    ints, longs = vd.Buffer((2, 1024, 64), vd.int32), vd.Buffer(1024 * 16, vd.int64)
    doubles = vd.Buffer(1024 * 16, vd.float64)
    draw(normals, four, ints, longs, doubles, -(2**31), 2**30)
    assert stats.kstest((doubles.read(0) + 1) * 2, "norm").pvalue > 1e-3
    assert stats.kstest((normals.read(0) - 2) / 3, "norm").pvalue > 1e-3
    assert stats.kstest(four.read(0).reshape(-1), "norm").pvalue > 1e-3
    small = ints.read(0)[0].reshape(-1)
    assert (small.min(), small.max()) == (-3, 7)
    assert stats.chisquare(np.bincount(small + 3)).pvalue > 1e-3
    large = ints.read(0)[1, :, :16].reshape(-1).astype(np.int64) + 2**31
    assert large.max() < 3 * 2**30
    assert stats.chisquare(np.bincount(large % 3)).pvalue > 1e-3
    assert stats.kstest(large / (3 * 2**30), "uniform").pvalue > 1e-3
    assert stats.kstest((longs.read(0) + 2**40) / (3 * 2**40), "uniform").pvalue > 1e-3


def test_bulk_and_kernels_share_keys() -> None:
    """The words of a generator's key and sequence 0 are those of the generator."""

    @vd.shader(exec_size=1)
    def draw(result: Buff[u32], low: Const[u32], high: Const[u32]) -> None:  # noqa: F405
        seed = (high.to_dtype(vd.uint64) << 32) | low.to_dtype(vd.uint64)
        stream = vc.random.Philox(seed)
        for i in vc.range(9):
            result[i] = stream.uint32()

    generator = vd.random.Generator(12)
    result = vd.Buffer(9, vd.uint32)
    draw(result, *generator.key)
    assert np.array_equal(result.read(0), generator.raw(9).read(0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: vc.random.philox4x32((1, 2, 3), (4, 5)), TypeError, "counter: expected a uvec4 or 4"),
        (lambda: vc.random.philox4x32((1, 2, 3, 4), 5), TypeError, "key: expected a uvec2 or 2 integers"),
        (lambda: vc.random.philox4x64((1, 2, 3, 4.5), (1, 2)), TypeError, "counter: expected integers"),
        (lambda: vc.random.Philox(-1), ValueError, "seed: expected an integer of 0 to"),
        (lambda: vc.random.Philox(1, 2**64), ValueError, "sequence: expected an integer of 0 to"),
        (lambda: vc.random.Philox(1, 2, 0.5), TypeError, "offset: expected integers"),
        (lambda: vc.random.Philox(1).uniform(dtype=vd.int32), TypeError, "dtype: expected a float16"),
        (lambda: vc.random.Philox(1).normal(dtype=vd.float16), TypeError, "dtype: expected a float32"),
        (lambda: vc.random.Philox(1).integers(0), ValueError, "integers: there is none"),
        (lambda: vc.random.Philox(1).integers(5, 5), ValueError, "integers: there is none"),
        (lambda: vc.random.Philox(1).integers(0, 2**32), ValueError, "int32 does not hold"),
        (lambda: vc.random.Philox(1).integers(0.5), TypeError, "high: expected integers"),
        (lambda: vc.random.Philox(1).integers(5, dtype=vd.int8), TypeError, "dtype: expected an int32"),
    ],
)
def test_wrong_calls(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):

        @vd.shader(exec_size=1)
        def wrong(x: Buff[f32]) -> None:  # noqa: F405
            call()


def test_outside_of_kernels() -> None:
    with pytest.raises(RuntimeError):
        vc.random.philox4x32((1, 2, 3, 4), (5, 6))
    with pytest.raises(RuntimeError):
        vc.random.Philox(1)


def test_precise_values_round_at_each_step() -> None:
    with vc.shader_context() as context:
        (x,) = context.declare_input_arguments([Buff[f32]], ["x"])  # noqa: F405
        x[0] = vc.precise(x[0] * x[1] + x[2])
        assert vc.precise(3) == 3
    source = context.get_description("k").make_source(1, 1, 1)
    assert "precise float" in str(source)

    @vd.shader(exec_size="x.size // 3")
    def rounded(result: Buff[f32], x: Buff[f32]) -> None:  # noqa: F405
        i = vc.global_invocation_id().x
        result[i] = vc.precise(x[3 * i] * x[3 * i + 1] + x[3 * i + 2])

    # products that need more than 24 bits, less what is near to them
    a, b = np.random.default_rng(3).random((2, 4096), np.float32)
    given = np.stack([a, b, -(a * b)], axis=1)
    result = vd.Buffer(4096, vd.float32)
    rounded(result, vd.asbuffer(given))
    assert np.array_equal(result.read(0), np.zeros(4096))
    for wrong in (x, "x"):
        with pytest.raises((TypeError, ValueError)):
            vc.precise(wrong)
