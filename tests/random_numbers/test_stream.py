"""The words of generators: those of the paper's function and of NumPy, wherever a draw begins."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.random.launching import tuning

from .philox import words

Philox = np.random.Philox


@pytest.fixture
def tuned() -> Iterator[Any]:
    """Tuning that may be changed."""
    before = {
        name: getattr(tuning, name)
        for name in ("group", "unroll", "long_products", "exchange", "everywhere", "few")
    }
    yield tuning
    for name, value in before.items():
        setattr(tuning, name, value)


def test_raw_is_philox4x32() -> None:
    generator = vd.random.Generator(2**70 + 5)
    key = tuple(int(word) for word in np.random.SeedSequence(2**70 + 5).generate_state(2, np.uint32))
    assert generator.key == key
    # every place in a block, sizes around a block and a workgroup
    at = 0
    for count in (1, 2, 3, 4, 5, 7, 1, 2047, 2049, 6):
        assert np.array_equal(generator.raw(count).read(0), words(key, at, count))
        at += count


@pytest.mark.parametrize(
    "counter", [2**32 - 2, 2**64 - 2, 2**96 - 1, 2**128 - 1], ids=["word", "two", "three", "end"]
)
def test_counter_carries(counter: int) -> None:
    generator = vd.random.Generator(key=(1, 2), counter=counter)
    assert np.array_equal(generator.raw(64).read(0), words((1, 2), 0, 64, counter))
    assert np.array_equal(generator.raw(4).read(0), words((1, 2), 64, 4, counter))


def test_raw_is_numpys() -> None:
    ours, numpys = vd.random.Generator(123, "philox4x64"), Philox(123)
    for count in (1, 2, 3, 4, 5, 1001):
        assert np.array_equal(ours.raw(count).read(0), numpys.random_raw(count))


@pytest.mark.parametrize("counter", [0, 7, 2**64 - 3, 2**128 - 2, 2**256 - 3])
def test_keys_and_counters_are_numpys(counter: int) -> None:
    ours = vd.random.Generator(bit_generator="philox4x64", key=2**127 + 9, counter=counter)
    assert np.array_equal(ours.raw(40).read(0), Philox(key=2**127 + 9, counter=counter).random_raw(40))


@pytest.mark.parametrize("seed", [0, 2**200, [1, 2, 3], np.random.SeedSequence(4, spawn_key=(1,))], ids=str)
def test_seeds_are_numpys(seed: Any) -> None:
    ours = vd.random.Generator(seed, "philox4x64")
    assert np.array_equal(ours.raw(5).read(0), Philox(seed).random_raw(5))


def test_numbers_are_numpys() -> None:
    """Draws of 32 and 64 bits in all orders: the half of a word that is left waits, as in NumPy."""
    ours, numpys = vd.random.Generator(5, "philox4x64"), np.random.Generator(Philox(5))
    pick = np.random.default_rng(1)
    for count in (*range(8), *pick.integers(1, 3000, 12)):
        drawn: list[tuple[Any, Any]] = []
        for which in pick.permutation(4):
            if which == 0:
                drawn.append((ours.random(count, vd.float32), numpys.random(count, np.float32)))
            if which == 1:
                drawn.append((ours.random(count, vd.float64), numpys.random(count)))
            if which == 2:
                drawn.append((ours.uniform(-3, 7, count, vd.float64), numpys.uniform(-3, 7, count)))
            if which == 3:
                drawn.append((ours.integers(-8, 8, count), numpys.integers(-8, 8, count, np.int32)))
        for mine, theirs in drawn:
            assert np.array_equal(mine.read(0), theirs)
    state, known = ours.state, numpys.bit_generator.state
    assert state["bit_generator"] == known["bit_generator"]
    assert state["buffer_pos"] == known["buffer_pos"]
    assert (state["has_uint32"], state["uinteger"] * state["has_uint32"]) == (
        known["has_uint32"],
        known["uinteger"] * known["has_uint32"],
    )
    assert all(np.array_equal(state["state"][name], known["state"][name]) for name in ("counter", "key"))


def test_states_go_to_numpy_and_back() -> None:
    numpys = np.random.Generator(Philox(8))
    numpys.random(3, np.float32)
    numpys.random(2)
    ours = vd.random.Generator(numpys)
    theirs = np.random.Generator(Philox())
    theirs.bit_generator.state = ours.state
    for count in (1, 4, 6):
        expected = numpys.random(count, np.float32)
        assert np.array_equal(ours.random(count).read(0), expected)
        assert np.array_equal(theirs.random(count, np.float32), expected)
    kept = ours.state
    first = ours.raw(9).read(0)
    ours.state = kept
    assert np.array_equal(ours.raw(9).read(0), first)


@pytest.mark.parametrize("kind", ["philox4x32", "philox4x64"])
def test_copies_continue_equally(kind: str) -> None:
    generator = vd.random.Generator(3, kind)
    generator.random(3)
    generator.raw(2, graph=vd.CommandGraph())
    copies = [copy.copy(generator), copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    expected = generator.random(7).read(0)
    graph = vd.CommandGraph()
    recorded = generator.raw(5, graph=graph)
    graph.submit()
    child = generator.spawn(1)[0].key
    for each in copies:
        assert np.array_equal(each.random(7).read(0), expected)
        graph = vd.CommandGraph()
        again = each.raw(5, graph=graph)
        graph.submit()
        assert np.array_equal(again.read(0), recorded.read(0))
    assert copies[-1].spawn(1)[0].key == child


def test_states_of_philox4x32() -> None:
    generator = vd.random.Generator(1)
    generator.raw(7)
    kept = generator.state
    other = vd.random.Generator(2)
    other.state = kept
    assert np.array_equal(other.raw(9).read(0), generator.raw(9).read(0))
    assert np.array_equal(other.raw(9).read(0), words(generator.key, 16, 9))


def test_spawned_and_jumped_are_numpys() -> None:
    ours, numpys = vd.random.Generator(9, "philox4x64"), np.random.Generator(Philox(9))
    for mine, theirs in zip(ours.spawn(2), numpys.spawn(2), strict=True):
        assert np.array_equal(mine.raw(6).read(0), theirs.bit_generator.random_raw(6))
    assert np.array_equal(ours.jumped(3).raw(6).read(0), Philox(9).jumped(3).random_raw(6))
    narrow = vd.random.Generator(9)
    narrow.raw(3)
    assert np.array_equal(narrow.jumped(2).raw(6).read(0), words(narrow.key, 3, 6, 2 << 64))
    (child,) = narrow.spawn(1)
    assert child.bit_generator == "philox4x32"
    assert child.key != narrow.key


@pytest.mark.parametrize(
    ("group", "unroll", "long_products", "exchange"),
    [(64, 2, 1, 1), (32, 4, 0, 0), (256, 1, 1, 1), (8, 3, 1, 1)],
)
def test_launch_shapes_do_not_change_results(
    tuned: Any, group: int, unroll: int, long_products: int, exchange: int
) -> None:
    tuned.group, tuned.unroll, tuned.everywhere, tuned.few = group, unroll, 1, 0
    tuned.long_products, tuned.exchange = long_products, exchange
    generator = vd.random.Generator(4)
    at = 0
    for count in (1025, 3072, 3, 1542):
        assert np.array_equal(generator.raw(count).read(0), words(generator.key, at, count))
        at += count
    ours, numpys = vd.random.Generator(4, "philox4x64"), np.random.Generator(Philox(4))
    for count in (517, 1027):
        assert np.array_equal(ours.random(count).read(0), numpys.random(count, np.float32))


def test_integers_of_any_launch_shape(tuned: Any) -> None:
    """Rejected ones take words of their own place."""
    drawn = []
    for group, unroll in ((64, 2), (32, 3), (128, 1)):
        tuned.group, tuned.unroll, tuned.everywhere, tuned.few = group, unroll, 1, 0
        generator = vd.random.Generator(6)
        # a third of the words is rejected
        parts = [generator.integers(3 * 2**30, size=count, dtype=vd.uint32).read(0) for count in (1001, 502)]
        drawn.append(np.concatenate(parts))
    tuned.everywhere, tuned.few = 0, 1 << 15
    drawn.append(vd.random.Generator(6).integers(3 * 2**30, size=1503, dtype=vd.uint32).read(0))
    assert all(np.array_equal(each, drawn[0]) for each in drawn)


def test_parts_of_a_draw_equal_the_whole() -> None:
    whole = vd.random.Generator(3).random(100).read(0)
    generator = vd.random.Generator(3)
    parts = [generator.random(count).read(0) for count in (1, 30, 2, 64, 3)]
    assert np.array_equal(np.concatenate(parts), whole)
    normals = vd.random.Generator(3).normal(size=20).read(0)
    generator = vd.random.Generator(3)
    assert np.array_equal(np.concatenate([generator.normal(size=n).read(0) for n in (8, 2, 10)]), normals)


@pytest.mark.parametrize("kind", ["philox4x32", "philox4x64"])
def test_draws_continue_with_half_words(kind: str, tuned: Any) -> None:
    """Odd counts of float16 end in the middle of a word."""
    words_of = vd.random.Generator(7, kind).raw(1024).read(0).view(np.uint16)[:2048]
    whole = (words_of >> 5).astype(np.float16) / np.float16(2048)
    shapes = [(512, 1, 0, 1 << 15), (8, 0, 1, 0), (8, 1, 1, 0)]
    runs: list[tuple[int, ...]] = [(1, 30, 69), (3, 1, 1, 1, 2, 7, 1001), (999, 999), (5, 5, 5, 5, 500)]
    if not vd.get_context().device_infos[0].storage_buffer_16_bit_access:
        # stores and words of 64 bits are long there: each of the many kernels would be compiled for seconds
        del runs[1:]
        if kind == "philox4x64":
            del shapes[1:]
    for group, exchange, everywhere, few in shapes:
        tuned.group, tuned.exchange, tuned.everywhere, tuned.few = group, exchange, everywhere, few
        for counts in runs:
            generator = vd.random.Generator(7, kind)
            parts = np.concatenate([generator.random(count, vd.float16).read(0) for count in counts])
            assert np.array_equal(parts, whole[: parts.size])
    halves = vd.random.Generator(7, kind)
    scaled = np.concatenate([halves.uniform(1, 3, count, vd.float16).read(0) for count in (5, 6)])
    assert np.array_equal(scaled, 1 + 2 * whole[:11])


@pytest.mark.parametrize("kind", ["philox4x32", "philox4x64"])
def test_remaining_halves(kind: str) -> None:
    whole = vd.random.Generator(7, kind).random(64, vd.float16).read(0)
    generator = vd.random.Generator(7, kind)
    generator.random(3, vd.float16)
    pickled, copied, other = (
        pickle.loads(pickle.dumps(generator)),
        copy.copy(generator),
        vd.random.Generator(1, kind),
    )
    other.state = generator.state
    for each in (generator, pickled, copied, other):
        assert np.array_equal(each.random(6, vd.float16).read(0), whole[3:9])
    # any other draw begins with a whole word of the stream
    number = vd.random.Generator(7, kind).raw(9).read(0)[3 if kind == "philox4x64" else 5]
    assert generator.raw(1).read(0)[0] == number
    following = generator.random(2, vd.float16).read(0)
    assert np.array_equal(following, whole[16:18] if kind == "philox4x64" else whole[12:14])


def test_threads_take_pieces_of_their_own() -> None:
    generator = vd.random.Generator(10)
    found: list[Any] = []

    def draw() -> None:
        found.extend(generator.raw(16) for _ in range(8))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drawn = {tuple(buffer.read(0)) for buffer in found}
    whole = words(generator.key, 0, 16 * 32).reshape(-1, 16)
    assert drawn == {tuple(row) for row in whole}


def test_unseeded_generators_differ() -> None:
    made = [vd.random.Generator(kind_seed).key for kind_seed in (None, None)]
    assert made[0] != made[1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"seed": -1}, ValueError, "seed: expected"),
        ({"seed": "one"}, TypeError, "seed: expected"),
        ({"seed": 1.5}, TypeError, "seed: expected"),
        ({"bit_generator": "pcg64"}, ValueError, "bit_generator: expected one of"),
        ({"seed": np.random.default_rng(1)}, TypeError, "that is supported is Philox"),
        ({"seed": Philox(1), "key": 1}, ValueError, "already has a key"),
        ({"seed": 1, "key": 1}, ValueError, "seed, key: pass one"),
        ({"key": 2**64}, ValueError, "key: expected"),
        ({"key": (1, 2, 3)}, ValueError, "key: expected"),
        ({"key": "ab"}, TypeError, "key: expected"),
        ({"key": 1.0}, TypeError, "key: expected"),
        ({"key": 1, "counter": -1}, ValueError, "counter: expected"),
        ({"key": 1, "counter": [1, 2, 3, True]}, TypeError, "counter: expected"),
    ],
)
def test_wrong_seeds_and_keys(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        vd.random.Generator(**arguments)


def test_wrong_states() -> None:
    generator = vd.random.Generator(1)
    good = generator.state
    for bad, error in (
        (None, TypeError),
        ({}, ValueError),
        (np.random.PCG64(1).state, ValueError),
        (Philox(1).state, ValueError),
        ({**good, "buffer_pos": 5}, ValueError),
        ({**good, "state": {"key": [1], "counter": [0] * 4}}, ValueError),
    ):
        with pytest.raises(error, match="state: "):
            generator.state = bad
    with pytest.raises(ValueError, match="spawn: "):
        vd.random.Generator(key=1).spawn(1)
    for bad_count in (-1, 1.5, True):
        with pytest.raises((TypeError, ValueError), match="count: "):
            generator.spawn(bad_count)  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError), match="jumps: "):
            generator.jumped(bad_count)  # type: ignore[arg-type]


def test_buffers_that_take_several_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2**31 blocks there are several launches."""
    for home in ("kernels", "launching"):
        monkeypatch.setattr(f"vkdispatch.random.{home}.MAX_BLOCKS", 64)
    # kernels are kept by their form, so one that no other test has
    monkeypatch.setattr(tuning, "group", 40)
    generator = vd.random.Generator(11)
    assert np.array_equal(generator.raw(1003).read(0), words(generator.key, 0, 1003))
    assert np.array_equal(generator.raw(300).read(0), words(generator.key, 1003, 300))
    # and where neighbours exchange words
    for name, value in (("everywhere", 1), ("few", 0), ("unroll", 2)):
        monkeypatch.setattr(tuning, name, value)
    for at, count in ((1303, 1003), (2306, 1280)):
        assert np.array_equal(generator.raw(count).read(0), words(generator.key, at, count))


def test_seeds_and_streams_do_not_repeat() -> None:
    """First words of many generators: no two alike, bits in balance."""
    first = [vd.random.Generator(seed).raw(4).read(0) for seed in range(64)]
    assert len({tuple(row) for row in first}) == 64
    differing = [np.unpackbits((a ^ b).view(np.uint8)).sum() for a, b in itertools.pairwise(first)]
    # 63 * 128 bits, each of which differs with probability 1/2
    assert abs(np.sum(differing) - 63 * 64) < 5 * (63 * 32) ** 0.5
