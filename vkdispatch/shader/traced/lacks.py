"""Operations and features that a device lacks, found before the driver sees a kernel."""

from collections.abc import Iterator, Sequence
from typing import Any

from vkdispatch.base.context import Context
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.dtype import DType, component_type, float16, is_cooperative, is_float_dtype
from vkdispatch.compiler import forms, ir
from vkdispatch.compiler.analyses.contents import Usage, packed_buffers, reaches_elements, remember, usage
from vkdispatch.compiler.analyses.joint_flow import is_barrier
from vkdispatch.compiler.glsl import emulation
from vkdispatch.compiler.passes.coarsen import BLOCK, can_block, choose_elements
from vkdispatch.compiler.passes.lowering import replace_float_atomics
from vkdispatch.shader import variants
from vkdispatch.shader.variants import UNCOARSENED, Coarsening

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

    return replace_float_atomics(kernel, lacks)


def find_atomic_feature(function: str, kind: DType, *, shared: bool) -> str | None:
    """Return the Vulkan feature that an atomic needs, or None if every device has it."""
    memory = "Shared" if shared else "Buffer"
    if is_float_dtype(kind):
        return f"shader{memory}Float{8 * kind.item_size}{_FLOAT_ATOMICS.get(function, 'Atomics')}"
    return f"shader{memory}Int64Atomics" if kind.item_size == 8 else None


# ---- The forms of a kernel that suit the devices of a context --------------------------------------------


# GPUs need this many elements before several per invocation are faster.
_MANY = 1 << 19
# With fewer elements a CPU finishes the plain variant before the blocked one is compiled.
_MANY_IN_BLOCKS = 1 << 17
# The attribute of `DeviceInfo` for each feature.
_ATTRIBUTES = {
    forms.STORAGE[1]: "storage_buffer_8_bit_access",
    forms.STORAGE[2]: "storage_buffer_16_bit_access",
    forms.INT64: "int_64_support",
    forms.INT16: "int_16_support",
    forms.FLOAT16: "float_16_support",
}


def choose_coarsening(kernel: ir.Kernel, context: Context) -> Coarsening:
    """Choose when to coarsen a kernel on these devices. On CPUs, only blocks are faster."""
    if without_float_atomics(kernel, context.device_infos) is not kernel:
        return UNCOARSENED
    forced = "coarse" in variants._FORCED
    if "blocks" in variants._FORCED or (context.is_cpu() and not forced):
        if not all(info.float_64_support for info in context.device_infos) or not can_block(kernel):
            return UNCOARSENED
        return Coarsening(BLOCK, 1 if "blocks" in variants._FORCED else _MANY_IN_BLOCKS, blocks=True)
    elements = choose_elements(kernel)
    return Coarsening(elements, 1 if forced else _MANY) if elements > 1 else UNCOARSENED


def find_lacks(kernel: ir.Kernel, context: Context) -> frozenset[str]:
    """Return the features that a kernel uses and a device lacks, which its variant has to replace."""
    used = usage(kernel)
    wanted = {forms.STORAGE[size] for size in map(_count_scalar_bytes, used.stored) if size in forms.STORAGE}
    computed = {
        forms.FEATURE_OF[kind] for kind in map(component_type, used.dtypes) if kind in forms.FEATURE_OF
    }
    short = any(_count_scalar_bytes(member.dtype) == 2 for member in kernel.arguments)
    if "packed" not in variants._FORCED:
        infos = context.device_infos
        missing = {
            feature
            for feature in wanted | computed
            if not all(getattr(info, _ATTRIBUTES[feature]) for info in infos)
        }
        missing |= _find_missing_classes(used, context)
        if short and (missing & computed or not all(map(_takes_short_arguments, infos))):
            missing.add(forms.SHORT_ARGUMENTS)
        return frozenset(missing)
    classes = _find_replaceable_classes(used) if _can_go_by_lanes(context) else set()
    forced = frozenset(wanted | computed | classes | ({forms.SHORT_ARGUMENTS} if short else set()))
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
    return not lacks or not reaches_elements(kernel, packed_buffers(kernel, forms.Variant(lacks=lacks)))
