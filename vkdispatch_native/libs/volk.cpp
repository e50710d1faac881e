#define VOLK_IMPLEMENTATION
#include "libs/vulkan.hpp"
