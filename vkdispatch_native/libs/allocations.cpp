#include "libs/allocations.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VKD_COUNTS_ALLOCATIONS 0
#else
#define VKD_COUNTS_ALLOCATIONS 1
#endif

namespace vkd {

namespace {

std::atomic<uint64_t> allocations{0};

}  // namespace

uint64_t allocation_count() noexcept {
  return allocations.load(std::memory_order_relaxed);
}

bool allocations_are_counted() noexcept {
  return VKD_COUNTS_ALLOCATIONS != 0;
}

void* counted_aligned_alloc(size_t size, size_t alignment) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  alignment = std::max(alignment, sizeof(void*));
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

}  // namespace vkd

#if VKD_COUNTS_ALLOCATIONS

// exports.map keeps these symbols local to the module, so no other library calls them. Both operators use
// malloc and free, so memory may cross the module's boundary.
namespace {

template <typename Allocate>
void* allocate_or_throw(Allocate allocate) {
  for (;;) {
    if (void* memory = allocate()) {
      return memory;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) {
      throw std::bad_alloc();
    }
    handler();
  }
}

}  // namespace

void* operator new(std::size_t size) {
  vkd::allocations.fetch_add(1, std::memory_order_relaxed);
  return allocate_or_throw([size] { return std::malloc(std::max<std::size_t>(size, 1)); });
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw([=] {
    return vkd::counted_aligned_alloc(std::max<std::size_t>(size, 1), static_cast<std::size_t>(alignment));
  });
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

#endif
