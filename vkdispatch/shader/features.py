"""Which operations of the kernel language a device lacks."""

from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.dtype import DType, is_float_dtype
from vkdispatch.codegen.analysis import Usage
from vkdispatch.codegen.extensions import EXTENDED_TYPES, subgroup_class

_COMPUTE_STAGE = 0x20
# Bits of VkSubgroupFeatureFlagBits.
_SUBGROUP_BITS = {
    "basic": 0x01,
    "vote": 0x02,
    "arithmetic": 0x04,
    "ballot": 0x08,
    "shuffle": 0x10,
    "shuffle_relative": 0x20,
    "clustered": 0x40,
    "quad": 0x80,
}
_FLOAT_ATOMICS = {"atomicAdd": "AtomicAdd", "atomicMin": "AtomicMinMax", "atomicMax": "AtomicMinMax"}


def missing_operation(used: Usage, device: DeviceInfo) -> str | None:
    """Name the first operation of a kernel that a device lacks, with its Vulkan feature; None for none."""
    return _missing_subgroup(used, device) or _missing_atomic(used, device)


def _missing_subgroup(used: Usage, device: DeviceInfo) -> str | None:
    if not used.subgroup_functions:
        return None
    if not device.supported_stages & _COMPUTE_STAGE:
        return "subgroup operations in compute kernels (VkPhysicalDeviceSubgroupProperties.supportedStages)"
    for function in sorted(used.subgroup_functions):
        group = subgroup_class(function)
        if not device.supported_operations & _SUBGROUP_BITS[group]:
            flag = f"VK_SUBGROUP_FEATURE_{group.upper()}_BIT"
            return f"subgroup operations of the class {group!r}, which {function} needs ({flag})"
    if "shaderSubgroupExtendedTypes" not in device.features:
        for kinds, _ in EXTENDED_TYPES:
            for kind in kinds:
                if kind in used.subgroup_dtypes:
                    return f"subgroup operations of {kind.name} (shaderSubgroupExtendedTypes)"
    return None


def _missing_atomic(used: Usage, device: DeviceInfo) -> str | None:
    for function, kind, shared in sorted(used.atomics, key=lambda item: (item[0], item[1].name, item[2])):
        feature = atomic_feature(function, kind, shared=shared)
        if feature and feature not in device.features:
            where = "shared memory" if shared else "buffers"
            return f"{function} of {kind.name} in {where} ({feature})"
    return None


def atomic_feature(function: str, kind: DType, *, shared: bool) -> str | None:
    """Vulkan feature that an atomic needs, or None for those that every device has."""
    memory = "Shared" if shared else "Buffer"
    if is_float_dtype(kind):
        return f"shader{memory}Float{8 * kind.item_size}{_FLOAT_ATOMICS.get(function, 'Atomics')}"
    return f"shader{memory}Int64Atomics" if kind.item_size == 8 else None
