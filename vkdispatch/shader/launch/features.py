"""Operations of the kernel language that a device lacks."""

from collections.abc import Iterator, Sequence
from typing import Any

from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.dtype import DType, component_type, float16, is_cooperative, is_float_dtype
from vkdispatch.compiler.analyses.contents import Usage, remember
from vkdispatch.compiler.analyses.joint_flow import is_barrier
from vkdispatch.compiler.glsl.emulation import EXTENDED_TYPES, has_bfloat16_matrices, subgroup_class
from vkdispatch.compiler.ir import (
    Block,
    Declare,
    Effect,
    Expr,
    For,
    Kernel,
    Op,
    SharedArray,
    Statement,
    Store,
    While,
    blocks_of,
    place_operands,
    root_of,
    walk,
)
from vkdispatch.compiler.passes.lowering import replace_float_atomics

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


def find_waits_in_loops(kernel: Kernel) -> Iterator[Statement]:
    """Yield the statements in loops at which Mesa's llvmpipe makes whole workgroups wait: memory barriers.

    Other drivers do not wait there. llvmpipe ends an invocation for good if invocations of another subgroup
    of its workgroup reach the statement less often. In a loop with a barrier all reach it equally often.
    """
    return _walk_waits(kernel.body, apart=False)


def _walk_waits(block: Block, *, apart: bool) -> Iterator[Statement]:
    for statement in block:
        if apart and (
            (isinstance(statement, Effect) and statement.function in _ORDERING)
            or (isinstance(statement, Declare) and statement.value.value in _ORDERING)
        ):
            yield statement
        loop = isinstance(statement, (While, For))
        within = apart or (loop and not any(map(is_barrier, walk((statement,)))))
        for inner in blocks_of(statement):
            yield from _walk_waits(inner, apart=within)


@remember
def find_tile_stores(kernel: Kernel) -> tuple[Store, ...]:
    """Return the stores to shared memory in loops with barriers: there an invocation works for the others."""
    return tuple(_walk_tile_stores(kernel.body))


def _walk_tile_stores(block: Block) -> Iterator[Store]:
    for statement in block:
        if isinstance(statement, (While, For)) and any(map(is_barrier, walk((statement,)))):
            for inner in walk((statement,)):
                if isinstance(inner, Store) and _is_in_tile(inner.place):
                    yield inner
        else:
            for body in blocks_of(statement):
                yield from _walk_tile_stores(body)


def _is_in_tile(place: Expr) -> bool:
    """Whether a place in shared memory may be another one for each invocation."""
    root = root_of(place)
    return isinstance(root.value, SharedArray) and any(
        each.op is not Op.LITERAL for each in place_operands(place)
    )


def _find_missing_matrix(used: Usage, device: DeviceInfo) -> str | None:
    matrices = [kind for kind in used.dtypes if is_cooperative(kind)]
    if not matrices:
        return None
    if "cooperativeMatrix" not in device.features:
        return "cooperative matrices (cooperativeMatrix of VK_KHR_cooperative_matrix)"
    if has_bfloat16_matrices(used):
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
        group = subgroup_class(function)
        if not device.supported_operations & SUBGROUP_BITS[group]:
            flag = f"VK_SUBGROUP_FEATURE_{group.upper()}_BIT"
            return f"subgroup operations of the class {group!r}, which {function} needs ({flag})"
    if "shaderSubgroupExtendedTypes" not in device.features:
        for kinds, _ in EXTENDED_TYPES:
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


def without_float_atomics(kernel: Kernel, devices: Sequence[DeviceInfo]) -> Kernel:
    """Return a kernel without the atomics of floats that one of the devices lacks; see `float_atomics`."""

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
