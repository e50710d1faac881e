"""Which form of a kernel a launch gets."""

import os

import vkdispatch_native as native
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.coarsen import coarsening
from vkdispatch.codegen.ir import Kernel
from vkdispatch.codegen.variant import Variant
from vkdispatch.shader.launch_size import Extent

# Global ids have 32 bits; the folded kernel counts workgroups in 32 bits and rounds up to whole rows.
_MAX_ID = 0xFFFFFFFF
_MAX_FOLDED_GROUPS = 0xFFFF0000
# Below this many elements a GPU wants them spread over more invocations.
_MANY = 1 << 19
# For tests: forms that every launch gets that can have them.
_FORCED = frozenset(filter(None, os.environ.get("VKDISPATCH_FORCE_VARIANT", "").split(",")))


@record
class Coarsening:
    """The launches of a kernel that go to its coarse form.

    `elements` for each invocation, where there are `least` (0: never; 1: always).
    """

    elements: int = 1
    least: int = 0


UNCOARSENED = Coarsening()


def choose_coarsening(kernel: Kernel, context: Context) -> Coarsening:
    """Decide when a kernel on these devices is coarsened: processors gain nothing."""
    forced = "coarse" in _FORCED
    if not forced and any(info.is_cpu() for info in context.device_infos):
        return UNCOARSENED
    elements = coarsening(kernel)
    return Coarsening(elements, 1 if forced else _MANY) if elements > 1 else UNCOARSENED


def choose_variant(
    who: str, extent: Extent, in_groups: bool, local_size: Extent, coarsening: Coarsening, context: Context
) -> Variant:
    """Return the form for a launch of `extent` invocations, or workgroups if `in_groups`.

    Raises
    ------
    ValueError
        No form can run so many.
    """
    coarse = not in_groups and native.is_coarse(extent, local_size[0] * coarsening.elements, coarsening.least)
    variant = Variant(coarse=coarsening.elements if coarse else 1)
    folded = _needs_folding(who, extent, in_groups, spanned(local_size, variant), context)
    return Variant(folded=folded, coarse=variant.coarse)


def spanned(local_size: Extent, variant: Variant) -> Extent:
    """Return how many elements along each axis a workgroup does."""
    x, y, z = local_size
    return (x * variant.coarse, y, z)


def _needs_folding(who: str, extent: Extent, in_groups: bool, local_size: Extent, context: Context) -> bool:
    """Whether a launch has more workgroups along an axis than the device takes.

    Raises
    ------
    ValueError
        Global invocation ids, which have 32 bits, or the device's grid cannot count so many.
    """
    groups = extent if in_groups else tuple(-(-e // size) for e, size in zip(extent, local_size, strict=True))
    option = "workgroups" if in_groups else "exec_size"
    # One more than the largest id may be reached by invocations that the bound turns away.
    reach = _MAX_ID if in_groups else _MAX_ID + 1
    if max(extent) > _MAX_ID or any(g * size > reach for g, size in zip(groups, local_size, strict=True)):
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
