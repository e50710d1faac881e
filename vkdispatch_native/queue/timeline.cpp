#include "queue/timeline.hpp"

#include <chrono>
#include <thread>

#include "libs/error.hpp"

namespace vkd {

namespace {

// Sleeping on a semaphore costs tens of microseconds more than watching it, and most waits are shorter than
// that.
constexpr std::chrono::microseconds kSpin{100};
// A CPU driver needs the cores for the very work that is waited for: its threads go first, and not for long.
constexpr std::chrono::microseconds kYield{40};

}  // namespace

Timeline::Timeline(Device& device) : device_(device) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  check(device.fn().vkCreateSemaphore(device.handle(), &info, nullptr, &semaphore_), "vkCreateSemaphore");
}

Timeline::~Timeline() {
  device_.fn().vkDestroySemaphore(device_.handle(), semaphore_, nullptr);
}

uint64_t Timeline::completed() {
  uint64_t value = 0;
  check(device_.fn().vkGetSemaphoreCounterValue(device_.handle(), semaphore_, &value),
        "vkGetSemaphoreCounterValue");
  saw(value);
  return value;
}

void Timeline::saw(uint64_t value) noexcept {
  uint64_t seen = completed_.load(std::memory_order_relaxed);
  while (seen < value && !completed_.compare_exchange_weak(seen, value, std::memory_order_release)) {
  }
}

bool Timeline::watch(uint64_t value, uint64_t timeout_ns, bool eager) {
  const bool cpu = device_.is_cpu();
  if (cpu && !eager) {
    return false;
  }
  const std::chrono::nanoseconds most = cpu ? kYield : kSpin;
  const auto end =
      std::chrono::steady_clock::now() +
      (timeout_ns < static_cast<uint64_t>(most.count()) ? std::chrono::nanoseconds(timeout_ns) : most);
  while (std::chrono::steady_clock::now() < end) {
    if (cpu) {
      std::this_thread::yield();
    }
    if (passed(value)) {
      return true;
    }
  }
  return false;
}

bool Timeline::wait(uint64_t value, uint64_t timeout_ns, bool eager) {
  if (passed(value) || watch(value, timeout_ns, eager)) {
    return true;
  }
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  const VkResult result = device_.fn().vkWaitSemaphores(device_.handle(), &info, timeout_ns);
  check(result, "vkWaitSemaphores");
  if (result == VK_SUCCESS) {
    saw(value);
  }
  return result == VK_SUCCESS;
}

void Timeline::signal(uint64_t value) {
  VkSemaphoreSignalInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
  info.semaphore = semaphore_;
  info.value = value;
  check(device_.fn().vkSignalSemaphore(device_.handle(), &info), "vkSignalSemaphore");
}

}  // namespace vkd
