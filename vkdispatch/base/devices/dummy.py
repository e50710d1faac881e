"""The device of the dummy backend, which describes a GPU and runs nothing."""

from vkdispatch.base.devices.information import DeviceInfo

MAX_WORKGROUP_COUNT = 65535
_ALL_STAGES = 0x7FFFFFFF
_ALL_OPERATIONS = 0xFF


def dummy_device() -> DeviceInfo:
    """Return a discrete GPU with all features and common limits."""
    return DeviceInfo(
        dev_index=0,
        version_variant=0,
        version_major=1,
        version_minor=2,
        version_patch=0,
        driver_version=1,
        vendor_id=0,
        device_id=0,
        device_type=2,
        device_name="Dummy Device",
        shader_buffer_float32_atomics=1,
        shader_buffer_float32_atomic_add=1,
        float_64_support=1,
        float_16_support=1,
        int_64_support=1,
        int_16_support=1,
        storage_buffer_16_bit_access=1,
        uniform_and_storage_buffer_16_bit_access=1,
        storage_push_constant_16=1,
        storage_input_output_16=1,
        max_workgroup_size=(1024, 1024, 64),
        max_workgroup_invocations=1024,
        max_workgroup_count=(MAX_WORKGROUP_COUNT,) * 3,
        max_bound_descriptor_sets=8,
        max_push_constant_size=256,
        max_storage_buffer_range=(1 << 31) - 1,
        max_uniform_buffer_range=65536,
        uniform_buffer_alignment=256,
        sub_group_size=32,
        supported_stages=_ALL_STAGES,
        supported_operations=_ALL_OPERATIONS,
        quad_operations_in_all_stages=1,
        max_compute_shared_memory_size=65536,
        queue_properties=[(8, 0x6), (4, 0x7)],
        scalar_block_layout=1,
        timeline_semaphores=1,
        uuid=None,
        sorted_index=0,
        storage_buffer_8_bit_access=1,
    )
