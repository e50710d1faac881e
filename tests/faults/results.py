"""The results of Vulkan's functions, by the lists of return codes in its specification (1.4, and before).

Left out are results that only come with what the engine does not use (imported memory, video, captured
addresses), and VK_ERROR_UNKNOWN and VK_ERROR_VALIDATION_FAILED_EXT, which any function may give.
"""

from __future__ import annotations

NOT_READY, TIMEOUT, INCOMPLETE = 1, 2, 5
OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY, INITIALIZATION_FAILED, DEVICE_LOST = -1, -2, -3, -4
MEMORY_MAP_FAILED, LAYER_NOT_PRESENT, EXTENSION_NOT_PRESENT, FEATURE_NOT_PRESENT = -5, -6, -7, -8
INCOMPATIBLE_DRIVER, TOO_MANY_OBJECTS, FORMAT_NOT_SUPPORTED, FRAGMENTED_POOL = -9, -10, -11, -12
OUT_OF_POOL_MEMORY = -1000069000
INVALID_EXTERNAL_HANDLE = -1000072003
FRAGMENTATION = -1000161000
INVALID_SHADER_NV = -1000012000

NAMES = {
    value: f"VK_{'ERROR_' * (value < 0)}{name}"
    for name, value in list(globals().items())
    if name.isupper() and isinstance(value, int)
}

_MEMORY = (OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY)
_LOSS = (*_MEMORY, DEVICE_LOST)

RESULTS: dict[str, tuple[int, ...]] = {
    "vkCreateInstance": (
        *_MEMORY,
        INITIALIZATION_FAILED,
        LAYER_NOT_PRESENT,
        EXTENSION_NOT_PRESENT,
        INCOMPATIBLE_DRIVER,
    ),
    "vkEnumeratePhysicalDevices": (*_MEMORY, INITIALIZATION_FAILED, INCOMPLETE),
    "vkEnumerateDeviceExtensionProperties": (*_MEMORY, LAYER_NOT_PRESENT, INCOMPLETE),
    "vkGetPhysicalDeviceImageFormatProperties": (*_MEMORY, FORMAT_NOT_SUPPORTED),
    "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT": (*_MEMORY, INCOMPLETE),
    "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR": (*_MEMORY, INCOMPLETE),
    "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV": (*_MEMORY, INCOMPLETE),
    "vkCreateDebugUtilsMessengerEXT": (OUT_OF_HOST_MEMORY,),
    "vkCreateDevice": (
        *_LOSS,
        INITIALIZATION_FAILED,
        EXTENSION_NOT_PRESENT,
        FEATURE_NOT_PRESENT,
        TOO_MANY_OBJECTS,
    ),
    "vkAllocateMemory": _MEMORY,
    "vkMapMemory": (*_MEMORY, MEMORY_MAP_FAILED),
    "vkFlushMappedMemoryRanges": _MEMORY,
    "vkInvalidateMappedMemoryRanges": _MEMORY,
    "vkBindBufferMemory": _MEMORY,
    "vkBindBufferMemory2": _MEMORY,
    "vkBindImageMemory": _MEMORY,
    "vkBindImageMemory2": _MEMORY,
    "vkCreateBuffer": _MEMORY,
    "vkCreateImage": _MEMORY,
    "vkCreateImageView": _MEMORY,
    "vkCreateSampler": _MEMORY,
    "vkCreateShaderModule": (*_MEMORY, INVALID_SHADER_NV),
    "vkCreatePipelineCache": _MEMORY,
    "vkGetPipelineCacheData": (*_MEMORY, INCOMPLETE),
    "vkCreateComputePipelines": (*_MEMORY, INVALID_SHADER_NV),
    "vkCreatePipelineLayout": _MEMORY,
    "vkCreateDescriptorSetLayout": _MEMORY,
    "vkCreateDescriptorPool": (*_MEMORY, FRAGMENTATION),
    "vkResetDescriptorPool": _MEMORY,  # by Vulkan 1.0; none today
    "vkAllocateDescriptorSets": (*_MEMORY, FRAGMENTED_POOL, OUT_OF_POOL_MEMORY),
    "vkCreateCommandPool": _MEMORY,
    "vkResetCommandPool": _MEMORY,
    "vkAllocateCommandBuffers": _MEMORY,
    "vkBeginCommandBuffer": _MEMORY,
    "vkEndCommandBuffer": _MEMORY,
    "vkCreateQueryPool": _MEMORY,
    "vkGetQueryPoolResults": _LOSS,  # VK_NOT_READY is not for queries of work that was waited for
    "vkGetCalibratedTimestampsEXT": _MEMORY,
    "vkCreateFence": _MEMORY,
    "vkGetFenceStatus": (*_LOSS, NOT_READY),
    "vkResetFences": _MEMORY,
    "vkWaitForFences": (*_LOSS, TIMEOUT),
    "vkCreateSemaphore": _MEMORY,
    "vkGetSemaphoreCounterValue": _LOSS,
    "vkSignalSemaphore": _MEMORY,
    "vkWaitSemaphores": (*_LOSS, TIMEOUT),
    "vkQueueSubmit": _LOSS,
    "vkQueueBindSparse": _LOSS,
    "vkQueueWaitIdle": _LOSS,
    "vkDeviceWaitIdle": _LOSS,
    "vkGetDeviceFaultInfoEXT": (OUT_OF_HOST_MEMORY, INCOMPLETE),
    "vkGetMemoryHostPointerPropertiesEXT": (*_MEMORY, INVALID_EXTERNAL_HANDLE),
    "vkGetMemoryFdKHR": (OUT_OF_HOST_MEMORY,),
    "vkGetSemaphoreFdKHR": (OUT_OF_HOST_MEMORY,),
}
