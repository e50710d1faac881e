"""Checks that the devices of a context support a SPIR-V module."""

import math

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError
from vkdispatch.base.spirv.capabilities import Capability
from vkdispatch.base.spirv.interface import Interface
from vkdispatch.base.spirv.module import NEWEST_OF_1_2

# SPIR-V capability -> the attribute of a device that tells whether it is supported, and its name in messages.
_FEATURES: dict[int, tuple[str, str]] = {
    Capability.FLOAT16: ("float_16_support", "float16"),
    Capability.FLOAT64: ("float_64_support", "float64"),
    Capability.INT64: ("int_64_support", "64-bit integers"),
    Capability.INT16: ("int_16_support", "16-bit integers"),
    Capability.GROUP_NON_UNIFORM: ("subgroup_enabled", "subgroup operations"),
    Capability.GROUP_NON_UNIFORM_ARITHMETIC: ("subgroup_arithmetic", "subgroup arithmetic"),
    Capability.STORAGE_BUFFER_8_BIT_ACCESS: ("storage_buffer_8_bit_access", "buffers of 8-bit elements"),
    Capability.STORAGE_BUFFER_16_BIT_ACCESS: ("storage_buffer_16_bit_access", "buffers of 16-bit elements"),
    Capability.UNIFORM_AND_STORAGE_BUFFER_16_BIT_ACCESS: (
        "uniform_and_storage_buffer_16_bit_access",
        "uniform blocks with 16-bit members",
    ),
    Capability.STORAGE_PUSH_CONSTANT_16: ("storage_push_constant_16", "push constants of 16 bits"),
    Capability.ATOMIC_FLOAT32_ADD: ("shader_buffer_float32_atomic_add", "atomic addition of float32"),
}


def check_features(who: str, interface: Interface, context: Context) -> None:
    """Check that the devices of the context support the version, capabilities and shared memory of a module.

    Raises
    ------
    UnsupportedError
        A device lacks a capability of the module, or takes no SPIR-V of its version.
    ValueError
        The shared arrays of the module are too large.
    """
    for device in context.device_infos:
        vulkan = (device.version_major, device.version_minor)
        if interface.version > NEWEST_OF_1_2 and vulkan < (1, 3):
            raise UnsupportedError(
                f"{who}: SPIR-V 1.6 needs Vulkan 1.3, and the device {device.device_name!r} has "
                f"{vulkan[0]}.{vulkan[1]}; compile it with --target-env=vulkan1.2"
            )
        for capability, (attribute, what) in _FEATURES.items():
            if capability in interface.capabilities and not getattr(device, attribute):
                raise UnsupportedError(f"{who}: the device {device.device_name!r} has no {what}")
    if interface.shared_bytes > context.max_shared_memory:
        raise ArgumentValueError(
            f"{who}: its shared arrays take {interface.shared_bytes} bytes; a workgroup on this device has "
            f"{context.max_shared_memory}"
        )


def check_workgroup(who: str, interface: Interface, context: Context) -> None:
    """Raise ValueError if the workgroups of a module exceed the limits of the devices."""
    size = interface.local_size
    if size is None:
        return
    most, invocations = context.max_workgroup_size, context.max_workgroup_invocations
    if any(count > limit for count, limit in zip(size, most, strict=True)) or math.prod(size) > invocations:
        raise ArgumentValueError(
            f"{who}: workgroups of {size} invocations exceed the limits of this device: {most}, "
            f"{invocations} in all"
        )
