// A queue's timeline semaphore: batch n signals value n. Those that were not submitted count as passed once
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
  uint64_t completed();                                                                   // asks the device
  uint64_t known() const noexcept { return completed_.load(std::memory_order_acquire); }  // does not
  bool passed(uint64_t value) {  // asks the device only when it must
    return completed_.load(std::memory_order_acquire) >= value || completed() >= value;
  }
  // False: not in time. `eager` is for who has nothing else to do than to go on: it watches for a while.
  bool wait(uint64_t value, uint64_t timeout_ns, bool eager);
  // This batch, the one after all that were submitted or skipped before, was not submitted.
  void skip(uint64_t value) noexcept;
  // The last batch up to this one that was submitted: what the device can wait for.
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
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  std::atomic<uint64_t> completed_{0};
  std::atomic<int> shortages_{0};  // calls in a row for which there was no memory
  std::mutex gaps_mutex_;
  std::atomic<bool> has_gaps_{false};
  std::vector<Gap> gaps_;  // in order
};

}  // namespace vkd
