// A VkBuffer with its memory.
//
// One that is larger than the device says it allocates at once is sparse, unless the driver does it all the
// same: one VkBuffer over several allocations, all of it bound for as long as it lives.
#pragma once

#include <vector>

#include "context/device.hpp"
#include "libs/pages.hpp"

namespace vkd {

enum class MemoryUse {
  device,       // what shaders work on; mapped too where that costs nothing
  upload,       // host memory that the device copies from, or reads uniforms from
  download,     // cached host memory that the device copies to
  host,         // host memory that shaders work on
  device_host,  // the device's own memory, which the host reaches too
};

class Memory {
 public:
  Memory() = default;
  // `apart` is in an allocation of its own, of which there may be few.
  Memory(Device& device, VkDeviceSize size, MemoryUse use, bool apart = false);
  // The memory of these pages, which last as long; the device imports them (see Device::imports_pages).
  Memory(Device& device, const DevicePages& pages);
  ~Memory() { release(); }
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }

  void release() noexcept;
  VkBuffer handle() const noexcept { return handle_; }
  VkDeviceSize size() const noexcept { return size_; }
  // Bytes of the device's that it takes; 0 where they are of others.
  VkDeviceSize allocated() const noexcept { return allocated_; }
  std::byte* mapped() const noexcept { return mapped_; }         // null when the host cannot reach it
  VkDeviceAddress address() const noexcept { return address_; }  // 0 where the device has none

 private:
  void swap(Memory& other) noexcept;
  void allocate(const VkBufferCreateInfo& info, const VmaAllocationCreateInfo& allocation);
  void import(const DevicePages& pages, VkBufferCreateInfo info);
  bool allocate_beyond_limit(const VkBufferCreateInfo& info, MemoryUse use);
  void allocate_sparse(VkBufferCreateInfo info, MemoryUse use);

  Device* device_ = nullptr;
  VkBuffer handle_ = VK_NULL_HANDLE;
  VmaAllocation allocation_ = VK_NULL_HANDLE;
  VkDeviceSize size_ = 0;
  std::byte* mapped_ = nullptr;
  VkDeviceSize allocated_ = 0;
  VkDeviceAddress address_ = 0;
  std::vector<VmaAllocation> pieces_;  // of a sparse buffer
  VkDeviceMemory imported_ = VK_NULL_HANDLE;
};

}  // namespace vkd
