// A ring of pinned host memory between user arrays and memory that only the device can access.
#pragma once

#include <vector>

#include "objects/memory.hpp"
#include "objects/poison.hpp"

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
  static constexpr size_t kBlocks = 6;

  StagingRing(Device& device, MemoryUse use) : device_(device), use_(use) {}

  // Allocates blocks suitable for a copy of this size. The device must have finished using the old ones.
  void resize_for(VkDeviceSize size);
  bool suits(VkDeviceSize size) const noexcept { return size <= kFewBytes || block_size_ == kLargeBlock; }
  uint64_t busy_until() const noexcept;  // the timeline value of the last use of any block
  VkDeviceSize block_size() const noexcept { return block_size_; }
  Poison& poison() noexcept { return poison_; }  // of its copies in progress
  void free() noexcept;                          // the device must have finished using all blocks

  // The timeline value to wait for before the slice that take(size) would return may be overwritten.
  uint64_t busy_until(VkDeviceSize size) const noexcept;
  StagingSlice take(VkDeviceSize size);  // at most one block
  void in_use(const StagingSlice& slice, uint64_t value) noexcept { blocks_[slice.block].value = value; }

 private:
  // Most programs copy little, so large blocks are only used for large copies.
  static constexpr VkDeviceSize kSmallBlock = VkDeviceSize{1} << 20;
  static constexpr VkDeviceSize kLargeBlock = VkDeviceSize{16} << 20;
  static constexpr VkDeviceSize kFewBytes = 4 * kSmallBlock;

  struct Block {
    Memory memory;
    uint64_t value = 0;  // of the last command that used it
  };
  bool fits(VkDeviceSize size) const noexcept { return !blocks_.empty() && offset_ + size <= block_size_; }

  Device& device_;
  MemoryUse use_;
  VkDeviceSize block_size_ = kSmallBlock;
  std::vector<Block> blocks_;
  size_t current_ = 0;
  VkDeviceSize offset_ = 0;
  Poison poison_{false};
};

}  // namespace vkd
