"""The state of a kernel in a context: what was built there, and how calls reach it."""

from vkdispatch.codegen import ShaderSource
from vkdispatch.compiler.ir.statements import Variant
from vkdispatch.execution_pipeline.diagnostics import Diagnostics
from vkdispatch.shader.launch.fast_path import FastPath
from vkdispatch.shader.launch.launcher import BuiltKernel, GuardValues
from vkdispatch.shader.launch.size import Extent
from vkdispatch.shader.launch.variants import Coarsening


class KernelState:
    """The state of a kernel in one context. The context holds it, so that kernels keep no context alive.

    Attributes
    ----------
    tuned
        The fastest workgroup size found by measurement, or None.
    is_searched
        Whether a measured size was looked up.
    built
        The compiled kernels, by workgroup size and variant.
    primary, shown
        The compiled kernel and the source that the attributes `plan` and `source` of the kernel return.
    fast_paths, fast
        The fast path for each option of the launch size, and that for the decorator's option.
    loop_guard
        What launches pass after the arguments, or None.
    """

    __slots__ = (
        "__weakref__",
        "built",
        "coarsening",
        "diagnostics",
        "fast",
        "fast_paths",
        "is_searched",
        "loop_guard",
        "primary",
        "shown",
        "tuned",
    )

    def __init__(self, tuned: Extent | None = None, *, is_searched: bool = False) -> None:
        self.tuned = tuned
        self.is_searched = is_searched
        self.built: dict[tuple[Extent, Variant], BuiltKernel] = {}
        self.coarsening: Coarsening | None = None
        self.primary: BuiltKernel | None = None
        self.shown: ShaderSource | None = None
        self.fast: FastPath | None = None
        self.fast_paths: dict[str, FastPath] = {}
        self.diagnostics: Diagnostics | None = None
        self.loop_guard: GuardValues | None = None
