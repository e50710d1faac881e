"""The programs of kernels, which compile to variants."""

from typing import Protocol

from vkdispatch.base.context import Context
from vkdispatch.base.record import replace
from vkdispatch.codegen import ShaderDescription
from vkdispatch.compiler.analyses.contents import depends_on_workgroups
from vkdispatch.compiler.ir import Kernel
from vkdispatch.compiler.ir.statements import PLAIN, Variant
from vkdispatch.compiler.passes.bounds import keeps_workgroups
from vkdispatch.compiler.passes.diagnostics import Checks
from vkdispatch.compiler.passes.widen import widen
from vkdispatch.shader.arguments.slots import Slot, ValueSlot
from vkdispatch.shader.launch.build import KernelSource, build_kernel
from vkdispatch.shader.launch.features import without_float_atomics
from vkdispatch.shader.launch.launcher import BuiltKernel
from vkdispatch.shader.launch.size import Extent
from vkdispatch.shader.launch.variants import UNCOARSENED, Coarsening, choose_coarsening
from vkdispatch.shader.loop_guards import LoopGuard, guard_loops
from vkdispatch.shader.observation import Observation, observe


class Program(Protocol):
    """The program of a kernel, as far as calling, launching and recording use it."""

    @property
    def description(self) -> ShaderDescription:
        """The description that is launched: an instrumented one if the kernel prints or is checked."""

    @property
    def observation(self) -> Observation | None:
        """How the kernel is observed, or None if it neither prints nor is checked."""

    @property
    def kernel(self) -> Kernel | None:
        """The IR, from which any variant can be generated. None for GLSL and SPIR-V."""

    def depends_on_workgroups(self) -> bool:
        """Return whether results may depend on the size of the workgroups."""

    def loop_guard(self, context: Context, variant: Variant) -> LoopGuard | None:
        """Return the form whose loops report that the driver ended them, if the devices need one."""

    def choose_coarsening(self, context: Context) -> Coarsening:
        """Return which launches use the coarse variant."""

    def compile(
        self,
        slots: tuple[Slot, ...],
        context: Context,
        local_size: Extent,
        variant: Variant,
        coarsening: Coarsening,
    ) -> BuiltKernel:
        """Compile a variant for one workgroup size. Raises as `build_kernel`.

        `slots` are what the caller's arguments and the constant arrays fill.
        """


class TracedProgram:
    """The program of a traced kernel; see `Program`."""

    def __init__(self, who: str, source: ShaderDescription, checks: Checks, place: str | None) -> None:
        """Prepare a traced kernel, defined at `place`, to be compiled with these checks."""
        self._who = who
        self._source = source
        self._place = place
        self.observation = observe(source, checks)
        self.description = source if self.observation is None else self.observation.description

    @property
    def kernel(self) -> Kernel:
        """The IR of what is launched."""
        return self.description.kernel

    def depends_on_workgroups(self) -> bool:
        """Return whether results may depend on the size of the workgroups."""
        return depends_on_workgroups(self._source.kernel)

    def choose_coarsening(self, context: Context) -> Coarsening:
        """Return which launches use the coarse variant: none of a kernel that reports invocations."""
        if self.observation is not None or self.loop_guard(context, PLAIN) is not None:
            return UNCOARSENED
        return choose_coarsening(self.kernel, context)

    def loop_guard(self, context: Context, variant: Variant) -> LoopGuard | None:
        """Return the form whose loops report that the driver ended them; see `Program`."""
        guards: dict[bool, LoopGuard | None] = context._state_of(self, dict)
        if variant.wide not in guards:
            description = self._observe(variant)
            if variant.wide and not description.kernel.wide:
                bounded = not keeps_workgroups(description.kernel)
                description = replace(description, kernel=widen(description.kernel, bounded=bounded))
            # atomics that the device lacks become loops
            kernel = without_float_atomics(description.kernel, context.device_infos)
            guards[variant.wide] = guard_loops(replace(description, kernel=kernel), context)
        return guards[variant.wide]

    def _observe(self, variant: Variant) -> ShaderDescription:
        return self.description if self.observation is None else self.observation.select(variant).description

    def compile(
        self,
        slots: tuple[Slot, ...],
        context: Context,
        local_size: Extent,
        variant: Variant,
        coarsening: Coarsening,
    ) -> BuiltKernel:
        """Compile a variant for one workgroup size; see `Program`."""
        observation, guard = self.observation, self.loop_guard(context, variant)
        if observation is not None:
            slots = observation.select(variant).slots
        description = self._observe(variant)
        if guard is not None:
            # its ticket may be what no longer fits in push constants; the block is binding 0 then
            moved = guard.description.resource_binding_base - description.resource_binding_base
            kept = (
                slot if isinstance(slot, ValueSlot) else replace(slot, binding=slot.binding + moved)
                for slot in slots
            )
            slots, description = (*kept, *guard.slots), guard.description
        source = KernelSource(
            self._who,
            description,
            slots,
            self._place,
            observed=observation is not None,
        )
        return build_kernel(source, context, local_size, variant, coarsening)
