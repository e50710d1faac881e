// A ring of pinned host memory between user arrays and memory that only the device reaches.
#pragma once

#include <vector>

#include "objects/memory.hpp"

namespace vkd {

struct StagingSlice {
  size_t block;
  VkBuffer buffer;
  VkDeviceSize offset;
  VkDeviceSize size;
  std::byte* mapped;
};

class StagingRing {
 public:
  static constexpr VkDeviceSize kBlockSize = VkDeviceSize{8} << 20;
  static constexpr size_t kBlocks = 4;

  StagingRing(Device& device, MemoryUse use) : device_(device), use_(use) {}

  // The timeline value to wait for before the slice that take(size) would hand out may be overwritten.
  uint64_t busy_until(VkDeviceSize size) const noexcept;
  // Up to `size` bytes, at most one block.
  StagingSlice take(VkDeviceSize size);
  void in_use(const StagingSlice& slice, uint64_t value) noexcept { blocks_[slice.block].value = value; }

 private:
  struct Block {
    Memory memory;
    uint64_t value = 0;  // of the last command that used it
  };
  static VkDeviceSize clamp(VkDeviceSize size) noexcept { return size < kBlockSize ? size : kBlockSize; }
  bool fits(VkDeviceSize size) const noexcept { return !blocks_.empty() && offset_ + size <= kBlockSize; }

  Device& device_;
  MemoryUse use_;
  std::vector<Block> blocks_;
  size_t current_ = 0;
  VkDeviceSize offset_ = 0;
};

}  // namespace vkd
