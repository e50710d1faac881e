#define VMA_IMPLEMENTATION
#include "libs/vulkan.hpp"
