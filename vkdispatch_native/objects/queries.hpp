// The timestamp queries of a command list on one queue. Each list has its own, since its recordings name
// them.
#pragma once

#include <vector>

#include "context/clock.hpp"
#include "libs/error.hpp"
#include "objects/resource.hpp"

namespace vkd {

class Queries final : public Resource {
 public:
  // Throws if the queue has no timestamps.
  Queries(size_t queue_count, Device& device, uint32_t family, size_t count)
      : Resource(queue_count), device_(device), mask_(timestamp_mask(device, family)), count_(count) {
    if (mask_ == 0) {
      throw Error(ErrorKind::invalid_value, "queue family " + std::to_string(family) + " of " +
                                                device.properties().core.deviceName + " has no timestamps");
    }
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = static_cast<uint32_t>(count);
    check(device.fn().vkCreateQueryPool(device.handle(), &info, nullptr, &handle_), "vkCreateQueryPool");
  }
  ~Queries() override { release(); }

  void release() noexcept override {
    device_.fn().vkDestroyQueryPool(device_.handle(), handle_, nullptr);
    handle_ = VK_NULL_HANDLE;
  }

  VkQueryPool handle() const noexcept { return handle_; }
  size_t count() const noexcept { return count_; }

  // The first `count` timestamps, in device ticks. They must have been submitted. Throws unless the device
  // has written them.
  std::vector<uint64_t> read(size_t count) const {
    std::vector<uint64_t> ticks(count);
    if (count == 0) {
      return ticks;
    }
    const VkResult result = device_.fn().vkGetQueryPoolResults(
        device_.handle(), handle_, 0, static_cast<uint32_t>(count), count * sizeof(uint64_t), ticks.data(),
        sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
    if (result == VK_NOT_READY) {
      throw Error(ErrorKind::vulkan, "the timestamps are not available yet: wait for the submit first");
    }
    check(result, "vkGetQueryPoolResults");
    for (uint64_t& each : ticks) {
      each &= mask_;
    }
    return ticks;
  }

 private:
  Device& device_;
  uint64_t mask_;
  size_t count_;
  VkQueryPool handle_ = VK_NULL_HANDLE;
};

}  // namespace vkd
