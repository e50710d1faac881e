// A ring of pinned host memory between user arrays and memory that only the device reaches.
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

  // Makes blocks that suit a copy of so many bytes; only when the device is done with all of them.
  void resize_for(VkDeviceSize size);
  bool suits(VkDeviceSize size) const noexcept { return size <= kFewBytes || block_size_ == kLargeBlock; }
  uint64_t busy_until() const noexcept;  // the timeline value of the last user of any block
  VkDeviceSize block_size() const noexcept { return block_size_; }
  Poison& poison() noexcept { return poison_; }  // of the copies to it that are under way
  void free() noexcept;                          // only when the device is done with all of them

  // The timeline value to wait for before the slice that take(size) would hand out may be overwritten.
  uint64_t busy_until(VkDeviceSize size) const noexcept;
  StagingSlice take(VkDeviceSize size);  // at most one block
  void in_use(const StagingSlice& slice, uint64_t value) noexcept { blocks_[slice.block].value = value; }

 private:
  // Most programs move little: large blocks are for those that do not.
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
