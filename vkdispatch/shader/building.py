"""Compiled kernels: their code, plans and launchers, and the choice of a variant for a launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from vkdispatch.base import errors
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kernel_errors import StandingTicket
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import pair_twin
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.base.process import read_choices
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.description import Place, ShaderSource
from vkdispatch.compiler import forms
from vkdispatch.compiler.forms import PLAIN, ArgumentLayout, Variant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.optimization import Fusible
from vkdispatch.shader.arguments import CheckedCall
from vkdispatch.shader.signature import MAX_NARROW, BufferSlot, ImageSlot, Slot, make_packer
from vkdispatch.shader.size import Extent

if TYPE_CHECKING:
    from vkdispatch.compiler.ir import Kernel
    from vkdispatch.execution_pipeline.diagnostics import Probe

# Global ids have 32 bits; the folded kernel counts workgroups in 32 bits and rounds up to whole rows.
_MAX_ID = 0xFFFFFFFF
_MAX_FOLDED_GROUPS = 0xFFFF0000
# The launcher's limit of invocations along an axis, where ids have 64 bits.
_MAX_WIDE_ID = 0xFFFFFFFFFFFF
# For tests: variants that every launch gets if its kernel supports them.
_FORCED = read_choices("VKDISPATCH_FORCE_VARIANT", ("coarse", "blocks", "addressed", "wide", "packed"))


@record
class Coarsening:
    """Which launches of a kernel use its coarse variant, in which an invocation handles several elements.

    Each handles `elements` of them, in launches of at least `least` elements (0: never; 1: always). With
    `blocks`, these are neighbours, and only launches of whole blocks along x use the variant.
    """

    elements: int = 1
    least: int = 0
    blocks: bool = False

    def takes(self, extent: Extent, width: int, *, wide: bool) -> bool:
        """Whether a launch of `extent`, in workgroups of `width` invocations along x, uses the variant."""
        return native.is_coarse(extent, width * self.elements, self.least, wide, self.step)

    @property
    def step(self) -> int:
        """The number of which the invocations along x must be a multiple."""
        return self.elements if self.blocks else 1


UNCOARSENED = Coarsening()


def can_address(context: Context) -> bool:
    """Whether kernels on these devices can access buffers by address and use 64-bit integers."""
    return all(
        "bufferDeviceAddress" in info.features and info.int_64_support for info in context.device_infos
    )


def choose_addressing(
    who: str, slots: Sequence[Slot], values: Sequence[Any], context: Context, *, is_traced: bool
) -> forms.Variant:
    """Return the variant that the sizes of a call's buffers require.

    Parameters
    ----------
    slots, values
        The slots of the launcher, and the checked values of the call.
    is_traced
        Whether the kernel is traced. Hand-written kernels have the plain variant only.

    Raises
    ------
    ValueError
        A buffer is larger than kernels can access on this device.
    """
    able = is_traced and can_address(context)
    addressed, wide = able and "addressed" in _FORCED, able and "wide" in _FORCED
    for slot, value in zip(slots, values, strict=True):
        if not isinstance(slot, BufferSlot):
            continue
        large = value.mem_size > context.max_storage_buffer_range
        elements = max(value.mem_size // slot.item_size, *value.shader_shape)
        many = is_traced and elements > MAX_NARROW
        if (large or many) and not able:
            limit, what = (context.max_storage_buffer_range, "bytes") if large else (MAX_NARROW, "elements")
            kernels = "kernels" if is_traced else "hand-written kernels"
            raise ArgumentValueError(
                f"{who}: {slot.label}: the buffer has {value.mem_size} bytes; {kernels} on this device reach "
                f"{limit} {what} of one buffer; use several"
            )
        addressed, wide = addressed or large or many, wide or (many and elements > slot.most)
    return forms.Variant(addressed=addressed or wide, wide=wide)


def choose_variant(
    who: str,
    extent: Extent,
    in_groups: bool,
    local_size: Extent,
    coarsening: Coarsening,
    context: Context,
    form: forms.Variant = forms.PLAIN,
    *,
    is_traced: bool = True,
) -> forms.Variant:
    """Return the variant for a launch of `extent` invocations, or workgroups if `in_groups`.

    Parameters
    ----------
    form
        The variant that the buffers require; see `choose_addressing`.
    is_traced
        Whether the kernel is traced.

    Raises
    ------
    ValueError
        No variant can run as many invocations.
    """
    if (
        is_traced
        and not form.wide
        and can_address(context)
        and _exceeds_32_bits(extent, in_groups, local_size)
    ):
        form = forms.Variant(addressed=True, wide=True)
    if not in_groups and coarsening.takes(extent, local_size[0], wide=form.wide):
        form = replace(form, coarse=coarsening.elements, blocks=coarsening.blocks)
    folded = _needs_folding(who, extent, in_groups, count_elements(local_size, form), context, wide=form.wide)
    return replace(form, folded=folded)


def count_elements(local_size: Extent, variant: forms.Variant) -> Extent:
    """Return how many elements along each axis a workgroup handles."""
    x, y, z = local_size
    return (x * variant.coarse, y, z)


def _count_groups(extent: Extent, in_groups: bool, local_size: Extent) -> tuple[int, ...]:
    return extent if in_groups else tuple(-(-e // size) for e, size in zip(extent, local_size, strict=True))


def _exceeds_32_bits(extent: Extent, in_groups: bool, local_size: Extent) -> bool:
    """Whether the invocation ids along an axis exceed 32 bits."""
    groups = _count_groups(extent, in_groups, local_size)
    # Invocations beyond the extent may have an id one larger than the limit.
    most = _MAX_ID if in_groups else _MAX_ID + 1
    return max(extent) > _MAX_ID or any(g * size > most for g, size in zip(groups, local_size, strict=True))


def _needs_folding(
    who: str, extent: Extent, in_groups: bool, local_size: Extent, context: Context, *, wide: bool
) -> bool:
    """Whether a launch has more workgroups along an axis than the device supports.

    Raises
    ------
    ValueError
        There are too many for global invocation ids or for the device.
    """
    groups = _count_groups(extent, in_groups, local_size)
    option = "workgroups" if in_groups else "exec_size"
    if wide and any(g * size > _MAX_WIDE_ID for g, size in zip(groups, local_size, strict=True)):
        raise ArgumentValueError(
            f"{who}: {option}: {extent} is more invocations along an axis than can be launched "
            f"({_MAX_WIDE_ID})"
        )
    if not wide and _exceeds_32_bits(extent, in_groups, local_size):
        raise ArgumentValueError(
            f"{who}: {option}: {extent} is more invocations along an axis than 32-bit ids count ({_MAX_ID})"
        )
    if all(count <= most for count, most in zip(groups, context.max_workgroup_count, strict=True)):
        return False
    total = groups[0] * groups[1] * groups[2]
    # A folded grid has two axes.
    most = min(_MAX_FOLDED_GROUPS, context.max_workgroup_count[0] * context.max_workgroup_count[1])
    if total > most:
        raise ArgumentValueError(
            f"{who}: {option}: {extent} makes {total} workgroups of "
            f"{local_size}; a launch has at most {most}; use a bigger local_size"
        )
    return True


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
    `times` are the stages of the build and their seconds. `form` is the program as written, for traces.
    """

    plan: ComputePlan
    launcher: native.Launcher
    source: ShaderSource
    local_size: Extent
    layout: ArgumentLayout
    make_untyped: Callable[[], native.Launcher]
    fusible: Fusible | None = None
    loop_guard: GuardValues | None = None
    times: tuple[tuple[str, float], ...] = ()
    form: Kernel | None = None

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
            count_elements(source.local_size, variant),
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
    times, form
        As in `BuiltKernel`; not on disk.
    """

    source: ShaderSource
    spirv: bytes
    binding_types: list[int]
    variant: Variant
    slots: Sequence[Slot]
    layout: ArgumentLayout
    places: dict[int, Place]
    observed: bool
    times: tuple[tuple[str, float], ...] = ()
    form: Kernel | None = None


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
    begin = perf_counter()
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
        times = (*code.times, ("pipeline", perf_counter() - begin))
        built = bind_kernel(context, plan, code.slots, layout, source, code.variant, coarsening, code.places)
        return replace(built, times=times, form=code.form)
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
