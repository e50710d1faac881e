// Copies between two devices, in parts, through host memory that one device fills while the other empties it.
//
// If both devices can import host pages, a block is one memory for both and the caller never waits: the
// queues' threads, which wait for other devices, submit the parts. Otherwise the caller waits and copies each
// part from one device's memory to the other's.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "libs/ring.hpp"
#include "queue/queue.hpp"

namespace vkd {

class Crossing {
 public:
  Crossing(size_t queue_count, Device& source, Device& target, Graveyard& graveyard);
  ~Crossing();
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  // Copies a buffer from the copy of `from`, on one device, to the copy of `to`, on the other.
  void copy(Buffer& buffer, Queue& from, Queue& to);
  void free_idle_memory() noexcept;

 private:
  static constexpr size_t kBlocks = 4;
  static constexpr size_t kFilledAhead = 2;   // if the caller copies the parts
  static constexpr size_t kMostPending = 64;  // unsubmitted parts: each is a batch

  class Block;
  struct Part {
    Block* block;
    VkDeviceSize offset, size;
    Batch::Wait filled;
  };

  VkDeviceSize largest_part() const noexcept;
  Block& take_block(VkDeviceSize size);
  Part fill(Buffer& buffer, VkDeviceSize offset, VkDeviceSize size, Queue& from);
  void pass_on(const Part& part, Buffer& buffer, Queue& to);

  const size_t queue_count_;
  Device& source_;
  Device& target_;
  Graveyard& graveyard_;
  std::mutex mutex_;
  std::array<std::unique_ptr<Block>, kBlocks> blocks_;
  size_t next_ = 0;
  bool imports_;
  FixedRing<Batch::Wait, kMostPending + kBlocks> pending_;  // when the last parts end
};

}  // namespace vkd
