// The system's Vulkan loader, a library that may be missing, or be something else under its name.
#pragma once

#include "libs/vulkan.hpp"

namespace vkd {

// Load it and look its global functions up. Throws where there is none or where it lacks them.
void load_vulkan();
// Look the functions of an instance up. Throws where the loader lacks one that every instance has.
void load_instance_functions(VkInstance instance);

}  // namespace vkd
