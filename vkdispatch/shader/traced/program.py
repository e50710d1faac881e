"""The programs of traced kernels; what prints, checks and guards adds to them."""

import functools
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kernel_errors import NOTES
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context, use_context
from vkdispatch.base.devices import identify_devices
from vkdispatch.base.dtype import uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.backends import GLSLBackend
from vkdispatch.codegen.description import ShaderDescription
from vkdispatch.compiler.analyses.contents import depends_on_workgroups
from vkdispatch.compiler.analyses.launch_values import is_sized_by_calls
from vkdispatch.compiler.forms import PLAIN, Variant
from vkdispatch.compiler.ir import Declare, Expr, Kernel, Op, Register, Storage, Store, While
from vkdispatch.compiler.passes.builders import binary, less, read, uint
from vkdispatch.compiler.passes.diagnostics import Checks
from vkdispatch.compiler.passes.instrument import Instrumented, instrument
from vkdispatch.compiler.passes.loop_limits import LimitedLoops, count_rounds, limit_loops
from vkdispatch.compiler.passes.order import TRACE_SECONDS, make_wide, run
from vkdispatch.execution_pipeline.diagnostics import Diagnostics, Probe
from vkdispatch.execution_pipeline.timings import KernelFacts, register_facts
from vkdispatch.shader.arguments import CheckedCall
from vkdispatch.shader.building import UNCOARSENED, BuiltKernel, Coarsening, KernelCode, Launch, bind_code
from vkdispatch.shader.program import LoopGuard, Program
from vkdispatch.shader.signature import BufferSlot, Slot, Slots, ValueSlot, read_slots
from vkdispatch.shader.size import Extent
from vkdispatch.shader.traced.generation import (
    KernelSource,
    build_kernel,
    choose_coarsening,
    fills_tiles,
    generate_code,
    without_float_atomics,
)

# ---- Kernels that print or are checked: the instrumented kernel that is launched instead -----------------


@record(eq=False, slots=False)
class Observation:
    """The instrumented form of a kernel, and the meaning of its reports.

    Attributes
    ----------
    description
        The instrumented kernel, which has one more buffer.
    instrumented
        The result of the instrumentation.
    slots
        The slots of the launcher: the kernel's arguments and constant arrays, launch number, and buffer.
    source, kernel, checks
        The original kernel, which of its programs is instrumented, and the checks.
    """

    description: ShaderDescription
    instrumented: Instrumented
    slots: tuple[Slot, ...]
    source: ShaderDescription
    kernel: Kernel
    checks: Checks

    def select(self, variant: Variant) -> "Observation":
        """Return how a variant of the kernel is observed: a wide one reports indices in 64 bits."""
        return self._widened if variant.wide else self

    @functools.cached_property
    def _widened(self) -> "Observation":
        observation = _observe_kernel(self.source, make_wide(self.kernel), self.checks)
        assert observation is not None
        return observation

    def run(self, who: str, kernel: BuiltKernel, diagnostics: Diagnostics, launch: Launch) -> bool:
        """Launch a call, wait, and deliver its reports; or record it.

        Returns
        -------
        False if the launcher refused the call; nothing happened then.

        Raises
        ------
        CheckError
            The launch violated a check.
        ValueError
            A buffer has less than one element.
        """
        call, graph = launch.call, launch.graph
        probe = Probe(who, self.instrumented.sites, self._find_shapes(who, call))
        target = diagnostics if graph is None else graph.diagnostics
        resources = (*call.resources, target.buffer)
        call = replace(call, slots=(*call.slots, 0, target.buffer), resources=resources)
        launch = replace(launch, call=call)
        if graph is None:
            return diagnostics.observe(functools.partial(kernel.run, launch), (probe,))
        return kernel.run(launch, (kernel.layout.offset_of(self.instrumented.launch), probe))

    def _find_shapes(self, who: str, call: CheckedCall) -> dict[int, tuple[int, ...]]:
        """Return the shape of each buffer of a call, by its position among the resources."""
        shapes: dict[int, tuple[int, ...]] = {}
        for slot, value in zip(self.slots[:-2], call.slots, strict=True):
            if not isinstance(slot, BufferSlot):
                continue
            position = slot.binding - self.description.resource_binding_base
            resource = self.description.kernel.resources[position]
            assert isinstance(resource, Storage)
            kind = resource.dtype
            if value.mem_size < kind.item_size:
                # Reads out of bounds return element 0, so there must be one.
                raise ArgumentValueError(
                    f"{who}: {slot.label}: the buffer has {value.mem_size} bytes, but one {kind.name} takes "
                    f"{kind.item_size}"
                )
            shapes[position] = value.shape
        return shapes


def observe(description: ShaderDescription, checks: Checks) -> Observation | None:
    """Return the instrumented form of a kernel, or None if it neither prints nor has anything to check."""
    kernel = description.asserting if checks.asserts else None
    return _observe_kernel(description, kernel or description.kernel, checks)


def _observe_kernel(description: ShaderDescription, kernel: Kernel, checks: Checks) -> Observation | None:
    instrumented = run("checks", instrument, kernel, checks)
    if instrumented is None:
        return None
    observed = replace(description, kernel=instrumented.kernel)
    binding = instrumented.binding + observed.resource_binding_base
    slots = (
        *read_slots(observed),
        ValueSlot("launch number", instrumented.launch, uint32),
        BufferSlot("diagnostics", binding, None, reads=True, writes=True, item_size=uint32.item_size),
    )
    return Observation(observed, instrumented, slots, description, kernel, checks)


# ---- Kernels on devices whose driver ends loops after a number of rounds ---------------------------------
#
# The form that is compiled there.
#
# How many rounds a driver allows is measured, once for each device and driver (`find_loop_limit`).


_STATE_KEY = "loops.limit"
# No loop of the probe has more rounds: what goes on longer is taken not to end.
_PROBED = 1 << 20


def guard_loops(description: ShaderDescription, context: Context) -> LoopGuard | None:
    """Return the form of a kernel for the devices of a context; None if it is the kernel itself."""
    kernel = description.kernel
    if count_rounds(kernel.body) <= _SAFE_ROUNDS:
        return None
    limit = find_loop_limit(context)
    limited = None if limit is None else run("loops", limit_loops, kernel, limit, NOTES)
    return None if limited is None else _make_guard(description, limited)


def _make_guard(description: ShaderDescription, limited: LimitedLoops) -> LoopGuard:
    guarded = replace(description, kernel=limited.kernel)
    binding = limited.binding + guarded.resource_binding_base
    slots = (
        BufferSlot("journal", binding, None, reads=True, writes=True, item_size=uint32.item_size),
        ValueSlot("ticket", limited.ticket, uint32),
    )
    return LoopGuard(guarded, slots, limited.places)


# ---- the limit of a driver -----------------------------------------------------------------------

# Any driver allows as many, so that for most kernels no limit need be known.
_SAFE_ROUNDS = 1 << 12


def find_loop_limit(context: Context) -> int | None:
    """Return after how many rounds a device of a context ends loops; None if it does not.

    It is measured by a kernel with a long loop, and kept on disk for the device and its driver.
    """
    if _STATE_KEY not in context.kept:
        key = f"loop limit of {_PROBED} rounds 1\n{identify_devices(context.device_infos)}"
        stored = disk_cache.load("measured", key)
        rounds = int(stored) if stored is not None and stored.isdigit() else 0
        if not 0 < rounds <= _PROBED:
            rounds = _measure_rounds(context)
            disk_cache.store("measured", key, str(rounds).encode())
        context.kept[_STATE_KEY] = None if rounds == _PROBED else rounds
    limit: int | None = context.kept[_STATE_KEY]
    return limit


def _measure_rounds(context: Context) -> int:
    """Return the fewest rounds that a loop has on a device of a context when it should have `_PROBED`."""
    data = Storage(0, uint32, "data")
    rounds, value = Register("rounds", uint32), Register("value", uint32)

    def element(index: int) -> Expr:
        return Expr(Op.ELEMENT, uint32, (uint(index),), data)

    # What a loop without a limit would compute must not be known without it.
    following = binary("^", binary("*", read(value), uint(1664525)), read(rounds))
    body = (Store(read(value), following), Store(read(rounds), uint(1), "+"))
    kernel = Kernel(
        "probe_loops",
        (),
        (data,),
        (),
        (
            Declare(rounds, uint(0)),
            Declare(value, element(1)),
            While(less(read(rounds), element(0)), body),
            Store(element(1), read(value)),
            Store(element(2), read(rounds)),
        ),
        None,
    )
    description = ShaderDescription(kernel, (), GLSLBackend())
    slot = BufferSlot("data", 0, None, reads=True, writes=True, item_size=uint32.item_size)
    source = KernelSource("probe_loops", description, (slot,), None)
    with use_context(context):
        built = build_kernel(source, context, (1, 1, 1), PLAIN, UNCOARSENED)
        facts = KernelFacts(kernel.name, None, (1, 1, 1), lambda: kernel, built.layout, internal=True)
        register_facts(built.plan, facts)
        buffer: Buffer[Any] = Buffer(3, uint32)
        buffer.write(_PROBED.to_bytes(4, "little") + bytes(8))
        built.launcher.launch((buffer,), (1, 1, 1), True, ALL_QUEUES)
        # what other work has found is not this one's to raise
        counts = [
            int(buffer._read(0, buffer.shape, queue, raise_findings=False)[2])
            for queue in range(context.queue_count)
        ]
        buffer.destroy()
    return min(counts)


# ---- The programs of kernels, which compile to variants --------------------------------------------------


class TracedProgram(Program):
    """The program of a traced kernel."""

    kernel: Kernel
    is_traced = True

    def __init__(self, who: str, source: ShaderDescription, checks: Checks, place: str | None) -> None:
        """Prepare a traced kernel, defined at `place`, to be compiled with these checks."""
        self.who = who
        self.source = source
        self.trace_seconds = source.kernel.facts.get(TRACE_SECONDS)
        self.place = place
        self.observation = observe(source, checks)
        self.description = source if self.observation is None else self.observation.description
        self.kernel = self.description.kernel
        self.is_sized_by_calls = is_sized_by_calls(self.kernel)

    @property
    def fills_tiles(self) -> bool:
        """Whether missing invocations leave gaps in shared memory."""
        return fills_tiles(self.kernel)

    def depends_on_workgroups(self) -> bool:
        """Return whether results may depend on the size of the workgroups."""
        return depends_on_workgroups(self.source.kernel)

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
            kernel = make_wide(description.kernel) if variant.wide else description.kernel
            # atomics that the device lacks become loops
            kernel = without_float_atomics(kernel, context.device_infos)
            guards[variant.wide] = guard_loops(replace(description, kernel=kernel), context)
        return guards[variant.wide]

    def _observe(self, variant: Variant) -> ShaderDescription:
        return self.description if self.observation is None else self.observation.select(variant).description

    def compile(
        self, slots: Slots, context: Context, local_size: Extent, variant: Variant, coarsening: Coarsening
    ) -> BuiltKernel:
        """Compile a variant for one workgroup size; see `Program`."""
        code = self.generate(slots, context, local_size, variant)
        return bind_code(self.who, self.place, code, context, coarsening)

    def generate(self, slots: Slots, context: Context, local_size: Extent, variant: Variant) -> KernelCode:
        """Generate and compile a variant without a launcher. Raises as `generate_code`."""
        description, slots = self.prepare(slots, context, variant)
        is_observed = self.observation is not None
        source = KernelSource(self.who, description, slots, self.place, observed=is_observed)
        return generate_code(source, context, local_size, variant)

    def prepare(self, slots: Slots, context: Context, variant: Variant) -> tuple[ShaderDescription, Slots]:
        """Return the kernel that is compiled, with what reports and guards add to it, and its slots."""
        observation, guard = self.observation, self.loop_guard(context, variant)
        if observation is not None:
            slots = observation.select(variant).slots
        description = self._observe(variant)
        if guard is not None:
            assert guard.description is not None
            # its ticket may be what no longer fits in push constants; the block is binding 0 then
            moved = guard.description.resource_binding_base - description.resource_binding_base
            kept = (
                slot if isinstance(slot, ValueSlot) else replace(slot, binding=slot.binding + moved)
                for slot in slots
            )
            slots, description = (*kept, *guard.slots), guard.description
        return description, slots
