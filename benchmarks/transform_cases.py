"""The cases of transforms, convolutions and reductions, and their rows of the table."""

from collections.abc import Iterator

from benchmarks.case import CONVOLUTION, FFT, REDUCTIONS, Case, Row, Sizes

POWERS = (64, 128, 256, 512, 1024, 2048, 4096)
# Goals on an H200, GB/s, of batched complex64 transforms.
GOALS = {
    **dict.fromkeys(POWERS, 4050.0),
    **dict.fromkeys((6, 15, 105, 210), 4050.0),
    **dict.fromkeys((1155, 1210, 3125), 3950.0),
    8192: 4000.0,
    16384: 3200.0,
    65536: 2000.0,
    17: 4050.0,
    67: 3100.0,
    1021: 1500.0,
}
LONG = (2**20, 2**24)
# Along the first axis of (n, many), and the middle one of (many, n, 256): within 15 % of the last axis.
AXES = {"axis0": 0.0, "axis1": 1.0}
PLACES: dict[float | None, str] = {
    None: "last axis",
    0: "first axis of two",
    1: "middle axis of three, the last has 256",
}
KINDS: dict[float | None, str] = {None: "complex64", 64: "complex128", 16: "complex32"}
STRIDED_GOAL = 0.85 * 4050
# Twice the points a second of complex transforms, which is as many bytes.
REAL = {64: 4050, 1024: 4050, 4096: 4050, 1155: 3950}
PRECISIONS = {"f64": 64.0, "f16": 16.0}
PRECISE = (64, 1024, 4096)
SMALL_2D = (8, 16, 32, 64, 128)
# What is reduced is a row of so many, of 2^24 elements in all.
COLUMNS = (4, 16, 256, 4096, 2**22)
# Three rounds of these tell as much as five.
TURNS = 3

PAIR = (
    "there and back in turn, scaled where that costs nothing; counts one read and one write of the data each"
)


def _transforms() -> Iterator[tuple[Case, Row]]:
    for n, goal in (*GOALS.items(), *((n, None) for n in LONG)):
        yield _fft(f"fft-{n}", f"FFT of {n}", {"n": n}, goal)
    for axis, number in AXES.items():
        for n in POWERS:
            yield _fft(f"fft-{axis}-{n}", f"FFT of {n}, {axis}", {"n": n, "axis": number}, STRIDED_GOAL)
    for name, bits in PRECISIONS.items():
        for n in PRECISE:
            yield _fft(f"fft-{name}-{n}", f"FFT of {n}, {name}", {"n": n, "bits": bits}, None)
    for n, goal in REAL.items():
        counts = f"real transforms of length {n:,} and back, float32; {PAIR}"
        case = Case(f"rfft-{n}", "rfft", counts, {"n": n}, TURNS, FFT)
        yield case, Row(f"real FFT of {n}", case.name, "gbps", goal)


def _fft(name: str, label: str, sizes: Sizes, goal: float | None) -> tuple[Case, Row]:
    where, kind = PLACES[sizes.get("axis")], KINDS[sizes.get("bits")]
    counts = f"transforms of length {int(sizes['n']):,}, {where}, {kind}; {PAIR}"
    return Case(name, "fft", counts, sizes, TURNS, FFT), Row(label, name, "gbps", goal)


def _planes() -> Iterator[tuple[Case, Row]]:
    for n in SMALL_2D:
        counts = f"two-dimensional transforms of {n} x {n}, complex64; {PAIR}"
        case = Case(f"fft2-{n}", "fft2", counts, {"n": n}, TURNS, CONVOLUTION)
        yield case, Row(f"2D FFT of {n} x {n}", case.name, "gbps")
    counts = "four transforms of 4096 x 4096 (a CPU: one of 512 x 512), complex64, there and back in turn"
    case = Case("fft2-4096", "fft2", counts, {"n": 4096, "batch": 4}, TURNS, CONVOLUTION)
    yield case, Row("2D FFT of 4096 x 4096, four", case.name, "ms", 0.72)
    counts = (
        "eight convolutions of 2048 x 2048 (a CPU: one of 512 x 512) each with a kernel,"
        " whose transform is there: to the spectrum, product, back"
    )
    case = Case("convolution-2048", "convolution2", counts, {"n": 2048, "batch": 8}, TURNS, CONVOLUTION)
    yield case, Row("2D convolution of 2048 x 2048, eight", case.name, "ms", 0.70)
    counts = "transforms of 1,024, times a number, and back; one read and one write of the data"
    case = Case("scaled-1024", "scaled", counts, {"n": 1024}, TURNS, CONVOLUTION)
    yield case, Row("FFT of 1024, scale, inverse", case.name, "gbps")


def _reductions() -> Iterator[tuple[Case, Row]]:
    bytes_read = "float32; bytes read"
    for work, label, goal in (
        ("sum", "sum", 4250.0),
        ("max", "maximum", 4250.0),
        ("squares", "sum of squares", 4250.0),
    ):
        case = Case(
            f"reduce-{work}",
            f"reduce-{work}",
            f"the {label} of all elements, {bytes_read}",
            {},
            0,
            REDUCTIONS,
        )
        yield case, Row(f"{label} of all", case.name, "gbps", goal)
    for columns in COLUMNS:
        counts = (
            f"the sum of each row of {columns:,}, of 2^24 elements (several such arrays in turn, more than"
            f" caches hold): {bytes_read}"
        )
        case = Case(f"reduce-rows-{columns}", "reduce-rows", counts, {"columns": columns}, TURNS, REDUCTIONS)
        # nine tenths of what a copy moves
        yield case, Row(f"sums of rows of {columns:,}", case.name, "gbps", 3800.0)


_ALL = [*_transforms(), *_planes(), *_reductions()]
CASES = [case for case, _ in _ALL]
ROWS = [row for _, row in _ALL]
