// Checks handles that the caller passes in, as far as possible.
#pragma once

#include "libs/vulkan.hpp"

namespace vkd {

// These throw. Objects of the loader begin with a pointer to a dispatch table: one for an instance and its
// physical devices, one for a device and its queues.
// `known` is a valid instance.
void check_instance(VkInstance instance, VkPhysicalDevice physical, VkInstance known);
void check_device(VkDevice device, VkPhysicalDevice physical);
void check_queue(VkQueue queue, VkDevice device);

}  // namespace vkd
