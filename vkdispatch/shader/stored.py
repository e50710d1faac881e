"""Kernels of the package that are kept on disk: a later process launches them without tracing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from vkdispatch.base.context import Context
from vkdispatch.base.record import field, record, replace
from vkdispatch.codegen.description import ShaderDescription
from vkdispatch.compiler.forms import Variant
from vkdispatch.shader import tracing
from vkdispatch.shader.building import BuiltKernel, Coarsening, KernelCode, bind_code
from vkdispatch.shader.program import LoopGuard, Program
from vkdispatch.shader.signature import Parameter, Slots
from vkdispatch.shader.size import Extent

if TYPE_CHECKING:
    from vkdispatch.compiler.ir import Kernel
    from vkdispatch.shader.traced.program import TracedProgram


@record(eq=False, frozen=False)
class StoredKernel:
    """What launches of a kernel need, without the kernel.

    Attributes
    ----------
    name, origin, who
        The name, where it is defined, and both for messages.
    sizes
        Its workgroup size, and its launch size in workgroups or invocations, as `ShaderFunction` takes them.
    parameters, constants
        What callers give values for, and the constant arrays that follow.
    binding_base
        The binding of the first buffer.
    is_internal, depends_on_workgroups, fills_tiles
        Facts; see `LaunchableKernel` and `Program`.
    coarsening
        Which launches use the coarse variant; None if no call has asked.
    guards
        The forms whose loops report that the driver ended them, by whether positions have 64 bits.
    codes
        The compiled variants, by workgroup size and variant.
    """

    name: str
    origin: str | None
    who: str
    sizes: tuple[Any, Any, Any]
    parameters: tuple[Parameter, ...]
    constants: tuple[Parameter, ...]
    binding_base: int
    is_internal: bool
    depends_on_workgroups: bool
    fills_tiles: bool
    coarsening: Coarsening | None = None
    guards: dict[bool, LoopGuard | None] = field(factory=dict)
    codes: dict[tuple[Extent, Variant], KernelCode] = field(factory=dict)


class Shelf(Protocol):
    """Where a kernel is kept, with the kernels that were made together with it.

    Attributes
    ----------
    lock
        Held while what is known of a kernel changes or is written.
    """

    lock: Any

    def fits(self, context: Context) -> bool:
        """Whether the kernel is kept for the devices of a context."""

    def trace(self, number: int) -> TracedProgram:
        """Trace the kernels, and return the program of the one with this number."""

    def save(self) -> None:
        """Write what is known of the kernels to the disk."""


class StoredProgram(Program):
    """The program of a kernel that is kept on disk. It is traced only for what the disk does not have."""

    is_traced = True

    def __init__(
        self, stored: StoredKernel, shelf: Shelf, number: int, traced: TracedProgram | None = None
    ) -> None:
        """Prepare the kernel with a number on a shelf. `traced` is the traced program if there is one."""
        self.stored = stored
        self._shelf = shelf
        self._number = number
        self._traced = traced

    @property
    def traced(self) -> TracedProgram:
        """The traced program."""
        if self._traced is None:
            self._traced = self._shelf.trace(self._number)
        return self._traced

    @property
    def trace_seconds(self) -> float | None:  # type: ignore[override]
        """How long the trace took; None if there was none."""
        return None if self._traced is None else self._traced.trace_seconds

    @property
    def description(self) -> ShaderDescription:  # type: ignore[override]
        """The traced kernel."""
        return self.traced.description

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        """The IR."""
        return self.traced.kernel

    @property
    def fills_tiles(self) -> bool:
        """Whether missing invocations leave gaps in shared memory."""
        return self.stored.fills_tiles

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.stored.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What callers give values for."""
        return self.stored.parameters

    @property
    def constants(self) -> tuple[Parameter, ...]:
        """The constant arrays."""
        return self.stored.constants

    @property
    def binding_base(self) -> int:
        """The binding of the first buffer."""
        return self.stored.binding_base

    def make_finder(self) -> Callable[[], Kernel | None]:
        """Return a function that returns the IR, which is traced then."""
        return lambda: self.kernel

    def depends_on_workgroups(self) -> bool:
        """Return whether results may depend on the size of the workgroups."""
        return self.stored.depends_on_workgroups

    def choose_coarsening(self, context: Context) -> Coarsening:
        """Return which launches use the coarse variant."""
        if not self._shelf.fits(context):
            return self.traced.choose_coarsening(context)
        if self.stored.coarsening is None:
            self.stored.coarsening = self.traced.choose_coarsening(context)
        return self.stored.coarsening

    def loop_guard(self, context: Context, variant: Variant) -> LoopGuard | None:
        """Return the form whose loops report that the driver ended them; see `Program`."""
        guards, fits = self.stored.guards, self._shelf.fits(context)
        if fits and self._traced is None and variant.wide in guards:
            return guards[variant.wide]
        guard = self.traced.loop_guard(context, variant)
        if fits:
            nowhere = () if guard is None else (None,) * len(guard.places)
            kept = None if guard is None else replace(guard, description=None, places=nowhere)
            with self._shelf.lock:
                guards[variant.wide] = kept
        return guard

    def compile(
        self, slots: Slots, context: Context, local_size: Extent, variant: Variant, coarsening: Coarsening
    ) -> BuiltKernel:
        """Return a variant for one workgroup size, compiled if the disk does not have it."""
        stored, key = self.stored, (local_size, variant)
        fits = self._shelf.fits(context)
        # traces show passes, which the disk does not have
        code = stored.codes.get(key) if fits and tracing.LEVEL < tracing.STEPS else None
        if code is not None:
            return bind_code(stored.who, stored.origin, code, context, coarsening)
        code = self.traced.generate(slots, context, local_size, variant)
        kernel = bind_code(stored.who, stored.origin, code, context, coarsening)
        if fits:
            self.loop_guard(context, variant)
            # places in Python are for messages of compilers, which this code has passed
            kept = replace(code, source=replace(code.source, line_map=()), times=(), form=None)
            with self._shelf.lock:
                stored.codes[key] = kept
                self._shelf.save()
        return kernel
