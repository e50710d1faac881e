// Counts the module's memory allocations, so that tests can show that a launch makes none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vkd {

// Counts every operator new in the module (libstdc++ and glslang included) and VulkanMemoryAllocator's
// allocations, but not those of the driver or Python. Always 0 in sanitized builds, which keep their own
// operator new.
uint64_t allocation_count() noexcept;
bool allocations_are_counted() noexcept;

// Returns null when out of memory. Release with free().
void* counted_aligned_alloc(size_t size, size_t alignment) noexcept;

}  // namespace vkd
