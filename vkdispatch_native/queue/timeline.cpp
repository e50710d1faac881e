#include "queue/timeline.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "libs/error.hpp"

namespace vkd {

namespace {

// Sleeping on a semaphore takes tens of microseconds longer than spinning, and most waits are shorter than
// this. After a while other threads may have the core.
constexpr std::chrono::microseconds kSpin{2000};
constexpr std::chrono::microseconds kSpinAlone{100};
// A CPU driver needs the cores to do the work that is waited for, so spin only briefly and yield to its
// threads.
constexpr std::chrono::microseconds kYield{40};
constexpr std::chrono::milliseconds kRest{1};
constexpr int kMostShortages = 5000;

}  // namespace

Timeline::Timeline(Device& device) : device_(device), semaphore_(device.create_timeline(device.exports())) {}

Timeline::~Timeline() {
  device_.fn().vkDestroySemaphore(device_.handle(), semaphore_, nullptr);
}

uint64_t Timeline::completed() {
  uint64_t value = 0;
  const VkResult result = device_.fn().vkGetSemaphoreCounterValue(device_.handle(), semaphore_, &value);
  if (is_shortage(result)) {
    return completed_.load(std::memory_order_acquire);  // unchanged
  }
  check(result, "vkGetSemaphoreCounterValue");
  advance_to(skip_gap(value));
  return completed_.load(std::memory_order_acquire);
}

void Timeline::skip(uint64_t value) noexcept {
  std::lock_guard lock(gaps_mutex_);
  if (!gaps_.empty() && gaps_.back().last + 1 == value) {
    gaps_.back().last = value;
    return;
  }
  const uint64_t done = completed_.load();
  gaps_.erase(gaps_.begin(),
              std::find_if(gaps_.begin(), gaps_.end(), [done](const Gap& gap) { return gap.last > done; }));
  gaps_.push_back({value, value});
  has_gaps_.store(true, std::memory_order_release);
}

uint64_t Timeline::skip_gap(uint64_t value) noexcept {
  if (has_gaps_.load(std::memory_order_acquire)) {
    std::lock_guard lock(gaps_mutex_);
    for (const Gap& gap : gaps_) {
      if (gap.first <= value + 1 && value < gap.last) {
        return gap.last;
      }
    }
  }
  return value;
}

uint64_t Timeline::last_submitted(uint64_t value) noexcept {
  if (has_gaps_.load(std::memory_order_acquire)) {
    std::lock_guard lock(gaps_mutex_);
    for (const Gap& gap : gaps_) {
      if (gap.first <= value && value <= gap.last) {
        return gap.first - 1;
      }
    }
  }
  return value;
}

void Timeline::advance_to(uint64_t value) noexcept {
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
  const auto start = std::chrono::steady_clock::now();
  const auto end =
      start +
      (timeout_ns < static_cast<uint64_t>(most.count()) ? std::chrono::nanoseconds(timeout_ns) : most);
  for (auto now = start; now < end; now = std::chrono::steady_clock::now()) {
    if (cpu || now - start > kSpinAlone) {
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
  const uint64_t signalled = last_submitted(value);
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &signalled;
  const VkResult result = device_.fn().vkWaitSemaphores(device_.handle(), &info, timeout_ns);
  if (is_shortage(result)) {
    return rest(value, timeout_ns);
  }
  check(result, "vkWaitSemaphores");
  if (result == VK_SUCCESS) {
    shortages_.store(0);
    advance_to(skip_gap(signalled));
  }
  return completed_.load(std::memory_order_acquire) >= value;
}

// The driver has no memory for a wait: sleep for a moment, then check again. Throws if the shortage lasts.
bool Timeline::rest(uint64_t value, uint64_t timeout_ns) {
  if (shortages_.fetch_add(1) >= kMostShortages) {
    throw Error(ErrorKind::device_lost, "the driver has had no memory to wait for the device for seconds");
  }
  std::this_thread::sleep_for(
      std::min<std::chrono::nanoseconds>(kRest, std::chrono::nanoseconds(timeout_ns)));
  const uint64_t before = completed_.load();
  if (completed() > before) {
    shortages_.store(0);
  }
  return passed(value);
}

}  // namespace vkd
