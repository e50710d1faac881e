"""A battery of statistical tests for the random streams: p-values of each test on each stream.

    python -m benchmarks.random_quality --words 24 --json quality.json

Words are drawn on the device (2**24 of 32 bits for each stream by default) and judged on the host. The tests
are as in Knuth (The Art of Computer Programming 2, 3.3.2), Marsaglia's Diehard and L'Ecuyer's TestU01:
frequency, serial, gap, permutation, runs, collision, birthday spacings, matrix rank, maximum of t. All judge
the words, and the words with their bits in reverse order, as low bits are where generators are weak. Besides
single streams there are those of many seeds, sequences and blocks, of which each gives its first words: what
parallel programs take. A linear congruential generator goes along, and must fail.

A p-value tells how often a perfect generator looks at least so bad. All of a stream together must be uniform;
one below 1e-6 is a failure, those below 1e-3 are listed. With the package nistrng its tests run as well.
"""

import argparse
import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *  # noqa: F403

Words = NDArray[np.uint32]
FAILURE, SUSPICIOUS = 1e-6, 1e-3
CONTROL = "control: LCG, must fail"


# -- streams


def _bulk(kind: str) -> Callable[[int], Words]:
    def words(count: int) -> Words:
        generator = vd.random.Generator(20, kind)
        each = 2 if kind == "philox4x64" else 1
        drawn: Words = np.asarray(generator.raw(count // each).read(0)).view(np.uint32)
        return drawn

    return words


def _many(made: str) -> Callable[[int], Words]:
    """First blocks of many streams, or of streams whose counters share all but their highest bits."""

    @vd.shader(exec_size="result.size // 4")
    def draw(result: Buff[u32]) -> None:  # noqa: F405
        i = vc.global_invocation_id().x
        if made == "keys":
            block = vc.random.philox4x32((0, 0, 0, 0), (i, 0))
        elif made == "high words":
            block = vc.random.philox4x32((0, 0, 0, i), (0, 0))
        elif made == "bits":
            # counters of few bits set, keys of few bits set
            block = vc.random.philox4x32((i & 0xFFFF, 0, i >> 16, 0), (i << 16, i >> 8))
        else:
            block = vc.random.Philox(7, sequence=i).uvec4()
        for k in (0, 1, 2, 3):
            result[4 * i + k] = block[k]

    def words(count: int) -> Words:
        result = vd.Buffer(count, vd.uint32)
        draw(result)
        return np.asarray(result.read(0))

    return words


def _seeds(count: int) -> Words:
    """First words of generators of neighbouring seeds, fewer than of other streams."""
    each = 256
    drawn = [vd.random.Generator(seed).raw(each).read(0) for seed in range(min(count // each, 4096))]
    # one word of each in turn: neighbours are of different seeds
    words: Words = np.ascontiguousarray(np.array(drawn, np.uint32).T).reshape(-1)
    return words


def _uniforms(count: int) -> Words:
    """Numbers of [0, 1) as words, whose lowest 8 bits are those of others."""
    high, low = vd.random.Generator(21).random((2, count)).read(0)
    words: Words = (high.astype(np.float64) * 2**32).astype(np.uint32) | (low * 256).astype(np.uint32)
    return words


def _doubles(count: int) -> Words:
    drawn = vd.random.Generator(22).random(count, vd.float64).read(0)
    return (drawn * 2**32).astype(np.uint32)


def _normals(count: int) -> Words:
    """Return normal numbers through their distribution's function, which makes them uniform."""
    drawn = np.empty(count)
    for part in range(0, count, 1 << 22):
        end = min(count, part + (1 << 22))
        numbers = vd.random.Generator(23 + part, "philox4x64").normal(size=end - part, dtype=vd.float64)
        drawn[part:end] = stats.norm.cdf(numbers.read(0))
    return np.minimum(drawn * 2**32, 2**32 - 1).astype(np.uint32)


def _integers(count: int) -> Words:
    """Three digits of base 1626: integers whose range is no power of two."""
    generator = vd.random.Generator(24)
    a, b, c = (generator.integers(1626, size=count, dtype=vd.uint32).read(0) for _ in range(3))
    whole = (a.astype(np.uint64) * 1626 + b) * 1626 + c
    # 1626**3 is slightly more than 2**32: the rest is thrown away
    kept = whole[whole < 1 << 32]
    return kept.astype(np.uint32)


def _permuted(count: int) -> Words:
    """Permutations, of which each is too even for words: two of each half go into one."""
    size = 1 << 16
    found = []
    generator = vd.random.Generator(27)
    for _ in range(max(1, min(count // size, 64))):
        a, b, c, d = (generator.permutation(size, dtype=vd.uint32).read(0) for _ in range(4))
        found.append((a ^ b) << np.uint32(16) | c ^ d)
    return np.concatenate(found)


def _control(count: int) -> Words:
    """Return words of a multiplicative generator with the multiplier 69069."""
    found = np.empty(count, np.uint32)
    found[0] = 1
    done = 1
    with np.errstate(over="ignore"):
        while done < count:
            factor = np.uint32(pow(69069, done, 1 << 32))
            more = min(done, count - done)
            found[done : done + more] = found[:more] * factor
            done += more
    return found


STREAMS: dict[str, Callable[[int], Words]] = {
    "philox4x32": _bulk("philox4x32"),
    "philox4x64": _bulk("philox4x64"),
    "kernels: sequences": _many("sequences"),
    "kernels: keys 0, 1, ...": _many("keys"),
    "kernels: high counters": _many("high words"),
    "kernels: few bits": _many("bits"),
    "seeds 0, 1, ...": _seeds,
    "uniform float32": _uniforms,
    "uniform float64": _doubles,
    "normal": _normals,
    "integers(1626)": _integers,
    "permutation": _permuted,
    CONTROL: _control,
}


# -- tests: each returns a p-value


def _cells(counts: Any, expected: Any) -> float:
    if not np.sum(counts):
        return 0.0
    expected = np.asarray(expected, np.float64)
    return float(stats.chisquare(counts, expected / expected.sum() * np.sum(counts)).pvalue)


def _squares(scores: Any) -> float:
    """Return the p-value of independent standard normal numbers."""
    scores = np.atleast_1d(scores)
    return float(stats.chi2.sf((scores**2).sum(), scores.size))


def frequency(words: Words) -> float:
    """Ones of each bit."""
    ones = np.array([np.count_nonzero(words & np.uint32(1 << bit)) for bit in range(32)])
    return _squares((ones - words.size / 2) / (words.size / 4) ** 0.5)


def byte_values(words: Words) -> float:
    """Values of the upper byte."""
    return _cells(np.bincount(words >> 24, minlength=256), np.ones(256))


def serial_pairs(words: Words) -> float:
    """Upper bytes of two neighbours."""
    pairs = (words >> 24)[: words.size // 2 * 2].reshape(-1, 2)
    return _cells(np.bincount(pairs[:, 0] << np.uint32(8) | pairs[:, 1], minlength=65536), np.ones(65536))


def serial_triples(words: Words) -> float:
    """Upper five bits of three neighbours."""
    triples = (words >> 27)[: words.size // 3 * 3].reshape(-1, 3)
    return _cells(np.bincount(triples @ np.array([1024, 32, 1], np.uint32), minlength=32768), np.ones(32768))


def correlation(words: Words) -> float:
    """Correlation with the words behind, at 24 distances."""
    centred = words / 2.0**32 - 0.5
    lags = [*range(1, 17), 32, 64, 128, 256, 512, 1024, 4096, 16384]
    scores = [12 * (centred[:-lag] * centred[lag:]).sum() / (words.size - lag) ** 0.5 for lag in lags]
    return _squares(np.array(scores))


def gaps(words: Words) -> float:
    """How many words lie between those of the lowest eighth."""
    lengths = np.diff(np.flatnonzero(words < 1 << 29)) - 1
    most = 40
    counts = np.bincount(np.minimum(lengths, most), minlength=most + 1)
    chances = 0.125 * 0.875 ** np.arange(most)
    return _cells(counts, [*chances, 0.875**most])


def orders(words: Words) -> float:
    """In which order five neighbours are."""
    five = words[: words.size // 5 * 5].reshape(-1, 5)
    ranks = (five[:, :, None] > five[:, None, :]).sum(axis=2)
    _, counts = np.unique(ranks @ 5 ** np.arange(5), return_counts=True)
    # of ties, which 2**32 values have now and then, nothing is said
    often = np.zeros(120)
    often[: counts.size] = np.sort(counts)[::-1][:120]
    return _cells(often, np.ones(120))


def runs(words: Words) -> float:
    """How often each bit changes from word to word."""
    changes = words[1:] ^ words[:-1]
    ones = np.array([np.count_nonzero(changes & np.uint32(1 << bit)) for bit in range(32)])
    return _squares((ones - changes.size / 2) / (changes.size / 4) ** 0.5)


def weights(words: Words) -> float:
    """Ones of two neighbours: 17 classes of each."""
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 32).sum(axis=1, dtype=np.int64)
    pairs = np.clip(ones - 8, 0, 16)[: ones.size // 2 * 2].reshape(-1, 2)
    chances = stats.binom.pmf(np.arange(33), 32, 0.5)
    classes = np.array([chances[:9].sum(), *chances[9:24], chances[24:].sum()])
    chances = np.outer(classes, classes).reshape(-1)
    return _cells(np.bincount(pairs[:, 0] * 17 + pairs[:, 1], minlength=289), chances)


def collisions(words: Words) -> float:
    """How many of 2**14 words share their upper 20 bits with one before."""
    balls, urns = 1 << 14, 1 << 20
    rows = np.sort((words >> 12)[: words.size // balls * balls].reshape(-1, balls), axis=1)
    distinct = 1 + (np.diff(rows, axis=1) != 0).sum(axis=1)
    empty = (1 - 1 / urns) ** balls
    mean = urns * (1 - empty)
    variance = urns * (urns - 1) * (1 - 2 / urns) ** balls + urns * empty - (urns * empty) ** 2
    total = (distinct - mean).sum() / (variance * len(rows)) ** 0.5
    return float(2 * stats.norm.sf(abs(total)))


def birthdays(words: Words) -> float:
    """Equal distances between 4096 sorted words: Poisson distributed, four on average."""
    births = 4096
    rows = np.sort(words[: words.size // births * births].reshape(-1, births), axis=1)
    spaces = np.sort(np.diff(rows, axis=1), axis=1)
    equal = (np.diff(spaces, axis=1) == 0).sum(axis=1)
    most = 11
    chances = stats.poisson.pmf(np.arange(most), births**3 / 2.0**34)
    return _cells(np.bincount(np.minimum(equal, most), minlength=most + 1), [*chances, 1 - chances.sum()])


def ranks(words: Words) -> float:
    """Ranks of matrices of 32 x 32 bits, over the field of two elements."""
    matrices = words[: min(words.size, 1 << 21) // 32 * 32].reshape(-1, 32).copy()
    count = len(matrices)
    rank = np.zeros(count, np.int64)
    rows = np.arange(count)
    for bit in range(32):
        has = (matrices >> np.uint32(bit) & np.uint32(1)).astype(bool)
        has &= np.arange(32) >= rank[:, None]
        pivot = has.argmax(axis=1)
        found = has[rows, pivot]
        at = np.minimum(rank, 31)
        top, low = matrices[rows, at].copy(), matrices[rows, pivot].copy()
        matrices[rows[found], at[found]] = low[found]
        matrices[rows[found], pivot[found]] = top[found]
        line = np.where(found, matrices[rows, at], 0).astype(np.uint32)
        below = (matrices >> np.uint32(bit) & np.uint32(1)).astype(bool) & (np.arange(32) > at[:, None])
        matrices ^= np.where(below, line[:, None], np.uint32(0))
        rank += found
    chances = [_chance_of_rank(each) for each in (32, 31, 30)]
    counts = [np.count_nonzero(rank == each) for each in (32, 31, 30)]
    return _cells([*counts, count - sum(counts)], [*chances, 1 - sum(chances)])


def _chance_of_rank(rank: int, size: int = 32) -> float:
    chance = 2.0 ** (rank * (2 * size - rank) - size * size)
    for k in range(rank):
        chance *= (1 - 2.0 ** (k - size)) ** 2 / (1 - 2.0 ** (k - rank))
    return chance


def largest_of_eight(words: Words) -> float:
    """Judge the largest of eight words: its eighth power is uniform."""
    largest = words[: words.size // 8 * 8].reshape(-1, 8).max(axis=1)
    return float(stats.kstest(((largest + 1.0) / 2.0**32) ** 8, "uniform").pvalue)


def distribution(words: Words) -> float:
    """All words against the uniform distribution."""
    return float(stats.kstest((words[: 1 << 22] + 0.5) / 2.0**32, "uniform").pvalue)


TESTS: dict[str, Callable[[Words], float]] = {
    "frequency": frequency,
    "byte values": byte_values,
    "serial pairs": serial_pairs,
    "serial triples": serial_triples,
    "correlation": correlation,
    "gaps": gaps,
    "orders of 5": orders,
    "runs": runs,
    "weights": weights,
    "collisions": collisions,
    "birthdays": birthdays,
    "matrix ranks": ranks,
    "largest of 8": largest_of_eight,
    "distribution": distribution,
}


def _reversed(words: Words) -> Words:
    octets = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(-1, 32)[:, ::-1]
    return np.packbits(octets, axis=1, bitorder="little").reshape(-1).view(np.uint32)


# -- avalanche


def avalanche(samples: int = 4096) -> float:
    """Each bit of counter and key changes each bit of the result in half of all cases."""

    @vd.shader(exec_size="result.size // 4")
    def blocks(result: Buff[u32], given: Buff[u32]) -> None:  # noqa: F405
        i = vc.global_invocation_id().x
        counter = [given[6 * i + k] for k in (0, 1, 2, 3)]
        block = vc.random.philox4x32(counter, (given[6 * i + 4], given[6 * i + 5]))
        for k in (0, 1, 2, 3):
            result[4 * i + k] = block[k]

    # few bits set: what programs take as keys and counters
    start = np.zeros((samples, 6), np.uint32)
    start[:, 0] = np.arange(samples)
    start[:, 4] = np.arange(samples) % 61
    result = vd.Buffer((samples, 4), vd.uint32)
    blocks(result, vd.asbuffer(start))
    before = result.read(0)
    changed = np.zeros((192, 128))
    for bit in range(192):
        given = start.copy()
        given[:, bit // 32] ^= np.uint32(1 << bit % 32)
        blocks(result, vd.asbuffer(given))
        changed[bit] = np.unpackbits((result.read(0) ^ before).view(np.uint8), axis=1).sum(axis=0)
    return _squares((changed - samples / 2) / (samples / 4) ** 0.5)


# -- the battery


def p_values(count: int, streams: list[str]) -> Iterator[tuple[str, str, float]]:
    """Yield stream, test and p-value."""
    for stream in streams:
        words = STREAMS[stream](count)
        for way, given in (("", words), (", reversed", _reversed(words))):
            for test, judge in TESTS.items():
                yield stream, test + way, judge(given)
        if importlib.util.find_spec("nistrng"):
            yield from ((stream, f"NIST {test}", p) for test, p in _nist(words))


def _nist(words: Words, bits: int = 1 << 16) -> Iterator[tuple[str, float]]:
    """Run the tests of NIST SP 800-22 from the package nistrng, if it is there."""
    nistrng = importlib.import_module("nistrng")
    sequence = np.unpackbits(words[: bits // 32].view(np.uint8)).astype(np.int8)
    eligible = nistrng.check_eligibility_all_battery(sequence, nistrng.SP800_22R1A_BATTERY)
    for result, _ in nistrng.run_all_battery(sequence, eligible, False):
        yield str(result.name), float(result.score)


def judged(found: list[tuple[str, str, float]]) -> dict[str, dict[str, Any]]:
    """Return a verdict for each stream."""
    verdicts: dict[str, dict[str, Any]] = {}
    for stream in dict.fromkeys(stream for stream, *_ in found):
        values = {test: p for of, test, p in found if of == stream}
        least = min(values.values())
        verdicts[stream] = {
            "tests": len(values),
            "least": least,
            "below 1e-3": sorted(test for test, p in values.items() if p < SUSPICIOUS),
            "together": float(stats.kstest(list(values.values()), "uniform").pvalue),
            "passes": least > FAILURE,
            "p": values,
        }
    return verdicts


def main(arguments: list[str] | None = None) -> int:
    """Run the battery; 1 if a stream fails."""
    parser = argparse.ArgumentParser(description="statistical tests of the random streams")
    parser.add_argument("--words", type=int, default=24, help="2**WORDS words of each stream (24)")
    parser.add_argument("--streams", nargs="*", choices=[*STREAMS], default=[*STREAMS])
    parser.add_argument("--json", type=Path, help="where to write all p-values")
    options = parser.parse_args(arguments)
    device = vd.get_devices()[0].device_name
    begun = time.perf_counter()
    print(f"{device}: 2**{options.words} words of each stream")
    print(f"{'stream':28} {'tests':>5} {'least p':>9} {'< 1e-3':>6} {'all':>7}")
    found: list[tuple[str, str, float]] = []
    for stream in options.streams:
        found += p_values(1 << options.words, [stream])
        verdict = judged(found)[stream]
        low = len(verdict["below 1e-3"])
        print(
            f"{stream:28} {verdict['tests']:5} {verdict['least']:9.2e} {low:6} {verdict['together']:7.4f}  "
            f"{'passes' if verdict['passes'] else 'FAILS'} {', '.join(verdict['below 1e-3'][:4])}",
            flush=True,
        )
    mixing = avalanche()
    print(f"avalanche: p = {mixing:.4f}; {time.perf_counter() - begun:.0f} s")
    verdicts = judged(found)
    if options.json:
        report = {"device": device, "words": 1 << options.words, "avalanche": mixing, "streams": verdicts}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    good = all(verdict["passes"] == (stream != CONTROL) for stream, verdict in verdicts.items())
    return 0 if good and mixing > FAILURE else 1


if __name__ == "__main__":
    sys.exit(main())
