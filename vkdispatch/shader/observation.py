"""Kernels that print or are checked: the instrumented kernel that is launched instead."""

import functools
import os
from collections.abc import Collection

from vkdispatch.base.dtype import uint32
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.codegen import ShaderDescription
from vkdispatch.compiler.ir import Kernel, Storage
from vkdispatch.compiler.ir.statements import Variant
from vkdispatch.compiler.passes.bounds import keeps_workgroups
from vkdispatch.compiler.passes.diagnostics import Checks, parse_checks
from vkdispatch.compiler.passes.instrument import Instrumented, instrument
from vkdispatch.compiler.passes.widen import widen
from vkdispatch.execution_pipeline.diagnostics import Diagnostics, Probe
from vkdispatch.shader.arguments.parameters import read_slots
from vkdispatch.shader.arguments.slots import BufferSlot, Slot, ValueSlot
from vkdispatch.shader.arguments.values import CheckedCall
from vkdispatch.shader.launch.launcher import BuiltKernel, Launch

_CHECK_VARIABLE = "VKDISPATCH_CHECK"
NO_CHECKS = Checks()
# The `check` option of kernels, unless it is None.
Check = bool | str | Collection[str]


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
        kernel = widen(self.kernel, bounded=not keeps_workgroups(self.kernel))
        found = _observe_kernel(self.source, kernel, self.checks)
        assert found is not None
        return found

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
    instrumented = instrument(kernel, checks)
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


def parse_check(check: object) -> Checks:
    """Parse the `check` option of a kernel; None takes the environment variable VKDISPATCH_CHECK.

    Raises
    ------
    TypeError, ValueError
        `parse_checks` does not accept it.
    """
    if check is not None:
        return parse_checks(check)
    text = os.environ.get(_CHECK_VARIABLE, "").strip()
    return parse_checks(text, _CHECK_VARIABLE) if text else NO_CHECKS
