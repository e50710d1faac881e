"""What is measured: the cases, how large they are, and the rows of the table in the order of the goals."""

from dataclasses import dataclass, field, replace

Sizes = dict[str, float]

# unit, whether more is better, what it counts
FIGURES: dict[str, tuple[str, bool, str]] = {
    "host_us": ("µs", False, "CPU time of the calling thread, per call"),
    "loop_us": ("µs", False, "wall clock over the loop of calls, per call"),
    "total_us": ("µs", False, "wall clock to the end of the wait after the loop, per call"),
    "submit_us": ("µs", False, "CPU time to submit once"),
    "wall_us": ("µs", False, "wall clock of a call with its wait, median of the round's calls"),
    "mean_us": ("µs", False, "wall clock of a call with its wait, mean of the round's calls"),
    "sleeping_us": ("µs", False, "wall clock, waiting in vkWaitSemaphores"),
    "fence_us": ("µs", False, "wall clock, waiting in vkWaitForFences"),
    "record_us": ("µs", False, "CPU time of the recording thread, per dispatch"),
    "dispatch_us": ("µs", False, "wall clock of the replays and the wait after them, per dispatch"),
    "gbps": ("GB/s", True, "bytes moved (10^9) per second of wall clock"),
    "memcpy_gbps": ("GB/s", True, "one thread's memcpy between pageable and mapped memory"),
    "naive_32_gbps": ("GB/s", True, "one element an invocation, 32 invocations a group"),
    "naive_256_gbps": ("GB/s", True, "one element an invocation, 256 invocations a group"),
    "naive_1024_gbps": ("GB/s", True, "one element an invocation, 1024 invocations a group"),
    "vec4_256_gbps": ("GB/s", True, "a vec4 an invocation, 256 invocations a group"),
    "block_256_gbps": ("GB/s", True, "four elements an invocation, a group apart, 256 invocations a group"),
    "command_gbps": ("GB/s", True, "vkCmdCopyBuffer"),
    "kernel_gbps": ("GB/s", True, "a kernel that copies a vec4 an invocation"),
    "import_ms": ("ms", False, "wall clock of the import, NumPy being there"),
    "codegen_ms": ("ms", False, "wall clock of importing the kernel language after that"),
    "context_ms": ("ms", False, "wall clock until the device can be used"),
    "buffer_ms": ("ms", False, "wall clock to make and fill the first buffer"),
    "first_kernel_ms": (
        "ms",
        False,
        "wall clock of the first kernel, from its definition to its result; no cache",
    ),
    "first_kernel_warm_ms": ("ms", False, "the same when an earlier process has filled the disk cache"),
    "trace_ms": ("ms", False, "wall clock from the decorator to the GLSL"),
    "spirv_ms": ("ms", False, "wall clock from the GLSL to SPIR-V"),
    "build_ms": ("ms", False, "wall clock from the GLSL to the pipeline"),
    "plain": ("", False, "the graph as recorded"),
    "fused": ("", False, "the graph after optimize()"),
    "serial_ms": ("ms", False, "wall clock, one step after the other"),
    "overlapped_ms": ("ms", False, "wall clock, transfers under way while kernels run"),
    "python_blocks": ("", False, "growth of CPython's count of memory blocks, per call"),
    "native_allocations": ("", False, "allocations by our native module, per call"),
    "growth_mib": ("MiB", False, "growth of resident memory over a round's launches"),
}
for _threads in (1, 2, 4, 8, 16):
    _counts = f"launches a second of {_threads} thread{'s' * (_threads > 1)} together, wall clock"
    FIGURES[f"launches_{_threads}"] = ("/s", True, _counts)

# Floors of each of these: sizes by name of the machine's kind.
SIZES: dict[str, Sizes] = {
    # seconds: what a round may take. calls, passes: at most so many repetitions in it.
    "gpu": {
        "seconds": 0.2,
        "calls": 20_000,
        "passes": 200,
        "elements": 2**28,
        "bytes": 2**30,
        "kernels": 15,
        "launches": 64_000,
        "many": 1_000_000,
        "fused": 500,
        "overlap_steps": 24,
        "dispatches": 200_000,
    },
    "cpu": {
        "seconds": 0.2,
        "calls": 20_000,
        "passes": 50,
        "elements": 2**22,
        "bytes": 2**26,
        "kernels": 15,
        "launches": 8_000,
        "many": 100_000,
        "fused": 500,
        "overlap_steps": 4,
        "dispatches": 20_000,
    },
    # For tests: nothing that it measures means anything.
    "tiny": {
        "seconds": 0.005,
        "calls": 50,
        "passes": 2,
        "elements": 2**12,
        "bytes": 2**14,
        "kernels": 2,
        "launches": 160,
        "many": 300,
        "fused": 3,
        "overlap_steps": 2,
        "dispatches": 100,
    },
}
ROUNDS = {"gpu": 5, "cpu": 3, "tiny": 2}


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that several libraries do.

    Attributes
    ----------
    name
        What the command line calls it.
    work
        The name under which the libraries' modules have it: several cases may be one work at several sizes.
    counts
        What it does, and which bytes its figures count.
    sizes
        Sizes of its own, over those of the machine's kind.
    rounds
        At most so many rounds; 0: as many as the run has.
    """

    name: str
    work: str
    counts: str
    sizes: Sizes = field(default_factory=dict)
    rounds: int = 0

    def turns(self, rounds: int) -> int:
        """Return how many rounds of this case a run of so many has."""
        return min(rounds, self.rounds) if self.rounds else rounds

    def sized(self, kind: str) -> Sizes:
        """Return all its sizes on a kind of machine."""
        sizes = {**SIZES[kind], **self.sizes}
        if "length" in sizes:
            if kind == "tiny":
                sizes["length"] = min(sizes["length"], 100)
            sizes["replays"] = max(1, sizes["dispatches"] // sizes["length"])
        return sizes


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
]
BY_NAME = {case.name: case for case in CASES}
WORKS = sorted({case.work for case in CASES})


def select(patterns: tuple[str, ...]) -> list[Case]:
    """Return the cases whose name or work a pattern names or begins with; all without patterns.

    Raises
    ------
    ValueError
        A pattern fits no case.
    """
    chosen = set()
    for pattern in patterns:
        exact = [case for case in CASES if pattern in (case.name, case.work)]
        fitting = exact or [case for case in CASES if case.name.startswith(pattern)]
        if not fitting:
            raise ValueError(f"there is no case {pattern!r}; there are: {', '.join(BY_NAME)}")
        chosen |= {case.name for case in fitting}
    return [case for case in CASES if not patterns or case.name in chosen]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: one figure of one case.

    Attributes
    ----------
    goal
        What is to be reached on an H200; None: there is no goal.
    anywhere
        The goal holds on a CPU machine as well.
    unit
        Instead of the figure's.
    rising
        Whether more is better, where the figure does not know.
    """

    label: str
    case: str
    figure: str
    goal: float | None = None
    anywhere: bool = False
    unit: str = ""
    rising: bool | None = None

    @property
    def shown_unit(self) -> str:
        """Return the unit to print."""
        return self.unit or FIGURES[self.figure][0]

    @property
    def more_is_better(self) -> bool:
        """Return whether a larger value is a better one."""
        return FIGURES[self.figure][1] if self.rising is None else self.rising


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
]


def better_if_more(case: str, figure: str) -> bool:
    """Return whether more of a case's figure is better."""
    for row in ROWS:
        if (row.case, row.figure) == (case, figure):
            return row.more_is_better
    if figure in ("plain", "fused"):
        return case == "fusion-saxpy"
    return FIGURES[figure][1]
