"""The calls by which tuning numbers are judged, each with the numbers that decide how it is done.

A call is made for a number of elements. Its arrays have about so many, whatever their shape.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import f32
from vkdispatch.families.tuning import Number, Table
from vkdispatch.fft.plan.tuning import tuning as fft
from vkdispatch.matrices.plans import tuning as matrices
from vkdispatch.random.launching import tuning as random
from vkdispatch.rearrange.moves import staging_tuning, take_tuning, tile_tuning
from vkdispatch.reduce.planning import cpu_tuning
from vkdispatch.reduce.planning import tuning as reduce
from vkdispatch.scans.planning import tuning as scans
from vkdispatch.selection.tuning import tuning as selection
from vkdispatch.sorting.launching import tuning as sorting

Array = npt.NDArray[Any]

TABLES: tuple[Table, ...] = (
    *(reduce, cpu_tuning, scans, sorting, selection, matrices),
    *(tile_tuning, staging_tuning, take_tuning, random, fft),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """A call made ready.

    Attributes
    ----------
    run
        Does the call as a user does; the device may still work when it returns.
    results
        Does it once on the same data as ever, and returns what came out.
    expected
        Returns what NumPy makes of the data.
    """

    run: Callable[[], object]
    results: Callable[[], list[Array]]
    expected: Callable[[], list[Array]]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that numbers decide.

    Attributes
    ----------
    name
        What it is, for people.
    numbers
        The keys of the numbers.
    make
        Makes it ready for a number of elements.
    tolerance
        How far results may be from NumPy's, as a share of the largest; 0 for equal ones.
    """

    name: str
    numbers: frozenset[str]
    make: Callable[[int], Trial]
    tolerance: float


def list_numbers(is_cpu: bool) -> Iterator[tuple[Table, Number[Any]]]:
    """Yield the numbers that have candidates and decide plans for CPUs, or for GPUs."""
    for table in TABLES:
        for number in table.numbers.values():
            if number.candidates and number.decides(is_cpu):
                yield table, number


def is_close(got: list[Array], want: list[Array], tolerance: float) -> bool:
    """Whether arrays are the same but for a share of the largest value. With 0, bits are compared."""
    return len(got) == len(want) and all(_is_close(a, b, tolerance) for a, b in zip(got, want, strict=True))


def _is_close(a: Array, b: Array, tolerance: float) -> bool:
    if a.shape != b.shape:
        return False
    if not tolerance or a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    most = float(np.abs(b).max(initial=0.0))
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * most))


# ---- data


def _floats(*shape: int, kind: str = "f4") -> Array:
    return np.random.default_rng(5).uniform(0.5, 1.5, shape).astype(kind)


def _complex(*shape: int) -> Array:
    return (_floats(*shape) + 1j * _floats(*shape)[..., ::-1]).astype(np.complex64)


def _integers(*shape: int, kind: str = "i4", below: int = 1 << 30) -> Array:
    return np.random.default_rng(6).integers(0, below, shape).astype(kind)


def _side(n: int, step: int = 1) -> int:
    """Return the side of a square of about n elements, a multiple of `step`."""
    return max(step, math.isqrt(n) // step * step)


# ---- calls


def _trial(function: Callable[..., Any], truth: Callable[..., Any], *arrays: Array) -> Trial:
    buffers = [vd.asbuffer(array) for array in arrays]
    return Trial(
        lambda: function(*buffers),
        lambda: [each.read(0) for each in _as_list(function(*buffers))],
        lambda: [np.asarray(each) for each in _as_list(truth(*arrays))],
    )


def _with(make: Callable[..., Trial], *values: Any) -> Callable[[int], Trial]:
    """Return a function of a number of elements alone."""
    return lambda n: make(n, *values)


def _as_list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _transform(
    forward: Callable[[Any], object],
    inverse: Callable[[Any], object],
    truth: Callable[[Array], Array],
    x: Array,
) -> Trial:
    """Return a transform in place, there and back."""
    buffer = vd.asbuffer(x)

    def run() -> None:
        forward(buffer)
        inverse(buffer)

    def results() -> list[Array]:
        buffer.write(x)
        forward(buffer)
        found = buffer.read(0)
        buffer.write(x)
        return [found]

    return Trial(run, results, lambda: [truth(x)])


def _along(axis: int | None) -> Callable[[Array], Trial]:
    return lambda x: _transform(
        lambda b: vd.fft.fft(b, axis=axis),
        lambda b: vd.fft.ifft(b, axis=axis),
        lambda a: np.fft.fft(a, axis=-1 if axis is None else axis),
        x,
    )


def _real(x: Array) -> Trial:
    buffer = vd.asrfftbuffer(x)

    def run() -> None:
        vd.fft.rfft(buffer)
        vd.fft.irfft(buffer)

    def results() -> list[Array]:
        buffer.write_real(x)
        vd.fft.rfft(buffer)
        found = buffer.read_fourier(0)
        buffer.write_real(x)
        return [found]

    return Trial(run, results, lambda: [np.fft.rfft(x)])


def _draws(kind: Any, skipped: int) -> Callable[[int], Trial]:
    """Return draws of a dtype; those that come after some others take words of two blocks."""

    def make(n: int) -> Trial:
        def start() -> vd.random.Generator:
            generator = vd.random.Generator(3, "philox4x64")
            if skipped:
                generator.raw(skipped)
            return generator

        def expected() -> list[Array]:
            bits = np.random.Philox(3)
            bits.random_raw(skipped)
            return [np.random.Generator(bits).random(n, kind)]

        generator, ours = start(), vd.float32 if kind is np.float32 else vd.float64
        return Trial(lambda: generator.random(n, ours), lambda: [start().random(n, ours).read(0)], expected)

    return make


@vd.map
def _scaled(x: f32) -> f32:
    return x * 1.5


_CALLS: list[Call] = []


def _call(name: str, make: Callable[[int], Trial], *numbers: tuple[Table, str], tolerance: float = 0) -> None:
    keys = frozenset(table.numbers[word].key for table, words in numbers for word in words.split())
    _CALLS.append(Call(name, keys, make, tolerance))


def list_calls() -> list[Call]:
    """Return all calls."""
    if not _CALLS:
        _list_reductions()
        _list_scans()
        _list_sorts()
        _list_selections()
        _list_products()
        _list_moves()
        _list_draws()
        _list_transforms()
    return _CALLS


def _list_reductions() -> None:
    close = 1e-5
    _call(
        "sum of all",
        lambda n: _trial(vd.sum, np.sum, _floats(n + 5)),
        (reduce, "group bytes_in_flight groups single finishing partials"),
        (cpu_tuning, "most_elements groups single"),
        tolerance=close,
    )
    _call(
        "sum of all, mapped",
        lambda n: _trial(lambda x: vd.sum(_scaled(x)), lambda x: np.sum(x * np.float32(1.5)), _floats(n)),
        (reduce, "most_mapped group"),
        (cpu_tuning, "most_elements"),
        tolerance=close,
    )
    _call(
        "sum of rows of 16",
        lambda n: _trial(lambda x: vd.sum(x, 1), lambda x: x.sum(1), _floats(n // 16, 16)),
        (reduce, "group bytes_of_short most_results"),
        (cpu_tuning, "group group_loads lane_loads"),
        tolerance=close,
    )
    _call(
        "sum of 96 long rows",
        lambda n: _trial(lambda x: vd.sum(x, 1), lambda x: x.sum(1), _floats(96, n // 96)),
        (reduce, "group groups enough single"),
        (cpu_tuning, "most_elements lane_loads groups single"),
        tolerance=close,
    )
    _call(
        "sum of 1024 columns",
        lambda n: _trial(lambda x: vd.sum(x, 0), lambda x: x.sum(0), _floats(n // 1024, 1024)),
        (reduce, "groups enough column_bytes most_columns column_flight column_side interleave partials"),
        (cpu_tuning, "most_columns column_bytes most_elements groups"),
        tolerance=close,
    )
    _call(
        "sum of 4 columns",
        lambda n: _trial(lambda x: vd.sum(x, 0), lambda x: x.sum(0), _floats(n // 4, 4)),
        (reduce, "groups column_flight"),
        (cpu_tuning, "most_columns groups"),
        tolerance=close,
    )
    _call(
        "sum of a short middle axis",
        lambda n: _trial(lambda x: vd.sum(x, 1), lambda x: x.sum(1), _floats(n // 512, 32, 16)),
        (reduce, "column_least column_side bytes_of_short most_results"),
        (cpu_tuning, "group group_loads column_bytes"),
        tolerance=close,
    )
    _call(
        "var of columns",
        lambda n: _trial(lambda x: vd.var(x, 0), lambda x: x.var(0), _floats(n // 256, 256)),
        (reduce, "most_columns_of_states partials"),
        (cpu_tuning, "most_columns column_bytes"),
        tolerance=1e-4,
    )


def _list_scans() -> None:
    close = 1e-5

    def sums(axis: int, *shape: int) -> Trial:
        return _trial(lambda x: vd.cumsum(x, axis), lambda x: x.astype("f8").cumsum(axis), _floats(*shape))

    _call(
        "cumsum of all",
        lambda n: sums(0, n + 3),
        (scans, "group bytes_each bytes_each_cpu looking_group looking_bytes_each enough enough_cpu few"),
        (scans, "few_cpu rounds_cpu memory_group_cpu"),
        tolerance=close,
    )
    _call(
        "cumsum of rows of 256",
        lambda n: sums(1, n // 256, 256),
        (scans, "group bytes_each enough enough_cpu turns_cpu"),
        tolerance=close,
    )
    _call(
        "cumsum of 8 long rows",
        lambda n: sums(1, 8, n // 8),
        (scans, "rows_apart looking_group few few_cpu rounds_cpu enough_cpu"),
        tolerance=close,
    )
    _call(
        "cumsum of 1024 columns",
        lambda n: sums(0, n // 1024, 1024),
        (scans, "columns rounds line columns_group columns_cpu enough enough_cpu few"),
        tolerance=close,
    )
    _call(
        "cumsum of 4 columns",
        lambda n: sums(0, n // 4, 4),
        (scans, "columns rounds line few enough columns_cpu rounds_cpu"),
        tolerance=close,
    )


def _list_sorts() -> None:
    tiles = "width group items registers"
    sweeps = "sweep_items sweep_registers window histogram_group histogram_items histogram_rounds"
    serial = "serial_group serial_items"
    runs = "run_group run_least run_most run_count run_width long_run long_run_width"
    _call(
        "sort of int32",
        lambda n: _trial(vd.sort, np.sort, _integers(n + 7)),
        (sorting, f"{tiles} {sweeps} {serial} {runs}"),
    )
    _call(
        "argsort of float32",
        lambda n: _trial(vd.argsort, lambda x: np.argsort(x, kind="stable"), _floats(n)),
        (sorting, f"{tiles} {sweeps} {serial} {runs}"),
    )
    _call(
        "sort of rows of 2000",
        lambda n: _trial(vd.sort, np.sort, _integers(max(4, n // 2000), 2000)),
        (sorting, "block_group block_items merge_long merge_rows"),
    )
    _call(
        "argsort of rows of 500",
        lambda n: _trial(vd.argsort, lambda x: np.argsort(x, kind="stable"), _integers(n // 500, 500)),
        (sorting, "small_group small_items merge_rows"),
    )
    for length in (20, 48):
        _call(
            f"sort of rows of {length}",
            _with(lambda n, length: _trial(vd.sort, np.sort, _integers(n // length, length)), length),
            (sorting, "short short_work short_work_merged merge_short"),
        )


def _list_selections() -> None:
    streams = "stream_group stream_groups stream_loads stream_groups_cpu stream_few_cpu"

    _call(
        "histogram",
        lambda n: _trial(
            lambda x: vd.bincount(x, size=64), lambda x: np.bincount(x, minlength=64), _integers(n, below=64)
        ),
        (selection, streams),
    )
    _call(
        "histogram with weights",
        lambda n: _trial(
            lambda x, w: vd.bincount(x, w, size=64),
            lambda x, w: np.bincount(x, w, 64).astype("f4"),
            _integers(n, below=64),
            _floats(n),
        ),
        (selection, streams),
        tolerance=1e-4,
    )
    for below, name in ((2, "half"), (100, "a hundredth")):
        _call(
            f"nonzero, {name} of all",
            _with(
                lambda n, below: _trial(
                    vd.nonzero, np.nonzero, (_integers(n + 11, below=below) == 0).astype("i4")
                ),
                below,
            ),
            (selection, "flag_group flag_loads flag_sparse flag_unroll"),
        )
    _call(
        "unique",
        lambda n: _trial(
            lambda x: vd.unique(x, size=n),
            lambda x: np.concatenate([np.unique(x), np.full(n - np.unique(x).size, x.min(), x.dtype)]),
            _integers(n, below=max(2, n // 50)),
        ),
        (selection, "flag_group flag_loads fill_each"),
    )
    for length in (512, 1 << 18):
        whole = length == 512
        _call(
            f"searchsorted in {length:,}",
            _with(
                lambda n, length: _trial(
                    vd.searchsorted, np.searchsorted, np.sort(_integers(length)), _integers(n)
                ),
                length,
            ),
            (
                selection,
                "search_whole search_whole_group search_whole_each"
                if whole
                else "search_group search_each search_groups search_whole",
            ),
        )
    _call(
        "topk of rows of 8192",
        lambda n: _trial(lambda x: vd.topk(x, 16), lambda x: _first(x, 16), _distinct(n // 8192 + 1, 8192)),
        (selection, "row_shortest row_longest row_least_group row_most_group row_each row_room row_loads"),
    )
    _call(
        "topk of rows of 512",
        lambda n: _trial(lambda x: vd.topk(x, 4), lambda x: _first(x, 4), _distinct(n // 512, 512)),
        (selection, "row_shortest row_least_group row_each"),
    )
    _call(
        "topk of all",
        lambda n: _trial(lambda x: vd.topk(x, 50), lambda x: _first(x, 50), _distinct(max(n, 1 << 17))),
        (selection, "row_longest row_candidates sample_length sample_group sample_loads"),
        (selection, "sample_exact_group samples many_samples many digit_groups digit_groups_cpu"),
    )


def _distinct(*shape: int) -> Array:
    """Return different numbers in no order, exact in float32 up to 2**24 of them."""
    count = math.prod(shape)
    return np.random.default_rng(7).permutation(count).astype("i4").reshape(shape)


def _first(x: Array, k: int) -> list[Array]:
    places = np.argsort(-x.astype("i8"), axis=-1, kind="stable")[..., :k]
    return [np.take_along_axis(x, places, -1), places]


def _list_products() -> None:
    def product(kind: str, m: int, k: int, n: int, tolerance: float = 1e-4) -> Trial:
        def truth(a: Array, b: Array) -> Array:
            return np.asarray(a.astype("f8") @ b.astype("f8"), kind)

        return _trial(vd.matmul, truth, _floats(m, k, kind=kind), _floats(k, n, kind=kind))

    panels = "panel_height panel_height_large panel_width panel_large lanes_cpu"
    estimates = "slots rate bandwidth launch"
    for kind, size in (("f4", 4), ("f8", 8)):
        for odd in (0, 3):
            _call(
                f"product of float{8 * size} matrices" + (", odd sizes" if odd else ""),
                _with(lambda n, kind, odd: product(kind, *(3 * [_side(n, 32) + odd])), kind, odd),
                (matrices, f"tiles_{size} {estimates} band {panels}"),
                tolerance=1e-5,
            )
    _call(
        "product of complex128 matrices",
        lambda n: _trial(
            vd.matmul,
            np.matmul,
            *(2 * [_floats(_side(n // 8, 32), _side(n // 8, 32), kind="c16") * (1 + 0.5j)]),
        ),
        (matrices, "tiles_16"),
        tolerance=1e-10,
    )
    _call(
        "product of deep matrices",
        lambda n: product("f4", 48, n // 48, 48),
        (matrices, f"tiles_4 {estimates}"),
        tolerance=1e-4,
    )
    for odd in (0, 3):
        _call(
            "product of float16 matrices" + (", odd sizes" if odd else ""),
            _with(lambda n, odd: product("f2", *(3 * [_side(n, 64) + odd])), odd),
            (matrices, "tiles_cooperative slots_cooperative rate_cooperative least_cooperative"),
            (matrices, "band_cooperative apart"),
            tolerance=2e-3,
        )
    lines = "line_rows line_words longest_line groups_cpu lanes_cpu"
    _call(
        "matrix with a vector",
        lambda n: product("f4", _side(n, 16), _side(n, 16), 1),
        (matrices, f"groups lane_loads {lines}"),
        tolerance=1e-4,
    )
    _call(
        "vector with a matrix",
        lambda n: product("f4", 1, _side(n, 16), _side(n, 16)),
        (matrices, f"groups across_lanes unroll {lines}"),
        tolerance=1e-4,
    )


def _list_moves() -> None:
    tiles = "group strip most"
    for size in (1, 2, 4, 8, 16):
        kind = "c16" if size == 16 else f"u{size}"
        _call(
            f"transpose of elements of {size} bytes",
            _with(
                lambda n, kind: _trial(
                    vd.transpose, np.transpose, _integers(_side(n, 64), 2 * _side(n, 64), kind=kind)
                ),
                kind,
            ),
            (tile_tuning, f"{tiles} segment_{size}" + (" flat_1" if size == 1 else "")),
        )
    for size in (1, 4):
        _call(
            f"transpose of elements of {size} bytes, odd sizes",
            _with(
                lambda n, size: _trial(
                    vd.transpose, np.transpose, _integers(_side(n) | 1, 2 * _side(n) | 1, kind=f"u{size}")
                ),
                size,
            ),
            (tile_tuning, f"{tiles} segment_4 cells sector"),
        )
    _call(
        "transpose of a matrix of 8 columns",
        lambda n: _trial(vd.transpose, np.transpose, _floats(n // 8, 8)),
        (tile_tuning, "narrow narrow_group"),
    )
    _call(
        "take along rows of 512",
        lambda n: _trial(
            lambda x, i: vd.take_along_axis(x, i, 1),
            lambda x, i: np.take_along_axis(x, i, 1),
            _floats(n // 512, 512),
            _integers(n // 512, 512, below=512),
        ),
        (staging_tuning, "group ahead memory on_cpus"),
    )
    _call(
        "take of all",
        lambda n: _trial(vd.take, np.take, _floats(n), _integers(n, below=n)),
        (take_tuning, "ahead few"),
    )


def _list_draws() -> None:
    for kind in (np.float32, np.float64):
        for skipped in (0, 3):
            _call(
                f"draws of {kind.__name__}" + (", between blocks" if skipped else ""),
                _draws(kind, skipped),
                (random, "group unroll long_products" + (" exchange" if skipped else "")),
            )


def _list_transforms() -> None:
    close = 1e-5
    tables = "largest_table cpu_largest_table"
    cpu = "cpu_registers cpu_whole_line column_least_values"

    def lines(length: int, numbers: str, least: int = 0) -> None:
        _call(
            f"transforms of {length:,} values",
            lambda n: _along(None)(_complex(max(least, n // length, 1), length)),
            (fft, numbers),
            tolerance=close,
        )

    lines(16, f"staged_except group {cpu}")
    lines(20, f"staged_group staged_values {cpu}")
    lines(64, f"registers_power_of_two group {cpu}")
    lines(67, "pair_lines pair_longest")
    lines(100, f"registers_other_length {cpu}")
    lines(1000, f"registers_other_length largest_whole_exchange {tables}")
    lines(1024, f"registers_power_of_two largest_whole_exchange group {tables} {cpu}")
    lines(8192, f"registers_power_of_two {tables}")
    columns = "column_group column_lanes column_rows column_most_rows column_least_values"
    lines(3 * 5**4 * 16, f"longest_of_pass cpu_longest_of_pass cpu_chunk {columns}", least=3)
    lines(1 << 16, f"longest_of_pass chunk cpu_longest_of_pass cpu_chunk {columns} {tables}", least=2)
    for length in (64, 500):
        _call(
            f"transforms of columns of {length}",
            _with(lambda n, length: _along(0)(_complex(length, max(8, n // length))), length),
            (fft, f"registers_strided neighbours neighbours_short {cpu}"),
            tolerance=close,
        )
    for side in (16, 32, 64):
        _call(
            f"transforms of planes of {side} by {side}",
            _with(
                lambda n, side: _transform(
                    vd.fft.fft2, vd.fft.ifft2, np.fft.fft2, _complex(max(2, n // side**2), side, side)
                ),
                side,
            ),
            (fft, f"registers_plane plane_staged_width group {cpu}"),
            tolerance=close,
        )
    for length in (48, 128, 1024):
        _call(
            f"transforms of {length:,} reals",
            _with(lambda n, length: _real(_floats(max(2, n // length), length)), length),
            (fft, f"registers_real_short real_short real_few_threads {cpu}"),
            tolerance=close,
        )
