// A user's buffer: one copy of the memory for each queue.
#pragma once

#include <vector>

#include "objects/data.hpp"
#include "objects/memory.hpp"

namespace vkd {

class Buffer final : public Data {
 public:
  Buffer(const std::vector<Device*>& queue_devices, VkDeviceSize size)
      : Data(queue_devices.size()), size_(size) {
    copies_.reserve(queue_devices.size());
    for (Device* device : queue_devices) {
      copies_.emplace_back(*device, size, MemoryUse::device);
    }
  }
  ~Buffer() override { release(); }

  void release() noexcept override {
    for (Memory& copy : copies_) {
      copy.release();
    }
  }

  const char* noun() const noexcept override { return "a buffer"; }
  VkDeviceSize size() const noexcept { return size_; }
  const Memory& memory(size_t queue) const noexcept { return copies_[queue]; }

 private:
  VkDeviceSize size_;
  std::vector<Memory> copies_;
};

}  // namespace vkd
