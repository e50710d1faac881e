"""What a case, a figure and a row of the table are, and how much is measured on which kind of machine."""

from dataclasses import dataclass, field

Sizes = dict[str, float]

# The families of cases: their names here, and in the names of files.
FAMILIES = (
    *("engine", "fft", "convolution", "reductions", "scans"),
    *("sorting", "selection", "matrices", "random", "rearranging"),
)
ENGINE, FFT, CONVOLUTION, REDUCTIONS, SCANS, SORTING, SELECTION, MATRICES, RANDOM, REARRANGING = FAMILIES
# What others are judged by; run with them, and on no page of their own.
YARDSTICKS = "yardsticks"
# A round of these takes less: there are many of them, and what they do lasts milliseconds.
BRIEF = (REDUCTIONS, SCANS, SORTING, SELECTION, MATRICES, RANDOM, REARRANGING, YARDSTICKS)
BRIEFLY = {"gpu": 0.3, "cpu": 0.1, "tiny": 0.5}
# Seconds of work before a GPU's clock is at its highest.
WARM = 0.25
# Tests transform no more at once.
LONGEST_TINY = 64
# CPUs transform no more in two dimensions.
LARGEST_PLANE = 512
# Matrices, by the kind of machine: no side is longer, and no batch has more.
LONGEST_SIDE = {"cpu": 256, "tiny": 33}
LARGEST_BATCH = {"cpu": 4, "tiny": 2}

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
    "ms": ("ms", False, "wall clock of one transform, of many in turn"),
    "gpoints": ("10^9/s", True, "points transformed per second of wall clock"),
    "gkeys": ("Gkeys/s", True, "keys (10^9) sorted per second of wall clock"),
    "tflops": ("TFLOP/s", True, "operations (10^12) per second of wall clock, two for each product and sum"),
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
        "points": 2**26,
        "reduced": 2**28,
        "array": 2**28,
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
        "points": 2**20,
        "reduced": 2**24,
        "array": 2**20,
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
        "points": 2**10,
        "reduced": 2**14,
        "array": 2**12,
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
    family
        What is shown together, on a page of the documentation with a picture of its own.
    """

    name: str
    work: str
    counts: str
    sizes: Sizes = field(default_factory=dict)
    rounds: int = 0
    family: str = ENGINE

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
        if "n" in sizes and kind == "tiny":
            sizes["n"] = min(sizes["n"], LONGEST_TINY)
        if "batch" in sizes and kind != "gpu":
            sizes |= {"n": min(sizes["n"], LARGEST_PLANE), "batch": 1}
        if self.family in BRIEF:
            sizes["seconds"] *= BRIEFLY[kind]
            sizes["warm"] = WARM if kind == "gpu" else 0
        if "depth" in sizes and kind in LONGEST_SIDE:
            for side in ("height", "width", "depth"):
                sizes[side] = min(sizes[side], LONGEST_SIDE[kind])
            sizes |= {"matrices": min(sizes["matrices"], LARGEST_BATCH[kind])} if "matrices" in sizes else {}
        return sizes


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
    yardstick, share
        The case that it is judged by, in place of a goal, and the share of what the best library reaches
        there that is the goal; 0: no goal.
    """

    label: str
    case: str
    figure: str
    goal: float | None = None
    anywhere: bool = False
    unit: str = ""
    rising: bool | None = None
    yardstick: str = ""
    share: float = 0.0

    @property
    def shown_unit(self) -> str:
        """Return the unit to print."""
        return self.unit or FIGURES[self.figure][0]

    @property
    def more_is_better(self) -> bool:
        """Return whether a larger value is a better one."""
        return FIGURES[self.figure][1] if self.rising is None else self.rising
