// A queue's timeline semaphore: batch n signals value n.
#pragma once

#include <atomic>

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
  void signal(uint64_t value);  // from the host, for a batch that could not be submitted

 private:
  void saw(uint64_t value) noexcept;
  bool watch(uint64_t value, uint64_t timeout_ns, bool eager);

  Device& device_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  std::atomic<uint64_t> completed_{0};
};

}  // namespace vkd
