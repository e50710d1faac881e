"""The passes of a kernel, where each runs, and the versions of the program that they make, as text."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import ParamSpec, TypeVar

from vkdispatch.base.record import record, replace
from vkdispatch.compiler.forms import Variant
from vkdispatch.compiler.ir import Kernel, without_asserts
from vkdispatch.compiler.ir.text import Line, ProgramWriter, join_lines
from vkdispatch.compiler.passes.bounds import guard_effects, keeps_workgroups
from vkdispatch.compiler.passes.coarsen import coarsen, put_in_blocks
from vkdispatch.compiler.passes.lowering import is_comparison, replace_float_atomics, unfold_conditionals
from vkdispatch.compiler.passes.widen import widen

PASSES = {
    "conditionals": "large conditional expressions become if statements",
    "comparisons": "compare-exchanges of floats become those of their bits, as no device has the former",
    "asserts": "asserts are left out, unless the kernel is checked",
    "checks": "prints, asserts and checks become stores to a buffer of reports",
    "wide": "ids and indices have 64 bits",
    "atomics": "atomics of floats that a device lacks become those of their bits",
    "loops": "loops count their rounds, as the driver ends long ones",
    "nesting": "conditions are nested less deeply, as the driver ignores those beyond a limit",
    "barriers": "invocations beyond exec_size reach all barriers, and do nothing else",
    "blocks": "each invocation processes a block of neighbours",
    "coarse": "each invocation processes several elements",
}
"""The passes, and what they do.

`codegen.builder` runs "conditionals" to "asserts" after a trace, `shader.traced.program` "checks" and
"loops", `shader.traced.generation` "atomics" and "nesting", for the devices. `make_form` runs the
others, "wide" last; where a kernel is checked or its loops are limited, "wide" comes first. Without a name:
`reads.settle_reads`, which ends a trace, and `fuse.fuse`, which makes one kernel of several.
"""

TRACE_SECONDS = "seconds of the trace"
"""The fact of a kernel that tells how long its trace took."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@record(eq=False)
class Step:
    """A pass that changed a program, and the program before."""

    name: str
    before: Kernel


class _Clock(threading.local):
    seconds = 0.0


_clock = _Clock()
_keepers = 0
_lock = threading.Lock()


@contextmanager
def keep_steps() -> Iterator[None]:
    """Keep the program before each pass of a block, of any thread, for `list_steps`."""
    global _keepers
    with _lock:
        _keepers += 1
    try:
        yield
    finally:
        with _lock:
            _keepers -= 1


def list_steps(kernel: Kernel) -> list[Step]:
    """Return the passes that led to a program, the first one first."""
    steps: list[Step] = []
    while (step := kernel.facts.get(Step)) is not None:
        steps.append(step)
        kernel = step.before
    return steps[::-1]


def count_seconds() -> float:
    """Return how long passes have run in this thread."""
    return _clock.seconds


def run(
    name: str, change: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Run a pass: a function of a kernel that returns one, or a record with one, or None."""
    begin = perf_counter()
    result = change(*args, **kwargs)
    _clock.seconds += perf_counter() - begin
    if _keepers:
        before, after = args[0], getattr(result, "kernel", result)
        if isinstance(before, Kernel) and isinstance(after, Kernel) and after is not before:
            after.facts[Step] = Step(name, before)
    return result


# ---- the passes of each stage --------------------------------------------------------------------


def finish_trace(kernel: Kernel, new_name: Callable[[], str]) -> Kernel:
    """Return the program of a trace in the form that every device takes. `new_name` makes unused names."""
    kernel = run("conditionals", unfold_conditionals, kernel, new_name)
    return run("comparisons", replace_float_atomics, kernel, is_comparison)


def leave_out_asserts(kernel: Kernel) -> Kernel:
    """Return a program without its asserts; the same one if it has none."""
    return run("asserts", _leave_out_asserts, kernel)


def _leave_out_asserts(kernel: Kernel) -> Kernel:
    body = without_asserts(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


def make_wide(kernel: Kernel, *, bounded: bool = True) -> Kernel:
    """Return the form of a program with 64-bit positions; see `passes.widen`.

    If `bounded`, it ends invocations beyond the limit, unless they must reach barriers.
    """
    return run("wide", widen, kernel, bounded=bounded and not keeps_workgroups(kernel))


def keep_invocations(kernel: Kernel) -> Kernel:
    """Return a program whose invocations all reach its barriers; see `passes.bounds`."""
    return run("barriers", guard_effects, kernel) if keeps_workgroups(kernel) else kernel


def make_form(kernel: Kernel, variant: Variant) -> Kernel:
    """Return the program of a form of a kernel, which is what is written."""
    kernel = keep_invocations(kernel)
    if variant.coarse > 1:
        if variant.blocks and not (variant.addressed or variant.wide or variant.lacks):
            kernel = run("blocks", put_in_blocks, kernel)
        else:
            kernel = run("coarse", coarsen, kernel, variant.coarse)
    return make_wide(kernel, bounded=variant.coarse == 1) if variant.wide else kernel


def is_bounded_outside(form: Kernel, variant: Variant) -> bool:
    """Whether what `make_form` returned leaves it to the writer to end invocations beyond the limit."""
    return not (form.exec_count is None or variant.coarse > 1 or variant.wide or keeps_workgroups(form))


@record
class ProgramVersion:
    """The program of a kernel after the pass `name`, or as it was traced ("trace").

    Attributes
    ----------
    about
        What the pass does.
    lines
        The program as text, each line with the place in Python that it comes from.
    """

    name: str
    about: str
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The program, with places in Python at the right."""
        return join_lines(self.lines)

    def difference(self, before: "ProgramVersion") -> list[str]:
        """Return the lines that differ from the version before, marked with + and -, and their neighbours."""
        import difflib  # slow to import

        old, new = ([line.text for line in version.lines] for version in (before, self))
        return list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]


def list_versions(kernel: Kernel) -> tuple[ProgramVersion, ...]:
    """Return the versions that led to a program, the traced one first; see `order.keep_steps`."""
    steps, writer = list_steps(kernel), ProgramWriter()
    names = ["trace", *(step.name for step in steps)]
    kernels = [*(step.before for step in steps), kernel]
    return tuple(
        ProgramVersion(name, PASSES.get(name, "the program as traced"), tuple(writer.write(version)))
        for name, version in zip(names, kernels, strict=True)
    )
