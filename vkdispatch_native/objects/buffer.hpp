// A user's buffer: one copy of the memory for each queue.
#pragma once

#include <atomic>
#include <vector>

#include "objects/memory.hpp"
#include "objects/resource.hpp"

namespace vkd {

// The barrier epochs in which a queue's copy was last read and written (see stages/hazards.hpp).
struct HazardState {
  uint64_t read_epoch = 0;
  uint64_t write_epoch = 0;
};

class Buffer final : public Resource {
 public:
  Buffer(const std::vector<Device*>& queue_devices, VkDeviceSize size)
      : Resource(queue_devices.size()), size_(size) {
    copies_.reserve(queue_devices.size());
    for (Device* device : queue_devices) {
      copies_.push_back({Memory(*device, size, MemoryUse::device), {}});
    }
  }
  ~Buffer() override { release(); }

  void release() noexcept override {
    for (Copy& copy : copies_) {
      copy.memory.release();
    }
  }

  VkDeviceSize size() const noexcept { return size_; }
  uint64_t id() const noexcept { return id_; }  // never used again, unlike an address
  const Memory& memory(size_t queue) const noexcept { return copies_[queue].memory; }
  HazardState& hazards(size_t queue) noexcept { return copies_[queue].hazards; }

 private:
  struct Copy {
    Memory memory;
    HazardState hazards;
  };
  static inline std::atomic<uint64_t> next_id_{1};
  const uint64_t id_ = next_id_.fetch_add(1);
  VkDeviceSize size_;
  std::vector<Copy> copies_;
};

}  // namespace vkd
