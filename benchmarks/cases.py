"""What is measured: the cases, and the rows of the table in the order of the goals."""

from dataclasses import replace

from benchmarks import array_cases, transform_cases
from benchmarks.case import FIGURES, ROUNDS, SIZES, Case, Row

__all__ = ["BY_NAME", "CASES", "FIGURES", "LENGTHS", "ROUNDS", "ROWS", "SIZES", "WORKS", "Case", "Row"]


def _case(name: str, counts: str, rounds: int = 0) -> Case:
    return Case(name, name, counts, {}, rounds)


LENGTHS = (100, 1_000, 10_000, 100_000)
_tiny = "a kernel adds to 64 floats"
_GRAPHS = [
    Case(
        f"{work}-{length}",
        work,
        f"{length:,} recorded dispatches, {what}; {_tiny}. Peers' graphs are made ready while recording",
        {"length": length},
        # the longest take seconds each
        2 if length == LENGTHS[-1] else 0,
    )
    for work, what in (
        ("graph-dependent", "each on the same buffer"),
        ("graph-independent", "in turn on 256 buffers (raw Vulkan: on one, without barriers)"),
    )
    for length in LENGTHS
]
CASES = [
    _case("call-buffer", f"eager call with a buffer: {_tiny}"),
    _case("call-const", f"eager call with a buffer and a Const: {_tiny}"),
    _case("call-var", f"eager call with a buffer and a Var: {_tiny}"),
    _case("call-many", f"eager call with 8 buffers and 8 Consts: {_tiny} in each"),
    _case("launch-wait", f"launch, wait for the device, return: {_tiny}"),
    _case("launch-read", f"launch, read the result: {_tiny}"),
    *_GRAPHS,
    _case("startup", "fresh processes: import, context, first kernel", rounds=3),
    _case("compile", "a kernel of 60 operations that was not seen before; medians of several a round"),
    _case("upload", "from a NumPy array to a buffer; bytes of the array"),
    _case("download", "from a buffer to a new NumPy array; bytes of the array"),
    _case("download-into", "from a buffer into a NumPy array that is there; bytes of the array"),
    _case("upload-pinned", "from a pinned array to a buffer; bytes of the array"),
    _case("download-pinned", "from a buffer into a pinned array; bytes of the array"),
    _case("saxpy", "y = a x + y, the kernel of one element that a user writes; reads x and y, writes y"),
    _case("copy", "a buffer's copy to another; bytes read and written"),
    _case("copy-kernel", "y = x, the kernel of one element that a user writes; bytes read and written"),
    _case("threads", "threads launch on one context, each on a buffer of its own"),
    _case("fusion-tiny", "10 dependent additions to 64 floats in a graph; microseconds a replay"),
    _case("fusion-saxpy", "y += a x_k, 10 of them in a graph; GB/s as if each moved its memory by itself"),
    _case("overlap", "8 chunks: up, some saxpys, down, with pinned arrays"),
    _case("allocations", "memory allocations of an eager call in steady state"),
    _case("many-launches", "resident memory over many launches", rounds=3),
    _case("create-buffer", "a buffer of 1 KiB is made and dropped"),
    *transform_cases.CASES,
    *array_cases.CASES,
]
BY_NAME = {case.name: case for case in CASES}
WORKS = sorted({case.work for case in CASES})


def select(patterns: tuple[str, ...]) -> list[Case]:
    """Return the cases whose name, work or family a pattern names or whose name it begins; all if none.

    The cases that their rows are judged by come with them.

    Raises
    ------
    ValueError
        A pattern fits no case.
    """
    chosen = set()
    for pattern in patterns:
        exact = [case for case in CASES if pattern in (case.name, case.work, case.family)]
        fitting = exact or [case for case in CASES if case.name.startswith(pattern)]
        fitting = fitting or [case for case in CASES if case.family.startswith(pattern)]
        if not fitting:
            raise ValueError(f"there is no case {pattern!r}; there are: {', '.join(BY_NAME)}")
        chosen |= {case.name for case in fitting}
    chosen |= {row.yardstick for row in ROWS if row.case in chosen and row.yardstick}
    return [case for case in CASES if not patterns or case.name in chosen]


_wait = Row("launch, wait, return", "launch-wait", "wall_us", 16)
ROWS = [
    Row("eager call, host time: 1 buffer", "call-buffer", "host_us", 2, True),
    Row("... 1 buffer, 1 Const", "call-const", "host_us", 3, True),
    Row("... 1 buffer, 1 Var", "call-var", "host_us", 3, True),
    Row("... 8 buffers, 8 Const", "call-many", "host_us", 3, True),
    _wait,
    replace(_wait, label="launch, read 256 bytes", case="launch-read", goal=None),
    *(
        Row(f"graph replay, per dispatch: dependent, {n:,}", f"graph-dependent-{n}", "dispatch_us", 2.1)
        for n in LENGTHS
    ),
    *(
        Row(f"graph replay, per dispatch: independent, {n:,}", f"graph-independent-{n}", "dispatch_us", 0.25)
        for n in LENGTHS
    ),
    *(Row(f"recording a dispatch, of {n:,}", f"graph-dependent-{n}", "record_us", 3) for n in LENGTHS),
    Row("import beyond NumPy", "startup", "import_ms", 40, True),
    Row("import of the kernel language after that", "startup", "codegen_ms"),
    Row("context", "startup", "context_ms", 300, True),
    Row("first kernel, cold", "startup", "first_kernel_ms", 60, True),
    Row("first kernel, warm disk cache", "startup", "first_kernel_warm_ms", 10, True),
    Row("60 operations: tracing and GLSL", "compile", "trace_ms", 1.5, True),
    Row("60 operations: SPIR-V", "compile", "spirv_ms", 5, True),
    Row("60 operations: SPIR-V and pipeline", "compile", "build_ms"),
    Row("upload, pageable", "upload", "gbps", 35),
    Row("download, pageable, new array", "download", "gbps", 35),
    Row("download, pageable, into an array", "download-into", "gbps", 35),
    Row("upload, pinned", "upload-pinned", "gbps", 50),
    Row("download, pinned", "download-pinned", "gbps", 50),
    Row("y = a x + y, one element", "saxpy", "gbps", 4250),
    Row("copy between buffers", "copy", "gbps", 4200),
    Row("y = x, one element", "copy-kernel", "gbps"),
    *(Row(f"launches by {n} threads", "threads", f"launches_{n}") for n in (1, 4, 16)),
    Row("10 dependent additions: recorded", "fusion-tiny", "plain", unit="µs"),
    Row("10 dependent additions: optimize()", "fusion-tiny", "fused", unit="µs"),
    Row("10 saxpys: recorded", "fusion-saxpy", "plain", unit="GB/s", rising=True),
    Row("10 saxpys: optimize()", "fusion-saxpy", "fused", unit="GB/s", rising=True),
    Row("8 chunks up, work, down: serial", "overlap", "serial_ms"),
    Row("8 chunks up, work, down: overlapped", "overlap", "overlapped_ms"),
    Row("native allocations a call", "allocations", "native_allocations", 0, True),
    Row("CPython blocks a call", "allocations", "python_blocks", 0.01, True),
    Row("memory growth over many launches", "many-launches", "growth_mib", 1, True),
    Row("buffer made and dropped", "create-buffer", "wall_us"),
    *transform_cases.ROWS,
    *array_cases.ROWS,
]


def of_family(family: str) -> list[str]:
    """Return the names of a family's cases."""
    return [case.name for case in CASES if case.family == family]


def better_if_more(case: str, figure: str) -> bool:
    """Return whether more of a case's figure is better."""
    for row in ROWS:
        if (row.case, row.figure) == (case, figure):
            return row.more_is_better
    if figure in ("plain", "fused"):
        return case == "fusion-saxpy"
    return FIGURES[figure][1]
