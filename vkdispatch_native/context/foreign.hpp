// Whether handles that the caller brings along are what they should be, as far as can be seen.
#pragma once

#include "libs/vulkan.hpp"

namespace vkd {

// These throw. The loader's objects begin with a pointer to its table of functions: one for an instance and
// its physical devices, one for a device and its queues.
// `known` is an instance that is one.
void check_instance(VkInstance instance, VkPhysicalDevice physical, VkInstance known);
void check_device(VkDevice device, VkPhysicalDevice physical);
void check_queue(VkQueue queue, VkDevice device);

}  // namespace vkd
