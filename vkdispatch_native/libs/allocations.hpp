// How often this module asked for memory, so that tests can show that launching does not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vkd {

// Every operator new of the module (libstdc++ and glslang inside it included) and VulkanMemoryAllocator
// count; the driver's own memory and Python's do not. Always 0 in sanitized builds, which keep their own
// operator new.
uint64_t allocation_count() noexcept;
bool allocations_are_counted() noexcept;

void* counted_aligned_alloc(size_t size, size_t alignment) noexcept;  // null where there is none; free() it

}  // namespace vkd
