// Copies between two devices, in parts, through memory of the host that one fills while the other empties it.
//
// Where both devices import pages of the host, a block is one memory for both, and nobody waits: the queues'
// threads, which wait for other devices, pass the parts on. Elsewhere the caller does, and copies them from
// memory of the one to memory of the other.
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

  // Copies what `from`, of the one device, has of a buffer to what `to`, of the other, has of it.
  void copy(Buffer& buffer, Queue& from, Queue& to);
  void free_idle_memory() noexcept;

 private:
  static constexpr size_t kBlocks = 4;
  static constexpr size_t kFilledAhead = 2;  // where the caller passes them on
  static constexpr size_t kMostGiven = 64;   // parts that nobody has submitted: each is a batch

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
  FixedRing<Batch::Wait, kMostGiven + kBlocks> given_;  // the ends of the last parts
};

}  // namespace vkd
