"""Operations that a device lacks, and the choice of a kernel's variant for a launch."""

from collections.abc import Iterator, Sequence
from typing import Any

from vkdispatch.base.context import Context
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.dtype import DType, component_type, float16, is_cooperative, is_float_dtype
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.base.process import read_choices
from vkdispatch.base.record import record, replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import Usage, packed_buffers, reaches_elements, remember, usage
from vkdispatch.compiler.analyses.joint_flow import is_barrier
from vkdispatch.compiler.glsl import emulation
from vkdispatch.compiler.ir import statements
from vkdispatch.compiler.passes.coarsen import BLOCK, can_block, choose_elements
from vkdispatch.compiler.passes.lowering import replace_float_atomics
from vkdispatch.compiler.passes.order import run
from vkdispatch.shader.signature import MAX_NARROW, BufferSlot, Slot
from vkdispatch.shader.size import Extent

# ---- Operations of the kernel language that a device lacks -----------------------------------------------


_COMPUTE_STAGE = 0x20
# Bits of VkSubgroupFeatureFlagBits.
SUBGROUP_BITS = {
    "basic": 0x01,
    "vote": 0x02,
    "arithmetic": 0x04,
    "ballot": 0x08,
    "shuffle": 0x10,
    "shuffle_relative": 0x20,
    "clustered": 0x40,
    "quad": 0x80,
}
_ORDERING = frozenset(
    (
        *("memoryBarrier", "memoryBarrierBuffer", "memoryBarrierShared", "memoryBarrierImage"),
        *("groupMemoryBarrier", "atomicLoad", "atomicStore"),
    )
)
_FLOAT_ATOMICS = {"atomicAdd": "AtomicAdd", "atomicMin": "AtomicMinMax", "atomicMax": "AtomicMinMax"}


def find_missing_operation(used: Usage, device: DeviceInfo) -> str | None:
    """Return the first operation of a kernel that a device lacks, with its Vulkan feature, or None."""
    return (
        _find_missing_subgroup(used, device)
        or _find_missing_atomic(used, device)
        or _find_missing_matrix(used, device)
    )


def find_waits_in_loops(kernel: ir.Kernel) -> Iterator[ir.Statement]:
    """Yield the statements in loops at which Mesa's llvmpipe makes whole workgroups wait: memory barriers.

    Other drivers do not wait there. llvmpipe ends an invocation for good if invocations of another subgroup
    of its workgroup reach the statement less often. In a loop with a barrier all reach it equally often.
    """
    return _walk_waits(kernel.body, apart=False)


def _walk_waits(block: ir.Block, *, apart: bool) -> Iterator[ir.Statement]:
    for statement in block:
        if apart and (
            (isinstance(statement, ir.Effect) and statement.function in _ORDERING)
            or (isinstance(statement, ir.Declare) and statement.value.value in _ORDERING)
        ):
            yield statement
        loop = isinstance(statement, (ir.While, ir.For))
        within = apart or (loop and not any(map(is_barrier, ir.walk((statement,)))))
        for inner in ir.blocks_of(statement):
            yield from _walk_waits(inner, apart=within)


@remember
def find_tile_stores(kernel: ir.Kernel) -> tuple[ir.Store, ...]:
    """Return the stores to shared memory in loops with barriers: there an invocation works for the others."""
    return tuple(_walk_tile_stores(kernel.body))


def _walk_tile_stores(block: ir.Block) -> Iterator[ir.Store]:
    for statement in block:
        if isinstance(statement, (ir.While, ir.For)) and any(map(is_barrier, ir.walk((statement,)))):
            for inner in ir.walk((statement,)):
                if isinstance(inner, ir.Store) and _is_in_tile(inner.place):
                    yield inner
        else:
            for body in ir.blocks_of(statement):
                yield from _walk_tile_stores(body)


def _is_in_tile(place: ir.Expr) -> bool:
    """Whether a place in shared memory may be another one for each invocation."""
    root = ir.root_of(place)
    return isinstance(root.value, ir.SharedArray) and any(
        operand.op is not ir.Op.LITERAL for operand in ir.place_operands(place)
    )


def _find_missing_matrix(used: Usage, device: DeviceInfo) -> str | None:
    matrices = [kind for kind in used.dtypes if is_cooperative(kind)]
    if not matrices:
        return None
    if "cooperativeMatrix" not in device.features:
        return "cooperative matrices (cooperativeMatrix of VK_KHR_cooperative_matrix)"
    if emulation.has_bfloat16_matrices(used):
        if any(component_type(kind) is float16 for kind in used.dtypes):
            return "float16 in kernels with cooperative matrices of bfloat16"
        if "shaderBFloat16CooperativeMatrix" not in device.features:
            return "cooperative matrices of bfloat16 (shaderBFloat16CooperativeMatrix)"
    needed = ["cooperativeMatrixTensorAddressing"] if used.windows else []
    for kind in sorted(matrices, key=lambda each: each.name):
        if not _is_matrix_supported(kind, device):
            return f"a {kind.name} among its products (DeviceInfo.cooperative_matrices)"
    lacking = [name for name in needed if name not in device.features]
    return f"windows of matrices ({lacking[0]} of VK_NV_cooperative_matrix2)" if lacking else None


def _is_matrix_supported(kind: Any, device: DeviceInfo) -> bool:
    """Whether a matrix belongs to a product that the device computes."""
    scalar = component_type(kind).name
    for product in device.cooperative_matrices:
        sizes, scalars = {
            "a": ((product.m, product.k), (product.a,)),
            "b": ((product.k, product.n), (product.b,)),
            "accumulator": ((product.m, product.n), (product.c, product.result)),
        }[kind.use]
        fits = [
            length % size == 0 if product.flexible else length == size
            for length, size in zip(kind.shape, sizes, strict=True)
        ]
        # A product may be converted to an accumulator of another type.
        if all(fits) and product.scope == kind.scope and (scalar in scalars or kind.use == "accumulator"):
            return True
    return False


def _find_missing_subgroup(used: Usage, device: DeviceInfo) -> str | None:
    if not used.subgroup_functions:
        return None
    if not device.supported_stages & _COMPUTE_STAGE:
        return "subgroup operations in compute kernels (VkPhysicalDeviceSubgroupProperties.supportedStages)"
    for function in sorted(used.subgroup_functions):
        group = emulation.subgroup_class(function)
        if not device.supported_operations & SUBGROUP_BITS[group]:
            flag = f"VK_SUBGROUP_FEATURE_{group.upper()}_BIT"
            return f"subgroup operations of the class {group!r}, which {function} needs ({flag})"
    if "shaderSubgroupExtendedTypes" not in device.features:
        for kinds, _ in emulation.EXTENDED_TYPES:
            for kind in kinds:
                if kind in used.subgroup_dtypes:
                    return f"subgroup operations of {kind.name} (shaderSubgroupExtendedTypes)"
    return None


def _find_missing_atomic(used: Usage, device: DeviceInfo) -> str | None:
    for function, kind, shared in sorted(used.atomics, key=lambda item: (item[0], item[1].name, item[2])):
        feature = find_atomic_feature(function, kind, shared=shared)
        if feature and feature not in device.features:
            where = "shared memory" if shared else "buffers"
            return f"{function} of {kind.name} in {where} ({feature})"
    return None


def without_float_atomics(kernel: ir.Kernel, devices: Sequence[DeviceInfo]) -> ir.Kernel:
    """Return a kernel without the atomics of floats that one of the devices lacks: see `passes.lowering`."""

    def lacks(function: str, kind: DType, shared: bool) -> bool:
        feature = find_atomic_feature(function, kind, shared=shared)
        return any(feature not in info.features for info in devices)

    return run("atomics", replace_float_atomics, kernel, lacks)


def find_atomic_feature(function: str, kind: DType, *, shared: bool) -> str | None:
    """Return the Vulkan feature that an atomic needs, or None if every device has it."""
    memory = "Shared" if shared else "Buffer"
    if is_float_dtype(kind):
        return f"shader{memory}Float{8 * kind.item_size}{_FLOAT_ATOMICS.get(function, 'Atomics')}"
    return f"shader{memory}Int64Atomics" if kind.item_size == 8 else None


# ---- The choice of a kernel's variant for a launch -------------------------------------------------------


# Global ids have 32 bits; the folded kernel counts workgroups in 32 bits and rounds up to whole rows.
_MAX_ID = 0xFFFFFFFF
_MAX_FOLDED_GROUPS = 0xFFFF0000
# The launcher's limit of invocations along an axis, where ids have 64 bits.
_MAX_WIDE_ID = 0xFFFFFFFFFFFF
# GPUs need this many elements before several per invocation are faster.
_MANY = 1 << 19
# With fewer elements a CPU finishes the plain variant before the blocked one is compiled.
_MANY_IN_BLOCKS = 1 << 17
# The attribute of `DeviceInfo` for each feature.
_ATTRIBUTES = {
    statements.STORAGE[1]: "storage_buffer_8_bit_access",
    statements.STORAGE[2]: "storage_buffer_16_bit_access",
    statements.INT64: "int_64_support",
    statements.INT16: "int_16_support",
    statements.FLOAT16: "float_16_support",
}
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


def choose_coarsening(kernel: ir.Kernel, context: Context) -> Coarsening:
    """Choose when to coarsen a kernel on these devices. On CPUs, only blocks are faster."""
    if without_float_atomics(kernel, context.device_infos) is not kernel:
        return UNCOARSENED
    forced = "coarse" in _FORCED
    if "blocks" in _FORCED or (context.is_cpu() and not forced):
        if not all(info.float_64_support for info in context.device_infos) or not can_block(kernel):
            return UNCOARSENED
        return Coarsening(BLOCK, 1 if "blocks" in _FORCED else _MANY_IN_BLOCKS, blocks=True)
    elements = choose_elements(kernel)
    return Coarsening(elements, 1 if forced else _MANY) if elements > 1 else UNCOARSENED


def can_address(context: Context) -> bool:
    """Whether kernels on these devices can access buffers by address and use 64-bit integers."""
    return all(
        "bufferDeviceAddress" in info.features and info.int_64_support for info in context.device_infos
    )


def find_lacks(kernel: ir.Kernel, context: Context) -> frozenset[str]:
    """Return the features that a kernel uses and a device lacks, which its variant has to replace."""
    used = usage(kernel)
    wanted = {
        statements.STORAGE[size]
        for size in map(_count_scalar_bytes, used.stored)
        if size in statements.STORAGE
    }
    computed = {
        statements.FEATURE_OF[kind]
        for kind in map(component_type, used.dtypes)
        if kind in statements.FEATURE_OF
    }
    short = any(_count_scalar_bytes(member.dtype) == 2 for member in kernel.arguments)
    if "packed" not in _FORCED:
        infos = context.device_infos
        missing = {
            feature
            for feature in wanted | computed
            if not all(getattr(info, _ATTRIBUTES[feature]) for info in infos)
        }
        missing |= _find_missing_classes(used, context)
        if short and (missing & computed or not all(map(_takes_short_arguments, infos))):
            missing.add(statements.SHORT_ARGUMENTS)
        return frozenset(missing)
    classes = _find_replaceable_classes(used) if _can_go_by_lanes(context) else set()
    forced = frozenset(wanted | computed | classes | ({statements.SHORT_ARGUMENTS} if short else set()))
    if not emulation.can_emulate(kernel, forced):
        forced = frozenset(wanted | classes)
    return forced if can_pack(kernel, forced) else frozenset()


def _find_replaceable_classes(used: Usage) -> set[str]:
    """Return the classes of a kernel's subgroup operations that a variant can replace."""
    return {emulation.subgroup_class(function) for function in used.subgroup_functions} & emulation.REPLACED


def _can_go_by_lanes(context: Context) -> bool:
    needed = SUBGROUP_BITS["ballot"] | SUBGROUP_BITS["shuffle"]
    return all(info.supported_operations & needed == needed for info in context.device_infos)


def _find_missing_classes(used: Usage, context: Context) -> set[str]:
    if not used.subgroup_functions or not _can_go_by_lanes(context):
        return set()
    operations = -1
    for info in context.device_infos:
        operations &= info.supported_operations
    return {group for group in _find_replaceable_classes(used) if not operations & SUBGROUP_BITS[group]}


def _count_scalar_bytes(kind: DType) -> int:
    return component_type(kind).item_size


def _takes_short_arguments(info: DeviceInfo) -> bool:
    return bool(info.storage_push_constant_16 and info.uniform_and_storage_buffer_16_bit_access)


def can_pack(kernel: ir.Kernel, lacks: frozenset[str]) -> bool:
    """Whether a kernel accesses buffers that would be packed only by loads and stores of elements."""
    return not lacks or not reaches_elements(kernel, packed_buffers(kernel, statements.Variant(lacks=lacks)))


def choose_addressing(
    who: str, slots: Sequence[Slot], values: Sequence[Any], context: Context, *, is_traced: bool
) -> statements.Variant:
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
    return statements.Variant(addressed=addressed or wide, wide=wide)


def choose_variant(
    who: str,
    extent: Extent,
    in_groups: bool,
    local_size: Extent,
    coarsening: Coarsening,
    context: Context,
    form: statements.Variant = statements.PLAIN,
    *,
    is_traced: bool = True,
) -> statements.Variant:
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
        form = statements.Variant(addressed=True, wide=True)
    if not in_groups and coarsening.takes(extent, local_size[0], wide=form.wide):
        form = replace(form, coarse=coarsening.elements, blocks=coarsening.blocks)
    folded = _needs_folding(who, extent, in_groups, count_elements(local_size, form), context, wide=form.wide)
    return replace(form, folded=folded)


def count_elements(local_size: Extent, variant: statements.Variant) -> Extent:
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
