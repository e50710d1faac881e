"""What profiles know about compiled kernels. Facts live as long as their plan, or a profile that saw it."""

import threading
import weakref

from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.compiler.analyses.contents import ArgumentLayout
from vkdispatch.compiler.ir import Kernel


class KernelFacts:
    """A compiled kernel.

    Attributes
    ----------
    name
        Name of the kernel.
    source
        Where it is defined, such as "kernel.py:12", or None.
    local_size
        Invocations of a workgroup along x, y and z.
    kernel
        Its IR; None for GLSL and SPIR-V.
    layout
        Its argument block.
    internal
        Whether it is one of the package's own, which profiles leave out.
    """

    __slots__ = ("__weakref__", "internal", "kernel", "layout", "local_size", "name", "source")

    def __init__(
        self,
        name: str,
        source: str | None,
        local_size: tuple[int, int, int],
        kernel: Kernel | None,
        layout: ArgumentLayout,
        internal: bool = False,
    ) -> None:
        self.name = name
        self.source = source
        self.local_size = local_size
        self.kernel = kernel
        self.layout = layout
        self.internal = internal


_MOST_SOURCES = 3
_lock = threading.Lock()
_known: "weakref.WeakValueDictionary[int, KernelFacts]" = weakref.WeakValueDictionary()
_held: list[dict[int, KernelFacts]] = []


def register_facts(plan: ComputePlan, facts: KernelFacts) -> None:
    """Attach facts to a plan."""
    plan.facts = facts
    number = plan._native.id
    with _lock:
        _known[number] = facts
        for holder in _held:
            holder[number] = facts


def is_held() -> bool:
    """Whether a profile is running."""
    return bool(_held)


def note_source(plan: ComputePlan, source: str) -> None:
    """Let profiles that are running know a place of the program for which a plan is launched.

    They have the first few of them: a kernel of an expression serves many.
    """
    number = plan._native.id
    with _lock:
        for holder in _held:
            facts = holder.get(number)
            if facts is None:
                continue
            known = [] if facts.source is None else facts.source.split(", ")
            if source in known or known[-1:] == ["..."]:
                continue
            more = source if len(known) < _MOST_SOURCES else "..."
            holder[number] = KernelFacts(
                facts.name,
                ", ".join([*known, more]),
                facts.local_size,
                facts.kernel,
                facts.layout,
                facts.internal,
            )


def hold() -> dict[int, KernelFacts]:
    """Return the known facts by number of the plan. New ones are added to the result until `release`."""
    with _lock:
        holder = dict(_known)
        _held.append(holder)
        return holder


def release(holder: dict[int, KernelFacts]) -> None:
    """Stop adding facts to a result of `hold`."""
    with _lock:
        _held[:] = [other for other in _held if other is not holder]
