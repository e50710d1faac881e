"""The programs of kernels, which compile to variants, as launches use them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from vkdispatch.base.buffers.kernel_errors import Check, StandingTicket, journal_of
from vkdispatch.base.context import Context
from vkdispatch.base.errors import LoopLimitError, VkDispatchError
from vkdispatch.base.record import record
from vkdispatch.codegen.description import ShaderDescription, ShaderSource
from vkdispatch.compiler import passes
from vkdispatch.compiler.forms import PLAIN, ArgumentLayout, Variant
from vkdispatch.compiler.ir.location import Loc, located
from vkdispatch.execution_pipeline.timings import is_held
from vkdispatch.shader.building import UNCOARSENED, BuiltKernel, Coarsening, GuardValues
from vkdispatch.shader.signature import (
    BufferSlot,
    ImageSlot,
    Parameter,
    Slot,
    Slots,
    read_constants,
    read_parameters,
)
from vkdispatch.shader.size import Extent

if TYPE_CHECKING:
    from vkdispatch.compiler.ir import Kernel
    from vkdispatch.compiler.passes.diagnostics import Checks

# ---- The checks of kernels -------------------------------------------------------------------------------


_CHECK_VARIABLE = "VKDISPATCH_CHECK"
# The `check` option of kernels, unless it is None.
CheckOption = bool | str | Collection[str]


def parse_check(check: object) -> Checks:
    """Parse the `check` option of a kernel; None takes the environment variable VKDISPATCH_CHECK.

    Raises
    ------
    TypeError, ValueError
        `parse_checks` does not accept it.
    """
    if check is not None:
        return passes.diagnostics.parse_checks(check)
    text = os.environ.get(_CHECK_VARIABLE, "").strip()
    return passes.diagnostics.parse_checks(text, _CHECK_VARIABLE) if text else passes.diagnostics.Checks()


def is_checking() -> bool:
    """Whether VKDISPATCH_CHECK turns checks on. Raises as `parse_check`."""
    return _CHECK_VARIABLE in os.environ and bool(parse_check(None))


# ---- The programs of kernels -----------------------------------------------------------------------------


@record(eq=False)
class LoopGuard:
    """A kernel whose loops report that the driver ended them, and what a launch passes for that.

    Attributes
    ----------
    description
        The kernel; None if that was compiled before and comes from the disk.
    slots
        The slots of the launcher that follow those of the kernel: the journal, and the ticket.
    places
        The Python lines of the loops.
    """

    description: ShaderDescription | None
    slots: tuple[Slot, Slot]
    places: tuple[Loc | None, ...]

    def make_values(self, who: str, context: Context) -> GuardValues:
        """Return what launches in a context pass for the slots."""
        ticket = StandingTicket(context, _LoopCheck(who, self.places))
        return GuardValues(journal_of(context), ticket)


class _LoopCheck(Check):
    """The check that the driver ended no loop of a kernel."""

    __slots__ = ("_places", "_who")

    def __init__(self, who: str, places: tuple[Loc | None, ...]) -> None:
        self._who, self._places = who, places

    @property
    def function(self) -> str:
        return self._who

    def error(self, place: int, words: Any, queue: int, call: str) -> VkDispatchError:
        where = "" if words is None else " in invocation ({}, {}, {})".format(*map(int, words[0:5:2]))
        message = (
            f"{self._who}: a loop was ended by the driver{where}, which limits the rounds of all loops of an "
            "invocation together; use more invocations with fewer rounds each"
        )
        return located(LoopLimitError, message, self._places[place - 1])


@record(eq=False)
class Build:
    """How a kernel was built, from which explanations repeat it.

    Attributes
    ----------
    find_program, who
        Returns the program of the kernel, or None once the kernel is gone; its name and where it is defined.
    variant, local_size
        The form, and the size of the workgroups.
    times
        The stages and their seconds.
    """

    find_program: Callable[[], Program | None]
    who: str
    variant: Variant
    local_size: Extent
    times: tuple[tuple[str, float], ...]


class Program:
    """The program of a kernel. The methods here are those of code of which nothing is known.

    Attributes
    ----------
    description
        What is launched: an instrumented kernel if the kernel prints or is checked.
    observation
        How the kernel is observed, or None if it neither prints nor is checked.
    kernel
        The IR of what is launched, from which any variant can be generated. None for GLSL and SPIR-V.
    is_traced
        Whether there is IR.
    is_sized_by_calls
        Whether calls decide the size of shared memory, so that only a call builds the kernel.
    trace_seconds
        How long the trace took; None if there was none.
    """

    description: ShaderDescription
    observation: Any = None  # an `Observation` of `shader.traced.program`
    kernel: Kernel | None = None
    is_traced = False
    is_sized_by_calls = False
    trace_seconds: float | None = None

    @property
    def fills_tiles(self) -> bool:
        """Whether missing invocations leave gaps in shared memory; see `traced.generation.fills_tiles`."""
        return False

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.description.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What callers give values for."""
        return read_parameters(self.description)

    @property
    def constants(self) -> tuple[Parameter, ...]:
        """What follows in a launch: the constant arrays."""
        return read_constants(self.description)

    @property
    def binding_base(self) -> int:
        """The binding of the first buffer or image."""
        return self.description.resource_binding_base

    def make_finder(self) -> Callable[[], Kernel | None]:
        """Return a function that returns the IR. It keeps the IR alive, not the program."""
        kernel = self.kernel
        return lambda: kernel

    def show(self, local_size: Extent, variant: Variant = PLAIN) -> ShaderSource:
        """Return the source of a variant, without what the driver's limits add."""
        return self.description.shader_source(local_size, variant)

    def depends_on_workgroups(self) -> bool:
        """Return whether results may depend on the size of the workgroups."""
        return True

    def loop_guard(self, context: Context, variant: Variant) -> LoopGuard | None:
        """Return the form whose loops report that the driver ended them, if the devices need one."""
        return None

    def choose_coarsening(self, context: Context) -> Coarsening:
        """Return which launches use the coarse variant."""
        return UNCOARSENED

    def compile(
        self, slots: Slots, context: Context, local_size: Extent, variant: Variant, coarsening: Coarsening
    ) -> BuiltKernel:
        """Compile a variant for one workgroup size. Raises as `build_kernel`.

        `slots` are what the caller's arguments and the constant arrays fill.
        """
        raise NotImplementedError

    def note_build(
        self, who: str, variant: Variant, local_size: Extent, times: tuple[tuple[str, float], ...]
    ) -> Build:
        """Return how it was built. The note does not keep the program alive, unless somebody explains."""
        traced = () if self.trace_seconds is None else (("trace", self.trace_seconds),)
        find = (lambda: self) if is_held() else weakref.ref(self)
        return Build(find, who, variant, local_size, (*traced, *times))


# ---- The properties of recorded kernels that fusing their launches needs ---------------------------------


@record(eq=False)
class FusibleKernel:
    """A recorded kernel, with what fusing its launches needs.

    Attributes
    ----------
    program
        The kernel.
    layout
        The layout of the arguments of the recorded variant.
    resources
        Positions among the kernel's resources of the bound buffers and images, in order of the slots.
    local_size
        The workgroup size given by the user, or None.
    most_buffers
        The device's limit of storage buffers in a kernel.
    """

    program: Program
    layout: ArgumentLayout
    resources: tuple[int, ...]
    local_size: Extent | None
    most_buffers: int

    @property
    def description(self) -> ShaderDescription:
        """The kernel that is launched."""
        return self.program.description


def find_bound_resources(program: Program, slots: Sequence[Slot]) -> tuple[int, ...]:
    """Return the positions among a kernel's resources of the buffers and images in its slots."""
    base = program.binding_base
    return tuple(slot.binding - base for slot in slots if isinstance(slot, (BufferSlot, ImageSlot)))
