"""Compiled kernels: their code, plans and launchers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from vkdispatch.base import errors
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kernel_errors import StandingTicket
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import pair_twin
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.description import Place, ShaderSource
from vkdispatch.compiler.forms import PLAIN, ArgumentLayout, Variant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.optimization import Fusible
from vkdispatch.shader import variants
from vkdispatch.shader.arguments import CheckedCall
from vkdispatch.shader.signature import MAX_NARROW, BufferSlot, ImageSlot, Slot, make_packer
from vkdispatch.shader.size import Extent
from vkdispatch.shader.variants import UNCOARSENED, Coarsening

if TYPE_CHECKING:
    from vkdispatch.execution_pipeline.diagnostics import Probe


def check_local_size(who: str, local_size: Extent, context: Context) -> None:
    """Raise ValueError if a workgroup size exceeds the limits of the device."""
    x, y, z = local_size
    if x * y * z > context.max_workgroup_invocations or any(
        size > most for size, most in zip(local_size, context.max_workgroup_size, strict=True)
    ):
        raise errors.ArgumentValueError(
            f"{who}: local_size: {local_size} is more than this device's workgroups hold: at most "
            f"{context.max_workgroup_size}, {context.max_workgroup_invocations} invocations in all"
        )


# ---- Launchers -------------------------------------------------------------------------------------------
#
# Native objects that pack the arguments of a compiled kernel, and launch or record it.


class GuardValues:
    """The journal and the ticket of a kernel in a context. While they live, the ticket is the kernel's."""

    __slots__ = ("_ticket", "journal", "slots")

    def __init__(self, journal: Buffer[Any], ticket: StandingTicket) -> None:
        self._ticket = ticket
        self.journal = journal
        self.slots = (journal, ticket.number)


@record(eq=False)
class Launch:
    """A checked call and its destination.

    Attributes
    ----------
    call
        The values.
    extent
        Invocations along x, y and z; workgroups if `in_groups`.
    graph
        The graph to record it in; None launches it now.
    queue
        The queue of a launch now.
    """

    call: CheckedCall
    extent: Extent
    in_groups: bool
    graph: CommandGraph | None
    queue: int = ALL_QUEUES


@record
class BuiltKernel:
    """A compiled kernel: one variant, for one workgroup size.

    `fusible` is what graphs need to fuse its launches, or None. `loop_guard` is what launches pass after the
    arguments, or None (see `shader.program`). `make_untyped` makes a launcher that compares no dtypes.
    """

    plan: ComputePlan
    launcher: native.Launcher
    source: ShaderSource
    local_size: Extent
    layout: ArgumentLayout
    make_untyped: Callable[[], native.Launcher]
    fusible: Fusible | None = None
    loop_guard: GuardValues | None = None

    def run(self, launch: Launch, probe: tuple[int, Probe] | None = None) -> bool:
        """Launch or record a checked call. Return False if the launcher refused it; nothing happened then.

        `probe` goes with the recording of an observed kernel; see `CommandGraph._append_dispatch`.
        """
        call, extent, in_groups = launch.call, launch.extent, launch.in_groups
        if call.is_mixed:
            # launchers refuse one memory as two types
            untyped = self.make_untyped()
            untyped.guard = self.launcher.guard
            mixed = replace(self, launcher=untyped)
            return mixed.run(replace(launch, call=replace(call, is_mixed=False)), probe)
        if self.loop_guard is not None:
            resources = (*call.resources, self.loop_guard.journal)
            call = replace(call, slots=(*call.slots, *self.loop_guard.slots), resources=resources)
        if launch.graph is None:
            return self.launcher.launch(call.slots, extent, in_groups, launch.queue)
        variables = {
            name: [(self.layout.offset_of(slot.member), slot.kind) for slot in slots]
            for name, slots in call.variables.items()
        }
        return launch.graph._append_dispatch(
            self, call.slots, extent, in_groups, call.resources, variables, probe
        )


def bind_kernel(
    context: Context,
    plan: ComputePlan,
    slots: Sequence[Slot],
    layout: ArgumentLayout,
    source: ShaderSource,
    variant: Variant = PLAIN,
    coarsening: Coarsening = UNCOARSENED,
    places: Mapping[int, Place] | None = None,
) -> BuiltKernel:
    """Make the launcher of a compiled kernel.

    Parameters
    ----------
    slots
        The slots of the launcher, in order.
    layout
        The layout of the argument block.
    places
        For variants that move resources: the place of each binding of the plain variant.
    """

    def make(*, typed: bool) -> native.Launcher:
        form = None if places is None else variant
        return native.Launcher(
            context._native,
            plan._native,
            [_make_native_slot(slot, layout, places or {}, form, typed) for slot in slots],
            layout.size,
            0 if layout.uniform else -1,
            -1 if layout.exec_offset is None else layout.exec_offset,
            -1 if layout.group_count_offset is None else layout.group_count_offset,
            variants.count_elements(source.local_size, variant),
            context.max_workgroup_count,
            make_packer(slots),
            coarsening.elements * source.local_size[0],
            coarsening.least,
            variant.coarse > 1,
            wide=variant.wide,
            coarse_step=coarsening.step,
        )

    untyped = cache(lambda: make(typed=False))
    return BuiltKernel(plan, make(typed=True), source, source.local_size, layout, untyped)


def _make_native_slot(
    slot: Slot, layout: ArgumentLayout, places: Mapping[int, Place], variant: Variant | None, typed: bool
) -> native.ArgumentSlot:
    """Return a slot as the native launcher takes it. Without a variant, buffers may have any length."""
    if isinstance(slot, BufferSlot):
        elements = 0  # any number
        if variant is not None and not variant.wide:
            elements = slot.most if variant.addressed else MAX_NARROW
        place = places.get(slot.binding) or Place(slot.binding)
        return native.BufferSlot(
            binding=max(place.binding, 0),
            shape_offset=-1 if slot.shape_member is None else layout.offset_of(slot.shape_member),
            reads=slot.reads,
            writes=slot.writes,
            planar=slot.planar,
            most_bytes=elements * slot.item_size,
            address_offset=place.address,
            length_offset=place.length,
            in_words=place.in_words,
            element=slot.kind if typed else None,
            twin=None if slot.kind is None else pair_twin(slot.kind),
            least_bytes=slot.least_bytes,
            uniform=slot.uniform,
        )
    if isinstance(slot, ImageSlot):
        binding = (places.get(slot.binding) or Place(slot.binding)).binding
        view_type, kind = slot.view_type.value[0], slot.native_kind
        if slot.image.storage:
            return native.ImageSlot(
                binding=binding, view_type=view_type, format=kind, reads=slot.reads, writes=slot.writes
            )
        return native.SamplerSlot(binding=binding, view_type=view_type, texels=kind, reads=slot.reads)
    if slot.scalar_code is not None:
        return native.ScalarSlot(offset=layout.offset_of(slot.member), code=slot.scalar_code)
    return native.ValueSlot(offset=layout.offset_of(slot.member), size=slot.kind.item_size)


# ---- Compiled kernels: the GLSL of a variant, its plan, and its launcher ---------------------------------


@record
class KernelCode:
    """A variant of a kernel for one workgroup size, compiled for the devices of a context.

    Attributes
    ----------
    source
        Its GLSL.
    spirv
        What that compiles to.
    binding_types
        The kind of each binding, as numbers of `BindingType`.
    variant
        The variant, with the features that it does without.
    slots
        The slots of its launcher, in order.
    layout
        The layout of the argument block.
    places
        Where it finds what the plain variant finds at a binding.
    observed
        Whether the last two of `slots` serve prints and checks.
    """

    source: ShaderSource
    spirv: bytes
    binding_types: list[int]
    variant: Variant
    slots: Sequence[Slot]
    layout: ArgumentLayout
    places: dict[int, Place]
    observed: bool


def bind_code(
    who: str, place: str | None, code: KernelCode, context: Context, coarsening: Coarsening
) -> BuiltKernel:
    """Make the pipeline and the launcher of a compiled kernel.

    Parameters
    ----------
    who, place
        The kernel, for messages, and where it is defined.
    coarsening
        Which launches use the coarse variant.

    Raises
    ------
    ValueError
        The kernel has more bindings than the device allows.
    ShaderBuildError
        The driver rejected the kernel.
    """
    source, layout = code.source, code.layout
    try:
        plan = ComputePlan(
            source.code,
            code.binding_types,
            0 if layout.uniform else layout.size,
            source.name,
            spirv=code.spirv,
            checked=True,
            context=context,
            place=place,
        )
        return bind_kernel(context, plan, code.slots, layout, source, code.variant, coarsening, code.places)
    except errors.DeviceLostError:
        raise
    except errors.VulkanError as error:
        raise errors.ShaderBuildError(
            f"{who}: the driver rejected the kernel: {error}", shader_source=source.numbered()
        ) from error
    except ValueError as error:
        # such as more buffers than the device binds
        more = "; its prints and checks take one buffer and 4 bytes of arguments" if code.observed else ""
        raise errors.ArgumentValueError(f"{who}: {error}{more}") from error
