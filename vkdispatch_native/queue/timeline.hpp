// A queue's timeline semaphore: batch n signals value n. Failed batches count as passed once all earlier ones
// have.
// all before them are.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "context/device.hpp"

namespace vkd {

class Timeline {
 public:
  explicit Timeline(Device& device);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  VkSemaphore handle() const noexcept { return semaphore_; }
  uint64_t completed();  // queries the device
  // Does not query the device.
  uint64_t known() const noexcept { return completed_.load(std::memory_order_acquire); }
  bool passed(uint64_t value) {  // queries the device only if necessary
    return completed_.load(std::memory_order_acquire) >= value || completed() >= value;
  }
  // Returns false on timeout. `eager`: the caller has nothing else to do, so spin for a while first.
  bool wait(uint64_t value, uint64_t timeout_ns, bool eager);
  // Records that this batch, the next one after all earlier batches, was not submitted.
  void skip(uint64_t value) noexcept;
  // The last submitted batch up to this one, which the device can wait for.
  uint64_t last_submitted(uint64_t value) noexcept;

 private:
  struct Gap {
    uint64_t first, last;
  };

  uint64_t skip_gap(uint64_t value) noexcept;
  bool rest(uint64_t value, uint64_t timeout_ns);
  void advance_to(uint64_t value) noexcept;
  bool watch(uint64_t value, uint64_t timeout_ns, bool eager);

  Device& device_;
  const VkSemaphore semaphore_;
  std::atomic<uint64_t> completed_{0};
  std::atomic<int> shortages_{0};  // consecutive calls that failed for lack of memory
  std::mutex gaps_mutex_;
  std::atomic<bool> has_gaps_{false};
  std::vector<Gap> gaps_;  // in order
};

}  // namespace vkd
