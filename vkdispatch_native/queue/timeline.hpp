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
  uint64_t completed();          // asks the device
  bool passed(uint64_t value) {  // asks the device only when it must
    return completed_.load(std::memory_order_acquire) >= value || completed() >= value;
  }
  bool wait(uint64_t value, uint64_t timeout_ns);  // false: not in time
  void signal(uint64_t value);                     // from the host, for a batch that could not be submitted

 private:
  Device& device_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  std::atomic<uint64_t> completed_{0};
};

}  // namespace vkd
