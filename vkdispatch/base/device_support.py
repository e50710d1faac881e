"""What a SPIR-V module asks of a device."""

import math

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError
from vkdispatch.base.spirv.capabilities import Capability
from vkdispatch.base.spirv.interface import Interface

# SPIR-V capability -> the attribute of a device that says whether it has it, and what to call it.
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
    """Raise where a device of the context lacks what a module needs.

    Raises
    ------
    UnsupportedError
        A capability of the module.
    ValueError
        Memory for its shared arrays.
    """
    for device in context.device_infos:
        for capability, (attribute, what) in _FEATURES.items():
            if capability in interface.capabilities and not getattr(device, attribute):
                raise UnsupportedError(f"{who}: the device {device.device_name!r} has no {what}")
    if interface.shared_bytes > context.max_shared_memory:
        raise ArgumentValueError(
            f"{who}: its shared arrays take {interface.shared_bytes} bytes; a workgroup on this device has "
            f"{context.max_shared_memory}"
        )


def check_workgroup(who: str, interface: Interface, context: Context) -> None:
    """Raise ValueError where a module's workgroups are more than the context's devices hold."""
    size = interface.local_size
    if size is None:
        return
    most, invocations = context.max_workgroup_size, context.max_workgroup_invocations
    if any(given > limit for given, limit in zip(size, most, strict=True)) or math.prod(size) > invocations:
        raise ArgumentValueError(
            f"{who}: workgroups of {size} invocations are more than this device's hold: {most}, "
            f"{invocations} in all"
        )
