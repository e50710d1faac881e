"""The choice of a kernel's variant for a launch."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.base.process import read_choices
from vkdispatch.base.record import record, replace
from vkdispatch.compiler import forms
from vkdispatch.shader.signature import MAX_NARROW, BufferSlot, Slot
from vkdispatch.shader.size import Extent

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
