// A VkBuffer with its memory.
//
// A buffer beyond the device's allocation limit is sparse: one VkBuffer bound to several allocations for its
// whole life. Drivers that allow larger allocations get a single one instead.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "context/device.hpp"
#include "libs/pages.hpp"

namespace vkd {

enum class MemoryUse {
  device,       // what shaders use; also mapped if that is free
  upload,       // host memory that the device copies from, or reads as uniforms
  download,     // cached host memory that the device copies to
  host,         // host memory that shaders use
  device_host,  // device memory that the host can access
};

class Memory {
 public:
  Memory() = default;
  // `apart` requests an allocation of its own; their number is limited.
  Memory(Device& device, VkDeviceSize size, MemoryUse use, bool apart = false);
  // Imports these pages (see Device::imports_pages), which must outlive this object.
  Memory(Device& device, const DevicePages& pages);
  // Imports host memory that begins and ends anywhere, together with the rest of its pages. `owner` is
  // released after the import. Throws if `data` is not aligned as the device's bindings have to be.
  Memory(Device& device, std::byte* data, VkDeviceSize size, std::shared_ptr<void> owner);
  // A VkBuffer of another library, with its memory. `owner` is released when it is no longer used.
  Memory(Device& device, VkBuffer handle, VkDeviceSize size, std::shared_ptr<void> owner)
      : device_(&device), handle_(handle), size_(size), owner_(std::move(owner)), borrowed_(true) {}
  // A part of another memory, which outlives it.
  Memory(std::shared_ptr<Memory> whole, VkDeviceSize offset, VkDeviceSize size);
  ~Memory() { release(); }
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }

  // Where it lies in a block of memory that other APIs can import.
  struct Block {
    VkDeviceMemory memory;  // null: it cannot be exported
    VkDeviceSize offset, size;
    bool dedicated;
  };

  void release() noexcept;
  Block block() const noexcept;
  VkBuffer handle() const noexcept { return handle_; }
  VkDeviceSize start() const noexcept { return start_; }  // the offset of its first byte in the VkBuffer
  VkDeviceSize size() const noexcept { return size_; }
  // Bytes of device memory that it occupies; 0 if other objects own them.
  VkDeviceSize allocated() const noexcept { return allocated_; }
  std::byte* mapped() const noexcept { return mapped_; }         // null: not accessible by the host
  VkDeviceAddress address() const noexcept { return address_; }  // 0: not supported

 private:
  void swap(Memory& other) noexcept;
  void allocate(VkBufferCreateInfo info, const VmaAllocationCreateInfo& allocation);
  void import(std::byte* pages, VkBufferCreateInfo info);
  bool allocate_exported(VkBufferCreateInfo info, VmaAllocationCreateFlags flags);
  bool allocate_beyond_limit(const VkBufferCreateInfo& info, MemoryUse use);
  void allocate_sparse(VkBufferCreateInfo info, MemoryUse use);

  Device* device_ = nullptr;
  VkBuffer handle_ = VK_NULL_HANDLE;
  VmaAllocation allocation_ = VK_NULL_HANDLE;
  VkDeviceSize size_ = 0;
  std::byte* mapped_ = nullptr;
  VkDeviceSize allocated_ = 0;
  bool exported_ = false;
  VkDeviceAddress address_ = 0;
  std::vector<VmaAllocation> pieces_;  // of a sparse buffer
  VkDeviceMemory imported_ = VK_NULL_HANDLE;
  VkDeviceSize start_ = 0;
  std::shared_ptr<void> owner_;  // of memory of another library
  bool borrowed_ = false;        // the VkBuffer is another library's, too, or that of whole_
  std::shared_ptr<Memory> whole_;
};

}  // namespace vkd
