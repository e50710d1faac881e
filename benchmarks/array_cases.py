"""The cases of functions on arrays: NumPy's reductions, scans, sorts, selection, matrices, random numbers."""

from collections.abc import Iterator

from benchmarks.case import (
    MATRICES,
    RANDOM,
    REARRANGING,
    REDUCTIONS,
    SCANS,
    SELECTION,
    SORTING,
    YARDSTICKS,
    Case,
    Row,
    Sizes,
)

TURNS = 2
COPY, FILL = "device-copy", "device-fill"
# m, n, k of products, and how many there are of each.
SHAPES: dict[str, tuple[int, int, int, int]] = {
    "1024": (1024, 1024, 1024, 1),
    "4096": (4096, 4096, 4096, 1),
    "8192": (8192, 8192, 8192, 1),
    "tall": (65536, 128, 1024, 1),
    "deep": (512, 512, 65536, 1),
    "thin": (16384, 16384, 64, 1),
    "odd": (4095, 4097, 4099, 1),
    "batched": (512, 512, 512, 64),
    "vector": (16384, 1, 16384, 1),
}
# With a transposed factor there are ten of each of the first two.
PRODUCTS: dict[str, tuple[str, ...]] = {
    "f32": tuple(SHAPES),
    "f16": tuple(SHAPES),
    "bf16": ("4096", "8192", "odd"),
    "f64": ("1024", "4096"),
}
# TFLOP/s on an H200.
PRODUCT_GOALS = {"matmul-f32-4096": 40.0, "matmul-f16-4096": 400.0}


def _case(
    name: str, work: str, family: str, counts: str, sizes: Sizes | None = None, rounds: int = TURNS
) -> Case:
    return Case(name, work, counts, sizes or {}, rounds, family)


def _yardsticks() -> Iterator[tuple[Case, Row]]:
    for name, label, counts in (
        (COPY, "copy of an array", "2^28 float32 to other memory; bytes read and written"),
        (FILL, "an array is filled", "2^28 float32 are written; bytes written"),
    ):
        case = _case(name, name, YARDSTICKS, counts)
        yield case, Row(label, name, "gbps")


def _reductions() -> Iterator[tuple[Case, Row]]:
    for name, label in (
        ("sum-all", "vd.sum of all"),
        ("mean-all", "vd.mean of all"),
        ("var-all", "vd.var of all"),
        ("norm-all", "vd.norm of all"),
        ("max-all", "vd.max of all"),
        ("argmax-all", "vd.argmax of all"),
        ("count-nonzero", "vd.count_nonzero of all"),
        ("dot", "vd.dot"),
    ):
        case = _case(name, name, REDUCTIONS, f"{label}, 2^28 float32 (of two arrays together); bytes read")
        yield case, Row(label, name, "gbps", 4250 if name == "sum-all" else None, yardstick=COPY)
    for name, label, part in (
        ("sum-f16", "vd.sum of all, float16 as float32", 1),
        ("sum-f64", "vd.sum of all, float64", 2),
    ):
        yield _case(name, name, REDUCTIONS, f"{label}; bytes read", {"part": part}), _share(label, name)
    for columns in (16, 256, 1024, 4096, 2**16, 2**20):
        name, label = f"sum-columns-{columns}", f"vd.sum of columns, {columns:,} of them"
        case = _case(
            name,
            "sum-columns",
            REDUCTIONS,
            f"{label}, of 2^28 float32 (axis=0); bytes read",
            {"columns": columns},
        )
        yield case, _share(label, name, 0.9)
    for function in ("max", "var"):
        name, label = f"{function}-columns-1024", f"vd.{function} of columns, 1,024 of them"
        case = _case(
            name,
            f"{function}-columns",
            REDUCTIONS,
            f"{label}, of 2^28 float32; bytes read",
            {"columns": 1024},
        )
        yield case, _share(label, name, 0.9)
    name, label = "sum-middle", "vd.sum of the middle axis of 1,024, 512 and 512"
    counts = f"{label}; 2^28 float32, bytes read"
    yield (_case(name, name, REDUCTIONS, counts, {"columns": 512, "middle": 512}), _share(label, name, 0.9))
    name, label = "sum-rows-1024", "vd.sum of rows of 1,024"
    yield (
        _case(name, "sum-rows", REDUCTIONS, f"{label}; 2^28 float32, bytes read", {"columns": 1024}),
        _share(label, name, 0.9),
    )


def _share(label: str, name: str, share: float = 0.0, yardstick: str = COPY) -> Row:
    return Row(label, name, "gbps", yardstick=yardstick, share=share)


def _scans() -> Iterator[tuple[Case, Row]]:
    for name, label in (
        ("cumsum-f32", "vd.cumsum, float32"),
        ("cumsum-i32", "vd.cumsum, int32"),
        ("cumsum-f64", "vd.cumsum, float64"),
        ("cumprod-f32", "vd.cumprod, float32"),
        ("cummax-f32", "vd.cummax, float32"),
    ):
        part = 8.0 if name == "cumsum-f64" else 4.0
        counts = f"{label}, of 2^{25 if part == 8 else 26}; bytes read and written, each element once"
        row = Row(label, name, "gbps", 3400 if name == "cumsum-f32" else None, yardstick=COPY)
        yield _case(name, name, SCANS, counts, {"part": part}), row
    for place in ("rows", "columns"):
        for columns in (64, 4096):
            name, label = f"cumsum-{place}-{columns}", f"vd.cumsum of {place}, {columns:,} columns"
            counts = f"{label}, of 2^26 float32; bytes read and written, each element once"
            yield (
                _case(name, f"cumsum-{place}", SCANS, counts, {"part": 4, "columns": columns}),
                Row(label, name, "gbps", yardstick=COPY),
            )


def _sorts() -> Iterator[tuple[Case, Row]]:
    for name, label, part in (
        ("sort-i32", "vd.sort, int32", 4),
        ("sort-f32", "vd.sort, float32", 4),
        ("sort-i64", "vd.sort, int64", 8),
        ("sort-f16", "vd.sort, float16", 4),
        ("sort-u8", "vd.sort, uint8", 4),
        ("sort-descending", "vd.sort, int32, descending", 4),
        ("argsort-i32", "vd.argsort, int32", 4),
        ("sort-pairs", "vd.sort_by_key, int32 with uint32", 4),
    ):
        counts = f"{label}: 2^{28 - part.bit_length() + 1} random keys"
        row = Row(label, name, "gkeys", 11 if name == "sort-i32" else None, yardstick=COPY)
        yield _case(name, name, SORTING, counts, {"part": part}), row
    for columns in (64, 1024, 65536):
        name, label = f"sort-rows-{columns}", f"vd.sort of rows of {columns:,}"
        counts = f"{label}: 2^26 random int32 in all"
        case = _case(name, "sort-rows", SORTING, counts, {"part": 4, "columns": columns})
        yield case, Row(label, name, "gkeys", yardstick=COPY)


def _selection() -> Iterator[tuple[Case, Row]]:
    float_part, bytes_text = {"part": 4.0}, "bytes read and written, indices of 4"
    chosen: tuple[tuple[str, str, str, Sizes], ...] = (
        ("topk-16", "topk", "vd.topk, 16 of 2^26", {**float_part, "k": 16}),
        ("topk-1024", "topk", "vd.topk, 1,024 of 2^26", {**float_part, "k": 1024}),
        ("topk-rows", "topk", "vd.topk, 64 of rows of 4,096", {**float_part, "k": 64, "columns": 4096}),
        ("unique", "unique", "vd.unique, 65,536 values in 2^26", float_part),
        ("nonzero", "nonzero", "vd.nonzero, half of 2^26", float_part),
        ("compact", "compact", "vd.compact, half of 2^26", float_part),
        ("searchsorted", "searchsorted", "vd.searchsorted, 2^26 in a table of 2^20", float_part),
        ("histogram", "histogram", "vd.histogram, 256 bins, of 2^27", {"part": 2.0}),
        ("bincount-256", "bincount", "vd.bincount, below 256, of 2^27", {"part": 2.0, "below": 256}),
        ("bincount-65536", "bincount", "vd.bincount, below 65,536, of 2^27", {"part": 2.0, "below": 65536}),
    )
    for name, work, label, sizes in chosen:
        yield _case(name, work, SELECTION, f"{label}; {bytes_text}", sizes), _share(label, name, 0.5)


def _matrices() -> Iterator[tuple[Case, Row]]:
    for dtype, shapes in PRODUCTS.items():
        for shape in shapes:
            yield _product(f"matmul-{dtype}", shape, dtype)
    for dtype in ("f32", "f16"):
        yield _product(f"matmul-transposed-{dtype}", "4096", f"{dtype}, b transposed")
    yield _product("matmul-relu-f16", "4096", "f16, and a ReLU of it")


def _product(work: str, shape: str, what: str) -> tuple[Case, Row]:
    m, n, k, matrices = SHAPES[shape]
    sizes: Sizes = {"height": m, "width": n, "depth": k}
    if matrices > 1:
        sizes["matrices"] = matrices
    many = f"{matrices} of " if matrices > 1 else ""
    label = f"vd.matmul {what}: {many}{m:,} x {n:,} x {k:,}"
    name = f"{work}-{shape}"
    counts = f"{label} (m x n x k; 16-bit factors are summed in float32); 2 m n k operations"
    return _case(name, work, MATRICES, counts, sizes), Row(label, name, "tflops", PRODUCT_GOALS.get(name))


def _random() -> Iterator[tuple[Case, Row]]:
    for name, label, part, goal in (
        ("uniform-f32", "uniform float32", 1, 0.9),
        ("uniform-f64", "uniform float64", 2, 0.0),
        ("normal-f32", "normal float32", 1, 0.0),
        ("integers-i32", "integers below 1,000", 1, 0.0),
        ("permutation", "permutation", 4, 0.0),
    ):
        counts = f"{label}, 2^{28 - part.bit_length() + 1} of them; bytes written"
        yield _case(name, name, RANDOM, counts, {"part": part}), _share(label, name, goal, FILL)


def _rearranging() -> Iterator[tuple[Case, Row]]:
    for name, work, label, sizes, goal in (
        ("transpose-f32", "transpose-f32", "vd.transpose, 16,384 x 16,384 float32", {}, 0.9),
        ("transpose-u8", "transpose-u8", "vd.transpose, 16,384 x 16,384 uint8", {}, 0.0),
        ("transpose-last", "transpose-last", "vd.transpose of the last two of three axes", {}, 0.0),
        ("transpose-turned", "transpose-turned", "vd.transpose, last of three axes first", {}, 0.0),
        ("take-elements", "take", "vd.take, 2^26 elements in random order", {"part": 4}, 0.0),
        ("take-rows", "take", "vd.take, rows of 256 in random order", {"part": 2, "columns": 256}, 0.0),
        ("put", "put", "vd.put, 2^26 elements in random order", {"part": 4}, 0.0),
        ("where", "where", "vd.where, 2^27 elements", {"part": 2}, 0.0),
        ("concatenate", "concatenate", "vd.concatenate, two arrays of 2^28 together", {}, 0.0),
        ("roll", "roll", "vd.roll, 2^28 elements", {}, 0.0),
        ("pad", "pad", "vd.pad, a border around 16,382 x 16,382", {}, 0.0),
    ):
        counts = f"{label}; bytes read and written, indices too"
        yield _case(name, work, REARRANGING, counts, dict(sizes)), _share(label, name, goal)


_ALL = [
    *_yardsticks(),
    *_reductions(),
    *_scans(),
    *_sorts(),
    *_selection(),
    *_matrices(),
    *_random(),
    *_rearranging(),
]
CASES = [case for case, _ in _ALL]
ROWS = [row for _, row in _ALL] + [
    # a product with a vector is done when the matrix is read
    Row(f"vd.matmul {dtype}, with a vector", f"matmul-{dtype}-vector", "gbps", yardstick=COPY)
    for dtype in ("f32", "f16")
]
