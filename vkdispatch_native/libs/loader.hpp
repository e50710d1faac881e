// The system's Vulkan loader. The library may be missing, or may be something else under that name.
#pragma once

#include "libs/vulkan.hpp"

namespace vkd {

// Loads the library and its global functions. Throws if there is none or if it lacks one of them.
void load_vulkan();
// Loads the functions of an instance. Throws if the loader lacks one that every instance has.
void load_instance_functions(VkInstance instance);

}  // namespace vkd
