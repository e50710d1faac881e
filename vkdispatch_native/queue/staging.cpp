#include "queue/staging.hpp"

#include <algorithm>

namespace vkd {

namespace {

constexpr VkDeviceSize kAlignment = 768;  // also divisible by three: image copies start at whole texels

}  // namespace

void StagingRing::resize_for(VkDeviceSize size) {
  if (!suits(size)) {
    free();
    block_size_ = kLargeBlock;
  }
}

void StagingRing::free() noexcept {
  blocks_.clear();
  current_ = 0;
  offset_ = 0;
}

uint64_t StagingRing::busy_until() const noexcept {
  uint64_t value = 0;
  for (const Block& block : blocks_) {
    value = std::max(value, block.value);
  }
  return value;
}

uint64_t StagingRing::busy_until(VkDeviceSize size) const noexcept {
  if (fits(size) || blocks_.size() < kBlocks) {
    return 0;  // the rest of a block is free: its uses lie before the offset
  }
  return blocks_[(current_ + 1) % blocks_.size()].value;
}

StagingSlice StagingRing::take(VkDeviceSize size) {
  if (!fits(size)) {
    if (blocks_.size() < kBlocks) {
      // Other allocations start with 32 MiB or more, which takes a driver milliseconds to pin.
      blocks_.push_back({Memory(device_, block_size_, use_, true), 0});
      current_ = blocks_.size() - 1;
    } else {
      current_ = (current_ + 1) % blocks_.size();
    }
    offset_ = 0;
  }
  Block& block = blocks_[current_];
  StagingSlice slice{current_, block.memory.handle(), offset_, size, block.memory.mapped() + offset_};
  offset_ = (offset_ + size + kAlignment - 1) / kAlignment * kAlignment;
  return slice;
}

}  // namespace vkd
