#include <cstdlib>

#include "libs/allocations.hpp"

#define VMA_SYSTEM_ALIGNED_MALLOC(size, alignment) vkd::counted_aligned_alloc(size, alignment)
#define VMA_SYSTEM_ALIGNED_FREE(memory) std::free(memory)
#define VMA_IMPLEMENTATION
#include "libs/vulkan.hpp"
